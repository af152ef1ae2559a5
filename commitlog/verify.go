package commitlog

import (
	"errors"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

var errRestNotZero = errors.New("bytes behind the end-of-segment mark, where we leave zeros")

// Verified tells what Verify looked at.
type Verified struct {
	Records int64 // whole and right
	Bytes   int64 // of them
	// Unverified counts the records of which only the body is covered by a
	// checksum: those of the Java store, and those written without one.
	Unverified int64
	Findings   int64
}

// Verify checks every record from the segment that holds from up to to, and
// calls finding with a *contract.CorruptionError for each damage: the file,
// where in it, and the range of the log that is lost. Behind damage it goes on
// at the next record that stands where it belongs, so later damage is found
// too. It ends early when finding returns false. The error says that the log
// could not be read; what retention takes away meanwhile is left out.
func (r *reader) Verify(from, to contract.Offset, finding func(error) bool) (Verified, error) {
	return r.VerifyEach(from, to, func(*codec.MessageView) bool { return true }, finding)
}

// VerifyEach is Verify that also shows every record that is right; the view is
// valid during the call. It ends early when either function returns false.
func (r *reader) VerifyEach(from, to contract.Offset, record func(*codec.MessageView) bool, finding func(error) bool) (Verified, error) {
	var v Verified
	list := r.segs.Load()
	end := min(int64(to), r.appended.Load())
	for _, seg := range list.segs {
		if seg.end() <= int64(from) || seg.base >= end {
			continue
		}
		if seg.file.Acquire() != nil {
			continue
		}
		more, err := r.verifySegment(seg, min(end, seg.end()), &v, record, finding)
		seg.file.Release()
		if err != nil || !more {
			return v, err
		}
	}
	return v, nil
}

// verifySegment checks the records of seg below end. It returns false when
// finding wants no more.
func (r *reader) verifySegment(seg *segment, end int64, v *Verified, record func(*codec.MessageView) bool, finding func(error) bool) (bool, error) {
	ranges := *r.ranges.Load()
	whole := seg.file.Bytes()
	if err := seg.populateTo(end - seg.base); err != nil {
		return false, err
	}
	report := func(at, lostEnd int64, cause error) bool {
		v.Findings++
		return finding(&contract.CorruptionError{File: seg.file.Path(), Offset: at - seg.base, Cause: cause,
			Lost: contract.Range{Start: contract.Offset(at), End: contract.Offset(lostEnd)}})
	}
	var view codec.MessageView
	for off := seg.base; off < end; {
		ours := ranges.contains(off)
		kind, size, cause := examine(&view, whole[off-seg.base:], off, ours)
		switch kind {
		case placeRecord:
			v.Records++
			v.Bytes += int64(size)
			if view.Checksum() != codec.ChecksumValid {
				v.Unverified++
			}
			off += int64(size)
			if !record(&view) {
				return false, nil
			}
			continue
		case placeBlank:
			at := off + codec.BlankSize
			if rest := firstNonZero(whole[at-seg.base:]); ours && rest >= 0 {
				return report(at+int64(rest), at+int64(rest), errRestNotZero), nil
			}
			return true, nil
		case placeZero:
			cause = errZeroInside
		}
		next := resync(seg, whole, ranges, off, end)
		if !report(off, next, cause) {
			return false, nil
		}
		off = next
	}
	return true, nil
}

// resync returns the first place behind off where a record, or the
// end-of-segment mark, stands; end if there is none.
func resync(seg *segment, whole []byte, ranges ourRanges, off, end int64) int64 {
	var view codec.MessageView
	for _, find := range []func([]byte) int{codec.FindMessage, codec.FindBlank} {
		for i := off - seg.base + 1; ; {
			hit := find(whole[i:])
			if hit < 0 {
				break
			}
			start := i + int64(hit)
			i = start + 1
			if seg.base+start >= end {
				break
			}
			if kind, _, _ := examine(&view, whole[start:], seg.base+start, ranges.contains(seg.base+start)); kind == placeRecord || kind == placeBlank {
				return seg.base + start
			}
		}
	}
	return end
}
