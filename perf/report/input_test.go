package report_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stratalog/stratalog/perf/report"
	"github.com/stratalog/stratalog/perf/report/sample"
)

// text is the JSON of a run.
func text(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReadRuns(t *testing.T) {
	m := sample.New(1)
	one := text(t, m.Run(sample.Shape{Engine: "a", Workload: "w", Producers: 1, Size: 100, Rate: 1000, Median: 50, Seconds: 3}))
	two := text(t, sample.Fewest())
	for name, c := range map[string]struct {
		in   string
		want int
	}{
		"one":               {one, 1},
		"lines":             {one + "\n" + two + "\n", 2},
		"one after another": {one + two + one, 3},
		"an array":          {" [" + one + " ,\n" + two + "]\n" + one, 3},
		"indented":          {strings.ReplaceAll(one, `,"`, ",\n  \""), 1},
		"a mark of UTF-8":   {"\uFEFF" + one, 1},
		"fields unknown":    {strings.Replace(one, `"schema":1`, `"schema":1,"new":{"a":[1,{}]}`, 1), 1},
	} {
		runs, err := report.ReadRuns("x.json", strings.NewReader(c.in))
		if err != nil || len(runs) != c.want {
			t.Errorf("%s: %d runs, %v", name, len(runs), err)
			continue
		}
		if runs[0].Run.Engine != "a" || runs[0].File != "x.json" || !json.Valid(runs[0].Raw) {
			t.Errorf("%s: %q of %q", name, runs[0].Run.Engine, runs[0].File)
		}
	}
}

func TestReadRunsRefuses(t *testing.T) {
	one := text(t, sample.Fewest())
	for name, c := range map[string]struct {
		in     string
		kind   error
		offset int64
		line   int
	}{
		"nothing":        {"", report.ErrEmpty, 0, 1},
		"white space":    {" \n\n", report.ErrEmpty, 3, 3},
		"an empty array": {"[]", report.ErrEmpty, 2, 1},
		"truncated":      {one[:40], report.ErrTruncated, 40, 1},
		"second cut":     {one + "\n" + one[:30], report.ErrTruncated, int64(len(one) + 31), 2},
		"array cut":      {"[" + one + ",", report.ErrTruncated, int64(len(one) + 2), 1},
		"array unclosed": {"[" + one, report.ErrTruncated, int64(len(one) + 1), 1},
		"not JSON":       {one + "\nhello", nil, int64(len(one) + 1), 2},
		"a number":       {"12", report.ErrNotRun, 0, 1},
		"a text":         {one + ` "x"`, report.ErrNotRun, int64(len(one) + 1), 1},
		"null":           {"null", report.ErrNotRun, 0, 1},
		"another object": {`{"a":1}`, report.ErrNotRun, 0, 1},
		"no engine":      {`{"schema":1,"workload":"w"}`, report.ErrNotRun, 0, 1},
		"schema 2":       {strings.Replace(one, `"schema":1`, `"schema":2`, 1), report.ErrSchema, 0, 1},
		"schema text":    {strings.Replace(one, `"schema":1`, `"schema":"1"`, 1), report.ErrSchema, 0, 1},
		"wrong type":     {strings.Replace(one, `"engine":"nothing"`, `"engine":17`, 1), report.ErrNotRun, -1, 1},
		"too large":      {strings.Replace(one, `"seed":0`, `"seed":1e400`, 1), report.ErrNotRun, -1, 1},
		"a comma":        {one + "," + one, nil, int64(len(one)), 1},
	} {
		runs, err := report.ReadRuns("dir/x.json", strings.NewReader(c.in))
		var bad *report.InputError
		if !errors.As(err, &bad) {
			t.Errorf("%s: %d runs, %v", name, len(runs), err)
			continue
		}
		if c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%s: %v is no %v", name, err, c.kind)
		}
		if c.offset >= 0 && bad.Offset != c.offset || bad.Line != c.line {
			t.Errorf("%s: byte %d of line %d, want %d of %d: %v", name, bad.Offset, bad.Line, c.offset, c.line, err)
		}
		if !strings.HasPrefix(err.Error(), "dir/x.json: line ") || len(err.Error()) > 300 {
			t.Errorf("%s: %v", name, err)
		}
	}
	failed := errors.New("failed")
	if _, err := report.ReadRuns("x", iotest.ErrReader(failed)); !errors.Is(err, failed) {
		t.Errorf("a reader that fails: %v", err)
	}
}

