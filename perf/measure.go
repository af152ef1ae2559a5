package perf

import (
	"context"
	"time"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/internal/vfs"
	"github.com/stratalog/stratalog/perf/load"
)

// measurement is what was counted when the measuring began.
type measurement struct {
	s      *session
	run    *load.Run
	before stratalog.Health
	calls  map[vfs.OpKind]int64
	bytes  int64
	meter  *load.Meter
}

// newRun returns a run that says how it was configured.
func (s *session) newRun(workload string, more ...load.Param) *load.Run {
	r := &load.Run{Schema: load.Schema, Engine: "stratalog", Workload: workload, Started: time.Now().UTC(), Promise: promise(s.cfg.Durability),
		Env: load.Environment(s.cfg.Dir), Config: append(s.cfg.params(s.store.Health().WritePath), more...), Seed: s.cfg.Load.Seed}
	if s.cfg.Load.Arrivals != load.Closed {
		r.Notes = append(r.Notes, waiting)
	}
	return r
}

// waiting is how an open loop waits, for whoever reads the figures.
const waiting = "a waiting producer sleeps on a timer of the Go runtime and never spins; " +
	"\"generator woke late\" is its own part of the latency of a message that was due while it slept"

// begin begins to measure.
func (s *session) begin(run *load.Run) *measurement {
	m := &measurement{s: s, run: run, before: s.store.Health(), calls: s.calls(), bytes: s.trace.BytesWritten()}
	m.meter = load.StartMeter() // last, so that nothing of the above is measured
	return m
}

// calls returns how often each kind of operation was done so far.
func (s *session) calls() map[vfs.OpKind]int64 {
	all := map[vfs.OpKind]int64{}
	for _, kind := range vfs.OpKinds() {
		if n := s.trace.Count(kind); n > 0 {
			all[kind] = n
		}
	}
	return all
}

// end notes what was used and counted, and how far the lanes are behind, for
// the operations that the run has by now; the first is that of the producers.
func (m *measurement) end() {
	s, run := m.s, m.run
	records, payload := int64(0), int64(0)
	if len(run.Ops) > 0 {
		records, payload = run.Ops[0].Records, run.Ops[0].Bytes
	}
	run.Usage = m.meter.Stop(records, payload)
	after, bytes, calls := s.store.Health(), s.trace.BytesWritten()-m.bytes, s.calls()
	c := &load.LogCounts{
		Syncs: after.Stats.Syncs - m.before.Stats.Syncs, Commits: after.Stats.Commits - m.before.Stats.Commits,
		Writes: after.Stats.Writes - m.before.Stats.Writes, Rolls: after.Stats.Rolls - m.before.Stats.Rolls,
		Bytes: int64(after.Watermarks.Appended - m.before.Watermarks.Appended), Calls: map[string]int64{},
	}
	total := int64(0)
	for kind, n := range calls {
		if n -= m.calls[kind]; n > 0 {
			c.Calls[kind.String()] = n
			if kind != vfs.OpMapWrite {
				total += n
			}
		}
	}
	c.RecordsPerSync = load.Per(float64(records), c.Syncs)
	c.CallsPerRecord = load.Per(float64(total), records)
	c.BytesPerPayload = load.Per(float64(bytes), payload)
	run.Log = c
	run.Lag = &load.Lag{Bytes: int64(after.Watermarks.Appended - after.Frontier)}
}

// settle waits until all is visible and notes how long that took.
func (m *measurement) settle(ctx context.Context) error {
	start := time.Now()
	err := m.s.waitVisible(ctx)
	m.run.Lag.Seconds = time.Since(start).Seconds()
	return err
}
