package perf

import (
	"context"
	"errors"
	"time"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/perf/load"
)

// RunAppend opens the store, appends, closes and opens it again, reads everything
// back, compares it, and closes the store. The error says that the run could not
// be done; see Run.Err for what was found wrong. If ctx ends, or an append fails,
// once something was measured, both are returned: what was measured by then,
// marked as interrupted, and the error.
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

// append warms up, measures, and reads all back.
func (s *session) append(ctx context.Context, run *load.Run) (*load.Run, error) {
	starts := s.ends()
	if err := s.warmup(ctx); err != nil {
		return nil, err
	}
	m := s.begin(run)
	op, err := s.gen.Run(ctx, "append")
	run.Ops = append(run.Ops, op)
	m.end()
	if err == nil {
		err = m.settle(ctx)
	}
	if err != nil {
		return interrupted(run, err)
	}
	return s.verify(ctx, run, starts, nil, nil)
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

// interrupted returns the run, marked.
func interrupted(run *load.Run, err error) (*load.Run, error) {
	run.Interrupted, run.Verified.How = true, "nothing was read back"
	return run, err
}

// howVerified is what a full read-back compares.
const howVerified = "read back through the queues after the store was closed and opened again: place, order of each producer, checksum and every byte of the body"

// isDamage tells whether err, from reading, is what the run has to report rather
// than what keeps it from being done.
func isDamage(err error) bool { return errors.Is(err, contract.ErrCorrupt) }

// verify opens the store again and reads all back; followers are those that
// read along, damage what they met, if anything.
func (s *session) verify(ctx context.Context, run *load.Run, starts []int64, followers []*follower, damage error) (*load.Run, error) {
	start, total := time.Now(), s.gen.Total()
	v := &run.Verified
	*v = tally(followers)
	v.OK = false
	if v.How = howVerified; len(followers) > 0 {
		v.How = "by each follower as it read, and " + howVerified
	}
	progress := s.cfg.Load.Progress
	err := s.reopen(ctx, false)
	c := newChecker(s)
	if err == nil {
		err = s.readBack(ctx, c, starts, func(done int64) { progress.Tell("read back", done, total) })
	}
	progress.Tell("read back", c.right+c.wrong, total)
	for _, f := range followers {
		c.readBefore(f.check)
	}
	v.Seconds, v.Records, v.Wrong = time.Since(start).Seconds(), c.right, v.Wrong+c.wrong
	if err != nil {
		if !isDamage(err) {
			run.Interrupted = true
			return run, err
		}
		// What was acknowledged cannot be read: the outcome of the run. What
		// stands behind the damage was not looked at.
		v.Wrong++
		c.note(err.Error())
	} else {
		missing := c.missing()
		// Retention took so many; no more can be excused.
		v.Retired = min(missing, c.retired)
		v.Missing += missing - v.Retired
	}
	if damage != nil {
		v.Wrong++
		c.note(damage.Error())
	}
	if v.First == "" && (v.Missing > 0 || v.Wrong > 0) {
		v.First = c.first
	}
	v.OK = v.Missing == 0 && v.Wrong == 0
	return run, nil
}
