package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/perf/benchunit"
)

// report is the outcome of a run.
type report struct {
	facts    facts
	plan     plan
	outDir   string
	reason   string // why a regression is accepted
	rows     []row
	missing  []string // benchmarks and units that HEAD does not have any more
	wrong    []error  // lines of perf/LIMITS
	unused   []*raise
	troubles []error
	edited   []string        // packages whose test files differ
	exact    map[string]bool // rows that were exact when BASE was accepted
	// changed says how the flags of HEAD differ, changedAllowed which line of
	// perf/LIMITS allows it.
	changed        string
	changedAllowed *raise
}

// begin says what is going to be measured.
func (r *report) begin(w io.Writer) {
	f := r.facts
	fmt.Fprintf(w, "BASE %s\nHEAD %s\n%s, %s of samples of %v; %s, %s, %s, %s, GOMAXPROCS=%d, GOGC=%s\n",
		cmp.Or(f.Base, "?"), cmp.Or(f.Commit, "?"), plural(len(r.plan.benchmarks), "benchmark"), plural(f.Pairs, "pair"), f.Length, f.Go, cmp.Or(f.CPU, "cpu unknown"),
		cmp.Or(f.Kernel, "kernel unknown"), cmp.Or(f.Files, "file system unknown"), f.Procs, f.GOGC)
	if f.BaseGo != f.Go {
		fmt.Fprintf(w, "BASE is built with %s\n", f.BaseGo)
	}
	fmt.Fprintf(w, "packages %s; benchmarks %s; instructions of %s\nhard limits for %s; slower is %v %%\n",
		cmp.Or(f.Packages, "?"), f.Bench, cmp.Or(f.Counted, "none"), strings.Join(f.Hard, ", "), f.Slower)
	if r.changed != "" {
		fmt.Fprintf(w, "\nTHE FLAGS IN %s ARE NOT THOSE OF BASE, which are used:\n  %s\n", flagsFile, strings.ReplaceAll(r.changed, "\n", "\n  "))
	}
	list(w, "benchmark code changed in:", r.edited)
	list(w, "new in HEAD, nothing to compare with:", r.plan.added)
}

func list(w io.Writer, title string, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintf(w, "\n%s\n  %s\n", title, strings.Join(lines, "\n  "))
	}
}

// tableFile is where benchstat's tables of all units go.
const tableFile = "benchstat.txt"

// Benchstat is stopped at tableTime and tableMemory, in KiB of addresses: it has
// been seen to fill the memory of a machine.
const (
	tableTime   = 2 * time.Minute
	tableMemory = 4 << 20
)

// table shows what benchstat makes of the times, and keeps what it makes of
// everything. Nothing is read from it.
func (r *report) table(ctx context.Context, benchstat string, w io.Writer) error {
	if benchstat == "" || len(r.rows) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, tableTime)
	defer cancel()
	run := func(filter string) ([]byte, error) {
		var stdout, stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, "sh", "-c", fmt.Sprintf(`ulimit -v %d 2>/dev/null; exec "$0" "$@"`, tableMemory),
			benchstat, "-table", "pkg", "-ignore", "side,commit,goversion", "-filter", filter,
			"base="+rawName(r.outDir, "", sideBase), "head="+rawName(r.outDir, "", sideHead), "base-again="+rawName(r.outDir, "", sideSame))
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		// It ends well without having read its files, too.
		if err := cmd.Run(); err != nil || stdout.Len() == 0 {
			return nil, fmt.Errorf("benchstat: %v\n%s", err, tail(stderr.String()))
		}
		return stdout.Bytes(), nil
	}
	all, err := run("*")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.outDir, tableFile), all, 0o644); err != nil {
		return err
	}
	times, err := run(".unit:sec/op")
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s", times)
	return nil
}

// end writes the judgement and returns the error that the run ends with.
func (r *report) end(w io.Writer) error {
	r.times(w)
	r.hard(w)
	r.instructions(w)
	var lines []string
	for _, row := range r.rows {
		if row.allowed != nil {
			lines = append(lines, fmt.Sprintf("%s: %s (line %d: %s)", row.name(), row.change(), row.allowed.line, row.allowed.why))
		}
	}
	list(w, "worse, as perf/LIMITS allows:", lines)
	lines = nil
	for _, u := range r.unused {
		lines = append(lines, fmt.Sprintf("line %d: %s %s (%s)", u.line, u.key, u.unit, u.why))
	}
	list(w, "lines of perf/LIMITS that are NOT NEEDED any more, and would allow a regression later:", lines)
	lines = nil
	for _, row := range r.by(byDifference) {
		if r.exact[row.name()] {
			lines = append(lines, row.name())
		}
	}
	list(w, "NOT EXACT HERE, though exact when BASE was accepted, so the limit is a soft one:", lines)

	lines = nil
	if r.changed != "" && r.changedAllowed == nil {
		lines = append(lines, fmt.Sprintf("%s: it differs from that of BASE\n    to allow it, write into perf/LIMITS: %s %s # why", flagsFile, flagsFile, changed))
	}
	for _, row := range regressions(r.rows) {
		lines = append(lines, fmt.Sprintf("%s: %s\n    to allow it, write into perf/LIMITS: %s", row.name(), row.change()+noted(row.note), wanted(row)))
	}
	for _, m := range r.missing {
		line := m + " is in BASE, and missing in HEAD: removed or renamed"
		lines = append(lines, line+"\n    to allow it, write into perf/LIMITS: "+m+" "+removed+" # why")
	}
	for _, err := range r.wrong {
		lines = append(lines, err.Error())
	}
	list(w, "REGRESSION", lines)
	if len(r.troubles) > 0 {
		fmt.Fprintf(w, "\nNOT JUDGED\n  %s\n", strings.ReplaceAll(errors.Join(r.troubles...).Error(), "\n", "\n  "))
		return fmt.Errorf("%s could not be judged", plural(len(r.troubles), "thing"))
	}
	if len(lines) > 0 {
		return errRegression
	}
	fmt.Fprintf(w, "\nPASS: %s\n", r.summary())
	return nil
}

