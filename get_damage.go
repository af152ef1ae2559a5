package stratalog

import (
	"errors"
	"fmt"
	"math"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/cq"
)

// wrongUnit is the damage of a unit at a queue offset. It loses nothing of the
// log.
func (g getter) wrongUnit(req Request, at int64, format string, args ...any) error {
	file, place := g.queues.Place(req.Topic, req.QueueID, at)
	return &contract.CorruptionError{File: file, Offset: place, Cause: fmt.Errorf(format, args...)}
}

// missed answers when unit u, the first one asked for, led to no record: because
// of err, or because nothing that may be seen starts there.
func (g getter) missed(req Request, out *Records, u codec.QueueUnit, err error) error {
	if err != nil && !errors.Is(err, contract.ErrCorrupt) {
		return err
	}
	if err == nil && contract.Offset(u.PhysicalOffset) < g.log.MinOffset() {
		if gone, err := g.removed(req, out); gone || err != nil {
			return err
		}
	}
	if g.ahead(req, u) {
		g.wait(req, out)
		return nil
	}
	damage, ofQueue := g.blame(req, u, err)
	if g.cutSinceBegun(out) || ofQueue && g.moving(req, u) {
		g.wait(req, out)
		return nil
	}
	return damage
}

// wait answers that there is nothing at the offset yet.
func (g getter) wait(req Request, out *Records) {
	out.Max = min(g.queues.Max(req.Topic, req.QueueID), req.Offset)
	out.Status, out.Next = contract.GetOffsetOverflowOne, out.Max
	if out.Max < req.Offset {
		out.Status = contract.GetOffsetOverflowBadly
	}
}

// removed answers a request whose records left while they were asked for; false
// if the queue does not think that they did.
func (g getter) removed(req Request, out *Records) (bool, error) {
	if err := g.queues.CorrectMin(g.log.MinOffset()); err != nil && !errors.Is(err, contract.ErrUnsupported) {
		return false, err
	}
	out.Min = g.queues.Min(req.Topic, req.QueueID)
	if out.Min <= req.Offset {
		return false, nil
	}
	out.Status, out.Next = contract.GetMessageWasRemoving, out.Min
	return true, nil
}

// ahead reports whether u may be the unit of a record that the log does not
// show, for a moment: while it is cut, the queue follows behind it. With an
// owner at rest there is no such moment.
func (g getter) ahead(req Request, u codec.QueueUnit) bool {
	return contract.Offset(u.PhysicalOffset)+contract.Offset(u.Size) > g.log.Confirmed() && u.Size > 0 &&
		g.owner == nil && g.inLine(req, u)
}

// cutSinceBegun reports whether the log may have been cut while the answer was
// made: its parts may then not fit each other.
func (g getter) cutSinceBegun(out *Records) bool {
	if g.owner != nil {
		return out.cuts%2 != 0 || g.owner.cuts.Load() != out.cuts
	}
	return g.log.Epoch() != out.Epoch
}

// moving reports whether the queue was changed at u since it was read.
func (g getter) moving(req Request, u codec.QueueUnit) bool {
	var now [1]codec.QueueUnit
	n, err := g.queues.Units(req.Topic, req.QueueID, req.Offset, now[:])
	return err == nil && (n == 0 || now[0] != u)
}

// blame tells whether the log or the queue's unit is damaged when u leads to no
// record of its queue.
func (g getter) blame(req Request, u codec.QueueUnit, err error) (damage error, ofQueue bool) {
	start := contract.Offset(u.PhysicalOffset)
	place := contract.Range{Start: start, End: start + contract.Offset(max(u.Size, 0))}
	for _, f := range g.faults {
		if f.Damage.Lost.Contains(start) {
			return f.Damage, false
		}
	}
	wrong := func(why string) (error, bool) {
		return g.wrongUnit(req, req.Offset, "the unit leads to %v, %s", place, why), true
	}
	switch {
	case u.Size <= 0 || u.PhysicalOffset < 0:
		return wrong("which is no place")
	case start < g.log.MinOffset():
		return wrong("below the log's start")
	case place.End > g.log.Confirmed():
		return wrong("beyond the log's end")
	case !g.inLine(req, u):
		return wrong("which does not lie between its neighbours' records")
	}
	var rec Record
	found, logErr := g.log.Read(start, &rec)
	switch {
	case found:
		defer rec.Release()
		return wrong(fmt.Sprintf("where record %d of %s/%d with %d bytes stands", rec.QueueOffset(), rec.Topic(), rec.QueueID(), rec.TotalSize()))
	case logErr == nil:
		return wrong("where no record starts")
	case err == nil:
		err = logErr
	}
	return err, false
}

// nearby is how many units each side of one are looked at for a neighbour.
const nearby = 8

// inLine reports whether the record that u names, at the offset asked for, lies
// between those of its neighbours, as far as they are near.
func (g getter) inLine(req Request, u codec.QueueUnit) bool {
	var units [nearby]codec.QueueUnit
	low, high := int64(0), int64(math.MaxInt64)
	names := func(u codec.QueueUnit) bool { return !cq.IsBlank(u) && u.Size > 0 && u.PhysicalOffset >= 0 }
	from := max(g.queues.Min(req.Topic, req.QueueID), req.Offset-nearby)
	if from < req.Offset {
		n, _ := g.queues.Units(req.Topic, req.QueueID, from, units[:req.Offset-from])
		for _, u := range units[:n] {
			if names(u) {
				low = u.PhysicalOffset + int64(u.Size)
			}
		}
	}
	n, _ := g.queues.Units(req.Topic, req.QueueID, req.Offset+1, units[:])
	for i := n - 1; i >= 0; i-- {
		if names(units[i]) {
			high = units[i].PhysicalOffset
		}
	}
	return low <= u.PhysicalOffset && u.PhysicalOffset <= high-int64(u.Size)
}
