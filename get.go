package stratalog

import (
	"context"
	"errors"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/commitlog"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/cq"
	"github.com/stratalog/stratalog/index"
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
	//
	// With an error there are no records and the status is
	// GetNoMatchedLogicQueue. Next is then the offset asked for, but behind a
	// *contract.CorruptionError the first offset behind the damaged one: a
	// consumer may decide to go on there.
	Status contract.GetStatus
	Next   int64
	// Min and Max are the queue's first live offset and its end.
	Min int64
	Max int64
	// Epoch is the log's epoch; pass it on with Next.
	Epoch contract.Epoch

	cuts    int64 // of the owner, when the answer was begun
	records []Record
	offsets []int64 // of records, in the queue asked for
	n       int
	bytes   int
	units   []codec.QueueUnit
}

// Len returns the number of records.
func (r *Records) Len() int { return r.n }

// At returns the i-th record, valid until Release.
func (r *Records) At(i int) *Record { return &r.records[:r.n][i] }

// QueueOffset returns the i-th record's offset in the queue that was asked for.
// It is the record's own, but in a light queue, whose records are of other
// topics.
func (r *Records) QueueOffset(i int) int64 { return r.offsets[:r.n][i] }

// Release ends the leases. It is harmless on an empty answer.
func (r *Records) Release() {
	for i := range r.records[:r.n] {
		r.records[i].Release()
	}
	r.n = 0
}

// reset makes r ready for an answer of up to count records.
func (r *Records) reset(count int) {
	if len(r.records) < count {
		r.records = make([]Record, count)
		r.offsets = make([]int64, count)
		r.units = make([]codec.QueueUnit, count)
	}
	r.clear()
}

// clear makes r an answer that holds nothing.
func (r *Records) clear() {
	r.Release()
	r.Status, r.Next, r.Min, r.Max, r.Epoch, r.bytes = contract.GetNoMatchedLogicQueue, 0, 0, 0, 0, 0
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
	// index is the key index, nil without one.
	index *index.Store
	// noIndex says why there is none.
	noIndex error
	// indexLoose says that entries of records at and above the boundary of an
	// answer may be anything.
	indexLoose bool
	// owner is the Store whose they are, nil for a Reader.
	owner *Store
	// faults are what a Reader that salvages does not have of the log.
	faults []commitlog.OpenFault
}

// noTarget refuses a Get into nothing.
func noTarget() error {
	return contract.NewError(contract.KindInvalid, contract.OpRead, contract.ComponentStore, "there is nothing to read into", nil)
}

// get fills out; see Store.Get.
func (g getter) get(ctx context.Context, req Request, out *Records) error {
	if out == nil {
		return noTarget()
	}
	out.clear()
	out.Next = req.Offset
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
	if g.owner != nil {
		out.cuts = g.owner.cuts.Load()
	}
	if !g.queues.Exists(req.Topic, req.QueueID) {
		return nil
	}
	out.Min, out.Max = g.queues.Min(req.Topic, req.QueueID), g.queues.Max(req.Topic, req.QueueID)
	if q := g.queues.Batch(req.Topic, req.QueueID); q != nil {
		next, err := g.answerBatch(q, req, out, min(count, MaxCount))
		return out.failed(next, err)
	}
	next, err := g.answer(req, out, min(count, MaxCount))
	return out.failed(next, err)
}

// failed notes, if err is one, where to go on.
func (r *Records) failed(next int64, err error) error {
	if err != nil {
		r.Status, r.Next = contract.GetNoMatchedLogicQueue, next
	}
	return err
}

// answer fills out. With an error it returns where to go on.
func (g getter) answer(req Request, out *Records, count int) (int64, error) {
	if done, err := g.bounds(req, out); done || err != nil {
		return req.Offset, err
	}
	n, err := g.queues.Units(req.Topic, req.QueueID, req.Offset, out.units[:count])
	if n == 0 && err != nil {
		return behind(req.Offset, err), err
	}
	// What can be read comes first; the next Get meets the error.
	err = g.collect(req, out, n)
	return behind(req.Offset, err), err
}

