package stratalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/index"
)

// QueryPosition is where a query goes on; the zero value is the newest message.
type QueryPosition = index.Position

// Query asks for the messages of a topic that have a key.
type Query struct {
	Topic string
	// Key is a unique key (the property UNIQ_KEY), or one of the words of the
	// property KEYS.
	Key string
	// Tag takes Key for the property TAGS. Only an index with
	// Options.IndexTags, or one of Java's from 5.4 on, finds it.
	Tag bool
	// From and To bound the store time, to the millisecond, both inclusive;
	// zero is no bound.
	From, To time.Time
	// MaxCount bounds the number of records; 0 stands for 32, the most is
	// 1024.
	MaxCount int
	// MaxBytes bounds the bytes of the records; at least one is returned, even
	// if it is larger. 0 means no bound.
	MaxBytes int
	// After, if not zero, is Matches.Next of the answer before.
	After QueryPosition
}

// Matches is the answer to a Query, newest first, owned by the caller and reused
// from call to call. It holds leases: call Release when the bytes are not needed
// any more. The next query with it releases them too.
type Matches struct {
	// Status is GetFound or GetNoMatchedMessage.
	Status contract.GetStatus
	// More tells that the answer is not complete: go on with Query.After set
	// to Next. There may be more of it even if nothing was found yet, since
	// the work of one call is bounded. With a *contract.CorruptionError it
	// leads past the damage: to the next older message, or index file.
	More bool
	Next QueryPosition
	// Boundary is the place in the log up to which the answer counts: a message
	// that matches, and lies at or above it, may be left out, since the index
	// has not come to it yet. Start is where the log begins: what matched below
	// was retired.
	Boundary Offset
	Start    Offset

	querier querier
	records []Record
	n       int
	bytes   int
}

// Len returns the number of records.
func (m *Matches) Len() int { return m.n }

// At returns the i-th record, valid until Release.
func (m *Matches) At(i int) *Record { return &m.records[:m.n][i] }

// Release ends the leases. It is harmless on an empty answer.
func (m *Matches) Release() {
	for i := range m.records[:m.n] {
		m.records[i].Release()
	}
	m.n = 0
}

// clear makes m an answer that holds nothing.
func (m *Matches) clear(after QueryPosition) {
	m.Release()
	m.Status, m.More, m.Next, m.Boundary, m.Start, m.bytes = contract.GetNoMatchedMessage, false, after, 0, 0, 0
}

// QueryKey fills out with the messages that have a key, newest first, each once.
// Every one was checked, and has the very key, not only its hash. Damage is a
// *contract.CorruptionError that names file and offset, of the log or of the
// index; out then holds what was found in front of it. Without an index the
// error is contract.ErrUnsupported.
func (s *Store) QueryKey(ctx context.Context, q Query, out *Matches) error {
	g := s.reading.Load()
	if g == nil {
		if out != nil {
			out.clear(q.After)
		}
		return s.refusal(contract.OpQuery, stageLoaded)
	}
	own := s.owned(g)
	if own.index == nil {
		return own.query(ctx, q, out, 0)
	}
	boundary, err := s.indexed()
	if err == nil {
		err = own.query(ctx, q, out, boundary)
	} else if out != nil {
		out.clear(q.After)
	}
	if s.closedUnder(g) && (err == nil || errors.Is(err, contract.ErrCorrupt)) {
		err = s.refusal(contract.OpQuery, stageLoaded)
		if out != nil {
			out.clear(q.After)
		}
	}
	return err
}

// owned is the getter of a Store.
func (s *Store) owned(g *getter) getter {
	return getter{log: g.log, queues: g.queues, index: g.index, owner: s}
}

// querier is the visitor of one query.
type querier struct {
	g        getter
	q        Query
	out      *Matches
	from, to int64
	count    int
	cuts     int64
	// again is where to go on when a record had no room, retired tells that all
	// that follows lies below the log's start.
	again   QueryPosition
	retired bool
}

