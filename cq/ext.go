package cq

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"strconv"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// Extension files hold what a unit of 20 bytes has no room for: beside the tags
// code the record's store time and, with a broker that works them out, the bits
// of the filters that it passes. The unit's tags code is then an address in them.
//
//	<dir>_ext/<topic>/<queue id>/<20-digit start offset in bytes>
//
// Units of 20 bytes and more stand one behind the other. One that does not fit,
// with 4 bytes to spare, goes into the next file, and a size of -1 ends this one.
//
// A unit of the queue that stands keeps its address. One that is made anew, by a
// replay or a rebuild, gets a new extension unit with Options.ExtWrite, else the
// plain tags code, which is what Java falls back to. Neither has the filters'
// bits: they are worked out from what consumers asked for when the record came.
// Their lack costs a consumer the read of a record that it does not want.
//
// Durability is that of the queue's units, and Flush syncs extension files first:
// a durable address leads to a durable unit.

// DefaultExtFileSize is the length of an extension file, in bytes.
const DefaultExtFileSize = 48 << 20

const (
	extSuffix  = "_ext"
	extUnitMax = math.MaxInt16
	extSpare   = 4 // What is always left at the end of a file.
	// extAddressMax is the largest tags code that is an address: no hash of
	// tags is as small.
	extAddressMax = math.MinInt32 - 1
)

// IsExtAddress reports whether a unit's tags code is an address in the queue's
// extension files.
func IsExtAddress(tagsCode int64) bool { return tagsCode <= extAddressMax }

// extOffset is the place that an address stands for, in bytes.
func extOffset(tagsCode int64) int64 { return tagsCode - math.MinInt64 }

// extension are the extension files of all queues.
type extension struct {
	dir     string
	size    int64
	write   bool
	present bool // There may be files.
	files   *handles
	queues  map[*queue]*extQueue // Guarded by Store.writer.
}

// extQueue is where a queue's extension goes on. dir, dirtyLo and so on of the
// queue in it are those of the extension's files.
type extQueue struct {
	queue
	end int64 // In bytes.
}

func (s *Store) openExt() error {
	x := &extension{dir: s.dir + extSuffix, size: s.opts.ExtFileSize, write: s.opts.ExtWrite, queues: make(map[*queue]*extQueue)}
	found, ok, err := DetectFileSize(s.fs, x.dir)
	if err != nil {
		return err
	}
	if x.size == 0 {
		x.size = DefaultExtFileSize
		if ok {
			x.size = found
		}
	}
	x.present = ok || x.write
	if x.size < 2*extSpare+codec.QueueExtUnitMinSize {
		return invalid(contract.OpOpen, "extension file of %d bytes", x.size)
	}
	x.files = newHandles(s.fs, Options{FileSize: x.size, MaxHandles: min(s.opts.MaxHandles, 64), ReadOnly: s.opts.ReadOnly})
	s.ext = x
	return nil
}

func (s *Store) extDir(topic string, queue int32) string {
	return path.Join(s.ext.dir, topic, strconv.Itoa(int(queue)))
}

// ExtUnit reads the extension unit that a unit's tags code is the address of.
// What is not there, or is none, is a *contract.CorruptionError.
func (s *Store) ExtUnit(topic string, queue int32, tagsCode int64) (codec.QueueExtUnit, error) {
	off := extOffset(tagsCode)
	start := off / s.ext.size * s.ext.size
	name := s.extDir(topic, queue) + "/" + fileName(start)
	var buf [256]byte
	b := buf[:]
	for whole := false; ; whole = true {
		b = b[:min(int64(len(b)), s.ext.size-(off-start))]
		file, err := s.fs.Open(name, vfs.ReadOnly)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return codec.QueueExtUnit{}, &contract.CorruptionError{File: name, Offset: off - start, Cause: errors.Join(ErrFileMissing, err)}
			}
			return codec.QueueExtUnit{}, ioError(contract.OpRead, "open "+name, err)
		}
		n, err := file.ReadAt(b, off-start)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return codec.QueueExtUnit{}, ioError(contract.OpRead, "read "+name, err)
		}
		var v codec.QueueExtUnitView
		if err = v.Parse(b[:n]); err == nil {
			return codec.QueueExtUnit{TagsCode: v.TagsCode(), StoreTime: v.StoreTime(), Filter: v.Filter()}, nil
		}
		if whole || n < len(b) {
			return codec.QueueExtUnit{}, &contract.CorruptionError{File: name, Offset: off - start, Cause: fmt.Errorf("no extension unit: %w", err)}
		}
		b = make([]byte, extUnitMax)
	}
}

