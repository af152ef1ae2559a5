package perf

import (
	"context"
	"errors"

	"github.com/stratalog/stratalog/perf/load"
)

// RunRoll appends into small segments and tells apart the latency of messages
// that were their producer's first in a segment. cfg.SegmentSize must be set,
// and the producers wait for each answer. See RunAppend for what it returns.
func RunRoll(ctx context.Context, cfg Config) (run *load.Run, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.SegmentSize <= 0 || cfg.Load.Async != 0 {
		return nil, errors.New("roll: a segment size, and no async producers, are needed")
	}
	cfg.Load.Starts = load.NewStarts()
	s, err := open(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	run = s.newRun("roll")

	starts := s.ends()
	if err := s.warmup(ctx); err != nil {
		return nil, err
	}
	first := int64(s.store.Health().Watermarks.Appended) / cfg.SegmentSize
	for _, p := range s.mine {
		h := load.NewHistogram()
		p.roll, p.segment = &h, first
	}
	m := s.begin(run)
	op, err := s.gen.Run(ctx, "append")
	run.Ops = append(run.Ops, op, s.rolls(op))
	m.end()
	if err == nil {
		err = m.settle(ctx)
	}
	if err != nil {
		return interrupted(run, err)
	}
	if run.Log.Rolls == 0 {
		run.Notes = append(run.Notes, "no segment was filled: more records or smaller segments are needed")
	}
	return s.verify(ctx, run, starts, nil, nil)
}

// rolls is the operation of the messages at a roll; like those of all messages
// its latencies run from when they were due. Of them there is no rate.
func (s *session) rolls(all load.Op) load.Op {
	op := load.Op{Name: "append at a roll", Arrivals: all.Arrivals}
	var parts []load.Histogram
	for _, p := range s.mine {
		parts = append(parts, *p.roll)
		op.Count += p.roll.Count()
	}
	op.Latency = load.Summary(parts...)
	return op
}
