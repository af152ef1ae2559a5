package cq

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// applyBatch notes the unit of a record in a batch queue. It reports false if the
// record belongs into a plain one.
func (s *Store) applyBatch(id contract.RecordID, rec *codec.MessageView) (bool, error) {
	base, n, ok := BatchOf(rec)
	known := false
	if ok || s.batches.any.Load() {
		s.batches.mu.RLock()
		known = s.batches.topics[string(rec.Topic())] != nil
		s.batches.mu.RUnlock()
	}
	if !ok {
		if known {
			s.wild++
		}
		return known, nil
	}
	if !known {
		s.mu.RLock()
		plain := s.topics[string(rec.Topic())] != nil
		s.mu.RUnlock()
		if plain {
			return false, nil
		}
		if err := checkTopic(rec.Topic()); err != nil {
			return true, err
		}
	}
	if err := checkPlace(rec.QueueID(), base); err != nil {
		return true, err
	}
	s.batches.mu.RLock()
	q := s.batches.topics[string(rec.Topic())][rec.QueueID()]
	s.batches.mu.RUnlock()
	if q == nil {
		q = s.addBatch(string(rec.Topic()), rec.QueueID())
	}
	if !q.inBatch {
		q.inBatch, q.runPhy = true, q.lastEnd.Load()
		s.batches.batch = append(s.batches.batch, q)
	}
	u := codec.BatchUnit{PhysicalOffset: int64(id.Offset), Size: rec.TotalSize(), TagsCode: s.tagsCode(rec), StoreTime: rec.StoreTimestamp(),
		BaseOffset: base, BatchSize: n, CompactedOffset: -1}
	if u.PhysicalOffset < q.runPhy {
		return true, nil // It is there.
	}
	var err error
	q.run, err = u.Append(q.run)
	q.runPhy = batchEnd(u)
	return true, err
}

