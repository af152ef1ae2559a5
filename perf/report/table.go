package report

import (
	"fmt"
	"slices"
	"strings"
)

// table is a table of the page.
type table struct {
	Caption string
	Head    []headCell
	Rows    []tableRow
	Note    string
	// Stars tells that the table marks what is best, Among what; Ranges that it
	// has those of repeats.
	Stars, Ranges bool
	Among         string
}

// Short tells that the table need not be folded.
func (t table) Short() bool { return len(t.Rows) <= 14 }

type headCell struct {
	Name, Note string
	// Text tells that the column holds words.
	Text bool
	// Differs tells that the column is not the same in all rows.
	Differs bool
}

type tableRow struct {
	// Key is the look of the row in the charts, nil if it is in none.
	Key *legendItem
	// Bad marks a run that must not be relied on, Behind one that did not get
	// its load, Begin the first row of a cell.
	Bad, Behind, Begin bool
	Cells              []tableCell
}

type tableCell struct {
	// Mark is the number of the line, in its first cell.
	Mark, Text string
	// Range is that of repeats.
	Range string
	// Best is "best" or "tied"; empty for all others.
	Best string
	// Word tells that the cell holds words, Bad that they are bad news, Behind
	// that they are of a load that was not reached, Differs that others say
	// something else, Changed that this is to be said in it.
	Word, Bad, Behind, Differs, Changed bool
	// Span is over how many columns the cell goes, if not one.
	Span int
}

// Styled tells that the cell is not as most are.
func (c tableCell) Styled() bool { return c.Word || c.Bad || c.Behind || c.Differs || c.Best != "" }

// summary is the table of an operation: one row a group.
func (s *section) summary(op string, costs bool) table {
	columns := opColumns(op)
	if costs {
		columns = append(columns, costColumns()...)
	}
	t := s.figures(op, columns, true)
	t.Caption = op
	return t
}

// resources is the table of what else the runs took.
func (s *section) resources(keyed bool) table {
	t := s.figures("", resourceColumns(), false)
	if !keyed {
		t.unkey()
	}
	return t
}

// unkey takes the looks and numbers of charts away.
func (t *table) unkey() {
	for i := range t.Rows {
		t.Rows[i].Key = nil
		t.Rows[i].Cells[0].Mark = ""
	}
}

