package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func sampleReport(dir string) *report {
	return &report{
		outDir: dir, reason: "because",
		plan:  plan{benchmarks: []benchmark{{key: "p.BenchmarkA"}}},
		facts: facts{Commit: strings.Repeat("c", 40), Base: strings.Repeat("b", 40), Date: time.Unix(1_700_000_000, 0).UTC(), Go: "go1.99", Pairs: 12},
		rows: []row{
			{key: "p.BenchmarkA", unit: unitTime, method: byRatio, base: 1e-6, head: 1.1e-6, ratio: 1.1, effect: interval{math.Log(1.1), 0, math.Log(1.2)}, verdict: undecided},
			{key: "p.BenchmarkA", unit: "allocs/op", base: 0, head: 1, ratio: math.NaN(), verdict: worse},
			{key: "p.BenchmarkA", unit: "B/op", base: 5, head: 5, ratio: 1, verdict: same},
		},
	}
}

func TestKeep(t *testing.T) {
	r := sampleReport(t.TempDir())
	if err := r.keep(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(r.outDir, historyFile))
	if err != nil || bytes.Count(b, []byte("\n")) != 1 || !bytes.HasSuffix(b, []byte("\n")) {
		t.Fatalf("not one line: %v\n%s", err, b)
	}
	var line map[string]any
	if err := json.Unmarshal(b, &line); err != nil {
		t.Fatal(err)
	}
	list := line["benchmarks"].([]any)
	first, second := list[0].(map[string]any), list[1].(map[string]any)
	if line["date"] != "2023-11-14T22:13:20Z" || line["commit"] != r.facts.Commit || line["base"] != r.facts.Base || line["reason"] != "because" || len(list) != 3 ||
		first["benchmark"] != "p.BenchmarkA" || first["unit"] != "sec/op" || first["ratio"] != 1.1 || first["from"] != 1.0 || first["to"] != 1.2 || first["verdict"] != "undecided" || first["exact"] != nil ||
		second["verdict"] != "worse" || second["exact"] != true || second["from"] != nil || second["ratio"] != nil || second["head"] != 1.0 {
		t.Errorf("%s", b)
	}
	exact, err := exactOnce(filepath.Join(r.outDir, historyFile), r.facts.Commit)
	if err != nil || len(exact) != 2 || !exact["p.BenchmarkA B/op"] {
		t.Errorf("exact: %v, %v", exact, err)
	}
	if exact, err := exactOnce(filepath.Join(r.outDir, historyFile), r.facts.Base); err != nil || len(exact) != 0 {
		t.Errorf("exact in no line: %v, %v", exact, err)
	}
	m, err := os.ReadFile(filepath.Join(r.outDir, messageFile))
	for _, text := range []string{"perf: accept cccccccccccc as the baseline\n\n", "Reason: because\n", "1.100 (1.000, 1.200) undecided p.BenchmarkA", "p.BenchmarkA allocs/op: 0 -> 1"} {
		if err != nil || !strings.Contains(string(m), text) {
			t.Errorf("the message does not say %q: %v\n%s", text, err, m)
		}
	}
}

