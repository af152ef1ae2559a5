package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/perf/load"
)

// made is a run with a rate, a p99 of rate/10, and parameters "name=value".
func made(engine string, rate float64, params ...string) load.Run {
	r := load.Run{Schema: load.Schema, Engine: engine, Workload: "w", Promise: "it is there", Verified: load.Verify{OK: true, Records: 10},
		Ops: []load.Op{{Name: "append", Count: 1000, Records: 1000, RecordsPerSec: rate, Latency: load.Latency{Count: 1000, P50: 1, P99: rate / 10}}}}
	for _, p := range params {
		name, value, _ := strings.Cut(p, "=")
		r.Config = append(r.Config, load.Param{Name: name, Value: value})
	}
	return r
}

func numbered(list ...load.Run) []*run {
	var runs []*run
	for i, r := range list {
		runs = append(runs, &run{Run: r, number: i + 1})
	}
	return runs
}

// arranged writes the groups of the only section as "label: runs".
func arranged(t *testing.T, base string, list ...load.Run) (*section, string) {
	t.Helper()
	all := sections(numbered(list...), base)
	if len(all) != 1 {
		t.Fatalf("%d sections", len(all))
	}
	var texts []string
	for _, g := range all[0].groups {
		texts = append(texts, g.label+": "+g.numbers())
	}
	return all[0], strings.Join(texts, "; ")
}

