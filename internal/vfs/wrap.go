package vfs

import (
	"errors"
)

// verdict is what an interceptor wants done about an operation.
type verdict struct {
	err   error // Fail with it instead of doing the operation.
	short int   // Of a read or write that fails: how many bytes come first.
	lie   bool  // Report success without doing the operation.
	rules []*Injection
}

// skip tells whether the operation is not to be done.
func (v verdict) skip() bool { return v.err != nil || v.lie }

// interceptor sees every operation that goes through a wrapFS.
type interceptor interface {
	before(op Op) verdict
	// after is told the outcome; n is how many bytes a read or write moved.
	// For a read, p is what it brought.
	after(op Op, v verdict, p []byte, n int, err error)
}

// wrapFS passes every operation to inner, by way of an interceptor.
type wrapFS struct {
	inner FS
	ic    interceptor
	holes bool // pass NextHole and NextData on
}

// plain does an operation that has no result but its error.
func (w *wrapFS) plain(op Op, do func() error) error {
	v := w.ic.before(op)
	err := pathErr(op.Kind.String(), op.Path, v.err)
	if !v.skip() {
		err = do()
	}
	w.ic.after(op, v, nil, 0, err)
	return err
}

// closing does an operation that gives something back, and does it even if it
// is to fail, so that nothing leaks.
func (w *wrapFS) closing(op Op, do func() error) error {
	v := w.ic.before(op)
	err := do()
	if v.err != nil {
		err = pathErr(op.Kind.String(), op.Path, v.err)
	}
	w.ic.after(op, v, nil, 0, err)
	return err
}

// giving does an operation that has a result, about which nothing can lie.
func giving[T any](w *wrapFS, op Op, do func() (T, error)) (T, error) {
	v := w.ic.before(op)
	var res T
	err := pathErr(op.Kind.String(), op.Path, v.err)
	if err == nil {
		res, err = do()
	}
	w.ic.after(op, v, nil, 0, err)
	return res, err
}

func (w *wrapFS) Open(path string, flag Flag) (File, error) {
	kind := OpOpen
	if flag&Create != 0 {
		kind = OpCreate
	}
	return giving(w, Op{Kind: kind, Path: path}, func() (File, error) {
		f, err := w.inner.Open(path, flag)
		if err != nil {
			return nil, err
		}
		return &wrapFile{w, f, path}, nil
	})
}

func (w *wrapFS) Rename(oldPath, newPath string) error {
	op := Op{Kind: OpRename, Path: oldPath, Target: newPath}
	return w.plain(op, func() error { return w.inner.Rename(oldPath, newPath) })
}

func (w *wrapFS) Link(oldPath, newPath string) error {
	op := Op{Kind: OpLink, Path: oldPath, Target: newPath}
	return w.plain(op, func() error { return w.inner.Link(oldPath, newPath) })
}

func (w *wrapFS) Remove(path string) error {
	return w.plain(Op{Kind: OpRemove, Path: path}, func() error { return w.inner.Remove(path) })
}

func (w *wrapFS) MkdirAll(path string) error {
	return w.plain(Op{Kind: OpMkdir, Path: path}, func() error { return w.inner.MkdirAll(path) })
}

func (w *wrapFS) ReadDir(path string) ([]DirEntry, error) {
	op := Op{Kind: OpReadDir, Path: path}
	return giving(w, op, func() ([]DirEntry, error) { return w.inner.ReadDir(path) })
}

func (w *wrapFS) Stat(path string) (Info, error) {
	return giving(w, Op{Kind: OpStat, Path: path}, func() (Info, error) { return w.inner.Stat(path) })
}

func (w *wrapFS) SyncDir(path string) error {
	return w.plain(Op{Kind: OpSyncDir, Path: path}, func() error { return w.inner.SyncDir(path) })
}

func (w *wrapFS) Free(path string) (int64, error) {
	return giving(w, Op{Kind: OpFree, Path: path}, func() (int64, error) { return w.inner.Free(path) })
}

func (w *wrapFS) Lock(path string) (Lock, error) {
	return giving(w, Op{Kind: OpLock, Path: path}, func() (Lock, error) {
		c, err := w.inner.Lock(path)
		if err != nil {
			return nil, err
		}
		return &wrapLock{w, c, path}, nil
	})
}

type wrapLock struct {
	w     *wrapFS
	inner Lock
	path  string
}

func (l *wrapLock) Size() (int64, error) {
	return giving(l.w, Op{Kind: OpStat, Path: l.path}, l.inner.Size)
}

func (l *wrapLock) Clear() error {
	return l.w.plain(Op{Kind: OpTruncate, Path: l.path}, l.inner.Clear)
}

func (l *wrapLock) Close() error {
	return l.w.closing(Op{Kind: OpUnlock, Path: l.path}, l.inner.Close)
}

type wrapFile struct {
	w     *wrapFS
	inner File
	path  string
}

var (
	_ File = (*wrapFile)(nil)
	_ Raw  = (*wrapFile)(nil)
)

