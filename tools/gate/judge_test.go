package main

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func testRules(pairs int) rules {
	return rules{slower: 0.10, least: 1e-9, tolerance: 0.02, hard: []string{"allocs/op", "B/op", "syncs/op"}, pairs: pairs}
}

// samplesOf makes the samples of a benchmark of one unit.
func samplesOf(unit string, base, head, again []float64) *measured {
	m := &measured{benchmark: benchmark{key: "p.BenchmarkX"}}
	for side, values := range [sides][]float64{sideBase: base, sideHead: head, sideSame: again} {
		m.values[side] = map[string][]float64{}
		if values != nil {
			m.values[side][unit] = values
		}
	}
	return m
}

func repeat(v float64, n int) []float64 { return slices.Repeat([]float64{v}, n) }

// with returns n times v, and then the others.
func with(v float64, n int, others ...float64) []float64 { return append(repeat(v, n), others...) }

func scaled(xs []float64, by float64) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = x * by
	}
	return out
}

// noise is a fixed series of twelve times of about a microsecond, within spread.
func noise(seed uint64, spread float64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 0))
	out := make([]float64, 12)
	for i := range out {
		out[i] = 1e-6 * (1 + spread*rng.Float64())
	}
	return out
}

func TestJudgeTime(t *testing.T) {
	a, b, c := noise(1, 0.02), noise(2, 0.02), noise(3, 0.02)
	for _, tc := range []struct {
		what              string
		base, head, again []float64
		want              verdict
		note              string
	}{
		{"quiet", a, b, c, undecided, ""},
		{"30 % slower", a, scaled(b, 1.3), c, worse, ""},
		{"30 % faster", a, scaled(b, 1/1.3), c, better, ""},
		{"5 % slower is within the limit", a, scaled(b, 1.05), c, undecided, ""},
		{"30 % slower, but noise reaches as far", a, scaled(b, 1.3), scaled(c, 1.35), undecided, ""},
		{"30 % slower, in spite of two wild pairs", a, append(scaled(b[:10], 1.3), b[10]/3, b[11]/3), c, worse, ""},
		{"slower in half of the pairs", a, append(scaled(b[:6], 1.5), b[6:]...), c, undecided, ""},
		{"too few pairs", a[:9], scaled(b[:9], 2), c[:9], undecided, "takes 10 pairs"},
		{"twice as slow, by less than a nanosecond", scaled(a, 5e-4), scaled(b, 1e-3), scaled(c, 5e-4), undecided, ""},
	} {
		rows, _, troubles := judge([]*measured{samplesOf(unitTime, tc.base, tc.head, tc.again)}, testRules(len(tc.base)), 0)
		if len(rows) != 1 || len(troubles) != 0 {
			t.Errorf("%s: %d rows, troubles %v", tc.what, len(rows), troubles)
			continue
		}
		r := rows[0]
		if r.verdict != tc.want || r.note != tc.note || r.method != byRatio {
			t.Errorf("%s: %s, note %q, want %s (ratio %.3f, effect %v, limit %v)", tc.what, r.verdict, r.note, tc.want, r.ratio, r.effect, r.limit)
		}
		if tc.want == worse && !r.doubtful() {
			t.Errorf("%s: it blocks without a second run", tc.what)
		}
	}
}

