package stratalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/commitlog"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/cq"
)

// Limits of one Get.
const (
	// DefaultMaxCount is how many records a Get returns if the request names
	// no number.
	DefaultMaxCount = 32
	// MaxCount is the most that one Get returns.
	MaxCount = 1024
)

// Request asks for records of one queue.
type Request struct {
	// Topic and QueueID name the queue.
	Topic   string
	QueueID int32
	// Offset is the queue offset of the first record wanted.
	Offset int64
	// MaxCount bounds the number of records; 0 stands for 32, the most is
	// 1024.
	MaxCount int
	// MaxBytes bounds the bytes of the records; at least one is returned, even
	// if it is larger. 0 means no bound.
	MaxBytes int
	// Tag, if not empty, takes only records with exactly this TAGS property.
	Tag string
	// Epoch, if not 0, is Records.Epoch of the answer from which Offset came.
	// If log bytes below Offset were cut since, the status is OffsetReset
	// instead of records that stand where others stood.
	Epoch contract.Epoch
}

// Records is the answer to a Get, owned by the caller and reused from call to
// call. It holds leases: call Release when the bytes are not needed any more.
// The next Get with it releases them too.
type Records struct {
	// Status says what was found; Next is the queue offset to ask for next. A
	// loop that only follows Next ends and sees every live record once.
	Status contract.GetStatus
	Next   int64
	// Min and Max are the queue's first live offset and its end.
	Min int64
	Max int64
	// Epoch is the log's epoch; pass it on with Next.
	Epoch contract.Epoch

	records []Record
	n       int
	units   []codec.QueueUnit
}

// Len returns the number of records.
func (r *Records) Len() int { return r.n }

// At returns the i-th record, valid until Release.
func (r *Records) At(i int) *Record { return &r.records[:r.n][i] }

// Release ends the leases. It is harmless on an empty answer.
func (r *Records) Release() {
	for i := range r.records[:r.n] {
		r.records[i].Release()
	}
	r.n = 0
}

// reset makes r ready for an answer of up to count records.
func (r *Records) reset(count int) {
	r.Release()
	if len(r.records) < count {
		r.records = make([]Record, count)
		r.units = make([]codec.QueueUnit, count)
	}
	r.Status, r.Next, r.Min, r.Max = contract.GetNoMatchedLogicQueue, 0, 0, 0
}

// logReader is what reading needs of the log, open for writing or read-only.
type logReader interface {
	ReadSized(off contract.Offset, size int32, dst *Record) (bool, error)
	Read(off contract.Offset, dst *Record) (bool, error)
	MinOffset() contract.Offset
	Confirmed() contract.Offset
	Epochs() []contract.EpochStart
	Epoch() contract.Epoch
}

var (
	_ logReader = (*commitlog.Log)(nil)
	_ logReader = (*commitlog.ReadOnly)(nil)
)

// getter answers Gets over a log and its queues.
type getter struct {
	log    logReader
	queues *cq.Store
}

// get fills out; see Store.Get.
func (g getter) get(ctx context.Context, req Request, out *Records) error {
	count := req.MaxCount
	if count == 0 {
		count = DefaultMaxCount
	}
	if count < 0 || req.MaxBytes < 0 || req.Offset < 0 {
		return contract.NewError(contract.KindInvalid, contract.OpRead, contract.ComponentStore,
			"MaxCount, MaxBytes and Offset must not be negative", nil)
	}
	if err := ctx.Err(); err != nil {
		return contract.NewError(contract.KindTimeout, contract.OpRead, contract.ComponentStore, "", err)
	}
	out.reset(min(count, MaxCount))
	out.Epoch = g.log.Epoch()
	if !g.queues.Exists(req.Topic, req.QueueID) {
		return nil
	}
	out.Min, out.Max = g.queues.Min(req.Topic, req.QueueID), g.queues.Max(req.Topic, req.QueueID)
	if done, err := g.bounds(req, out); done || err != nil {
		return err
	}
	n, err := g.queues.Units(req.Topic, req.QueueID, req.Offset, out.units[:min(count, MaxCount)])
	if err != nil {
		return err
	}
	return g.collect(req, out, n)
}

