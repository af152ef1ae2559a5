package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseRaise(t *testing.T) {
	for _, tc := range []struct {
		line string
		want raise
		err  string
	}{
		{"codec.BenchmarkEncode allocs/op 2 # a buffer for the caller", raise{key: "codec.BenchmarkEncode", unit: "allocs/op", value: 2, why: "a buffer for the caller"}, ""},
		{"codec.BenchmarkEncode/sub#01 sec/op 1.3x # checks # twice", raise{key: "codec.BenchmarkEncode/sub#01", unit: "sec/op", value: 1.3, times: true, why: "checks # twice"}, ""},
		{"codec.BenchmarkEncode removed # gone", raise{key: "codec.BenchmarkEncode", unit: removed, why: "gone"}, ""},
		{"codec.BenchmarkEncode syncs/op removed # no input", raise{key: "codec.BenchmarkEncode", unit: "syncs/op", gone: true, why: "no input"}, ""},
		{"perf/gate/flags changed # a package more", raise{key: flagsFile, unit: changed, why: "a package more"}, ""},
		{"perf/gate/flags changed", raise{}, "does not say why"},
		{"codec.BenchmarkEncode changed # why", raise{}, "not of the form"},
		{"codec.BenchmarkEncode allocs/op 2", raise{}, "does not say why"},
		{"codec.BenchmarkEncode allocs/op 2 #", raise{}, "does not say why"},
		{"codec.BenchmarkEncode removed", raise{}, "does not say why"},
		{"codec.BenchmarkEncode allocs/op # why", raise{}, "not of the form"},
		{"codec.BenchmarkEncode # why", raise{}, "not of the form"},
		{"codec.BenchmarkEncode allocs/op 2 3 # why", raise{}, "not of the form"},
		{"codec.BenchmarkEncode allocs/op two # why", raise{}, "no value"},
		{"codec.BenchmarkEncode allocs/op -1 # why", raise{}, "no value"},
		{"codec.BenchmarkEncode allocs/op NaN # why", raise{}, "no value"},
		{"codec.BenchmarkEncode allocs/op Inf # why", raise{}, "no value"},
		{"codec.BenchmarkEncode sec/op 3e-6 # why", raise{}, "differs from machine to machine"},
	} {
		got, err := parseRaise(tc.line)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: error %v, want %q", tc.line, err, tc.err)
			}
			continue
		}
		if err != nil || *got != tc.want {
			t.Errorf("%s: %+v, %v", tc.line, got, err)
		}
	}
}

func TestReadLimits(t *testing.T) {
	dir := t.TempDir()
	if raises, wrong := readLimits(filepath.Join(dir, "none")); raises != nil || wrong != nil {
		t.Errorf("no file: %v, %v", raises, wrong)
	}
	if _, wrong := readLimits(dir); len(wrong) != 1 {
		t.Errorf("a folder: %v", wrong)
	}
	name := filepath.Join(dir, "LIMITS")
	text := "# a comment\n\nA u 1 # why\nB u 1\n  C u 2x # why"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	raises, wrong := readLimits(name)
	if len(raises) != 2 || raises[0].line != 3 || raises[1].line != 5 || len(wrong) != 1 || !strings.Contains(wrong[0].Error(), "perf/LIMITS:4: ") {
		t.Errorf("%+v, %v", raises, wrong)
	}
}

func TestAllow(t *testing.T) {
	rows := []row{
		{key: "A", unit: "u", base: 1, head: 2, ratio: 2, verdict: worse},
		{key: "B", unit: "u", base: 1, head: 3, ratio: 3, verdict: worse},
		{key: "C", unit: unitTime, base: 1, head: 1.2, ratio: 1.2, verdict: worse},
		{key: "D", unit: "u", base: 0, head: 1, ratio: math.NaN(), verdict: worse},
		{key: "E", unit: "u", base: 1, head: 1, ratio: 1, verdict: same},
	}
	raises := []*raise{
		{line: 1, key: "A", unit: "u", value: 2}, {line: 2, key: "B", unit: "u", value: 2.5}, {line: 3, key: "C", unit: unitTime, value: 1.25, times: true},
		{line: 4, key: "D", unit: "u", value: 9, times: true}, {line: 5, key: "E", unit: "u", value: 2}, {line: 6, key: "F", unit: "u", value: 2},
		{line: 7, key: "G", unit: removed}, {line: 8, key: "H", unit: removed},
		{line: 9, key: "B", unit: "u", gone: true},
	}
	allow(rows, raises)
	left := ""
	for _, r := range regressions(rows) {
		left += r.key
	}
	if left != "BD" {
		t.Errorf("worse and not allowed: %s, want BD", left)
	}
	if missing := allowMissing([]string{"G", "I", "B u", "A u"}, raises); strings.Join(missing, ",") != "I,A u" {
		t.Errorf("missing: %v, want I and A u", missing)
	}
	if allowChanged(raises) != nil {
		t.Error("the flags may differ without a line")
	}
	if l := allowChanged([]*raise{{key: flagsFile, unit: changed}}); l == nil || !l.used {
		t.Errorf("the line for the flags: %+v", l)
	}
	lines := ""
	for _, r := range unused(raises, func(key string) bool { return key != "F" }) {
		lines += string(rune('0' + r.line))
	}
	if lines != "2458" {
		t.Errorf("lines that were not needed: %s, want 2458", lines)
	}
}

func TestWanted(t *testing.T) {
	for _, tc := range []struct {
		row  row
		want string
	}{
		{row{key: "A", unit: "allocs/op", head: 3, ratio: 1.5}, "A allocs/op 3 # why"},
		{row{key: "A", unit: "written-B/payload-B", head: 1.182, ratio: 1.1}, "A written-B/payload-B 1.182 # why"},
		{row{key: "A", unit: unitTime, head: 1e-6, ratio: 1.301}, "A sec/op 1.31x # why"},
		{row{key: "A", unit: unitInstructions, head: 1000, ratio: 1.05}, "A instructions/op 1.05x # why"},
	} {
		got := wanted(tc.row)
		if got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
		raise, err := parseRaise(got)
		if err != nil || !raise.covers(&tc.row) {
			t.Errorf("%q does not allow what it was made for: %v", got, err)
		}
	}
}