func queryError(kind contract.Kind, detail string, cause error) error {
	return contract.NewError(kind, contract.OpQuery, contract.ComponentIndex, detail, cause)
}

// query fills out; see Store.QueryKey.
func (g getter) query(ctx context.Context, q Query, out *Matches, boundary contract.Offset) error {
	if out == nil {
		return noTarget()
	}
	out.clear(q.After)
	out.Boundary, out.Start = min(boundary, g.log.Confirmed()), g.log.MinOffset()
	count := q.MaxCount
	if count == 0 {
		count = DefaultMaxCount
	}
	switch {
	case g.index == nil:
		return queryError(contract.KindUnsupported, "there is no key index", g.noIndex)
	case count < 0 || q.MaxBytes < 0:
		return queryError(contract.KindInvalid, "MaxCount and MaxBytes must not be negative", nil)
	case q.Topic == "" || q.Key == "":
		return queryError(contract.KindInvalid, "topic or key is missing", nil)
	}
	count = min(count, MaxCount)
	if len(out.records) < count {
		out.records = make([]Record, count)
	}
	v := &out.querier
	*v = querier{g: g, q: q, out: out, count: count}
	defer func() { *v = querier{} }()
	search := index.Query{Topic: q.Topic, Key: q.Key, Tag: q.Tag}
	if !q.From.IsZero() {
		v.from = q.From.UnixMilli()
		if q.From.After(time.UnixMilli(v.from)) {
			v.from++
		}
		search.From = v.from
	}
	if !q.To.IsZero() {
		if v.to = q.To.UnixMilli(); v.to <= 0 {
			return nil
		}
		search.To = v.to
	}
	if g.owner != nil {
		v.cuts = g.owner.cuts.Load()
	}
	next, done, err := g.index.Search(ctx, search, q.After, v)
	if v.retired {
		next, done = QueryPosition{}, true
	} else if v.again != (QueryPosition{}) {
		next, done = v.again, false
	}
	out.Next, out.More = next, !done
	if out.n > 0 {
		out.Status = contract.GetFound
	}
	return err
}

// Visit implements index.Visitor.
func (v *querier) Visit(c index.Candidate) (bool, error) {
	out, log := v.out, v.g.log
	if out.n == v.count {
		v.again = c.Position()
		return false, nil
	}
	if c.Offset < log.MinOffset() {
		v.retired = true
		return false, nil
	}
	rec := &out.records[out.n]
	found, err := log.Read(c.Offset, rec)
	if v.g.indexLoose && c.Offset >= out.Boundary && errors.Is(err, contract.ErrCorrupt) {
		return true, nil // The entry may be what a power cut left.
	}
	if err != nil {
		return false, err
	}
	if !found {
		return v.missed(c)
	}
	if !index.Matches(&rec.MessageView, v.q.Topic, v.q.Key, v.q.Tag) || rec.StoreTimestamp() < v.from ||
		v.to > 0 && rec.StoreTimestamp() > v.to {
		rec.Release()
		return true, nil
	}
	size := len(rec.Bytes())
	if out.n > 0 && v.q.MaxBytes > 0 && out.bytes+size > v.q.MaxBytes {
		rec.Release()
		v.again = c.Position()
		return false, nil
	}
	out.bytes += size
	out.n++
	return true, nil
}

// missed says what it means that no record begins where an entry leads.
func (v *querier) missed(c index.Candidate) (bool, error) {
	g := v.g
	moved := g.owner != nil && (v.cuts%2 != 0 || g.owner.cuts.Load() != v.cuts)
	switch {
	case c.Offset < g.log.MinOffset():
		v.retired = true
		return false, nil
	case c.Offset >= min(g.log.Confirmed(), v.out.Boundary) || moved:
		return true, nil // Not there yet, or not any more.
	}
	file, at := c.Place()
	return false, &contract.CorruptionError{File: file, Offset: at,
		Cause: fmt.Errorf("the entry leads to %d, where no record begins", c.Offset)}
}

// errNoIndex is why a store has none.
var errNoIndex = errors.New("the store has no files of one")
