package vfs

import (
	"bytes"
	"slices"
	"syscall"
	"time"
)

// node is a file or a directory of a Sim. Everything in it is guarded by the
// Sim's mutex.
type node struct {
	id    uint64
	dir   bool
	freed bool   // Its blocks are no longer counted.
	path  string // The last path it was reached by, for messages and patterns.
	mtime time.Time
	links int // Current names.
	refs  int // Handles and mappings.
	drefs int // Durable names and pending operations that mention it.

	// Of a directory: what the process sees, what is durable, and the
	// operations, oldest first, that lead from the one to the other.
	names   nameMap
	durable nameMap
	ops     []*nameOp

	// Of a file: what the process sees.
	size   int64
	cur    table
	blocks bitmap
	views  []*view
	// What is on disk.
	diskSize   int64
	disk       table
	diskBlocks bitmap
	// What is between the two.
	dirty      map[int64]*dirtyPage
	sizes      []int64 // Lengths in between, oldest first.
	sizeSeq    uint64  // The operation that first made the length pending, or 0.
	sizeChoice int     // Of the crash that is being built.
}

// view is memory that shows the beginning of a file to mappings.
type view struct {
	buf  []byte
	refs int
}

// nameOp is a pending change of one directory.
type nameOp struct {
	kind    OpKind // OpCreate, OpRemove, or OpRename within the directory.
	name    string
	old     string // Of OpRename.
	id      uint64
	seq     uint64
	path    string
	partner uint64 // The directory with the other half, of the same seq; or 0.
	follows bool   // The other half has the choice for both.
	choice  int    // Of the crash that is being built.
}

// apply does the change in a directory content, which need not be the one that
// the operation met: another operation before it may be missing. It calls ref,
// unless nil, for each node that gains or loses a name.
func (o *nameOp) apply(own *token, d *nameMap, ref func(id uint64, by int)) {
	if o.kind != OpCreate {
		name := o.name
		if o.kind == OpRename {
			name = o.old
		}
		if d.removeID(own, name, o.id) && ref != nil {
			ref(o.id, -1)
		}
	}
	if o.kind != OpRemove {
		was, had := d.m[o.name]
		d.set(own, o.name, o.id)
		if ref != nil {
			ref(o.id, 1)
			if had {
				ref(was, -1)
			}
		}
	}
}

// pagesIn returns how many pages n bytes take.
func pagesIn(n int64) int64 { return (n + pageSize - 1) / pageSize }

// touch makes sector k of page i pending before a change of it, and keeps what
// is there now as a version that may have reached the disk.
func (n *node) touch(i int64, k int, seq uint64) {
	d := n.dirty[i]
	if d == nil {
		if n.dirty == nil {
			n.dirty = map[int64]*dirtyPage{}
		}
		d = &dirtyPage{}
		n.dirty[i] = d
	}
	sec := d.sectors[k]
	if sec == nil {
		d.sectors[k] = &sector{seq: seq}
		return
	}
	sec.dropped = false
	now := n.cur.get(i).sector(k)
	if len(sec.older) > 0 && *sec.older[len(sec.older)-1] == *now {
		return
	}
	keep := *now
	from := max(0, len(sec.older)-(maxVersions-3))
	sec.older = append(slices.Clone(sec.older[from:]), &keep)
}

// writable returns page i for a change in place.
func (s *Sim) writable(n *node, i int64) *page {
	p := n.cur.get(i)
	// A page without pending sectors is the disk's own.
	if p != nil && p.own == s.own && n.dirty[i] != nil {
		return p
	}
	q := &page{own: s.own}
	if p != nil {
		q.data = p.data
	}
	n.cur.set(s.own, i, q)
	return q
}

// store changes the bytes at off, which lie in blocks that n has.
func (s *Sim) store(n *node, p []byte, off int64, seq uint64) {
	for _, v := range n.views {
		if off < int64(len(v.buf)) {
			copy(v.buf[off:], p)
		}
	}
	for len(p) > 0 {
		i, at := off/pageSize, int(off%pageSize)
		l := min(len(p), pageSize-at)
		q := s.writable(n, i)
		for k := at / sectorSize; k*sectorSize < at+l; k++ {
			n.touch(i, k, seq)
		}
		copy(q.data[at:], p[:l])
		p, off = p[l:], off+int64(l)
	}
}

// write is store into blocks that may have to be found first. It returns how
// many bytes had room.
func (s *Sim) write(n *node, p []byte, off int64, seq uint64) (int, error) {
	room := len(p)
	for i := off / pageSize; i < pagesIn(off+int64(len(p))); i++ {
		if n.blocks.has(i) {
			continue
		}
		if s.capacity > 0 && s.used >= s.capacity {
			room = int(max(0, i*pageSize-off))
			break
		}
		n.blocks.add(s.own, i)
		s.used++
	}
	s.store(n, p[:room], off, seq)
	if end := off + int64(room); room > 0 && end > n.size {
		n.setSize(end, seq)
	}
	if room < len(p) {
		return room, syscall.ENOSPC
	}
	return room, nil
}