func TestGroups(t *testing.T) {
	with := func(r load.Run, change func(*load.Run)) load.Run {
		change(&r)
		return r
	}
	wrong := func(r *load.Run) { r.Verified = load.Verify{Missing: 1} }
	unread := func(r *load.Run) { r.Verified = load.Verify{} }
	for name, c := range map[string]struct {
		runs []load.Run
		base string
		want string
	}{
		"one":            {[]load.Run{made("a", 1)}, "", "a: 1"},
		"repeats":        {[]load.Run{made("a", 1, "round=1"), made("a", 2, "round=2"), made("a", 3, "seed=9")}, "", "a: 1–3"},
		"engines":        {[]load.Run{made("a", 1), made("b", 2), made("a", 3)}, "", "a: 1, 3; b: 2"},
		"a base":         {[]load.Run{made("a", 1), made("b", 2), made("a", 3)}, "b", "b: 2; a: 1, 3"},
		"loads by value": {[]load.Run{made("a", 1, "producers=16"), made("a", 1, "producers=4"), made("a", 1, "producers=1")}, "", "1 producer: 3; 4 producers: 2; 16 producers: 1"},
		"a matrix": {[]load.Run{made("a", 1, "producers=1"), made("a", 1, "producers=16"), made("b", 1, "producers=16"), made("b", 1, "producers=1")}, "",
			"a, 1 producer: 1; b, 1 producer: 4; a, 16 producers: 2; b, 16 producers: 3"},
		"settings of one engine": {[]load.Run{made("a", 1, "write path=mmap"), made("b", 1), made("a", 1, "write path=pwrite")}, "",
			"a, write path mmap: 1; b: 2; a, write path pwrite: 3"},
		"what an engine has but one of": {[]load.Run{made("a", 1, "version=1", "topics=3"), made("b", 1, "version=2")}, "", "a: 1; b: 2"},
		"loads that one engine lacks":   {[]load.Run{made("a", 1, "producers=1"), made("b", 1, "producers=2")}, "", "a, 1 producer: 1; b, 2 producers: 2"},
		"how much was done":             {[]load.Run{made("a", 1, "records=10"), made("a", 1, "records=20")}, "", "a, 10 records: 1; a, 20 records: 2"},
		"how much, engine by engine":    {[]load.Run{made("a", 1, "records=10"), made("b", 1, "records=20")}, "", "a: 1; b: 2"},
		"commits": {[]load.Run{with(made("a", 1), func(r *load.Run) { r.Env.Commit = "0123456789abcdef" }),
			with(made("a", 1), func(r *load.Run) { r.Env.Commit = "fedcba9876543210+dirty" })}, "", "a, 012345678: 1; a, fedcba987+dirty: 2"},
		"promises":                     {[]load.Run{made("a", 1), with(made("a", 1), func(r *load.Run) { r.Promise = "less" })}, "", "a, it is there: 1; a, less: 2"},
		"promises of engines":          {[]load.Run{with(made("a", 1), func(r *load.Run) { r.Promise = "there" }), with(made("b", 1), func(r *load.Run) { r.Promise = "here" })}, "", "a: 1; b: 2"},
		"durability, engine by engine": {[]load.Run{made("a", 1, "durability=sync"), made("b", 1, "durability=memory")}, "", "a, durability sync: 1; b, durability memory: 2"},
		"behind under more load":       {[]load.Run{made("a", 1, "rate=1"), with(made("a", 2, "rate=9"), func(r *load.Run) { r.Ops[0].Rate = 9 })}, "", "rate 1: 1; rate 9: 2"},
		"one repeat behind":            {[]load.Run{made("a", 1), with(made("a", 2), func(r *load.Run) { r.Ops[0].Unsent = 9 }), made("a", 1)}, "", "a: 1, 3; a, BEHIND ITS RATE: 2"},

		"what is wrong":   {[]load.Run{made("a", 1), with(made("a", 9), wrong), made("a", 2)}, "", "a: 1, 3; a, NOT VERIFIED: 2"},
		"twice wrong":     {[]load.Run{with(made("a", 1), wrong), with(made("a", 1), wrong)}, "", "a, NOT VERIFIED, run 1: 1; a, NOT VERIFIED, run 2: 2"},
		"interrupted":     {[]load.Run{made("a", 1), with(made("a", 1), func(r *load.Run) { r.Interrupted = true })}, "", "a: 1; a, INTERRUPTED: 2"},
		"nothing read":    {[]load.Run{with(made("a", 1), unread), with(made("a", 2), unread)}, "", "a: 1, 2"},
		"some unread":     {[]load.Run{with(made("a", 1), unread), made("b", 2), with(made("a", 2), unread)}, "", "a, not read back: 1, 3; b: 2"},
		"one not as well": {[]load.Run{with(made("a", 1), unread), made("a", 2)}, "", "a, not read back: 1; a: 2"},
		"ways": {[]load.Run{made("a", 1, "way=native", "producers=2"), made("b", 2, "way=batch", "producers=2"), made("b", 2, "way=native", "producers=2")}, "",
			"a, native: 1; b, batch: 2; b, native: 3"},
		"no name":        {[]load.Run{made("", 1)}, "", "unnamed: 1"},
		"other machines": {[]load.Run{made("a", 1), with(made("a", 1), func(r *load.Run) { r.Env.GOMAXPROCS = 4 })}, "", "a, no GOMAXPROCS: 1; a, GOMAXPROCS 4: 2"},
	} {
		if _, got := arranged(t, c.base, c.runs...); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, c.want)
		}
	}
}

// A run with many operations has a line for each.
func TestManyOperations(t *testing.T) {
	r := made("a", 1)
	r.Ops = nil
	for i := range mostOps + 1 {
		r.Ops = append(r.Ops, load.Op{Name: fmt.Sprintf("op %d", i), Count: 5, Latency: load.Latency{Count: 5, P50: float64(i + 1)}})
	}
	s, got := arranged(t, "", r, r)
	if want := "op 0: 1, 2; op 1: 1, 2; op 2: 1, 2; op 3: 1, 2; op 4: 1, 2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if table := s.summary(operation, false); cells(table, "p50") != "1.00 µs | 2.00 µs | 3.00 µs | 4.00 µs | 5.00 µs" || cells(table, "p99") != "no such column" || table.Stars {
		t.Errorf("a table of %+v", table.Head)
	}
	if v := s.view(1); len(v.Ops) != 1 || len(v.Ops[0].Summary.Rows) != mostOps+1 || len(v.Config.Rows) != 1 || len(v.Resources.Rows) != 1 {
		t.Errorf("%d operations, %d lines of configuration", len(v.Ops), len(v.Config.Rows))
	}
}

