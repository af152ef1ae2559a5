package stratalog

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// gate is a mutex that is waited for no longer than a context lasts: a recovery
// or a truncation may hang in a sync while it holds it.
type gate chan struct{}

func (g gate) enter(ctx context.Context, op contract.Operation) error {
	select {
	case g <- struct{}{}:
		return nil
	default:
	}
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return contract.NewError(contract.KindTimeout, op, contract.ComponentStore,
			"another stage, a recovery or a truncation is still running", ctx.Err())
	}
}

func (g gate) leave() { <-g }

// CloseReport tells what Close finished and what it did not.
type CloseReport struct {
	// Clean tells that everything is complete and on disk; the next Load has
	// nothing to recover. A lane that is not required, the key index, may be
	// behind all the same: it goes on at the next open.
	Clean bool
	// Watermarks are the log's at the end.
	Watermarks contract.Watermarks
	// Lanes that are behind, by name, with how many bytes.
	Behind map[string]int64
	// Running names background work, and the step of Close itself, that did
	// not end by the deadline. While anything of it runs the directory stays
	// locked.
	Running []string
	// Errors are the failures of single steps, in order; every step was tried.
	Errors []error
}

// closeGrace is how long after the deadline Close waits for steps that notice
// by themselves that it is over.
const closeGrace = 50 * time.Millisecond

// Close drains what was admitted, brings the lanes up to the log, makes
// everything durable, and marks the store as closed well, all within ctx's
// deadline. Every step is tried even if one before failed. A second call
// returns the first one's report.
//
// If a step hangs, in a sync for example, Close returns at the deadline all the
// same. The abort file then stays, and the lock too until what hangs has ended
// or the process has: nobody may write to the directory beside it.
func (s *Store) Close(ctx context.Context) (CloseReport, error) {
	if err := s.life.enter(ctx, contract.OpClose); err != nil {
		return CloseReport{Running: []string{"another call of the store"}, Errors: []error{err}}, err
	}
	defer s.life.leave()
	was := s.now()
	if was == stageClosed {
		return s.closedReport, nil
	}
	s.stage.Store(uint32(stageClosed))
	s.live.Store(nil)
	s.reading.Store(nil)
	if was == stageNew {
		s.closedReport = CloseReport{Clean: true}
		return s.closedReport, nil
	}
	c := &closing{s: s, report: CloseReport{Behind: map[string]int64{}}}
	done := make(chan struct{})
	go func() {
		c.run(ctx, was == stageStarted)
		close(done)
		c.giveBack()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		grace, cancel := context.WithTimeout(context.Background(), closeGrace)
		select {
		case <-done:
		case <-grace.Done():
		}
		cancel()
	}
	s.closedReport = c.leave(ctx)
	return s.closedReport, errors.Join(s.closedReport.Errors...)
}

// closing is one run of Close. Its steps run in a goroutine of their own, which
// Close leaves behind when one hangs.
type closing struct {
	s *Store

	mu     sync.Mutex
	report CloseReport
	step   string // what runs, or ran last; empty when run is through
	left   bool   // Close has returned
	late   bool   // a required lane is behind
	// returned is set by the last step when there is nothing left to give back.
	returned bool
}

// do runs one step, unless Close has left.
func (c *closing) do(name string, f func() error) {
	c.mu.Lock()
	left := c.left
	c.step = name
	c.mu.Unlock()
	if left {
		return
	}
	err := f()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && !c.left {
		c.report.Errors = append(c.report.Errors, err)
	}
}

// good reports whether all steps went well so far.
func (c *closing) good() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.left && len(c.report.Errors) == 0 && !c.late
}

func (c *closing) run(ctx context.Context, started bool) {
	defer c.through()
	s := c.s
	if started {
		c.do("drain", func() error { return s.log.Drain(ctx) })
	}
	c.do("lanes", func() error {
		closed, err := s.dispatcher.Close(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.left {
			return err // the report, and its map, are the caller's by now
		}
		for _, lane := range closed.Behind() {
			c.report.Behind[lane.Lane.String()] = lane.BehindBytes
			c.late = c.late || lane.Required
		}
		return err
	})
	if s.owner != nil {
		c.do("tasks", func() error { return s.owner.Close(ctx).Err() })
		if len(s.owner.Running()) > 0 {
			return // giveBack waits for it
		}
	}
	c.do("queues", s.queues.Close)
	fullUntil := int64(0)
	if s.index != nil {
		fullUntil = s.index.FullUntil()
		c.do("index", s.index.Close)
	}
	if c.good() {
		c.do(checkpointName, func() error { return s.writeCheckpoint(fullUntil) })
	}
	clean := c.good()
	c.do("log", func() error { return s.log.Close(clean) })
	if clean && c.good() {
		c.do(abortName, s.removeAbort)
	}
	clean = clean && c.good()
	c.do(lockName, func() error {
		c.returned = true
		return s.lock.Close()
	})
	c.mu.Lock()
	c.report.Clean = clean && !c.left && len(c.report.Errors) == 0
	c.mu.Unlock()
}

func (c *closing) through() {
	c.mu.Lock()
	c.step = ""
	c.mu.Unlock()
}

// giveBack frees what run did not, once nothing runs any more. Nobody is there
// to hear of a failure.
func (c *closing) giveBack() {
	s := c.s
	if c.returned {
		return
	}
	if s.owner != nil {
		_ = s.owner.Close(context.Background())
	}
	_ = errors.Join(s.queues.Close(), s.closeIndex(), s.log.Close(false), s.lock.Close())
}

// leave ends the run for the caller and returns the report.
func (c *closing) leave(ctx context.Context) CloseReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = true
	r := &c.report
	r.Watermarks = c.s.log.Watermarks()
	if c.s.owner != nil {
		r.Running = c.s.owner.Running()
	}
	if c.step == "" {
		return *r
	}
	r.Clean = false
	r.Running = append(r.Running, "close: "+c.step)
	for _, lane := range c.s.dispatcher.Lanes() {
		if lane.LagBytes > 0 {
			r.Behind[lane.Lane.String()] = lane.LagBytes
		}
	}
	r.Errors = append(slices.Clip(r.Errors), contract.NewError(contract.KindTimeout, contract.OpClose, contract.ComponentStore,
		"the deadline passed while this was running: "+c.step, ctx.Err()))
	return *r
}

// writeCheckpoint writes Java's checkpoint file: up to which store time each
// part is on disk; of the key index, the end of its last full file. It is written when all of it is, and never read by us.
func (s *Store) writeCheckpoint(fullUntil int64) error {
	last := s.log.LastStoreTime()
	c := codec.Checkpoint{PhysicTimestamp: last, LogicsTimestamp: last, IndexTimestamp: fullUntil,
		LogicsPhy: int64(s.log.Durable())}
	page := make([]byte, codec.CheckpointFileSize)
	if _, err := c.Encode(page); err != nil {
		return err
	}
	f, err := s.opt.FS.Open(s.path(checkpointName), vfs.ReadWrite|vfs.Create)
	if err != nil {
		return ioError(contract.OpClose, checkpointName, err)
	}
	_, err = f.WriteAt(page, 0)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if errors.Is(err, errNoSpace) {
		// A full disk is an ordinary state. Without a checkpoint Java reads more.
		err = s.opt.FS.Remove(s.path(checkpointName))
	}
	if err != nil {
		return ioError(contract.OpClose, checkpointName, err)
	}
	return s.opt.FS.SyncDir(s.opt.Dir)
}
