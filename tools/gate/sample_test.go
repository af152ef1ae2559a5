package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// program makes a package whose test program is a shell script.
func program(t *testing.T, key, script string) testPackage {
	t.Helper()
	dir := t.TempDir()
	name := filepath.Join(dir, "0000.test")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return testPackage{Path: "example.org/" + key, Key: key, Dir: dir, Binary: name}
}

func testRunner() *runner {
	return &runner{env: os.Environ(), procs: 2, repeat: 1, timeout: 20 * time.Second}
}

func TestParse(t *testing.T) {
	out := `goos: linux
cpu: Some CPU
something that a benchmark prints
BenchmarkA-2   	     100	      1500 ns/op	       2.50 syncs/op	      64 B/op	       1 allocs/op
BenchmarkB/size-2=3-2	     200	         0 ns/op	  12.00 MB/s
BenchmarkC-2 a line of a log
BenchmarkD-2
BenchmarkE-2	100	12 ns/op trailing
PASS
`
	samples, err := testRunner().parse([]byte(out))
	if err != nil || len(samples) != 2 {
		t.Fatalf("%d samples, %v", len(samples), err)
	}
	a, b := samples[0], samples[1]
	if a.name != "BenchmarkA" || a.iterations != 100 || a.values["syncs/op"] != 2.5 || a.values["allocs/op"] != 1 || a.result.GetConfig("cpu") != "Some CPU" {
		t.Errorf("%+v", a)
	}
	if v := a.values[unitTime]; v < 1.499e-6 || v > 1.501e-6 {
		t.Errorf("time %v", v)
	}
	if _, ok := b.values[unitTime]; b.name != "BenchmarkB/size-2=3" || !ok || b.values["B/s"] != 12e6 {
		t.Errorf("%+v", b)
	}
	one := testRunner()
	one.procs = 1
	if samples, _ := one.parse([]byte("BenchmarkA-2 1 5 ns/op\n")); len(samples) != 1 || samples[0].name != "BenchmarkA-2" {
		t.Errorf("with one processor nothing is cut off: %+v", samples)
	}
}

