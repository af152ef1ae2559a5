package task

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, g *Group, name string, f func(ctx context.Context)) {
	t.Helper()
	if err := g.Go(name, f); err != nil {
		t.Fatal(err)
	}
}

func TestClose(t *testing.T) {
	g := New("store")
	for _, name := range []string{"flush", "clean"} {
		start(t, g, name, func(ctx context.Context) {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), ErrClosed) {
				t.Errorf("cause is %v", context.Cause(ctx))
			}
		})
	}
	if got := g.Running(); !slices.Equal(got, []string{"flush", "clean"}) {
		t.Errorf("running %v", got)
	}
	r := g.Close(t.Context())
	slices.Sort(r.Completed)
	if err := r.Err(); err != nil || !slices.Equal(r.Completed, []string{"clean", "flush"}) {
		t.Errorf("report %+v, %v", r, err)
	}
	if err := g.Go("late", func(context.Context) { t.Error("ran") }); !errors.Is(err, ErrClosed) {
		t.Errorf("late: %v", err)
	}
	if g.Context().Err() == nil {
		t.Error("context goes on")
	}
}

func TestCloseNamesWhatStays(t *testing.T) {
	g := New("store")
	stuck := make(chan struct{})
	start(t, g, "stuck", func(context.Context) { <-stuck })
	start(t, g, "fine", func(ctx context.Context) { <-ctx.Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	r := g.Close(ctx)
	if !slices.Equal(r.Running, []string{"stuck"}) || !slices.Equal(r.Completed, []string{"fine"}) {
		t.Errorf("report %+v", r)
	}
	if err := r.Err(); err == nil || err.Error() != "task: store: still running: stuck" {
		t.Errorf("error %v", err)
	}
	close(stuck)
	r = g.Close(t.Context())
	if err := r.Err(); err != nil || len(r.Completed) != 2 {
		t.Errorf("report %+v, %v", r, err)
	}
}

func TestPanic(t *testing.T) {
	g := New("store")
	told := make(chan Panic, 2)
	g.OnPanic(func(p Panic) { told <- p })
	start(t, g, "bad", func(context.Context) { panic(io.ErrUnexpectedEOF) })
	p := <-told
	start(t, g, "exit", func(context.Context) { runtime.Goexit() })
	<-told
	r := g.Close(t.Context())
	err := r.Err()
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "store/bad panicked") {
		t.Errorf("error %v", err)
	}
	if len(r.Panicked) != 2 || !strings.Contains(string(p.Stack), "TestPanic") {
		t.Errorf("report %+v", r)
	}
}

func TestWait(t *testing.T) {
	g := New("store")
	if err := g.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	var wg sync.WaitGroup
	release := make(chan struct{})
	for range 50 {
		wg.Go(func() {
			for range 20 {
				start(t, g, "worker", func(context.Context) { <-release })
			}
		})
	}
	wg.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(release)
	if err := g.Wait(t.Context()); err != nil || len(g.Running()) != 0 {
		t.Error(err)
	}
	if r := g.Close(t.Context()); !slices.Equal(r.Completed, []string{"worker"}) {
		t.Errorf("report %+v", r)
	}
}
