package gate

import (
	"sync/atomic"

	"github.com/stratalog/stratalog/internal/vfs"
)

// counting passes everything on to the FS below and counts it. It allocates
// nothing for an operation, unlike vfs.Trace, so that what a benchmark allocates
// is the store's own. Its files do not tell where their holes are, so the store
// writes no zeros ahead of the log's tail beside a benchmark.
type counting struct {
	vfs.FS
	// calls counts the operations that are system calls, syncs those that make
	// something durable; written counts bytes, through mappings too.
	calls, syncs, written atomic.Int64
	// onSync, if set, is called in front of each sync of a file.
	onSync func()
}

func newCounting() *counting { return &counting{FS: vfs.OS()} }

// counts is what was counted at a moment.
type counts struct{ calls, syncs, written int64 }

func (c *counting) now() counts {
	return counts{calls: c.calls.Load(), syncs: c.syncs.Load(), written: c.written.Load()}
}

// since returns what came behind from.
func (c *counting) since(from counts) counts {
	to := c.now()
	return counts{calls: to.calls - from.calls, syncs: to.syncs - from.syncs, written: to.written - from.written}
}

func (c *counting) Open(path string, flag vfs.Flag) (vfs.File, error) {
	c.calls.Add(1)
	f, err := c.FS.Open(path, flag)
	if err != nil {
		return nil, err
	}
	return &countingFile{f, c}, nil
}

func (c *counting) Rename(oldPath, newPath string) error {
	c.calls.Add(1)
	return c.FS.Rename(oldPath, newPath)
}

func (c *counting) Link(oldPath, newPath string) error {
	c.calls.Add(1)
	return c.FS.Link(oldPath, newPath)
}

func (c *counting) Remove(path string) error {
	c.calls.Add(1)
	return c.FS.Remove(path)
}

func (c *counting) MkdirAll(path string) error {
	c.calls.Add(1)
	return c.FS.MkdirAll(path)
}

func (c *counting) ReadDir(path string) ([]vfs.DirEntry, error) {
	c.calls.Add(1)
	return c.FS.ReadDir(path)
}

func (c *counting) Stat(path string) (vfs.Info, error) {
	c.calls.Add(1)
	return c.FS.Stat(path)
}

func (c *counting) SyncDir(path string) error {
	c.calls.Add(1)
	c.syncs.Add(1)
	return c.FS.SyncDir(path)
}

func (c *counting) Free(path string) (int64, error) {
	c.calls.Add(1)
	return c.FS.Free(path)
}

func (c *counting) Lock(path string) (vfs.Lock, error) {
	c.calls.Add(1)
	return c.FS.Lock(path)
}

type countingFile struct {
	vfs.File
	c *counting
}

func (f *countingFile) ReadAt(p []byte, off int64) (int, error) {
	f.c.calls.Add(1)
	return f.File.ReadAt(p, off)
}

func (f *countingFile) WriteAt(p []byte, off int64) (int, error) {
	f.c.calls.Add(1)
	n, err := f.File.WriteAt(p, off)
	f.c.written.Add(int64(n))
	return n, err
}

func (f *countingFile) Close() error {
	f.c.calls.Add(1)
	return f.File.Close()
}

func (f *countingFile) Stat() (vfs.Info, error) {
	f.c.calls.Add(1)
	return f.File.Stat()
}

func (f *countingFile) Truncate(size int64) error {
	f.c.calls.Add(1)
	return f.File.Truncate(size)
}

func (f *countingFile) Allocate(off, n int64) error {
	f.c.calls.Add(1)
	return f.File.Allocate(off, n)
}

func (f *countingFile) PunchHole(off, n int64) error {
	f.c.calls.Add(1)
	return f.File.PunchHole(off, n)
}

func (f *countingFile) Sync() error {
	f.c.sync()
	return f.File.Sync()
}

func (f *countingFile) Datasync() error {
	f.c.sync()
	return f.File.Datasync()
}

func (c *counting) sync() {
	c.calls.Add(1)
	c.syncs.Add(1)
	if c.onSync != nil {
		c.onSync()
	}
}

func (f *countingFile) Map(size int64, writable bool) (vfs.Mapping, error) {
	f.c.calls.Add(1)
	m, err := f.File.Map(size, writable)
	if err != nil {
		return nil, err
	}
	return &countingMapping{m, f.c}, nil
}

type countingMapping struct {
	vfs.Mapping
	c *counting
}

func (m *countingMapping) WriteAt(p []byte, off int64) {
	m.c.written.Add(int64(len(p)))
	m.Mapping.WriteAt(p, off)
}

func (m *countingMapping) Populate(off, n int64) error {
	m.c.calls.Add(1)
	return m.Mapping.Populate(off, n)
}

func (m *countingMapping) Unmap() error {
	m.c.calls.Add(1)
	return m.Mapping.Unmap()
}
