package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// historyLine is a line of perf/history.jsonl; docs/GATE.md describes it.
type historyLine struct {
	Commit     string         `json:"commit"`
	Base       string         `json:"base"`
	Date       string         `json:"date"`
	Go         string         `json:"go"`
	CPU        string         `json:"cpu"`
	Kernel     string         `json:"kernel"`
	Pairs      int            `json:"pairs"`
	Reason     string         `json:"reason,omitempty"`
	Benchmarks []historyEntry `json:"benchmarks"`
}

type historyEntry struct {
	Benchmark string   `json:"benchmark"`
	Unit      string   `json:"unit"`
	Base      float64  `json:"base"`
	Head      float64  `json:"head"`
	Ratio     *float64 `json:"ratio"`
	// From and To are the interval of the ratio, if pairs were judged by it.
	From    *float64 `json:"from,omitempty"`
	To      *float64 `json:"to,omitempty"`
	Verdict verdict  `json:"verdict"`
	Exact   bool     `json:"exact,omitempty"`
}

// Files that a run leaves for an acceptance.
const (
	historyFile = "history.json"
	messageFile = "message.txt"
)

// keep leaves the line of the history and the message of the commit that would
// accept HEAD as the baseline.
func (r *report) keep() error {
	f := r.facts
	line := historyLine{Commit: f.Commit, Base: f.Base, Date: f.Date.Format(time.RFC3339), Go: f.Go, CPU: f.CPU, Kernel: f.Kernel,
		Pairs: f.Pairs, Reason: r.reason, Benchmarks: []historyEntry{}}
	for _, row := range r.rows {
		e := historyEntry{Benchmark: row.key, Unit: row.unit, Base: row.base, Head: row.head,
			Ratio: finite(row.ratio), Verdict: row.verdict, Exact: row.method == byValue}
		if row.method == byRatio {
			e.From, e.To = finite(math.Exp(row.effect.lo)), finite(math.Exp(row.effect.hi))
		}
		line.Benchmarks = append(line.Benchmarks, e)
	}
	b, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.outDir, historyFile), append(b, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.outDir, messageFile), []byte(r.message(line.Reason)), 0o644)
}

// finite returns nil for what JSON has no number for.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// exactOnce returns the names of the values that were exact when commit was
// accepted, by the line of the history that says so. Lines of before exact was
// written down name none.
func exactOnce(name, commit string) (map[string]bool, error) {
	b, err := os.ReadFile(name)
	if name == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	exact := map[string]bool{}
	for n, text := range bytes.Split(b, []byte("\n")) {
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		var line historyLine
		if err := json.Unmarshal(text, &line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n+1, err)
		}
		if line.Commit != commit {
			continue
		}
		for _, e := range line.Benchmarks {
			if e.Exact {
				exact[e.Benchmark+" "+e.Unit] = true
			}
		}
	}
	return exact, nil
}

// message is that of the commit that accepts HEAD: all ratios of time, and what
// else is not the same.
func (r *report) message(reason string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "perf: accept %.12s as the baseline\n\n%s against %.12s, %d pairs.\n",
		r.facts.Commit, plural(len(r.plan.benchmarks), "benchmark"), r.facts.Base, r.facts.Pairs)
	if reason != "" {
		fmt.Fprintf(&b, "Reason: %s\n", reason)
	}
	if times := r.by(byRatio); len(times) > 0 {
		b.WriteString("\nTime, HEAD/BASE (from, to):\n")
		for _, row := range times {
			fmt.Fprintf(&b, "  %.3f (%.3f, %.3f) %s %s\n", row.ratio, math.Exp(row.effect.lo), math.Exp(row.effect.hi), row.verdict, row.key)
		}
	}
	other := ""
	for _, row := range r.rows {
		if row.method != byRatio && row.verdict != same && row.verdict != undecided {
			other += fmt.Sprintf("  %s: %s\n", row.name(), row.change())
		}
	}
	if other != "" {
		b.WriteString("\nOther changes:\n" + other)
	}
	return b.String()
}
