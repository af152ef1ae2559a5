package report

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode"

	"github.com/stratalog/stratalog/perf/load"
)

// section is one workload: what is compared in it with what.
type section struct {
	workload string
	runs     []*run
	groups   []*group // ordered by cell, then by subject
	// subjects are what was measured, cells the loads that it was measured
	// under; at most one group stands for each pair.
	subjects, cells []string
	// cellNames are the parameters that tell cells apart, cellValues their
	// values, cell by cell.
	cellNames  []attribute
	cellValues [][]string
	ops        []string
	// split tells that the runs have so many operations that these are told
	// apart like loads.
	split bool
}

// mostOps is how many operations of a workload have tables and charts of their
// own.
const mostOps = 4

// sections takes runs apart by workload. The subject of the engine base, if not
// empty, is the one that others are compared with.
func sections(runs []*run, base string) []*section {
	var list []*section
	byName := map[string]*section{}
	for _, r := range runs {
		s := byName[r.Workload]
		if s == nil {
			s = &section{workload: r.Workload}
			byName[r.Workload] = s
			list = append(list, s)
		}
		s.runs = append(s.runs, r)
	}
	mark := 0
	for _, s := range list {
		s.split = slices.ContainsFunc(s.runs, func(r *run) bool { return len(r.Ops) > mostOps })
		s.groups = groupRuns(s.runs)
		if s.split {
			s.groups = groupRuns(splitOps(s.runs))
		}
		s.arrange(base)
		for _, g := range s.groups {
			mark++
			g.mark = mark
		}
	}
	return list
}

// whole is the section with its runs in one piece.
func (s *section) whole() *section {
	if !s.split {
		return s
	}
	w := &section{workload: s.workload, runs: s.runs, groups: groupRuns(s.runs)}
	w.arrange("")
	return w
}

// splitOps makes a run of each operation.
func splitOps(runs []*run) []*run {
	var parts []*run
	for _, r := range runs {
		for _, op := range r.Ops {
			part := *r
			part.whole = r
			part.Config = append(slices.Clone(r.Config), load.Param{Name: operation, Value: op.Name})
			op.Name = operation
			part.Ops = []load.Op{op}
			parts = append(parts, &part)
		}
		if len(r.Ops) == 0 {
			parts = append(parts, r)
		}
	}
	return parts
}

// arrange finds what differs between the groups, names them by it, and orders
// them.
func (s *section) arrange(base string) {
	for _, g := range s.groups {
		r := g.first()
		for i := range r.Ops {
			if !slices.Contains(s.ops, r.Ops[i].Name) {
				s.ops = append(s.ops, r.Ops[i].Name)
			}
		}
	}
	varying := s.varying()
	for _, care := range []caring{notPromises, notExtents, everything} {
		s.place(varying, base, care)
		if s.distinct() {
			break
		}
	}
	sort.SliceStable(s.groups, func(i, j int) bool {
		a, b := s.groups[i], s.groups[j]
		if a.cell != b.cell {
			return a.cell < b.cell
		}
		return a.subject < b.subject
	})
	s.label()
}

// caring is how much is looked at to tell subjects apart.
type caring int

const (
	notPromises caring = iota // nor what each engine has but one of
	notExtents                // nor how much was done
	everything
)

// varying returns the attributes in which groups differ, as they first appear.
// What only some have counts as different, and that a run is bad counts in any
// case.
func (s *section) varying() []attribute {
	var list []attribute
	for _, g := range s.groups {
		for _, a := range g.attributes {
			if !slices.ContainsFunc(list, a.same) {
				list = append(list, a)
			}
		}
	}
	return slices.DeleteFunc(list, func(a attribute) bool {
		if a.source == fromOutcome && slices.ContainsFunc(s.groups, func(g *group) bool { return g.outcome() == bad }) {
			return false
		}
		first, there := s.groups[0].value(a)
		return !slices.ContainsFunc(s.groups, func(g *group) bool {
			v, ok := g.value(a)
			return v != first || ok != there
		})
	})
}

