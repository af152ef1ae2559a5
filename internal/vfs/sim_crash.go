package vfs

import (
	"cmp"
	"maps"
	"slices"
)

// ItemKind says what a pending item is.
type ItemKind uint8

// The kinds of pending item.
const (
	ItemName   ItemKind = iota // A change of one name.
	ItemSize                   // The length, and the allocated blocks, of a file.
	ItemSector                 // The content of a sector.
)

var itemNames = [...]string{"name", "size", "sector"}

// String returns a lower-case word.
func (k ItemKind) String() string { return itemNames[k] }

// Item is one thing of which a crash keeps one version.
type Item struct {
	Kind     ItemKind
	Op       OpKind // Of a name: OpCreate, OpRemove or OpRename.
	Path     string
	Offset   int64  // Of a sector.
	Versions int    // 0 is what is on disk, Versions-1 what the process sees.
	Seq      uint64 // The operation that first made it pending.
}

// Garbage is what a Chooser answers to have a sector filled with bytes that
// were never written: what a disk may leave of an interrupted write.
const Garbage = -1

// Chooser decides which version of an item a crash keeps: 0 to Versions-1, or
// Garbage for a sector. Items come with the oldest Seq first, in an order that
// depends on nothing else; i of total is the place in it. A Chooser is called
// under the lock of the Sim and must not use it.
type Chooser func(i, total int, it Item) int

// pendingItem is an Item with where to put the choice.
type pendingItem struct {
	Item
	node   uint64
	order  int
	choice *int
}

// pending collects the items in order. The result is valid until the next call.
func (s *Sim) pending() []pendingItem {
	items := s.items[:0]
	for id, n := range s.nodes {
		if n.drefs == 0 {
			continue // Only open handles know it: a crash forgets it whatever is chosen.
		}
		for k, op := range n.ops {
			if op.follows {
				continue // Decided with the other half.
			}
			it := Item{Kind: ItemName, Op: op.kind, Path: op.path, Versions: 2, Seq: op.seq}
			if op.partner != 0 {
				it.Op = OpRename
			}
			items = append(items, pendingItem{it, id, k, &op.choice})
		}
		if n.sizeSeq != 0 {
			it := Item{Kind: ItemSize, Path: n.path, Versions: len(n.sizes) + 2, Seq: n.sizeSeq}
			items = append(items, pendingItem{it, id, 0, &n.sizeChoice})
		}
		for i, d := range n.dirty {
			for k, sec := range d.sectors {
				if sec == nil {
					continue
				}
				at := i*pageSize + int64(k)*sectorSize
				it := Item{Kind: ItemSector, Path: n.path, Offset: at, Versions: sec.versions(), Seq: sec.seq}
				items = append(items, pendingItem{it, id, 0, &sec.choice})
			}
		}
	}
	slices.SortFunc(items, func(a, b pendingItem) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.node, b.node), cmp.Compare(a.order, b.order),
			cmp.Compare(a.Offset, b.Offset))
	})
	s.items = items
	return items
}

// PendingCount returns how many items a crash would choose a version of.
func (s *Sim) PendingCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending())
}

// Pending returns the items that a crash would choose a version of.
func (s *Sim) Pending() []Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := s.pending()
	out := make([]Item, len(items))
	for i, it := range items {
		out[i] = it.Item
	}
	return out
}

// Crash returns what a power cut at this moment may leave behind, as choose
// decides. The Sim itself stays as it is and can go on or crash again. The
// result has no hook, no pending rule of FailSync, no handle and no lock.
func (s *Sim) Crash(choose Chooser) *Sim {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := s.pending()
	for i := range items {
		it := &items[i]
		v := choose(i, len(items), it.Item)
		if v < 0 && it.Kind == ItemSector {
			v = Garbage
		} else {
			v = min(max(v, 0), it.Versions-1)
		}
		*it.choice = v
	}
	c := s.child(len(s.nodes))
	c.survive(s, s.nodes[rootID])
	return c
}

// child returns an empty Sim like s, and makes everything that s owns shared.
func (s *Sim) child(nodes int) *Sim {
	s.own = new(token)
	c := &Sim{
		opt: s.opt, own: new(token), lastID: s.lastID, capacity: s.capacity, readOnly: s.readOnly,
		nodes: make(map[uint64]*node, nodes), locks: map[uint64]*simLock{},
	}
	c.seq.Store(s.seq.Load())
	return c
}

