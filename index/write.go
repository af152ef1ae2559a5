package index

import (
	"errors"
	"path"

	"github.com/stratalog/stratalog/contract"
)

// writeEntries writes the entries that are not written yet, and keeps those of
// the last page.
func (s *Store) writeEntries() error {
	a := &s.act
	end := a.bufAt + int64(len(a.buf))
	if a.wrote == end {
		return nil
	}
	if !a.made {
		if err := s.makeFile(); err != nil {
			return err
		}
	}
	if err := s.writeAt(a.buf[a.wrote-a.bufAt:], a.wrote); err != nil {
		return err
	}
	a.wrote = end
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := s.tailStart(a.f.count())
	a.buf = a.buf[:copy(a.buf, a.buf[keep-a.bufAt:])]
	a.bufAt = keep
	return nil
}

func (s *Store) writeAt(b []byte, at int64) error {
	return s.with(s.act.f, contract.OpFlush, func(h *handle) error {
		_, err := h.file.WriteAt(b, at)
		return err
	})
}

// writeAll writes everything of the active file, without a sync: the entries
// before the slots that lead to them, and the header last.
func (s *Store) writeAll() error {
	if err := s.writeEntries(); err != nil {
		return err
	}
	a := &s.act
	if !a.made {
		return nil
	}
	pages := s.pages()
	if err := s.loadPage(0); err != nil {
		return err
	}
	for from := int64(1); from < pages; from++ {
		to := from
		for to < pages && a.dirty.has(to) {
			to++
		}
		if to == from {
			continue
		}
		if err := s.writePages(from, to); err != nil {
			return err
		}
		from = to
	}
	if _, err := a.f.head.Encode(a.image.from(0)); err != nil {
		return err
	}
	return s.writePages(0, 1)
}

// writePages writes the pages [from, to) of the image.
func (s *Store) writePages(from, to int64) error {
	a := &s.act
	for from < to {
		end := min((from*pageSize/chunkSize+1)*(chunkSize/pageSize), to)
		b := a.image.from(from * pageSize)
		b = b[:min(int64(len(b)), (end-from)*pageSize)]
		if err := s.writeAt(b, from*pageSize); err != nil {
			return err
		}
		for ; from < end; from++ {
			a.dirty.unset(from)
		}
	}
	return nil
}

// Flush makes everything that was committed durable, and changes what Tally
// says.
//
// After an error the pages of a file may be lost though they read well, and a
// second sync would say that all is fine. So the index goes back to the last
// good Flush, and the caller applies again what came after it.
func (s *Store) Flush() error {
	if err := s.checkWritable(contract.OpFlush); err != nil {
		return err
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	if err := s.restore(); err != nil {
		return err
	}
	return s.flush()
}

func (s *Store) flush() error {
	if !s.changed {
		return nil
	}
	err := s.syncAll()
	if err != nil {
		s.restoring = true
	}
	return err
}

func (s *Store) syncAll() error {
	if s.act.f != nil {
		if err := s.writeAll(); err != nil {
			return err
		}
	}
	for _, f := range s.unsynced {
		if err := s.syncFile(f); err != nil {
			return err
		}
	}
	m := mark{phy: -1}
	if f := s.act.f; f != nil {
		if err := s.syncFile(f); err != nil {
			return err
		}
		tally, err := tallyOf(f.name, &f.head, s.act.buf[s.tailStart(f.count())-s.act.bufAt:])
		if err != nil {
			return err
		}
		m = mark{file: f, count: f.count(), tally: tally, phy: f.head.EndPhysicalOffset}
	}
	if err := s.syncNames(); err != nil {
		return err
	}
	s.unsynced, s.changed, s.mark = s.unsynced[:0], false, m
	return nil
}

func (s *Store) syncFile(f *file) error {
	err := s.with(f, contract.OpFlush, func(h *handle) error { return h.file.Datasync() })
	if err != nil {
		err = errors.Join(err, s.files.forget(f, false))
	}
	return err
}

// syncNames makes the names durable that were made or removed.
func (s *Store) syncNames() error {
	if s.newNames {
		if err := s.fs.SyncDir(s.dir); err != nil {
			return ioError(contract.OpFlush, "sync "+s.dir, err)
		}
		s.newNames = false
	}
	if s.newDir {
		if err := s.fs.SyncDir(path.Dir(s.dir)); err != nil {
			return ioError(contract.OpFlush, "sync "+path.Dir(s.dir), err)
		}
		s.newDir = false
	}
	return nil
}
