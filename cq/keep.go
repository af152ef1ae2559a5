package cq

import (
	"errors"
	"io"
	"io/fs"
	"path"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// A Java broker that is started by mistake over an open store deletes the queue
// files that begin behind the end of the log that it found, before it learns that
// the lock is taken. Their units go on into files without a name, and behind a file
// that is missing at a queue's front, the next Open finds nothing amiss: retention
// leaves the same. So Flush looks whether the files that it syncs, and the one before,
// have their names, and writes a file that has none anew from the one held open. If
// that is not open any more, reading it is an error, and the tally is from then on
// one that no files have: the next owner rebuilds all.

// anewName is where a file is made anew, below the directory of all topics: neither
// Java nor Open look at a plain file there.
const anewName = ".anew"

// keepFiles gives the files of q from start low to start last that have no name theirs
// back, those before as well if low has none, and reports whether there were any.
// The new files are durable, their names are not yet. Units stand below byte end of the
// queue.
func (s *Store) keepFiles(h *handles, q *queue, low, last int64, dir string, end int64) (bool, error) {
	some := false
	for start := last; start >= q.first.Load(); start -= h.fileSize {
		anew, err := s.keepFile(h, q, start, dir, end-start)
		if err != nil {
			return some, err
		}
		if some = some || anew; start <= low && !anew {
			break
		}
	}
	return some, nil
}

// keepFile is keepFiles for one file, of which used bytes hold units.
func (s *Store) keepFile(h *handles, q *queue, start int64, dir string, used int64) (bool, error) {
	held := h.held(q, start)
	if held == nil {
		_, err := s.fs.Stat(q.path(start))
		if errors.Is(err, fs.ErrNotExist) {
			s.incomplete.Store(true)
		} else if err != nil {
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
		err = s.writeAnew(h, held, path.Join(dir, anewName), min(used, h.fileSize))
	}
	if err = errors.Join(err, h.release(held)); err != nil {
		return false, ioError(contract.OpFlush, "write anew "+q.path(start), err)
	}
	return gone, nil
}

// writeAnew makes the file of held again from what held holds. It has its name when
// it is whole; until then readers have the old one.
func (s *Store) writeAnew(h *handles, held *handle, anew string, used int64) error {
	q, start := held.key.q, held.key.start
	if err := s.fs.MkdirAll(q.dir); err != nil {
		return err
	}
	f, err := s.fs.Open(anew, vfs.ReadWrite|vfs.Create)
	if err != nil {
		return err
	}
	if err = f.Truncate(0); err == nil { // a try before may have left some
		err = f.Truncate(h.fileSize)
	}
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
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.fs.Rename(anew, q.path(start))
	}
	if err != nil {
		_ = s.fs.Remove(anew) // else the next Open does
		return err
	}
	s.stats.Restored++
	return h.forget(q, start)
}

// dropAnew removes what a crash in writeAnew left in dir.
func (s *Store) dropAnew(dir, name string) error {
	if name != anewName || s.opts.ReadOnly {
		return nil
	}
	if err := s.fs.Remove(path.Join(dir, name)); err != nil {
		return ioError(contract.OpOpen, "remove "+path.Join(dir, name), err)
	}
	return nil
}

// noteGone notes that the directory of a topic is gone. That matters if there are
// files in it.
func (s *Store) noteGone(topic string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, q := range s.topics[topic] {
		if q.count.Load() > 0 {
			s.incomplete.Store(true)
		}
	}
}
