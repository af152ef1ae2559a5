package commitlog

import (
	"errors"
	"fmt"
	"sort"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
	"github.com/stratalog/stratalog/mmap"
)

var (
	errNotASegment = errors.New("not a segment: the name is not a 20-digit offset")
	errGap         = errors.New("segments are not contiguous")
	errMisaligned  = errors.New("the name is not a multiple of the segment size")
)

// segment is one file of the log.
type segment struct {
	base int64
	file *mmap.File
}

func (s *segment) end() int64 { return s.base + s.file.Size() }

// segmentList is an immutable snapshot of the log's segments, ascending and,
// but for what a reader opened to salvage, contiguous. Readers load it from an
// atomic pointer.
type segmentList struct {
	size int64
	segs []*segment
	gaps bool // segments are missing between others
}

// find returns the segment that holds off, or nil.
func (l *segmentList) find(off int64) *segment {
	if len(l.segs) == 0 || off < l.segs[0].base {
		return nil
	}
	if l.gaps {
		i := sort.Search(len(l.segs), func(i int) bool { return l.segs[i].base > off }) - 1
		if off >= l.segs[i].end() {
			return nil
		}
		return l.segs[i]
	}
	i := (off - l.segs[0].base) / l.size
	if i >= int64(len(l.segs)) {
		return nil
	}
	return l.segs[i]
}

// min returns the start of the first segment.
func (l *segmentList) min() int64 {
	if len(l.segs) == 0 {
		return 0
	}
	return l.segs[0].base
}

// end returns the end of the last segment.
func (l *segmentList) end() int64 {
	if len(l.segs) == 0 {
		return 0
	}
	return l.last().end()
}

func (l *segmentList) last() *segment {
	if len(l.segs) == 0 {
		return nil
	}
	return l.segs[len(l.segs)-1]
}

// with returns a new list with s behind the last segment.
func (l *segmentList) with(s *segment) *segmentList {
	segs := make([]*segment, 0, len(l.segs)+1)
	return &segmentList{size: l.size, segs: append(append(segs, l.segs...), s)}
}

// withoutFirst returns a new list without the first segment.
func (l *segmentList) withoutFirst() *segmentList {
	return &segmentList{size: l.size, segs: l.segs[1:]}
}

// overlapping returns the segments that share a byte with [from, to).
func (l *segmentList) overlapping(from, to int64) []*segment {
	lo := sort.Search(len(l.segs), func(i int) bool { return l.segs[i].end() > from })
	hi := sort.Search(len(l.segs), func(i int) bool { return l.segs[i].base >= to })
	if lo >= hi {
		return nil
	}
	return l.segs[lo:hi]
}

// checkFiles checks names, lengths and contiguity of what a catalog lists, and
// returns the segment size. want is the size asked for, 0 for none.
func checkFiles(files []SegmentFile, want int64) (int64, error) {
	if len(files) == 0 {
		if want == 0 {
			want = DefaultSegmentSize
		}
		return want, nil
	}
	size := files[0].Size
	if size == 0 && want != 0 {
		size = want
	}
	if size < MinSegmentSize || size > MaxSegmentSize {
		return 0, &contract.CorruptionError{File: files[0].Path,
			Cause: fmt.Errorf("length %d can not be that of a segment", size)}
	}
	if want != 0 && want != size {
		return 0, invalidOption("SegmentSize is %d, the segments that exist have %d", want, size)
	}
	for i, f := range files {
		switch {
		case f.Size != size:
			return 0, &contract.CorruptionError{File: f.Path, Offset: min(f.Size, size),
				Lost:  contract.Range{Start: f.Base + contract.Offset(min(f.Size, size)), End: f.Base + contract.Offset(size)},
				Cause: &mmap.LengthError{Path: f.Path, Got: f.Size, Want: size}}
		case int64(f.Base)%size != 0:
			return 0, &contract.CorruptionError{File: f.Path, Cause: errMisaligned}
		case i > 0 && f.Base != files[i-1].Base+contract.Offset(size):
			return 0, &contract.CorruptionError{File: f.Path,
				Lost:  contract.Range{Start: files[i-1].Base + contract.Offset(size), End: f.Base},
				Cause: errGap}
		}
	}
	return size, nil
}

// openSegments maps every file. On failure nothing stays open.
func openSegments(fs vfs.FS, files []SegmentFile, size int64, mode segmentMode) (*segmentList, error) {
	list := &segmentList{size: size}
	for _, f := range files {
		file, err := mode.open(fs, f.Path, size)
		if err != nil {
			list.close()
			return nil, err
		}
		list.segs = append(list.segs, &segment{base: int64(f.Base), file: file})
	}
	return list, nil
}

// segmentMode says how segment files are opened.
type segmentMode uint8

const (
	segmentsReadOnly segmentMode = iota
	segmentsPwrite
	segmentsMapped
)

func (m segmentMode) open(fs vfs.FS, path string, size int64) (*mmap.File, error) {
	if m == segmentsReadOnly {
		return mmap.OpenReadOnly(fs, path, size)
	}
	return mmap.Open(fs, path, size, m == segmentsMapped)
}

// close closes every file; leases keep theirs until they are released.
func (l *segmentList) close() {
	for _, s := range l.segs {
		s.file.Close(nil)
	}
}
