package clock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func fired(t Timer) bool {
	select {
	case <-t.C():
		return true
	default:
		return false
	}
}

func TestManualTimes(t *testing.T) {
	m := NewManual(start)
	m.Advance(90 * time.Second)
	if m.Mono() != 90*time.Second || !m.Now().Equal(start.Add(90*time.Second)) {
		t.Errorf("mono %v, wall %v", m.Mono(), m.Now())
	}
	m.SetWall(start.Add(-time.Hour))
	m.Advance(time.Second)
	if m.Mono() != 91*time.Second || !m.Now().Equal(start.Add(time.Second-time.Hour)) {
		t.Errorf("mono %v, wall %v", m.Mono(), m.Now())
	}
	m.Advance(-time.Hour)
	if m.Mono() != 91*time.Second {
		t.Errorf("went back to %v", m.Mono())
	}
}

func TestManualTimer(t *testing.T) {
	m := NewManual(start)
	a := m.NewTimer(time.Second)
	m.Advance(time.Second - 1)
	if fired(a) {
		t.Error("early")
	}
	m.Advance(1)
	if !fired(a) || fired(a) || a.Stop() {
		t.Error("not once")
	}
	if a.Reset(time.Second) {
		t.Error("was not pending")
	}
	if !a.Reset(3*time.Second) || !a.Stop() {
		t.Error("was pending")
	}
	m.Advance(time.Hour)
	if fired(a) {
		t.Error("stopped, but fired")
	}
	a.Reset(time.Second)
	m.Advance(time.Second)
	a.Reset(time.Second)
	if fired(a) {
		t.Error("fired from before the reset")
	}
	if !a.Stop() || !fired(m.NewTimer(0)) || !fired(m.NewTimer(-1)) || m.Waiting() != 0 {
		t.Error("a timer without time must fire at once")
	}
}

func TestManualOrder(t *testing.T) {
	m := NewManual(start)
	var seen []string
	note := func(name string) func() {
		return func() { seen = append(seen, fmt.Sprint(name, m.Mono())) }
	}
	m.AfterFunc(2*time.Second, note("b"))
	m.AfterFunc(time.Second, func() {
		note("a")()
		m.AfterFunc(time.Second, note("d"))
	})
	m.AfterFunc(2*time.Second, note("c"))
	never := m.AfterFunc(2*time.Second, note("x"))
	late := m.AfterFunc(4*time.Second, note("e"))
	if !never.Stop() {
		t.Error("was pending")
	}
	m.Advance(3 * time.Second)
	if got := strings.Join(seen, " "); got != "a1s b2s c2s d2s" {
		t.Errorf("saw %q", got)
	}
	late.Stop()
}

func TestManualSleep(t *testing.T) {
	m := NewManual(start)
	done := make(chan error)
	go func() { done <- m.Sleep(t.Context(), time.Minute) }()
	if err := m.WaitFor(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	m.Advance(time.Minute)
	if err := <-done; err != nil {
		t.Error(err)
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { done <- m.Sleep(ctx, time.Minute) }()
	if err := m.WaitFor(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	cancel(cause)
	if err := <-done; !errors.Is(err, cause) {
		t.Error(err)
	}
	if err := m.Sleep(ctx, 0); !errors.Is(err, cause) {
		t.Error(err)
	}
	if err := m.WaitFor(ctx, 1); !errors.Is(err, cause) {
		t.Error(err)
	}
}

func TestReal(t *testing.T) {
	c := Real()
	if d := time.Since(c.Now()); d < 0 || d > time.Minute {
		t.Errorf("now is %v off", d)
	}
	a := c.Mono()
	if err := c.Sleep(t.Context(), 5*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if b := c.Mono(); b-a < 5*time.Millisecond {
		t.Errorf("slept %v", b-a)
	}
	called := make(chan bool)
	timer := c.AfterFunc(time.Millisecond, func() { close(called) })
	<-called
	if timer.Stop() {
		t.Error("was not pending")
	}
	long := c.NewTimer(time.Hour)
	if !long.Reset(time.Millisecond) {
		t.Error("was pending")
	}
	<-long.C()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