func TestJudgeCounters(t *testing.T) {
	for _, tc := range []struct {
		what              string
		base, head, again []float64
		method            method
		want              verdict
		doubtful          bool
	}{
		{"all the same", repeat(3, 12), repeat(3, 12), repeat(3, 12), byValue, same, false},
		{"one more", repeat(3, 12), repeat(4, 12), repeat(3, 12), byValue, worse, false},
		{"one more than none", repeat(0, 12), repeat(1, 12), repeat(0, 12), byValue, worse, false},
		{"one less", repeat(3, 12), repeat(2, 12), repeat(3, 12), byValue, better, false},
		{"a thousandth more", repeat(1, 12), repeat(1.001, 12), repeat(1, 12), byValue, worse, false},
		{"with strays on both sides", with(3, 10, 4, 2), with(3, 9, 2, 4, 4), with(3, 11, 4), byValue, same, false},
		{"one more, with strays", with(3, 11, 4), with(4, 10, 3, 5), with(3, 12), byValue, worse, true},
		{"one more in half of the processes", repeat(3, 12), with(3, 6, 4, 4, 4, 4, 4, 4), repeat(3, 12), byValue, worse, true},
		{"one more in a quarter of the processes", repeat(3, 12), with(3, 9, 4, 4, 9), repeat(3, 12), byValue, worse, true},
		{"one more in two processes", repeat(3, 12), with(3, 10, 4, 4), repeat(3, 12), byValue, same, false},
		{"one less in one process", repeat(3, 12), with(3, 11, 2), repeat(3, 12), byValue, same, false},
		{"one more in half, and strays in BASE", repeat(3, 12), with(3, 6, 4, 4, 4, 4, 4, 4), with(3, 11, 4), byValue, same, false},
		{"not exact, and quiet", with(69, 6, 70, 70, 70, 70, 70, 70), with(69, 5, 70, 70, 70, 70, 70, 70, 70),
			with(69, 7, 70, 70, 70, 70, 70), byDifference, undecided, false},
		{"not exact, and far worse", with(69, 6, 70, 70, 70, 70, 70, 70), with(79, 6, 80, 80, 80, 80, 80, 80),
			with(70, 6, 69, 69, 69, 69, 69, 69), byDifference, worse, true},
		{"not exact, and far better", with(69, 6, 70, 70, 70, 70, 70, 70), with(59, 6, 60, 60, 60, 60, 60, 60),
			with(70, 6, 69, 69, 69, 69, 69, 69), byDifference, better, false},
		{"one pair", repeat(3, 1), repeat(4, 1), repeat(3, 1), byValue, worse, false},
	} {
		rows, _, troubles := judge([]*measured{samplesOf("allocs/op", tc.base, tc.head, tc.again)}, testRules(len(tc.base)), 0)
		// The testing package always reports a time; here there is none.
		if len(troubles) != 0 || len(rows) != 1 {
			t.Errorf("%s: %d rows, troubles %v", tc.what, len(rows), troubles)
			continue
		}
		if r := rows[0]; r.verdict != tc.want || r.method != tc.method || r.doubtful() != tc.doubtful {
			t.Errorf("%s: %s by method %d, doubtful %v, want %s, %d, %v", tc.what, r.verdict, r.method, r.doubtful(), tc.want, tc.method, tc.doubtful)
		}
	}
}

func TestJudgePresence(t *testing.T) {
	full := repeat(1, 12)
	for _, tc := range []struct {
		what, unit        string
		base, head, again []float64
		rows              int
		trouble           string
		gone              bool
	}{
		{"in BASE only", "syncs/op", full, nil, full, 0, "missing in HEAD", true},
		{"a time in BASE only", unitTime, full, nil, full, 0, "missing in HEAD", true},
		{"in HEAD only", "syncs/op", nil, full, nil, 0, "neither a time nor a unit", false},
		{"now and then", "syncs/op", full, full[:11], full, 0, "reports syncs/op in 12, 11 and 12 of 12 samples", false},
		{"a unit without a limit", "records/s", full, repeat(9, 12), full, 0, "neither a time nor a unit", false},
		{"a unit without a limit that is gone", "records/s", full, nil, full, 0, "neither a time nor a unit", false},
		{"a unit of another name", "sync/op", full, repeat(9, 12), full, 0, "neither a time nor a unit", false},
		{"everywhere", "syncs/op", full, full, full, 1, "", false},
	} {
		rows, _, troubles := judge([]*measured{samplesOf(tc.unit, tc.base, tc.head, tc.again)}, testRules(12), 0)
		err := errors.Join(troubles...)
		var gone *goneError
		if len(rows) != tc.rows || (err == nil) != (tc.trouble == "") || err != nil && !strings.Contains(err.Error(), tc.trouble) ||
			errors.As(err, &gone) != tc.gone {
			t.Errorf("%s: %d rows, troubles %v", tc.what, len(rows), err)
		}
	}
}

func TestJudgeInstructions(t *testing.T) {
	for _, tc := range []struct {
		base, head float64
		want       verdict
	}{
		{1000, 1019, same}, {1000, 1021, worse}, {1000, 979, better}, {0.001, 0.015, same}, {0, 5, worse},
	} {
		if r := judgeInstructions("p.BenchmarkX", tc.base, tc.head, 0.02); r.verdict != tc.want {
			t.Errorf("%v -> %v: %s, want %s", tc.base, tc.head, r.verdict, tc.want)
		}
	}
}

func TestConfirm(t *testing.T) {
	first := row{key: "p.BenchmarkX", unit: unitTime, method: byRatio, verdict: worse, chance: true}
	for _, tc := range []struct {
		what  string
		again []row
		want  verdict
		note  string
	}{
		{"agrees", []row{{key: "p.BenchmarkX", unit: "B/op", verdict: same}, {key: "p.BenchmarkX", unit: unitTime, verdict: worse}}, worse, "a second run agrees"},
		{"does not agree", []row{{key: "p.BenchmarkX", unit: unitTime, verdict: undecided}}, undecided, "does not agree"},
		{"another benchmark", []row{{key: "p.BenchmarkY", unit: unitTime, verdict: undecided}}, worse, "not possible"},
		{"could not be measured", nil, worse, "not possible"},
	} {
		r := first
		if r.confirm(tc.again); r.verdict != tc.want || !strings.Contains(r.note, tc.note) {
			t.Errorf("%s: %s, %q", tc.what, r.verdict, r.note)
		}
	}
}