// figures makes a table of the groups that have op, or of all; columns that
// are empty are left out.
func (s *section) figures(op string, columns []column, compare bool) table {
	var groups []*group
	for _, g := range s.groups {
		if op == "" || g.first().op(op) != nil {
			groups = append(groups, g)
		}
	}
	empty := func(c column) bool {
		return !slices.ContainsFunc(groups, func(g *group) bool { _, ok := g.stat(c.of); return ok })
	}
	columns = slices.DeleteFunc(columns, empty)
	if op != "" && !s.split && len(columns) < 3 { // what is left to tell is what was found
		columns = append(columns, slices.DeleteFunc(verifyColumns(), empty)...)
	}
	repeats := slices.ContainsFunc(groups, func(g *group) bool { return len(g.runs) > 1 })
	compare = compare && len(groups) > 1 && (!s.split || s.compared()) && // operations do not compete
		slices.ContainsFunc(groups, func(g *group) bool { return len(s.rivals(g)) > 1 })

	t := table{Head: []headCell{{Name: "measured", Text: true}}, Among: "of all lines", Ranges: repeats}
	if s.compared() {
		t.Among = "under that load"
	}
	if len(byPromise(groups)) > 1 {
		t.Among += " with that promise"
	}
	if repeats {
		t.Head = append(t.Head, headCell{Name: "runs"})
	}
	for _, c := range columns {
		t.Head = append(t.Head, headCell{Name: c.name, Note: c.note})
		if c.relative && compare {
			t.Head = append(t.Head, headCell{Name: "÷ first", Note: c.name + " divided by that of the first line under the same load"})
		}
	}
	cell := -1
	for _, g := range groups {
		item := s.legend([]*group{g})[0]
		row := tableRow{Key: &item, Bad: g.outcome() == bad, Behind: g.outcome() == behind, Begin: s.matrix() && cell != g.cell && cell != -1}
		cell = g.cell
		label := g.label
		if state := g.first().state(); row.Behind && !strings.Contains(label, state) {
			label += ", " + state
		}
		row.Cells = []tableCell{{Mark: fmt.Sprint(g.mark), Text: label, Word: true, Bad: g.outcome() == bad, Behind: g.outcome() == behind}}
		if repeats {
			row.Cells = append(row.Cells, tableCell{Text: fmt.Sprint(len(g.runs))})
		}
		for _, c := range columns {
			row.Cells = append(row.Cells, s.figureCell(g, c, compare))
			if c.relative && compare {
				row.Cells = append(row.Cells, s.ratioCell(g, c))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	for _, row := range t.Rows {
		t.Stars = t.Stars || slices.ContainsFunc(row.Cells, func(c tableCell) bool { return c.Best != "" })
	}
	return t
}

func (s *section) figureCell(g *group, c column, compare bool) tableCell {
	st, ok := g.stat(c.of)
	if !ok {
		return tableCell{Text: none}
	}
	cell := tableCell{Text: c.write(st.median), Range: rangeText(st, c.write)}
	if compare && g.outcome() == s.worth() {
		cell.Best = s.best(g, c)
	}
	return cell
}

func rangeText(st stat, write func(float64) string) string {
	if st.n < 2 {
		return ""
	}
	low, high := write(st.min), write(st.max)
	if low == high {
		return ""
	}
	// One unit is enough for both.
	for _, unit := range []string{" ns", " µs", " ms", " s", "×"} {
		if strings.HasSuffix(low, unit) && strings.HasSuffix(high, unit) {
			low = strings.TrimSuffix(low, unit)
		}
	}
	return low + " – " + high
}

// best tells whether g has the best median of those that it is compared with;
// "tied" if the ranges of the repeats overlap, so that it may be chance.
func (s *section) best(g *group, c column) string {
	own, _ := g.stat(c.of)
	if c.better == 0 {
		return ""
	}
	others, overlap, worse := 0, false, false
	for _, other := range s.rivals(g) {
		st, ok := other.stat(c.of)
		if !ok || other == g {
			continue
		}
		others++
		same := c.write(st.median) == c.write(own.median)
		if !same && float64(c.better)*(st.median-own.median) > 0 {
			return ""
		}
		worse = worse || !same
		if st.n > 1 && own.n > 1 && st.min <= own.max && own.min <= st.max {
			overlap = true
		}
	}
	switch {
	case others == 0 || !worse:
		return ""
	case overlap:
		return "tied"
	}
	return "best"
}

func (s *section) ratioCell(g *group, c column) tableCell {
	rivals := s.rivals(g)
	if g.outcome() != s.worth() || len(rivals) < 2 {
		return tableCell{Text: none}
	}
	if rivals[0] == g {
		return tableCell{Text: "first"}
	}
	st, ok := ratioOf(g, rivals[0], c.of)
	if !ok {
		return tableCell{Text: none}
	}
	return tableCell{Text: ratio(st.median), Range: rangeText(st, ratio)}
}

// configTable is the parameters of the groups, marking those that differ.
func (s *section) configTable(keyed bool) table {
	t := table{Head: []headCell{{Name: "engine", Text: true}, {Name: "runs", Text: true}}}
	var names []string
	for _, g := range s.groups {
		for _, p := range g.first().Config {
			if !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	columns := make([][]string, len(names))
	for i, name := range names {
		for _, g := range s.groups {
			columns[i] = append(columns[i], configValue(g, name))
		}
		t.Head = append(t.Head, headCell{Name: name, Text: true, Differs: differ(columns[i])})
	}
	for j, g := range s.groups {
		item := s.legend([]*group{g})[0]
		row := tableRow{Key: &item, Bad: g.outcome() == bad, Cells: []tableCell{
			{Mark: fmt.Sprint(g.mark), Text: g.first().Engine, Word: true, Bad: g.outcome() == bad}, {Text: g.numbers(), Word: true}}}
		for i := range names {
			row.Cells = append(row.Cells, tableCell{Text: columns[i][j], Word: true, Differs: t.Head[i+2].Differs})
		}
		t.Rows = append(t.Rows, row)
	}
	if !keyed {
		t.unkey()
	}
	return t
}

// configValue is the value of a parameter, with all of them where repeats
// differ.
func configValue(g *group, name string) string {
	var values []string
	for _, r := range g.runs {
		v := none
		for _, p := range r.Config {
			if p.Name == name {
				v = p.Value
			}
		}
		if !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	if len(values) > 3 {
		return fmt.Sprintf("%s and %d others", strings.Join(values[:2], ", "), len(values)-2)
	}
	return strings.Join(values, ", ")
}

func differ(values []string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return v != values[0] })
}

// envTable is the environments, one a column, marking what differs.
func envTable(runs []*run) table {
	var seen [][]field
	var members [][]*run
	for _, r := range runs {
		fields := envFields(r.Env)
		at := slices.IndexFunc(seen, func(other []field) bool { return slices.Equal(other, fields) })
		if at < 0 {
			at = len(seen)
			seen, members = append(seen, fields), append(members, nil)
		}
		members[at] = append(members[at], r)
	}
	t := table{Head: []headCell{{Name: "", Text: true}}}
	for _, m := range members {
		name := "all runs"
		if len(members) > 1 {
			name = "run " + numberList(m)
			if len(m) > 1 {
				name = "runs " + numberList(m)
			}
		}
		t.Head = append(t.Head, headCell{Name: name, Text: true})
	}
	if len(seen) == 0 {
		return t
	}
	for i, f := range seen[0] {
		var values []string
		for _, fields := range seen {
			values = append(values, fields[i].value)
		}
		if !slices.ContainsFunc(values, func(v string) bool { return v != "" }) {
			continue
		}
		row := tableRow{Cells: []tableCell{{Text: f.name, Word: true, Changed: differ(values)}}}
		for _, v := range values {
			if v == "" {
				v = "not told"
			}
			row.Cells = append(row.Cells, tableCell{Text: v, Word: true, Differs: v != values[0]})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
