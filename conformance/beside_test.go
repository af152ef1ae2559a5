package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/conformance/javapeer"
	"github.com/stratalog/stratalog/contract"
)

// TestBeside has the cases in which a Java store is pointed, by mistake, at the
// directory that we have open. It takes the lock only when it starts, after it has
// loaded and recovered, and it deletes what it takes for leftovers.
func TestBeside(t *testing.T) {
	runCases(t, []testCase{
		{group: "f", name: "load-while-idle", run: func(e *env) error { return loadBeside(e, beside{idle: true}) }},
		{group: "f", name: "load-then-roll", run: func(e *env) error { return loadBeside(e, beside{idle: true, roll: true}) }},
		{group: "f", name: "load-while-appending", run: func(e *env) error { return loadBeside(e, beside{}) }},
		{group: "f", name: "load-and-shutdown", run: func(e *env) error { return loadBeside(e, beside{shutdown: true}) }},
		{group: "f", name: "load-mmap", run: func(e *env) error { return loadBeside(e, beside{mmap: true}) }},
		{group: "f", name: "load-then-we-die", run: func(e *env) error { return besideKilled(e, false) }},
		{group: "f", name: "load-and-shutdown-then-we-die", run: func(e *env) error { return besideKilled(e, true) }},
		{group: "f", name: "we-open-beside-java", run: weBesideJava},
	})
}

// beside are the variations.
type beside struct {
	idle     bool // nothing is appended while Java loads
	roll     bool // but behind each load as much as a segment holds
	shutdown bool // Java's store is shut down after it failed to start, as a broker would
	mmap     bool // our other write path
}

// intruder is a Java process that loads a directory of ours. The stores that fail
// to start are not shut down, so that it is replaced now and then: it holds their
// files open.
type intruder struct {
	e     *env
	java  *javapeer.Process
	loads int
}

func (i *intruder) process() (*javapeer.Process, error) {
	if i.java != nil && i.loads%3 != 0 {
		return i.java, nil
	}
	if err := i.end(); err != nil {
		return nil, err
	}
	var err error
	i.java, err = javapeer.Start(i.e.ctx, root, i.e.version, i.e.t.TempDir())
	return i.java, err
}

func (i *intruder) end() error {
	if i.java == nil {
		return nil
	}
	p := i.java
	i.java = nil
	return p.Kill()
}

// intrude has Java load dir, and fail to start.
func (i *intruder) intrude(dir string, s setup, shutdown bool) error {
	e := i.e
	p, err := i.process()
	if err != nil {
		return err
	}
	i.loads++
	store, err := p.Open(e.ctx, dir, s.config(), nil)
	if err != nil {
		return err
	}
	loaded, err := store.Load(e.ctx)
	if err != nil {
		return err
	}
	if loaded {
		var refused *javapeer.Error
		if err := store.Start(e.ctx); !errors.As(err, &refused) || !strings.Contains(refused.Text, "Lock failed") {
			return fmt.Errorf("java starts beside us: %w", err)
		}
	}
	if shutdown {
		return store.Shutdown(e.ctx)
	}
	return nil
}

// loadBeside appends while Java loads the same directory again and again. No
// record that was acknowledged may be lost: not for the running store, not for its
// next open, and not for a Java store that comes when its turn is.
func loadBeside(e *env, how beside) error {
	s := usual()
	s.queueFile = 400
	if how.mmap {
		s.path = stratalog.WriteMmap
	}
	dir := e.dir()
	rng := e.random()
	store, err := openOurs(e.ctx, s.options(dir))
	if err != nil {
		return err
	}
	if _, err := weAppend(e.ctx, store, some(0, 300), nil, nil); err != nil {
		return err
	}
	l := &load{store: store}
	in := &intruder{e: e}
	defer in.end()
	for round := range modeCounts().beside {
		ctx, stop := context.WithCancel(e.ctx)
		if !how.idle {
			l.begin(ctx)
			time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond)
		}
		err := in.intrude(dir, s, how.shutdown)
		if err == nil && !how.idle {
			time.Sleep(time.Duration(rng.IntN(50)) * time.Millisecond)
		}
		stop()
		l.end()
		if err != nil {
			return fmt.Errorf("round %d: %w", round, errors.Join(err, closeOurs(e.ctx, store)))
		}
		if how.idle {
			for i := range 250 {
				if (i == 0 || how.roll) && !l.one(e.ctx, i%3, round+i) {
					break
				}
			}
		}
		if len(l.refused) > 0 {
			break
		}
	}
	running := l.check(e.ctx, store)
	if len(l.refused) > 0 {
		running = errors.Join(l.refused[0], running)
		if _, err := store.Recover(e.ctx); err != nil {
			running = errors.Join(running, fmt.Errorf("recover: %w", err))
		} else {
			running = errors.Join(running, l.check(e.ctx, store))
		}
	}
	running = errors.Join(running, closeBeside(e.ctx, store))
	e.note = fmt.Sprintf("%d loads beside %d appends", modeCounts().beside, len(l.acked))
	if running != nil {
		// It must say so, in time, and nothing may be lost to the next open.
		e.t.Logf("while it ran: %v", running)
		e.note += ", damage noticed: " + kindOf(running)
		if kindOf(running) == "" {
			return fmt.Errorf("an error of no kind that an embedder can tell: %w", running)
		}
	}
	report, seen, err := e.opened(s.options(dir))
	if err != nil {
		return fmt.Errorf("the next open: %w", errors.Join(err, running))
	}
	if err := holds(seen, l.acked); err != nil {
		return fmt.Errorf("lost: after the next open (%s, %s; end %d): %w", report.Log.Start, report.Log.Tail, report.Log.End, errors.Join(err, running))
	}
	if err := e.verifiedDir(s.options(dir)); err != nil {
		return err
	}
	java, err := e.javaReads(dir, s)
	if err != nil {
		return err
	}
	return differs("java", java, seen)
}

