// Package clock is where time comes from.
//
// There are two times. The wall clock says when something was stored; it may
// jump both ways, so that only retention and lookups by time use it. The
// monotonic one measures; it never goes back. Real is the machine's; Manual
// stands still until a test moves it.
package clock

import (
	"context"
	"time"
)

// Clock tells the time and wakes up those who wait. All methods are safe for
// concurrent use.
type Clock interface {
	// Now returns the wall-clock time.
	Now() time.Time
	// Mono returns the time since the clock was made. It never goes back and
	// does not follow the wall clock when that is set.
	Mono() time.Duration
	// NewTimer returns a timer that sends once on its channel after d.
	NewTimer(d time.Duration) Timer
	// AfterFunc has f called in a goroutine of its own after d. The Timer can
	// cancel the call; its channel is nil.
	AfterFunc(d time.Duration, f func()) Timer
	// Sleep returns nil after d, or the cause why ctx ended before that.
	Sleep(ctx context.Context, d time.Duration) error
}

// Timer is a pending wake-up.
type Timer interface {
	// C returns the channel on which the time comes. After Stop or Reset
	// returns, nothing from before it comes.
	C() <-chan time.Time
	// Stop cancels the timer and tells whether it was still pending.
	Stop() bool
	// Reset starts the timer again with d and tells whether it was still
	// pending.
	Reset(d time.Duration) bool
}

// Real returns the clock of this machine.
func Real() Clock { return realClock{start: time.Now()} }

type realClock struct{ start time.Time }

func (c realClock) Now() time.Time      { return time.Now() }
func (c realClock) Mono() time.Duration { return time.Since(c.start) }

func (c realClock) NewTimer(d time.Duration) Timer { return realTimer{time.NewTimer(d)} }

func (c realClock) AfterFunc(d time.Duration, f func()) Timer {
	return realTimer{time.AfterFunc(d, f)}
}

func (c realClock) Sleep(ctx context.Context, d time.Duration) error {
	return sleep(ctx, c, d)
}

type realTimer struct{ t *time.Timer }

func (t realTimer) C() <-chan time.Time        { return t.t.C }
func (t realTimer) Stop() bool                 { return t.t.Stop() }
func (t realTimer) Reset(d time.Duration) bool { return t.t.Reset(d) }

func sleep(ctx context.Context, c Clock, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
