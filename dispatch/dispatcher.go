package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/clock"
)

// Dispatcher feeds the lanes of one log. All methods are safe for concurrent
// use, but Add and CatchUp come before Start.
type Dispatcher struct {
	log     Log
	cursors CursorStore
	clock   clock.Clock
	opts    Options

	// mu guards the fields below.
	mu       sync.Mutex
	lanes    []*lane // Only appended to, before Start.
	started  bool
	closed   bool
	waiters  int
	changed  chan struct{} // Closed and replaced when a lane moved and somebody waits.
	kick     context.CancelFunc
	stop     chan struct{} // Closed when Close begins.
	watchEnd chan struct{} // Closed when the watcher has ended; nil before Start.
}

// New returns a dispatcher without lanes. It starts nothing.
func New(log Log, cursors CursorStore, c clock.Clock, opts Options) *Dispatcher {
	return &Dispatcher{
		log: log, cursors: cursors, clock: c, opts: opts.withDefaults(),
		changed: make(chan struct{}), stop: make(chan struct{}),
	}
}

// find returns the lane's state.
func (d *Dispatcher) find(id contract.Lane) (*lane, error) {
	for _, l := range d.snapshot() {
		if l.id == id {
			return l, nil
		}
	}
	return nil, stateError(contract.KindNotFound, "no lane "+id.String())
}

func (d *Dispatcher) snapshot() []*lane {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lanes
}

// Frontier returns the position up to which every required lane shows its
// effects; without a required lane, what the log confirms.
func (d *Dispatcher) Frontier() contract.Offset {
	frontier := contract.Offset(-1)
	for _, l := range d.snapshot() {
		if !l.opts.Required {
			continue
		}
		if at := l.appliedNext(); frontier < 0 || at < frontier {
			frontier = at
		}
	}
	if frontier < 0 {
		return d.log.Confirmed()
	}
	return frontier
}

