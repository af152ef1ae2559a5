//go:build unix && !linux

package vfs

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

func infoOf(st os.FileInfo) Info {
	info := Info{Size: st.Size(), IsDir: st.IsDir(), ModTime: st.ModTime()}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		info.ID, info.Links = FileID{Device: uint64(sys.Dev), Inode: uint64(sys.Ino)}, uint64(sys.Nlink)
	}
	return info
}

func statOpen(f *os.File) (Info, error) {
	st, err := f.Stat()
	if err != nil {
		return Info{}, err
	}
	return infoOf(st), nil
}

func statPath(native string) (Info, error) {
	st, err := os.Stat(native)
	if err != nil {
		return Info{}, err
	}
	return infoOf(st), nil
}

func syncDir(native string) error {
	d, err := os.OpenFile(native, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func (f *osFile) Map(size int64, writable bool) (Mapping, error) {
	st, err := f.f.Stat()
	if err != nil {
		return nil, f.wrap("map", err)
	}
	if size <= 0 || size > st.Size() || int64(int(size)) != size {
		return nil, pathErr("map", f.name, syscall.EINVAL)
	}
	prot := unix.PROT_READ
	if writable {
		prot |= unix.PROT_WRITE
	}
	m := &osMapping{path: f.name, writable: writable, fd: -1}
	var failed error
	err = f.Control(func(fd uintptr) {
		// The copy serves Populate: the mapping outlives the file.
		if m.fd, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); failed != nil {
			return
		}
		if m.data, failed = unix.Mmap(int(fd), 0, int(size), prot, unix.MAP_SHARED); failed != nil {
			unix.Close(m.fd)
		}
	})
	if err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, pathErr("map", f.name, failed)
	}
	return m, nil
}

func (m *osMapping) populate(off, n int64) error {
	page := int64(os.Getpagesize())
	return populateByRead(off&^(page-1), off+n, func(p []byte, at int64) (int, error) {
		for {
			k, err := unix.Pread(m.fd, p, at)
			if err != unix.EINTR {
				return k, err
			}
		}
	})
}

func (m *osMapping) unmap() error {
	unix.Close(m.fd)
	return unix.Munmap(m.data)
}

// openLocks are the files locked by this process. The system's lock belongs to
// the process, so that alone it would not exclude a second owner in here.
var openLocks = struct {
	sync.Mutex
	held map[string]bool
}{held: map[string]bool{}}

// osLock is a lock of this process. While it is held nothing in the process
// may open and close the lock file, since that would give the lock up.
type osLock struct {
	path string // Absolute, without links.
	f    *os.File
}

func lockFile(native string) (Lock, error) {
	openLocks.Lock()
	defer openLocks.Unlock()
	dir, err := filepath.Abs(filepath.Dir(native))
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, filepath.Base(native))
	if openLocks.held[path] {
		return nil, ErrLocked
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, filePerm)
	if err != nil {
		return nil, err
	}
	lk := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: 0, Len: 1}
	err = unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lk)
	if err == unix.EAGAIN || err == unix.EACCES {
		err = ErrLocked
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	openLocks.held[path] = true
	return &osLock{path: path, f: f}, nil
}

func (l *osLock) Size() (int64, error) {
	openLocks.Lock()
	defer openLocks.Unlock()
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
	openLocks.Lock()
	defer openLocks.Unlock()
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
	openLocks.Lock()
	defer openLocks.Unlock()
	if l.f == nil {
		return pathErr("unlock", l.path, fs.ErrClosed)
	}
	err := l.f.Close()
	l.f = nil
	delete(openLocks.held, l.path)
	return pathErr("unlock", l.path, causeOf(err))
}
