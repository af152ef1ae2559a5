package dispatch

import (
	"context"
	"time"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/clock"
)

// forever stands for "no bound" of the log.
const forever = contract.Offset(1<<63 - 1)

// Start gives every lane a goroutine of owner, and one more watches the log.
func (d *Dispatcher) Start(owner Owner) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return contract.ErrClosed
	}
	if d.started {
		return stateError(contract.KindInvalid, "Start twice")
	}
	d.started = true
	watchEnd := make(chan struct{})
	if err := owner.Go("dispatch/watch", func(ctx context.Context) {
		defer close(watchEnd)
		d.watch(ctx)
	}); err != nil {
		return err
	}
	d.watchEnd = watchEnd
	for _, l := range d.lanes {
		ended := make(chan struct{})
		if err := owner.Go("dispatch/"+l.id.String(), func(ctx context.Context) {
			defer close(ended)
			l.run(ctx)
		}); err != nil {
			return err
		}
		l.ended = ended
	}
	return nil
}

// watch wakes the lanes whenever more of the log is confirmed. One waits for
// all, so a log need not know how many lanes there are.
func (d *Dispatcher) watch(ctx context.Context) {
	for d.watchUntilKicked(ctx) {
	}
}

// watchUntilKicked watches until Kick; false when there is nothing to watch any
// more. The context serves many waits, so that a wait allocates nothing.
func (d *Dispatcher) watchUntilKicked(ctx context.Context) bool {
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	d.mu.Lock()
	d.kick = cancel
	closed := d.closed
	d.mu.Unlock()
	for {
		beyond := d.log.Confirmed()
		for _, l := range d.snapshot() {
			poke(l.wake)
		}
		if closed {
			return false
		}
		if err := d.log.WaitConfirmed(wait, beyond); err != nil {
			return wait.Err() != nil && ctx.Err() == nil
		}
	}
}

// run is the goroutine of a lane.
func (l *lane) run(ctx context.Context) {
	timer := l.d.clock.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	l.setState(LaneRunning)
	defer l.setState(LaneClosed)
	for {
		wait, again, failed := l.once()
		if again {
			select {
			case <-ctx.Done():
				return
			case <-l.d.stop:
				return
			default:
				continue
			}
		}
		var wake <-chan struct{} = l.wake
		if failed {
			wake = nil // More log does not shorten the wait after a failure.
		}
		if !l.sleep(ctx, timer, wait, wake) {
			return
		}
	}
}

// once takes one turn. It reports whether there is more to do at once, else how
// long to wait at most, 0 meaning until woken, and whether the turn failed.
func (l *lane) once() (wait time.Duration, again, failed bool) {
	l.turn.Lock()
	defer l.turn.Unlock()
	moved := false
	var err error
	if !l.paused.Load() {
		moved, err = l.step(forever)
	}
	if e := l.persistIfDue(); err == nil {
		err = e
	}
	l.noteTurn(err)
	if err != nil {
		l.setState(LaneFailed)
		l.backoff = min(max(2*l.backoff, l.d.opts.BackoffMin), l.d.opts.BackoffMax)
		return l.backoff, false, true
	}
	l.backoff = 0
	l.setState(LaneRunning)
	if moved {
		return 0, true, false
	}
	if l.unsaved() {
		return max(l.savedAt+l.opts.PersistEvery-l.d.clock.Mono(), time.Millisecond), false, false
	}
	return 0, false, false
}

// sleep waits until woken, or for wait if it is not 0. It reports false when
// the lane has to end.
func (l *lane) sleep(
	ctx context.Context, timer clock.Timer, wait time.Duration, wake <-chan struct{},
) bool {
	var due <-chan time.Time
	if wait > 0 {
		// Mostly it is set for that time already: it was woken by the log.
		if at := l.d.clock.Mono() + wait; l.armed == 0 || at < l.armed || at > l.armed+time.Millisecond {
			timer.Reset(wait)
			l.armed = at
		}
		due = timer.C()
	} else if l.armed != 0 {
		timer.Stop()
		l.armed = 0
	}
	select {
	case <-ctx.Done():
		return false
	case <-l.d.stop:
		return false
	case <-wake:
	case <-l.urge:
	case <-due:
		l.armed = 0
	}
	return true
}
