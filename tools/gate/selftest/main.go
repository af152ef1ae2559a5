// Command selftest proves that the gate works: that it is quiet where nothing
// changed, and that it stops, and names, what was planted. tools/gate-selftest.sh
// is the way to call it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// tester tries the gate on variants of a small module.
type tester struct {
	gate, benchstat, script string
	work                    string
	short                   bool
	failed                  int
}

func main() {
	t := &tester{}
	flag.StringVar(&t.gate, "gate", "", "the gate program")
	flag.StringVar(&t.benchstat, "benchstat", "", "the benchstat program")
	flag.StringVar(&t.script, "script", "", "tools/benchstat.sh")
	flag.BoolVar(&t.short, "short", false, "one trial of each, and the most important cases only")
	trials := flag.Int("trials", 20, "how often each planted regression is tried")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := t.run(ctx, *trials); err != nil {
		fmt.Fprintln(os.Stderr, "selftest:", err)
		os.Exit(2)
	}
	if t.failed > 0 {
		fmt.Printf("selftest: %d of the above FAILED\n", t.failed)
		os.Exit(1)
	}
}

func (t *tester) run(ctx context.Context, trials int) error {
	started := time.Now()
	if t.short {
		trials = 1
	}
	var err error
	if t.work, err = os.MkdirTemp("", "gate-selftest"); err != nil {
		return err
	}
	defer os.RemoveAll(t.work)
	needed := t.needed()
	for _, variant := range needed {
		if err := t.build(ctx, variant); err != nil {
			return err
		}
	}
	fmt.Printf("built %d variants in %.0f s\n", len(needed), time.Since(started).Seconds())
	for _, step := range []func(context.Context) error{
		t.cases, t.scriptCases, func(ctx context.Context) error { return t.trials(ctx, trials) }} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("done in %.0f s\n", time.Since(started).Seconds())
	return ctx.Err()
}

// needed returns the variants that cases and trials are about, and their base.
func (t *tester) needed() []string {
	list := []string{"base"}
	for _, c := range gateCases {
		if !c.long || !t.short {
			list = append(list, c.variant)
		}
	}
	for _, trial := range trialList {
		list = append(list, trial.variant)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// outcome is how a run of the gate ended.
type outcome struct {
	code int
	text string
}

// judge has the gate compare base with a variant.
func (t *tester) judge(ctx context.Context, variant string, flags ...string) (outcome, error) {
	out := filepath.Join(t.work, "out")
	args := append([]string{"run", "-base", t.built("base"), "-head", t.built(variant), "-out", out, "-benchstat", t.benchstat}, flags...)
	return command(exec.CommandContext(ctx, t.gate, args...))
}

// command runs a program and returns its exit code and what it printed.
func command(cmd *exec.Cmd) (outcome, error) {
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return outcome{}, err
	}
	return outcome{cmd.ProcessState.ExitCode(), string(b)}, nil
}

// regressions returns what an outcome names as worse.
func (o outcome) regressions() []string {
	_, rest, ok := strings.Cut(o.text, "\nREGRESSION\n")
	if !ok {
		return nil
	}
	var names []string
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "  ") {
			break
		}
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "  "), ": "); ok && !strings.HasPrefix(name, " ") {
			names = append(names, name)
		}
	}
	return names
}

// report prints the result of a check, and what the gate said if it is wrong.
func (t *tester) report(what, why string, o outcome) {
	if why == "" {
		fmt.Printf("ok      %s\n", what)
		return
	}
	t.failed++
	fmt.Printf("FAILED  %s: %s\n", what, why)
	fmt.Fprintf(os.Stderr, "---- exit %d, output:\n%s----\n", o.code, o.text)
}
