package index

import (
	"container/list"
	"errors"
	"sync"

	"github.com/stratalog/stratalog/internal/vfs"
)

// handle is an open file with a use count, both guarded by handles.mu.
type handle struct {
	owner *file
	file  vfs.File
	refs  int
	gone  bool // Not kept any more: closed when refs gets to 0.
	elem  *list.Element
}

// handles keeps at most max files open, least recently used out first. A file
// in use is never closed under its user.
type handles struct {
	fs   vfs.FS
	flag vfs.Flag
	max  int

	mu    sync.Mutex
	order *list.List // Of *handle; the front was used last.
}

func newHandles(fs vfs.FS, opts Options) *handles {
	flag := vfs.ReadWrite
	if opts.ReadOnly {
		flag = vfs.ReadOnly
	}
	return &handles{fs: fs, flag: flag, max: max(opts.MaxHandles, 1), order: list.New()}
}

// acquire returns the open file; release must follow.
func (h *handles) acquire(f *file) (*handle, error) {
	h.mu.Lock()
	if e := f.handle; e != nil {
		e.refs++
		h.order.MoveToFront(e.elem)
		h.mu.Unlock()
		return e, nil
	}
	h.mu.Unlock()
	opened, err := h.fs.Open(f.path, h.flag)
	if err != nil {
		return nil, err
	}
	return h.keep(f, opened)
}

// create makes the file at its full length and returns it open.
func (h *handles) create(f *file, size int64) (*handle, error) {
	made, err := h.fs.Open(f.path, vfs.ReadWrite|vfs.Create)
	if err != nil {
		return nil, err
	}
	if err := made.Truncate(size); err != nil {
		return nil, errors.Join(err, made.Close())
	}
	return h.keep(f, made)
}

func (h *handles) keep(f *file, opened vfs.File) (*handle, error) {
	h.mu.Lock()
	e, spare := f.handle, []vfs.File(nil)
	switch {
	case e != nil:
		e.refs++
		spare = append(spare, opened)
	case f.removed:
		// It has no name any more: nobody else will ask for it.
		e = &handle{owner: f, file: opened, refs: 1, gone: true}
	default:
		e = &handle{owner: f, file: opened, refs: 1}
		e.elem = h.order.PushFront(e)
		f.handle = e
		spare = h.shrink()
	}
	h.mu.Unlock()
	if err := closeAll(spare); err != nil {
		return nil, errors.Join(err, h.release(e))
	}
	return e, nil
}

func (h *handles) shrink() []vfs.File {
	var idle []vfs.File
	for h.order.Len() > h.max {
		if f := h.drop(h.order.Back().Value.(*handle)); f != nil {
			idle = append(idle, f)
		}
	}
	return idle
}

// drop stops keeping e; the file is returned if nobody uses it.
func (h *handles) drop(e *handle) vfs.File {
	h.order.Remove(e.elem)
	e.owner.handle, e.gone = nil, true
	if e.refs == 0 {
		return e.file
	}
	return nil
}

func (h *handles) release(e *handle) error {
	h.mu.Lock()
	e.refs--
	last := e.gone && e.refs == 0
	h.mu.Unlock()
	if last {
		return e.file.Close()
	}
	return nil
}

// forget closes the file once nobody uses it: after a failed sync, so that the
// next one goes through a fresh descriptor, and, with removed set, for good.
func (h *handles) forget(f *file, removed bool) error {
	h.mu.Lock()
	f.removed = f.removed || removed
	var idle vfs.File
	if f.handle != nil {
		idle = h.drop(f.handle)
	}
	h.mu.Unlock()
	if idle != nil {
		return idle.Close()
	}
	return nil
}

func (h *handles) close() error {
	h.mu.Lock()
	var idle []vfs.File
	for h.order.Len() > 0 {
		if f := h.drop(h.order.Front().Value.(*handle)); f != nil {
			idle = append(idle, f)
		}
	}
	h.mu.Unlock()
	return closeAll(idle)
}

func closeAll(files []vfs.File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