// Control answers errors.ErrUnsupported if the file below has no descriptor.
func (f *wrapFile) Control(fn func(fd uintptr)) error {
	if r, ok := f.inner.(Raw); ok {
		return r.Control(fn)
	}
	return pathErr("control", f.path, errors.ErrUnsupported)
}

// NextHole passes the question on, if that is allowed and the file below knows.
func (f *wrapFile) NextHole(off int64) (int64, error) {
	if h, ok := f.inner.(interface{ NextHole(int64) (int64, error) }); ok && f.w.holes {
		return h.NextHole(off)
	}
	return 0, pathErr("seek", f.path, errors.ErrUnsupported)
}

// NextData is NextHole for the next data.
func (f *wrapFile) NextData(off int64) (int64, error) {
	if h, ok := f.inner.(interface{ NextData(int64) (int64, error) }); ok && f.w.holes {
		return h.NextData(off)
	}
	return 0, pathErr("seek", f.path, errors.ErrUnsupported)
}

func (f *wrapFile) Name() string { return f.inner.Name() }

func (f *wrapFile) Close() error {
	return f.w.closing(Op{Kind: OpClose, Path: f.path}, f.inner.Close)
}

// ReadAt and WriteAt do without a closure, since they are called often.

func (f *wrapFile) ReadAt(p []byte, off int64) (int, error) {
	op := Op{Kind: OpRead, Path: f.path, Offset: off, Length: int64(len(p))}
	v := f.w.ic.before(op)
	n, err := 0, error(nil)
	if v.err == nil {
		n, err = f.inner.ReadAt(p, off)
	} else {
		if part := min(max(v.short, 0), len(p)); part > 0 {
			n, _ = f.inner.ReadAt(p[:part], off)
		}
		err = pathErr("read", f.path, v.err)
	}
	f.w.ic.after(op, v, p[:n], n, err)
	return n, err
}

func (f *wrapFile) WriteAt(p []byte, off int64) (int, error) {
	op := Op{Kind: OpWrite, Path: f.path, Offset: off, Length: int64(len(p))}
	v := f.w.ic.before(op)
	n, err := 0, error(nil)
	switch {
	case v.err != nil:
		if part := min(max(v.short, 0), len(p)); part > 0 {
			n, _ = f.inner.WriteAt(p[:part], off)
		}
		err = pathErr("write", f.path, v.err)
	case v.lie:
		n = len(p)
	default:
		n, err = f.inner.WriteAt(p, off)
	}
	f.w.ic.after(op, v, nil, n, err)
	return n, err
}

func (f *wrapFile) Stat() (Info, error) {
	return giving(f.w, Op{Kind: OpStat, Path: f.path}, f.inner.Stat)
}

func (f *wrapFile) Truncate(size int64) error {
	op := Op{Kind: OpTruncate, Path: f.path, Length: size}
	return f.w.plain(op, func() error { return f.inner.Truncate(size) })
}

func (f *wrapFile) Allocate(off, n int64) error {
	op := Op{Kind: OpAllocate, Path: f.path, Offset: off, Length: n}
	return f.w.plain(op, func() error { return f.inner.Allocate(off, n) })
}

func (f *wrapFile) PunchHole(off, n int64) error {
	op := Op{Kind: OpPunchHole, Path: f.path, Offset: off, Length: n}
	return f.w.plain(op, func() error { return f.inner.PunchHole(off, n) })
}

func (f *wrapFile) Sync() error {
	return f.w.plain(Op{Kind: OpSync, Path: f.path}, f.inner.Sync)
}

func (f *wrapFile) Datasync() error {
	return f.w.plain(Op{Kind: OpDatasync, Path: f.path}, f.inner.Datasync)
}

func (f *wrapFile) Map(size int64, writable bool) (Mapping, error) {
	return giving(f.w, Op{Kind: OpMap, Path: f.path, Length: size}, func() (Mapping, error) {
		m, err := f.inner.Map(size, writable)
		if err != nil {
			return nil, err
		}
		return &wrapMapping{f.w, m, f.path}, nil
	})
}

type wrapMapping struct {
	w     *wrapFS
	inner Mapping
	path  string
}

var _ Mapping = (*wrapMapping)(nil)

func (m *wrapMapping) Bytes() []byte { return m.inner.Bytes() }

func (m *wrapMapping) WriteAt(p []byte, off int64) {
	op := Op{Kind: OpMapWrite, Path: m.path, Offset: off, Length: int64(len(p))}
	v := m.w.ic.before(op)
	if !v.lie {
		m.inner.WriteAt(p, off)
	}
	m.w.ic.after(op, v, nil, len(p), nil)
}

func (m *wrapMapping) Populate(off, n int64) error {
	op := Op{Kind: OpPopulate, Path: m.path, Offset: off, Length: n}
	return m.w.plain(op, func() error { return m.inner.Populate(off, n) })
}

func (m *wrapMapping) Unmap() error {
	return m.w.closing(Op{Kind: OpUnmap, Path: m.path}, m.inner.Unmap)
}
