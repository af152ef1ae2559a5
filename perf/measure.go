package perf

import (
	"context"
	"strings"
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
	// What was counted when the last message was acknowledged.
	after      stratalog.Health
	afterCalls map[vfs.OpKind]int64
	afterBytes int64
}

// newRun returns a run that says how it was configured.
func (s *session) newRun(workload string, more ...load.Param) *load.Run {
	r := &load.Run{Schema: load.Schema, Engine: "stratalog", Workload: workload, Started: time.Now().UTC(), Promise: promise(s.cfg.Durability),
		Env: load.Environment(s.cfg.Dir), Config: append(s.cfg.params(s.store.Health().WritePath), more...), Seed: s.cfg.Load.Seed}
	if s.cfg.Load.Arrivals != load.Closed {
		r.Notes = append(r.Notes, waiting)
	} else {
		r.Notes = append(r.Notes, closed)
	}
	if s.cfg.Durability == stratalog.Sync && (strings.HasPrefix(r.Env.FileSystem, "tmpfs") || strings.HasPrefix(r.Env.FileSystem, "ramfs")) {
		r.Notes = append(r.Notes, "the store is in memory ("+r.Env.FileSystem+"): nothing here was on a disk, and syncs cost nothing")
	}
	return r
}

// waiting is how an open loop waits, for whoever reads the figures.
const waiting = "a waiting producer sleeps on a timer of the Go runtime and never spins; " +
	"\"generator woke late\" is its own part of the latency of a message that was due while it slept"

// measured makes the generator call a measurement when it begins and ends.
func (s *session) measured() *load.Spec {
	spec := s.cfg.Load
	spec.Begin = func() {
		if s.m != nil {
			s.m.start()
		}
	}
	spec.End = func() {
		if s.m != nil {
			s.m.stop()
		}
	}
	return &spec
}

// closed is what a closed loop cannot tell.
const closed = "a closed loop sends the next message when the one before is answered: it finds the highest rate, and hides the messages that a stall would have delayed"

// begin makes ready to measure what the generator does next.
func (s *session) begin(run *load.Run) *measurement {
	s.m = &measurement{s: s, run: run}
	return s.m
}

func (m *measurement) start() {
	m.before, m.calls, m.bytes = m.s.store.Health(), m.s.calls(), m.s.trace.BytesWritten()
	m.meter = load.StartMeter() // last, so that nothing of the above is measured
}

func (m *measurement) stop() {
	m.after = m.s.store.Health() // first: the lanes go on
	m.meter.Mark()
	m.afterBytes, m.afterCalls = m.s.trace.BytesWritten(), m.s.calls()
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

// end notes what was used and counted, and how far the lanes were behind, for
// the operations that the run has by now; the first is that of the producers.
func (m *measurement) end() {
	run := m.run
	records, payload := int64(0), int64(0)
	if len(run.Ops) > 0 {
		records, payload = run.Ops[0].Records, run.Ops[0].Bytes
	}
	run.Usage = m.meter.Stop(records, payload)
	after, bytes, calls := m.after, m.afterBytes-m.bytes, m.afterCalls
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