func TestStatistics(t *testing.T) {
	for _, c := range []struct {
		xs   []float64
		want stat
	}{
		{nil, stat{}},
		{[]float64{3}, stat{3, 3, 3, 1}},
		{[]float64{3, 1, 2}, stat{2, 1, 3, 3}},
		{[]float64{4, 1, 3, 2}, stat{2.5, 1, 4, 4}},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, stat{math.MaxFloat64, math.MaxFloat64, math.MaxFloat64, 2}},
	} {
		if got := statOf(slices.Clone(c.xs)); got != c.want {
			t.Errorf("statOf(%v) = %v", c.xs, got)
		}
	}
}

// Ratios are those of the repeats, one by one, where there are as many.
func TestRatios(t *testing.T) {
	s, _ := arranged(t, "", made("a", 10), made("b", 5), made("a", 20), made("b", 18), made("a", 40), made("b", 20))
	got, ok := ratioOf(s.groups[1], s.groups[0], rateOf("append"))
	if want := (stat{0.5, 0.5, 0.9, 3}); !ok || got != want {
		t.Errorf("pair by pair: %v, %v", got, ok)
	}
	s, _ = arranged(t, "", made("a", 10), made("b", 5), made("a", 20), made("a", 40))
	if got, ok = ratioOf(s.groups[1], s.groups[0], rateOf("append")); !ok || got.median != 0.25 {
		t.Errorf("median by median: %v, %v", got, ok)
	}
	if _, ok = ratioOf(s.groups[0], s.groups[0], rateOf("append")); ok {
		t.Error("a ratio to itself")
	}
	s, _ = arranged(t, "", made("a", 0), made("b", 5))
	if got, ok = ratioOf(s.groups[1], s.groups[0], rateOf("append")); ok {
		t.Errorf("a ratio to 0: %v", got)
	}
}

// cells writes a column of a table.
func cells(t table, name string) string {
	at := slices.IndexFunc(t.Head, func(h headCell) bool { return h.Name == name })
	if at < 0 {
		return "no such column"
	}
	var list []string
	for _, row := range t.Rows {
		c := row.Cells[at]
		list = append(list, strings.Join(strings.Fields(c.Text+" "+c.Range+" "+c.Best), " "))
	}
	return strings.Join(list, " | ")
}

