package index

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"sync"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// Query asks for the records that have a key.
type Query struct {
	Topic, Key string
	// Tag takes Key for the TAGS of a record. Only an index with Options.Tags
	// finds it.
	Tag bool
	// From and To bound the store time, both inclusive, in epoch milliseconds;
	// a To of 0 is no bound. An entry has seconds only: what lies within one
	// of the window is found too, and the record says what it is.
	From, To int64
}

// Position is where a search goes on; the zero value is the newest entry.
type Position struct {
	file  string
	entry int32
	phy   int64
}

// Candidate is an entry with the hash of the key.
type Candidate struct {
	// Offset is the place of the record.
	Offset contract.Offset

	s *Store
	f *file
	k int64
}

// Place returns the file and the byte in it where the entry stands.
func (c Candidate) Place() (file string, offset int64) { return c.f.path, c.s.entryAt(c.k) }

// Position is where a search begins that finds the candidate first.
func (c Candidate) Position() Position {
	return Position{c.f.name, int32(c.k), int64(c.Offset) + 1}
}

// Visitor takes what a search finds, newest first, each record once. It reads
// the record and compares its key: see Matches. The search ends when more is
// false, or with the error.
type Visitor interface {
	Visit(c Candidate) (more bool, err error)
}

// searchSteps bounds the entries that one Search looks at.
const searchSteps = 1 << 16

// found is a Candidate's entry.
type found struct{ phy, k, previous int64 }

// run is how many entries are found before they are visited.
const run = 16

// Search calls v for the entries of the query, from the newest that lies behind
// from. It returns where to go on: done means nowhere. A search that was not
// done met its bound, or v had enough. Behind a *contract.CorruptionError, which
// names a file and the place in it, it goes on with the next older file.
//
// Times in a log never run backwards. In a log of a Java store whose clock was
// set back, the search may leave out what was stored in the meantime.
func (s *Store) Search(ctx context.Context, q Query, from Position, v Visitor) (next Position, done bool, err error) {
	if err := s.checkOpen(contract.OpQuery); err != nil {
		return from, false, err
	}
	if q.To == 0 {
		q.To = math.MaxInt64
	}
	cuts := s.cuts.Load()
	list := *s.shown.Load()
	c := chains.Get().(*chain)
	defer c.giveBack()
	c.s, c.q, c.left = s, q, searchSteps
	c.hash, c.text = keyHash(c.text, q.Topic, q.Key, q.Tag)
	lastPhy, at, k := int64(-1), len(list)-1, int64(0)
	if from != (Position{}) {
		lastPhy = from.phy
		for at >= 0 && list[at].name > from.file {
			at--
		}
		if at >= 0 && list[at].name == from.file {
			k = int64(from.entry)
		}
	}
	for ; at >= 0; at, k = at-1, 0 {
		f := list[at]
		for more := true; more; {
			var hits []found
			var damage error
			hits, k, damage = c.follow(f, k, s.trustIn(at, len(list)), c.hits[:0])
			for _, hit := range hits {
				if hit.phy >= lastPhy && lastPhy >= 0 {
					continue // Another word of the same record, or seen before.
				}
				lastPhy = hit.phy
				goOn, err := v.Visit(Candidate{contract.Offset(hit.phy), s, f, hit.k})
				if err != nil || !goOn {
					next, done = nextPosition(list, at, hit.previous, lastPhy)
					return next, done, err
				}
			}
			if damage != nil && (cuts%2 != 0 || s.cuts.Load() != cuts) {
				return Position{f.name, 0, lastPhy}, false, nil // Cut under our hands.
			}
			if damage != nil {
				next, done = nextPosition(list, at, 0, lastPhy)
				return next, done, damage
			}
			if more = k > 0; !more {
				break
			}
			err := ctx.Err()
			if err != nil {
				err = contract.NewError(contract.KindTimeout, contract.OpQuery, contract.ComponentIndex, "", err)
			}
			if err != nil || c.left <= 0 {
				return Position{f.name, int32(k), lastPhy}, false, err
			}
		}
	}
	return Position{}, true, nil
}

