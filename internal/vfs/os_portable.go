//go:build !linux

package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// osFile is a regular file on a system other than Linux: good enough for the
// formats and the tools, without a promise of speed.
type osFile struct {
	name string
	f    *os.File
}

var (
	_ File = (*osFile)(nil)
	_ Raw  = (*osFile)(nil)
)

func openFile(native, name string, flag Flag) (File, error) {
	mode := os.O_RDONLY
	if flag&ReadWrite != 0 {
		mode = os.O_RDWR
	}
	if flag&Create != 0 {
		mode |= os.O_CREATE
		if flag&Exclusive != 0 {
			mode |= os.O_EXCL
		}
	}
	// A named pipe would keep whoever opens it waiting.
	if st, err := os.Stat(native); err == nil && !st.Mode().IsRegular() && !st.IsDir() {
		return nil, syscall.EINVAL
	}
	f, err := os.OpenFile(native, mode, filePerm)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	switch {
	case err != nil:
	case st.IsDir():
		err = syscall.EISDIR
	case !st.Mode().IsRegular():
		err = syscall.EINVAL
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &osFile{name: name, f: f}, nil
}

func rename(oldPath, newPath string) error { return os.Rename(oldPath, newPath) }

func (f *osFile) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	cause := causeOf(err)
	if errors.Is(cause, os.ErrClosed) {
		cause = fs.ErrClosed
	}
	return pathErr(op, f.name, cause)
}

func (f *osFile) Name() string { return f.name }
func (f *osFile) Close() error { return f.wrap("close", f.f.Close()) }

func (f *osFile) Control(fn func(fd uintptr)) error {
	c, err := f.f.SyscallConn()
	if err == nil {
		err = c.Control(fn)
	}
	return f.wrap("control", err)
}

func (f *osFile) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, pathErr("read", f.name, syscall.EINVAL)
	}
	n, err := f.f.ReadAt(p, off)
	if err == io.EOF {
		return n, err
	}
	return n, f.wrap("read", err)
}

func (f *osFile) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, pathErr("write", f.name, syscall.EINVAL)
	}
	n, err := f.f.WriteAt(p, off)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, f.wrap("write", err)
}

func (f *osFile) Stat() (Info, error) {
	info, err := statOpen(f.f)
	return info, f.wrap("stat", err)
}

func (f *osFile) Truncate(size int64) error {
	return f.wrap("truncate", f.f.Truncate(size))
}

// Allocate fills with zeros what lies beyond the end. A hole below the end is
// left as it is: there is no portable way to see or to fill it.
func (f *osFile) Allocate(off, n int64) error {
	if err := checkRange(off, n); err != nil {
		return pathErr("allocate", f.name, err)
	}
	st, err := f.f.Stat()
	if err != nil {
		return f.wrap("allocate", err)
	}
	return f.wrap("allocate", f.zero(st.Size(), off+n))
}

// PunchHole writes zeros: they read the same, but free no blocks.
func (f *osFile) PunchHole(off, n int64) error {
	if err := checkRange(off, n); err != nil {
		return pathErr("punchhole", f.name, err)
	}
	st, err := f.f.Stat()
	if err != nil {
		return f.wrap("punchhole", err)
	}
	return f.wrap("punchhole", f.zero(off, min(off+n, st.Size())))
}

func (f *osFile) zero(from, to int64) error {
	if from >= to {
		return nil
	}
	zeros := make([]byte, min(to-from, 1<<20))
	for from < to {
		n, err := f.f.WriteAt(zeros[:min(int64(len(zeros)), to-from)], from)
		if err != nil {
			return err
		}
		from += int64(n)
	}
	return nil
}

// Sync is F_FULLFSYNC on darwin and FlushFileBuffers on Windows.
func (f *osFile) Sync() error { return f.wrap("sync", f.f.Sync()) }

// Datasync is Sync: these systems have nothing weaker that is worth having.
func (f *osFile) Datasync() error { return f.wrap("datasync", f.f.Sync()) }
