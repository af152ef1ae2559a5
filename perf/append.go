package perf

import (
	"context"
	"errors"
	"time"

	"github.com/stratalog/stratalog/perf/load"
)

// RunAppend opens the store, appends, reads everything back, compares it, and
// closes the store. The error says that the run could not be done; see Run.Err
// for what was found wrong. If ctx ends once the store is open, both are
// returned: what was measured by then, marked as interrupted, and the error.
func RunAppend(ctx context.Context, cfg Config) (run *load.Run, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s, err := open(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.append(ctx, s.newRun("append"))
}

// append warms up, measures, and reads all back. An error of an append that the
// end of ctx did not cause gives no result.
func (s *session) append(ctx context.Context, run *load.Run) (*load.Run, error) {
	starts := s.ends()
	if err := s.warmup(ctx); err != nil {
		return interrupted(ctx, run, err)
	}
	m := s.begin(run)
	op, err := s.gen.Run(ctx, "append")
	run.Ops = append(run.Ops, op)
	m.end()
	if err == nil {
		err = m.settle(ctx)
	}
	if err != nil {
		return interrupted(ctx, run, err)
	}
	return s.verify(ctx, run, starts)
}

// warmup sends the unmeasured messages and waits until they can be read.
func (s *session) warmup(ctx context.Context) error {
	if err := s.gen.Warmup(ctx); err != nil {
		return err
	}
	for p := range s.cfg.Load.Producers {
		s.warm = append(s.warm, s.gen.Sent(p))
	}
	return s.waitVisible(ctx)
}

// interrupted returns the run, marked, if ctx has ended, else nothing.
func interrupted(ctx context.Context, run *load.Run, err error) (*load.Run, error) {
	if ctx.Err() == nil {
		return nil, err
	}
	run.Interrupted, run.Verified.How = true, "nothing was read back"
	return run, err
}

// howVerified is what a full read-back compares.
const howVerified = "read back through the queues: place, order of each producer, checksum and every byte of the body"

// verify reads all back.
func (s *session) verify(ctx context.Context, run *load.Run, starts []int64) (*load.Run, error) {
	start, total := time.Now(), s.gen.Total()
	progress := s.cfg.Load.Progress
	c, err := s.readBack(ctx, starts, func(done int64) { progress.Tell("read back", done, total) })
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	progress.Tell("read back", c.right+c.wrong, total)
	run.Verified = load.Verify{Records: c.right, Wrong: c.wrong, First: c.first, Seconds: time.Since(start).Seconds(), How: howVerified}
	if err != nil {
		run.Interrupted = true
		return run, err
	}
	run.Verified.Missing = c.missing()
	run.Verified.First = c.first
	run.Verified.OK = run.Verified.Missing == 0 && c.wrong == 0
	return run, nil
}