// Numbers that cannot be are refused, with the field.
func TestReadRunsImpossible(t *testing.T) {
	const head = `{"schema":1,"engine":"e","workload":"w",`
	for in, want := range map[string]string{
		`"ops":[{"latency_us":{"count":9,"p50":1,"p99":-5}}]}`:               "ops[0].latency_us.p99 is -5",
		`"ops":[{},{"latency_us":{"p50":3,"p99":9,"max":5}}]}`:               "ops[1].latency_us.max is 5, below p99, 9",
		`"ops":[{"service_us":{"p50":3,"p90":2}}]}`:                          "ops[0].service_us.p90 is 2, below p50, 3",
		`"ops":[{"wakeup_us":{"count":-1}}]}`:                                "ops[0].wakeup_us.count is -1",
		`"ops":[{"records_per_s":1e308}]}`:                                   "ops[0].records_per_s is 1e+308",
		`"ops":[{"unsent":-1}]}`:                                             "ops[0].unsent is -1",
		`"ops":[{"series":[{"s":1},{"s":2,"p99_us":3,"max_us":1}]}]}`:        "ops[0].series[1].max_us is 1, below p99_us, 3",
		`"ops":[{"latency_us":{"curve":[{"q":0,"us":2},{"q":50,"us":1}]}}]}`: "ops[0].latency_us.curve[1].us is 1, below the one before it, 2",
		`"ops":[{"latency_us":{"curve":[{"q":200,"us":2}]}}]}`:               "ops[0].latency_us.curve[0].q is 200",
		`"verified":{"missing":-3}}`:                                         "verified.missing is -3",
		`"usage":{"user_cpu_s":1e300}}`:                                      "usage.user_cpu_s is 1e+300",
		`"log":{"syncs":-2}}`:                                                "log.syncs is -2",
	} {
		_, err := report.ReadRuns("x.json", strings.NewReader(text(t, sample.Fewest())+"\n"+head+in))
		if !errors.Is(err, report.ErrImpossible) || !strings.HasSuffix(err.Error(), want) || !strings.HasPrefix(err.Error(), "x.json: line 2, ") {
			t.Errorf("%s: %v", in, err)
		}
	}
	// Histograms round, and not everybody tells every percentile.
	for _, in := range []string{`"ops":[{"latency_us":{"p50":1,"p9999":1000,"max":999.5}}]}`, `"ops":[{"latency_us":{"count":5,"p50":4,"p90":0,"max":5}}]}`} {
		if _, err := report.ReadRuns("x", strings.NewReader(head+in)); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// A run that is given twice is one run.
func TestDistinct(t *testing.T) {
	m := sample.New(1)
	one, two := text(t, m.Loads(1)[0]), text(t, m.Loads(1)[0])
	runs, err := report.ReadRuns("x", strings.NewReader(one+two+one+strings.ReplaceAll(two, `,"`, ",\n\"")))
	if err != nil {
		t.Fatal(err)
	}
	if kept, again := report.Distinct(runs); len(kept) != 2 || again != 2 {
		t.Errorf("%d runs, %d of them again", len(kept), again)
	}
	if kept, again := report.Distinct(sources(sample.Fewest(), sample.Fewest())); len(kept) != 2 || again != 0 {
		t.Errorf("of runs that were not read %d are kept, %d again", len(kept), again)
	}
}

func TestReadHistory(t *testing.T) {
	line := `{"commit":"0123456789abcdef","base":"0123","date":"2026-03-01T10:00:00Z","go":"go1.26.8","cpu":"","kernel":"Linux 6.1","pairs":10,` +
		`"reason":"slower and right","benchmarks":[{"benchmark":"codec.BenchmarkEncode/x","unit":"sec/op","base":2e-9,"head":1e-9,"ratio":0.5},` +
		`{"benchmark":"b","unit":"B/op","base":0,"head":8,"ratio":null}]}`
	list, err := report.ReadHistory("h.jsonl", strings.NewReader(line+"\n\n"+line))
	if err != nil || len(list) != 2 {
		t.Fatalf("%d lines, %v", len(list), err)
	}
	b := list[1]
	if b.Commit != "0123456789abcdef" || b.Date.Year() != 2026 || b.Reason == "" || len(b.Benchmarks) != 2 ||
		*b.Benchmarks[0].Ratio != 0.5 || b.Benchmarks[1].Ratio != nil {
		t.Errorf("read as %+v", b)
	}
	for name, c := range map[string]struct {
		in     string
		kind   error
		offset int64
		line   int
	}{
		"nothing":      {"\n", report.ErrEmpty, 1, 1},
		"not JSON":     {line + "\n{x}\n", report.ErrNotBaseline, int64(len(line) + 2), 2},
		"two on one":   {line + line, report.ErrNotBaseline, int64(len(line)), 1},
		"cut":          {line[:50], report.ErrNotBaseline, -1, 1},
		"a run":        {text(t, sample.Fewest()), report.ErrNotBaseline, 0, 1},
		"no commit":    {line + "\n\n" + `{"date":"2026-03-01T10:00:00Z"}`, report.ErrNotBaseline, int64(len(line) + 2), 3},
		"no date":      {`{"commit":"a"}`, report.ErrNotBaseline, 0, 1},
		"a bad date":   {`{"commit":"a","date":"yesterday"}`, report.ErrNotBaseline, 0, 1},
		"no benchmark": {`{"commit":"a","date":"2026-03-01T10:00:00Z","benchmarks":[{"unit":"B/op"}]}`, report.ErrNotBaseline, 0, 1},
		"a wrong type": {`{"commit":"a","date":"2026-03-01T10:00:00Z","benchmarks":[{"head":"x"}]}`, report.ErrNotBaseline, -1, 1},
	} {
		_, err := report.ReadHistory("h.jsonl", strings.NewReader(c.in))
		var bad *report.InputError
		if !errors.As(err, &bad) || !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.offset >= 0 && bad.Offset != c.offset || bad.Line != c.line {
			t.Errorf("%s: byte %d of line %d, want %d of %d: %v", name, bad.Offset, bad.Line, c.offset, c.line, err)
		}
	}
}

// Whatever a file holds, reading it ends in runs or in an error that names the
// place, and what was read can be reported on.
func FuzzReadRuns(f *testing.F) {
	// Short ones: the fuzzer spends its time on making long ones shorter.
	const head = `{"schema":1,"engine":"e","workload":"w",`
	f.Add(head + `"config":[{"name":"producers","value":"2"}],"ops":[{"name":"a","count":9,"records":9,"records_per_s":5}],"verified":{"ok":true}}`)
	f.Add("[" + head + `"ops":[{"name":"a","latency_us":{"count":9,"p50":1,"max":3},"service_us":{"count":9}}]},` + head + `"interrupted":true}]`)
	f.Add(head + `"log":{"syncs":1},"lag":{},"usage":{"allocs":1},"env":{"cpu":"c"},"notes":["n"]}` + "\n" + head + `"ops":[{},{},{},{},{}]}`)
	f.Add(`{"schema":1,"engine":"","workload":"","config":[[[[[[[[[[[[1]]]]]]]]]]]],"ops":[null]}`)
	f.Add(`{"schema":1,"engine":"e","workload":"w","ops":[{"name":"a","latency_us":{"count":3,"curve":[{"q":1e308,"us":-0}]},"series":[{"s":1e-300}]}]}`)
	f.Fuzz(func(t *testing.T, in string) {
		runs, err := report.ReadRuns("x", strings.NewReader(in))
		var bad *report.InputError
		switch {
		case err != nil && !errors.As(err, &bad):
			t.Fatalf("an error of no type: %v", err)
		case err != nil && (bad.Offset < 0 || bad.Offset > int64(len(in)) || bad.Line < 1):
			t.Fatalf("the place is outside of the text: %v", err)
		case err == nil && len(runs) == 0:
			t.Fatal("neither a run nor an error")
		case err == nil:
			if err := report.Write(io.Discard, report.Input{Sources: runs}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func FuzzReadHistory(f *testing.F) {
	for _, b := range sample.New(3).History(3, 4) {
		f.Add(text(f, b))
	}
	f.Fuzz(func(t *testing.T, in string) {
		list, err := report.ReadHistory("x", strings.NewReader(in))
		var bad *report.InputError
		if err != nil {
			if !errors.As(err, &bad) || bad.Offset < 0 || bad.Offset > int64(len(in)) || bad.Line < 1 {
				t.Fatalf("a place outside of the text: %v", err)
			}
			return
		}
		if err := report.Write(io.Discard, report.Input{History: list}); err != nil {
			t.Fatal(err)
		}
	})
}
