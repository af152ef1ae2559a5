package cq

import (
	"errors"
	"io/fs"
	"path"
	"sync"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// blanks returns a block of blank units, made once.
var blanks = sync.OnceValue(func() []byte {
	b := make([]byte, scratchBytes)
	u := codec.QueueUnit{Size: codec.QueueUnitBlankSize}
	for k := 0; k < len(b); k += unitSize {
		if _, err := u.Encode(b[k : k+unitSize]); err != nil {
			panic("cq: a block of units does not hold a unit: " + err.Error())
		}
	}
	return b
})

// fillBlank writes blank units to [from, to).
func (s *Store) fillBlank(q *queue, from, to int64) error {
	for from < to {
		n := min(to-from, scratchBytes/unitSize)
		if err := s.writeUnits(q, from, blanks()[:n*unitSize]); err != nil {
			return err
		}
		s.stats.Blank += uint64(n)
		from += n
	}
	return nil
}

// writeUnits writes b at unit from on, making files as it goes.
func (s *Store) writeUnits(q *queue, from int64, b []byte) error {
	for len(b) > 0 {
		start := s.fileOf(from)
		at := from*unitSize - start
		n := min(int64(len(b)), s.opts.FileSize-at)
		if err := s.writeFile(q, start, at, b[:n]); err != nil {
			return err
		}
		from, b = from+n/unitSize, b[n:]
	}
	return nil
}

func (s *Store) writeFile(q *queue, start, at int64, b []byte) error {
	for q.count.Load() > 0 && start > s.lastStart(q) {
		if err := s.makeFile(q, s.lastStart(q)+s.opts.FileSize); err != nil {
			return err
		}
		q.count.Add(1)
	}
	h, err := s.files.acquire(q, start)
	if err != nil {
		return ioError(contract.OpDispatch, "open "+q.path(start), err)
	}
	_, err = h.file.WriteAt(b, at)
	if err = errors.Join(err, s.files.release(h)); err != nil {
		return ioError(contract.OpDispatch, "write "+q.path(start), err)
	}
	s.markDirty(q, start)
	return nil
}

func (s *Store) markDirty(q *queue, start int64) {
	if !q.isDirty {
		q.isDirty, q.dirtyLo, q.dirtyHi = true, start, start
		s.dirty = append(s.dirty, q)
		return
	}
	q.dirtyLo, q.dirtyHi = min(q.dirtyLo, start), max(q.dirtyHi, start)
}

// makeFile makes a file at its full length, sparse, with the directories on the
// way. Its name becomes durable with the next Flush.
func (s *Store) makeFile(q *queue, start int64) error {
	h, err := s.files.create(q, start)
	if errors.Is(err, fs.ErrNotExist) {
		if err = s.makeDirs(q); err == nil {
			h, err = s.files.create(q, start)
		}
	}
	if err == nil {
		err = s.files.release(h)
	}
	if err != nil {
		return ioError(contract.OpDispatch, "make "+q.path(start), err)
	}
	q.dirtyNames = true
	s.markDirty(q, start)
	return nil
}

func (s *Store) makeDirs(q *queue) error {
	if err := s.fs.MkdirAll(q.dir); err != nil {
		return err
	}
	s.dirtyTopics[q.topic] = struct{}{}
	s.dirtyRoot = true
	return nil
}

// Flush makes everything that was committed durable: the units, the lengths of
// their files, and the names.
//
// After an error the pages of a file may be lost though they read well, and a
// second sync would say that all is fine. So the queue is taken back to what
// was durable: applying again from the last good Flush writes every unit anew.
// A sync of a directory has no such pages, and is just repeated.
func (s *Store) Flush() error {
	if err := s.checkWritable(contract.OpFlush); err != nil {
		return err
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	var errs []error
	kept := s.dirty[:0]
	for _, q := range s.dirty {
		if err := s.flushQueue(q); err != nil {
			errs = append(errs, err)
			kept = append(kept, q)
		}
	}
	errs = append(errs, s.flushBatches())
	clear(s.dirty[len(kept):])
	s.dirty = kept
	for topic := range s.dirtyTopics {
		err := s.syncDir(path.Join(s.dir, topic))
		if errors.Is(err, fs.ErrNotExist) {
			s.noteGone(topic)
		} else if err != nil {
			errs = append(errs, err)
			continue
		}
		delete(s.dirtyTopics, topic)
	}
	if s.dirtyRoot {
		err := errors.Join(s.syncDir(s.dir), s.syncDir(path.Dir(s.dir)))
		s.dirtyRoot = err != nil
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		s.tallyFlushed(0, -1)
		return err
	}
	s.tallyFlushed(s.MaxPhysical(), s.tally())
	return nil
}

func (s *Store) flushQueue(q *queue) error {
	if err := s.extFlush(q); err != nil {
		q.wend = max(q.flushed, q.first.Load()/unitSize)
		s.extForget(q)
		return err
	}
	// Files may have gone since they were written.
	from := max(q.dirtyLo, q.first.Load())
	to := min(q.dirtyHi, s.lastStart(q))
	anew, err := s.keepFiles(s.files, q, from-s.opts.FileSize, to, s.dir, max(q.wend, q.end.Load())*unitSize)
	if err != nil {
		return err
	}
	if anew {
		q.dirtyNames, s.dirtyRoot = true, true
		s.dirtyTopics[q.topic] = struct{}{}
	}
	for start := from; start <= to; start += s.opts.FileSize {
		if err := s.syncFile(q, start); err != nil {
			q.wend = max(q.flushed, q.first.Load()/unitSize)
			return errors.Join(err, s.files.forget(q, start))
		}
	}
	if q.dirtyNames {
		if err := s.syncDir(q.dir); err != nil {
			return err
		}
		q.dirtyNames = false
	}
	q.isDirty = false
	q.flushed, q.anchor = q.wend, q.wend
	return nil
}

func (s *Store) syncFile(q *queue, start int64) error {
	h, err := s.files.acquire(q, start)
	if err != nil {
		return ioError(contract.OpFlush, "open "+q.path(start), err)
	}
	err = h.file.Datasync()
	if err = errors.Join(err, s.files.release(h)); err != nil {
		return ioError(contract.OpFlush, "sync "+q.path(start), err)
	}
	return nil
}

func (s *Store) syncDir(dir string) error {
	if err := s.fs.SyncDir(dir); err != nil {
		return ioError(contract.OpFlush, "sync "+dir, err)
	}
	return nil
}
