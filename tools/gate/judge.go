package main

import (
	"fmt"
	"math"
	"slices"
)

// minPairs is how many pairs a judgement by intervals takes.
const minPairs = 10

// verdict is what the gate says of one unit of one benchmark.
type verdict string

const (
	same      verdict = "same" // not of time
	better    verdict = "better"
	worse     verdict = "worse"
	undecided verdict = "undecided"
)

// method is how a unit is judged.
type method int

const (
	byValue        method = iota // exact values: no tolerance
	byDifference                 // a counter that is not exact: pairs, no tolerance beside noise
	byRatio                      // time: pairs, and a tolerance
	byInstructions               // one value a side, and a small tolerance
)

// rules are the limits of a run.
type rules struct {
	slower    float64 // how much slower is a regression, as a part of one
	least     float64 // and by how many seconds at least
	tolerance float64 // the same for instructions
	hard      []string
	pairs     int
}

// row is the judgement of one unit of one benchmark.
type row struct {
	key, unit  string
	method     method
	base, head float64
	ratio      float64 // NaN if there is none
	// effect is what the pairs say: ratios, or differences. floor is what BASE
	// shows against its own copy, limit what counts as a change.
	effect       interval
	floor, limit float64
	verdict      verdict
	chance       bool // the verdict may be one of chance
	note         string
	allowed      *raise // the line of perf/LIMITS that allows it
}

// name is how reports call a row.
func (r row) name() string { return r.key + " " + r.unit }

// judge judges the units of all benchmarks. A benchmark whose sides cannot be
// compared is told of. alpha is how rarely an interval may miss on one side; 0
// derives it from how many intervals there are. It is returned.
func judge(all []*measured, rules rules, alpha float64) ([]row, float64, []error) {
	type judged struct {
		m   *measured
		row row
	}
	var list []judged
	var troubles []error
	intervals := 0
	for _, m := range all {
		before := len(list) + len(troubles)
		for _, unit := range append([]string{unitTime}, rules.hard...) {
			r := row{key: m.key, unit: unit}
			switch present, err := m.present(unit, rules.pairs); {
			case err != nil:
				troubles = append(troubles, err)
				continue
			case !present:
				continue
			case unit == unitTime:
				r.method = byRatio
			default:
				if _, ok := m.exact(unit); !ok {
					r.method = byDifference
				}
			}
			if r.method != byValue {
				intervals++
			}
			list = append(list, judged{m, r})
		}
		if len(list)+len(troubles) == before {
			troubles = append(troubles, fmt.Errorf("%s reports neither a time nor a unit with a hard limit", m.key))
		}
	}
	if alpha == 0 {
		alpha = runAlpha(intervals)
	}
	var rows []row
	for _, j := range list {
		j.row.judge(j.m, rules, alpha)
		rows = append(rows, j.row)
	}
	return rows, alpha, troubles
}

// present tells whether both sides report unit. It is an error if HEAD does not
// any more, or one does now and then.
func (m *measured) present(unit string, pairs int) (bool, error) {
	base, head, same := len(m.values[sideBase][unit]), len(m.values[sideHead][unit]), len(m.values[sideSame][unit])
	switch {
	case base == 0 && same == 0:
		return false, nil // new in HEAD, or in neither
	case head == 0:
		return false, &goneError{what: m.key + " " + unit}
	case base != pairs || head != pairs || same != pairs:
		return false, fmt.Errorf("%s reports %s in %d, %d and %d of %d samples of BASE, HEAD and BASE again",
			m.key, unit, base, head, same, pairs)
	}
	return true, nil
}

// goneError says that HEAD does not have what BASE has.
type goneError struct{ what string }

// Error names what is gone.
func (e *goneError) Error() string { return e.what + " is in BASE, and missing in HEAD" }

