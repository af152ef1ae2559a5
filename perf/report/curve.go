package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stratalog/stratalog/perf/load"
)

// Curves are drawn over 1/(1-q), on a logarithmic axis, which gives every
// further nine the same room.
const (
	perDecade   = 10
	mostDecades = 9
)

// tailAxis returns the places at which curves are looked at, up to the first
// that has count samples.
func tailAxis(count int64) []float64 {
	xs := []float64{1}
	for step := 1; step <= perDecade*mostDecades && xs[len(xs)-1] < float64(count); step++ {
		x := math.Pow(10, float64(step)/perDecade)
		if math.Abs(x-2) < 0.01 {
			x = 2 // the median
		}
		xs = append(xs, x)
	}
	return xs
}

// percent writes the place x as a percentile.
func percent(x float64) string {
	if x <= 1 {
		return "0"
	}
	decimals := max(int(math.Ceil(math.Log10(x)-1e-9))-1, 0)
	s := strconv.FormatFloat(100*(1-1/x), 'f', decimals+1, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// tailTicks are the percentiles that are written below a curve.
func tailTicks(xs []float64) []tick {
	ticks := []tick{{X: 1, Text: "0"}}
	last := xs[len(xs)-1]
	if last >= 2 && last <= 1e5 {
		ticks = append(ticks, tick{X: 2, Text: "50"})
	}
	for x := 10.0; x <= last*1.001; x *= 10 {
		ticks = append(ticks, tick{X: num(x), Text: percent(x)})
	}
	return ticks
}

// rounding is how far the percentiles of a curve may be off.
const rounding = 6e-7

// tail returns the latencies of a distribution at the places xs.
func tail(l *load.Latency, xs []float64) []float64 {
	ys := make([]float64, len(xs))
	curve := slices.Clone(l.Curve)
	curve = slices.DeleteFunc(curve, func(q load.Quantile) bool { return !(q.Q >= 0 && q.Q <= 100) })
	slices.SortStableFunc(curve, func(a, b load.Quantile) int { return cmp.Compare(a.Q, b.Q) })
	for i, x := range xs {
		ys[i] = math.NaN()
		if l.Count <= 0 || i > 0 && xs[i-1] >= float64(l.Count) {
			continue
		}
		if len(curve) == 0 || x == 2 && l.Count > 2 {
			ys[i] = known(l, x)
			continue
		}
		q := 100 * (1 - 1/x)
		if x >= float64(l.Count) && i > 0 {
			q = 100
		}
		at, _ := slices.BinarySearchFunc(curve, q-rounding, func(p load.Quantile, q float64) int { return cmp.Compare(p.Q, q) })
		if at < len(curve) {
			ys[i] = curve[at].Us
		}
	}
	return ys
}

// known is what a distribution without a curve tells at x.
func known(l *load.Latency, x float64) float64 {
	near := func(y float64) bool { return math.Abs(x-y) < 1e-6*y }
	switch {
	case x <= 1:
		return l.Min
	case x >= float64(l.Count):
		return l.Max
	case near(2):
		return l.P50
	case near(10):
		return l.P90
	case near(100):
		return l.P99
	case near(1e3):
		return l.P999
	case near(1e4):
		return l.P9999
	}
	return math.NaN()
}

// medianTail is the median, place by place, of the distributions that of picks
// out of repeats, as far as half of them have samples. Where one has none any
// more its longest stands, so that the line never falls.
func medianTail(runs []*run, of func(*run) *load.Latency, xs []float64) []num {
	var tails [][]float64
	var ends []float64
	for _, r := range runs {
		l := of(r)
		if l == nil || l.Count <= 0 {
			continue
		}
		ys := tail(l, xs)
		end := len(ys)
		for end > 0 && math.IsNaN(ys[end-1]) {
			end--
		}
		for i := end; i < len(ys) && end > 0; i++ {
			ys[i] = ys[end-1]
		}
		tails, ends = append(tails, ys), append(ends, float64(end))
	}
	list := blanks(len(xs))
	for i := range list {
		if len(ends) == 0 || float64(i) >= math.Ceil(statOf(slices.Clone(ends)).median) {
			continue
		}
		var column []float64
		for _, ys := range tails {
			if !math.IsNaN(ys[i]) {
				column = append(column, ys[i])
			}
		}
		if len(column) > 0 {
			list[i] = drawable(statOf(column).median, true)
		}
	}
	return list
}

// lines says which distributions of an operation a chart draws.
type lines int

const (
	ofBoth lines = iota // with that of the service dashed
	ofLatencyAlone
	ofServiceAlone
)

// curveChart draws distributions of an operation.
func (s *section) curveChart(op string, groups []*group, which lines) *chart {
	latency := func(r *run) *load.Latency {
		if o := r.op(op); o != nil {
			return &o.Latency
		}
		return nil
	}
	service := func(r *run) *load.Latency {
		if o := r.op(op); o != nil {
			return o.Service
		}
		return nil
	}
	count := int64(1)
	for _, g := range groups {
		for _, r := range g.runs {
			if l := latency(r); l != nil {
				count = max(count, l.Count)
			}
		}
	}
	xs := tailAxis(count)
	c := &chart{Kind: "lines", Unit: "us", XLabel: "percentile", YLabel: "latency", XLog: true, YLog: true}
	switch which {
	case ofLatencyAlone:
		c.Title = "From the intended start"
	case ofServiceAlone:
		c.Title = "Service"
	}
	for _, g := range groups {
		if which != ofServiceAlone {
			c.Series = append(c.Series, series{Key: s.key(g), Y: medianTail(g.runs, latency, xs)})
		}
		if o := g.first().op(op); which != ofLatencyAlone && o != nil && o.Service != nil {
			c.Series = append(c.Series, series{Key: s.key(g), Dash: which == ofBoth, Y: medianTail(g.runs, service, xs)})
		}
	}
	c.setTail(xs)
	return c
}

// setTail gives the chart the places xs, as far as there is a value.
func (c *chart) setTail(xs []float64) {
	last := 0
	for _, one := range c.Series {
		for i, y := range one.Y {
			if !y.missing() {
				last = max(last, i)
			}
		}
	}
	for i := range c.Series {
		c.Series[i].Y = c.Series[i].Y[:last+1]
	}
	xs = xs[:last+1]
	c.X, c.Ticks = nums(xs), tailTicks(xs)
	for _, x := range xs {
		c.Heads = append(c.Heads, percent(x)+"% took at most")
	}
}

func nums(xs []float64) []num {
	ns := make([]num, len(xs))
	for i, x := range xs {
		ns[i] = num(x)
	}
	return ns
}
