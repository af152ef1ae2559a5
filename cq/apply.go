package cq

import (
	"bytes"
	"errors"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// Apply notes the units of a record: in its queue, and in the light queues that
// it has numbers in. Readers see them after Commit. Records of prepared and
// rolled back transactions have none.
func (s *Store) Apply(id contract.RecordID, rec *codec.MessageView) error {
	switch rec.SysFlag() & codec.SysFlagTransaction {
	case codec.SysFlagTransactionPrepared, codec.SysFlagTransactionRollback:
		return nil
	}
	if err := s.checkWritable(contract.OpDispatch); err != nil {
		return err
	}
	if rec.SysFlag()&codec.SysFlagInnerBatch != 0 || s.batches.any.Load() {
		if done, err := s.applyBatch(id, rec); done || err != nil {
			return err
		}
	}
	at := rec.QueueOffset()
	if err := checkPlace(rec.QueueID(), at); err != nil {
		return err
	}
	q, err := s.queueFor(rec.Topic(), rec.QueueID())
	if err != nil {
		return err
	}
	u := codec.QueueUnit{PhysicalOffset: int64(id.Offset), Size: rec.TotalSize(), TagsCode: s.tagsCode(rec)}
	s.now = rec.StoreTimestamp()
	if err := s.put(q, at, u); err != nil {
		return err
	}
	if rec.NamesLight() {
		return s.applyLight(rec, u)
	}
	return nil
}

// put adds the unit to the queue's run. A run is contiguous; a unit that does
// not continue it has it written first.
func (s *Store) put(q *queue, at int64, u codec.QueueUnit) error {
	next := q.runFrom + int64(len(q.run))/unitSize
	if len(q.run) > 0 && (at < q.runFrom || at > next) {
		s.writer.Lock()
		err := s.writeRun(q)
		s.writer.Unlock()
		if err != nil {
			s.writer.Lock()
			s.dropRuns()
			s.dropBatchRuns()
			s.writer.Unlock()
			return err
		}
	}
	if len(q.run) == 0 {
		s.startRun(q, at)
	}
	k := int(at-q.runFrom) * unitSize
	if k == len(q.run) {
		var zero [unitSize]byte
		q.run = append(q.run, zero[:]...)
		if s.ext.write {
			q.times = append(q.times, 0)
		}
	}
	if s.ext.write {
		q.times[k/unitSize] = s.now
	}
	if _, err := u.Encode(q.run[k : k+unitSize]); err != nil {
		return err
	}
	q.runPhy = max(q.runPhy, endOf(u))
	return nil
}

func (s *Store) startRun(q *queue, at int64) {
	q.runFrom, q.runPhy = at, 0
	if q.run == nil && len(s.runPool) > 0 {
		q.run = s.runPool[len(s.runPool)-1]
		s.runPool = s.runPool[:len(s.runPool)-1]
	}
	if !q.inBatch {
		q.inBatch = true
		s.batch = append(s.batch, q)
	}
}

// Commit writes what was applied, one write per queue and file, and shows it to
// readers. If it fails, what was applied since the last Commit is forgotten,
// and the caller applies it again.
func (s *Store) Commit() error {
	s.writer.Lock()
	defer s.writer.Unlock()
	defer s.dropRuns()
	defer s.dropBatchRuns()
	s.stats.Wild, s.wild = s.stats.Wild+s.wild, 0
	if s.closed.Load() && len(s.batch)+len(s.batches.batch) > 0 {
		return s.checkWritable(contract.OpDispatch)
	}
	for _, q := range s.batch {
		if err := s.writeRun(q); err != nil {
			return err
		}
	}
	return s.commitBatches()
}

// runKeepBytes is the largest run buffer that is kept for later batches.
const runKeepBytes = 64 << 10

// dropRuns ends the batch and takes its buffers back.
func (s *Store) dropRuns() {
	for i, q := range s.batch {
		if cap(q.run) <= runKeepBytes {
			s.runPool = append(s.runPool, q.run[:0])
		}
		q.run, q.times, q.inBatch = nil, q.times[:0], false
		s.batch[i] = nil
	}
	s.batch = s.batch[:0]
}

// writeRun writes the queue's run and publishes the new end.
func (s *Store) writeRun(q *queue) error {
	from, run, times := q.runFrom, q.run, q.times
	q.run, q.times = q.run[:0], q.times[:0]
	if len(run) == 0 {
		return nil
	}
	if q.count.Load() == 0 {
		if err := s.firstFile(q, from); err != nil {
			return err
		}
	}
	if first := q.first.Load() / unitSize; from < first {
		// The file that this unit stood in was removed by retention.
		skip := min(first-from, int64(len(run))/unitSize)
		s.stats.Below += uint64(skip)
		from, run, times = from+skip, run[skip*unitSize:], times[min(skip, int64(len(times))):]
		if len(run) == 0 {
			return nil
		}
	}
	if from > q.wend {
		err := s.fillGap(q, from)
		if wild := (*GapError)(nil); q.light && errors.As(err, &wild) {
			s.stats.Wild += uint64(len(run) / unitSize)
			return nil
		}
		if err != nil {
			return err
		}
	}
	to := from + int64(len(run))/unitSize
	done := false
	if from < q.wend {
		var err error
		if done, err = s.compare(q, from, run); err != nil {
			return err
		}
	}
	if !done {
		if err := s.extend(q, from, run, times); err != nil {
			return err
		}
		if err := s.writeUnits(q, from, run); err != nil {
			return err
		}
		s.stats.Written += uint64(to - from)
	}
	s.publish(q, from, to)
	return nil
}

func (s *Store) publish(q *queue, from, to int64) {
	q.wend = max(q.wend, to)
	if from < q.min.Load() {
		q.min.Store(from)
	}
	if q.runPhy > q.maxPhy.Load() {
		q.maxPhy.Store(q.runPhy)
	}
	s.raiseMaxPhy(q.runPhy)
	if q.wend > q.end.Load() {
		q.end.Store(q.wend)
	}
}

// compare counts what of run stands in its place already. It reports true if
// all of it does and is durable, so that nothing is left to write. What is not
// known to be durable is written even if it reads the same: after a failed sync
// the system may hold pages that it will never write.
func (s *Store) compare(q *queue, from int64, run []byte) (bool, error) {
	left := run[:min(int64(len(run)), (q.wend-from)*unitSize)]
	same := true
	for i := from; len(left) > 0; {
		b, err := s.read(q, i, int64(len(left))/unitSize)
		if err != nil {
			return false, err
		}
		for k := 0; k < len(b); k += unitSize {
			switch {
			case bytes.Equal(b[k:k+unitSize], left[k:k+unitSize]):
				s.stats.Same++
			case s.ext.present && i+int64(k)/unitSize < max(q.flushed, q.anchor) && s.keepAddress(q, decode(b[k:]), decode(left[k:])):
				copy(left[k:k+unitSize], b[k:k+unitSize])
				s.stats.Same++
			case !IsBlank(decode(b[k:])):
				s.stats.Replaced++
				same = false
			default:
				same = false
			}
		}
		i += int64(len(b)) / unitSize
		left = left[len(b):]
	}
	return same && from+int64(len(run))/unitSize <= q.flushed, nil
}

// firstFile makes the file that unit at stands in, with blank units up to it.
func (s *Store) firstFile(q *queue, at int64) error {
	start := s.fileOf(at)
	q.wend, q.flushed, q.anchor = start/unitSize, 0, 0
	if err := s.makeFile(q, start); err != nil {
		return err
	}
	if err := s.fillBlank(q, start/unitSize, at); err != nil {
		return errors.Join(err, s.removeFile(q, start))
	}
	q.wend = at
	q.first.Store(start)
	q.min.Store(at)
	q.end.Store(at)
	q.count.Store(1)
	return nil
}

// fillGap brings the queue's end to unit at.
//
// A jump means that the records between are not in the log: their segments were
// retired or cut before this lane came by. Java appends at the old end
// nevertheless, and so gives every later record of the queue a wrong number;
// here each unit stays in its place, and blank units fill the jump.
func (s *Store) fillGap(q *queue, at int64) error {
	gap := at - q.wend
	if gap > s.unitsPerFile && q.wend >= q.flushed && q.maxPhy.Load() <= s.logMin.Load() {
		// No record before the jump is alive, so the queue starts anew
		// with the file of at: no need to fill whole files.
		if err := s.removeFiles(q); err != nil {
			return err
		}
		return s.firstFile(q, at)
	}
	if gap > s.unitsPerFile*int64(s.opts.MaxGapFiles) {
		return &GapError{Topic: q.topic, Queue: q.id, End: q.wend, Offset: at}
	}
	bare := q.min.Load() >= q.end.Load()
	if err := s.fillBlank(q, q.wend, at); err != nil {
		return err
	}
	if bare {
		q.min.Store(at)
	}
	q.wend = at
	return nil
}