// keepAddress reports whether the unit that stands may stay although its tags
// code is another than that of the record's unit u: it is the address of it.
func (s *Store) keepAddress(q *queue, old, u codec.QueueUnit) bool {
	if old.PhysicalOffset != u.PhysicalOffset || old.Size != u.Size || !IsExtAddress(old.TagsCode) || IsExtAddress(u.TagsCode) {
		return false
	}
	e, err := s.ExtUnit(q.topic, q.id, old.TagsCode)
	return err == nil && e.TagsCode == u.TagsCode
}

// extend gives the units of run, which is to be written at unit from on,
// extension units. Only those from the queue's end on get one, so that addresses
// grow along a queue: where an extension ends follows from the last of them.
func (s *Store) extend(q *queue, from int64, run []byte, times []int64) error {
	if skip := max(0, q.wend-from); skip < int64(len(times)) {
		run, times = run[skip*unitSize:], times[skip:]
	} else {
		return nil
	}
	if !s.ext.write || codec.IsLight(q.topic) {
		return nil
	}
	e, err := s.extFor(q)
	if err != nil {
		return err
	}
	var pending []byte
	at := e.end // Of pending.
	flush := func() error {
		if len(pending) == 0 {
			return nil
		}
		err := s.extWrite(e, at, pending)
		pending = pending[:0]
		return err
	}
	end := at
	for k := range times {
		u := decode(run[k*unitSize:])
		unit := codec.QueueExtUnit{TagsCode: u.TagsCode, StoreTime: times[k]}
		if left := s.ext.size - end%s.ext.size; left-extSpare < int64(unit.Size()) {
			pending = append(pending, 0xFF, 0xFF) // A size of -1: the rest is not used.
			if err := flush(); err != nil {
				return err
			}
			end += left
			at = end
		}
		u.TagsCode = math.MinInt64 + end
		if pending, err = unit.Append(pending); err == nil {
			_, err = u.Encode(run[k*unitSize : (k+1)*unitSize])
		}
		if err != nil {
			return err
		}
		end += int64(unit.Size())
	}
	if err := flush(); err != nil {
		return err
	}
	e.end = end
	return nil
}

// extWrite writes b at byte at, within one file.
func (s *Store) extWrite(e *extQueue, at int64, b []byte) error {
	start := at / s.ext.size * s.ext.size
	h, err := s.ext.files.acquire(&e.queue, start)
	if errors.Is(err, fs.ErrNotExist) {
		if err = s.fs.MkdirAll(e.dir); err == nil {
			h, err = s.ext.files.create(&e.queue, start)
		}
		e.dirtyNames = true
	}
	if err == nil {
		_, err = h.file.WriteAt(b, at-start)
		err = errors.Join(err, s.ext.files.release(h))
	}
	if err != nil {
		return ioError(contract.OpDispatch, "write "+e.path(start), err)
	}
	if !e.isDirty {
		e.isDirty, e.dirtyLo, e.dirtyHi = true, start, start
	}
	e.dirtyLo, e.dirtyHi = min(e.dirtyLo, start), max(e.dirtyHi, start)
	return nil
}

