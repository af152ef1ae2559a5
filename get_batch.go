package stratalog

import (
	"errors"
	"fmt"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/cq"
)

// A record of a batch queue stands for several messages with consecutive numbers.
// A Get at any of them returns the record, whole, and its Next leads behind the
// last; a caller who asked for one in the middle passes over those in front, as
// Java's consumers do. MaxCount counts messages; the first record comes however
// many it holds.

// answerBatch is answer for a batch queue.
func (g getter) answerBatch(q *cq.BatchQueue, req Request, out *Records, count int) (int64, error) {
	if done, err := g.bounds(req, out); done || err != nil {
		return req.Offset, err
	}
	var tagHash int64
	if req.Tag != "" {
		tagHash = int64(codec.JavaHashString(req.Tag))
	}
	out.Status, out.Next = contract.GetNoMatchedMessage, req.Offset
	looked, taken := 0, 0
	var units [8]codec.BatchUnit
	for looked < count {
		at, err := q.Find(out.Next)
		n := 0
		if err == nil {
			n, err = q.UnitsFrom(at, units[:])
		}
		if err == nil && (n == 0 || units[0].BaseOffset > out.Next) {
			if first, _ := q.Range(); first > out.Next && out.Next == req.Offset {
				out.Status, out.Min, out.Next = contract.GetMessageWasRemoving, first, first
				return 0, nil
			}
			err = g.gap(q, req, out)
		}
		if err != nil {
			if out.Next > req.Offset {
				return 0, nil // what is whole comes first; the next Get meets this
			}
			return behind(req.Offset, err), err
		}
		for i, u := range units[:n] {
			if looked >= count {
				break
			}
			looked++
			next := u.BaseOffset + int64(u.BatchSize)
			if req.Tag != "" && u.TagsCode != tagHash && g.inPlace(units[i:n], out) {
				out.Next = next
				continue
			}
			if out.n > 0 && (taken+int(u.BatchSize) > count || req.MaxBytes > 0 && out.bytes+int(u.Size) > req.MaxBytes) {
				return 0, nil
			}
			rec := &out.records[out.n]
			found, err := g.batchRecord(q, req, at+int64(i), u, rec)
			if !found {
				if out.Next > req.Offset {
					return 0, nil
				}
				err = g.missedBatch(q, req, out, at+int64(i), u, err)
				return behind(req.Offset, err), err
			}
			out.Next = next
			if tag, _ := codec.FindProperty(rec.Properties(), codec.PropertyTags); req.Tag != "" && string(tag) != req.Tag {
				rec.Release()
				continue
			}
			out.Status = contract.GetFound
			out.offsets[out.n] = u.BaseOffset
			out.bytes += int(u.Size)
			taken += int(u.BatchSize)
			out.n++
		}
		if n < len(units) {
			break
		}
	}
	return 0, nil
}

// inPlace reports whether the first unit's numbers can be its own: they lie behind
// those that the answer has come to, and in front of the next unit's. What a unit
// says of its record is believed then; else the record is asked.
func (g getter) inPlace(units []codec.BatchUnit, out *Records) bool {
	u := units[0]
	next := u.BaseOffset + int64(u.BatchSize)
	return cq.Possible(u) && next > out.Next && next <= out.Max && (len(units) == 1 || next <= units[1].BaseOffset)
}

// gap judges that a queue has no message of the number that the answer has come
// to. There may be none; but a search that a damaged unit led astray finds none
// either, and would leave out what is there.
func (g getter) gap(q *cq.BatchQueue, req Request, out *Records) error {
	u, i, ok, err := q.InFront(out.Next)
	if err != nil || !ok {
		return err
	}
	if cq.Possible(u) {
		var rec Record
		_, err = g.batchRecord(q, req, i, u, &rec)
		rec.Release()
		if err == nil || !errors.Is(err, contract.ErrCorrupt) {
			return err
		}
	}
	var now [1]codec.BatchUnit
	if n, err := q.UnitsFrom(i, now[:]); err != nil || n == 0 || now[0] != u || g.cutSinceBegun(out) {
		return err // it is being cut
	}
	return wrongBatch(q, i, "the unit leads to messages from %d on, and is not of its record", u.BaseOffset)
}

// wrongBatch is the damage of a unit of a batch queue.
func wrongBatch(q *cq.BatchQueue, i int64, format string, args ...any) error {
	file, place := q.UnitPlace(i)
	return &contract.CorruptionError{File: file, Offset: place, Cause: fmt.Errorf(format, args...)}
}

// batchRecord reads the record that u names, unit i of a batch queue.
func (g getter) batchRecord(q *cq.BatchQueue, req Request, i int64, u codec.BatchUnit, rec *Record) (bool, error) {
	found, err := g.log.ReadSized(contract.Offset(u.PhysicalOffset), u.Size, rec)
	if err != nil || !found {
		return false, err
	}
	base, n, ok := cq.BatchOf(&rec.MessageView)
	if !ok || base != u.BaseOffset || n != u.BatchSize || rec.QueueID() != req.QueueID || string(rec.Topic()) != req.Topic {
		err := wrongBatch(q, i, "the unit, of %d messages from %d on, leads to record %d of %s/%d at %d, of %d from %d on", u.BatchSize, u.BaseOffset,
			rec.QueueOffset(), rec.Topic(), rec.QueueID(), u.PhysicalOffset, n, base)
		rec.Release()
		return false, err
	}
	return true, nil
}