// summary says in a line what passing means here.
func (r *report) summary() string {
	text := "no regression in " + plural(len(r.plan.benchmarks), "benchmark")
	if len(r.plan.benchmarks) == 0 {
		text = fmt.Sprintf("NOTHING WAS COMPARED: BASE has none of these benchmarks, %d are new", len(r.plan.added))
	}
	open, noise := 0, 0.0
	times := r.by(byRatio)
	for _, row := range times {
		if row.verdict == undecided {
			open++
			noise = max(noise, math.Expm1(row.floor))
		}
	}
	switch {
	case len(times) > 0 && r.facts.Pairs < minPairs:
		text += fmt.Sprintf("; time not judged, which takes %d pairs", minPairs)
	case open > 0:
		text += fmt.Sprintf("; time undecided for %d of %d, noise up to %.0f %%", open, len(times), 100*noise)
	}
	if r.changed != "" {
		text += "; with the flags of BASE, not of HEAD"
	}
	if len(r.edited) > 0 {
		text += "; benchmark code changed"
	}
	if len(r.unused) > 0 {
		text += fmt.Sprintf("; %s of perf/LIMITS not needed", plural(len(r.unused), "line"))
	}
	return text
}

// plural writes a number of things.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// times writes the judgement by pairs.
func (r *report) times(w io.Writer) {
	rows := r.by(byRatio)
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\nTime: ratio of HEAD to BASE in pairs, its interval, and the ratio that noise alone reaches (BASE against its own copy)\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  base\tratio\tfrom\tto\tnoise\tverdict\tbenchmark")
	for _, row := range rows {
		fmt.Fprintf(t, "  %s\t%.3f\t%.3f\t%.3f\t%.3f\t%s\t%s\n", formatTime(row.base), row.ratio, math.Exp(row.effect.lo),
			math.Exp(row.effect.hi), math.Exp(row.floor), cmp.Or(row.allowedWord(), string(row.verdict)), row.key+noted(row.note))
	}
	t.Flush()
}

// hard writes the judgement of hard limits: what changed, and what is not exact.
func (r *report) hard(w io.Writer) {
	exact, inexact := r.by(byValue), r.by(byDifference)
	if len(exact)+len(inexact) == 0 {
		return
	}
	fmt.Fprintf(w, "\nHard limits: %d exact values", len(exact))
	changed := slices.DeleteFunc(exact, func(row row) bool { return row.verdict == same })
	if len(changed) == 0 {
		fmt.Fprint(w, ", all the same")
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range changed {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", row.change(), cmp.Or(row.allowedWord(), string(row.verdict)), row.key)
	}
	t.Flush()
	if len(inexact) == 0 {
		return
	}
	fmt.Fprintf(w, "Not the same in each sample of BASE, so judged by pairs: difference, its interval, and what noise alone reaches\n")
	for _, row := range inexact {
		fmt.Fprintf(t, "  %s\t%+.4g\t%+.4g\t%+.4g\t%.4g\t%s\t%s\n", formatValue(row.base)+" "+row.unit, row.effect.median,
			row.effect.lo, row.effect.hi, row.floor, cmp.Or(row.allowedWord(), string(row.verdict)), row.key+noted(row.note))
	}
	t.Flush()
}

func (r *report) instructions(w io.Writer) {
	rows := r.by(byInstructions)
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\nInstructions of an operation, counted by callgrind: ratio of HEAD to BASE, more than %.0f %% is a change\n", rows[0].limit*100)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintf(t, "  %.1f\t%.4f\t%s\t%s\n", row.base, row.ratio, cmp.Or(row.allowedWord(), string(row.verdict)), row.key+noted(row.note))
	}
	t.Flush()
}

func (r *report) by(m method) []row {
	return slices.DeleteFunc(slices.Clone(r.rows), func(row row) bool { return row.method != m })
}

func (r row) allowedWord() string {
	if r.allowed != nil {
		return "allowed"
	}
	return ""
}

func noted(note string) string {
	if note == "" {
		return ""
	}
	return " (" + note + ")"
}

// change says in words how HEAD differs.
func (r row) change() string {
	switch r.method {
	case byRatio:
		return fmt.Sprintf("%.3f times as long (%.3f to %.3f; limit %.3f)", r.ratio, math.Exp(r.effect.lo), math.Exp(r.effect.hi), math.Exp(r.limit))
	case byDifference:
		return fmt.Sprintf("%+.4g (%+.4g to %+.4g; noise %.4g)", r.effect.median, r.effect.lo, r.effect.hi, r.floor)
	case byInstructions:
		return fmt.Sprintf("%.1f -> %.1f, %.4f times as many", r.base, r.head, r.ratio)
	}
	return fmt.Sprintf("%s -> %s %s", formatValue(r.base), formatValue(r.head), r.unit)
}

func formatTime(seconds float64) string { return benchunit.Scale(seconds, benchunit.Decimal) + "s" }