func TestEnd(t *testing.T) {
	for _, tc := range []struct {
		what   string
		change func(*report)
		regr   bool
		says   string
	}{
		{"worse", func(*report) {}, true, "REGRESSION\n  p.BenchmarkA allocs/op: 0 -> 1 allocs/op\n    to allow it, write into perf/LIMITS: p.BenchmarkA allocs/op 1 # why"},
		{"allowed", func(r *report) { r.rows[1].allowed = &raise{line: 3, why: "well"} }, false, "(line 3: well)"},
		{"missing", func(r *report) { r.rows = nil; r.missing = []string{"p.BenchmarkB"} }, true, "p.BenchmarkB removed # why"},
		{"wrong line", func(r *report) { r.rows = nil; r.wrong = []error{errors.New("perf/LIMITS:1: so")} }, true, "perf/LIMITS:1: so"},
		{"nothing", func(r *report) { r.rows = r.rows[2:] }, false, "all the same\n\nPASS: no regression in 1 benchmark\n"},
		{"a unit is missing", func(r *report) { r.rows, r.missing = nil, []string{"p.BenchmarkB syncs/op"} }, true, "p.BenchmarkB syncs/op removed # why"},
		{"time is undecided", func(r *report) { r.rows = r.rows[:1]; r.rows[0].floor = math.Log(2.3) }, false,
			"PASS: no regression in 1 benchmark; time undecided for 1 of 1, noise up to 130 %\n"},
		{"too few pairs", func(r *report) { r.rows = r.rows[:1]; r.facts.Pairs = 1 }, false, "1 benchmark; time not judged, which takes 10 pairs\n"},
		{"all are new", func(r *report) { r.rows, r.plan = nil, plan{added: []string{"p.BenchmarkA"}} }, false, "PASS: NOTHING WAS COMPARED"},
		{"a line is not needed", func(r *report) { r.rows, r.unused = nil, []*raise{{line: 7, key: "A", unit: "u", why: "w"}} }, false, "; 1 line of perf/LIMITS not needed\n"},
		{"the flags differ", func(r *report) { r.rows, r.changed = nil, "so" }, true, "perf/gate/flags changed # why"},
		{"the flags differ, and may", func(r *report) { r.rows, r.changed, r.changedAllowed = nil, "so", &raise{} }, false, "; with the flags of BASE, not of HEAD\n"},
		{"edited", func(r *report) { r.rows, r.edited = nil, []string{"p: a_test.go"} }, false, "; benchmark code changed\n"},
		{"exact once", func(r *report) {
			r.rows, r.exact = []row{{key: "p.BenchmarkA", unit: "B/op", method: byDifference, verdict: undecided}}, map[string]bool{"p.BenchmarkA B/op": true}
		}, false, "NOT EXACT HERE, though exact when BASE was accepted, so the limit is a soft one:\n  p.BenchmarkA B/op\n"},
	} {
		r := sampleReport("")
		tc.change(r)
		var out bytes.Buffer
		if err := r.end(&out); errors.Is(err, errRegression) != tc.regr || err != nil && !tc.regr || !strings.Contains(out.String(), tc.says) {
			t.Errorf("%s: %v\n%s", tc.what, err, out.String())
		}
	}
	// What could not be judged counts for more than a regression.
	r := sampleReport("")
	r.troubles = []error{errors.New("p.BenchmarkC fails")}
	var out bytes.Buffer
	if err := r.end(&out); err == nil || errors.Is(err, errRegression) || !strings.Contains(out.String(), "NOT JUDGED\n  p.BenchmarkC fails") || !strings.Contains(out.String(), "REGRESSION") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestTable(t *testing.T) {
	r := sampleReport(t.TempDir())
	for script, want := range map[string]bool{"echo table": true, "exit 0": false, "echo table; exit 1": false,
		// More than it may have.
		"ulimit -v | grep -q 4194304 && echo limited": true} {
		p := program(t, "p", script)
		if err := r.table(context.Background(), p.Binary, io.Discard); (err == nil) != want {
			t.Errorf("%s: %v", script, err)
		}
	}
}

func TestReadTotal(t *testing.T) {
	name := filepath.Join(t.TempDir(), "callgrind.out")
	for text, want := range map[string]int64{"# callgrind format\nevents: Ir\nsummary: 12345\n\nfn=x\n1 2\ntotals: 9\n": 12345, "events: Ir\n": -1, "summary: many\n": -1} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readTotal(name); (err == nil) != (want >= 0) || err == nil && got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestKeys(t *testing.T) {
	module := &struct{ Path string }{"example.org/mod"}
	for want, p := range map[string]listedPackage{"mod": {ImportPath: "example.org/mod", Module: module},
		"a/b": {ImportPath: "example.org/mod/a/b", Module: module}, "fmt": {ImportPath: "fmt"}} {
		if got := p.key(); got != want {
			t.Errorf("%s: %s, want %s", p.ImportPath, got, want)
		}
	}
}

func TestCommandLine(t *testing.T) {
	for _, args := range []string{"", "walk", "run", "run -base a -head b", "run -base a -head b -out c -count 0", "run -base a -head b -out c -slower -1",
		"run -base a -head b -out c -sample x", "check -count x", "check -bench (", "check -hard ,", "check -slower NaN", "check x", "run -base /nothing -head /nothing -out /tmp", "build", "build -out", "run -h"} {
		var stderr bytes.Buffer
		if code := command(context.Background(), strings.Fields(args), io.Discard, &stderr); code != exitTrouble || stderr.Len() == 0 {
			t.Errorf("gate %s: exit %d, says %q", args, code, stderr.String())
		}
	}
}

// A flag that is wrong is told of in one line, and a right one passes.
func TestCheck(t *testing.T) {
	var stderr bytes.Buffer
	if code := command(context.Background(), []string{"check", "-count", "x"}, io.Discard, &stderr); code != exitTrouble || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("exit %d, says %q", code, stderr.String())
	}
	stderr.Reset()
	if code := command(context.Background(), []string{"check", "-count", "3", "-hard", "syncs/op"}, io.Discard, &stderr); code != exitPass || stderr.Len() != 0 {
		t.Errorf("exit %d, says %q", code, stderr.String())
	}
}

// A check that was asked for and matches nothing is refused.
func TestIdle(t *testing.T) {
	for _, tc := range []struct {
		what, bench, instructions, hard string
		asked                           bool
		trouble                         bool
		err, says                       string
	}{
		{"all there", everything, "BenchmarkA", "allocs/op", true, false, "", ""},
		{"a wrong unit", everything, "", "allocs/op,allocs/opp", true, false, "-hard allocs/opp", ""},
		{"a default unit", everything, "", "allocs/op,allocs/opp", false, false, "", ""},
		{"a wrong unit, some benchmarks", "A", "", "allocs/opp", true, false, "", "NOT CHECKED, among the benchmarks that A matches:\n  -hard allocs/opp"},
		{"no such instructions", everything, "NoSuch", "allocs/op", false, false, "-instructions NoSuch", ""},
		{"instructions of a new one", everything, "BenchmarkNew", "allocs/op", false, false, "", ""},
		{"no such instructions, some benchmarks", "A", "NoSuch", "allocs/op", false, false, "", "-instructions NoSuch"},
		{"not all could be looked at", everything, "NoSuch", "allocs/op", false, true, "", ""},
	} {
		j := job{config: config{bench: tc.bench, hardAsked: tc.asked}, rules: rules{hard: splitList(tc.hard)}}
		if tc.instructions != "" {
			j.counted = regexp.MustCompile(tc.instructions)
		}
		j.rep.plan = plan{benchmarks: []benchmark{{key: "p.BenchmarkA"}}, added: []string{"p.BenchmarkNew"}, units: map[string]bool{"allocs/op": true}}
		if tc.trouble {
			j.rep.plan.troubles = []error{errors.New("so")}
		}
		var out bytes.Buffer
		err := j.idle(&out)
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) || !strings.Contains(out.String(), tc.says) || tc.says == "" && out.Len() > 0 {
			t.Errorf("%s: %v, says %q", tc.what, err, out.String())
		}
	}
}

