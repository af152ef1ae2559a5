package cq

import (
	"errors"
	"io"
	"math"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

const (
	// scratchBytes is the most that a search or a reader reads at once.
	scratchBytes = 3200 * unitSize
	// firstUnits is what a search for a file's end reads first: most queues
	// of a store with many are short.
	firstUnits = 200
	// noLimit stands for "no bound" of a record's end or a unit's offset.
	noLimit = math.MaxInt64
)

// IsBlank reports whether u only fills the space in front of a record.
func IsBlank(u codec.QueueUnit) bool {
	return u.PhysicalOffset == 0 && u.Size == codec.QueueUnitBlankSize && u.TagsCode == 0
}

// valid reports whether u is a unit at all: zeros are not.
func valid(u codec.QueueUnit) bool {
	return u.Size > 0 && u.PhysicalOffset >= 0 && u.PhysicalOffset <= math.MaxInt64-int64(u.Size)
}

func endOf(u codec.QueueUnit) int64 { return u.PhysicalOffset + int64(u.Size) }

// within reports whether u is a unit of a record wholly below limit. Blank
// units are; their neighbours decide about them.
func within(u codec.QueueUnit, limit int64) bool {
	return valid(u) && (IsBlank(u) || endOf(u) <= limit)
}

// decode returns the unit at the start of b, which must hold one.
func decode(b []byte) codec.QueueUnit {
	var v codec.QueueUnitView
	if err := v.Parse(b[:unitSize]); err != nil {
		return codec.QueueUnit{}
	}
	return codec.QueueUnit{
		PhysicalOffset: v.PhysicalOffset(), Size: v.Size(), TagsCode: v.TagsCode(),
	}
}

// read returns the bytes of up to n units from unit i on, at least one, in
// Store.scratch, not beyond i's file. What a short file lacks reads as zero.
// The caller holds Store.writer, or is Open.
func (s *Store) read(q *queue, i, n int64) ([]byte, error) {
	start := s.fileOf(i)
	at := i*unitSize - start
	n = max(min(n, scratchBytes/unitSize, s.unitsPerFile-at/unitSize), 1)
	b := s.scratch[:n*unitSize]
	h, err := s.files.acquire(q, start)
	if err != nil {
		return nil, ioError(contract.OpRead, "open "+q.path(start), err)
	}
	got, err := h.file.ReadAt(b, at)
	if err == nil || errors.Is(err, io.EOF) {
		clear(b[got-got%unitSize:]) // Half a unit is none.
		err = nil
	}
	if err = errors.Join(err, s.files.release(h)); err != nil {
		return nil, ioError(contract.OpRead, "read "+q.path(start), err)
	}
	return b, nil
}

func (s *Store) unitAt(q *queue, i int64) (codec.QueueUnit, error) {
	b, err := s.read(q, i, 1)
	if err != nil {
		return codec.QueueUnit{}, err
	}
	return decode(b), nil
}

// realBefore returns the last unit in [from, to) that is not blank, searching
// backwards; ok is false if all are blank. A zero unit is not blank.
func (s *Store) realBefore(q *queue, from, to int64) (int64, codec.QueueUnit, bool, error) {
	step := int64(1)
	for to > from {
		lo := max(from, to-step, (to-1)/s.unitsPerFile*s.unitsPerFile)
		b, err := s.read(q, lo, to-lo)
		if err != nil {
			return 0, codec.QueueUnit{}, false, err
		}
		for k := to - lo - 1; k >= 0; k-- {
			if u := decode(b[k*unitSize:]); !IsBlank(u) {
				return lo + k, u, true, nil
			}
		}
		to, step = lo, scratchBytes/unitSize
	}
	return 0, codec.QueueUnit{}, false, nil
}

// realFrom is realBefore forwards.
func (s *Store) realFrom(q *queue, from, to int64) (int64, codec.QueueUnit, bool, error) {
	step := int64(1)
	for from < to {
		b, err := s.read(q, from, min(step, to-from))
		if err != nil {
			return 0, codec.QueueUnit{}, false, err
		}
		n := int64(len(b)) / unitSize
		for k := range n {
			if u := decode(b[k*unitSize:]); !IsBlank(u) {
				return from + k, u, true, nil
			}
		}
		from, step = from+n, scratchBytes/unitSize
	}
	return 0, codec.QueueUnit{}, false, nil
}

// lastReal returns the queue's last unit below end that is not blank.
func (s *Store) lastReal(q *queue, end int64) (int64, codec.QueueUnit, bool, error) {
	return s.realBefore(q, q.first.Load()/unitSize, end)
}

// good reports whether unit i belongs to the queue as it was when only records
// below limit existed. A blank unit is good if the unit that it follows is,
// however far back.
func (s *Store) good(q *queue, i, limit int64) (bool, error) {
	_, u, ok, err := s.realBefore(q, q.first.Load()/unitSize, i+1)
	if err != nil || !ok {
		return err == nil, err
	}
	return within(u, limit), nil
}

// goodPrefix returns how many of the first n units of the file that starts at
// unit base are good.
//
// Units are good, then not, with no way back, but for a torn unit that passes
// for a good one (see the package comment). So it is a binary search: a scan
// of the last file of each of 100,000 queues would read up to 600 GB. If it
// ends on a torn unit, TruncateAbove searches again below it.
func (s *Store) goodPrefix(q *queue, base, n, limit int64) (int64, error) {
	b, err := s.read(q, base, min(n, firstUnits))
	if err != nil {
		return 0, err
	}
	have := int64(len(b)) / unitSize
	if IsBlank(decode(b)) {
		// The file before decides; this read takes the scratch.
		if ok, err := s.good(q, base, limit); err != nil || !ok {
			return 0, err
		}
		if b, err = s.read(q, base, have); err != nil {
			return 0, err
		}
	}
	for k := range have {
		if !within(decode(b[k*unitSize:]), limit) {
			return k, nil
		}
	}
	lo, hi := have, n // Good below lo; not good at hi, or hi is n.
	if hi > lo {
		// A file that is not the last one is full: one more read ends it.
		ok, err := s.good(q, base+hi-1, limit)
		if err != nil || ok {
			return hi, err
		}
		hi--
	}
	for lo < hi {
		mid := lo + (hi-lo)/2
		ok, err := s.good(q, base+mid, limit)
		if err != nil {
			return 0, err
		}
		if ok {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, nil
}

// findEnd returns the queue's end if only records below limit exist, not above
// unit bound. It looks at the last file first, and at one more than it needs:
// the last unit of the file before tells a hole.
func (s *Store) findEnd(q *queue, limit, bound int64) (int64, error) {
	first := q.first.Load() / unitSize
	for k := q.count.Load() - 1; k >= 0; k-- {
		base := first + k*s.unitsPerFile
		if base >= bound {
			continue
		}
		n, err := s.goodPrefix(q, base, min(s.unitsPerFile, bound-base), limit)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			continue
		}
		if k > 0 {
			ok, err := s.good(q, base-1, limit)
			if err != nil {
				return 0, err
			}
			if !ok {
				q.suspect(Hole, q.path((base-1)/s.unitsPerFile*s.opts.FileSize))
				q.holes = append(q.holes, base)
				continue
			}
		}
		return base + n, nil
	}
	return min(first, bound), nil
}
