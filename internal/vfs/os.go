package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
)

const (
	filePerm fs.FileMode = 0o644
	dirPerm  fs.FileMode = 0o755
)

// Raw is what a File of the real file system also implements. It is for code
// that must hand the descriptor itself to the system, such as a submission
// ring; everything else goes through File.
type Raw interface {
	// Control calls f with the descriptor. The descriptor stays open, and so
	// must not be closed, while f runs; it must not be kept beyond that.
	Control(f func(fd uintptr)) error
}

// OS returns the file system of this machine.
//
// A lock that it grants belongs to the handle, not to the process, where the
// system can do that (Linux): opening and closing the lock file elsewhere in
// the process does not give it up. On Windows SyncDir does nothing, since the
// system offers no such call.
func OS() FS { return osFS{} }

// osFS has no state: every value of it is the same file system.
type osFS struct{}

var _ FS = osFS{}

// pathErr adds the operation and the path to err, unless err is nil.
func pathErr(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// causeOf takes the cause out of an error of package os, so that the path is
// told once, in the caller's words.
func causeOf(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	if le, ok := errors.AsType[*os.LinkError](err); ok {
		return le.Err
	}
	if se, ok := errors.AsType[*os.SyscallError](err); ok {
		return se.Err
	}
	return err
}

func (osFS) Open(path string, flag Flag) (File, error) {
	f, err := openFile(filepath.FromSlash(path), path, flag)
	if err != nil {
		return nil, pathErr("open", path, notRegular(filepath.FromSlash(path), causeOf(err)))
	}
	return f, nil
}

// notRegular returns a *NotRegularError with the cause err if that is what is
// wrong with the file, else err.
func notRegular(native string, err error) error {
	if !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENXIO) { // the latter is that of sockets
		return err
	}
	st, statErr := os.Stat(native)
	if statErr != nil || st.Mode().IsRegular() || st.IsDir() {
		return err
	}
	return &NotRegularError{Mode: st.Mode().Type(), Cause: err}
}

func (osFS) Rename(oldPath, newPath string) error {
	err := rename(filepath.FromSlash(oldPath), filepath.FromSlash(newPath))
	if err != nil {
		return &os.LinkError{Op: "rename", Old: oldPath, New: newPath, Err: causeOf(err)}
	}
	return nil
}

func (osFS) Link(oldPath, newPath string) error {
	if err := os.Link(filepath.FromSlash(oldPath), filepath.FromSlash(newPath)); err != nil {
		return &os.LinkError{Op: "link", Old: oldPath, New: newPath, Err: causeOf(err)}
	}
	return nil
}

func (osFS) Remove(path string) error {
	if err := os.Remove(filepath.FromSlash(path)); err != nil {
		return pathErr("remove", path, causeOf(err))
	}
	return nil
}

func (osFS) MkdirAll(path string) error {
	if err := os.MkdirAll(filepath.FromSlash(path), dirPerm); err != nil {
		return pathErr("mkdir", path, causeOf(err))
	}
	return nil
}

func (osFS) ReadDir(path string) ([]DirEntry, error) {
	native := filepath.FromSlash(path)
	list, err := os.ReadDir(native)
	if err != nil {
		return nil, pathErr("readdir", path, causeOf(err))
	}
	entries := make([]DirEntry, 0, len(list))
	for _, e := range list {
		isDir := e.IsDir()
		if e.Type()&fs.ModeSymlink != 0 {
			// A link counts as what it leads to; one that leads nowhere
			// counts as a file, and opening it will say what is wrong.
			if st, err := os.Stat(filepath.Join(native, e.Name())); err == nil {
				isDir = st.IsDir()
			}
		}
		entries = append(entries, DirEntry{Name: e.Name(), IsDir: isDir})
	}
	return entries, nil
}

func (osFS) Stat(path string) (Info, error) {
	info, err := statPath(filepath.FromSlash(path))
	if err != nil {
		return Info{}, pathErr("stat", path, causeOf(err))
	}
	return info, nil
}

func (osFS) SyncDir(path string) error {
	return pathErr("syncdir", path, causeOf(syncDir(filepath.FromSlash(path))))
}

func (osFS) Free(path string) (int64, error) {
	n, err := freeBytes(filepath.FromSlash(path))
	if err != nil {
		return 0, pathErr("free", path, causeOf(err))
	}
	return n, nil
}

func (osFS) Lock(path string) (Lock, error) {
	l, err := lockFile(filepath.FromSlash(path))
	if err != nil {
		return nil, pathErr("lock", path, causeOf(err))
	}
	return l, nil
}

// checkRange refuses a range that is empty, negative or beyond what an int64
// offset can say, as fallocate does.
func checkRange(off, n int64) error {
	if off < 0 || n <= 0 || off+n < off {
		return syscall.EINVAL
	}
	return nil
}

// osMapping is a shared mapping of a file.
type osMapping struct {
	path     string
	data     []byte // Never changes; not to be touched once done is set.
	writable bool
	fd       int // For Populate by reading, where the system has nothing better; else -1.
	done     atomic.Bool
}

var _ Mapping = (*osMapping)(nil)

func (m *osMapping) Bytes() []byte {
	if m.done.Load() {
		return nil
	}
	return m.data
}

func (m *osMapping) WriteAt(p []byte, off int64) {
	checkMapWrite(m.path, m.done.Load(), m.writable, len(p), off, len(m.data))
	copy(m.data[off:], p)
}

func (m *osMapping) Populate(off, n int64) error {
	if m.done.Load() {
		return pathErr("populate", m.path, fs.ErrClosed)
	}
	if off < 0 || n < 0 || off > int64(len(m.data))-n {
		return pathErr("populate", m.path, syscall.EINVAL)
	}
	if n == 0 {
		return nil
	}
	return pathErr("populate", m.path, m.populate(off, n))
}

func (m *osMapping) Unmap() error {
	if !m.done.CompareAndSwap(false, true) {
		return pathErr("unmap", m.path, fs.ErrClosed)
	}
	return pathErr("unmap", m.path, m.unmap())
}

// checkMapWrite panics where a write through a mapping is a mistake of the
// program: without the check it would be a signal, which nothing can recover.
func checkMapWrite(path string, done, writable bool, n int, off int64, size int) {
	switch {
	case done:
		panic("vfs: write to " + path + " through an unmapped mapping")
	case !writable:
		panic("vfs: write to " + path + " through a read-only mapping")
	case off < 0 || off > int64(size)-int64(n):
		panic("vfs: write to " + path + " outside the mapping")
	}
}