// trust is how far the entries of a file are believed.
type trust uint8

const (
	// whole: the file is what it says.
	whole trust = iota
	// growing: its owner may be putting entries behind those that it says.
	growing
	// vouched: as growing, and a power cut may have left what stands there.
	vouched
	// loose: all of it stands behind what is vouched for.
	loose
)

// trustIn tells how far file at, of n, is believed.
func (s *Store) trustIn(at, n int) trust {
	switch {
	case !s.opts.ReadOnly:
		return whole
	case s.view.exact && at >= s.view.trusted:
		return loose
	case s.view.exact && at == s.view.trusted-1:
		return vouched
	case at == n-1:
		return growing
	}
	return whole
}

// nextPosition is where to go on behind an entry of file at whose chain goes on
// at k, 0 for nowhere.
func nextPosition(list []*file, at int, k, phy int64) (Position, bool) {
	if k == 0 {
		if at == 0 {
			return Position{}, true
		}
		return Position{list[at-1].name, 0, phy}, false
	}
	return Position{list[at].name, int32(k), phy}, false
}

// chain follows the chains of one hash.
type chain struct {
	s    *Store
	q    Query
	hash int32
	left int

	text []byte
	hits [run]found
	// raw is what reads go to: memory that the system may fill.
	raw [entrySize]byte

	head codec.IndexHeader // Of a file that is not sealed.
	// m or h is how the file in work is read.
	m *mapping
	h *handle
	// act is set while the file is the active one, whose lock is held.
	act *active
}

var chains = sync.Pool{New: func() any { return new(chain) }}

func (c *chain) giveBack() {
	c.s, c.q = nil, Query{}
	if cap(c.text) <= 4096 {
		chains.Put(c)
	}
}

// follow looks at a chain of f from entry k on, 0 for its newest, and appends
// what it finds to hits, as long as there is room. It returns the entry to go
// on with, 0 for none.
func (c *chain) follow(f *file, k int64, t trust, hits []found) ([]found, int64, error) {
	head := f.sealed.Load()
	if head == nil {
		c.s.mu.RLock()
		c.head = f.head
		head = &c.head
		if c.s.act.f == f {
			c.act = &c.s.act
			defer func() {
				c.act = nil
				c.s.mu.RUnlock()
			}()
		} else {
			c.s.mu.RUnlock()
		}
	}
	if head.Count <= 1 || head.EndTime < c.q.From || head.BeginTime > c.q.To {
		return hits, 0, nil
	}
	hits, k, err := c.walk(f, head, k, t, hits)
	if e := c.giveUp(); e != nil {
		err = errors.Join(err, e)
	}
	switch {
	case err == nil || errors.Is(err, contract.ErrCorrupt):
		return hits, k, err
	case errors.Is(err, fs.ErrNotExist):
		return hits, 0, nil // Retired.
	}
	return hits, k, ioError(contract.OpQuery, f.path, err)
}

func (c *chain) walk(f *file, head *codec.IndexHeader, k int64, t trust, hits []found) ([]found, int64, error) {
	s := c.s
	// A damaged header may count more than there is room for.
	count, slot := min(int64(head.Count), s.entries), int64(c.hash)%s.slots
	if k >= s.entries {
		k = 0 // a place of other files than these
	}
	if k > 0 && (k < count || t == vouched) {
		// The log may have been cut since, and others stand there now.
		if e, err := c.entry(f, k); err != nil || int64(e.KeyHash)%s.slots != slot {
			k = 0
		}
	}
	var err error
	if k == 0 || k >= count && t != vouched {
		if k, err = c.first(f, slot, count, t); err != nil {
			if t == loose && errors.Is(err, contract.ErrCorrupt) {
				err = nil
			}
			return hits, 0, err
		}
	}
	if t == loose || k >= count {
		down := count
		if t == loose {
			down = 0
		}
		hits, k, err = c.links(f, head, k, down, s.view.limit, hits)
		switch {
		case err != nil && !errors.Is(err, contract.ErrCorrupt):
			return hits, 0, err
		case t == loose && err != nil:
			return hits, 0, nil
		case t == loose || err == nil && k >= count:
			return hits, k, nil
		}
		if k, err = c.newest(f, slot, count); err != nil {
			return hits, 0, err
		}
	}
	return c.links(f, head, k, 0, 0, hits)
}

