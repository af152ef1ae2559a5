package stratalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// roleHolder opens the store, says how that went, and holds it until its input
// ends.
func roleHolder() error {
	s, err := Open(context.Background(), testOptions(vfs.OS(), os.Getenv(dirVar)))
	switch {
	case errors.Is(err, contract.ErrLocked):
		fmt.Println("locked")
		return nil
	case err != nil:
		return err
	}
	if err := s.Start(context.Background()); err != nil {
		return err
	}
	if _, err := s.Append(context.Background(), &Message{Topic: "t", Body: body(0)}, Sync); err != nil {
		return err
	}
	fmt.Println("owner")
	_, _ = io.Copy(io.Discard, os.Stdin)
	_, err = s.Close(context.Background())
	return err
}

func wantLocked(t *testing.T, opt Options) {
	t.Helper()
	s, err := Open(context.Background(), opt)
	if err == nil {
		abandon(t, s)
		t.Fatal("a second owner")
	}
	var e *contract.Error
	if !errors.Is(err, contract.ErrLocked) || !errors.As(err, &e) || e.Kind != contract.KindLocked || e.Op != contract.OpOpen {
		t.Fatalf("a second open: %v", err)
	}
}

func TestLockOneProcess(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"os": vfs.OS(), "sim": vfs.NewSim()} {
		t.Run(name, func(t *testing.T) {
			opt := testOptions(fs, t.TempDir()+"/store")
			s := start(t, opt)
			r := mustAppend(t, s, &Message{Topic: "t", Body: body(0)}, Sync)
			waitVisible(t, s, endOf(r))
			before := tree(t, fs, opt.Dir)
			for range 3 {
				wantLocked(t, opt)
			}
			sameTree(t, "a refused open", before, tree(t, fs, opt.Dir))

			// A Reader stands beside the owner, and leaves the lock alone.
			rd, err := OpenReader(context.Background(), opt, ReaderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			expect2(t, rd, [][]byte{body(0)})
			more := mustAppend(t, s, &Message{Topic: "t", Body: body(1)}, Sync)
			waitVisible(t, s, endOf(more))
			if err := rd.Refresh(context.Background()); err != nil {
				t.Fatal(err)
			}
			expect2(t, rd, [][]byte{body(0), body(1)})
			if err := rd.Close(); err != nil {
				t.Fatal(err)
			}
			wantLocked(t, opt)
			closeClean(t, s)
			closeClean(t, start(t, opt))
		})
	}
}

func expect2(t *testing.T, s reading, bodies [][]byte) {
	t.Helper()
	all, _, err := follow(s, Request{Topic: "t"})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(bodies) {
		t.Fatalf("%d records, want %d", len(all), len(bodies))
	}
	for i, r := range all {
		if r.body != string(bodies[i]) {
			t.Fatalf("record %d is another one", i)
		}
	}
}

// Many opens at once, on both file systems: one owner at a time.
func TestLockRace(t *testing.T) {
	opt := testOptions(vfs.OS(), t.TempDir())
	closeClean(t, start(t, opt))
	owners := make(chan *Store, 16)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			s, err := Open(context.Background(), opt)
			if err == nil {
				owners <- s
			} else if !errors.Is(err, contract.ErrLocked) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(owners) != 1 {
		t.Fatalf("%d owners", len(owners))
	}
	closeClean(t, <-owners)
}

// A descriptor on the lock file that anybody opens and closes must not take the
// lock along, as it does with the old kind of lock.
func TestLockSecondDescriptor(t *testing.T) {
	opt := testOptions(vfs.OS(), t.TempDir())
	s := start(t, opt)
	for range 3 {
		f, err := os.OpenFile(filepath.Join(opt.Dir, lockName), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		wantLocked(t, opt)
		if c := startChild(t, "holder", opt.Dir); c.line() != "locked" {
			t.Fatal("another process owns the directory too")
		}
	}
	closeClean(t, s)
}

func TestLockTwoProcesses(t *testing.T) {
	opt := testOptions(vfs.OS(), t.TempDir())
	c := startChild(t, "holder", opt.Dir)
	if got := c.line(); got != "owner" {
		t.Fatalf("the child said %q: %s", got, c.stderr.String())
	}
	wantLocked(t, opt)
	if other := startChild(t, "holder", opt.Dir); other.line() != "locked" {
		t.Fatal("two owners")
	}
	rd, err := OpenReader(context.Background(), opt, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var rec Record
	if found, err := rd.GetAt(context.Background(), 0, &rec); err != nil || !found {
		t.Fatalf("reading beside the owner: %v, %v", found, err)
	}
	rec.Release()
	if err := rd.Close(); err != nil {
		t.Fatal(err)
	}
	// A death frees it.
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait()
	s := start(t, opt)
	if !s.Report().Unclean {
		t.Error("the kill left no trace")
	}
	expect(t, s, "t", 0, [][]byte{body(0)})
	closeClean(t, s)
	// An end in order frees it too.
	c = startChild(t, "holder", opt.Dir)
	if got := c.line(); got != "owner" {
		t.Fatalf("the child said %q: %s", got, c.stderr.String())
	}
	_ = c.stdin.Close()
	if err := c.cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, c.stderr.String())
	}
	closeClean(t, start(t, opt))
}
