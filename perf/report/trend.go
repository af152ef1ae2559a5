package report

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// trend is one benchmark over the accepted baselines.
type trend struct {
	benchmark, unit string
	// heads and ratios are by baseline, missing where it was not measured.
	heads, ratios []num
	// low and high are the intervals of ratios, open those that may be chance.
	low, high []num
	open      []bool
}

// product is the ratios multiplied up, from the first baseline on; what is
// undecided is noise, and changes nothing.
func (t *trend) product() []num {
	list, now := blanks(len(t.ratios)), 1.0
	for i, r := range t.ratios {
		if r.missing() {
			continue
		}
		if !t.open[i] {
			now *= float64(r)
		}
		list[i] = drawable(now, true)
	}
	return list
}

// decided is the ratios that are not undecided.
func (t *trend) decided() []num {
	list := slices.Clone(t.ratios)
	for i, open := range t.open {
		if open {
			list[i] = missing
		}
	}
	return list
}

// swing is how far the ratio ever was from 1, in either direction, as far as that
// is known.
func (t *trend) swing() float64 {
	most := 0.0
	for _, r := range t.decided() {
		if !r.missing() {
			most = max(most, math.Abs(math.Log(float64(r))))
		}
	}
	return most
}

// trends takes a history apart by benchmark and unit, in the order in which they
// first appear.
func trends(history []Baseline) []*trend {
	var list []*trend
	byName := map[[2]string]*trend{}
	for i, b := range history {
		for _, r := range b.Benchmarks {
			t := byName[[2]string{r.Benchmark, r.Unit}]
			if t == nil {
				t = &trend{benchmark: r.Benchmark, unit: r.Unit, heads: blanks(len(history)), ratios: blanks(len(history)),
					low: blanks(len(history)), high: blanks(len(history)), open: make([]bool, len(history))}
				byName[[2]string{r.Benchmark, r.Unit}] = t
				list = append(list, t)
			}
			t.heads[i] = drawable(r.Head, false)
			if r.Ratio != nil && *r.Ratio > 0 {
				t.ratios[i], t.open[i] = drawable(*r.Ratio, true), r.undecided()
			}
			if r.From != nil && r.To != nil && *r.From <= *r.To {
				t.low[i], t.high[i] = drawable(*r.From, true), drawable(*r.To, true)
			}
		}
	}
	return list
}

func blanks(n int) []num {
	list := make([]num, n)
	for i := range list {
		list[i] = missing
	}
	return list
}

// byUnit returns the units in their order, and the trends of each.
func byUnit(list []*trend) (units []string, of map[string][]*trend) {
	of = map[string][]*trend{}
	for _, t := range list {
		if of[t.unit] == nil {
			units = append(units, t.unit)
		}
		of[t.unit] = append(of[t.unit], t)
	}
	return units, of
}

// historyBlocks draws, unit by unit, the ratios, the ratios multiplied up, and
// every benchmark's value.
func historyBlocks(history []Baseline) []*block {
	units, of := byUnit(trends(history))
	var list []*block
	for _, unit := range units {
		name := unitName(unit)
		for _, b := range []*block{
			ratioBlock(history, of[unit], "Ratio to the base, "+name, "1 is no change; below 1 is less "+name+"."+openNote(of[unit]),
				(*trend).ofRatios),
			ratioBlock(history, of[unit], "Since the first baseline, "+name, "The ratios multiplied up, which takes the machine out of it."+
				skippedNote(of[unit]), func(t *trend) series { return series{Y: t.product()} }),
			valueBlock(history, of[unit], unit),
		} {
			if b.prune() {
				list = append(list, b)
			}
		}
	}
	return list
}

func someOpen(list []*trend) bool {
	return slices.ContainsFunc(list, func(t *trend) bool { return slices.Contains(t.open, true) })
}

// openNote explains hollow points, if there are any.
func openNote(list []*trend) string {
	if !someOpen(list) {
		return ""
	}
	return " Hollow points are undecided: they may be chance."
}

func skippedNote(list []*trend) string {
	if !someOpen(list) {
		return ""
	}
	return " Undecided ratios are left out."
}

// ofRatios draws the ratios, with their intervals where there are any.
func (t *trend) ofRatios() series {
	s := series{Y: t.ratios}
	for i, open := range t.open {
		if open {
			s.Open = append(s.Open, i)
		}
	}
	if len(present(t.low)) > 0 {
		s.Low, s.High = t.low, t.high
	}
	return s
}

// ratioBlock draws one line a benchmark, those that moved most unasked.
func ratioBlock(history []Baseline, list []*trend, title, note string, of func(*trend) series) *block {
	b := &block{Title: title, Note: note}
	c := historyChart(history, "ratio", "ratio")
	c.Line = 1
	loudest := slices.Clone(list)
	sort.SliceStable(loudest, func(i, j int) bool { return loudest[i].swing() > loudest[j].swing() })
	for i, t := range loudest {
		s := of(t)
		s.Key = i
		c.Series = append(c.Series, s)
		b.Legend = append(b.Legend, legendItem{Key: i, Label: t.benchmark, Off: i >= mostHistory})
	}
	if len(list) > mostHistory {
		b.Note += fmt.Sprintf(" Drawn are the %d of %d that moved most; the legend brings in the others.", mostHistory, len(list))
	}
	b.Charts = []*chart{c}
	b.describe()
	return b
}

