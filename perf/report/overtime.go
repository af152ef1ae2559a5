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
		for i := 0; i < len(points); i += 2 {
			half = append(half, join(points[i:min(i+2, len(points))]))
		}
		points = half
	}
	return points
}

// join makes one point of several: the mean rate, the longest latencies.
func join(points []load.Point) load.Point {
	one := points[len(points)-1]
	one.RecordsPerSec = 0
	for _, p := range points {
		one.RecordsPerSec += p.RecordsPerSec / float64(len(points))
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
	if len(widths) == 0 {
		return 0
	}
	width := statOf(widths).median
	unit := math.Pow(10, math.Floor(math.Log10(width))-1)
	return math.Round(width/unit) * unit
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
			all[i] = usable(o.Series)
		}
		w := pace(all[i])
		if n := len(all[i]); n > 2 && all[i][n-1].Seconds-all[i][n-2].Seconds < w/2 {
			all[i] = all[i][:n-1] // too short to say anything
		}
		if w > 0 && !math.IsInf(w, 0) {
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
		for _, p := range all[i] {
			ys[places[at(p)]] = drawable(a.of(p), a.log)
		}
		c.Series = append(c.Series, series{Key: s.key(g), Y: ys})
	}
	return c
}