func TestEditedTests(t *testing.T) {
	base := buildInfo{Packages: []testPackage{{Path: "m/a", Key: "a", Tests: map[string]string{"x_test.go": "1", "y_test.go": "2", "z_test.go": "3"}},
		{Path: "m/b", Key: "b", Tests: map[string]string{"x_test.go": "1"}}, {Path: "m/c", Key: "c"}}}
	head := buildInfo{Packages: []testPackage{{Path: "m/a", Key: "a", Tests: map[string]string{"x_test.go": "1", "y_test.go": "9", "w_test.go": "3"}},
		{Path: "m/b", Key: "b", Tests: map[string]string{"x_test.go": "1"}}}}
	if got := strings.Join(editedTests(base, head), "; "); got != "a: w_test.go, y_test.go, z_test.go" {
		t.Errorf("edited: %q", got)
	}
}

func TestBuildAndFailures(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("go.mod", "module example.org/m\n\ngo 1.24\n")
	put("a/a_test.go", "package a\n\nimport \"testing\"\n\nfunc BenchmarkA(b *testing.B) {}\n")
	put("b/b_test.go", "package b\n\nimport \"testing\"\n\nfunc TestB(t *testing.T) {}\n")
	put("c/c.go", "package c\n")
	info, err := build(ctx, dir, t.TempDir(), []string{"./...", "./nothing"})
	if err != nil || len(info.Packages) != 1 || info.Packages[0].Key != "a" || len(info.Packages[0].Tests["a_test.go"]) != 64 || info.Go == "" {
		t.Errorf("%+v, %v", info, err)
	}
	for what, text := range map[string]string{"a type error": "func BenchmarkB(b *testing.B) { x }", "a syntax error": "func BenchmarkB("} {
		put("b/b_test.go", "package b\n\nimport \"testing\"\n\n"+text+"\n")
		if _, err := build(ctx, dir, t.TempDir(), []string{"./..."}); err == nil {
			t.Errorf("%s is no error", what)
		}
	}
}
