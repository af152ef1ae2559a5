package main

import (
	"encoding/json"
	"fmt"
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
		e := historyEntry{Benchmark: row.key, Unit: row.unit, Base: row.base, Head: row.head}
		if !math.IsNaN(row.ratio) && !math.IsInf(row.ratio, 0) {
			e.Ratio = &row.ratio
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

// message is that of the commit that accepts HEAD: all ratios of time, and what
// else is not the same.
func (r *report) message(reason string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "perf: accept %.12s as the baseline\n\n%d benchmarks against %.12s, %d pairs.\n",
		r.facts.Commit, len(r.plan.benchmarks), r.facts.Base, r.facts.Pairs)
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