// survive copies into c what the crash of s leaves of n.
func (c *Sim) survive(s *Sim, n *node) {
	if m := c.nodes[n.id]; m != nil {
		m.links++
		m.drefs++
		return
	}
	m := &node{id: n.id, dir: n.dir, path: n.path, mtime: n.mtime, links: 1, drefs: 1}
	c.nodes[n.id] = m
	if !n.dir {
		n.surviveFile(c.own, m)
		c.used += m.blocks.n
		return
	}
	m.durable = n.durable.shared()
	for _, op := range n.ops {
		chosen := op.choice
		if op.follows {
			chosen = s.leadChoice(op)
		}
		if chosen != 0 {
			op.apply(c.own, &m.durable, nil)
		}
	}
	m.durable.own = nil
	m.names = m.durable
	for _, id := range m.names.m {
		c.survive(s, s.nodes[id])
	}
}

// leadChoice returns the choice that was made for the other half of op.
func (s *Sim) leadChoice(op *nameOp) int {
	if p := s.nodes[op.partner]; p != nil {
		for _, lead := range p.ops {
			if lead.seq == op.seq {
				return lead.choice
			}
		}
	}
	return 1 // The directory is gone for good, and with it the old name.
}

// surviveFile builds in m the chosen versions of the file n.
func (n *node) surviveFile(own *token, m *node) {
	m.size = n.diskSize
	m.disk = n.disk.shared()
	m.blocks = n.diskBlocks.shared()
	if n.sizeSeq != 0 && n.sizeChoice > 0 {
		if n.sizeChoice <= len(n.sizes) {
			m.size = n.sizes[n.sizeChoice-1]
		} else {
			m.size = n.size
			m.blocks = n.blocks.shared()
		}
	}
	for i, d := range n.dirty {
		p, changed := d.survive(own, n.cur.get(i), n.disk.get(i))
		if changed {
			m.disk.set(own, i, p)
		}
		if p != nil && i < pagesIn(m.size) {
			m.blocks.add(own, i)
		}
	}
	if len(n.dirty) > 0 || m.size != n.diskSize {
		m.disk.trim(own, m.size)
		m.blocks.remove(own, pagesIn(m.size), 1<<50)
	}
	m.diskSize = m.size
	m.disk.own, m.blocks.own = nil, nil
	m.cur, m.diskBlocks = m.disk, m.blocks
}

// survive returns the page with the chosen version of each sector, and whether
// that is another page than the disk's.
func (d *dirtyPage) survive(own *token, cur, disk *page) (*page, bool) {
	oldest, newest := true, true
	for _, sec := range d.sectors {
		if sec != nil {
			oldest = oldest && sec.choice == 0
			newest = newest && sec.choice == len(sec.older)+1
		}
	}
	switch {
	case oldest:
		return disk, false
	case newest:
		return cur, true
	}
	p := &page{own: own, data: disk.orZero().data}
	for k, sec := range d.sectors {
		if sec == nil || sec.choice == 0 {
			continue
		}
		to := p.data[k*sectorSize : (k+1)*sectorSize]
		switch {
		case sec.choice == Garbage:
			fillGarbage(to, sec.seq<<3+uint64(k))
		case sec.choice <= len(sec.older):
			copy(to, sec.older[sec.choice-1][:])
		default:
			copy(to, cur.sector(k)[:])
		}
	}
	return p, true
}

// fillGarbage fills p with bytes that depend on seed only.
func fillGarbage(p []byte, seed uint64) {
	x := seed*0x9E3779B97F4A7C15 + 0x2545F4914F6CDD1D
	for i := range p {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		p[i] = byte(x >> 32)
	}
}

// Kill returns what the death of the process alone leaves behind: every name
// and byte as the process saw them, what was pending still pending, and no
// handle, mapping or lock. Like Crash it leaves the Sim as it is.
func (s *Sim) Kill() *Sim {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.child(len(s.nodes))
	for id, n := range s.nodes {
		c.nodes[id] = n.afterKill()
		c.used += n.blocks.n
	}
	for _, n := range slices.Collect(maps.Values(c.nodes)) {
		if c.nodes[n.id] == n {
			c.reap(n)
		}
	}
	return c
}

// afterKill copies n without handles and mappings.
func (n *node) afterKill() *node {
	m := &node{}
	*m = *n
	m.refs, m.views, m.freed = 0, nil, false
	m.names, m.durable = n.names.shared(), n.durable.shared()
	m.cur, m.disk = n.cur.shared(), n.disk.shared()
	m.blocks, m.diskBlocks = n.blocks.shared(), n.diskBlocks.shared()
	m.ops = nil
	for _, op := range n.ops {
		o := *op
		m.ops = append(m.ops, &o)
	}
	m.dirty = nil
	if len(n.dirty) > 0 {
		m.dirty = make(map[int64]*dirtyPage, len(n.dirty))
	}
	for i, d := range n.dirty {
		e := &dirtyPage{}
		for k, sec := range d.sectors {
			if sec != nil {
				x := *sec
				e.sectors[k] = &x
			}
		}
		m.dirty[i] = e
	}
	return m
}