func (s *Store) commitBatches() error {
	for _, q := range s.batches.batch {
		if err := s.commitBatch(q); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) dropBatchRuns() {
	for i, q := range s.batches.batch {
		q.run, q.inBatch = q.run[:0], false
		s.batches.batch[i] = nil
	}
	s.batches.batch = s.batches.batch[:0]
}

// commitBatch writes the queue's run and shows it.
func (s *Store) commitBatch(q *BatchQueue) error {
	b := s.batches
	run := q.run
	q.run = q.run[:0]
	if len(run) == 0 {
		return nil
	}
	i := q.wend
	for rest := run; len(rest) > 0; {
		start := i / b.per * b.size
		n := min(int64(len(rest)), b.size-i%b.per*batchUnitSize)
		h, err := b.files.acquire(&q.q, start)
		if errors.Is(err, fs.ErrNotExist) && start >= q.q.first.Load()+q.q.count.Load()*b.size {
			if err = s.fs.MkdirAll(q.q.dir); err == nil {
				h, err = b.files.create(&q.q, start)
			}
			q.names = true
		}
		if err == nil {
			_, err = h.file.WriteAt(rest[:n], i%b.per*batchUnitSize)
			err = errors.Join(err, b.files.release(h))
		}
		if err != nil {
			return ioError(contract.OpDispatch, "write "+q.q.path(start), err)
		}
		q.q.count.Store(max(q.q.count.Load(), (start-q.q.first.Load())/b.size+1))
		q.dirty = true
		i, rest = i+n/batchUnitSize, rest[n:]
	}
	var first, last codec.BatchUnitView
	if err := errors.Join(first.Parse(run[:batchUnitSize]), last.Parse(run[len(run)-batchUnitSize:])); err != nil {
		return err
	}
	if q.min.Load() == q.end.Load() {
		q.min.Store(q.wend)
		q.from.Store(first.BaseOffset())
	}
	s.stats.Written += uint64(i - q.wend)
	q.wend = i
	end := last.PhysicalOffset() + int64(last.Size())
	q.lastEnd.Store(end)
	s.raiseMaxPhy(end)
	q.to.Store(last.BaseOffset() + int64(last.BatchSize()))
	q.end.Store(i)
	return nil
}

// flushBatches makes what was committed durable. After an error a queue is taken
// back to what was.
func (s *Store) flushBatches() error {
	var errs []error
	for _, q := range s.allBatches() {
		if !q.dirty {
			continue
		}
		err := s.syncBatch(q)
		if err == nil {
			q.dirty, q.names, q.flushed = false, false, q.wend
			continue
		}
		// Units that read well may never reach the disk.
		errs = append(errs, err, s.cutBatch(q, max(q.flushed, q.q.first.Load()/batchUnitSize)))
	}
	return errors.Join(errs...)
}

func (s *Store) syncBatch(q *BatchQueue) error {
	b := s.batches
	last := q.q.first.Load() + (q.q.count.Load()-1)*b.size
	from := max(q.q.first.Load(), q.flushed/b.per*b.size)
	anew, err := s.keepFiles(b.files, &q.q, from-b.size, last, b.dir, max(q.wend, q.end.Load())*batchUnitSize)
	if err != nil {
		return err
	}
	q.names = q.names || anew
	for start := from; start <= last; start += b.size {
		h, err := b.files.acquire(&q.q, start)
		if err == nil {
			err = errors.Join(h.file.Datasync(), b.files.release(h))
		}
		if err != nil {
			return errors.Join(ioError(contract.OpFlush, "sync "+q.q.path(start), err), b.files.forget(&q.q, start))
		}
	}
	if !q.names {
		return nil
	}
	return errors.Join(s.syncDir(q.q.dir), s.syncDir(path.Dir(q.q.dir)), s.syncDir(b.dir), s.syncDir(path.Dir(b.dir)))
}

func (s *Store) allBatches() []*BatchQueue {
	s.batches.mu.RLock()
	defer s.batches.mu.RUnlock()
	var out []*BatchQueue
	for _, ids := range s.batches.topics {
		for _, q := range ids {
			out = append(out, q)
		}
	}
	return out
}

// batchCut is what is to be done to a batch queue.
type batchCut struct {
	q   *BatchQueue
	end int64
}

// planBatch finds where the queue ends if only records below the limit exist, and
// where a replay must begin to make it whole.
func (c *cutter) planBatch(q *BatchQueue) (batchCut, error) {
	s := c.s
	end, err := s.batchPrefix(q, c.limit)
	first := q.q.first.Load() / batchUnitSize
	stop := first + q.q.count.Load()*s.batches.per
	lost := q.suspect != ""
	if err == nil && c.check != nil && end < stop {
		// What is neither a unit above the limit nor nothing at all is a sector
		// that was being written, and may have held more.
		var u codec.BatchUnit
		if u, err = q.at(end); err == nil && u != (codec.BatchUnit{}) {
			next := int64(0)
			if end > first {
				var before codec.BatchUnit
				before, err = q.at(end - 1)
				next = before.BaseOffset + int64(before.BatchSize)
			}
			lost = lost || !c.wasBeingWritten(u, next)
		}
	}
	for err == nil && c.check != nil && end > first {
		var u codec.BatchUnit
		if u, err = q.at(end - 1); err != nil {
			break
		}
		var found bool
		if found, err = c.batchStands(q, u); err != nil || found {
			break
		}
		c.report.Torn++
		lost = true
		end--
	}
	if err != nil {
		return batchCut{}, err
	}
	if lost {
		from := contract.Offset(0)
		if end > first {
			u, err := q.at(end - 1)
			if err != nil {
				return batchCut{}, err
			}
			from = contract.Offset(batchEnd(u))
		}
		c.report.Replay = min(c.report.Replay, from)
		file := q.suspect
		if file == "" {
			file = q.q.path(end / s.batches.per * s.batches.size)
		}
		c.report.Lost = append(c.report.Lost, Suspect{Topic: q.q.topic, Queue: q.q.id, Reason: Garbage, File: file, Next: end, From: from})
	}
	return batchCut{q, end}, nil
}

// wasBeingWritten reports whether u can be the unit of a record above the limit
// that goes on at a number.
func (c *cutter) wasBeingWritten(u codec.BatchUnit, next int64) bool {
	return validBatch(u) && batchEnd(u) > c.limit && u.Size <= pastSizeMax && u.PhysicalOffset-c.limit <= pastLimitMax &&
		u.BaseOffset >= next && u.BaseOffset-next <= pastLimitMax
}

// batchStands asks the log for the record of the queue's last unit.
func (c *cutter) batchStands(q *BatchQueue, u codec.BatchUnit) (bool, error) {
	if c.s.batchCheck != nil {
		return c.s.batchCheck(q.q.topic, q.q.id, u)
	}
	return c.check(q.q.topic, q.q.id, u.BaseOffset, plainUnit(u))
}

// CheckBatches gives TruncateAbove another check for units of batch queues, which
// hold more than those of plain ones.
func (s *Store) CheckBatches(check func(topic string, queue int32, u codec.BatchUnit) (bool, error)) {
	s.batchCheck = check
}

// BatchLeads reports whether u is the unit of the record.
func (s *Store) BatchLeads(u codec.BatchUnit, rec *codec.MessageView, topic string, queue int32) bool {
	base, n, ok := BatchOf(rec)
	return ok && string(rec.Topic()) == topic && rec.QueueID() == queue && u.PhysicalOffset == rec.PhysicalOffset() &&
		u.Size == rec.TotalSize() && u.TagsCode == s.tagsCode(rec) && u.StoreTime == rec.StoreTimestamp() &&
		u.BaseOffset == base && u.BatchSize == n
}

// doBatch cuts.
func (c *cutter) doBatch(todo batchCut) error {
	q, s := todo.q, c.s
	was := q.end.Load()
	if was > todo.end {
		c.report.Queues++
		c.report.Units += was - todo.end
	}
	if s.opts.ReadOnly {
		return s.settleBatch(q, todo.end)
	}
	if c.check == nil && was == todo.end && q.suspect == "" {
		return nil
	}
	q.suspect = ""
	return s.cutBatch(q, todo.end)
}

// cutBatch removes the units from end on and the files behind, durably. A queue
// without a unit goes; its topic's directory stays, and says of what kind it is.
func (s *Store) cutBatch(q *BatchQueue, end int64) error {
	b := s.batches
	first := q.q.first.Load()
	q.q.cuts.Add(1)
	defer q.q.cuts.Add(1)
	q.end.Store(min(q.end.Load(), end))
	q.dirty, q.names = false, false
	keep := int64(0)
	if end > first/batchUnitSize {
		keep = (end-1)/b.per - first/b.size + 1
	}
	starts := slices.Clone(q.orphans)
	q.orphans = nil
	for k := keep; k < q.q.count.Load(); k++ {
		starts = append(starts, first+k*b.size)
	}
	slices.Sort(starts)
	q.q.count.Store(keep)
	for _, start := range slices.Backward(starts) {
		err := b.files.forget(&q.q, start)
		if e := s.fs.Remove(q.q.path(start)); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
		if err != nil {
			return ioError(contract.OpTruncate, "remove "+q.q.path(start), err)
		}
	}
	if keep == 0 {
		b.mu.Lock()
		delete(b.topics[q.q.topic], q.q.id)
		b.mu.Unlock()
		if err := s.fs.SyncDir(q.q.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return ioError(contract.OpTruncate, "sync "+q.q.dir, err)
		}
		return s.removeDir(q.q.dir, path.Dir(q.q.dir))
	}
	for k := range keep {
		start := first + k*b.size
		h, err := b.files.acquire(&q.q, start)
		if err != nil {
			return ioError(contract.OpTruncate, "open "+q.q.path(start), err)
		}
		if at := (end - start/batchUnitSize) * batchUnitSize; k == keep-1 && at < b.size {
			if err = h.file.PunchHole(at, b.size-at); errors.Is(err, errors.ErrUnsupported) {
				err = writeZeros(h, at, b.size)
			}
		}
		if err = errors.Join(err, h.file.Sync(), b.files.release(h)); err != nil {
			return ioError(contract.OpTruncate, "zero the tail of "+q.q.path(start), err)
		}
	}
	if err := errors.Join(s.syncDir(q.q.dir), s.syncDir(path.Dir(q.q.dir)), s.syncDir(b.dir), s.syncDir(path.Dir(b.dir))); err != nil {
		return err
	}
	if err := s.settleBatch(q, end); err != nil {
		return err
	}
	q.flushed = end
	return nil
}

// expireBatch removes the leading files whose records all lie below logMin.
func (s *Store) expireBatch(q *BatchQueue, logMin int64) (int, error) {
	b := s.batches
	removed := 0
	for q.q.count.Load() > 1 {
		start := q.q.first.Load()
		next := start/batchUnitSize + b.per
		if next >= q.flushed {
			break // The next file must hold a durable unit.
		}
		u, err := q.at(next - 1)
		if err != nil {
			return removed, err
		}
		if u.PhysicalOffset >= logMin {
			break
		}
		if err := s.correctBatch(q, logMin); err != nil {
			return removed, err
		}
		q.q.first.Add(b.size)
		q.q.count.Add(-1)
		err = b.files.forget(&q.q, start)
		if e := s.fs.Remove(q.q.path(start)); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
		if err = errors.Join(err, b.files.forget(&q.q, start)); err != nil {
			return removed, ioError(contract.OpAdmin, "remove "+q.q.path(start), err)
		}
		removed++
		if err := s.syncDir(q.q.dir); err != nil {
			return removed, err
		}
	}
	return removed, s.correctBatch(q, logMin)
}
