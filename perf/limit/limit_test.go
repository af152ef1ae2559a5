package limit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

const testSize = 16 << 20

func open(t *testing.T, path string, opt Options) *Log {
	t.Helper()
	l, err := Open(path, testSize, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // most tests close it themselves
	return l
}

func body(p, n int) []byte {
	b := bytes.Repeat([]byte{byte(p), byte(n)}, 4+(p*7+n*13)%300)
	binary.LittleEndian.PutUint32(b, uint32(p))
	binary.LittleEndian.PutUint32(b[4:], uint32(n))
	return b
}

// contents checks that l holds want records of each producer, in order, and
// nothing else, by scan and by number.
func contents(t *testing.T, l *Log, producers, want int) {
	t.Helper()
	next := make([]int, producers)
	i := 0
	if err := l.Scan(func(b []byte) error {
		p := int(binary.LittleEndian.Uint32(b))
		if p >= producers || !bytes.Equal(b, body(p, next[p])) {
			return fmt.Errorf("record %d of producer %d is wrong", i, p)
		}
		next[p]++
		if again, err := l.Read(i); err != nil || !bytes.Equal(again, b) {
			return fmt.Errorf("Read(%d) = %d bytes, %v", i, len(again), err)
		}
		i++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for p, n := range next {
		if n != want {
			t.Errorf("producer %d: %d records found, want %d", p, n, want)
		}
	}
	if l.Len() != producers*want {
		t.Errorf("Len = %d, want %d", l.Len(), producers*want)
	}
	if _, err := l.Read(l.Len()); !errors.Is(err, ErrBad) {
		t.Errorf("a read behind the end: %v, want ErrBad", err)
	}
}

// Producers that come and go: each wakes the committer alone, in a small group,
// in a large one.
func TestConcurrentAppends(t *testing.T) {
	for _, opt := range []Options{{}, {NoGather: true}} {
		path := filepath.Join(t.TempDir(), "log")
		l := open(t, path, opt)
		const producers, each = 32, 60
		var wg sync.WaitGroup
		for p := range producers {
			wg.Go(func() {
				time.Sleep(time.Duration(p/8) * 5 * time.Millisecond)
				for n := range each {
					if err := l.Append(body(p, n)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		ended := make(chan struct{})
		go func() { wg.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("a producer was not woken")
		}
		if s := l.Syncs(); s < each || s > producers*each {
			t.Errorf("%d syncs for %d records of %d producers", s, producers*each, producers)
		}
		contents(t, l, producers, each)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		contents(t, open(t, path, opt), producers, each)
	}
}

// Records that nobody waits for are answered once, when they are in the log, and
// share syncs with those that somebody waits for.
func TestSubmit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := open(t, path, Options{})
	const producers, each = 6, 200
	var answers sync.WaitGroup
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for n := range each {
				if p%2 == 0 {
					if err := l.Append(body(p, n)); err != nil {
						t.Error(err)
					}
					continue
				}
				answers.Add(1)
				b := body(p, n)
				err := l.Submit(b, func(err error) {
					if err != nil {
						t.Error(err)
					}
					answers.Done()
				})
				if err != nil {
					t.Error(err)
				}
				clear(b)
			}
		})
	}
	wg.Wait()
	answers.Wait()
	if l.Syncs() == 0 || l.Syncs() >= producers*each {
		t.Errorf("%d syncs for %d records", l.Syncs(), producers*each)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Submit(nil, func(error) { t.Error("a record that was refused is answered") }); !errors.Is(err, ErrClosed) {
		t.Errorf("Submit behind Close: %v", err)
	}
	contents(t, open(t, path, Options{}), producers, each)
}

func TestLoneProducerSyncsEach(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "log"), Options{})
	for n := range 50 {
		if err := l.Append(body(0, n)); err != nil {
			t.Fatal(err)
		}
		if l.Syncs() != int64(n+1) {
			t.Fatalf("%d syncs after %d records", l.Syncs(), n+1)
		}
	}
}

func TestNoSync(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := open(t, path, Options{})
	for n := range 1000 {
		if err := l.AppendNoSync(body(0, n)); err != nil {
			t.Fatal(err)
		}
	}
	// What is in the page cache is seen by whoever opens the file now, as
	// after a kill.
	contents(t, open(t, path, Options{}), 1, 1000)
	if err := l.Append(body(0, 1000)); err != nil {
		t.Fatal(err)
	}
	contents(t, l, 1, 1001)
	if err := l.Append(nil); err != nil {
		t.Fatal(err)
	}
	if b, err := l.Read(1001); err != nil || len(b) != 0 {
		t.Errorf("an empty body: %d bytes, %v", len(b), err)
	}
}

// A record cut short or changed ends the log, and what lies behind it does not
// come back when the log has grown over it again.
func TestTornTail(t *testing.T) {
	for _, at := range []int64{0, 3, 4, 8, 20} { // in record 7
		path := filepath.Join(t.TempDir(), "log")
		l := open(t, path, Options{})
		for n := range 12 {
			if err := l.Append(body(0, n)); err != nil {
				t.Fatal(err)
			}
		}
		damaged := l.starts[7] + at
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data[damaged] ^= 0x10
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		l = open(t, path, Options{})
		contents(t, l, 1, 7)
		if err := l.Append(body(0, 7)); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		contents(t, open(t, path, Options{}), 1, 8)
	}
}

func TestRefusals(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "log"), Options{})
	if err := l.Append(make([]byte, maxStaged)); !errors.Is(err, ErrFull) {
		t.Errorf("a record longer than a commit: %v", err)
	}
	n := 0
	for ; ; n++ {
		if err := l.Append(make([]byte, 1<<20)); errors.Is(err, ErrFull) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n != 15 {
		t.Errorf("%d records of 1 MiB and a header went into 16 MiB", n)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("an append to a closed log: %v", err)
	}
	if err := l.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("a second close: %v", err)
	}
}

// A commit that fails is told to every producer of it, and so is every later
// append.
func TestFailure(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "log"), Options{})
	if err := l.Append(body(0, 0)); err != nil {
		t.Fatal(err)
	}
	if err := l.file.Close(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 3 {
				if err := l.Append(body(0, 1)); !errors.Is(err, os.ErrClosed) {
					t.Errorf("an append to a file that is closed: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// One large staging buffer is never outgrown: producers wait for room.
func TestRoom(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "log"), Options{})
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			if err := l.Append(make([]byte, 1<<20)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if l.Len() != 12 {
		t.Errorf("Len = %d, want 12", l.Len())
	}
}

func TestAllocations(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "log"), Options{})
	b := body(1, 1)
	for _, c := range []struct {
		name string
		f    func() error
	}{ // in this order: what is read has to be there
		{"Append", func() error { return l.Append(b) }},
		{"AppendNoSync", func() error { return l.AppendNoSync(b) }},
		{"Read", func() error { _, err := l.Read(1); return err }},
	} {
		name, f := c.name, c.f
		if n := testing.AllocsPerRun(200, func() {
			if err := f(); err != nil {
				t.Error(err)
			}
		}); n != 0 && !raceEnabled {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
