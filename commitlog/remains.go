package commitlog

import (
	"bytes"
	"io"

	"github.com/stratalog/stratalog/contract"
)

// Recovery has to know what stands behind the log's end: normally nothing, in
// the rest of a segment of a gigabyte. survey finds out in one pass, by reads
// (a mapping would be filled with the pages of it), and passes over what the
// file system knows to be unwritten.

// remain is where the bytes of a segment that are not zero begin and end,
// relative to the segment; both 0 if there are none.
type remain struct{ start, end int64 }

// remains tells it of the segments that were looked at, by their start.
type remains map[int64]remain

func (r remains) of(seg *segment) remain { return r[seg.base] }

// dataFinder is a file that knows where it was written.
type dataFinder interface {
	holeFinder
	// NextData returns the first position at or behind off that was written,
	// the file's length if there is none.
	NextData(off int64) (int64, error)
}

// survey reads what stands at or behind end, in all segments.
func survey(list *segmentList, end int64) (remains, error) {
	found := remains{}
	var buf []byte
	for _, seg := range list.segs {
		if seg.end() <= end {
			continue
		}
		if buf == nil {
			buf = make([]byte, surveyPiece)
		}
		r, err := seg.nonZero(max(0, end-seg.base), buf)
		if err != nil {
			return nil, openError(contract.ComponentSegment, err)
		}
		if r.end > 0 {
			found[seg.base] = r
		}
	}
	return found, nil
}

// surveyPiece is the size of one read.
const surveyPiece = 256 << 10

// nonZero reads s from from on, in pieces of buf.
func (s *segment) nonZero(from int64, buf []byte) (remain, error) {
	r := remain{start: -1}
	for _, part := range s.written(from) {
		for at := part.start; at < part.end; {
			n, err := s.file.Handle().ReadAt(buf[:min(int64(len(buf)), part.end-at)], at)
			if n == 0 {
				if err == nil || err == io.EOF {
					err = io.ErrUnexpectedEOF // the file has its full length
				}
				return remain{}, err
			}
			if first := firstNonZero(buf[:n]); first >= 0 {
				if r.start < 0 {
					r.start = at + int64(first)
				}
				r.end = at + int64(lastNonZero(buf[:n])) + 1
			}
			at += int64(n)
		}
	}
	if r.end == 0 {
		return remain{}, nil
	}
	return r, nil
}

// written returns the parts of s behind from that were written, as far as the
// file system tells. All are asked for before anything is read: pages that a
// reading brings in count as data.
func (s *segment) written(from int64) []remain {
	size := s.file.Size()
	whole := []remain{{from, size}}
	finder, ok := s.file.Handle().(dataFinder)
	if !ok {
		return whole
	}
	var parts []remain
	for from < size {
		data, err := finder.NextData(from)
		if err != nil {
			return whole
		}
		if data >= size {
			break
		}
		hole, err := finder.NextHole(data)
		if err != nil || hole <= data {
			return whole
		}
		parts = append(parts, remain{data, min(hole, size)})
		from = hole
	}
	return parts
}

var zeroBlock [64 << 10]byte

// firstNonZero returns the index of the first byte of b that is not zero, or -1.
func firstNonZero(b []byte) int {
	for base := 0; base < len(b); base += len(zeroBlock) {
		piece := b[base:min(base+len(zeroBlock), len(b))]
		if bytes.Equal(piece, zeroBlock[:len(piece)]) {
			continue
		}
		for i, x := range piece {
			if x != 0 {
				return base + i
			}
		}
	}
	return -1
}

// lastNonZero returns the index of the last byte of b that is not zero, or -1.
func lastNonZero(b []byte) int {
	for end := len(b); end > 0; end -= min(end, len(zeroBlock)) {
		from := end - min(end, len(zeroBlock))
		piece := b[from:end]
		if bytes.Equal(piece, zeroBlock[:len(piece)]) {
			continue
		}
		for i := len(piece) - 1; i >= 0; i-- {
			if piece[i] != 0 {
				return from + i
			}
		}
	}
	return -1
}