// zero makes [off, end) read as zeros.
func (s *Sim) zero(n *node, off, end int64, seq uint64) {
	for _, v := range n.views {
		if off < int64(len(v.buf)) {
			clear(v.buf[off:min(end, int64(len(v.buf)))])
		}
	}
	end = min(end, int64(len(n.cur.pages))*pageSize)
	for off < end {
		i, at := off/pageSize, int(off%pageSize)
		l := int(min(end-off, int64(pageSize-at)))
		if p := n.cur.get(i); p != nil {
			if !bytes.Equal(p.data[at:at+l], zeroPage.data[:l]) {
				q := s.writable(n, i)
				for k := at / sectorSize; k*sectorSize < at+l; k++ {
					n.touch(i, k, seq)
				}
				clear(q.data[at : at+l])
			}
			if l == pageSize {
				n.cur.set(s.own, i, nil)
			}
		}
		off += int64(l)
	}
}

func (n *node) setSize(size int64, seq uint64) {
	n.sizePending(seq)
	n.size = size
}

// sizePending makes the length pending before a change of it.
func (n *node) sizePending(seq uint64) {
	if n.sizeSeq == 0 {
		n.sizeSeq = seq
		return
	}
	from := max(0, len(n.sizes)-(maxVersions-3))
	n.sizes = append(slices.Clone(n.sizes[from:]), n.size)
}

func (s *Sim) truncate(n *node, size int64, seq uint64) {
	if size < n.size {
		s.zero(n, size, n.size, seq)
		n.cur.cut(s.own, pagesIn(size))
		s.used -= n.blocks.remove(s.own, pagesIn(size), pagesIn(n.size))
	}
	if size != n.size {
		n.setSize(size, seq)
	}
}

func (s *Sim) allocate(n *node, off, length int64, seq uint64) error {
	from, to := off/pageSize, pagesIn(off+length)
	need := n.blocks.missing(from, to)
	if s.capacity > 0 && s.used+need > s.capacity {
		return syscall.ENOSPC
	}
	end := max(n.size, off+length)
	if need > 0 || end != n.size {
		n.setSize(end, seq)
	}
	for i := from; i < to; i++ {
		n.blocks.add(s.own, i)
	}
	s.used += need
	return nil
}

func (s *Sim) punch(n *node, off, length int64, seq uint64) {
	s.zero(n, off, off+length, seq)
	s.used -= n.blocks.remove(s.own, pagesIn(off), (off+length)/pageSize)
}

// persist is a successful sync. A data sync leaves pending what is not needed
// to read the data back: that the file became shorter.
func (s *Sim) persist(n *node, full bool) {
	shrunk := n.size < n.diskSize
	for i, d := range n.dirty {
		if !full && shrunk && i >= pagesIn(n.size) {
			continue
		}
		given := 0
		for _, sec := range d.sectors {
			if sec != nil && sec.dropped {
				given++
			}
		}
		if given == 0 {
			n.disk.set(s.own, i, n.cur.get(i))
			delete(n.dirty, i)
			continue
		}
		q := &page{own: s.own, data: n.cur.get(i).orZero().data}
		for k, sec := range d.sectors {
			if sec == nil {
				continue
			}
			if sec.dropped {
				copy(q.data[k*sectorSize:], n.disk.get(i).sector(k)[:])
			} else {
				d.sectors[k] = nil
			}
		}
		n.disk.set(s.own, i, q)
	}
	if full || !shrunk {
		n.diskSize, n.sizes, n.sizeSeq = n.size, nil, 0
		n.disk.cut(s.own, pagesIn(n.size))
	}
	n.blocks.own = nil
	n.diskBlocks = n.blocks
}

// giveUp is a failed sync after which the system takes the pages for clean.
func (n *node) giveUp() {
	for _, d := range n.dirty {
		for _, sec := range d.sectors {
			if sec != nil {
				sec.dropped = true
			}
		}
	}
}

// dropCache makes the process see the disk again where a sync gave up.
func (s *Sim) dropCache(n *node) {
	for i, d := range n.dirty {
		left := 0
		var q *page
		for k, sec := range d.sectors {
			if sec == nil {
				continue
			}
			if !sec.dropped {
				left++
				continue
			}
			if q == nil {
				q = s.writable(n, i)
			}
			at := k * sectorSize
			copy(q.data[at:], n.disk.get(i).sector(k)[:])
			for _, v := range n.views {
				if o := i*pageSize + int64(at); o < int64(len(v.buf)) {
					copy(v.buf[o:], q.data[at:at+sectorSize])
				}
			}
			d.sectors[k] = nil
		}
		if left == 0 {
			delete(n.dirty, i)
			n.cur.set(s.own, i, n.disk.get(i))
		}
	}
	n.cur.trim(s.own, n.size)
}