// exact returns the value of unit in BASE, if it has one: at least three
// quarters of the samples of BASE and its copy are equal to it.
func (m *measured) exact(unit string) (float64, bool) {
	all := slices.Concat(m.values[sideBase][unit], m.values[sideSame][unit])
	value := lowerMedian(all)
	return value, 4*count(all, value) >= 3*len(all)
}

func count(xs []float64, value float64) int {
	n := 0
	for _, x := range xs {
		if x == value {
			n++
		}
	}
	return n
}

// judge fills in the values and the verdict.
func (r *row) judge(m *measured, rules rules, alpha float64) {
	if r.method == byValue {
		r.judgeValue(m)
		return
	}
	base, head, again := m.values[sideBase][r.unit], m.values[sideHead][r.unit], m.values[sideSame][r.unit]
	r.base, r.head = median(base), median(head)
	ratio := r.method == byRatio
	r.effect = medianInterval(effects(base, head, ratio), alpha)
	r.floor = medianInterval(effects(base, again, ratio), alpha).reach()
	r.limit = r.floor
	if r.ratio = ratioOf(r.base, r.head); ratio {
		r.ratio = math.Exp(r.effect.median)
		r.limit = max(math.Log1p(rules.slower), math.Log1p(rules.least/r.base), r.floor)
	}
	r.verdict, r.chance = compare(r.effect.lo, r.effect.hi, r.limit), true
	if len(base) < minPairs {
		r.verdict, r.note = undecided, fmt.Sprintf("takes %d pairs", minPairs)
	}
}

// judgeValue judges an exact value. HEAD differs if more than half of its
// samples do, on the same side; and it is worse if a quarter of them lie above
// where all of BASE are equal, since what costs more in some processes only, by
// the seed of a map perhaps, costs more. A single one is not enough: on a busy
// machine that comes twice in a row by chance. If not all samples of a side are
// equal, that is still a matter of chance.
func (r *row) judgeValue(m *measured) {
	head := m.values[sideHead][r.unit]
	r.base, _ = m.exact(r.unit)
	all := slices.Concat(m.values[sideBase][r.unit], m.values[sideSame][r.unit])
	constant := count(all, r.base) == len(all)
	low, high := lowerMedian(head), upperMedian(head)
	quarter := slices.Sorted(slices.Values(head))[len(head)-(len(head)+3)/4]
	switch {
	case constant && quarter > r.base:
		r.head, r.verdict = quarter, worse
		above := 0
		for _, v := range head {
			if v > r.base {
				above++
			}
		}
		if above < len(head) {
			r.note = fmt.Sprintf("in %d of %d processes", above, len(head))
		}
	case low > r.base:
		r.head, r.verdict = low, worse
	case high < r.base:
		r.head, r.verdict = high, better
	default:
		r.head, r.verdict = r.base, same
	}
	r.ratio = ratioOf(r.base, r.head)
	r.chance = !constant || count(head, r.head) < len(head)
}

// compare is the verdict of an interval: it has to lie beyond the limit as a
// whole. NaN is never beyond anything.
func compare(lo, hi, limit float64) verdict {
	switch {
	case lo > limit:
		return worse
	case hi < -limit:
		return better
	}
	return undecided
}

// ratioOf returns head/base: 1 if both are 0, NaN if base alone is.
func ratioOf(base, head float64) float64 {
	if base == head {
		return 1
	}
	if base == 0 {
		return math.NaN()
	}
	return head / base
}

// confirm keeps a verdict that a second run agrees with. What it does not agree
// with is undecided.
func (r *row) confirm(again []row) {
	for _, a := range again {
		if a.key != r.key || a.unit != r.unit {
			continue
		}
		if a.verdict == worse {
			r.note = fmt.Sprintf("a second run agrees: %s", a.change()+noted(a.note))
			return
		}
		r.verdict, r.note = undecided, fmt.Sprintf("a second run does not agree: %s", a.change())
		return
	}
	r.note = "a second run was not possible"
}

// regressions returns the rows that are worse and that no line allows.
func regressions(rows []row) []row {
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.verdict != worse || r.allowed != nil })
}