// followsEngine tells that every engine has but one value of a, so that it says
// nothing that the engine's name does not say; some tells that not every group
// has one.
func (s *section) followsEngine(a attribute) (follows, some bool) {
	of := map[string]string{}
	follows = true
	for _, g := range s.groups {
		v, ok := g.value(a)
		if !ok {
			v, some = "\x00", true
		}
		engine := g.first().Engine
		if old, seen := of[engine]; seen && old != v {
			follows = false
		}
		of[engine] = v
	}
	return follows, some
}

// place gives every group its subject and its cell.
func (s *section) place(varying []attribute, base string, care caring) {
	s.subjects, s.cells, s.cellNames, s.cellValues = nil, nil, nil, nil
	var names []attribute // of subjects
	for _, a := range varying {
		follows, some := s.followsEngine(a)
		switch {
		case a.role == ofLoad && follows && some:
		case a.role == ofLoad:
			s.cellNames = append(s.cellNames, a)
		case a.source == fromEngine || a.role == ofExtent && care < everything:
		case a.isLevel():
			names = append(names, a) // what is worth more or less must not look alike
		case care < notExtents && a.source != fromOutcome && (follows || a.source == fromPromise):
		default:
			names = append(names, a)
		}
	}
	subjects, cells := make([]string, len(s.groups)), make([]string, len(s.groups))
	byCell := map[string][]string{}
	for i, g := range s.groups {
		subjects[i] = subjectOf(g, names, care)
		var values []string
		for _, name := range s.cellNames {
			v, ok := g.value(name)
			if !ok {
				v = none
			}
			values = append(values, v)
		}
		cells[i] = strings.Join(values, "\x00")
		byCell[cells[i]] = values
		if !slices.Contains(s.subjects, subjects[i]) {
			s.subjects = append(s.subjects, subjects[i])
		}
		if !slices.Contains(s.cells, cells[i]) {
			s.cells = append(s.cells, cells[i])
		}
	}
	if !s.split { // operations stay in their own order
		sort.SliceStable(s.cells, func(i, j int) bool { return naturalLess(s.cells[i], s.cells[j]) })
	}
	if base != "" {
		of := map[string]bool{}
		for i, g := range s.groups {
			of[subjects[i]] = of[subjects[i]] || g.first().Engine == base
		}
		sort.SliceStable(s.subjects, func(i, j int) bool { return of[s.subjects[i]] && !of[s.subjects[j]] })
	}
	for i, g := range s.groups {
		g.subject, g.cell = slices.Index(s.subjects, subjects[i]), slices.Index(s.cells, cells[i])
	}
	for i, cell := range s.cells {
		s.cellValues = append(s.cellValues, byCell[cell])
		s.cells[i] = s.cellLabel(byCell[cell])
	}
}

// distinct tells whether each pair of subject and cell has one group.
func (s *section) distinct() bool {
	seen := map[[2]int]bool{}
	for _, g := range s.groups {
		at := [2]int{g.subject, g.cell}
		if seen[at] {
			return false
		}
		seen[at] = true
	}
	return true
}

// subjectOf names what was measured: the engine, and what else differs.
func subjectOf(g *group, names []attribute, care caring) string {
	parts := []string{g.first().Engine}
	if parts[0] == "" {
		parts[0] = "unnamed"
	}
	for _, a := range names {
		v, ok := g.value(a)
		if !ok {
			continue
		}
		switch {
		case a.source == fromOutcome && g.outcome() == behind && care < everything:
			continue // the label says it: under more load, the same engine is still the same
		case a.source == fromOutcome:
		case a.source == fromPromise:
			v = clip(v, 40)
		case a.source == fromEnv && a.name == "commit" && v != "":
			v = short(v)
		case v == "":
			v = "no " + a.name
		case a.source == fromEnv && slices.Contains([]string{"CPU", "kernel", "file system", "Go"}, a.name):
			v = clip(v, 28)
		default:
			v = param(a.name, v)
		}
		parts = append(parts, v)
	}
	return strings.Join(parts, ", ")
}