// extFor returns the queue's extension: it goes on behind the unit that the last
// address leads to, and nothing is left behind that.
func (s *Store) extFor(q *queue) (*extQueue, error) {
	if e := s.ext.queues[q]; e != nil {
		return e, nil
	}
	e := &extQueue{queue: queue{topic: q.topic, id: q.id, dir: s.extDir(q.topic, q.id)}}
	_, last, ok, err := s.lastAddress(q, q.wend)
	if err != nil {
		return nil, err
	}
	if ok {
		e.end = (extOffset(last)/s.ext.size + 1) * s.ext.size
		u, err := s.ExtUnit(q.topic, q.id, last)
		switch {
		case err == nil:
			e.end = extOffset(last) + int64(u.Size())
		case !errors.Is(err, contract.ErrCorrupt):
			return nil, err
		}
	}
	if err := s.extCut(e); err != nil {
		return nil, err
	}
	s.ext.queues[q] = e
	return e, nil
}

// lastAddress returns the last address in the queue below unit to, and whose it
// is.
func (s *Store) lastAddress(q *queue, to int64) (unit, code int64, ok bool, err error) {
	if q.count.Load() == 0 {
		return 0, 0, false, nil
	}
	first := q.first.Load() / unitSize
	for to > first {
		lo := max(first, to-scratchBytes/unitSize, (to-1)/s.unitsPerFile*s.unitsPerFile)
		b, err := s.read(q, lo, to-lo)
		if err != nil {
			return 0, 0, false, err
		}
		for k := to - lo - 1; k >= 0; k-- {
			if u := decode(b[k*unitSize:]); IsExtAddress(u.TagsCode) {
				return lo + k, u.TagsCode, true, nil
			}
		}
		to = lo
	}
	return 0, 0, false, nil
}

// extStarts lists the queue's extension files.
func (s *Store) extStarts(dir string) ([]int64, error) {
	entries, err := s.list(dir)
	if err != nil {
		return nil, err
	}
	var starts []int64
	for _, d := range entries {
		if start, ok := parseFileName(d.Name); ok && !d.IsDir {
			starts = append(starts, start)
		}
	}
	return starts, nil
}

// extCut makes an extension end at e.end: the files behind go, last first, and the
// rest of its own one is zeroed.
func (s *Store) extCut(e *extQueue) error {
	starts, err := s.extStarts(e.dir)
	if err != nil {
		return err
	}
	for i := len(starts) - 1; i >= 0; i-- {
		start := starts[i]
		if start >= e.end {
			if err := s.extRemove(&e.queue, start); err != nil {
				return err
			}
			e.dirtyNames = true
			continue
		}
		if at := e.end - start; at < s.ext.size {
			err := s.extZero(e, start, at)
			if err != nil {
				return err
			}
		}
	}
	if e.dirtyNames {
		e.dirtyNames = false
		return s.syncDir(e.dir)
	}
	return nil
}

func (s *Store) extZero(e *extQueue, start, at int64) error {
	h, err := s.ext.files.acquire(&e.queue, start)
	if err != nil {
		return ioError(contract.OpTruncate, "open "+e.path(start), err)
	}
	err = h.file.PunchHole(at, s.ext.size-at)
	if errors.Is(err, errors.ErrUnsupported) {
		err = writeZeros(h, at, s.ext.size)
	}
	if err == nil {
		err = h.file.Sync()
	}
	if err = errors.Join(err, s.ext.files.release(h)); err != nil {
		return ioError(contract.OpTruncate, "zero the tail of "+e.path(start), err)
	}
	return nil
}

func (s *Store) extRemove(q *queue, start int64) error {
	err := s.ext.files.forget(q, start)
	if e := s.fs.Remove(q.path(start)); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	if err != nil {
		return ioError(contract.OpTruncate, "remove "+q.path(start), err)
	}
	return nil
}