func TestAnchored(t *testing.T) {
	for name, want := range map[string]string{
		"BenchmarkA":         `^BenchmarkA$`,
		"BenchmarkA/n=1.5/b": `^BenchmarkA$/^n=1\.5$/^b$`,
		"BenchmarkA/x[1]+|y": `^BenchmarkA$/^x\[1\]\+\|y$`,
	} {
		if got := anchored(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestOne(t *testing.T) {
	r := testRunner()
	r.repeat = 2
	line := `echo "BenchmarkA-2 7 5 ns/op"`
	for _, tc := range []struct{ what, script, err string }{
		{"right", line + "\n" + line, ""},
		{"too few", line, "gave 1 samples instead of 2"},
		{"none", "exit 0", "gave 0 samples instead of 2"},
		{"another", line + "\n" + `echo "BenchmarkB-2 7 5 ns/op"`, "gave a sample of BenchmarkB"},
		{"without time", strings.ReplaceAll(line+"\n"+line, "ns/op", "syncs/op"), ""},
		{"skips itself on the way", line + "\n" + `echo "BenchmarkA-2 0 NaN ns/op 0 allocs/op"`, "p.BenchmarkA reports 0 iterations"},
		{"reports no number", line + "\n" + `echo "BenchmarkA-2 7 5 ns/op NaN syncs/op"`, "p.BenchmarkA reports NaN syncs/op"},
		{"reports a ratio to nothing", line + "\n" + `echo "BenchmarkA-2 7 5 ns/op +Inf syncs/op"`, "p.BenchmarkA reports +Inf syncs/op"},
		{"fails", line + "\necho '--- FAIL: BenchmarkA/sub' >&2\nexit 1", "p.BenchmarkA/sub fails: exit status 1"},
		{"panics", "echo 'panic: oh' >&2; echo 'example.org/p.BenchmarkA(0x1)' >&2\nexit 2", "p.BenchmarkA fails: exit status 2"},
		{"fails without a name", "exit 3", "the benchmarks ^BenchmarkA$ of p fail"},
	} {
		samples, err := r.one(context.Background(), program(t, "p", tc.script), "BenchmarkA", 7)
		if tc.err == "" && (err != nil || len(samples) != 2) || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
			t.Errorf("%s: %d samples, error %v, want %q", tc.what, len(samples), err, tc.err)
		}
	}
	r.timeout = 50 * time.Millisecond
	if _, err := r.one(context.Background(), program(t, "p", "exec sleep 30"), "BenchmarkA", 7); err == nil || !strings.Contains(err.Error(), "no end after 50ms") {
		t.Errorf("hangs: %v", err)
	}
	if _, err := r.one(context.Background(), testPackage{Key: "p", Binary: "/nothing/here"}, "BenchmarkA", 7); err == nil {
		t.Error("a program that is not there runs")
	}
}

// benches is a script that prints results for the named benchmarks, and lists
// the top ones.
func benches(names ...string) string {
	script := "case \"$*\" in *test.list*)\n"
	for _, name := range names {
		top, _, _ := strings.Cut(name, "/")
		script += "echo " + top + "\n"
	}
	script += "exit 0;; esac\n"
	for _, name := range names {
		script += fmt.Sprintf("echo '%s-2 50 5 ns/op 0 allocs/op'\n", name)
	}
	return script
}

func TestPlan(t *testing.T) {
	ctx := context.Background()
	a, b := program(t, "a", benches("BenchmarkKept", "BenchmarkGone", "BenchmarkSub/1")), program(t, "b", benches("BenchmarkOld"))
	newA := program(t, "a", benches("BenchmarkKept", "BenchmarkNew", "BenchmarkSub/1"))
	p, err := makePlan(ctx, testRunner(), buildInfo{Packages: []testPackage{a, b}}, buildInfo{Packages: []testPackage{newA}}, ".", time.Millisecond)
	if err != nil || len(p.troubles) != 0 {
		t.Fatal(err, p.troubles)
	}
	keys := ""
	for _, bench := range p.benchmarks {
		keys += bench.key + " "
		if bench.n != 50 || bench.base.Binary != a.Binary || bench.head.Binary != newA.Binary {
			t.Errorf("%+v", bench)
		}
	}
	if keys != "a.BenchmarkKept a.BenchmarkSub/1 " || strings.Join(p.missing, " ") != "a.BenchmarkGone b.BenchmarkOld" || strings.Join(p.added, " ") != "a.BenchmarkNew" {
		t.Errorf("both %s, missing %v, added %v", keys, p.missing, p.added)
	}
	for _, side := range []string{"BASE", "HEAD"} {
		broken := program(t, "a", "echo '--- FAIL: BenchmarkKept'; exit 1")
		base, head := a, broken
		if side == "BASE" {
			base, head = broken, newA
		}
		p, err := makePlan(ctx, testRunner(), buildInfo{Packages: []testPackage{base}}, buildInfo{Packages: []testPackage{head}}, ".", time.Millisecond)
		if err != nil || len(p.troubles) != 1 || !strings.Contains(p.troubles[0].Error(), side+": a.BenchmarkKept fails") || len(p.missing)+len(p.added) != 0 {
			t.Errorf("%s fails: %v, %v, missing %v, added %v", side, err, p.troubles, p.missing, p.added)
		}
	}
	if _, err := makePlan(ctx, testRunner(), buildInfo{}, buildInfo{}, ".", time.Millisecond); err == nil {
		t.Error("nothing to measure is no error")
	}
	if _, err := makePlan(ctx, testRunner(), buildInfo{}, buildInfo{}, "(", time.Millisecond); err == nil {
		t.Error("a malformed expression is no error")
	}
}

func TestListWantsSamples(t *testing.T) {
	silent := "case \"$*\" in *test.list*) echo BenchmarkA; echo BenchmarkB; exit 0;; esac\necho 'BenchmarkA-2 50 5 ns/op'\n"
	for _, tc := range []struct{ what, script, re, err string }{
		{"all", silent, "A", ""},
		{"one is silent", silent, ".", "p.BenchmarkB gives no sample"},
		{"a part of one is asked for", silent, "./x", ""},
		{"twice", silent + "echo 'BenchmarkA-2 50 5 ns/op'", "A", "more than one sample"},
	} {
		_, err := testRunner().list(context.Background(), program(t, "p", tc.script), regexp.MustCompile(tc.re), "1x")
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %v, want %q", tc.what, err, tc.err)
		}
	}
}

// A benchmark that fails on the way is told of, and the others are measured;
// pairs come in the order ABBA.
func TestMeasure(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	side := func(time string) testPackage {
		return program(t, "p", fmt.Sprintf("case \"$*\" in *BenchmarkBad*) exit 1;; esac\necho $0 >>%s\necho 'BenchmarkA-2 9 %s ns/op'", log, time))
	}
	base, head := side("10"), side("20")
	raw, err := openRaw(t.TempDir(), "", facts{Base: "old", Commit: "new"}.config)
	if err != nil {
		t.Fatal(err)
	}
	s := sampler{runner: *testRunner(), dir: t.TempDir(), raw: raw, log: io.Discard}
	all, troubles := s.measure(context.Background(), []benchmark{{key: "p.BenchmarkA", name: "BenchmarkA", base: base, head: head, n: 9},
		{key: "p.BenchmarkBad", name: "BenchmarkBad", base: base, head: head, n: 9}}, 4)
	if err := raw.close(); err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || len(troubles) != 1 || len(all[0].values[sideHead][unitTime]) != 4 || all[0].values[sideHead][unitTime][0] < 1.9e-8 {
		t.Errorf("%d measured, troubles %v", len(all), troubles)
	}
	b, err := os.ReadFile(log)
	order := ""
	for _, name := range strings.Fields(string(b)) {
		order += filepath.Base(filepath.Dir(name)) + " "
	}
	if err != nil || order != "base head same same head base base same head head same base " {
		t.Errorf("the order was %s, %v", order, err)
	}
	kept, err := os.ReadFile(raw.files[sideHead].Name())
	if err != nil || strings.Count(string(kept), "BenchmarkA-2 9 20 ns/op\n") != 4 || !strings.Contains(string(kept), "commit: new\n") {
		t.Errorf("kept samples: %v\n%s", err, kept)
	}
	if all[0].n != 9 {
		t.Errorf("%d iterations", all[0].n)
	}
}

func TestReduce(t *testing.T) {
	got := reduce([]sample{{values: map[string]float64{unitTime: 3, "allocs/op": 1}}, {values: map[string]float64{unitTime: 2, "allocs/op": 2}},
		{values: map[string]float64{unitTime: 4, "allocs/op": 1}}})
	if got[unitTime] != 2 || got["allocs/op"] != 1 {
		t.Errorf("%v", got)
	}
}
