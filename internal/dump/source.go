package dump

import (
	"errors"
	"fmt"
	"io"

	"github.com/stratalog/stratalog/internal/vfs"
)

// piece is how much is read at a time, unless a record is larger.
const piece = 256 << 10

var zeroBlock [4096]byte

// source reads a file through one window.
type source struct {
	f    vfs.File
	size int64
	// buf holds the bytes from base on.
	buf  []byte
	base int64
}

// dataFinder is a file that knows where its holes end.
type dataFinder interface {
	// NextData returns the first position at or behind off that may hold
	// something else than zeros, the file's length if there is none.
	NextData(off int64) (int64, error)
}

// at returns the n bytes at off, fewer at the end of the file. They are valid
// until the next call.
func (s *source) at(off, n int64) ([]byte, error) {
	if n = min(n, s.size-off); n <= 0 {
		return nil, nil
	}
	if off >= s.base && off+n <= s.base+int64(len(s.buf)) {
		return s.buf[off-s.base:][:n], nil
	}
	want := min(max(n, piece), s.size-off)
	if int64(cap(s.buf)) < want {
		s.buf = make([]byte, want)
	}
	s.buf, s.base = s.buf[:want], off
	got, err := s.f.ReadAt(s.buf, off)
	s.buf = s.buf[:got]
	if err != nil && !errors.Is(err, io.EOF) {
		s.forget()
		return nil, fmt.Errorf("reading at %d: %w", off, err)
	}
	return s.buf[:min(n, int64(got))], nil
}

// some returns bytes at off: those that the window has, or at least n of them,
// fewer at the end of the file. They are valid until the next call.
func (s *source) some(off, n int64) ([]byte, error) {
	if have := s.base + int64(len(s.buf)) - off; off >= s.base && have >= n {
		return s.buf[off-s.base:], nil
	}
	return s.at(off, piece)
}

// forget makes the next call of at read the file.
func (s *source) forget() { s.buf = s.buf[:0] }

// nonZero returns the first place in [off, end) that is not zero, or end.
func (s *source) nonZero(off, end int64) (int64, error) {
	holes, ok := s.f.(dataFinder)
	for off < end {
		b, err := s.some(off, 1)
		if err != nil {
			return 0, err
		}
		if len(b) == 0 {
			return end, nil // the file became shorter
		}
		b = b[:min(int64(len(b)), end-off)]
		if !zero(b) {
			for i, x := range b {
				if x != 0 {
					return off + int64(i), nil
				}
			}
		}
		off += int64(len(b))
		if ok && off < end {
			next, err := holes.NextData(off)
			if ok = err == nil; ok {
				off = max(off, min(next, end))
			}
		}
	}
	return end, nil
}

// zerosFrom returns where the zeros begin that fill the file from there to end;
// not below off.
func (s *source) zerosFrom(off, end int64) (int64, error) {
	for end > off {
		from := max(off, end-piece)
		b, err := s.at(from, end-from)
		if err != nil {
			return 0, err
		}
		if !zero(b) {
			for i := len(b) - 1; i >= 0; i-- {
				if b[i] != 0 {
					return from + int64(i) + 1, nil
				}
			}
		}
		end = from
	}
	return off, nil
}
