package report

import (
	"math"
	"slices"

	"github.com/stratalog/stratalog/perf/load"
)

// Bounds of a series over time.
const (
	mostPoints  = 1500
	mostSeconds = 1e7
)

// usable are the points of a series that can be drawn, in order, and not more
// of them than a screen can show.
func usable(points []load.Point) []load.Point {
	points = slices.DeleteFunc(slices.Clone(points), func(p load.Point) bool {
		return !(p.Seconds > 0 && p.Seconds <= mostSeconds)
	})
	slices.SortStableFunc(points, func(a, b load.Point) int {
		switch {
		case a.Seconds < b.Seconds:
			return -1
		case a.Seconds > b.Seconds:
			return 1
		}
		return 0
	})
	for len(points) > mostPoints {
		var half []load.Point
		last := 0.0
		for i := 0; i < len(points); i += 2 {
			one := join(last, points[i:min(i+2, len(points))])
			half, last = append(half, one), one.Seconds
		}
		points = half
	}
	return points
}

// join makes one point of several that follow from on: the mean rate, the longest
// latencies.
func join(from float64, points []load.Point) load.Point {
	one := points[len(points)-1]
	one.RecordsPerSec = 0
	width, last := one.Seconds-from, from
	for _, p := range points {
		share := 1 / float64(len(points))
		if width > 0 {
			share = (p.Seconds - last) / width
		}
		last = p.Seconds
		one.RecordsPerSec += p.RecordsPerSec * share
		one.P50, one.P99, one.Max = max(one.P50, p.P50), max(one.P99, p.P99), max(one.Max, p.Max)
	}
	return one
}

// pace is the usual width of the intervals of a series, to two digits, so that it
// does not run away from them.
func pace(points []load.Point) float64 {
	var widths []float64
	last := 0.0
	for _, p := range points {
		if p.Seconds > last {
			widths = append(widths, p.Seconds-last)
		}
		last = p.Seconds
	}
	switch len(widths) {
	case 0:
		return 0
	case 2: // the last may be a piece of one
		widths = []float64{slices.Max(widths)}
	}
	width := statOf(widths).median
	unit := math.Pow(10, math.Floor(math.Log10(width))-1)
	return math.Round(width/unit) * unit
}

// wholes is the series with a last interval that is less than half as wide as
// usual put to the one before it: too short to say anything by itself, but what
// kept the run waiting at its end is in it.
func wholes(points []load.Point) []load.Point {
	n := len(points)
	if n < 2 || points[n-1].Seconds-points[n-2].Seconds >= pace(points)/2 {
		return points
	}
	from := 0.0
	if n > 2 {
		from = points[n-3].Seconds
	}
	return append(points[:n-2:n-2], join(from, points[n-2:]))
}

// idle tells that nothing was completed in an interval: it has no latency.
func idle(p load.Point) bool { return p.Max <= 0 && p.P99 <= 0 && p.P50 <= 0 }

// course tells how many intervals the longest series of groups has.
func course(op string, groups []*group) int {
	most := 0
	for _, g := range groups {
		if o := g.middle(op).op(op); o != nil {
			most = max(most, len(wholes(usable(o.Series))))
		}
	}
	return most
}

// aspect is one of the figures that a run has over time.
type aspect struct {
	title, label, unit string
	log                bool
	of                 func(load.Point) float64
}

var aspects = []aspect{
	{"Rate over time", "records/s", "rate", false, func(p load.Point) float64 { return p.RecordsPerSec }},
	{"p99 over time", "p99", "us", true, func(p load.Point) float64 { return p.P99 }},
	{"Longest over time", "longest", "us", true, func(p load.Point) float64 { return p.Max }},
}

// timeChart draws one figure of an operation over time. Of runs that repeat each
// other, that with the median rate is drawn.
func (s *section) timeChart(op string, a aspect, groups []*group) *chart {
	c := &chart{Kind: "lines", Unit: a.unit, XLabel: "seconds", YLabel: a.label, YLog: a.log}
	all := make([][]load.Point, len(groups))
	step := math.Inf(1)
	for i, g := range groups {
		if o := g.middle(op).op(op); o != nil {
			all[i] = wholes(usable(o.Series))
		}
		if w := pace(all[i]); w > 0 && !math.IsInf(w, 0) {
			step = min(step, w)
		}
	}
	if math.IsInf(step, 1) {
		return c
	}
	// Intervals of several runs do not end at quite the same times.
	at := func(p load.Point) int64 { return int64(math.Round(p.Seconds / step)) }
	places := map[int64]int{}
	var order []int64
	for _, points := range all {
		for _, p := range points {
			if _, ok := places[at(p)]; !ok {
				places[at(p)] = 0
				order = append(order, at(p))
			}
		}
	}
	slices.Sort(order)
	for i, place := range order {
		places[place] = i
		c.X = append(c.X, num(float64(place)*step))
	}
	for i, g := range groups {
		ys := make([]num, len(order))
		for j := range ys {
			ys[j] = missing
		}
		var gaps []int
		for _, p := range all[i] {
			j := places[at(p)]
			ys[j] = drawable(a.of(p), a.log)
			if a.log && idle(p) {
				gaps = append(gaps, j)
			}
		}
		c.Series = append(c.Series, series{Key: s.key(g), Y: ys, Gaps: gaps})
	}
	return c
}
