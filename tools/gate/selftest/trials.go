package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// trial is one thing that is tried many times.
type trial struct {
	what, variant string
	// names are what the gate has to name, any of them; allowed what else it
	// may name, since it follows. Without names it has to be quiet.
	names, allowed []string
	time           bool // time and instructions are what it is about
	bench          string
	mayMiss        int // of twenty
}

var trialList = []trial{
	{what: "A/A is quiet", variant: "same", time: true},
	{what: "one more allocation an operation", variant: "alloc",
		names:   []string{"selftest.BenchmarkCopy allocs/op"},
		allowed: []string{"selftest.BenchmarkCopy B/op", "selftest.BenchmarkCopy sec/op"}},
	{what: "one more sync a batch", variant: "sync",
		names:   []string{"selftest.BenchmarkAppend syncs/op"},
		allowed: []string{"selftest.BenchmarkAppend syscalls/op", "selftest.BenchmarkAppend sec/op"}},
	{what: "10 % more system calls", variant: "calls",
		names:   []string{"selftest.BenchmarkAppend syscalls/op"},
		allowed: []string{"selftest.BenchmarkAppend sec/op"}},
	{what: "30 % more CPU in encode", variant: "cpu", time: true, bench: "Encode|Copy", mayMiss: 1,
		names: []string{"selftest.BenchmarkEncode sec/op", "selftest.BenchmarkEncode instructions/op"}},
}

// trials tries each of them n times.
func (t *tester) trials(ctx context.Context, n int) error {
	for _, trial := range trialList {
		started, good, byName := time.Now(), 0, map[string]int{}
		for range n {
			// Exact counters need no long samples, and no fastest of four.
			flags := []string{"-count", "10", "-sample", "2ms", "-repeat", "1"}
			if trial.time {
				flags = []string{"-count", "10", "-sample", "8ms", "-instructions", `^selftest\.BenchmarkEncode$`}
			}
			if trial.bench != "" {
				flags = append(flags, "-bench", trial.bench)
			}
			o, err := t.judge(ctx, trial.variant, flags...)
			if err != nil {
				return err
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			why := trial.wrong(o, byName)
			if why == "" {
				good++
				continue
			}
			fmt.Fprintf(os.Stderr, "---- %s: %s; exit %d, output:\n%s----\n", trial.what, why, o.code, o.text)
		}
		names := ""
		for _, name := range trial.names {
			names += fmt.Sprintf("; %s %d times", name, byName[name])
		}
		word := "ok    "
		if good+trial.mayMiss*n/20 < n {
			word = "FAILED"
			t.failed++
		}
		fmt.Printf("%s  %s: %d of %d, %.0f s%s\n", word, trial.what, good, n, time.Since(started).Seconds(), names)
	}
	return nil
}

// wrong tells what is wrong with an outcome, and counts what it names.
func (tr trial) wrong(o outcome, byName map[string]int) string {
	found := o.regressions()
	named := false
	for _, name := range found {
		switch {
		case slices.Contains(tr.names, name):
			named = true
			byName[name]++
		case !slices.Contains(tr.allowed, name):
			return "it blames " + name
		}
	}
	want := 1
	if len(tr.names) == 0 {
		want, named = 0, true
	}
	if o.code != want {
		return fmt.Sprintf("the exit code is not %d", want)
	}
	if !named {
		return "it does not name " + strings.Join(tr.names, " or ")
	}
	return ""
}