// links follows a chain from entry k to those at and above down. Entries of
// records below floor are not among them.
func (c *chain) links(f *file, head *codec.IndexHeader, k, down, floor int64, hits []found) ([]found, int64, error) {
	s, slot := c.s, int64(c.hash)%c.s.slots
	for k > 0 && k >= down && c.left > 0 && len(hits) < cap(hits) {
		c.left--
		e, err := c.entry(f, k)
		if err != nil {
			return hits, 0, err
		}
		previous := int64(e.Previous)
		switch {
		case e.KeyHash < 0 || e.PhysicalOffset < floor || e.TimeDiff < 0:
			return hits, 0, damaged(f, s.entryAt(k), ErrEntry)
		case int64(e.KeyHash)%s.slots != slot || previous < 0 || previous >= k:
			return hits, 0, damaged(f, s.entryAt(k), ErrChain)
		}
		from, to := head.BeginTime+int64(e.TimeDiff)*1000, head.BeginTime+int64(e.TimeDiff)*1000+999
		if k == 1 {
			from, to = head.BeginTime, head.BeginTime // It is timed from the file before.
		}
		if to < c.q.From {
			return hits, 0, nil
		}
		if e.KeyHash == c.hash && from <= c.q.To {
			// Where a chain leads down to what is certain it is not followed.
			hits = append(hits, found{e.PhysicalOffset, k, max(previous, down)})
		}
		k = previous
	}
	return hits, k, nil
}

// first returns the newest entry of a slot's chain, 0 for none.
func (c *chain) first(f *file, slot, count int64, t trust) (int64, error) {
	s := c.s
	at := s.slotAt(slot)
	var k int64
	if c.act != nil && c.act.image != nil && (c.act.loaded == nil || c.act.loaded.has(at/pageSize)) {
		k = decodeSlot(c.act.image.from(at))
	} else {
		b, err := c.view(f, at, slotSize, c.raw[:])
		if err != nil {
			return 0, err
		}
		k = decodeSlot(b)
	}
	switch {
	case k >= 0 && k < count:
		return k, nil
	case t == growing:
		return c.newest(f, slot, count)
	case t == vouched && k >= 0 && k < s.entries:
		return k, nil
	case t == vouched:
		return c.newest(f, slot, count)
	}
	return 0, damaged(f, at, ErrChain)
}

// newest looks for the newest entry of a slot below count through all entries.
func (c *chain) newest(f *file, slot, count int64) (int64, error) {
	buf := make([]byte, scanBytes)
	for end := count; end > 1; {
		from := max(end-scanBytes/entrySize, 1)
		b, err := c.view(f, c.s.entryAt(from), (end-from)*entrySize, buf)
		if err != nil {
			return 0, err
		}
		for k := end - 1; k >= from; k-- {
			if e := decodeEntry(b[(k-from)*entrySize:]); e.KeyHash >= 0 && int64(e.KeyHash)%c.s.slots == slot {
				return k, nil
			}
		}
		end = from
	}
	return 0, nil
}

func (c *chain) entry(f *file, k int64) (codec.IndexEntry, error) {
	at := c.s.entryAt(k)
	if c.act != nil && at >= c.act.bufAt {
		return decodeEntry(c.act.buf[at-c.act.bufAt:]), nil
	}
	b, err := c.view(f, at, entrySize, c.raw[:])
	return decodeEntry(b), err
}
