package index

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// cut takes the index back to a place whose entries are durable or in the
// files: newer files are removed, and of the last one slots and header are made
// anew from its entries. A *contract.CorruptionError says that those entries
// make no chains.
func (s *Store) cut(keep place) error {
	s.cuts.Add(1)
	defer s.cuts.Add(1)
	for len(s.list)-1 > keep.at {
		if err := s.removeLast(); err != nil {
			return err
		}
	}
	// Before another file gets a name: one that came back would stand between.
	if err := s.syncNames(); err != nil {
		return err
	}
	s.unsynced = slices.DeleteFunc(s.unsynced, func(f *file) bool {
		at := s.placeOf(mark{file: f}).at
		return at < 0 || at >= keep.at // Gone, or the active one now.
	})
	if keep.at < 0 {
		s.lastPhy, s.lastKeys, s.changed = -1, 0, false
		return nil
	}
	old := s.list[keep.at]
	old.sealed.Store(nil)
	err := s.maps.forget(old)
	if err != nil {
		return ioError(contract.OpTruncate, old.path, err)
	}
	defer s.maps.allow(old)
	fresh, err := s.rebuilt(old, keep.count)
	if err != nil {
		return err
	}
	head := fresh.f.head
	fresh.f = old
	s.mu.Lock()
	old.head, old.size, s.act = head, s.fileSize(), fresh
	s.mu.Unlock()
	s.changed = true
	return s.findLast()
}

