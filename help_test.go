package stratalog

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/clock"
	"github.com/stratalog/stratalog/internal/vfs"
)

// patience is how long a test waits for something that must come; no test
// asserts a time.
const patience = 60 * time.Second

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// ended is a context that is over.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// until runs step until done holds.
func until(t testing.TB, what string, done func() bool, step func()) {
	t.Helper()
	ctx := within(t)
	for !done() {
		if ctx.Err() != nil {
			t.Fatalf("never: %s", what)
		}
		if step != nil {
			step()
		}
		runtime.Gosched()
	}
}

func manual() *clock.Manual { return clock.NewManual(time.Unix(1_700_000_000, 0)) }

// abandon ends a store's goroutines without a close in order.
func abandon(t testing.TB, s *Store) {
	t.Helper()
	_, _ = s.Close(ended())
	waitUnlocked(t, s)
}

// waitUnlocked waits until what a failed Close left behind has ended.
func waitUnlocked(t testing.TB, s *Store) {
	t.Helper()
	until(t, "the lock is given back", func() bool {
		l, err := s.opt.FS.Lock(s.path(lockName))
		if err != nil {
			return !errors.Is(err, vfs.ErrLocked)
		}
		return l.Close() == nil
	}, nil)
}

func tags(tag string) []byte { return []byte("TAGS\x01" + tag + "\x02") }

// reading is what a Store and a Reader have in common.
type reading interface {
	Get(ctx context.Context, req Request, out *Records) error
	GetAt(ctx context.Context, off Offset, out *Record) (bool, error)
	Topics() []string
	Queues(topic string) []int32
	QueueRange(topic string, queueID int32) (int64, int64)
	QueryKey(ctx context.Context, q Query, out *Matches) error
}

// keyOf is the key of the i-th message of those that have some, and keysOf its
// properties.
func keyOf(i int) string { return fmt.Sprint("k", i%5) }

func keysOf(i int) []byte { return []byte("KEYS\x01" + keyOf(i) + " x\x02") }

// waitIndexed waits until the key index has come as far as the queues.
func waitIndexed(t testing.TB, s *Store) {
	t.Helper()
	until(t, "the key index follows", func() bool {
		at, err := s.indexed()
		return err != nil || at >= s.dispatcher.Frontier()
	}, nil)
}

// byKey are the places of the records with a key, newest first, asked for a few
// at a time.
func byKey(s reading, q Query) ([]int64, Matches, error) {
	var out Matches
	defer out.Release()
	var all []int64
	for {
		q.MaxCount = 3
		err := s.QueryKey(context.Background(), q, &out)
		for i := range out.Len() {
			all = append(all, out.At(i).PhysicalOffset())
		}
		if err != nil || !out.More {
			return all, out, err
		}
		q.After = out.Next
	}
}

// seen is one record that a loop over Next saw.
type seen struct {
	at    int64
	start int64
	body  string
}

// follow reads a queue from offset from on by following Next, until it is told
// that there is nothing more.
func follow(s reading, req Request) ([]seen, Records, error) {
	var out Records
	defer out.Release()
	var all []seen
	for steps := 0; ; steps++ {
		if err := s.Get(context.Background(), req, &out); err != nil {
			return all, out, err
		}
		for i := range out.Len() {
			r := out.At(i)
			all = append(all, seen{r.QueueOffset(), r.PhysicalOffset(), string(r.Body())})
		}
		switch out.Status {
		case contract.GetOffsetOverflowOne, contract.GetNoMatchedLogicQueue, contract.GetNoMessageInQueue:
			return all, out, nil
		case contract.GetOffsetOverflowBadly:
			if steps > 0 {
				return all, out, fmt.Errorf("following Next led beyond the end, to %d of %d", req.Offset, out.Max)
			}
		}
		if out.Next <= req.Offset && out.Status != contract.GetOffsetReset && out.Status != contract.GetOffsetOverflowBadly {
			return all, out, fmt.Errorf("%v at %d: next is %d", out.Status, req.Offset, out.Next)
		}
		req.Offset, req.Epoch = out.Next, out.Epoch
	}
}

// answers is everything that s answers by queue, as text.
func answers(s reading) (string, error) {
	var b strings.Builder
	for _, topic := range s.Topics() {
		for _, q := range s.Queues(topic) {
			first, end := s.QueueRange(topic, q)
			fmt.Fprintf(&b, "%s/%d [%d,%d)\n", topic, q, first, end)
			all, out, err := follow(s, Request{Topic: topic, QueueID: q})
			if err != nil {
				return b.String(), fmt.Errorf("%s/%d: %w", topic, q, err)
			}
			for _, r := range all {
				fmt.Fprintf(&b, " %d at %d %x\n", r.at, r.start, sha256.Sum256([]byte(r.body)))
			}
			fmt.Fprintf(&b, " %v %d\n", out.Status, out.Next)
		}
		for i := range 5 {
			found, _, err := byKey(s, Query{Topic: topic, Key: keyOf(i)})
			if err != nil && !errors.Is(err, contract.ErrUnsupported) {
				return b.String(), fmt.Errorf("%s, key %s: %w", topic, keyOf(i), err)
			}
			fmt.Fprintf(&b, " %s %v\n", keyOf(i), found)
		}
	}
	return b.String(), nil
}