// kindOf names what an embedder can tell err by.
func kindOf(err error) string {
	switch {
	case errors.Is(err, contract.ErrFenced):
		return "fenced"
	case isCorrupt(err):
		return "corrupt"
	case errors.Is(err, fs.ErrNotExist):
		return "a file is gone"
	}
	return ""
}

// closeBeside closes a store that may not be able to.
func closeBeside(ctx context.Context, store *stratalog.Store) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return closeOurs(ctx, store)
}

// load appends from some goroutines.
type load struct {
	store   *stratalog.Store
	mu      sync.Mutex
	acked   []sent
	refused []error
	wg      sync.WaitGroup
}

func (l *load) begin(ctx context.Context) {
	for q := range 3 {
		l.wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if !l.one(ctx, q, i) {
					return
				}
			}
		})
	}
}

func (l *load) end() { l.wg.Wait() }

// one appends one message and notes what came of it.
func (l *load) one(_ context.Context, queue, i int) bool {
	m := stratalog.Message{Topic: "beside", QueueID: int32(queue), BornTimestamp: born, Body: body(i, 300+i%400)}
	r, err := l.store.Append(context.Background(), &m, []stratalog.Durability{stratalog.Memory, stratalog.Sync}[i%2])
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.refused = append(l.refused, err)
		return false
	}
	defer time.Sleep(500 * time.Microsecond) // some ten rolls a second
	place, _ := r.Range()
	l.acked = append(l.acked, sent{m, r.QueueOffset(), int64(place.Start), r.StoreTime()})
	return true
}

// check reads in the running store what was acknowledged.
func (l *load) check(ctx context.Context, store *stratalog.Store) error {
	waiting, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := store.WaitVisible(waiting, store.Health().Watermarks.Appended); err != nil {
		return err
	}
	seen, err := oursSees(ctx, store)
	if err != nil {
		return err
	}
	return holds(seen, l.acked)
}

// besideKilled: Java loads beside us, may shut down and so remove our abort file,
// and then we are killed.
func besideKilled(e *env, shutdown bool) error {
	dir := e.dir()
	rng := e.random()
	p := newProgress()
	in := &intruder{e: e}
	defer in.end()
	for round := range modeCounts().beside {
		run := round
		c, err := startChild("appender", dir, run)
		if err != nil {
			return err
		}
		if err := errors.Join(c.expect("opening"), c.expect("started")); err != nil {
			return err
		}
		time.Sleep(time.Duration(rng.IntN(50)) * time.Millisecond)
		err = in.intrude(dir, streamSetup(run), shutdown)
		time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond)
		acks, killed := c.kill()
		if err != nil || killed != nil {
			return fmt.Errorf("round %d: %w", round, errors.Join(err, killed))
		}
		store, err := openOurs(e.ctx, streamSetup(run).options(dir))
		if err != nil {
			return fmt.Errorf("round %d: the next open: %w", round, err)
		}
		report := store.Report()
		err = p.check(acks, ourQueue(e.ctx, store))
		if err = errors.Join(err, closeOurs(e.ctx, store), e.verifiedDir(streamSetup(run).options(dir))); err != nil {
			return fmt.Errorf("round %d, opened with %+v: %w", round, report, err)
		}
	}
	e.note = fmt.Sprintf("%d acked, 0 lost", p.acked)
	return nil
}

// weBesideJava: the other way round the lock must keep us out, and nothing of
// Java's may change.
func weBesideJava(e *env) error {
	s := usual()
	dir := e.dir()
	store, err := e.openJava(e.java, dir, s)
	if err != nil {
		return err
	}
	err = func() error {
		if _, err := e.javaPuts(store, some(0, 100)); err != nil {
			return err
		}
		if err := store.Wait(e.ctx); err != nil {
			return err
		}
		before, err := names(dir)
		if err != nil {
			return err
		}
		ours, err := stratalog.Open(e.ctx, s.options(dir))
		if err == nil {
			return errors.Join(errors.New("we open beside java"), closeOurs(e.ctx, ours))
		}
		after, err := names(dir)
		if err != nil {
			return err
		}
		if !slices.Equal(before, after) {
			return fmt.Errorf("a refused open left %v, before there was %v", after, before)
		}
		java, err := javaSees(e.ctx, store)
		if err != nil {
			return err
		}
		// A reader may look on.
		reader, err := stratalog.OpenReader(e.ctx, s.options(dir), stratalog.ReaderOptions{})
		if err != nil {
			return err
		}
		seen, err := oursSees(e.ctx, reader)
		return errors.Join(err, reader.Close(), differs("our reader", seen, java))
	}()
	return errors.Join(err, store.Shutdown(e.ctx))
}

// names lists the files of a directory, deep.
func names(dir string) ([]string, error) {
	var all []string
	err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		all = append(all, name)
		return err
	})
	return all, err
}