// WaitFrontier waits until the frontier is at or above off.
func (d *Dispatcher) WaitFrontier(ctx context.Context, off contract.Offset) error {
	for {
		d.mu.Lock()
		changed, closed := d.changed, d.closed
		d.waiters++
		d.mu.Unlock()
		done := d.Frontier() >= off
		var err error
		if !done && closed {
			err = contract.ErrClosed
		} else if !done {
			select {
			case <-changed:
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		d.mu.Lock()
		d.waiters--
		d.mu.Unlock()
		if done || err != nil {
			return err
		}
	}
}

// moved wakes those who wait for the frontier.
func (d *Dispatcher) moved() {
	d.mu.Lock()
	if d.waiters > 0 {
		close(d.changed)
		d.changed = make(chan struct{})
	}
	d.mu.Unlock()
}

// Lanes returns the status of every lane, in the order of Add.
func (d *Dispatcher) Lanes() []LaneStatus {
	var out []LaneStatus
	for _, l := range d.snapshot() {
		out = append(out, l.report())
	}
	return out
}

// Status returns the status of one lane.
func (d *Dispatcher) Status(id contract.Lane) (LaneStatus, error) {
	l, err := d.find(id)
	if err != nil {
		return LaneStatus{}, err
	}
	return l.report(), nil
}

// Pause stops a lane; it returns when the batch in work is done. The lane's
// cursor is still saved.
func (d *Dispatcher) Pause(id contract.Lane) error {
	l, err := d.find(id)
	if err != nil {
		return err
	}
	l.paused.Store(true)
	l.turn.Lock()
	defer l.turn.Unlock()
	return nil
}

// Resume lets a paused lane go on.
func (d *Dispatcher) Resume(id contract.Lane) error {
	l, err := d.find(id)
	if err != nil {
		return err
	}
	l.paused.Store(false)
	poke(l.urge)
	return nil
}

// Kick makes every lane look at the log again: after it was cut, and when a
// cause of failure was removed and nobody wants to wait for the next try.
func (d *Dispatcher) Kick() {
	d.mu.Lock()
	if d.kick != nil {
		d.kick()
	}
	d.mu.Unlock()
	for _, l := range d.snapshot() {
		poke(l.urge)
	}
}

// Rebuild takes a lane back to from, or to the log's first record if that is
// higher, or to the end of what the sink holds durably if that is lower. The lowered cursor is saved first; then reset runs, if not nil, and
// may drop the sink's state; then the lane applies everything again. A crash in
// between leaves a lane that is behind and not one with a hole.
func (d *Dispatcher) Rebuild(id contract.Lane, from contract.Offset, reset func() error) error {
	l, err := d.find(id)
	if err != nil {
		return err
	}
	if from > d.log.Durable() {
		return stateError(contract.KindInvalid,
			fmt.Sprintf("rebuild of lane %s from %d: beyond what is durable", id, from))
	}
	l.turn.Lock()
	defer l.turn.Unlock()
	// Never forward: what is applied and not flushed yet must come again, or a
	// power cut would leave it out.
	start, err := d.startAt(id, max(min(from, l.safe.Next), d.log.MinOffset()))
	if err != nil {
		return err
	}
	if err := d.cursors.SaveCursor(start); err != nil {
		return &LaneError{Lane: id, At: start.Next, Cause: err}
	}
	l.restart(start)
	d.moved()
	l.setPersisted(start)
	if reset != nil {
		err = reset()
	}
	poke(l.urge)
	return err
}

// startAt returns a cursor at off in the log's current epoch.
func (d *Dispatcher) startAt(id contract.Lane, off contract.Offset) (contract.Cursor, error) {
	table := d.log.Epochs()
	if len(table) == 0 {
		return contract.Cursor{}, &LaneError{Lane: id, At: off, Cause: contract.ErrCursorEpoch}
	}
	return contract.Cursor{Lane: id, Epoch: table[len(table)-1].Epoch, Next: off}, nil
}

// Persist flushes every lane and saves its cursor now, as far as the log is
// durable. An owner calls it after the log's last sync.
func (d *Dispatcher) Persist() error {
	var errs []error
	for _, l := range d.snapshot() {
		l.turn.Lock()
		errs = append(errs, l.persist())
		l.turn.Unlock()
	}
	return errors.Join(errs...)
}

// CatchUpReport says what CatchUp did for one lane.
type CatchUpReport struct {
	Lane       contract.Lane
	From       contract.Offset
	To         contract.Offset
	Records    uint64
	Duplicates uint64
	Took       time.Duration
	// Err is the reason why the lane stopped short of what was confirmed.
	Err error
}

// CatchUp runs every lane, one after the other, up to what the log confirms at
// the time of the call. A lane that fails is reported, and the others go on;
// the error joins those of the required lanes.
func (d *Dispatcher) CatchUp(ctx context.Context) ([]CatchUpReport, error) {
	d.mu.Lock()
	started, closed := d.started, d.closed
	d.mu.Unlock()
	if closed {
		return nil, contract.ErrClosed
	}
	if started {
		return nil, stateError(contract.KindInvalid, "CatchUp after Start")
	}
	target := d.log.Confirmed()
	var reports []CatchUpReport
	var errs []error
	for _, l := range d.snapshot() {
		r := l.catchUp(ctx, target, false, nil)
		reports = append(reports, r)
		if r.Err != nil && l.opts.Required {
			errs = append(errs, r.Err)
		}
	}
	return reports, errors.Join(errs...)
}

// Fill is CatchUp for one lane, however far it is behind, and saves its cursor at
// the end. progress, if not nil, is told after each batch how far it has come.
func (d *Dispatcher) Fill(ctx context.Context, id contract.Lane, progress func(contract.Offset)) (CatchUpReport, error) {
	d.mu.Lock()
	started, closed := d.started, d.closed
	d.mu.Unlock()
	if closed {
		return CatchUpReport{}, contract.ErrClosed
	}
	if started {
		return CatchUpReport{}, stateError(contract.KindInvalid, "Fill after Start")
	}
	l, err := d.find(id)
	if err != nil {
		return CatchUpReport{}, err
	}
	r := l.catchUp(ctx, d.log.Confirmed(), true, progress)
	if r.Err == nil {
		l.turn.Lock()
		r.Err = l.persist()
		l.turn.Unlock()
	}
	return r, r.Err
}