// removeLast removes the last file.
func (s *Store) removeLast() error {
	last := len(s.list) - 1
	f := s.list[last]
	if f != s.act.f || s.act.made {
		if err := s.unlink(f); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.show(s.list[:last:last])
	if f == s.act.f {
		s.act = active{}
	}
	return nil
}

// unlink removes a file's name.
func (s *Store) unlink(f *file) error {
	err := errors.Join(s.maps.forget(f), s.files.forget(f, true))
	s.newNames = true
	if e := s.fs.Remove(f.path); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	if err != nil {
		return ioError(contract.OpTruncate, "remove "+f.path, err)
	}
	return nil
}

// rebuilt makes what the lane holds of a file from its entries below count, and
// zeroes what stands behind them.
func (s *Store) rebuilt(f *file, count int64) (active, error) {
	a := active{made: true, image: s.newImage(), dirty: newBits(s.pages()), wrote: s.entryAt(count),
		bufAt: s.tailStart(count), buf: make([]byte, s.entryAt(count)-s.tailStart(count), writeBehind+putRun*entrySize+pageSize)}
	head := f.head
	head.UsedSlots, head.Count = 0, int32(count)
	var last codec.IndexEntry
	err := s.with(f, contract.OpTruncate, func(h *handle) error {
		if err := h.file.Truncate(s.fileSize()); err != nil {
			return err
		}
		if err := h.zeroFrom(s.entryAt(count), s.fileSize()); err != nil {
			return err
		}
		err := h.entries(s.layout, 1, count, func(k int64, e codec.IndexEntry) error {
			if e.KeyHash < 0 || e.PhysicalOffset < last.PhysicalOffset {
				return damaged(f, s.entryAt(k), ErrEntry)
			}
			at := s.slotAt(int64(e.KeyHash) % s.slots)
			slot := a.image.make(s.layout, at)[at%chunkSize:]
			if decodeSlot(slot) != int64(e.Previous) {
				return damaged(f, s.entryAt(k), ErrChain)
			}
			if e.Previous == 0 {
				head.UsedSlots++
			}
			last = e
			entry := codec.IndexSlot{Entry: int32(k)}
			_, err := entry.Encode(slot)
			return err
		})
		if err == nil {
			err = s.findDirty(h, &a)
		}
		if err != nil {
			return err
		}
		return h.readAt(a.buf, a.bufAt)
	})
	if err != nil {
		return a, err
	}
	head.EndPhysicalOffset = last.PhysicalOffset
	head.EndTime, err = s.endTime(f, last)
	a.f = &file{head: head}
	return a, err
}

// findDirty marks the pages of the image that the file does not hold. After a
// failed sync what the file reads as proves nothing.
func (s *Store) findDirty(h *handle, a *active) error {
	buf, zeros := make([]byte, chunkSize), make([]byte, pageSize)
	for at := int64(0); at < s.headSize(); at += chunkSize {
		b := buf[:min(chunkSize, s.headSize()-at)]
		if err := h.readAt(b, at); err != nil {
			return err
		}
		want := a.image.from(at)
		for k := 0; k < len(b); k += pageSize {
			page := b[k:min(k+pageSize, len(b))]
			same := want == nil && bytes.Equal(page, zeros[:len(page)]) || want != nil && bytes.Equal(page, want[k:k+len(page)])
			if s.restoring || !same {
				want = a.image.make(s.layout, at)
				a.dirty.set((at + int64(k)) / pageSize)
			}
		}
	}
	return nil
}

// endTime is the store time of the record of a file's last entry. An entry has
// seconds only, so the record is asked; where it is gone the last millisecond
// of the second stands in, so that no search leaves the file out.
func (s *Store) endTime(f *file, last codec.IndexEntry) (int64, error) {
	if last.PhysicalOffset == f.head.EndPhysicalOffset {
		return f.head.EndTime, nil
	}
	if s.opts.StoreTime != nil {
		t, found, err := s.opts.StoreTime(contract.Offset(last.PhysicalOffset))
		if found || err != nil {
			return t, err
		}
	}
	return f.head.BeginTime + int64(last.TimeDiff)*1000 + 999, nil
}

// zeroFrom makes the bytes [at, size) of the file read as zero.
func (h *handle) zeroFrom(at, size int64) error {
	if at >= size {
		return nil
	}
	err := h.file.PunchHole(at, size-at)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	// The file is never shortened: another process may have it mapped.
	buf, zeros := make([]byte, chunkSize), make([]byte, chunkSize)
	for ; at < size; at += chunkSize {
		b := buf[:min(chunkSize, size-at)]
		if err := h.readAt(b, at); err != nil {
			return err
		}
		if bytes.Equal(b, zeros[:len(b)]) {
			continue
		}
		if _, err := h.file.WriteAt(zeros[:len(b)], at); err != nil {
			return err
		}
	}
	return nil
}

// adopt goes on with the last file as it is.
func (s *Store) adopt(keep place) error {
	if keep.at < 0 {
		return nil
	}
	f := s.list[keep.at]
	a := active{f: f, made: true, loaded: newBits(s.pages()), wrote: s.entryAt(keep.count), bufAt: s.tailStart(keep.count)}
	a.buf = make([]byte, a.wrote-a.bufAt)
	err := s.with(f, contract.OpOpen, func(h *handle) error { return h.readAt(a.buf, a.bufAt) })
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.act = a
	f.sealed.Store(nil)
	s.mu.Unlock()
	return s.findLast()
}

// findLast finds the record of the last entry, and how many entries it has.
func (s *Store) findLast() error {
	s.lastPhy, s.lastKeys = -1, 0
	for i := len(s.list) - 1; i >= 0; i-- {
		f := s.list[i]
		more := true
		err := s.with(f, contract.OpOpen, func(h *handle) error {
			var b [entrySize]byte
			for k := f.count() - 1; k >= 1 && more; k-- {
				if err := h.readAt(b[:], s.entryAt(k)); err != nil {
					return err
				}
				phy := decodeEntry(b[:]).PhysicalOffset
				if more = s.lastKeys == 0 || phy == s.lastPhy; more {
					s.lastPhy = phy
					s.lastKeys++
				}
			}
			return nil
		})
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// restore takes the index back to the last good Flush, if one failed since.
func (s *Store) restore() error {
	if !s.restoring {
		return nil
	}
	if err := s.cut(s.placeOf(s.mark)); err != nil {
		return err
	}
	s.restoring = false
	return nil
}

func (s *Store) placeOf(m mark) place {
	for i, f := range s.list {
		if f == m.file {
			return place{i, m.count}
		}
	}
	return place{at: -1}
}

// RollBack takes out the entries of records at and above to, durably, after the
// log was cut there. The lane must stand still.
func (s *Store) RollBack(to contract.Offset) error {
	if err := s.checkWritable(contract.OpTruncate); err != nil {
		return err
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	s.pending = s.pending[:0]
	if err := s.restore(); err != nil {
		return err
	}
	if s.lastPhy < int64(to) {
		if s.lastPhy == s.mark.phy {
			return s.flush() // Taken back before; only that failed.
		}
		return nil
	}
	if s.act.f != nil {
		if err := s.writeEntries(); err != nil {
			return err
		}
	}
	keep, err := s.placeBelow(int64(to))
	if err != nil {
		return err
	}
	flushed := s.placeOf(s.mark)
	below := keep.at < flushed.at || keep.at == flushed.at && keep.count <= flushed.count
	if below {
		if s.mark, err = s.markOf(keep); err != nil {
			return err
		}
	}
	if err := s.cut(keep); err != nil {
		return err
	}
	if !below {
		// Nothing that a Flush covered has changed, and the next one comes: were
		// this one to fail, it would take back what the lane has seen done.
		return nil
	}
	s.changed = true
	return s.flush()
}

// placeBelow finds the entries of records below phy.
func (s *Store) placeBelow(phy int64) (place, error) {
	for i := len(s.list) - 1; i >= 0; i-- {
		f := s.list[i]
		if f.head.BeginPhysicalOffset >= phy {
			continue
		}
		lo, hi := int64(2), f.count() // Entry lo-1 is below, entry hi is not.
		err := s.with(f, contract.OpTruncate, func(h *handle) error {
			var b [entrySize]byte
			for lo < hi {
				mid := lo + (hi-lo)/2
				if err := h.readAt(b[:], s.entryAt(mid)); err != nil {
					return err
				}
				if decodeEntry(b[:]).PhysicalOffset < phy {
					lo = mid + 1
				} else {
					hi = mid
				}
			}
			return nil
		})
		return place{i, lo}, err
	}
	return place{at: -1}, nil
}

// DropAll removes every file, for a rebuild from the log. The owner lowers the
// lane's cursor first: a crash in the middle then only leaves files that Fit
// removes.
func (s *Store) DropAll() error {
	if err := s.checkWritable(contract.OpTruncate); err != nil {
		return err
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	s.pending = s.pending[:0]
	s.mark, s.restoring = mark{phy: -1}, false
	return s.cut(place{at: -1})
}

// DeleteExpired removes the files of which all records lie below logMin, the
// log's start, oldest first, as Java does: never the last one, nor one that was
// written since the last Flush. It returns how many.
func (s *Store) DeleteExpired(logMin contract.Offset) (int, error) {
	if err := s.checkWritable(contract.OpAdmin); err != nil {
		return 0, err
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	removed := 0
	for len(s.list) > 1 && s.list[0].head.EndPhysicalOffset < int64(logMin) && s.placeOf(s.mark).at > 0 {
		if err := s.unlink(s.list[0]); err != nil {
			return removed, err
		}
		s.mu.Lock()
		s.show(s.list[1:])
		s.mu.Unlock()
		removed++
	}
	return removed, s.syncNames()
}
