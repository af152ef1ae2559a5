package cq

import (
	"container/list"
	"errors"
	"sync"

	"github.com/stratalog/stratalog/internal/vfs"
)

// handleKey names one file of one queue.
type handleKey struct {
	q     *queue
	start int64
}

// handle is an open file with a use count. refs and gone are guarded by the
// mutex of handles.
type handle struct {
	key  handleKey
	file vfs.File
	refs int
	gone bool // Not in the table any more: closed when refs gets to 0.
	elem *list.Element
}

// handles keeps at most max files open, least recently used out first. A file
// in use is never closed under its user.
//
// A file that was written and not yet synced may be closed here. Its pages stay
// with the system, and Flush opens it again to sync it: the system keeps a
// write-back error for the next descriptor that asks, if none asked before.
type handles struct {
	fs       vfs.FS
	flag     vfs.Flag
	max      int
	fileSize int64

	mu    sync.Mutex
	gen   uint64 // Grows with every forget.
	table map[handleKey]*handle
	order *list.List // Front is the most recently used.
}

func newHandles(fs vfs.FS, opts Options) *handles {
	flag := vfs.ReadWrite
	if opts.ReadOnly {
		flag = vfs.ReadOnly
	}
	return &handles{
		fs: fs, flag: flag, max: opts.MaxHandles, fileSize: opts.FileSize,
		table: make(map[handleKey]*handle), order: list.New(),
	}
}

// acquire returns the open file; release must follow.
func (h *handles) acquire(q *queue, start int64) (*handle, error) {
	key := handleKey{q, start}
	h.mu.Lock()
	if e, ok := h.table[key]; ok {
		e.refs++
		h.order.MoveToFront(e.elem)
		h.mu.Unlock()
		return e, nil
	}
	gen := h.gen
	h.mu.Unlock()
	file, err := h.fs.Open(q.path(start), h.flag)
	if err != nil {
		return nil, err
	}
	e, err := h.add(key, file, gen)
	if e == nil && err == nil {
		return h.acquire(q, start)
	}
	return e, err
}

// held returns the file if it is open, else nil; release must follow.
func (h *handles) held(q *queue, start int64) *handle {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.table[handleKey{q, start}]
	if e != nil {
		e.refs++
	}
	return e
}

// create makes the file at its full length and returns it open. A file that is
// there already is left as it is, but brought to its length.
func (h *handles) create(q *queue, start int64) (*handle, error) {
	h.mu.Lock()
	gen := h.gen
	h.mu.Unlock()
	file, err := h.fs.Open(q.path(start), vfs.ReadWrite|vfs.Create)
	if err != nil {
		return nil, err
	}
	if err := file.Truncate(h.fileSize); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	e, err := h.add(handleKey{q, start}, file, gen)
	if e == nil && err == nil {
		return h.create(q, start)
	}
	return e, err
}

// add puts a file that was opened at generation gen into the table. It returns
// nil, and the caller tries again, if something was forgotten since: the file
// may be one that has no name any more.
func (h *handles) add(key handleKey, file vfs.File, gen uint64) (*handle, error) {
	h.mu.Lock()
	if h.gen != gen {
		h.mu.Unlock()
		return nil, file.Close()
	}
	e, ok := h.table[key]
	idle := []vfs.File{file}
	if ok {
		e.refs++
	} else {
		e = &handle{key: key, file: file, refs: 1}
		e.elem = h.order.PushFront(e)
		h.table[key] = e
		idle = h.shrink()
	}
	h.mu.Unlock()
	if err := closeAll(idle); err != nil {
		return nil, errors.Join(err, h.release(e))
	}
	return e, nil
}

// shrink takes the oldest files out of the table until it fits and returns
// those that nobody uses.
func (h *handles) shrink() []vfs.File {
	var idle []vfs.File
	for len(h.table) > h.max && h.order.Len() > 1 {
		e := h.order.Back().Value.(*handle)
		if f := h.remove(e); f != nil {
			idle = append(idle, f)
		}
	}
	return idle
}

// remove takes e out of the table; the file is returned if nobody uses it.
func (h *handles) remove(e *handle) vfs.File {
	h.order.Remove(e.elem)
	delete(h.table, e.key)
	e.gone = true
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

// forget closes the file of key once nobody uses it: before it is removed, and
// after a failed sync, so that the next one goes through a fresh descriptor.
func (h *handles) forget(q *queue, start int64) error {
	h.mu.Lock()
	h.gen++
	var f vfs.File
	if e, ok := h.table[handleKey{q, start}]; ok {
		f = h.remove(e)
	}
	h.mu.Unlock()
	if f != nil {
		return f.Close()
	}
	return nil
}

func (h *handles) close() error {
	h.mu.Lock()
	var idle []vfs.File
	for h.order.Len() > 0 {
		if f := h.remove(h.order.Front().Value.(*handle)); f != nil {
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