func TestSummary(t *testing.T) {
	bad := made("a", 1e6, "producers=1")
	bad.Interrupted = true
	s, _ := arranged(t, "", made("a", 1000, "producers=1"), made("b", 500, "producers=1"), made("a", 1100, "producers=1"), made("b", 1050, "producers=1"),
		made("a", 4000, "producers=8"), made("b", 8000, "producers=8"), bad)
	table := s.summary("append", true)
	for name, want := range map[string]string{
		"measured":  "a, 1 producer | b, 1 producer | a, INTERRUPTED, 1 producer | a, 8 producers | b, 8 producers",
		"runs":      "2 | 2 | 1 | 1 | 1",
		"records/s": "1,050 1,000 – 1,100 tied | 775 500 – 1,050 | 1,000,000 | 4,000 | 8,000 best",
		"÷ first":   "first | 0.727× 0.500 – 0.955× | – | first | 2.00×",
		"p99":       "105 µs 100 – 110 µs | 77.5 µs 50.0 – 105 µs tied | 100 ms | 400 µs best | 800 µs",
		"MB/s":      "no such column",
	} {
		if got := cells(table, name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for i, row := range table.Rows {
		if row.Bad != (i == 2) {
			t.Errorf("line %d is bad: %v", i, row.Bad)
		}
	}
}

func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		run   load.Run
		want  outcome
		state string
	}{
		{load.Run{Verified: load.Verify{OK: true}}, sound, "verified"},
		{load.Run{}, unread, "not read back"},
		{load.Run{Verified: load.Verify{How: "all"}}, bad, "NOT VERIFIED"},
		{load.Run{Verified: load.Verify{OK: true, Records: 9, Wrong: 5}}, bad, "NOT VERIFIED"},
		{load.Run{Verified: load.Verify{OK: true, Records: 9, Missing: 7}}, bad, "NOT VERIFIED"},
		{load.Run{Verified: load.Verify{OK: true, Records: 9, First: "message 3"}}, bad, "NOT VERIFIED"},
		{load.Run{Verified: load.Verify{OK: true}, Ops: []load.Op{{}}}, unread, "not read back"},
		{load.Run{Verified: load.Verify{OK: true, Records: 1}, Ops: []load.Op{{}}}, sound, "verified"},
		{load.Run{Verified: load.Verify{OK: true, Records: 1}, Ops: []load.Op{{}, {Unsent: 1}}}, behind, "BEHIND ITS RATE"},
		{load.Run{Ops: []load.Op{{Unsent: 1}}}, behind, "BEHIND ITS RATE"},
		{load.Run{Interrupted: true, Ops: []load.Op{{Unsent: 1}}}, bad, "INTERRUPTED"},
		{load.Run{Verified: load.Verify{Wrong: 1}, Ops: []load.Op{{Unsent: 1}}}, bad, "NOT VERIFIED"},
		{load.Run{Verified: load.Verify{Wrong: 1}}, bad, "NOT VERIFIED"},
		{load.Run{Interrupted: true}, bad, "INTERRUPTED"},
		{load.Run{Interrupted: true, Verified: load.Verify{OK: true}}, bad, "INTERRUPTED"},
		{load.Run{Interrupted: true, Verified: load.Verify{Missing: 1}}, bad, "INTERRUPTED, AND WRONG"},
	} {
		r := &run{Run: c.run}
		if r.outcome() != c.want || r.state() != c.state {
			t.Errorf("%+v is %v, %s", c.run.Verified, r.outcome(), r.state())
		}
	}
}

