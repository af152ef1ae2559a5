package clock

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Manual is a clock that a test moves. Its two times move together, but the
// wall clock can be set apart.
type Manual struct {
	mu     sync.Mutex
	wall   time.Time
	mono   time.Duration
	timers []*manualTimer // Pending ones, the next first; equal ones in the order made.
	joined chan struct{}  // Closed, and replaced, when a timer becomes pending.
}

var _ Clock = (*Manual)(nil)

// NewManual returns a clock that stands at wall.
func NewManual(wall time.Time) *Manual {
	return &Manual{wall: wall.Round(0), joined: make(chan struct{})}
}

// Now implements Clock.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wall
}

// Mono implements Clock.
func (m *Manual) Mono() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mono
}

// SetWall sets the wall clock, forward or back, and wakes nobody.
func (m *Manual) SetWall(t time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wall = t.Round(0)
}

// Advance moves both times on by d, stopping at each timer that is due on the
// way: what it wakes sees the very time it waited for. Timers fire in the order
// of their time, and functions given to AfterFunc have returned before Advance
// goes on; timers that they start are due too. Such a function must not call
// Advance.
func (m *Manual) Advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	end := m.mono + max(d, 0)
	for len(m.timers) > 0 && m.timers[0].at <= end {
		t := m.timers[0]
		m.timers = slices.Delete(m.timers, 0, 1)
		t.pending = false
		m.move(max(t.at, m.mono))
		if t.f == nil {
			t.c <- m.wall
			continue
		}
		m.mu.Unlock()
		t.f()
		m.mu.Lock()
	}
	m.move(max(end, m.mono))
}

func (m *Manual) move(to time.Duration) {
	m.wall = m.wall.Add(to - m.mono)
	m.mono = to
}

// Waiting returns how many timers are pending, sleepers among them.
func (m *Manual) Waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.timers)
}

// WaitFor returns once at least n timers are pending, so that a test knows that
// those it wants to wake have gone to sleep; or when ctx ends.
func (m *Manual) WaitFor(ctx context.Context, n int) error {
	for {
		m.mu.Lock()
		enough, joined := len(m.timers) >= n, m.joined
		m.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-joined:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// NewTimer implements Clock.
func (m *Manual) NewTimer(d time.Duration) Timer {
	t := &manualTimer{m: m, c: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

// AfterFunc implements Clock, but for that f runs within Advance. With no time
// to wait it runs at the next Advance, of 0 too.
func (m *Manual) AfterFunc(d time.Duration, f func()) Timer {
	t := &manualTimer{m: m, f: f}
	t.Reset(d)
	return t
}

// Sleep implements Clock.
func (m *Manual) Sleep(ctx context.Context, d time.Duration) error { return sleep(ctx, m, d) }

type manualTimer struct {
	m       *Manual
	c       chan time.Time // Nil with f.
	f       func()
	at      time.Duration // Guarded by m.mu.
	pending bool          // Guarded by m.mu.
}

func (t *manualTimer) C() <-chan time.Time { return t.c }

func (t *manualTimer) Stop() bool {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	return t.stop()
}

func (t *manualTimer) stop() bool {
	was := t.pending
	if was {
		t.m.timers = slices.DeleteFunc(t.m.timers, func(o *manualTimer) bool { return o == t })
		t.pending = false
	}
	if t.c != nil {
		select {
		case <-t.c:
		default:
		}
	}
	return was
}

func (t *manualTimer) Reset(d time.Duration) bool {
	m := t.m
	m.mu.Lock()
	defer m.mu.Unlock()
	was := t.stop()
	t.at = m.mono + max(d, 0)
	if d <= 0 && t.f == nil {
		t.c <- m.wall
		return was
	}
	t.pending = true
	i, _ := slices.BinarySearchFunc(m.timers, t.at+1, func(o *manualTimer, at time.Duration) int {
		return cmp.Compare(o.at, at)
	})
	m.timers = slices.Insert(m.timers, i, t)
	close(m.joined)
	m.joined = make(chan struct{})
	return was
}