// missedBatch answers when the first unit asked for led to no record.
func (g getter) missedBatch(q *cq.BatchQueue, req Request, out *Records, i int64, u codec.BatchUnit, err error) error {
	if err != nil && !errors.Is(err, contract.ErrCorrupt) {
		return err
	}
	if err == nil && contract.Offset(u.PhysicalOffset) < g.log.MinOffset() {
		if gone, err := g.removed(req, out); gone || err != nil {
			return err
		}
	}
	var now [1]codec.BatchUnit
	n, _ := q.UnitsFrom(i, now[:])
	if g.cutSinceBegun(out) || n == 0 || now[0] != u ||
		g.owner == nil && contract.Offset(u.PhysicalOffset)+contract.Offset(u.Size) > g.log.Confirmed() {
		g.wait(req, out)
		return nil
	}
	if err == nil {
		err = wrongBatch(q, i, "the unit leads to %d bytes at %d, where no such record starts", u.Size, u.PhysicalOffset)
	}
	return err
}

// byTimeBatch is byTime for a batch queue: the answer is the first number of a
// record.
func byTimeBatch(q *cq.BatchQueue, ms int64, bound TimeBound) (int64, error) {
	from, to := q.Range()
	if bound == UpperBound {
		u, _, found, err := q.Last(func(u codec.BatchUnit) bool { return u.StoreTime <= ms })
		if err != nil || !found {
			return from, err
		}
		return u.BaseOffset, nil
	}
	u, found, err := q.First(func(u codec.BatchUnit) bool { return u.StoreTime < ms })
	if err != nil || !found {
		return to, err
	}
	return u.BaseOffset, nil
}

// batch checks that the record's batch queue has a unit for it.
func (v *verifier) batch(m *codec.MessageView) {
	base, n, ok := cq.BatchOf(m)
	if !ok {
		return // Only batches have one.
	}
	key := queueKey{string(m.Topic()), m.QueueID()}
	if q := v.r.queues.Batch(key.topic, key.queue); q != nil {
		var unit [1]codec.BatchUnit
		got, err := q.Units(base, unit[:])
		if err != nil && !errors.Is(err, contract.ErrCorrupt) {
			v.err = err
			return
		}
		if u := unit[0]; got == 1 && u.PhysicalOffset == m.PhysicalOffset() && u.Size == m.TotalSize() && u.BaseOffset == base && u.BatchSize == n {
			return
		}
	}
	if contract.Offset(m.PhysicalOffset()) >= v.lane {
		v.lagging++
		return
	}
	v.missed(key, base, m.PhysicalOffset())
}

// batchUnits checks that every unit of a batch queue leads to its record.
func (v *verifier) batchUnits(topic string, id int32, q *cq.BatchQueue) error {
	req := Request{Topic: topic, QueueID: id}
	i, end := q.Span()
	var units [64]codec.BatchUnit
	for i < end {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		n, err := q.UnitsFrom(i, units[:])
		if n == 0 {
			if err != nil && !errors.Is(err, contract.ErrCorrupt) {
				return err
			}
			break
		}
		for k, u := range units[:n] {
			v.report.Units++
			if v.isDamaged(contract.Offset(u.PhysicalOffset)) {
				continue
			}
			wrong, err := v.batchUnit(q, req, i+int64(k), u)
			if err != nil {
				return err
			}
			if wrong != "" {
				f := Finding{Severity: Fault, Kind: "wrong-unit", Count: 1, Text: fmt.Sprintf("unit %d of %s/%d: %s", i+int64(k), topic, id, wrong)}
				f.File, f.Offset = q.UnitPlace(i + int64(k))
				v.add(f)
			}
		}
		i += int64(n)
	}
	return nil
}

// batchUnit tells what is wrong with unit i of a batch queue, empty for nothing.
func (v *verifier) batchUnit(q *cq.BatchQueue, req Request, i int64, u codec.BatchUnit) (string, error) {
	var rec Record
	defer rec.Release()
	found, err := v.r.getter().batchRecord(q, req, i, u, &rec)
	switch {
	case err != nil && errors.Is(err, contract.ErrCorrupt):
		return why(err), nil
	case err != nil:
		return "", err
	case !found:
		return fmt.Sprintf("the unit leads to %d, where no record stands", u.PhysicalOffset), nil
	case rec.QueueOffset() != u.BaseOffset:
		return fmt.Sprintf("the unit leads to the record with number %d at %d", rec.QueueOffset(), u.PhysicalOffset), nil
	case rec.StoreTimestamp() != u.StoreTime || codec.TagsCode(rec.Properties()) != u.TagsCode:
		return fmt.Sprintf("the unit has store time %d and tags code %d, the record %d and %d", u.StoreTime, u.TagsCode,
			rec.StoreTimestamp(), codec.TagsCode(rec.Properties())), nil
	}
	return "", nil
}
