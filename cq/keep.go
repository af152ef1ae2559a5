package cq

import (
	"errors"
	"io"
	"io/fs"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// A Java broker that is started by mistake over an open store deletes the queue
// files that begin behind the end of the log that it found, before it learns that
// the lock is taken. Their units go on into files without a name, and behind a file
// that is missing at a queue's front, the next Open finds nothing amiss: retention
// leaves the same. So Flush looks at the names of the files that it syncs, and of
// the one before, and writes a file that is gone anew from the one held open. If it
// is not open any more, the queue is cut where the file began, and the lane goes back
// to there.

// keepFile gives file start of q, of which used bytes hold units, its name back if
// another program took it, and reports whether it did. The new file is durable, its
// name is not yet. If the file is not open any more, the error is fs.ErrNotExist.
func (s *Store) keepFile(h *handles, q *queue, start, used int64) (bool, error) {
	held := h.held(q, start)
	if held == nil {
		if _, err := s.fs.Stat(q.path(start)); err != nil {
			return false, ioError(contract.OpFlush, "describe "+q.path(start), err)
		}
		return false, nil
	}
	info, err := held.file.Stat()
	gone := err == nil && info.Links == 0
	if gone {
		// Some file systems do not count.
		named, failed := s.fs.Stat(q.path(start))
		gone = failed != nil || named.ID != info.ID
	}
	if gone {
		err = s.writeAnew(h, held, min(used, h.fileSize))
	}
	if err = errors.Join(err, h.release(held)); err != nil {
		return false, ioError(contract.OpFlush, "write anew "+q.path(start), err)
	}
	return gone, nil
}

// writeAnew makes the file of held again from what held holds. Until it is whole,
// readers have the old one.
func (s *Store) writeAnew(h *handles, held *handle, used int64) error {
	q, start := held.key.q, held.key.start
	// Whoever deleted it may have made another one.
	if err := s.fs.Remove(q.path(start)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := s.fs.Open(q.path(start), vfs.ReadWrite|vfs.Create)
	if errors.Is(err, fs.ErrNotExist) {
		if err = s.makeDirs(q); err == nil {
			f, err = s.fs.Open(q.path(start), vfs.ReadWrite|vfs.Create)
		}
	}
	if err != nil {
		return err
	}
	err = f.Truncate(h.fileSize)
	for at := int64(0); err == nil && at < used; at += int64(len(s.scratch)) {
		b := s.scratch[:min(used-at, int64(len(s.scratch)))]
		n, failed := held.file.ReadAt(b, at)
		if failed != nil && !errors.Is(failed, io.EOF) {
			err = failed
			break
		}
		_, err = f.WriteAt(b[:n], at)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	s.stats.Restored++
	return h.forget(q, start)
}

// lostFile returns the start of the first file of q that is gone.
func (s *Store) lostFile(q *queue, fileSize int64) (int64, bool, error) {
	first := q.first.Load()
	for start := first; start < first+q.count.Load()*fileSize; start += fileSize {
		_, err := s.fs.Stat(q.path(start))
		if errors.Is(err, fs.ErrNotExist) {
			return start, true, nil
		}
		if err != nil {
			return 0, false, ioError(contract.OpDispatch, "describe "+q.path(start), err)
		}
	}
	return 0, false, nil
}

// orLost returns err. If that says that a file is not there, and one of q is gone,
// the queue is cut in front of it, and the error tells from where on the log has to
// be replayed.
func (s *Store) orLost(q *queue, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	start, gone, failed := s.lostFile(q, s.opts.FileSize)
	if failed != nil || !gone {
		return errors.Join(err, failed)
	}
	from, c := int64(0), &cutter{s: s}
	if start == q.first.Load() {
		failed = c.forget(q)
	} else {
		_, u, ok, read := s.lastReal(q, start/unitSize)
		if read != nil {
			return errors.Join(err, read)
		}
		if ok {
			from = endOf(u)
		}
		failed = c.trim(q, start/unitSize, true)
	}
	return errors.Join(&contract.ReplayError{From: contract.Offset(from), Cause: err}, failed)
}

// orLostBatch is orLost for a batch queue.
func (s *Store) orLostBatch(q *BatchQueue, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	start, gone, failed := s.lostFile(&q.q, s.batches.size)
	if failed != nil || !gone {
		return errors.Join(err, failed)
	}
	from := int64(0)
	failed = s.cutBatch(q, start/batchUnitSize)
	if q.q.count.Load() > 0 {
		from = q.lastEnd.Load()
	}
	return errors.Join(&contract.ReplayError{From: contract.Offset(from), Cause: err}, failed)
}

// cutLost is orLost for queues of which a Flush missed a file.
func (s *Store) cutLost(lost []*queue) error {
	var first *contract.ReplayError
	var errs []error
	for _, q := range lost {
		err := s.orLost(q, fs.ErrNotExist)
		if replay := (*contract.ReplayError)(nil); errors.As(err, &replay) && (first == nil || replay.From < first.From) {
			first = replay
		}
		errs = append(errs, err)
	}
	if first != nil {
		errs = append([]error{first}, errs...) // the lowest is found first
	}
	return errors.Join(errs...)
}
