package commitlog

import (
	"errors"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// What examine found at a place of the log.
type placeKind uint8

const (
	// placeZero: nothing was written here.
	placeZero placeKind = iota
	// placeRecord: a whole record that belongs here.
	placeRecord
	// placeBlank: the segment ends here; the rest of it is not used.
	placeBlank
	// placeInvalid: bytes that are none of these.
	placeInvalid
)

var (
	errForeignPlace    = errors.New("the record's physical offset is not its place")
	errNoRoomBehind    = errors.New("the record leaves no room for the end-of-segment mark")
	errChecksum        = errors.New("the record's checksum is wrong")
	errChecksumMissing = errors.New("the record's checksum is missing where every record has one")
	errBodyChecksum    = errors.New("the body's checksum is wrong")
	errBlankSize       = errors.New("the end-of-segment mark does not reach the segment's end")
	errHalfZero        = errors.New("a length without a magic, or a magic without a length")
	errSegmentRest     = errors.New("fewer than 8 bytes are left in the segment")
	errZeroInside      = errors.New("zeros where a record must stand")
)

// ourRanges lists the parts of the log that this store wrote with a checksum
// on every record, ascending. In them a record without one is damage.
type ourRanges []contract.Range

func (r ourRanges) contains(off int64) bool {
	for i := len(r) - 1; i >= 0; i-- {
		if r[i].Contains(contract.Offset(off)) {
			return true
		}
	}
	return false
}

// endAt leaves nothing at or behind end in the ranges.
func (r ourRanges) endAt(end contract.Offset) {
	for i := range r {
		r[i].End = min(r[i].End, end)
	}
}

// examine judges the bytes b, which run from off to the end of its segment.
// With ours set, the record must carry an exact, right checksum. On
// placeRecord v holds the record and size its length; on placeBlank size is
// what is left of the segment.
func examine(v *codec.MessageView, b []byte, off int64, ours bool) (kind placeKind, size int, err error) {
	total, magic, ok := codec.PeekMessage(b)
	switch {
	case !ok:
		return placeInvalid, 0, errSegmentRest
	case total == 0 && magic == 0:
		return placeZero, 0, nil
	case total == 0 || magic == 0:
		return placeInvalid, 0, errHalfZero
	case magic == codec.BlankMagic:
		if int64(total) != int64(len(b)) {
			return placeInvalid, 0, errBlankSize
		}
		return placeBlank, len(b), nil
	}
	if err := v.Parse(b); err != nil {
		return placeInvalid, 0, err
	}
	size = int(v.TotalSize())
	if err := checkRecord(v, off, ours); err != nil {
		return placeInvalid, size, err
	}
	if size+codec.BlankSize > len(b) {
		return placeInvalid, size, errNoRoomBehind
	}
	return placeRecord, size, nil
}

// checkRecord checks a parsed record's place and checksums.
func checkRecord(v *codec.MessageView, off int64, ours bool) error {
	if v.PhysicalOffset() != off {
		return errForeignPlace
	}
	switch codec.CheckRecord(v.Bytes()) {
	case codec.ChecksumValid:
		return nil
	case codec.ChecksumAbsent, codec.ChecksumNotLast:
		if ours {
			return errChecksumMissing
		}
	default:
		if ours {
			return errChecksum
		}
	}
	// A record of the Java store: its own checksum covers the body only, and
	// a trailer that is not right counts for nothing.
	if !v.CheckBodyCRC() {
		return errBodyChecksum
	}
	return nil
}

// populatePiece is how many bytes of a segment are brought in at a time before
// they are scanned.
const populatePiece = 1 << 20

// scanner walks the records of [off, end) in order.
type scanner struct {
	list   *segmentList
	ranges ourRanges
	off    int64
	end    int64
	// at is where the current record starts; off is behind it.
	at        int64
	view      codec.MessageView
	populated int64
	seg       *segment
	err       error
	// kind tells why Next returned false: placeZero at the end of the data,
	// placeInvalid with err, placeRecord at end.
	kind placeKind
}

func newScanner(list *segmentList, ranges ourRanges, from, end int64) *scanner {
	return &scanner{list: list, ranges: ranges, off: from, end: end, at: -1, kind: placeRecord}
}

// Next advances to the next record.
func (s *scanner) Next() bool {
	for s.err == nil && s.off < s.end {
		if s.seg == nil || s.off >= s.seg.end() || s.off < s.seg.base {
			if s.seg = s.list.find(s.off); s.seg == nil {
				s.kind = placeZero
				return false
			}
			s.populated = 0
		}
		rel := s.off - s.seg.base
		if !s.populate(rel) {
			return false
		}
		b := s.seg.file.Bytes()[rel:]
		kind, size, err := examine(&s.view, b, s.off, s.ranges.contains(s.off))
		switch kind {
		case placeRecord:
			s.at = s.off
			s.off += int64(size)
			return true
		case placeBlank:
			s.off = s.seg.end()
		case placeZero:
			s.kind = placeZero
			return false
		default:
			s.kind, s.err = placeInvalid, s.damage(rel, size, err)
			return false
		}
	}
	return false
}

// populate makes sure that the bytes of the record at rel are in memory.
func (s *scanner) populate(rel int64) bool {
	size := s.seg.file.Size()
	need := min(rel+codec.BlankSize, size)
	if need <= s.populated && size-rel >= codec.BlankSize {
		total, _, _ := codec.PeekMessage(s.seg.file.Bytes()[rel:])
		need = min(rel+int64(total), size)
	}
	if need <= s.populated {
		return true
	}
	from := max(rel, s.populated)
	to := min(max(from+populatePiece, need), size)
	if err := s.seg.file.Populate(from, to-from); err != nil {
		s.kind, s.err = placeInvalid, typed(contract.OpRead, contract.ComponentSegment, err)
		return false
	}
	s.populated = to
	return s.populate(rel) // now that the record's length can be read
}

func (s *scanner) damage(rel int64, size int, cause error) error {
	lost := max(int64(size), 1)
	return &contract.CorruptionError{File: s.seg.file.Path(), Offset: rel, Cause: cause,
		Lost: contract.Range{Start: contract.Offset(s.off), End: contract.Offset(s.off + lost)}}
}

// View returns the current record, valid while the log's segments are.
func (s *scanner) View() *codec.MessageView { return &s.view }

// Offset returns where the current record starts.
func (s *scanner) Offset() int64 { return s.at }

// Err returns what ended the walk, if it was not the end of the data.
func (s *scanner) Err() error { return s.err }

// What stands behind the first invalid byte of a tail.
type behind uint8

const (
	// behindZeros: nothing at all.
	behindZeros behind = iota
	// behindGarbage: bytes, but no record that belongs where it stands.
	behindGarbage
	// behindNear: a valid record so near that the invalid byte may have been
	// unsynced when it was written.
	behindNear
	// behindFar: a valid record so far on that the invalid byte was durable
	// when it was written.
	behindFar

	behindCount
)

// lookBehind tells what stands in the log at or behind x. window is the most
// that was ever appended beyond durable, rest what is not zero there.
func lookBehind(list *segmentList, ranges ourRanges, x, window int64, rest remains) (behind, error) {
	found := behindZeros
	for _, seg := range list.segs {
		if r := rest.of(seg); r.end > 0 {
			b, err := lookInto(seg, ranges, max(x, seg.base)-seg.base, r, x+window)
			if err != nil || b == behindFar {
				return b, err
			}
			found = max(found, b)
		}
	}
	return found, nil
}

// lookInto looks for records of seg that start at or behind from; r is where
// its bytes there are not zero. A record that ends beyond far proves more.
func lookInto(seg *segment, ranges ourRanges, from int64, r remain, far int64) (behind, error) {
	found := behindGarbage
	b := seg.file.Bytes()
	from = max(from, r.start-3) // the first bytes of a record may be zeros
	populated := from
	populate := func(to int64) error {
		for to = min(to, int64(len(b))); populated < to; populated += populatePiece {
			if err := seg.file.Populate(populated, min(populatePiece, int64(len(b))-populated)); err != nil {
				return err
			}
		}
		return nil
	}
	var v codec.MessageView
	for i := from; i < r.end; {
		to := min(i+populatePiece, r.end)
		if err := populate(to); err != nil {
			return found, err
		}
		hit := codec.FindMessage(b[i:to])
		if hit < 0 {
			if to == r.end {
				break
			}
			i = to - codec.BlankSize + 1 // what is looked for may straddle the edge
			continue
		}
		start := i + int64(hit)
		i = start + 1
		if err := populate(start + codec.BlankSize); err != nil {
			return found, err
		}
		total, _, _ := codec.PeekMessage(b[start:])
		if err := populate(start + int64(total)); err != nil {
			return found, err
		}
		off := seg.base + start
		kind, size, _ := examine(&v, b[start:], off, ranges.contains(off))
		if kind != placeRecord {
			continue
		}
		if off+int64(size) > far {
			return behindFar, nil
		}
		found = behindNear
	}
	return found, nil
}
