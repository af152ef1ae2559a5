package main

import (
	"fmt"
	"strconv"

	"github.com/stratalog/stratalog/perf/load"
)

// numeric reads a parameter that is a number; 0 if it is not there.
func numeric(r *load.Run, name string) int {
	n, _ := strconv.Atoi(r.Param(name))
	return n
}

// opOf returns the operation of that name.
func opOf(r *load.Run, name string) *load.Op {
	for i := range r.Ops {
		if r.Ops[i].Name == name {
			return &r.Ops[i]
		}
	}
	return nil
}

// line is the runs of one row of a table: one engine in one way, by round.
type line struct {
	engine, label string
	async         string // how many messages were in flight; empty for one
	rounds        map[int]*load.Run
}

// lines puts runs together, in the order of engines and ways.
func lines(runs []load.Run, want func(*load.Run) bool) []*line {
	var all []*line
	for i := range runs {
		r := &runs[i]
		if !want(r) {
			continue
		}
		label := r.Engine
		if w := way(r.Param("way")); w == wayBatch || w == wayNative && hasBatch(r.Engine) && numeric(r, "producers") > 1 {
			label += ", " + string(w)
		}
		if r.Param("async") != "" {
			label += inFlight(r.Param("async"))
		}
		at := -1
		for i, l := range all {
			if l.label == label {
				at = i
			}
		}
		if at < 0 {
			at = len(all)
			all = append(all, &line{engine: r.Engine, label: label, async: r.Param("async"), rounds: map[int]*load.Run{}})
		}
		all[at].rounds[numeric(r, "round")] = r
	}
	return inOrder(all)
}

// inFlight is what is told of a row behind the engine, if so many messages of a
// producer were on their way.
func inFlight(n string) string { return ", " + n + " in flight" }

// hasBatch tells that an engine is shown in more than one way.
func hasBatch(name string) bool {
	e, err := engineNamed(name)
	return err == nil && len(e.many) > 1
}

// inOrder sorts lines by engine.
func inOrder(all []*line) []*line {
	var sorted []*line
	for _, e := range append(append([]*engine{}, engines...), nothingEngine) {
		for _, l := range all {
			if l.engine == e.name {
				sorted = append(sorted, l)
			}
		}
	}
	return sorted
}

// each collects a quantity over the rounds; a quantity that is not there is
// left out.
func (l *line) each(of func(*load.Run) (float64, bool)) spread {
	var s spread
	for _, r := range l.rounds {
		if x, ok := of(r); ok {
			s = append(s, x)
		}
	}
	return s
}

// over collects the quotients with another line, by pairs of the same round.
func (l *line) over(other *line, of func(*load.Run) (float64, bool)) spread {
	var s spread
	if other == nil {
		return s
	}
	for round, r := range l.rounds {
		x, ok := of(r)
		if o := other.rounds[round]; o != nil && ok {
			if y, ok := of(o); ok && y != 0 {
				s = append(s, x/y)
			}
		}
	}
	return s
}

// labelled returns the line of that label, or nil.
func labelled(all []*line, label string) *line {
	for _, l := range all {
		if l.label == label {
			return l
		}
	}
	return nil
}

// Quantities of the main operation.
func rate(r *load.Run) (float64, bool) { return r.Ops[0].RecordsPerSec, r.Ops[0].Records > 0 }

func quantile(of func(load.Latency) float64) func(*load.Run) (float64, bool) {
	return func(r *load.Run) (float64, bool) { return of(r.Ops[0].Latency), r.Ops[0].Latency.Count > 0 }
}

var (
	p50  = quantile(func(l load.Latency) float64 { return l.P50 })
	p99  = quantile(func(l load.Latency) float64 { return l.P99 })
	p999 = quantile(func(l load.Latency) float64 { return l.P999 })
)

func perSync(r *load.Run) (float64, bool) {
	if r.Log == nil || r.Log.Syncs == 0 {
		return 0, false
	}
	return r.Log.RecordsPerSync, true
}

func allocs(r *load.Run) (float64, bool) { return r.Usage.AllocsPerRecord, true }

func cpu(r *load.Run) (float64, bool) {
	n := r.Ops[0].Records
	return (r.Usage.UserCPU + r.Usage.SystemCPU) * 1e6 / float64(max(n, 1)), n > 0
}

// diskBytes is not told of the yardstick: its file was written in large pieces,
// and the kernel counts a whole one for the first byte that is written to it
// again. That is no I/O.
func diskBytes(r *load.Run) (float64, bool) {
	return r.Usage.DiskBytesPerPayload, r.Engine != yardstick
}

// percent writes a quotient as a percentage.
func percent(s spread) string {
	if len(s) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*s.median())
}
