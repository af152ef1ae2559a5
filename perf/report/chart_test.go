package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/perf/load"
)

// drawn writes numbers, "-" for what is missing.
func drawn(ys []num) string {
	var list []string
	for _, y := range ys {
		text := "-"
		if !y.missing() {
			text = fmt.Sprintf("%.4g", float64(y))
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

func TestTail(t *testing.T) {
	l := &load.Latency{Count: 100, Min: 1, P50: 5, P90: 9, P99: 50, P999: 60, P9999: 60, Max: 77,
		Curve: []load.Quantile{{Q: 0, Us: 1}, {Q: 90, Us: 9}, {Q: 50, Us: 4}, {Q: 99, Us: 50}, {Q: 100, Us: 77}, {Q: -4, Us: 1e9}, {Q: 300, Us: 1e9}}}
	xs := []float64{1, 1.5, 2, 9, 10, 11, 100, 110, 1000}
	want := "1 4 5 9 9 50 77 - -" // the median is told apart, the last sample is the longest
	if got := drawn(nums(tail(l, xs))); got != want {
		t.Errorf("a curve is drawn as %s, want %s", got, want)
	}
	l.Curve = nil
	if got, want := drawn(nums(tail(l, xs))), "1 - 5 - 9 - 77 - -"; got != want {
		t.Errorf("without a curve %s is drawn, want %s", got, want)
	}
	l.Count = 0
	if got := drawn(nums(tail(l, xs))); strings.Trim(got, "- ") != "" {
		t.Errorf("of nothing %s is drawn", got)
	}
}

// The median of curves goes on as far as half of them do, and never falls.
func TestMedianTail(t *testing.T) {
	of := func(counts ...int64) string {
		var runs []*run
		for i, n := range counts {
			l := load.Latency{Count: n, Min: 1, P50: 2, P90: 3, P99: 4, P999: 5, P9999: 6, Max: float64(100 * (i + 1))}
			runs = append(runs, &run{Run: load.Run{Ops: []load.Op{{Name: "append", Latency: l}}}})
		}
		return drawn(medianTail(runs, func(r *run) *load.Latency { return &r.op("append").Latency }, []float64{1, 2, 10, 100, 1000, 1e4}))
	}
	for got, want := range map[string]string{
		of(1000):           "1 2 3 4 100 -",
		of(10, 100, 1000):  "1 2 3 100 - -",
		of(10, 10_000):     "1 2 51.5 52 52.5 -",
		of(0, 100):         "1 2 3 200 - -",
		of(0):              "- - - - - -",
		of(10, 1000, 1000): "1 2 3 4 200 -",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// The axis has a place for every step of the curves that package load writes.
func TestTailAxis(t *testing.T) {
	xs := tailAxis(1_000_000)
	if xs[0] != 1 || xs[3] != 2 || math.Abs(xs[len(xs)-1]-1e6) > 1e-3 || len(xs) != 61 {
		t.Errorf("%d places from %v to %v", len(xs), xs[:4], xs[len(xs)-1])
	}
	if n := len(tailAxis(math.MaxInt64)); n != perDecade*mostDecades+1 {
		t.Errorf("%d places", n)
	}
	if xs := tailAxis(0); len(xs) != 1 {
		t.Errorf("of nothing there are %v", xs)
	}
}

func TestTimeChart(t *testing.T) {
	a, b := made("a", 1), made("b", 1)
	a.Ops[0].Series = []load.Point{{Seconds: 2.001, RecordsPerSec: 20}, {Seconds: 1, RecordsPerSec: 10}, {Seconds: 3, RecordsPerSec: 30},
		{Seconds: 3.01, RecordsPerSec: 9999}, {Seconds: -1, RecordsPerSec: 1}, {Seconds: 1e300, RecordsPerSec: 1}}
	b.Ops[0].Series = []load.Point{{Seconds: 2, RecordsPerSec: 200}, {Seconds: 4, RecordsPerSec: 400}}
	s, _ := arranged(t, "", a, b)
	c := s.timeChart("append", aspects[0], s.groups)
	got := fmt.Sprintf("%s; %s; %s", drawn(c.X), drawn(c.Series[0].Y), drawn(c.Series[1].Y))
	if want := "1 2 3 4; 10 20 128.8 -; - 200 - 400"; !strings.HasSuffix(got, want) && got != want {
		t.Errorf("%s, want %s", got, want)
	}
	a.Ops[0].Series = nil
	for i := range 10_000 {
		a.Ops[0].Series = append(a.Ops[0].Series, load.Point{Seconds: float64(i + 1), RecordsPerSec: 5, Max: float64(i)})
	}
	s, _ = arranged(t, "", a)
	c = s.timeChart("append", aspects[2], s.groups)
	if n := len(c.X); n > mostPoints || n < mostPoints/2 || c.Series[0].Y[n-1] != 9999 {
		t.Errorf("a long run has %d points, the last %v", n, c.Series[0].Y[n-1])
	}
}

// A run that ends in a stall shows it, however short its last interval is; where
// nothing was completed there is a gap.
func TestTimeChartEnds(t *testing.T) {
	r := made("a", 1)
	r.Ops[0].Series = []load.Point{{Seconds: 1, RecordsPerSec: 10, P50: 1, P99: 2, Max: 3}, {Seconds: 2}, {Seconds: 3, RecordsPerSec: 10, P50: 1, P99: 2, Max: 3},
		{Seconds: 3.1, RecordsPerSec: 230, P50: 7, P99: 8, Max: 900_000}}
	s, _ := arranged(t, "", r)
	for i, want := range []string{"10 0 30", "2 - 8", "3 - 9e+05"} {
		c := s.timeChart("append", aspects[i], s.groups)
		if got := drawn(c.Series[0].Y); got != want {
			t.Errorf("%s: %s, want %s", aspects[i].title, got, want)
		}
		if gaps := fmt.Sprint(c.Series[0].Gaps); gaps != map[bool]string{false: "[]", true: "[1]"}[i > 0] {
			t.Errorf("%s: gaps at %s", aspects[i].title, gaps)
		}
	}
	var p load.Point
	if err := json.Unmarshal([]byte(`{"s":2,"records_per_s":0,"p50_us":null,"p99_us":null,"max_us":null}`), &p); err != nil || !idle(p) {
		t.Errorf("an interval with null is %+v, %v", p, err)
	}
	for name, points := range map[string][]load.Point{
		"one":            {{Seconds: 0.8, RecordsPerSec: 10, Max: 1}},
		"one and a stub": {{Seconds: 1, RecordsPerSec: 10, Max: 1}, {Seconds: 1.1, RecordsPerSec: 5, Max: 2}},
	} {
		r.Ops[0].Series = points
		s, _ = arranged(t, "", r)
		list := s.blocks("append")
		if last := list[len(list)-1]; last.Title != "Over time" || len(last.Charts) != 0 || !strings.Contains(last.Note, "one interval") {
			t.Errorf("%s: %s with %d charts, %q", name, last.Title, len(last.Charts), last.Note)
		}
	}
}

func TestBars(t *testing.T) {
	s, _ := arranged(t, "", made("a", 10, "producers=1"), made("a", 30, "producers=1"), made("b", 5, "producers=1"), made("b", 50, "producers=8"))
	c := s.barChart(s.groups, "Rate", "records/s", "rate", rateOf("append"))
	got := fmt.Sprintf("%s; %v; %s %s %s; %s", drawn(c.X), c.Cats, drawn(c.Series[0].Y), drawn(c.Series[0].Low), drawn(c.Series[0].High), drawn(c.Series[1].Y))
	if want := "0 1 3; [0 0 1]; 20 - - 10 - - 30 - -; - 5 50"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if len(c.Ticks) != 2 || c.Ticks[0].Text != "1" || c.Ticks[0].X != 0.5 || c.Ticks[0].Short != "1–2" || c.XLabel != "producers" {
		t.Errorf("below are %+v, %s", c.Ticks, c.XLabel)
	}
}

// Of many lines some are drawn, the first and the last among them.
func TestThin(t *testing.T) {
	for n := range 40 {
		items := make([]legendItem, n)
		hidden := thin(items, 6)
		on := 0
		for _, item := range items {
			if !item.Off {
				on++
			}
		}
		if on != min(n, 6) || hidden != n-on || n > 0 && (items[0].Off || items[n-1].Off) {
			t.Errorf("of %d lines %d are drawn, %d hidden", n, on, hidden)
		}
	}
}

func TestTrends(t *testing.T) {
	entry := func(name string, head float64, ratio *float64) BaselineResult {
		return BaselineResult{Benchmark: name, Unit: "sec/op", Head: head, Ratio: ratio}
	}
	list := trends([]Baseline{
		{Benchmarks: []BaselineResult{entry("a", 4, new(0.5))}},
		{Benchmarks: []BaselineResult{entry("b", 7, nil)}},
		{Benchmarks: []BaselineResult{entry("b", 8, new(-1.0)), entry("a", 1e300, new(3.0))}},
	})
	if len(list) != 2 {
		t.Fatalf("%d trends", len(list))
	}
	got := fmt.Sprintf("%s; %s; %s; %s", drawn(list[0].heads), drawn(list[0].ratios), drawn(list[0].product()), drawn(list[1].ratios))
	if want := "4 - -; 0.5 - 3; 0.5 - 1.5; - - -"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// What is undecided is drawn as that, and is no part of what is multiplied up.
func TestUndecided(t *testing.T) {
	text := func(ratio float64, verdict string) string {
		return fmt.Sprintf(`{"commit":"c","date":"2026-03-01T10:00:00Z","benchmarks":[{"benchmark":"b","unit":"sec/op","head":1,"ratio":%g%s}]}`, ratio, verdict)
	}
	history, err := ReadHistory("h", strings.NewReader(strings.Join([]string{
		text(0.5, ""), text(1.3, `,"from":0.9,"to":1.8,"verdict":"undecided"`), text(0.8, `,"from":0.75,"to":0.85,"verdict":"better"`),
		text(1.2, `,"verdict":"undecided"`)}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	list := trends(history)
	s := list[0].ofRatios()
	got := fmt.Sprintf("%s; %s; %v; %s; %s", drawn(s.Y), drawn(list[0].product()), s.Open, drawn(s.Low), drawn(s.High))
	if want := "0.5 1.3 0.8 1.2; 0.5 0.5 0.4 0.4; [1 3]; - 0.9 0.75 -; - 1.8 0.85 -"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	table := trendTable(history)
	for name, want := range map[string]string{"last ratio": "1.20× undecided", "since the first": "0.400×", "lowest ratio": "0.500×", "highest ratio": "0.800×"} {
		if got := cells(table, name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := cells(trendTable(history[:2]), "last ratio"); got != "1.30× undecided, 0.900× – 1.80×" {
		t.Errorf("the last ratio is %s", got)
	}
	if note := historyBlocks(history)[0].Note; !strings.Contains(note, "Hollow") {
		t.Errorf("hollow points are not explained: %s", note)
	}
}

func TestFlatten(t *testing.T) {
	var texts []string
	for _, f := range flatten([]byte(`{"a":1.50,"b":{"c":"x","d":[{"name":"n","value":"v"},{"name":"op","count":2,"deep":{"k":null}}]},"e":[{"q":1},{"q":2}],"f":[3,[true]],"g":[]}`)) {
		texts = append(texts, f.name+"="+f.value)
	}
	want := []string{"a=1.50", "b.c=x", "b.d.n=v", "b.d.op.count=2", "b.d.op.deep.k=null", "e=2 points", "f.1=3", "f.2.1=true"}
	if !slices.Equal(texts, want) {
		t.Errorf("%q, want %q", texts, want)
	}
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	if list := flatten([]byte(deep)); len(list) != 1 || len(list[0].value) > 100 {
		t.Errorf("what is deep has %d fields", len(list))
	}
}

// What cannot be drawn is no number in the page.
func TestNum(t *testing.T) {
	for f, want := range map[float64]string{1.23456789: "1.23457", 1e300: "null", -1: "null", math.Inf(1): "null", 0: "0", 123456789: "1.23457e+08"} {
		if b, err := drawable(f, false).MarshalJSON(); err != nil || string(b) != want {
			t.Errorf("%v is drawn as %s, %v", f, b, err)
		}
	}
	if !drawable(0, true).missing() || !drawable(math.NaN(), false).missing() {
		t.Error("0 has no place on a logarithmic axis, what is no number on none")
	}
}