// extFlush makes what was written to the queue's extension durable. After an
// error its units count for nothing any more, and are made anew.
func (s *Store) extFlush(q *queue) error {
	e := s.ext.queues[q]
	if e == nil || !e.isDirty {
		return nil
	}
	err := func() error {
		for start := e.dirtyLo; start <= e.dirtyHi; start += s.ext.size {
			h, err := s.ext.files.acquire(&e.queue, start)
			if err == nil {
				err = errors.Join(h.file.Datasync(), s.ext.files.release(h))
			}
			if err != nil {
				return ioError(contract.OpFlush, "sync "+e.path(start), err)
			}
		}
		if !e.dirtyNames {
			return nil
		}
		return errors.Join(s.syncDir(e.dir), s.syncDir(path.Dir(e.dir)), s.syncDir(s.ext.dir), s.syncDir(path.Dir(s.ext.dir)))
	}()
	if err != nil {
		// A fresh descriptor for whatever comes next.
		for start := e.dirtyLo; start <= e.dirtyHi; start += s.ext.size {
			err = errors.Join(err, s.ext.files.forget(&e.queue, start))
		}
		return err
	}
	e.isDirty, e.dirtyNames = false, false
	return nil
}

// extSettle makes the queue's extension whole and durable after something that
// was no orderly stop, whoever wrote it.
func (s *Store) extSettle(q *queue) error {
	if !s.ext.present {
		return nil
	}
	dir := s.extDir(q.topic, q.id)
	if starts, err := s.extStarts(dir); err != nil || len(starts) == 0 {
		return err
	}
	e, err := s.extFor(q)
	if err != nil {
		return err
	}
	starts, err := s.extStarts(dir)
	if err != nil || len(starts) == 0 {
		return err
	}
	for _, start := range starts {
		h, err := s.ext.files.acquire(&e.queue, start)
		if err == nil {
			err = errors.Join(h.file.Truncate(s.ext.size), h.file.Sync(), s.ext.files.release(h))
		}
		if err != nil {
			return ioError(contract.OpTruncate, "sync "+e.path(start), err)
		}
	}
	return errors.Join(s.syncDir(e.dir), s.syncDir(path.Dir(e.dir)), s.syncDir(s.ext.dir), s.syncDir(path.Dir(s.ext.dir)))
}

// extForget drops what is known of the queue's extension: its end follows from
// the queue's units when it is needed again.
func (s *Store) extForget(q *queue) {
	if s.ext.queues[q] != nil {
		delete(s.ext.queues, q)
	}
}

// extDrop removes the queue's extension.
func (s *Store) extDrop(q *queue) error {
	s.extForget(q)
	if !s.ext.present {
		return nil
	}
	e := &queue{dir: s.extDir(q.topic, q.id)}
	starts, err := s.extStarts(e.dir)
	if err != nil || len(starts) == 0 {
		return err
	}
	for i := len(starts) - 1; i >= 0; i-- {
		if err := s.extRemove(e, starts[i]); err != nil {
			return err
		}
	}
	topicDir := path.Dir(e.dir)
	if err := s.removeDir(e.dir, topicDir); err != nil {
		return err
	}
	return s.removeDir(topicDir, s.ext.dir)
}

// extExpire removes the extension files that only units below the queue's first
// live one led to.
func (s *Store) extExpire(q *queue) error {
	if !s.ext.present || q.min.Load() >= q.end.Load() {
		return nil
	}
	u, err := s.unitAt(q, q.min.Load())
	if err != nil || !IsExtAddress(u.TagsCode) {
		return err
	}
	e := &queue{dir: s.extDir(q.topic, q.id)}
	if known := s.ext.queues[q]; known != nil {
		e = &known.queue
	}
	starts, err := s.extStarts(e.dir)
	if err != nil {
		return err
	}
	for _, start := range starts {
		if start+s.ext.size > extOffset(u.TagsCode) {
			return nil
		}
		if err := s.extRemove(e, start); err != nil {
			return err
		}
		e.dirtyLo = max(e.dirtyLo, start+s.ext.size)
		if err := s.syncDir(e.dir); err != nil {
			return err
		}
	}
	return nil
}
