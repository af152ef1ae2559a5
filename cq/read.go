package cq

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"sync"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// readPool holds the buffers of readers.
var readPool = sync.Pool{New: func() any {
	b := make([]byte, scratchBytes)
	return &b
}}

// Units reads committed units from offset from on into dst and returns how
// many. 0 without an error means that nothing is there: no such queue, an
// offset at or above its end, or one whose file retention has removed. Units
// below Min and blank ones (IsBlank) are returned as they stand.
func (s *Store) Units(topic string, queue int32, from int64, dst []codec.QueueUnit) (int, error) {
	q := s.lookup(topic, queue)
	if q == nil || from < 0 || len(dst) == 0 {
		return 0, nil
	}
	cuts := q.cuts.Load()
	to := min(q.end.Load(), from+int64(len(dst)))
	if from >= to || from*unitSize < q.first.Load() {
		return 0, nil
	}
	buf := readPool.Get().(*[]byte)
	defer readPool.Put(buf)
	n := 0
	for from < to {
		start := s.fileOf(from)
		at := from*unitSize - start
		size := min((to-from)*unitSize, s.opts.FileSize-at, scratchBytes)
		b := (*buf)[:size]
		if err := s.readFile(q, start, at, b); err != nil {
			if q.cuts.Load() != cuts { // the file may be another one by now
				return s.Units(topic, queue, from-int64(n), dst)
			}
			return n, s.missing(q, start, err)
		}
		for k := 0; k < len(b); k += unitSize {
			dst[n] = decode(b[k:])
			n++
		}
		from += size / unitSize
	}
	if q.cuts.Load() != cuts {
		return s.Units(topic, queue, from-int64(n), dst)
	}
	return n, nil
}

// missing tells a file that was removed under a reader, which is no error, from
// one that is not there.
func (s *Store) missing(q *queue, start int64, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if start < q.first.Load() || q.count.Load() == 0 || start > s.lastStart(q) {
		return nil
	}
	if _, failed := s.retired(q, s.opts.FileSize, unitSize); failed != nil || start < q.first.Load() {
		return failed // this call, or another one, moved the start
	}
	return q.notThere(start, err)
}

func (s *Store) readFile(q *queue, start, at int64, b []byte) error {
	h, err := s.files.acquire(q, start)
	if err != nil {
		return ioError(contract.OpRead, "open "+q.path(start), err)
	}
	got, err := h.file.ReadAt(b, at)
	if got == len(b) {
		err = nil
	}
	err = errors.Join(err, s.files.release(h))
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return &contract.CorruptionError{File: q.path(start), Offset: at + int64(got),
			Cause: fmt.Errorf("%w: committed units are cut off", ErrFileLength)}
	}
	return ioError(contract.OpRead, "read "+q.path(start), err)
}

// Place returns the file that holds unit offset of a queue, whether it exists or
// not, and where in it the unit stands, in bytes.
func (s *Store) Place(topic string, queue int32, offset int64) (file string, at int64) {
	start := offset / s.unitsPerFile * s.unitsPerFile * unitSize
	return path.Join(s.dir, topic, strconv.Itoa(int(queue)), fileName(start)), offset*unitSize - start
}
