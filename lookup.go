package stratalog

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/cq"
)

// TimeBound says which record of a queue a time stands for, as Java's
// BoundaryType does.
type TimeBound uint8

const (
	// LowerBound is the first record that was not stored before the time, or
	// the queue's end.
	LowerBound TimeBound = iota
	// UpperBound is the last record that was not stored after the time, or the
	// queue's first one.
	UpperBound
)

// String returns a lower-case word.
func (b TimeBound) String() string {
	switch b {
	case LowerBound:
		return "lower"
	case UpperBound:
		return "upper"
	}
	return fmt.Sprintf("bound(%d)", uint8(b))
}

// OffsetByTime returns the queue offset that a time stands for, in the range
// from the queue's first live offset to its end; both are 0 for a queue that
// does not exist. Times count in whole milliseconds, as records keep them.
//
// Store times do not decrease along a log that this store wrote, so the answer
// is the bound as its name says, also where many records have the same time. A
// Java broker whose clock was set back leaves times that run backwards. Then the
// answer is one of several offsets at which the times pass the one asked for:
// with LowerBound the record there was not stored before it, and the one in
// front was; with UpperBound the record there was not stored after it, and the
// next one was.
func (s *Store) OffsetByTime(ctx context.Context, topic string, queueID int32, at time.Time, bound TimeBound) (int64, error) {
	g := s.reading.Load()
	if g == nil {
		return 0, s.refusal(contract.OpRead, stageLoaded)
	}
	offset, err := s.owned(g).byTime(ctx, topic, queueID, at.UnixMilli(), bound)
	if s.closedUnder(g) {
		return 0, s.refusal(contract.OpRead, stageLoaded)
	}
	return offset, err
}

// GetByTime is Get at the offset that OffsetByTime gives; req.Offset does not
// count.
func (s *Store) GetByTime(ctx context.Context, req Request, at time.Time, bound TimeBound, out *Records) error {
	var err error
	if req.Offset, err = s.OffsetByTime(ctx, req.Topic, req.QueueID, at, bound); err != nil {
		if out != nil {
			out.clear()
		}
		return err
	}
	return s.Get(ctx, req, out)
}

// GetByID fills out with the record that a message id names, as codec.MessageID
// makes it; false if no record that may be seen starts at its offset, or one that
// was stored by another host. With false or an error out holds no record.
func (s *Store) GetByID(ctx context.Context, id string, out *Record) (bool, error) {
	return byID(ctx, id, out, s.GetAt)
}

// OffsetByTime is Store.OffsetByTime.
func (r *Reader) OffsetByTime(ctx context.Context, topic string, queueID int32, at time.Time, bound TimeBound) (int64, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if err := r.open(contract.OpRead); err != nil {
		return 0, err
	}
	off, err := r.getter().byTime(ctx, topic, queueID, at.UnixMilli(), bound)
	return off, r.judged(contract.OpRead, err)
}

// GetByTime is Store.GetByTime.
func (r *Reader) GetByTime(ctx context.Context, req Request, at time.Time, bound TimeBound, out *Records) error {
	var err error
	if req.Offset, err = r.OffsetByTime(ctx, req.Topic, req.QueueID, at, bound); err != nil {
		if out != nil {
			out.clear()
		}
		return err
	}
	return r.Get(ctx, req, out)
}

// GetByID is Store.GetByID.
func (r *Reader) GetByID(ctx context.Context, id string, out *Record) (bool, error) {
	return byID(ctx, id, out, r.GetAt)
}

func byID(ctx context.Context, id string, out *Record, at func(context.Context, Offset, *Record) (bool, error)) (bool, error) {
	if out == nil {
		return false, noTarget()
	}
	host, phy, err := codec.ParseMessageID(id)
	if err != nil {
		out.Release()
		return false, contract.NewError(contract.KindInvalid, contract.OpRead, contract.ComponentStore, "", err)
	}
	found, err := at(ctx, Offset(phy), out)
	if found && !bytes.Equal(out.StoreHost(), host) {
		out.Release()
		return false, nil
	}
	return found, err
}

// byTime finds the offset for a store time in milliseconds; see
// Store.OffsetByTime.
func (g getter) byTime(ctx context.Context, topic string, queue int32, ms int64, bound TimeBound) (int64, error) {
	if bound > UpperBound {
		return 0, contract.NewError(contract.KindInvalid, contract.OpRead, contract.ComponentStore, bound.String()+" is unknown", nil)
	}
	if q := g.queues.Batch(topic, queue); q != nil {
		return byTimeBatch(q, ms, bound)
	}
	first, end := g.queues.Min(topic, queue), g.queues.Max(topic, queue)
	lo, hi := first, end
	for lo < hi {
		if err := ctx.Err(); err != nil {
			return 0, contract.NewError(contract.KindTimeout, contract.OpRead, contract.ComponentStore, "", err)
		}
		mid := lo + (hi-lo)/2
		at, where, err := g.storeTime(topic, queue, mid, hi)
		switch {
		case err != nil:
			return 0, err
		case where == timeAhead || where == timeKnown && (at > ms || at == ms && bound == LowerBound):
			hi = mid
		default:
			lo = mid + 1
		}
	}
	if bound == UpperBound {
		return max(lo-1, first), nil
	}
	_, lo, _, err := g.realFrom(topic, queue, lo, end)
	return lo, err
}

// timeState says what is known of the time of a queue's record.
type timeState uint8

const (
	timeKnown  timeState = iota
	timeBehind           // The record was retired: earlier than all that are there.
	timeAhead            // There is none, or it may not be seen yet.
)

// storeTime returns the store time of the first record from offset at on, below
// end.
func (g getter) storeTime(topic string, queue int32, at, end int64) (int64, timeState, error) {
	u, at, found, err := g.realFrom(topic, queue, at, end)
	if err != nil || !found {
		if err == nil && at < g.queues.Min(topic, queue) {
			return 0, timeBehind, nil
		}
		return 0, timeAhead, err
	}
	var rec Record
	taken, err := g.record(Request{Topic: topic, QueueID: queue}, u, at, &rec)
	switch {
	case taken:
		t := rec.StoreTimestamp()
		rec.Release()
		return t, timeKnown, nil
	case err == nil && contract.Offset(u.PhysicalOffset) < g.log.MinOffset():
		return 0, timeBehind, nil
	}
	return 0, timeAhead, err
}

// realFrom returns the first unit of the queue, and its offset, from at on and
// below end that is not blank: blank units lead to nothing, and a search takes
// them for the one behind. Without one it returns the offset where it gave up.
func (g getter) realFrom(topic string, queue int32, at, end int64) (codec.QueueUnit, int64, bool, error) {
	var units [16]codec.QueueUnit
	for at < end {
		n, err := g.queues.Units(topic, queue, at, units[:min(int64(len(units)), end-at)])
		if n == 0 {
			return codec.QueueUnit{}, at, false, err
		}
		for i, u := range units[:n] {
			if !cq.IsBlank(u) {
				return u, at + int64(i), true, nil
			}
		}
		at += int64(n)
	}
	return codec.QueueUnit{}, at, false, nil
}
