package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// barCharts draws one figure of groups: a chart for each promise, because bars in
// one chart are there to be compared. What nothing can be compared with has none.
func (s *section) barCharts(groups []*group, title, label, unit string, of figure) []*chart {
	classes := byPromise(groups)
	var list []*chart
	for _, class := range classes {
		if len(class) < 2 {
			continue
		}
		c := s.barChart(class, title, label, unit, of)
		if len(classes) > 1 {
			c.Title += ", " + promiseName(class)
		}
		list = append(list, c)
	}
	return list
}

// barChart draws one figure of some groups, cell by cell.
func (s *section) barChart(some []*group, title, label, unit string, of figure) *chart {
	c := &chart{Kind: "bars", Title: title, Unit: unit, YLabel: label}
	low, high := math.Inf(1), 0.0
	place := 0.0
	byKey := map[int]int{}
	for cell := range s.cells {
		groups := slices.DeleteFunc(s.inCell(cell), func(g *group) bool { return !slices.Contains(some, g) })
		start := place
		for _, g := range groups {
			st, ok := g.stat(of)
			if !ok {
				continue
			}
			y := drawable(st.median, false)
			if y > 0 {
				low, high = min(low, float64(y)), max(high, float64(y))
			}
			key := s.key(g)
			if _, ok := byKey[key]; !ok {
				byKey[key] = len(c.Series)
				c.Series = append(c.Series, series{Key: key})
			}
			c.addBar(byKey[key], place, cell, y, st)
			c.Heads = append(c.Heads, s.barHead(g))
			if !s.matrix() {
				c.Ticks = append(c.Ticks, tick{X: num(place), Text: s.barTick(g), Short: fmt.Sprint(g.mark)})
			}
			place++
		}
		if place > start && s.matrix() {
			c.Ticks = append(c.Ticks, tick{X: num((start + place - 1) / 2), Text: strings.Join(s.cellValues[cell], "\n"), Short: marks(groups)})
			place++
		}
	}
	if s.matrix() || s.alone() {
		var names []string
		for _, a := range s.cellNames {
			names = append(names, a.name)
		}
		c.XLabel = strings.Join(names, " / ")
	}
	c.XShort = byLine
	// Lengths of bars can be compared only if they begin at 0, but those of
	// what differs by decades could not be seen.
	c.YLog = unit == "us" && high > 30*low
	return c
}

// byLine is below bars that are told apart by the numbers of the table.
const byLine = "line of the table"

// marks names the lines of groups.
func marks(groups []*group) string {
	first, last := groups[0].mark, groups[len(groups)-1].mark
	switch {
	case first == last:
		return fmt.Sprint(first)
	case last-first == len(groups)-1:
		return fmt.Sprintf("%d–%d", first, last)
	}
	var list []string
	for _, g := range groups {
		list = append(list, fmt.Sprint(g.mark))
	}
	return strings.Join(list, ",")
}

// addBar adds a bar to series i, and a gap to all others.
func (c *chart) addBar(i int, place float64, cell int, y num, st stat) {
	c.X = append(c.X, num(place))
	c.Cats = append(c.Cats, cell)
	for j := range c.Series {
		s := &c.Series[j]
		for len(s.Y) < len(c.X) {
			s.Y, s.Low, s.High = append(s.Y, missing), append(s.Low, missing), append(s.High, missing)
		}
	}
	s := &c.Series[i]
	last := len(c.X) - 1
	s.Y[last] = y
	if st.n > 1 {
		s.Low[last], s.High[last] = drawable(st.min, false), drawable(st.max, false)
	}
}

func (s *section) barHead(g *group) string {
	if s.matrix() {
		return s.cells[g.cell]
	}
	return ""
}

// barTick is what stands below the bar of g if cells do not tell it.
func (s *section) barTick(g *group) string {
	if s.alone() {
		return strings.Join(s.cellValues[g.cell], "\n")
	}
	return clip(g.label, 30)
}

// inCell returns the groups of a cell, by subject.
func (s *section) inCell(cell int) []*group {
	var list []*group
	for _, g := range s.groups {
		if g.cell == cell {
			list = append(list, g)
		}
	}
	return list
}

// matrix tells that several subjects were measured under several loads: charts
// are then drawn load by load, and colours tell subjects.
func (s *section) matrix() bool { return len(s.subjects) > 1 && len(s.cells) > 1 }

// alone tells that one subject was measured under several loads.
func (s *section) alone() bool { return len(s.subjects) == 1 && len(s.cells) > 1 }

// key is the look of a group.
func (s *section) key(g *group) int {
	if s.matrix() {
		return g.subject
	}
	return g.mark - s.groups[0].mark
}