// jobs judges many simulated jobs and returns in which share of them something
// blocks. Each benchmark of a job is slower by the factor in HEAD. The machine
// drifts, has slow spells that hit one sample, and noise of its own for each
// benchmark.
func jobs(seed uint64, runs, benchmarks int, rules rules, factor float64) float64 {
	pairs := rules.pairs
	rng := rand.New(rand.NewPCG(seed, 7))
	sample := func(drift, spread, by float64) float64 {
		v := 1e-6 * drift * by * math.Exp(spread*rng.NormFloat64())
		if rng.Float64() < 0.1 {
			v *= 1 + 2*rng.ExpFloat64()
		}
		return v
	}
	round := func(benchmarks int) []*measured {
		all := make([]*measured, benchmarks)
		drift := 1.0
		for i := range all {
			spread := 0.005 + 0.1*rng.Float64()
			var values [sides][]float64
			for pair := range pairs {
				drift *= math.Exp(0.05 * rng.NormFloat64())
				for _, side := range orders[pair%len(orders)] {
					by := 1.0
					if side == sideHead {
						by = factor
					}
					values[side] = append(values[side], sample(drift, spread, by))
				}
			}
			all[i] = samplesOf(unitTime, values[sideBase], values[sideHead], values[sideSame])
			all[i].key += string(rune('a' + i))
		}
		return all
	}
	blocked := 0
	for range runs {
		rows, alpha, _ := judge(round(benchmarks), rules, 0)
		var suspects []int
		for i := range rows {
			if rows[i].doubtful() {
				suspects = append(suspects, i)
			}
		}
		if len(suspects) == 0 {
			continue
		}
		// The second run has the suspects alone, and is as strict.
		again, _, _ := judge(round(len(suspects)), rules, alpha)
		for i := range again {
			again[i].key = rows[suspects[i]].key
		}
		for i := range rows {
			if rows[i].doubtful() {
				rows[i].confirm(again)
			}
		}
		if len(regressions(rows)) > 0 {
			blocked++
		}
	}
	return float64(blocked) / float64(runs)
}

// A gate over 40 unchanged benchmarks stops no more than one job in a hundred,
// even if it had no tolerance but for noise. A regression of 50 % is found where
// the noise allows it.
func TestFalseAlarms(t *testing.T) {
	for _, tc := range []struct {
		pairs int
		found float64
	}{{10, 0.25}, {12, 0.55}, {20, 0.9}} {
		rules := testRules(tc.pairs)
		if share := jobs(1, 500, 40, rules, 1); share > 0.01 {
			t.Errorf("%d pairs: %.4f of the jobs are stopped for nothing", tc.pairs, share)
		}
		if share := jobs(2, 500, 1, rules, 1.09); share > 0.01 {
			t.Errorf("%d pairs: %.4f of the jobs are stopped for less than the limit", tc.pairs, share)
		}
		if share := jobs(3, 500, 1, rules, 1.5); share < tc.found {
			t.Errorf("%d pairs: a regression of 50 %% is found in %.3f of the jobs, want %.2f", tc.pairs, share, tc.found)
		}
		rules.slower, rules.least = 0, 0
		if share := jobs(4, 500, 40, rules, 1); share > 0.01 {
			t.Errorf("%d pairs, no tolerance: %.4f of the jobs are stopped for nothing", tc.pairs, share)
		}
	}
}

// One interval of a job of many is as strict in the second run as in the first.
func TestSecondRunKeepsAlpha(t *testing.T) {
	m := samplesOf(unitTime, noise(1, 0.02), scaled(noise(2, 0.02), 1.3), noise(3, 0.02))
	many := slices.Repeat([]*measured{m}, 40)
	first, alpha, _ := judge(many, testRules(12), 0)
	second, got, _ := judge(many[:1], testRules(12), alpha)
	alone, own, _ := judge(many[:1], testRules(12), 0)
	if alpha >= own || got != alpha || second[0].effect != first[0].effect || alone[0].effect == first[0].effect {
		t.Errorf("alpha %v, then %v, alone %v; intervals %v, %v, %v", alpha, got, own, first[0].effect, second[0].effect, alone[0].effect)
	}
}

// A benchmark without a time is judged by its counters.
func TestJudgeWithoutTime(t *testing.T) {
	rows, _, troubles := judge([]*measured{samplesOf("syncs/op", repeat(1, 12), repeat(2, 12), repeat(1, 12))}, testRules(12), 0)
	if len(rows) != 1 || len(troubles) != 0 || rows[0].verdict != worse || rows[0].chance {
		t.Errorf("%+v, %v", rows, troubles)
	}
}
