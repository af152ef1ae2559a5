package cq

import (
	"errors"
	"io/fs"

	"github.com/stratalog/stratalog/contract"
)

// A store that is only read may be another's, who removes files from the front of
// its queues. That is no damage: files are removed oldest first, so that the first
// one that is there tells how far it has come.

// retired looks, in a store that is only read, whether files at the front of q went
// since it was opened, moves its start behind them, and reports whether it did.
// fileSize and size are those of its files and units.
func (s *Store) retired(q *queue, fileSize, size int64) (bool, error) {
	if !s.opts.ReadOnly {
		return false, nil
	}
	entries, err := s.list(q.dir)
	if err != nil {
		return false, err
	}
	left := int64(-1)
	for _, e := range entries {
		if start, ok := parseFileName(e.Name); ok && !e.IsDir && start%fileSize == 0 && (left < 0 || start < left) {
			left = start
		}
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	// The last file stays: it holds the queue's numbers.
	n := min((left-q.first.Load())/fileSize, q.count.Load()-1)
	if left < 0 || n <= 0 {
		return false, nil
	}
	q.first.Add(n * fileSize)
	q.count.Add(-n)
	q.min.Store(max(q.min.Load(), min(left/size, q.end.Load())))
	return true, nil
}

// retired is Store.retired after an error. It also moves min and from behind the
// files that went, whoever noticed them.
func (q *BatchQueue) retired(err error) (bool, error) {
	if !errors.Is(err, fs.ErrNotExist) || !q.s.opts.ReadOnly {
		return false, nil
	}
	for stuck := 0; ; {
		moved, err := q.s.retired(&q.q, q.s.batches.size, batchUnitSize)
		if err != nil {
			return false, err
		}
		raised, err := q.raise()
		if !errors.Is(err, fs.ErrNotExist) {
			return moved || raised, err
		}
		// More files went before the first unit was read.
		if !moved {
			if stuck++; stuck > 2 {
				return false, err
			}
		}
	}
}

// raise moves min and from to the first file, and reports whether they were
// behind.
func (q *BatchQueue) raise() (bool, error) {
	q.s.writer.Lock()
	defer q.s.writer.Unlock()
	end := q.end.Load()
	first := min(max(q.min.Load(), q.q.min.Load(), q.q.first.Load()/batchUnitSize), end)
	if first == min(q.min.Load(), end) {
		return false, nil
	}
	from := q.to.Load()
	if first < end {
		u, err := q.at(first)
		if err != nil {
			return false, err
		}
		from = u.BaseOffset
	}
	q.from.Store(from)
	q.min.Store(first)
	return true, nil
}

// notThere is the error of a file that is missing from a queue.
func (q *queue) notThere(start int64, err error) error {
	return &contract.CorruptionError{File: q.path(start), Cause: errors.Join(ErrFileMissing, err)}
}
