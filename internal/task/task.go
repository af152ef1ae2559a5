// Package task owns everything that runs.
//
// A Group is handed to whoever starts goroutines. Each has a name; none outlives
// Close unnoticed:
//
//	g := task.New("store")
//	g.Go("flush", func(ctx context.Context) { ... })
//	report := g.Close(ctx)
//	if err := report.Err(); err != nil { ... }
//
// Close tells all to stop and waits until they have, under the one deadline of
// its context. What has not ended by then is named in the report; it still ends
// when it looks at its context.
package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

// ErrClosed is the cause with which the context of a task ends at Close, and
// what Go answers after it.
var ErrClosed = errors.New("task: group is closed")

// maxPanics is how many panics a group keeps for its report: the first ones tell
// what went wrong, and a task that is started again and again must not fill the
// memory.
const maxPanics = 16

// Group owns goroutines. All methods are safe for concurrent use.
type Group struct {
	name   string
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	closed  bool
	next    int
	running map[int]string  // Names by the order of starting.
	done    []string        // Names in the order of ending, each once.
	seen    map[string]bool // The names in done.
	panics  []Panic
	idle    chan struct{} // Closed while nothing runs.
	onPanic func(Panic)
}

// Panic is a task that panicked.
type Panic struct {
	Task  string
	Value any
	Stack []byte
}

// Error tells the task and the value, without the stack.
func (p Panic) Error() string { return fmt.Sprintf("task %s panicked: %v", p.Task, p.Value) }

// Unwrap returns the value if it is an error.
func (p Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// New returns a group without tasks. The name comes before theirs in reports.
func New(name string) *Group {
	g := &Group{name: name, running: map[int]string{}, seen: map[string]bool{}}
	g.ctx, g.cancel = context.WithCancelCause(context.Background())
	g.idle = make(chan struct{})
	close(g.idle)
	return g
}

// Context returns the context that ends when Close begins.
func (g *Group) Context() context.Context { return g.ctx }

// OnPanic has f called, in the goroutine of the task, when a task panics. It is
// for the owner to stop what depends on that task; set it before the first Go.
func (g *Group) OnPanic(f func(Panic)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.onPanic = f
}

// Go runs f in a goroutine. The context ends when Close begins, with the cause
// ErrClosed; f must return soon after. A panic of f ends only f; it is kept for
// the report. After Close has begun f does not run, and Go returns ErrClosed.
func (g *Group) Go(name string, f func(ctx context.Context)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return fmt.Errorf("%w: %s/%s", ErrClosed, g.name, name)
	}
	if len(g.running) == 0 {
		g.idle = make(chan struct{})
	}
	id := g.next
	g.next++
	g.running[id] = name
	go g.run(id, name, f)
	return nil
}

func (g *Group) run(id int, name string, f func(ctx context.Context)) {
	defer g.finish(id, name)
	finished := false
	defer func() {
		// A task that calls runtime.Goexit, as a failing test does, leaves
		// neither a value nor finished.
		if v := recover(); v != nil || !finished {
			g.panicked(Panic{Task: g.name + "/" + name, Value: v, Stack: debug.Stack()})
		}
	}()
	f(g.ctx)
	finished = true
}

func (g *Group) panicked(p Panic) {
	if p.Value == nil {
		p.Value = "runtime.Goexit"
	}
	g.mu.Lock()
	if len(g.panics) < maxPanics {
		g.panics = append(g.panics, p)
	}
	f := g.onPanic
	g.mu.Unlock()
	if f != nil {
		f(p)
	}
}

func (g *Group) finish(id int, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.running, id)
	if !g.seen[name] {
		g.seen[name] = true
		g.done = append(g.done, name)
	}
	if len(g.running) == 0 {
		close(g.idle)
	}
}

// Running returns the names of the tasks that run, in the order of starting.
func (g *Group) Running() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.runningLocked()
}

func (g *Group) runningLocked() []string {
	ids := make([]int, 0, len(g.running))
	for id := range g.running {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, cmp.Compare[int])
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = g.running[id]
	}
	return names
}

// Wait returns when nothing runs, without asking anything to stop, or when ctx
// ends, with its cause.
func (g *Group) Wait(ctx context.Context) error {
	g.mu.Lock()
	idle := g.idle
	g.mu.Unlock()
	select {
	case <-idle:
		return nil
	default:
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close ends the context of all tasks, waits until they have ended or ctx has,
// and reports. It can be called again, to wait on.
func (g *Group) Close(ctx context.Context) Report {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel(ErrClosed)
	_ = g.Wait(ctx) // What is left is told by name.
	g.mu.Lock()
	defer g.mu.Unlock()
	return Report{
		Group:     g.name,
		Completed: slices.Clone(g.done),
		Running:   g.runningLocked(),
		Panicked:  slices.Clone(g.panics),
	}
}

// Report says how a group ended.
type Report struct {
	Group     string
	Completed []string // Ended tasks, panicked ones too; a name that ran often is there once.
	Running   []string // Tasks that had not ended by the deadline.
	Panicked  []Panic  // The first few.
}

// Err returns nil if all tasks ended and none panicked, else an error that
// names the others.
func (r Report) Err() error {
	var errs []error
	if len(r.Running) > 0 {
		errs = append(errs, fmt.Errorf("task: %s: still running: %s", r.Group, strings.Join(r.Running, ", ")))
	}
	for _, p := range r.Panicked {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}