// mostHistory is how many benchmarks are drawn unasked.
const mostHistory = 8

// valueBlock draws one small chart a benchmark, folded.
func valueBlock(history []Baseline, list []*trend, unit string) *block {
	b := &block{Title: "Values as they were measured, " + unitName(unit), Small: true, Folded: true,
		Note: "Each on the machine of its day: where that changed, values do not compare."}
	for _, t := range list {
		c := historyChart(history, unit, unitName(unit))
		c.Title, c.Small = t.benchmark, true
		c.Series = []series{{Key: 0, Y: t.heads}}
		c.Text = fmt.Sprintf("%s of %s over the accepted baselines. The arrow keys move through the values.", c.YLabel, c.Title)
		b.Charts = append(b.Charts, c)
	}
	return b
}

func unitName(unit string) string {
	if unit == "" {
		return "no unit"
	}
	return unit
}

// historyChart is a chart with a place for each baseline.
func historyChart(history []Baseline, unit, label string) *chart {
	c := &chart{Kind: "lines", Unit: unit, YLabel: label, XLabel: "accepted baseline"}
	for i, b := range history {
		c.X = append(c.X, num(i+1))
		c.Heads = append(c.Heads, short(b.Commit)+", "+b.Date.UTC().Format("2006-01-02"))
		c.Ticks = append(c.Ticks, tick{X: num(i + 1), Text: short(b.Commit)})
	}
	return c
}

// trendTable says where every benchmark is.
func trendTable(history []Baseline) table {
	t := table{Head: []headCell{{Name: "benchmark", Text: true}, {Name: "unit", Text: true}, {Name: "last value"},
		{Name: "last ratio"}, {Name: "since the first", Note: "the ratios multiplied up"}, {Name: "lowest ratio"}, {Name: "highest ratio"}}}
	for _, one := range trends(history) {
		heads, ratios, product := present(one.heads), present(one.decided()), present(one.product())
		ranges := make([]string, 5)
		texts := []string{none, none, none, none, none}
		if n := len(heads); n > 0 {
			texts[0] = valueText(one.unit, heads[n-1])
		}
		if n := len(ratios); n > 0 {
			texts[3], texts[4] = ratio(slices.Min(ratios)), ratio(slices.Max(ratios))
		}
		if n := len(product); n > 0 {
			texts[2] = ratio(product[n-1])
		}
		texts[1], ranges[1] = one.last()
		row := tableRow{Cells: []tableCell{{Text: one.benchmark, Word: true}, {Text: unitName(one.unit), Word: true}}}
		for i, text := range texts {
			row.Cells = append(row.Cells, tableCell{Text: text, Range: ranges[i]})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// last writes the last ratio and, where it is undecided, that and its interval.
func (t *trend) last() (text, interval string) {
	for i, r := range slices.Backward(t.ratios) {
		switch {
		case r.missing():
			continue
		case !t.open[i]:
			return ratio(float64(r)), ""
		case t.low[i].missing() || t.high[i].missing():
			return ratio(float64(r)), "undecided"
		}
		return ratio(float64(r)), "undecided, " + ratio(float64(t.low[i])) + " – " + ratio(float64(t.high[i]))
	}
	return none, ""
}

func valueText(unit string, f float64) string {
	if unit == "sec/op" {
		return duration(f * 1e6)
	}
	return digits(f)
}

func present(list []num) []float64 {
	var xs []float64
	for _, n := range list {
		if !n.missing() {
			xs = append(xs, float64(n))
		}
	}
	return xs
}

// baselineTable lists the baselines, marking where the surroundings changed.
func baselineTable(history []Baseline) table {
	t := table{Head: []headCell{{Name: "#"}, {Name: "accepted", Text: true}, {Name: "commit", Text: true},
		{Name: "compared with", Text: true}, {Name: "Go", Text: true}, {Name: "CPU", Text: true}, {Name: "kernel", Text: true},
		{Name: "entries"}, {Name: "reason", Text: true}}}
	for i, b := range history {
		last := b
		if i > 0 {
			last = history[i-1]
		}
		t.Rows = append(t.Rows, tableRow{Cells: []tableCell{
			{Text: fmt.Sprint(i + 1)},
			{Text: b.Date.UTC().Format("2006-01-02 15:04"), Word: true},
			{Text: short(b.Commit), Word: true},
			{Text: short(b.Base), Word: true},
			{Text: b.Go, Word: true, Differs: b.Go != last.Go, Changed: b.Go != last.Go},
			{Text: b.CPU, Word: true, Differs: b.CPU != last.CPU, Changed: b.CPU != last.CPU},
			{Text: b.Kernel, Word: true, Differs: b.Kernel != last.Kernel, Changed: b.Kernel != last.Kernel},
			{Text: fmt.Sprint(len(b.Benchmarks))},
			{Text: b.Reason, Word: true},
		}})
	}
	return t
}