func mustAnswers(t testing.TB, s reading) string {
	t.Helper()
	a, err := answers(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// rebuilt is what a store says whose queues and cursors are made anew from its
// log. image is changed.
func rebuilt(image vfs.FS, opt Options) (string, error) {
	if err := removeAll(image, path.Join(opt.Dir, queueDirName)); err != nil {
		return "", err
	}
	if err := removeAll(image, path.Join(opt.Dir, "stratalog", "cursors")); err != nil {
		return "", err
	}
	opt.FS = image
	s, err := Open(context.Background(), opt)
	if err != nil {
		return "", fmt.Errorf("full rebuild: %w", err)
	}
	a, err := answers(s)
	_, cerr := s.Close(context.Background())
	return a, errors.Join(err, cerr)
}

func removeAll(fsys vfs.FS, name string) error {
	info, err := fsys.Stat(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && info.IsDir {
		var list []vfs.DirEntry
		list, err = fsys.ReadDir(name)
		for _, e := range list {
			err = errors.Join(err, removeAll(fsys, path.Join(name, e.Name)))
		}
	}
	return errors.Join(err, fsys.Remove(name))
}

func readFile(t testing.TB, fsys vfs.FS, name string) []byte {
	t.Helper()
	f, err := fsys.Open(name, vfs.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, info.Size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, info.Size), b); err != nil {
		t.Fatal(err)
	}
	return b
}

// writeFile replaces a file's bytes from off on; with cut it ends behind them.
func writeFile(t testing.TB, fsys vfs.FS, name string, off int64, b []byte, cut bool) {
	t.Helper()
	f, err := fsys.Open(name, vfs.ReadWrite|vfs.Create)
	if err == nil {
		_, err = f.WriteAt(b, off)
		if cut && err == nil {
			err = f.Truncate(off + int64(len(b)))
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// copyTree copies what lies below from.
func copyTree(t testing.TB, src vfs.FS, from string, dst vfs.FS, to string) {
	t.Helper()
	if err := dst.MkdirAll(to); err != nil {
		t.Fatal(err)
	}
	list, err := src.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.IsDir {
			copyTree(t, src, path.Join(from, e.Name), dst, path.Join(to, e.Name))
			continue
		}
		writeFile(t, dst, path.Join(to, e.Name), 0, readFile(t, src, path.Join(from, e.Name)), true)
	}
}

// tree is a store's directory without the lock file, whose name is no state.
func tree(t testing.TB, fsys vfs.FS, root string) []vfs.TreeEntry {
	t.Helper()
	entries, err := vfs.Tree(fsys, root)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(entries, func(e vfs.TreeEntry) bool { return e.Path == lockName })
}

func sameTree(t testing.TB, what string, before, after []vfs.TreeEntry) {
	t.Helper()
	if slices.Equal(before, after) {
		return
	}
	for _, e := range after {
		if !slices.Contains(before, e) {
			t.Errorf("%s changed %+v", what, e)
		}
	}
	for _, e := range before {
		if !slices.Contains(after, e) {
			t.Errorf("%s: before it was %+v", what, e)
		}
	}
	t.FailNow()
}

func mustAppend(t testing.TB, s *Store, m *Message, d Durability) Receipt {
	t.Helper()
	r, err := s.Append(context.Background(), m, d)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return r
}

func endOf(r Receipt) Offset {
	place, _ := r.Range()
	return place.End
}

// waitVisible waits until everything below off is in its queue.
func waitVisible(t testing.TB, s *Store, off Offset) {
	t.Helper()
	if err := s.WaitVisible(within(t), off); err != nil {
		t.Fatalf("visible at %d: %v: %+v", off, err, s.Health())
	}
}

// The test binary runs itself in other roles, in a process of its own.
const (
	roleVar = "STRATALOG_TEST_ROLE"
	dirVar  = "STRATALOG_TEST_DIR"
	runVar  = "STRATALOG_TEST_RUN"
)

func runRole(role string) int {
	f, ok := map[string]func() error{"appender": roleAppender, "holder": roleHolder, "idle": roleIdle}[role]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such role:", role)
		return 2
	}
	if err := f(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// roleIdle tells what runs before anything was asked for.
func roleIdle() error {
	fmt.Println("goroutines", runtime.NumGoroutine())
	return nil
}

// child is a process that plays a role.
type child struct {
	cmd    *exec.Cmd
	out    *bufio.Reader
	stdin  io.WriteCloser
	stderr strings.Builder
}

func startChild(t testing.TB, role, dir string, env ...string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), append(env, roleVar+"="+role, dirVar+"="+dir)...)
	c.cmd.Stderr = &c.stderr
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		c.stdin, err = c.cmd.StdinPipe()
	}
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReaderSize(out, 1<<16)
	t.Cleanup(func() {
		if c.cmd.ProcessState == nil {
			_ = c.cmd.Process.Kill()
			_ = c.cmd.Wait()
		}
	})
	return c
}

// line returns the next line of the child's output, without its end; empty
// when there is none.
func (c *child) line() string {
	s, err := c.out.ReadString('\n')
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(s, "\n")
}