func TestVerdict(t *testing.T) {
	good, none, wrong := made("a", 1), made("b", 1), made("c", 1)
	slow := made("a", 82)
	slow.Ops = []load.Op{{Name: "append", Rate: 100, RecordsPerSec: 82, Unsent: 3}}
	if got := numbered(slow)[0].lateness(); got != "Run 1, a w: BEHIND ITS RATE; append 82.0/s, asked for 100/s; 3 messages were due and never sent" {
		t.Error(got)
	}
	none.Verified, wrong.Verified = load.Verify{}, load.Verify{Wrong: 2, First: "message 7"}
	many := make([]load.Run, mostBad+3)
	for i := range many {
		many[i] = wrong
	}
	for name, c := range map[string]struct {
		runs       []load.Run
		look, text string
		bad, more  int
		rest       string
	}{
		"one":         {[]load.Run{good}, "good", "Verified: 10 records read back and found right", 0, 0, ""},
		"two":         {[]load.Run{good, good}, "good", "All 2 runs are verified: 20 records read back and found right", 0, 0, ""},
		"some unread": {[]load.Run{good, none}, "partly", "1 of 2 runs are verified: 10 records read back and found right", 0, 0, "1 run had nothing read back, of: w."},
		"all unread":  {[]load.Run{none, none}, "partly", "Nothing was read back", 0, 0, ""},
		"one behind":  {[]load.Run{good, slow}, "behind", "1 of 2 runs did not get the load that was asked for: 20 records read back and found right", 0, 0, ""},
		"and wrong":   {[]load.Run{slow, wrong}, "wrong", "1 of 2 runs cannot be relied on", 1, 0, ""},
		"one wrong":   {[]load.Run{good, wrong}, "wrong", "1 of 2 runs cannot be relied on", 1, 0, ""},
		"many wrong":  {many, "wrong", "15 of 15 runs cannot be relied on", mostBad, 3, ""},
	} {
		v := verdictOf(numbered(c.runs...))
		if v.Look != c.look || v.Text != c.text || len(v.Bad) != c.bad || len(v.More) != c.more || v.Rest != c.rest {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if got := numbered(wrong)[0].trouble(); got != "Run 1, c w: NOT VERIFIED (0 missing, 2 wrong); first: message 7" {
		t.Error(got)
	}
}

// A rate is reached with 99 % of it; chance and the wait for the last answer are
// not held against a run.
func TestReached(t *testing.T) {
	for _, c := range []struct {
		op   load.Op
		want bool
	}{
		{load.Op{RecordsPerSec: 5}, true},
		{load.Op{Rate: 1000, RecordsPerSec: 990}, true},
		{load.Op{Rate: 1000, RecordsPerSec: 989}, false},
		{load.Op{Rate: 1000}, false},
		{load.Op{Rate: 100, RecordsPerSec: 98, Seconds: 10, Arrivals: "fixed"}, false},
		{load.Op{Rate: 100, RecordsPerSec: 91, Seconds: 10, Arrivals: "random"}, true},
		{load.Op{Rate: 100, RecordsPerSec: 85, Seconds: 10, Arrivals: "random"}, false},
		{load.Op{Rate: 100_000, RecordsPerSec: 98_000, Seconds: 10, Arrivals: "random"}, false},
		{load.Op{Rate: 1000, RecordsPerSec: 980, Seconds: 1.02, Service: &load.Latency{P50: 20_000}}, true},
		{load.Op{Rate: 1000, RecordsPerSec: 10, Seconds: 1, Service: &load.Latency{P50: 2e6}}, false},
	} {
		if got := reached(&c.op); got != c.want {
			t.Errorf("%+v is reached: %v", c.op, got)
		}
	}
	// What carries the rate along without being offered it does not count.
	r := made("a", 100)
	r.Ops[0].Rate = 100
	r.Ops = append(r.Ops, load.Op{Name: "append at a roll", Rate: 100, Count: 3})
	if got := numbered(r)[0].outcome(); got != sound {
		t.Errorf("with an operation beside it the run is %v", got)
	}
	// A run of many operations is judged as a whole.
	r.Ops = append(r.Ops, load.Op{Name: "2"}, load.Op{Name: "3"}, load.Op{Name: "4"})
	for _, part := range splitOps(numbered(r)) {
		if got := part.outcome(); got != sound {
			t.Errorf("%s is %v", part.Config, got)
		}
	}
}

// What promises more is not compared with what promises less.
func TestPromisesApart(t *testing.T) {
	memory := func(engine string, rate float64, more ...string) load.Run {
		r := made(engine, rate, append(more, "durability=memory")...)
		r.Promise = "in memory"
		return r
	}
	s, _ := arranged(t, "", made("a", 10, "durability=sync"), memory("a", 4570))
	table := s.summary("append", true)
	if got := cells(table, "÷ first"); got != "no such column" || table.Stars {
		t.Errorf("two promises are compared: %s, stars: %v", got, table.Stars)
	}
	for _, b := range s.blocks("append") {
		if b.Title == "Compared" {
			t.Errorf("%d charts of bars compare two promises", len(b.Charts))
		}
	}
	if v := s.view(1); !strings.Contains(v.Intro, "2 different promises") {
		t.Errorf("it is said that %q", v.Intro)
	}
	// Engines word the same in their own ways; within each promise they compete.
	other := made("b", 20, "durability=sync")
	other.Promise = "synced, in other words"
	s, _ = arranged(t, "", made("a", 10, "durability=sync"), memory("a", 4000), other, memory("b", 1000))
	table = s.summary("append", true)
	if got := cells(table, "÷ first") + "; " + cells(table, "records/s"); got != "first | first | 2.00× | 0.250×; 10.0 | 4,000 best | 20.0 best | 1,000" {
		t.Errorf("two engines under two promises: %s", got)
	}
	bars := s.barCharts(s.groups, "Rate", "records/s", "rate", rateOf("append"))
	if len(bars) != 2 || bars[0].Title != "Rate, sync" || bars[1].Title != "Rate, memory" || len(bars[0].X) != 2 || len(bars[1].X) != 2 {
		t.Errorf("%d charts", len(bars))
	}
	// Loads of one engine are compared with the first of the same promise.
	s, _ = arranged(t, "", made("a", 10, "mode=sync"), made("a", 20, "mode=memory"))
	if got := cells(s.summary("append", true), "÷ first"); got != "no such column" {
		t.Errorf("two modes are compared: %s", got)
	}
	less := made("a", 99)
	less.Promise = "less"
	if s, _ = arranged(t, "", made("a", 10), less); s.summary("append", true).Stars {
		t.Error("what one engine says of two runs is not the same, and they are compared")
	}
}

// Of few samples there are the median and the longest, nothing between.
func TestFewSamples(t *testing.T) {
	r := made("a", 0)
	r.Ops[0].Latency = load.Latency{Count: 9, Mean: 2, Min: 1, P50: 2, P90: 3, P99: 3, P999: 3, P9999: 3, Max: 3}
	s, _ := arranged(t, "", r, r)
	table := s.summary("append", true)
	var names []string
	for _, h := range table.Head {
		names = append(names, h.Name)
	}
	if got := strings.Join(names, " "); got != "measured runs p50 max read back missing wrong" {
		t.Errorf("the columns are %s", got)
	}
	if list := s.blocks("append"); len(list) != 0 {
		t.Errorf("%d blocks, the first %s", len(list), list[0].Title)
	}
}

func TestNumberList(t *testing.T) {
	for want, numbers := range map[string][]int{"1": {1}, "1, 2": {1, 2}, "1–3": {1, 2, 3}, "1, 3–5, 9": {1, 3, 4, 5, 9}} {
		var runs []*run
		for _, n := range numbers {
			runs = append(runs, &run{number: n})
		}
		if got := numberList(runs); got != want {
			t.Errorf("%v is written %s", numbers, got)
		}
	}
}

func TestNaturalLess(t *testing.T) {
	sorted := []string{"", "1", "2", "10", "10.5", "11", "a1", "a2", "a10", "a10b", "b"}
	for i, a := range sorted {
		for j, b := range sorted {
			if naturalLess(a, b) != (i < j) {
				t.Errorf("%q before %q: %v", a, b, naturalLess(a, b))
			}
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{digits(0), "0"}, {digits(1), "1.00"}, {digits(12.34), "12.3"}, {digits(99.96), "100"}, {digits(999999.6), "1,000,000"},
		{digits(-1234), "-1,234"}, {digits(0.01234), "0.012"}, {digits(1e-9), "1.0e-09"}, {digits(1e300), "1.0e+300"}, {digits(math.NaN()), none},
		{duration(0), "0 µs"}, {duration(0.25), "250 ns"}, {duration(12.3), "12.3 µs"}, {duration(999.6), "1.00 ms"}, {duration(1e6), "1.00 s"},
		{duration(90e6), "90.0 s"}, {duration(-5), "-5.00 µs"}, {bytesOf(512), "512 B"}, {bytesOf(1 << 31), "2.00 GiB"}, {ratio(0), none},
		{ratio(1.5), "1.50×"}, {ratio(math.Inf(1)), none}, {count(3), "3"}, {count(1234567), "1,234,567"}, {count(1e20), "1.0e+20"},
		{percent(1), "0"}, {percent(2), "50"}, {percent(10), "90"}, {percent(1000), "99.9"}, {percent(1e6), "99.9999"}, {percent(20), "95"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
