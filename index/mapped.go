package index

import (
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/stratalog/stratalog/internal/vfs"
	"github.com/stratalog/stratalog/mmap"
)

// A search reads files through mappings: a slot and the few entries of its chain
// lie far from each other, and a system call for each would take longer than all
// else. What may be cold is brought in by a call before it is touched, so that a
// read error is an error and not a signal, nor a stall of the scheduler.
const (
	// warmPiece is the unit in which a file is brought in, in bytes.
	warmPiece = 64 << 10
	// warmUses is how many reads a piece is good for: one that is read all the
	// time stays in memory, another is asked for again.
	warmUses = 1024
)

// mapping is a file as memory. It is used under a lease of its mmap.File.
type mapping struct {
	*mmap.File
	owner *file
	bytes []byte
	// uses says of each piece how many reads it is good for. A race between two
	// readers loses a count or a memory, which costs a system call.
	uses []atomic.Uint32
	used atomic.Bool // Since the hand of mappings passed.
}

// bringIn makes sure that the bytes [at, at+n) are in memory. The caller holds a
// lease.
func (m *mapping) bringIn(at, n int64) error {
	for piece := at / warmPiece; piece*warmPiece < at+n; piece++ {
		if left := m.uses[piece].Load(); left > 0 {
			m.uses[piece].Store(left - 1)
			continue
		}
		from := piece * warmPiece
		if err := m.Populate(from, min(warmPiece, m.Size()-from)); err != nil {
			return err
		}
		m.uses[piece].Store(warmUses)
	}
	return nil
}

// mappings keeps at most max files mapped; one that was used since the last
// round stays. To take one that is there needs no lock.
type mappings struct {
	fs   vfs.FS
	max  int
	size func() int64 // The length of a file that can be mapped.

	mu   sync.Mutex
	kept []*mapping
	hand int
	// leaving are mappings that were dropped under a lease.
	leaving []*mapping
	closed  bool
}

// acquire returns the file's mapping under a lease, or nil if it cannot be
// mapped, or should not be now: then it is read.
func (s *mappings) acquire(f *file) (*mapping, error) {
	m := f.mapping.Load()
	if m == nil {
		var err error
		if m, err = s.add(f); m == nil || err != nil {
			return nil, err
		}
	}
	if m.Acquire() != nil {
		return nil, nil
	}
	if !m.used.Load() {
		m.used.Store(true)
	}
	return m, nil
}

// add maps a file.
func (s *mappings) add(f *file) (*mapping, error) {
	if strconv.IntSize < 64 || f.unmappable.Load() {
		return nil, nil // Addresses of 32 bits are for the log.
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := f.mapping.Load(); m != nil || s.closed || f.unmappable.Load() {
		return m, nil
	}
	opened, err := mmap.OpenReadOnly(s.fs, f.path, s.size())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		// Whatever is wrong with it, a read says so. What may pass, as a lack of
		// memory or of descriptors does, is tried again by the next search.
		var length *mmap.LengthError
		if errors.As(err, &length) || errors.Is(err, errors.ErrUnsupported) {
			f.unmappable.Store(true)
		}
		return nil, nil
	}
	opened.Seal()
	m := &mapping{File: opened, owner: f, bytes: opened.Bytes(), uses: make([]atomic.Uint32, (opened.Size()+warmPiece-1)/warmPiece)}
	err = s.makeRoom()
	s.kept = append(s.kept, m)
	f.mapping.Store(m)
	return m, err
}

// makeRoom ends the mappings that were not used for long. The caller holds mu.
func (s *mappings) makeRoom() error {
	var errs []error
	for len(s.kept) >= s.max {
		if s.hand >= len(s.kept) {
			s.hand = 0
		}
		if m := s.kept[s.hand]; m.used.Swap(false) {
			s.hand++
			continue
		}
		errs = append(errs, s.drop(s.hand))
	}
	return errors.Join(errs...)
}

// drop ends the mapping with number i. The caller holds mu.
func (s *mappings) drop(i int) error {
	m, last := s.kept[i], len(s.kept)-1
	s.kept[i], s.kept[last] = s.kept[last], nil
	s.kept = s.kept[:last]
	m.owner.mapping.Store(nil)
	m.Close(nil)
	s.leaving = slices.DeleteFunc(s.leaving, func(m *mapping) bool { return m.State() == mmap.Detached })
	if m.State() != mmap.Detached {
		s.leaving = append(s.leaving, m)
		return nil
	}
	return m.DetachErr()
}

// forget ends the mapping of a file, and the file is mapped no more until it is
// allowed again. It returns when no search looks at it any more: what is cut off
// a file under a search would be a signal.
func (s *mappings) forget(f *file) error {
	s.mu.Lock()
	f.unmappable.Store(true)
	var err error
	if i := slices.Index(s.kept, f.mapping.Load()); i >= 0 {
		err = s.drop(i)
	}
	leaving := slices.Clone(s.leaving)
	s.mu.Unlock()
	for _, m := range leaving {
		if m.owner == f {
			<-m.Detached()
			err = errors.Join(err, m.DetachErr())
		}
	}
	return err
}

// allow lets a file be mapped again.
func (s *mappings) allow(f *file) { f.unmappable.Store(false) }

func (s *mappings) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var errs []error
	for len(s.kept) > 0 {
		errs = append(errs, s.drop(len(s.kept)-1))
	}
	return errors.Join(errs...)
}

// view returns the n bytes at byte at of f: those of its mapping, or buf, into
// which they are read. They are valid until the end of follow.
func (c *chain) view(f *file, at, n int64, buf []byte) ([]byte, error) {
	if c.m == nil && c.h == nil {
		var err error
		if c.m, err = c.s.maps.acquire(f); err != nil {
			return nil, err
		}
	}
	if m := c.m; m != nil {
		if err := m.bringIn(at, n); err != nil {
			return nil, err
		}
		return m.bytes[at : at+n], nil
	}
	if c.h == nil {
		var err error
		if c.h, err = c.s.files.acquire(f); err != nil {
			return nil, err
		}
	}
	return buf[:n], c.h.readAt(buf[:n], at)
}

// giveUp ends the use of the file in work.
func (c *chain) giveUp() error {
	if c.m != nil {
		c.m.Release()
		c.m = nil
	}
	if c.h == nil {
		return nil
	}
	h := c.h
	c.h = nil
	return c.s.files.release(h)
}

// seal notes that nothing is put into a file any more, so that a search need not
// ask the lock for its header. The caller holds Store.mu, or nobody searches yet.
func (f *file) seal() {
	head := f.head
	f.sealed.Store(&head)
}

// show replaces the list of files. The caller holds mu.
func (s *Store) show(list []*file) {
	s.list = list
	if s.view.exact {
		list = s.view.all
	}
	s.shown.Store(&list)
}
