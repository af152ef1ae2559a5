package report

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// mostFacets is how many charts a block shows unasked.
	mostFacets = 6
	// leastCurve is how many samples make a curve.
	leastCurve = 20
	// mostDashed is up to how many lines each has a dashed one beside it.
	mostDashed = 4
	// mostLines is how many lines are drawn unasked, mostOverTime how many of
	// those that cross each other all the time, mostFaceted how many in a
	// chart of one load.
	mostLines    = 12
	mostOverTime = 6
	mostFaceted  = 16
)

// widest is the number of series of the chart with the most.
func (b *block) widest() int {
	n := 0
	for _, c := range b.Charts {
		n = max(n, len(c.Series))
	}
	return n
}

// thin turns entries off until most are left, evenly, and tells how many.
func thin(items []legendItem, most int) int {
	if len(items) <= most {
		return 0
	}
	for i := range items {
		items[i].Off = true
	}
	for i := range most {
		items[i*(len(items)-1)/(most-1)].Off = false
	}
	return len(items) - most
}

// blocks draws an operation of the section.
func (s *section) blocks(op string) []*block {
	var groups []*group
	repeats, service, samples := false, false, int64(0)
	for _, g := range s.groups {
		if o := g.first().op(op); o != nil {
			groups = append(groups, g)
			repeats = repeats || len(g.runs) > 1
			service = service || o.Service != nil
			samples = max(samples, o.Latency.Count)
		}
	}
	var list []*block
	add := func(b *block, most int) {
		b.Legend = s.legend(groups)
		if s.matrix() && b.widest() <= mostFaceted {
			most = len(b.Legend) // each chart has only some of them
		}
		if hidden := thin(b.Legend, most); hidden > 0 {
			b.Note = strings.TrimSpace(b.Note + fmt.Sprintf(" %d of %d lines are drawn; the legend brings in the others.",
				len(b.Legend)-hidden, len(b.Legend)))
		}
		if b.prune() {
			b.describe()
			list = append(list, b)
		}
	}
	if len(groups) > 1 {
		note := ""
		if repeats {
			note = "Bars are medians of the repeats, whiskers reach from the lowest to the highest."
		}
		latency := s.barCharts(groups, "Latency, p99", "p99", "us", p99Of(op))
		if samples < 100 {
			latency = s.barCharts(groups, "Latency, median", "p50", "us", p50Of(op))
		}
		b := &block{Title: "Compared", Note: note, Charts: append(s.barCharts(groups, "Rate", "records/s", "rate", rateOf(op)), latency...)}
		if slices.ContainsFunc(latency, func(c *chart) bool { return c.YLog }) {
			b.Note = strings.TrimSpace(b.Note + " The axis of latencies is logarithmic: see the numbers, not the lengths.")
		}
		add(b, len(groups))
	}
	curve := &block{Title: "Latency by percentile"}
	apart := service && len(groups) > mostDashed
	switch {
	case apart:
		curve.Note = "From the intended start, and from when the message was handed over (service). "
	case service:
		curve.Note = "Solid: from the intended start. Dashed: from when the message was handed over (service). "
	}
	if repeats {
		curve.Note += "Lines of repeats are medians, percentile by percentile."
	}
	curve.Note = strings.TrimSpace(curve.Note)
	if apart {
		curve.Charts = []*chart{s.curveChart(op, groups, ofLatencyAlone), s.curveChart(op, groups, ofServiceAlone)}
		shareRange(curve.Charts)
	} else {
		curve.Charts = s.facets(groups, func(g []*group) *chart { return s.curveChart(op, g, ofBoth) })
		curve.Small = len(curve.Charts) > 1
	}
	if samples >= leastCurve {
		add(curve, mostLines)
	}

	overTime := "Of runs that repeat each other, that with the median rate is drawn."
	if !repeats {
		overTime = ""
	}
	switch course(op, groups) {
	case 0:
		return list
	case 1:
		return append(list, &block{Title: "Over time", Note: "No run is longer than one interval of its series: there is no course to draw."})
	}
	if !s.matrix() {
		b := &block{Title: "Over time", Note: overTime, Small: true}
		for _, a := range aspects {
			c := s.timeChart(op, a, groups)
			c.Title = a.title
			b.Charts = append(b.Charts, c)
		}
		add(b, mostOverTime)
		return list
	}
	for _, a := range aspects {
		b := &block{Title: a.title, Note: overTime, Small: true}
		b.Charts = s.facets(groups, func(g []*group) *chart { return s.timeChart(op, a, g) })
		b.Folded = len(b.Charts) > mostFacets
		add(b, mostLines)
	}
	return list
}

// facets draws a chart for each cell if there are several subjects and cells,
// and one of all groups otherwise.
func (s *section) facets(groups []*group, draw func([]*group) *chart) []*chart {
	if !s.matrix() {
		return []*chart{draw(groups)}
	}
	var charts []*chart
	for cell, name := range s.cells {
		var members []*group
		for _, g := range groups {
			if g.cell == cell {
				members = append(members, g)
			}
		}
		if len(members) > 0 {
			c := draw(members)
			c.Title, c.Small = name, true
			charts = append(charts, c)
		}
	}
	if len(charts) > 0 && charts[0].YLog {
		shareRange(charts)
	}
	return charts
}

// legend tells the keys of groups.
func (s *section) legend(groups []*group) []legendItem {
	var items []legendItem
	for _, g := range groups {
		item := legendItem{Key: s.key(g), Label: g.label, Mark: fmt.Sprint(g.mark)}
		if s.matrix() {
			item.Label, item.Mark = s.subjects[g.subject], ""
		} else if g.outcome() == behind {
			item.Label += " ▼"
		}
		if slices.ContainsFunc(items, func(l legendItem) bool { return l.Key == item.Key }) {
			continue
		}
		items = append(items, item)
	}
	slices.SortStableFunc(items, func(a, b legendItem) int { return a.Key - b.Key })
	return items
}

// describe writes what the charts show in words.
func (b *block) describe() {
	for _, c := range b.Charts {
		var names []string
		for _, l := range b.Legend {
			if slices.ContainsFunc(c.Series, func(s series) bool { return s.Key == l.Key }) {
				names = append(names, l.Label)
			}
		}
		what := b.Title
		if c.Title != "" {
			what += ", " + c.Title
		}
		c.Text = fmt.Sprintf("%s: %s of %s. The arrow keys move through the values, which are also in the tables.",
			what, c.YLabel, strings.Join(names, "; "))
	}
}