// behind returns where to go on after err at a queue offset.
func behind(at int64, err error) int64 {
	if errors.Is(err, contract.ErrCorrupt) {
		return at + 1
	}
	return at
}

// bounds answers requests that need no unit; true means answered.
func (g getter) bounds(req Request, out *Records) (bool, error) {
	if req.Epoch != 0 && req.Epoch != out.Epoch {
		reset, found, err := g.cutSince(req, out.Max)
		if err != nil {
			return false, err
		}
		if found && reset < req.Offset {
			out.Status, out.Next = contract.GetOffsetReset, max(reset, out.Min)
			return true, nil
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
	if q := g.queues.Batch(req.Topic, req.QueueID); q != nil {
		u, found, err := q.First(func(u codec.BatchUnit) bool { return contract.Offset(u.PhysicalOffset) < cut })
		if err != nil || !found {
			return end, true, err
		}
		return u.BaseOffset, true, nil
	}
	lo, hi := g.queues.Min(req.Topic, req.QueueID), end
	for lo < hi {
		mid := lo + (hi-lo)/2
		u, at, found, err := g.realFrom(req.Topic, req.QueueID, mid, hi)
		if err != nil {
			return 0, false, err
		}
		if found && contract.Offset(u.PhysicalOffset) >= cut || at >= hi {
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
	for i, u := range out.units[:n] {
		at := req.Offset + int64(i)
		more, err := g.take(req, out, u, at, tagHash)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	if out.n > 0 {
		out.Status = contract.GetFound
	}
	return nil
}

// take adds the record of unit u, at offset at, to out; false if the answer
// ends before it.
func (g getter) take(req Request, out *Records, u codec.QueueUnit, at, tagHash int64) (bool, error) {
	if cq.IsBlank(u) {
		if out.n == 0 {
			out.Status, out.Next = contract.GetOffsetFoundNull, at+1
		}
		return out.n == 0, nil
	}
	if out.Status == contract.GetOffsetFoundNull {
		return false, nil
	}
	if req.Tag != "" && u.TagsCode != tagHash && u.Size > 0 && !cq.IsExtAddress(u.TagsCode) {
		out.Next = at + 1
		return true, nil
	}
	if out.n > 0 && req.MaxBytes > 0 && out.bytes+int(u.Size) > req.MaxBytes {
		return false, nil
	}
	rec := &out.records[out.n]
	taken, err := g.record(req, u, at, rec)
	if !taken {
		if out.Next > req.Offset {
			return false, nil // what is whole comes first; the next Get meets this
		}
		return false, g.missed(req, out, u, err)
	}
	out.Next = at + 1
	if req.Tag != "" {
		if tag, _ := codec.FindProperty(rec.Properties(), "TAGS"); string(tag) != req.Tag {
			rec.Release()
			return true, nil
		}
	}
	out.offsets[out.n] = at
	out.bytes += int(u.Size)
	out.n++
	return true, nil
}

// record reads the record that unit u of the queue names.
func (g getter) record(req Request, u codec.QueueUnit, at int64, rec *Record) (bool, error) {
	if u.Size <= 0 || u.PhysicalOffset < 0 {
		return false, g.wrongUnit(req, at, "the unit leads to %d bytes at %d", u.Size, u.PhysicalOffset)
	}
	found, err := g.log.ReadSized(contract.Offset(u.PhysicalOffset), u.Size, rec)
	if err != nil || !found {
		return false, err
	}
	if !cq.Belongs(&rec.MessageView, req.Topic, req.QueueID, at) {
		err := g.wrongUnit(req, at, "the unit leads to record %d of %s/%d at %d", rec.QueueOffset(), rec.Topic(),
			rec.QueueID(), u.PhysicalOffset)
		rec.Release()
		return false, err
	}
	return true, nil
}
