package vfs

import (
	"io"
	"io/fs"
	"syscall"

	"github.com/stratalog/stratalog/internal/invariant"
)

// simFile is an open file of a Sim.
type simFile struct {
	s      *Sim
	n      *node
	name   string
	rw     bool
	closed bool // Guarded by s.mu.
}

var _ File = (*simFile)(nil)

func (f *simFile) Name() string { return f.name }

// check refuses a closed handle, and a change that is not allowed.
func (f *simFile) check(change bool) error {
	switch {
	case f.closed:
		return fs.ErrClosed
	case change && !f.rw:
		return syscall.EBADF
	case change:
		return f.s.change()
	}
	return nil
}

func (f *simFile) begin(k OpKind, off, n int64) uint64 {
	return f.s.begin(Op{Kind: k, Path: f.n.hint(f.s), Offset: off, Length: n})
}

// hint returns the path of n for messages.
func (n *node) hint(s *Sim) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return n.path
}

func (f *simFile) Close() error {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if f.closed {
		return pathErr("close", f.name, fs.ErrClosed)
	}
	f.closed = true
	f.n.refs--
	f.s.reap(f.n)
	return nil
}

func (f *simFile) ReadAt(p []byte, off int64) (int, error) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	err := f.check(false)
	if err == nil && off < 0 {
		err = syscall.EINVAL
	}
	if err != nil {
		return 0, pathErr("read", f.name, err)
	}
	if len(p) == 0 {
		return 0, nil
	}
	size := int(max(0, min(int64(len(p)), f.n.size-off)))
	f.n.cur.read(p[:size], off)
	if size < len(p) {
		return size, io.EOF
	}
	return size, nil
}

// read copies what lies at off, zeros where no page is.
func (t *table) read(p []byte, off int64) {
	for len(p) > 0 {
		i, at := off/pageSize, int(off%pageSize)
		l := min(len(p), pageSize-at)
		copy(p[:l], t.get(i).orZero().data[at:])
		p, off = p[l:], off+int64(l)
	}
}

func (f *simFile) WriteAt(p []byte, off int64) (int, error) {
	seq := f.begin(OpWrite, off, int64(len(p)))
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	err := f.check(true)
	if err == nil && (off < 0 || off+int64(len(p)) < off) {
		err = syscall.EINVAL
	}
	n := 0
	if err == nil {
		n, err = f.s.write(f.n, p, off, seq)
		f.n.mtime = f.s.now(seq)
	}
	return n, pathErr("write", f.name, err)
}

func (f *simFile) Stat() (Info, error) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if err := f.check(false); err != nil {
		return Info{}, pathErr("stat", f.name, err)
	}
	return f.n.info(), nil
}

func (f *simFile) Truncate(size int64) error {
	seq := f.begin(OpTruncate, 0, size)
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	err := f.check(true)
	if err == nil && size < 0 {
		err = syscall.EINVAL
	}
	for _, v := range f.n.views {
		if err == nil && size < int64(len(v.buf)) {
			err = syscall.EBUSY
		}
	}
	if err == nil {
		f.s.truncate(f.n, size, seq)
		f.n.mtime = f.s.now(seq)
	}
	return pathErr("truncate", f.name, err)
}

func (f *simFile) Allocate(off, n int64) error {
	seq := f.begin(OpAllocate, off, n)
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	err := f.check(true)
	if err == nil {
		err = checkRange(off, n)
	}
	if err == nil {
		err = f.s.allocate(f.n, off, n, seq)
	}
	return pathErr("allocate", f.name, err)
}

func (f *simFile) PunchHole(off, n int64) error {
	seq := f.begin(OpPunchHole, off, n)
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	err := f.check(true)
	if err == nil {
		err = checkRange(off, n)
	}
	if err == nil {
		f.s.punch(f.n, off, n, seq)
		f.n.mtime = f.s.now(seq)
	}
	return pathErr("punchhole", f.name, err)
}

func (f *simFile) Sync() error     { return f.sync(OpSync, "sync", true) }
func (f *simFile) Datasync() error { return f.sync(OpDatasync, "datasync", false) }

func (f *simFile) sync(k OpKind, op string, full bool) error {
	f.begin(k, 0, 0)
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if err := f.check(false); err != nil {
		return pathErr(op, f.name, err)
	}
	if rule := f.s.failSync(f.n.path); rule != nil {
		if rule.drop {
			f.n.giveUp()
		}
		return pathErr(op, f.name, rule.err)
	}
	f.s.persist(f.n, full)
	return nil
}

func (f *simFile) Map(size int64, writable bool) (Mapping, error) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	err := f.check(false)
	switch {
	case err != nil:
	case writable && !f.rw:
		err = syscall.EACCES
	case size <= 0 || size > f.n.size:
		err = syscall.EINVAL
	}
	if err != nil {
		return nil, pathErr("map", f.name, err)
	}
	v := f.n.view(size)
	v.refs++
	f.n.refs++
	return &simMapping{s: f.s, n: f.n, v: v, path: f.name, data: v.buf[:size:size], writable: writable}, nil
}

// view returns memory that shows at least the first size bytes. A longer
// mapping than any before gets memory of its own, since that of the others
// cannot move; changes go to all of them.
func (n *node) view(size int64) *view {
	for _, v := range n.views {
		if int64(len(v.buf)) >= size {
			return v
		}
	}
	v := &view{buf: make([]byte, size)}
	for i, p := range n.cur.pages {
		if at := int64(i) * pageSize; p != nil && at < size {
			copy(v.buf[at:], p.data[:])
		}
	}
	n.views = append(n.views, v)
	return v
}

// simMapping is a mapping of a file of a Sim.
type simMapping struct {
	s        *Sim
	n        *node
	v        *view
	path     string
	data     []byte
	writable bool
	done     bool // Guarded by s.mu.
}

var _ Mapping = (*simMapping)(nil)

func (m *simMapping) Bytes() []byte {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	if m.done {
		return nil
	}
	return m.data
}

func (m *simMapping) WriteAt(p []byte, off int64) {
	seq := m.s.begin(Op{Kind: OpMapWrite, Path: m.n.hint(m.s), Offset: off, Length: int64(len(p))})
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	checkMapWrite(m.path, m.done, m.writable, len(p), off, len(m.data))
	if m.n.blocks.missing(off/pageSize, pagesIn(off+int64(len(p)))) > 0 {
		panic("vfs: write to " + m.path + " through a mapping into a hole: SIGBUS when the disk is full")
	}
	m.s.store(m.n, p, off, seq)
	m.n.mtime = m.s.now(seq)
}

func (m *simMapping) Populate(off, n int64) error {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	if m.done {
		return pathErr("populate", m.path, fs.ErrClosed)
	}
	if off < 0 || n < 0 || off > int64(len(m.data))-n {
		return pathErr("populate", m.path, syscall.EINVAL)
	}
	return nil
}

func (m *simMapping) Unmap() error {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	if m.done {
		return pathErr("unmap", m.path, fs.ErrClosed)
	}
	m.done = true
	m.v.refs--
	if m.v.refs == 0 {
		for i, v := range m.n.views {
			if v == m.v {
				m.n.views = append(m.n.views[:i], m.n.views[i+1:]...)
				break
			}
		}
		if invariant.Enabled {
			// A use after release then reads nonsense, and the race
			// detector sees it.
			for i := range m.v.buf {
				m.v.buf[i] = 0xDB
			}
		}
	}
	m.n.refs--
	m.s.reap(m.n)
	return nil
}