func (s *section) cellLabel(values []string) string {
	var parts []string
	for i, v := range values {
		if v == none {
			continue
		}
		if text := param(s.cellNames[i].name, v); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ", ")
}

// param writes a parameter and its value: "16 producers", "size 1KiB". It is
// empty for what need not be said.
func param(name, value string) string {
	value = clip(value, 40)
	switch name {
	case "arrivals", "mode", "way", operation: // the value says it
		return value
	case "async":
		if value == "0" {
			return ""
		}
	}
	if _, rest := leadingNumber(value); rest == "" && strings.HasSuffix(name, "s") && !strings.Contains(name, " ") {
		if value == "1" {
			name = strings.TrimSuffix(name, "s")
		}
		return value + " " + name
	}
	return name + " " + value
}

// short keeps what tells a commit.
func short(commit string) string {
	hash, dirty, found := strings.Cut(commit, "+")
	hash = clip(hash, 10)
	if strings.IndexFunc(commit, func(r rune) bool { return r > unicode.MaxASCII }) < 0 && len(commit) >= 12 {
		hash = commit[:min(len(commit), 9)]
	}
	if found {
		return hash + "+" + clip(dirty, 10)
	}
	return hash
}

// clip shortens s to n characters.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// label names the groups, so that no two have one name.
func (s *section) label() {
	count := map[string]int{}
	for _, g := range s.groups {
		var parts []string
		if len(s.subjects) > 1 || s.cells[g.cell] == "" {
			parts = append(parts, s.subjects[g.subject])
		}
		if c := s.cells[g.cell]; c != "" {
			parts = append(parts, c)
		}
		g.label = strings.Join(parts, ", ")
		count[g.label]++
	}
	for _, g := range s.groups {
		if count[g.label] > 1 {
			g.label += fmt.Sprintf(", run %s", g.numbers())
		}
	}
}

// compared tells whether groups are compared cell by cell; else all of them are
// compared with the first.
func (s *section) compared() bool { return len(s.subjects) > 1 }

// worth is the outcome that groups need to be compared: what was not read back is
// compared only where nothing was.
func (s *section) worth() outcome {
	for _, o := range []outcome{sound, behind} {
		if slices.ContainsFunc(s.groups, func(g *group) bool { return g.outcome() == o }) {
			return o
		}
	}
	return unread
}

// rivals returns the groups that g is compared with, itself among them, the one
// that ratios refer to first. What promises more or less is no rival.
func (s *section) rivals(g *group) []*group {
	var list []*group
	for _, other := range s.groups {
		if other.outcome() == s.worth() && (!s.compared() || other.cell == g.cell) && samePromise(g, other) {
			list = append(list, other)
		}
	}
	return list
}

// ratioOf compares a figure of g with that of base: repeat by repeat if there
// are as many, else median by median. It is false if there is nothing to
// compare.
func ratioOf(g, base *group, of figure) (stat, bool) {
	if g == base {
		return stat{}, false
	}
	if len(g.runs) == len(base.runs) {
		var xs []float64
		for i := range g.runs {
			a, okA := of(g.runs[i])
			b, okB := of(base.runs[i])
			if okA && okB && a > 0 && b > 0 && !math.IsInf(a/b, 0) {
				xs = append(xs, a/b)
			}
		}
		return statOf(xs), len(xs) == len(g.runs)
	}
	a, okA := g.stat(of)
	b, okB := base.stat(of)
	if !okA || !okB || a.median <= 0 || b.median <= 0 || math.IsInf(a.median/b.median, 0) {
		return stat{}, false
	}
	q := a.median / b.median
	return stat{q, q, q, 1}, true
}
