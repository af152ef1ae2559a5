package vfs

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// lockInChild tries the lock in another process.
func lockInChild(t *testing.T, p string) error {
	t.Helper()
	exe, err := os.Executable()
	check(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), lockHelperEnv+"="+p)
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(string(out), ErrLocked.Error()) {
		t.Fatalf("child: %v: %s", err, out)
	}
	return err
}

func TestOSLockExcludesAnotherProcess(t *testing.T) {
	p := filepath.Join(t.TempDir(), "lock")
	l, err := OS().Lock(p)
	check(t, err)
	if lockInChild(t, p) == nil {
		t.Error("another process got the lock")
	}
	// Closing another descriptor gives up a lock of the process, not this one.
	f, err := os.OpenFile(p, os.O_RDWR, 0)
	check(t, err)
	check(t, f.Close())
	if lockInChild(t, p) == nil {
		t.Error("another process got the lock after an unrelated close")
	}
	check(t, l.Close())
	check(t, lockInChild(t, p))
}

// A lock of the older kind, which belongs to a process, is what other programs
// take.
func TestOSLockExcludesProcessLocks(t *testing.T) {
	p := filepath.Join(t.TempDir(), "lock")
	f, err := os.OpenFile(p, os.O_RDWR|os.O_CREATE, 0o644)
	check(t, err)
	defer f.Close()
	lk := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: 0, Len: 1}
	check(t, unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lk))
	if _, err := OS().Lock(p); err == nil {
		t.Error("locked over a lock of the process")
	} else {
		wantErr(t, err, ErrLocked)
	}
	check(t, f.Close())
	l, err := OS().Lock(p)
	check(t, err)
	defer l.Close()
	g, err := os.OpenFile(p, os.O_RDWR, 0)
	check(t, err)
	defer g.Close()
	if err := unix.FcntlFlock(g.Fd(), unix.F_SETLK, &lk); err == nil {
		t.Error("the process lock went through")
	}
}

func TestOSLockRefusesOddFiles(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	check(t, os.WriteFile(target, nil, 0o644))
	link := filepath.Join(dir, "link")
	check(t, os.Symlink(target, link))
	_, err := OS().Lock(link)
	wantErr(t, err, syscall.ELOOP)
	fifo := filepath.Join(dir, "fifo")
	check(t, syscall.Mkfifo(fifo, 0o644))
	_, err = OS().Lock(fifo)
	wantErr(t, err, syscall.EINVAL)
	_, err = OS().Open(fifo, ReadOnly) // Must not wait for a writer.
	wantErr(t, err, syscall.EINVAL)
}

// TestOSOpenNotRegular: what is no file is named, with the path told once.
func TestOSOpenNotRegular(t *testing.T) {
	dir := t.TempDir()
	fifo, link, sock := filepath.Join(dir, "fifo"), filepath.Join(dir, "link"), filepath.Join(dir, "sock")
	check(t, syscall.Mkfifo(fifo, 0o644))
	check(t, os.Symlink(fifo, link))
	l, err := net.Listen("unix", sock)
	check(t, err)
	defer l.Close()
	for path, want := range map[string]string{fifo: "named pipe", link: "named pipe", sock: "socket", "/dev/null": "device", "/dev/zero": "device"} {
		for _, flag := range []Flag{ReadOnly, ReadWrite | Create} {
			f, err := OS().Open(path, flag)
			if err == nil {
				f.Close()
			}
			e, ok := errors.AsType[*NotRegularError](err)
			if want := "open " + path + ": is a " + want + ", where a file is needed"; !ok || err.Error() != want || e.Cause == nil {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
	_, err = OS().Open(dir, ReadOnly)
	wantErr(t, err, syscall.EISDIR)
}

func TestOSPopulateReportsTruncation(t *testing.T) {
	f := open(t, OS(), filepath.Join(t.TempDir(), "a"), ReadWrite|Create)
	check(t, f.Truncate(64<<10))
	m, err := f.Map(64<<10, false)
	check(t, err)
	defer m.Unmap()
	check(t, m.Populate(0, 64<<10))
	check(t, f.Truncate(4<<10))
	if err := m.Populate(32<<10, 4<<10); err == nil {
		t.Error("populated pages that the file no longer has")
	}
}

func TestOSPopulateByRead(t *testing.T) {
	f := open(t, OS(), filepath.Join(t.TempDir(), "a"), ReadWrite|Create)
	check(t, f.Truncate(200<<10))
	m, err := f.Map(200<<10, false)
	check(t, err)
	om := m.(*osMapping)
	// As on a kernel without the call.
	check(t, f.(Raw).Control(func(fd uintptr) {
		om.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	}))
	check(t, err)
	check(t, m.Populate(1, 200<<10-1))
	check(t, f.Truncate(100<<10))
	wantErr(t, m.Populate(0, 200<<10), io.ErrUnexpectedEOF)
	check(t, m.Unmap())
}

func BenchmarkOSWriteSyncAllocs(b *testing.B) {
	f := open(b, OS(), filepath.Join(b.TempDir(), "a"), ReadWrite|Create)
	p := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.WriteAt(p, 0); err != nil {
			b.Fatal(err)
		}
		if _, err := f.ReadAt(p, 0); err != nil {
			b.Fatal(err)
		}
		if err := f.Datasync(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestOSNextData: a hole is passed over, as far as the file system tells; what is
// written is not.
func TestOSNextData(t *testing.T) {
	f, err := OS().Open(filepath.Join(t.TempDir(), "sparse"), ReadWrite|Create)
	check(t, err)
	const at = 1 << 20
	_, err = f.WriteAt([]byte("data"), at)
	check(t, err)
	check(t, f.Truncate(4*at))
	finder := f.(interface{ NextData(int64) (int64, error) })
	for off, most := range map[int64]int64{0: at, at: at, at + 3: at + 3, 2 * at: 4 * at, 4 * at: 4 * at} {
		if got, err := finder.NextData(off); err != nil || got < off || got > most {
			t.Errorf("NextData(%d) = %d, %v, want at most %d", off, got, err, most)
		}
	}
	check(t, f.Close())
	if _, err := finder.NextData(0); err == nil {
		t.Error("a closed file answers")
	}
}
