package cq

import (
	"errors"
	"io/fs"

	"github.com/stratalog/stratalog/contract"
)

// CorrectMin moves each queue's first live unit to the first one whose record
// starts at or above logMin, the log's start. A queue without one is empty: its
// minimum is its end, and its numbering goes on from there.
//
// Blank units in front of the first record never count, also with a logMin of
// 0: Java takes their physical offset 0 for a live record then.
func (s *Store) CorrectMin(logMin contract.Offset) error {
	s.noteLogMin(logMin)
	var errs []error
	for _, q := range s.all() {
		errs = append(errs, s.correct(q, func() error { return s.correctQueue(q, int64(logMin)) }, func(error) (bool, error) {
			return s.retired(q, s.opts.FileSize, unitSize)
		}))
	}
	for _, q := range s.allBatches() {
		errs = append(errs, s.correct(&q.q, func() error { return s.correctBatch(q, int64(logMin)) }, q.retired))
	}
	return errors.Join(errs...)
}

// correct runs f, and again as long as the queue's owner, if that is another,
// removes its files meanwhile.
func (s *Store) correct(q *queue, f func() error, retired func(error) (bool, error)) error {
	for {
		first := q.first.Load()
		s.writer.Lock()
		err := f()
		s.writer.Unlock()
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if moved, failed := retired(err); failed != nil || !moved && q.first.Load() == first {
			return errors.Join(err, failed)
		}
	}
}

func (s *Store) noteLogMin(logMin contract.Offset) {
	s.writer.Lock()
	s.logMin.Store(max(s.logMin.Load(), int64(logMin)))
	s.writer.Unlock()
}

func (s *Store) correctQueue(q *queue, logMin int64) error {
	end := q.end.Load()
	lo := max(q.min.Load(), q.first.Load()/unitSize)
	if q.count.Load() == 0 || lo >= end {
		q.min.Store(end)
		return nil
	}
	if q.maxPhy.Load() <= logMin {
		// The last record ends below the log's start. Records and segments
		// do not straddle, so it also starts below.
		q.min.Store(end)
		return nil
	}
	u, err := s.unitAt(q, lo)
	if err != nil {
		return err
	}
	if !IsBlank(u) && u.PhysicalOffset >= logMin {
		q.min.Store(lo)
		return nil
	}
	first, err := s.firstLive(q, lo, end, logMin)
	if err == nil {
		q.min.Store(first)
	}
	return err
}

// firstLive returns the first unit in [lo, end) of a record at or above logMin,
// or end. A blank unit counts as the one that follows it, since blank stretches
// may lie anywhere and would lead a plain binary search astray.
func (s *Store) firstLive(q *queue, lo, end, logMin int64) (int64, error) {
	hi := end
	for lo < hi {
		mid := lo + (hi-lo)/2
		i, u, ok, err := s.realFrom(q, mid, hi)
		if err != nil {
			return 0, err
		}
		if ok && u.PhysicalOffset < logMin {
			lo = i + 1
		} else {
			hi = mid
		}
	}
	i, _, ok, err := s.realFrom(q, lo, end)
	if err != nil || ok {
		return i, err
	}
	return end, nil
}

// DeleteExpired removes, from the front of each queue, the files whose records
// all lie below logMin, and corrects the minimum. It keeps the last file, and
// the one that holds the last flushed unit. It returns how many it removed.
func (s *Store) DeleteExpired(logMin contract.Offset) (int, error) {
	if err := s.checkWritable(contract.OpAdmin); err != nil {
		return 0, err
	}
	s.noteLogMin(logMin)
	removed := 0
	var errs []error
	for _, q := range s.all() {
		// One queue at a time, so that the lane gets in between.
		s.writer.Lock()
		n, err := s.expireQueue(q, int64(logMin))
		s.writer.Unlock()
		removed += n
		errs = append(errs, err)
	}
	for _, q := range s.allBatches() {
		s.writer.Lock()
		n, err := s.expireBatch(q, int64(logMin))
		s.writer.Unlock()
		removed += n
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

func (s *Store) expireQueue(q *queue, logMin int64) (int, error) {
	removed := 0
	for q.count.Load() > 1 {
		start := q.first.Load()
		base := start / unitSize
		next := base + s.unitsPerFile
		// The next file must hold a durable unit, else a power cut could
		// take it and with it the queue's numbering.
		if next >= max(q.flushed, q.anchor) {
			break
		}
		_, u, ok, err := s.realBefore(q, base, next)
		if err != nil {
			return removed, err
		}
		if ok && u.PhysicalOffset >= logMin {
			break
		}
		q.min.Store(max(q.min.Load(), next))
		q.first.Add(s.opts.FileSize)
		q.count.Add(-1)
		if err := s.removeFile(q, start); err != nil {
			return removed, err
		}
		removed++
		// One at a time, so that the names on disk are always contiguous.
		if err := s.fs.SyncDir(q.dir); err != nil {
			return removed, ioError(contract.OpAdmin, "sync "+q.dir, err)
		}
	}
	if err := s.correctQueue(q, logMin); err != nil || removed == 0 {
		return removed, err
	}
	return removed, s.extExpire(q)
}
