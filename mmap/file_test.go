package mmap

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/stratalog/stratalog/internal/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// systems runs f over both file systems, with a directory in each.
func systems(t *testing.T, f func(t *testing.T, fs vfs.FS, dir string)) {
	t.Run("os", func(t *testing.T) { f(t, vfs.OS(), filepath.ToSlash(t.TempDir())) })
	t.Run("sim", func(t *testing.T) { f(t, vfs.NewSim(), "/") })
}

const fileSize = 8192

func newFile(t testing.TB, fs vfs.FS, name string, size int64) {
	t.Helper()
	f, err := fs.Open(name, vfs.ReadWrite|vfs.Create)
	if err == nil {
		err = errors.Join(f.Allocate(0, size), f.Sync(), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestFileStates(t *testing.T) {
	systems(t, func(t *testing.T, fs vfs.FS, dir string) {
		name := dir + "/a"
		newFile(t, fs, name, fileSize)
		f, err := Open(fs, name, fileSize, true)
		if err != nil {
			t.Fatal(err)
		}
		if f.State() != Active || f.Size() != fileSize || f.Path() != name {
			t.Fatalf("%v, %d bytes, %s", f.State(), f.Size(), f.Path())
		}
		f.WriteMapped([]byte("hello"), 100)
		b := make([]byte, 5)
		if _, err := f.Handle().ReadAt(b, 100); err != nil || string(b) != "hello" {
			t.Fatalf("read back %q, %v", b, err)
		}
		if err := f.Acquire(); err != nil {
			t.Fatal(err)
		}
		f.Seal()
		f.Seal()
		if f.State() != Sealed || f.Leases() != 1 {
			t.Fatalf("%v, %d leases", f.State(), f.Leases())
		}
		if err := f.Acquire(); err != nil {
			t.Fatalf("a sealed file admits readers: %v", err)
		}
		detached := 0
		if !f.Close(func() { detached++ }) {
			t.Fatal("the first Close says no")
		}
		if f.Close(func() { detached += 100 }) {
			t.Fatal("the second Close says yes")
		}
		f.Seal()
		if f.State() != Closing || detached != 0 {
			t.Fatalf("%v, detached %d times", f.State(), detached)
		}
		if err := f.Acquire(); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("a closing file admits: %v", err)
		}
		if string(f.Bytes()[100:105]) != "hello" {
			t.Fatal("bytes changed under a lease")
		}
		f.Release()
		if detached != 0 {
			t.Fatal("detached under a lease")
		}
		f.Release()
		<-f.Detached()
		if f.State() != Detached || detached != 1 || f.DetachErr() != nil {
			t.Fatalf("%v, detached %d times, %v", f.State(), detached, f.DetachErr())
		}
		for s, want := range map[State]string{Active: "active", Sealed: "sealed", Closing: "closing", Detached: "detached", 9: "state(9)"} {
			if s.String() != want {
				t.Errorf("%q, want %q", s, want)
			}
		}
	})
}

func TestFileOpenRefuses(t *testing.T) {
	systems(t, func(t *testing.T, fs vfs.FS, dir string) {
		name := dir + "/a"
		newFile(t, fs, name, fileSize)
		for _, want := range []int64{fileSize - 1, fileSize + 1, 2 * fileSize} {
			var length *LengthError
			if _, err := Open(fs, name, want, false); !errors.As(err, &length) || length.Got != fileSize || length.Want != want {
				t.Fatalf("length %d: %v", want, err)
			}
		}
		if _, err := OpenReadOnly(fs, dir+"/none", fileSize); err == nil {
			t.Fatal("opened what is not there")
		}
	})
}

func TestReplaceHandle(t *testing.T) {
	systems(t, func(t *testing.T, fs vfs.FS, dir string) {
		name := dir + "/a"
		newFile(t, fs, name, fileSize)
		f, err := Open(fs, name, fileSize, true)
		if err != nil {
			t.Fatal(err)
		}
		old := f.Handle()
		if err := errors.Join(f.CheckName(fs), f.ReplaceHandle(fs)); err != nil {
			t.Fatal(err)
		}
		if _, err := old.WriteAt([]byte("x"), 0); err == nil {
			t.Fatal("the old descriptor is still open")
		}
		f.WriteMapped([]byte("y"), 0)
		if err := f.Handle().Datasync(); err != nil {
			t.Fatal(err)
		}
		// Another file comes under the name.
		if err := f.Rename(fs, dir+"/b"); err != nil {
			t.Fatal(err)
		}
		if f.Path() != dir+"/b" {
			t.Fatal(f.Path())
		}
		newFile(t, fs, name, fileSize)
		if err := fs.Rename(name, dir+"/b"); err != nil {
			t.Fatal(err)
		}
		if err := f.CheckName(fs); !errors.Is(err, ErrReplaced) {
			t.Fatalf("check: %v", err)
		}
		if err := f.ReplaceHandle(fs); !errors.Is(err, ErrReplaced) {
			t.Fatalf("replace: %v", err)
		}
		if f.Bytes()[0] != 'y' {
			t.Fatal("the mapping is of another file")
		}
		f.Close(nil)
		<-f.Detached()
	})
}

// unmapFS counts what is mapped and unmapped.
type unmapFS struct {
	vfs.FS
	live atomic.Int64
	bad  atomic.Int64
}

type unmapFile struct {
	vfs.File
	fs *unmapFS
}

type unmapMapping struct {
	vfs.Mapping
	fs   *unmapFS
	done atomic.Bool
}

func (u *unmapFS) Open(name string, flag vfs.Flag) (vfs.File, error) {
	f, err := u.FS.Open(name, flag)
	if err != nil {
		return nil, err
	}
	return &unmapFile{f, u}, nil
}

func (f *unmapFile) Map(size int64, writable bool) (vfs.Mapping, error) {
	m, err := f.File.Map(size, writable)
	if err != nil {
		return nil, err
	}
	f.fs.live.Add(1)
	return &unmapMapping{Mapping: m, fs: f.fs}, nil
}

func (m *unmapMapping) Unmap() error {
	if m.done.Swap(true) {
		m.fs.bad.Add(1)
	}
	m.fs.live.Add(-1)
	return m.Mapping.Unmap()
}

// TestLeaseRace has readers acquire, read and release while others seal and
// close: the file is unmapped exactly once, and never under a lease.
func TestLeaseRace(t *testing.T) {
	rounds := 400
	if testing.Short() {
		rounds = 60
	}
	systems(t, func(t *testing.T, inner vfs.FS, dir string) {
		fs := &unmapFS{FS: inner}
		name := dir + "/a"
		newFile(t, fs, name, fileSize)
		reads := atomic.Int64{}
		for range rounds {
			f, err := Open(fs, name, fileSize, true)
			if err != nil {
				t.Fatal(err)
			}
			var detached, closes atomic.Int64
			var wg sync.WaitGroup
			start := make(chan struct{})
			for g := range 4 {
				wg.Go(func() {
					<-start
					for i := 0; ; i++ {
						if f.Acquire() != nil {
							return
						}
						if fs.live.Load() != 1 || f.Bytes()[(i*511+g)%fileSize] != 0 {
							t.Error("not mapped under a lease")
						}
						reads.Add(1)
						f.Release()
						if g == 0 && i == 20 {
							f.Seal()
						}
						if g > 1 && i == 30*g && f.Close(func() { detached.Add(1) }) {
							closes.Add(1)
						}
					}
				})
			}
			close(start)
			wg.Wait()
			<-f.Detached()
			if detached.Load() != 1 || closes.Load() != 1 || fs.live.Load() != 0 || fs.bad.Load() != 0 {
				t.Fatalf("detached %d times, closed %d times, %d mapped, %d unmapped twice",
					detached.Load(), closes.Load(), fs.live.Load(), fs.bad.Load())
			}
		}
		if reads.Load() < int64(rounds) {
			t.Fatalf("only %d reads", reads.Load())
		}
	})
}

func TestAcquireAllocatesNothing(t *testing.T) {
	fs := vfs.NewSim()
	newFile(t, fs, "/a", fileSize)
	f, err := Open(fs, "/a", fileSize, false)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if f.Acquire() == nil {
			f.Release()
		}
	}); n != 0 && !raceEnabled {
		t.Errorf("%v allocations", n)
	}
	f.Close(nil)
}
