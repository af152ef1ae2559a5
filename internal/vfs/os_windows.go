package vfs

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/windows"
)

func idOf(h windows.Handle) (id FileID, links uint64, err error) {
	var d windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &d); err != nil {
		return FileID{}, 0, err
	}
	return FileID{
		Device: uint64(d.VolumeSerialNumber),
		Inode:  uint64(d.FileIndexHigh)<<32 | uint64(d.FileIndexLow),
	}, uint64(d.NumberOfLinks), nil
}

func statOpen(f *os.File) (Info, error) {
	st, err := f.Stat()
	if err != nil {
		return Info{}, err
	}
	c, err := f.SyscallConn()
	if err != nil {
		return Info{}, err
	}
	info := Info{Size: st.Size(), IsDir: st.IsDir(), ModTime: st.ModTime()}
	var failed error
	err = c.Control(func(fd uintptr) { info.ID, info.Links, failed = idOf(windows.Handle(fd)) })
	return info, errors.Join(err, failed)
}

func statPath(native string) (Info, error) {
	f, err := os.Open(native) // Directories too, since package os asks for backup semantics.
	if err != nil {
		return Info{}, err
	}
	defer f.Close()
	return statOpen(f)
}

// syncDir only checks that the directory is there: the system has no call
// that makes names durable, its journal does that in its own time.
func syncDir(native string) error {
	st, err := os.Stat(native)
	if err == nil && !st.IsDir() {
		err = windows.ERROR_DIRECTORY
	}
	return err
}

func freeBytes(native string) (int64, error) {
	name, err := windows.UTF16PtrFromString(native)
	if err != nil {
		return 0, err
	}
	var avail uint64
	if err := windows.GetDiskFreeSpaceEx(name, &avail, nil, nil); err != nil {
		return 0, err
	}
	return int64(min(avail, 1<<62)), nil
}

// Map is not available here: it answers errors.ErrUnsupported.
func (f *osFile) Map(int64, bool) (Mapping, error) {
	return nil, pathErr("map", f.name, errors.ErrUnsupported)
}

func (m *osMapping) populate(int64, int64) error { return errors.ErrUnsupported }
func (m *osMapping) unmap() error                { return errors.ErrUnsupported }

// osLock is a lock of one handle; the system refuses a second one in the same
// process too.
type osLock struct {
	path string
	mu   sync.Mutex
	f    *os.File // Guarded by mu; nil once closed.
}

func lockFile(native string) (Lock, error) {
	f, err := os.OpenFile(native, os.O_RDWR|os.O_CREATE, filePerm)
	if err != nil {
		return nil, err
	}
	const how = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		err = ErrLocked
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &osLock{path: native, f: f}, nil
}

func (l *osLock) Size() (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return 0, pathErr("stat", l.path, fs.ErrClosed)
	}
	st, err := l.f.Stat()
	if err != nil {
		return 0, pathErr("stat", l.path, causeOf(err))
	}
	return st.Size(), nil
}

func (l *osLock) Clear() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return pathErr("truncate", l.path, fs.ErrClosed)
	}
	err := l.f.Truncate(0)
	if err == nil {
		err = l.f.Sync()
	}
	return pathErr("truncate", l.path, causeOf(err))
}

func (l *osLock) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return pathErr("unlock", l.path, fs.ErrClosed)
	}
	err := l.f.Close()
	l.f = nil
	return pathErr("unlock", l.path, causeOf(err))
}
