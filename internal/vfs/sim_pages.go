package vfs

import (
	"bytes"
	"math/bits"
	"slices"
)

const (
	// sectorSize is the unit in which a disk writes: it is old or new, not
	// torn within.
	sectorSize = 512
	// pageSize is the unit of sharing and of space accounting in a Sim. It
	// has nothing to do with the page size of this machine.
	pageSize       = 4096
	sectorsPerPage = pageSize / sectorSize
	// maxVersions is how many contents of one sector, the oldest and the
	// newest among them, a crash can choose from.
	maxVersions = 4
)

// token marks what a Sim may change in place. Pages, tables and maps carry the
// token of the Sim that made them; one that carries another, or none, is
// shared and copied before a change. When a Sim is cloned it takes a new
// token, and with that gives up, in one step, everything it had made. So the
// clones share all that neither changes, without counting references and
// without a lock between them.
type token struct{ _ byte }

// page is one page of content.
type page struct {
	own  *token
	data [pageSize]byte
}

var zeroPage page

// orZero makes the absent page readable.
func (p *page) orZero() *page {
	if p == nil {
		return &zeroPage
	}
	return p
}

func (p *page) sector(i int) *[sectorSize]byte {
	return (*[sectorSize]byte)(p.orZero().data[i*sectorSize:])
}

// table maps page numbers to pages; what is absent reads as zeros.
type table struct {
	own   *token
	pages []*page
}

func (t *table) get(i int64) *page {
	if i < int64(len(t.pages)) {
		return t.pages[i]
	}
	return nil
}

func (t *table) set(own *token, i int64, p *page) {
	if p == nil && i >= int64(len(t.pages)) {
		return
	}
	if t.own != own {
		t.pages = slices.Clone(t.pages)
		t.own = own
	}
	if grow := int(i) + 1 - len(t.pages); grow > 0 {
		t.pages = append(t.pages, make([]*page, grow)...)
	}
	t.pages[i] = p
}

// cut drops the pages from number n on.
func (t *table) cut(own *token, n int64) {
	if n >= int64(len(t.pages)) {
		return
	}
	// The copy keeps the pages behind n from being found again by append.
	t.pages = slices.Clone(t.pages[:n])
	t.own = own
}

// trim makes everything from byte size on read as zeros.
func (t *table) trim(own *token, size int64) {
	t.cut(own, pagesIn(size))
	at := size % pageSize
	p := t.get(size / pageSize)
	if at == 0 || p == nil || bytes.Equal(p.data[at:], zeroPage.data[at:]) {
		return
	}
	q := &page{own: own}
	copy(q.data[:at], p.data[:])
	t.set(own, size/pageSize, q)
}

// shared returns a copy that copies before its first change.
func (t table) shared() table { return table{pages: t.pages} }

// bitmap is a set of block numbers: the blocks that a file has.
type bitmap struct {
	own  *token
	bits []uint64
	n    int64 // How many are set.
}

func (b *bitmap) has(i int64) bool {
	w := i >> 6
	return w < int64(len(b.bits)) && b.bits[w]>>(i&63)&1 != 0
}

func (b *bitmap) mine(own *token) {
	if b.own != own {
		b.bits = slices.Clone(b.bits)
		b.own = own
	}
}

func (b *bitmap) add(own *token, i int64) {
	if b.has(i) {
		return
	}
	b.mine(own)
	if grow := int(i>>6) + 1 - len(b.bits); grow > 0 {
		b.bits = append(b.bits, make([]uint64, grow)...)
	}
	b.bits[i>>6] |= 1 << (i & 63)
	b.n++
}

// remove takes [from, to) out and returns how many were in.
func (b *bitmap) remove(own *token, from, to int64) int64 {
	to = min(to, int64(len(b.bits))<<6)
	before := b.n
	for i := from; i < to; i++ {
		w := i >> 6
		if i&63 == 0 && i+64 <= to {
			if b.bits[w] != 0 {
				b.mine(own)
				b.n -= int64(bits.OnesCount64(b.bits[w]))
				b.bits[w] = 0
			}
			i += 63
			continue
		}
		if b.has(i) {
			b.mine(own)
			b.bits[w] &^= 1 << (i & 63)
			b.n--
		}
	}
	return before - b.n
}

// missing counts how many of [from, to) are not in.
func (b *bitmap) missing(from, to int64) int64 {
	n := int64(0)
	for i := from; i < to; i++ {
		if !b.has(i) {
			n++
		}
	}
	return n
}

func (b bitmap) shared() bitmap { return bitmap{bits: b.bits, n: b.n} }

// nameMap is the content of a directory: node numbers by name.
type nameMap struct {
	own *token
	m   map[string]uint64
}

func (d *nameMap) mine(own *token) {
	if d.own == own && d.m != nil {
		return
	}
	m := make(map[string]uint64, len(d.m)+1)
	for k, v := range d.m {
		m[k] = v
	}
	d.m, d.own = m, own
}

func (d *nameMap) set(own *token, name string, id uint64) {
	d.mine(own)
	d.m[name] = id
}

func (d *nameMap) remove(own *token, name string) {
	if _, ok := d.m[name]; ok {
		d.mine(own)
		delete(d.m, name)
	}
}

// removeID removes the name of node id, expected to be name, and tells whether
// there was one.
func (d *nameMap) removeID(own *token, name string, id uint64) bool {
	if d.m[name] == id {
		d.remove(own, name)
		return true
	}
	for k, v := range d.m {
		if v == id {
			d.remove(own, k)
			return true
		}
	}
	return false
}

func (d nameMap) shared() nameMap { return nameMap{m: d.m} }

// sector is what may be on disk in the place of one sector: the disk's own
// content, one of older, or what the process sees.
type sector struct {
	older   []*[sectorSize]byte // Contents in between, oldest first; shared, never changed.
	seq     uint64              // The operation that first made it pending.
	choice  int                 // Of the crash that is being built.
	dropped bool                // A failed sync gave it up: later ones pass over it.
}

func (s *sector) versions() int { return len(s.older) + 2 }

// dirtyPage holds the pending sectors of one page; nil is clean: what the
// process sees is what is on disk.
type dirtyPage struct {
	sectors [sectorsPerPage]*sector
}