// bounds answers requests that need no unit; true means answered.
func (g getter) bounds(req Request, out *Records) (bool, error) {
	if req.Epoch != 0 && req.Epoch != out.Epoch {
		if reset, found, err := g.cutSince(req, out.Max); err != nil || found && reset < req.Offset {
			out.Status, out.Next = contract.GetOffsetReset, max(reset, out.Min)
			return true, err
		}
	}
	switch {
	case out.Min >= out.Max:
		out.Status, out.Next = contract.GetNoMessageInQueue, out.Max
	case req.Offset < out.Min:
		out.Status, out.Next = contract.GetOffsetTooSmall, out.Min
	case req.Offset == out.Max:
		out.Status, out.Next = contract.GetOffsetOverflowOne, out.Max
	case req.Offset > out.Max:
		out.Status, out.Next = contract.GetOffsetOverflowBadly, out.Max
	default:
		return false, nil
	}
	return true, nil
}

// cutSince returns the first queue offset whose record was written after the
// earliest cut since req.Epoch.
func (g getter) cutSince(req Request, end int64) (int64, bool, error) {
	cut, found := contract.Offset(0), false
	for _, e := range g.log.Epochs() {
		if e.Epoch > req.Epoch && (!found || e.Start < cut) {
			cut, found = e.Start, true
		}
	}
	if !found {
		return 0, false, nil
	}
	lo, hi := g.queues.Min(req.Topic, req.QueueID), end
	var unit [1]codec.QueueUnit
	for lo < hi {
		mid := lo + (hi-lo)/2
		n, err := g.queues.Units(req.Topic, req.QueueID, mid, unit[:])
		if err != nil {
			return 0, false, err
		}
		if n == 1 && contract.Offset(unit[0].PhysicalOffset) >= cut {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo, true, nil
}

// collect reads the records of the first n units into out.
func (g getter) collect(req Request, out *Records, n int) error {
	var tagHash int64
	if req.Tag != "" {
		tagHash = int64(codec.JavaHashString(req.Tag))
	}
	out.Status, out.Next = contract.GetNoMatchedMessage, req.Offset
	bytes := 0
	for i, u := range out.units[:n] {
		at := req.Offset + int64(i)
		if cq.IsBlank(u) {
			if out.n > 0 {
				break
			}
			out.Status, out.Next = contract.GetOffsetFoundNull, at+1
			continue
		}
		if out.Status == contract.GetOffsetFoundNull {
			break
		}
		if req.Tag != "" && u.TagsCode != tagHash {
			out.Next = at + 1
			continue
		}
		if out.n > 0 && req.MaxBytes > 0 && bytes+int(u.Size) > req.MaxBytes {
			break
		}
		rec := &out.records[out.n]
		taken, err := g.record(req, u, at, rec)
		if err != nil {
			if out.n > 0 {
				break // what is whole comes first; the next Get meets the damage
			}
			return err
		}
		if !taken {
			if out.n == 0 && contract.Offset(u.PhysicalOffset) < g.log.MinOffset() {
				return g.removed(req, out)
			}
			break
		}
		out.Next = at + 1
		if req.Tag != "" {
			if tag, _ := codec.FindProperty(rec.Properties(), "TAGS"); string(tag) != req.Tag {
				rec.Release()
				continue
			}
		}
		bytes += int(u.Size)
		out.n++
	}
	if out.n > 0 {
		out.Status = contract.GetFound
	}
	if out.Next == req.Offset && out.n == 0 {
		// The queue is ahead of what may be seen of the log, for a moment.
		out.Status = contract.GetOffsetOverflowOne
	}
	return nil
}

// record reads the record that unit u of the queue names.
func (g getter) record(req Request, u codec.QueueUnit, at int64, rec *Record) (bool, error) {
	found, err := g.log.ReadSized(contract.Offset(u.PhysicalOffset), u.Size, rec)
	if err != nil || !found {
		return false, err
	}
	if rec.QueueID() != req.QueueID || rec.QueueOffset() != at || string(rec.Topic()) != req.Topic {
		file, place := g.queues.Place(req.Topic, req.QueueID, at)
		err := &contract.CorruptionError{File: file, Offset: place,
			Cause: fmt.Errorf("the unit leads to record %d of %s/%d at %d", rec.QueueOffset(), rec.Topic(),
				rec.QueueID(), u.PhysicalOffset)}
		rec.Release()
		return false, err
	}
	return true, nil
}

// removed answers a request whose records left while they were asked for.
func (g getter) removed(req Request, out *Records) error {
	if err := g.queues.CorrectMin(g.log.MinOffset()); err != nil && !errors.Is(err, contract.ErrUnsupported) {
		return err
	}
	out.Min = g.queues.Min(req.Topic, req.QueueID)
	out.Status, out.Next = contract.GetMessageWasRemoving, max(out.Min, req.Offset+1)
	return nil
}
