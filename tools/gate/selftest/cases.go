package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// gateCase is one thing that the gate has to do.
type gateCase struct {
	what, variant string
	limits        string // perf/LIMITS
	flags         []string
	code          int
	says          []string
	long          bool // left out of a short run
}

var gateCases = []gateCase{
	{what: "a benchmark is missing", variant: "missing", code: 1,
		says: []string{"selftest.BenchmarkCopy is in BASE, and missing in HEAD", "selftest.BenchmarkCopy removed # why"}},
	{what: "a benchmark is missing, and may be", long: true, variant: "missing", limits: "selftest.BenchmarkCopy removed # nobody copies any more\n"},
	{what: "a benchmark is renamed", long: true, variant: "renamed", code: 1,
		says: []string{"selftest.BenchmarkCopy is in BASE, and missing in HEAD", "nothing to compare with:\n  selftest.BenchmarkClone"}},
	{what: "a benchmark panics", variant: "panics", code: 2, says: []string{"selftest.BenchmarkCopy fails", "index out of range"}},
	{what: "a benchmark fails", long: true, variant: "fails", code: 2, says: []string{"selftest.BenchmarkCopy fails", "on purpose"}},
	{what: "a benchmark gives no sample", variant: "skips", code: 2, says: []string{"selftest.BenchmarkCopy gives no sample"}},
	{what: "a benchmark skips itself on the way", variant: "nan", code: 2, says: []string{"selftest.BenchmarkCopy reports 0 iterations"}},
	{what: "a benchmark reports a unit no more, and may", long: true, variant: "silent",
		limits: "selftest.BenchmarkAppend syscalls/op removed # counted elsewhere\n", says: []string{"PASS"}},
	{what: "a unit that nobody reports", variant: "same", flags: []string{"-hard", "allocs/opp"}, code: 2, says: []string{"-hard allocs/opp"}},
	{what: "a benchmark reports a unit no more", long: true, variant: "silent", code: 1,
		says: []string{"selftest.BenchmarkAppend syscalls/op is in BASE, and missing in HEAD"}},
	{what: "a benchmark is new", long: true, variant: "added", says: []string{"nothing to compare with:\n  selftest.BenchmarkNew", "PASS"}},
	{what: "no benchmark matches", variant: "same", flags: []string{"-bench", "Nothing"}, code: 2, says: []string{"no benchmark matches"}},
	{what: "a limit is raised without a line", variant: "alloc", code: 1,
		says: []string{"selftest.BenchmarkCopy allocs/op: 1 -> 2 allocs/op", "selftest.BenchmarkCopy allocs/op 2 # why"}},
	{what: "a limit is raised by a line", variant: "alloc",
		limits: "selftest.BenchmarkCopy allocs/op 2 # a copy for the reader\nselftest.BenchmarkCopy B/op 288 # the same\n",
		says:   []string{"as perf/LIMITS allows:", "a copy for the reader", "PASS"}},
	{what: "a limit is raised too little", long: true, variant: "sync", limits: "selftest.BenchmarkAppend syncs/op 1.5 # half of them\n", code: 1,
		says: []string{"selftest.BenchmarkAppend syncs/op: 1 -> 2"}},
	{what: "a limit is raised for no reason", variant: "same", limits: "selftest.BenchmarkCopy allocs/op 2\n", code: 1,
		says: []string{"perf/LIMITS:1: the line does not say why"}},
	{what: "a line is not needed", variant: "same", limits: "selftest.BenchmarkCopy allocs/op 2 # long ago\n",
		says: []string{"a regression later:\n  line 1: selftest.BenchmarkCopy allocs/op (long ago)", "1 line of perf/LIMITS not needed"}},
}

// cases tries each once. Time is not judged: a pair of short samples will do.
func (t *tester) cases(ctx context.Context) error {
	for _, c := range gateCases {
		if c.long && t.short {
			continue
		}
		limits := filepath.Join(t.work, "LIMITS")
		if err := os.WriteFile(limits, []byte(c.limits), 0o644); err != nil {
			return err
		}
		o, err := t.judge(ctx, c.variant, append([]string{"-count", "1", "-sample", "2ms", "-limits", limits}, c.flags...)...)
		if err != nil {
			return err
		}
		t.report(c.what, o.differs(c.code, c.says...), o)
	}
	return ctx.Err()
}

// differs tells what is not as it should be.
func (o outcome) differs(code int, says ...string) string {
	if o.code != code {
		return fmt.Sprintf("exit %d, want %d", o.code, code)
	}
	for _, text := range says {
		if !strings.Contains(o.text, text) {
			return fmt.Sprintf("it does not say %q", text)
		}
	}
	return ""
}
