package index

import (
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"sync/atomic"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// file is one index file.
type file struct {
	name, path string
	// size is the length as it was found.
	size int64
	// head is the header. That of the last file changes under Store.mu.
	head codec.IndexHeader
	// headErr says why the header could not be read.
	headErr error

	// sealed is a copy of head while nothing is put into the file.
	sealed atomic.Pointer[codec.IndexHeader]

	// Guarded by handles.mu.
	handle  *handle
	removed bool

	// mapping is set while the file is mapped, unmappable while it must not
	// be. Both change under mappings.mu.
	mapping    atomic.Pointer[mapping]
	unmappable atomic.Bool
}

// count is the number of the next entry.
func (f *file) count() int64 { return int64(f.head.Count) }

// empty reports whether the file has no entries. Java makes one before there is
// a key, and leaves its count at 0.
func (f *file) empty() bool { return f.headErr == nil && f.count() <= 1 }

// sound reports whether a file with entries, that no lane writes to any more,
// can be what it says.
func (f *file) sound(l layout) error { return f.soundFor(l, possibleHeader) }

// soundFor is sound with the rule for the header.
func (f *file) soundFor(l layout, possible func(*codec.IndexHeader, layout) bool) error {
	switch {
	case f.headErr != nil:
		return f.headErr
	case f.size != l.fileSize():
		return damaged(f, f.size, ErrFileLength)
	case !possible(&f.head, l):
		return damaged(f, 0, ErrHeader)
	}
	return nil
}

// possibleHeader reports whether a file of layout l can have the header.
func possibleHeader(h *codec.IndexHeader, l layout) bool {
	count := int64(h.Count)
	return count >= 2 && count <= l.entries && h.UsedSlots >= 1 && int64(h.UsedSlots) < count &&
		h.BeginPhysicalOffset >= 0 && h.BeginPhysicalOffset <= h.EndPhysicalOffset && h.BeginTime >= 0
}

// possibleAmid is possibleHeader for a file that a broker may be about to put an
// entry into. Java does that through a mapping, in this order: begin of the file's
// first entry, entry, slot, used slots, count, end.
func possibleAmid(h *codec.IndexHeader, l layout) bool {
	settled := *h
	if h.Count == 2 && h.EndPhysicalOffset == 0 {
		settled.EndPhysicalOffset = h.BeginPhysicalOffset
	}
	if h.UsedSlots == h.Count {
		settled.UsedSlots--
	}
	return possibleHeader(&settled, l)
}

// readAt fills b from byte at of the file. What lies behind its end reads as
// zero: the length of a sparse file may be lost where nothing was written.
func (h *handle) readAt(b []byte, at int64) error {
	n, err := h.file.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		clear(b[n:])
		err = nil
	}
	return err
}

func (h *handle) header() (codec.IndexHeader, error) {
	var b [headerSize]byte
	if err := h.readAt(b[:], 0); err != nil {
		return codec.IndexHeader{}, err
	}
	return decodeHeader(b[:])
}

func decodeHeader(b []byte) (codec.IndexHeader, error) {
	var v codec.IndexHeaderView
	if err := v.Parse(b); err != nil {
		return codec.IndexHeader{}, err
	}
	return codec.IndexHeader{BeginTime: v.BeginTime(), EndTime: v.EndTime(), BeginPhysicalOffset: v.BeginPhysicalOffset(),
		EndPhysicalOffset: v.EndPhysicalOffset(), UsedSlots: v.UsedSlots(), Count: v.Count()}, nil
}

// decodeEntry decodes the entry at the front of b, which must hold one.
func decodeEntry(b []byte) codec.IndexEntry {
	var v codec.IndexEntryView
	if v.Parse(b) != nil {
		return codec.IndexEntry{}
	}
	return codec.IndexEntry{KeyHash: v.KeyHash(), PhysicalOffset: v.PhysicalOffset(), TimeDiff: v.TimeDiff(), Previous: v.Previous()}
}

// decodeSlot decodes the slot at the front of b, which must hold one.
func decodeSlot(b []byte) int64 {
	var v codec.IndexSlotView
	if v.Parse(b) != nil {
		return 0
	}
	return int64(v.Entry())
}

// with runs f with the file open.
func (s *Store) with(f *file, op contract.Operation, run func(h *handle) error) error {
	h, err := s.files.acquire(f)
	if err == nil {
		err = errors.Join(run(h), s.files.release(h))
	}
	if err == nil || errors.Is(err, contract.ErrCorrupt) || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return ioError(op, f.path, err)
}

// scanBytes is how much of a file is read at once where all of it is read.
const scanBytes = 64 << 10 / entrySize * entrySize

// entries calls each with the entries [from, to), in order, until it fails.
func (h *handle) entries(l layout, from, to int64, each func(k int64, e codec.IndexEntry) error) error {
	buf := make([]byte, min(scanBytes, max(to-from, 0)*entrySize))
	for from < to {
		b := buf[:min(int64(len(buf)), (to-from)*entrySize)]
		if err := h.readAt(b, l.entryAt(from)); err != nil {
			return err
		}
		for ; len(b) > 0; b, from = b[entrySize:], from+1 {
			if err := each(from, decodeEntry(b)); err != nil {
				return err
			}
		}
	}
	return nil
}

// pageSize is the piece in which a system writes a file.
const pageSize = 4096

// tailStart is the first byte of the last page of the entries below count, or
// of the first entry if that lies in it.
func (l layout) tailStart(count int64) int64 {
	return max((l.entryAt(count)-1)/pageSize*pageSize, l.entryAt(1))
}

// tallyOf packs the number of a file's next entry and a checksum of what tells
// that the file, and its last page, is the one that was meant. It is never 0 or
// negative: 0 stands for no file, and -1 for not known.
func tallyOf(name string, h *codec.IndexHeader, tail []byte) (int64, error) {
	var b [headerSize]byte
	begin := codec.IndexHeader{BeginTime: h.BeginTime, BeginPhysicalOffset: h.BeginPhysicalOffset, Count: h.Count}
	if _, err := begin.Encode(b[:]); err != nil {
		return 0, err
	}
	sum := crc32.Update(crc32.ChecksumIEEE(b[:]), crc32.IEEETable, []byte(name))
	sum = crc32.Update(sum, crc32.IEEETable, tail)
	return int64(sum&0x7FFFFFFF)<<32 | int64(h.Count), nil
}

// tallyCount is the number of the next entry that a tally is for.
func tallyCount(tally int64) int64 { return tally & 0x7FFFFFFF }

// hasTally reports whether the file, cut to the entries of tally, has it.
func (s *Store) hasTally(f *file, tally int64) (bool, error) {
	count := tallyCount(tally)
	head := f.head
	if f.headErr != nil || count < 2 || count > s.entries || f.size < s.entryAt(count) {
		return false, nil
	}
	head.Count = int32(count)
	tail := make([]byte, s.entryAt(count)-s.tailStart(count))
	err := s.with(f, contract.OpOpen, func(h *handle) error { return h.readAt(tail, s.tailStart(count)) })
	if err != nil {
		return false, err
	}
	got, err := tallyOf(f.name, &head, tail)
	return got == tally, err
}
