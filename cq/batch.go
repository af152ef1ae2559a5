package cq

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// Batch queues are those of topics whose records stand for several messages
// each. A unit of 46 bytes says how many numbers its record has, so that its
// place does not follow from a number: units stand one behind the other, in the
// order of the log, and a number is searched for.
//
//	<root>/batchconsumequeue/<topic>/<queue id>/<20-digit start offset in bytes>
//
// A topic has queues of one kind: Java refuses a directory in which one is found
// under consumequeue and under batchconsumequeue. The kind is that of the
// directory, or, where there is none, of the topic's first record. Records that
// are no batches have no unit in a batch queue, as in Java's.
//
// (C1) holds in another form: a unit whose record does not lie above that of the
// last unit is there already. So an effect after a failed sync must first go.

// DefaultBatchFileSize is the length of a batch queue file, in bytes.
const DefaultBatchFileSize = 300_000 * batchUnitSize

const (
	batchDirName  = "batchconsumequeue"
	batchUnitSize = codec.BatchUnitSize
)

// BatchQueue is a queue of batches. Its methods are for readers, and safe beside
// everything.
type BatchQueue struct {
	s *Store
	// q names the files. Of it topic, id, dir, first, count and min are used.
	q queue
	// end and min are units, counted from the queue's start; from is the first
	// number that is there, to the one that comes next.
	end  atomic.Int64
	min  atomic.Int64
	from atomic.Int64
	to   atomic.Int64
	// lastEnd is the end of the last unit's record.
	lastEnd atomic.Int64

	// Guarded by Store.writer, run and runEnd being the lane's.
	run     []byte
	runPhy  int64
	inBatch bool
	wend    int64
	flushed int64
	dirty   bool
	names   bool
	orphans []int64
	suspect string // A file that is not as an orderly stop leaves it.
}

// batches are all batch queues.
type batches struct {
	dir    string
	size   int64
	per    int64
	files  *handles
	mu     sync.RWMutex
	topics map[string]map[int32]*BatchQueue // An empty map keeps the topic's kind.
	any    atomic.Bool                      // There is one.
	batch  []*BatchQueue
}

// BatchOf returns what a record says of its batch: the number of its first
// message and how many there are; false if it is no batch.
func BatchOf(rec *codec.MessageView) (base int64, n int16, ok bool) {
	if rec.SysFlag()&codec.SysFlagInnerBatch == 0 {
		return 0, 0, false
	}
	digits, _ := codec.FindProperty(rec.Properties(), codec.PropertyInnerNumber)
	first, _ := codec.FindProperty(rec.Properties(), codec.PropertyInnerBase)
	count, err := strconv.ParseInt(string(digits), 10, 16)
	base, bad := strconv.ParseInt(string(first), 10, 64)
	if err != nil || bad != nil || count <= 0 || base < 0 {
		return 0, 0, false
	}
	return base, int16(count), true
}

func validBatch(u codec.BatchUnit) bool {
	return u.PhysicalOffset >= 0 && u.Size > 0 && u.BaseOffset >= 0 && u.BatchSize > 0
}

func batchEnd(u codec.BatchUnit) int64 { return u.PhysicalOffset + int64(u.Size) }

// plainUnit is the unit as one of a plain queue, for Check.
func plainUnit(u codec.BatchUnit) codec.QueueUnit {
	return codec.QueueUnit{PhysicalOffset: u.PhysicalOffset, Size: u.Size, TagsCode: u.TagsCode}
}

func (s *Store) openBatches() error {
	b := &batches{dir: path.Join(path.Dir(s.dir), batchDirName), size: s.opts.BatchFileSize, topics: make(map[string]map[int32]*BatchQueue)}
	s.batches = b
	topics, err := s.list(b.dir)
	if err != nil {
		return err
	}
	if b.size == 0 && len(topics) > 0 {
		if b.size, _, err = DetectFileSize(s.fs, b.dir); err != nil {
			return err
		}
	}
	if b.size == 0 {
		b.size = DefaultBatchFileSize
	}
	if b.per = b.size / batchUnitSize; b.per < 1 || b.size%batchUnitSize != 0 {
		return invalid(contract.OpOpen, "batch queue file of %d bytes", b.size)
	}
	b.files = newHandles(s.fs, Options{FileSize: b.size, MaxHandles: min(s.opts.MaxHandles, 64), ReadOnly: s.opts.ReadOnly})
	for _, t := range topics {
		if !t.IsDir {
			if err := s.dropAnew(b.dir, t.Name); err != nil {
				return err
			}
			continue
		}
		b.any.Store(true)
		b.topics[t.Name] = make(map[int32]*BatchQueue)
		ids, err := s.list(path.Join(b.dir, t.Name))
		if err != nil {
			return err
		}
		for _, d := range ids {
			if id, ok := parseQueueID(d.Name); ok && d.IsDir {
				if err := s.adoptBatch(s.addBatch(t.Name, id)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s *Store) addBatch(topic string, id int32) *BatchQueue {
	q := &BatchQueue{s: s, q: queue{topic: topic, id: id, dir: s.BatchDir(topic, id)}}
	s.batches.mu.Lock()
	defer s.batches.mu.Unlock()
	s.batches.any.Store(true)
	if s.batches.topics[topic] == nil {
		s.batches.topics[topic] = make(map[int32]*BatchQueue)
	}
	s.batches.topics[topic][id] = q
	return q
}

// adoptBatch takes the leading files that are whole and contiguous.
func (s *Store) adoptBatch(q *BatchQueue) error {
	entries, err := s.list(q.q.dir)
	if err != nil {
		return err
	}
	var starts []int64
	for _, e := range entries {
		if e.IsDir {
			continue
		}
		start, ok := parseFileName(e.Name)
		if !ok || start%s.batches.size != 0 || start > math.MaxInt64-2*s.batches.size {
			return &contract.CorruptionError{File: path.Join(q.q.dir, e.Name), Cause: ErrFileName}
		}
		starts = append(starts, start)
	}
	slices.Sort(starts)
	for i, start := range starts {
		info, err := s.fs.Stat(q.q.path(start))
		if errors.Is(err, fs.ErrNotExist) && s.opts.ReadOnly {
			continue
		}
		if err != nil {
			return ioError(contract.OpOpen, "describe "+q.q.path(start), err)
		}
		if info.Size > s.batches.size {
			return &contract.CorruptionError{File: q.q.path(start), Offset: info.Size,
				Cause: fmt.Errorf("%w: %d instead of %d", ErrFileLength, info.Size, s.batches.size)}
		}
		n := q.q.count.Load()
		if n == 0 {
			q.q.first.Store(start)
		}
		if info.Size < s.batches.size || start != q.q.first.Load()+n*s.batches.size {
			q.suspect = q.q.path(start)
			q.orphans = starts[i:]
			break
		}
		q.q.count.Add(1)
	}
	end, err := s.batchPrefix(q, noLimit)
	if err != nil {
		return err
	}
	err = s.settleBatch(q, end)
	q.flushed = end
	return err
}

// read returns up to len(dst) units from unit i on, within one file.
func (q *BatchQueue) read(i int64, dst []codec.BatchUnit) (int, error) {
	b := q.s.batches
	n := min(int64(len(dst)), b.per-i%b.per, 64)
	var buf [64 * batchUnitSize]byte
	start := i / b.per * b.size
	h, err := b.files.acquire(&q.q, start)
	if err != nil {
		return 0, ioError(contract.OpRead, "open "+q.q.path(start), err)
	}
	got, err := h.file.ReadAt(buf[:n*batchUnitSize], i%b.per*batchUnitSize)
	if errors.Is(err, io.EOF) {
		err = nil
		clear(buf[got-got%batchUnitSize:])
	}
	if err = errors.Join(err, b.files.release(h)); err != nil {
		return 0, ioError(contract.OpRead, "read "+q.q.path(start), err)
	}
	for k := range n {
		var v codec.BatchUnitView
		if err := v.Parse(buf[k*batchUnitSize : (k+1)*batchUnitSize]); err != nil {
			dst[k] = codec.BatchUnit{}
			continue
		}
		dst[k] = codec.BatchUnit{PhysicalOffset: v.PhysicalOffset(), Size: v.Size(), TagsCode: v.TagsCode(), StoreTime: v.StoreTime(),
			BaseOffset: v.BaseOffset(), BatchSize: v.BatchSize(), CompactedOffset: v.CompactedOffset(), Reserved: v.Reserved()}
	}
	return int(n), nil
}

func (q *BatchQueue) at(i int64) (codec.BatchUnit, error) {
	var u [1]codec.BatchUnit
	_, err := q.read(i, u[:])
	return u[0], err
}

// search returns the first unit in [lo, hi) that is not in front, or hi.
func (q *BatchQueue) search(lo, hi int64, front func(codec.BatchUnit) bool) (int64, error) {
	for lo < hi {
		mid := lo + (hi-lo)/2
		u, err := q.at(mid)
		if err != nil {
			return 0, err
		}
		if front(u) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, nil
}

// batchPrefix returns how far the queue's units go if only records below limit
// exist: they are written in order, so it is a search.
func (s *Store) batchPrefix(q *BatchQueue, limit int64) (int64, error) {
	first := q.q.first.Load() / batchUnitSize
	return q.search(first, first+q.q.count.Load()*s.batches.per, func(u codec.BatchUnit) bool {
		return validBatch(u) && batchEnd(u) <= limit
	})
}

// settleBatch publishes where the queue ends.
func (s *Store) settleBatch(q *BatchQueue, end int64) error {
	first := q.q.first.Load() / batchUnitSize
	q.wend, q.flushed = end, min(q.flushed, end)
	if end == first {
		q.lastEnd.Store(0)
		q.min.Store(end)
		q.end.Store(end)
		q.from.Store(q.to.Load())
		return nil
	}
	u, err := q.at(end - 1)
	if err != nil {
		return err
	}
	q.lastEnd.Store(batchEnd(u))
	q.to.Store(u.BaseOffset + int64(u.BatchSize))
	q.min.Store(first)
	q.end.Store(end)
	s.raiseMaxPhy(batchEnd(u))
	return s.correctBatch(q, s.logMin.Load())
}

// correctBatch moves the queue's first live unit to the first record at or above
// logMin.
func (s *Store) correctBatch(q *BatchQueue, logMin int64) error {
	end := q.end.Load()
	i := min(q.min.Load(), end)
	// A unit that is none says nothing about where the log begins: units must not
	// count as retired because one is damaged.
	retired := func(u codec.BatchUnit) bool { return validBatch(u) && u.PhysicalOffset < logMin }
	from := q.to.Load()
	for searched := false; i < end; searched = true {
		u, err := q.at(i)
		if err != nil {
			return err
		}
		if from = u.BaseOffset; searched || !retired(u) {
			if i+1 < end {
				next, err := q.at(i + 1)
				if err != nil {
					return err
				}
				// A first unit that is out of order is damaged: who reads from here on
				// must meet it, instead of a queue that seems to be empty.
				if from < 0 || from+int64(u.BatchSize) > next.BaseOffset {
					from = max(next.BaseOffset-int64(u.BatchSize), 0)
				}
			}
			break
		}
		if i, err = q.search(i+1, end, retired); err != nil {
			return err
		}
		from = q.to.Load()
	}
	q.min.Store(i)
	q.from.Store(from)
	return nil
}

// Batch returns the batch queue, nil if there is none.
func (s *Store) Batch(topic string, queue int32) *BatchQueue {
	if !s.batches.any.Load() {
		return nil
	}
	s.batches.mu.RLock()
	q := s.batches.topics[topic][queue]
	s.batches.mu.RUnlock()
	if q == nil || q.q.count.Load() == 0 {
		return nil
	}
	return q
}

// BatchDir returns the directory of the files of a batch queue, which need not be
// there.
func (s *Store) BatchDir(topic string, queue int32) string {
	return path.Join(s.batches.dir, topic, strconv.Itoa(int(queue)))
}

// BatchTopics returns the topics whose queues are of batches, sorted.
func (s *Store) BatchTopics() []string {
	s.batches.mu.RLock()
	defer s.batches.mu.RUnlock()
	out := make([]string, 0, len(s.batches.topics))
	for topic := range s.batches.topics {
		out = append(out, topic)
	}
	slices.Sort(out)
	return out
}

// IsBatch reports whether a topic's queues are of batches.
func (s *Store) IsBatch(topic string) bool {
	s.batches.mu.RLock()
	defer s.batches.mu.RUnlock()
	return s.batches.topics[topic] != nil
}

// Range returns the number of the first message that is there and the one that
// comes next.
func (q *BatchQueue) Range() (from, to int64) {
	to = q.to.Load()
	return min(q.from.Load(), to), to
}

// Units reads units from the one on that Find returns, and returns how many.
func (q *BatchQueue) Units(at int64, dst []codec.BatchUnit) (int, error) {
	for {
		cuts := q.q.cuts.Load()
		i, err := q.Find(at)
		n, err := q.units(cuts, i, q.end.Load(), dst, err)
		if q.q.cuts.Load() == cuts {
			return n, err
		}
	}
}

// Find returns which unit, counted from the queue's start, has message number at,
// or, if there is none, is the first one behind it. It passes by a unit whose
// number is not in order, as far as that can be seen: such a unit is damaged, and
// must hide no other.
func (q *BatchQueue) Find(at int64) (int64, error) {
	_, i, _, err := q.still(func(lo, end int64) (int64, error) { return q.seek(lo, end, at) })
	return i, err
}

// seek is Find in [first, end).
func (q *BatchQueue) seek(first, end, at int64) (int64, error) {
	lo, hi := first, end
	for {
		i, err := q.search(lo, hi, func(u codec.BatchUnit) bool { return u.BaseOffset+int64(u.BatchSize) <= at })
		if err != nil || i >= end {
			return i, err
		}
		u, err := q.at(i)
		if err != nil || u.BaseOffset <= at {
			return i, err
		}
		// No unit has the number, unless the search was led astray by unit i, or by
		// the one in front of it.
		if i+1 < end {
			next, err := q.at(i + 1)
			if err != nil {
				return i, err
			}
			if next.BaseOffset <= at {
				lo, hi = i+1, end
				continue
			}
		}
		if i-2 < lo {
			return i, nil
		}
		before, err := q.at(i - 2)
		if err != nil {
			return i, err
		}
		last, err := q.at(i - 1)
		if err != nil || last.BaseOffset >= before.BaseOffset {
			return i, err
		}
		hi = i - 1
	}
}

// find is search through the live units [lo, end), also while they get fewer.
func (q *BatchQueue) find(front func(codec.BatchUnit) bool) (lo, i, end int64, err error) {
	return q.still(func(lo, end int64) (int64, error) { return q.search(lo, end, front) })
}

// still looks through the live units [lo, end), and again if they got fewer
// meanwhile.
func (q *BatchQueue) still(look func(lo, end int64) (int64, error)) (lo, i, end int64, err error) {
	for {
		cuts, file := q.q.cuts.Load(), q.q.first.Load()
		lo, end = q.min.Load(), q.end.Load()
		i, err = look(min(lo, end), end)
		if q.q.cuts.Load() != cuts {
			continue // the files may be others by now
		}
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return lo, i, end, err
		}
		moved, failed := q.retired(err)
		if failed != nil {
			return lo, i, end, failed
		}
		if !moved && q.q.first.Load() == file && q.min.Load() <= lo && q.end.Load() >= end {
			return lo, i, end, err
		}
	}
}

// units reads from unit i on, below end; cuts is from before that was looked at.
func (q *BatchQueue) units(cuts uint64, i, end int64, dst []codec.BatchUnit, err error) (int, error) {
	n := 0
	for err == nil && n < len(dst) && i < end {
		var m int
		m, err = q.read(i, dst[n:min(int64(len(dst)), int64(n)+end-i)])
		n, i = n+m, i+int64(m)
	}
	if moved, failed := q.retired(err); failed != nil {
		return n, failed
	} else if moved || q.went(cuts, i, err) {
		err = nil
	}
	return n, err
}

// Place returns the file of the unit that Find returns, and where it stands.
func (q *BatchQueue) Place(at int64) (file string, off int64) {
	i, err := q.Find(at)
	if err != nil {
		i = q.min.Load()
	}
	return q.UnitPlace(i)
}

// Span returns the queue's first live unit and its end. These are places, and not
// the numbers of messages: they rise also where a unit is damaged.
func (q *BatchQueue) Span() (first, end int64) {
	end = q.end.Load()
	return min(q.min.Load(), end), end
}

// UnitsFrom reads units from the i-th on, within Span, and returns how many.
func (q *BatchQueue) UnitsFrom(i int64, dst []codec.BatchUnit) (int, error) {
	cuts := q.q.cuts.Load()
	return q.units(cuts, max(i, q.min.Load()), q.end.Load(), dst, nil)
}

// UnitPlace returns the file of the i-th unit, and where in it that stands.
func (q *BatchQueue) UnitPlace(i int64) (file string, off int64) {
	return q.q.path(i / q.s.batches.per * q.s.batches.size), i % q.s.batches.per * batchUnitSize
}

// Possible reports whether a record can have the unit.
func Possible(u codec.BatchUnit) bool {
	return validBatch(u) && u.BaseOffset <= math.MaxInt64-int64(u.BatchSize)
}

// InFront returns the unit in front of those that Units gives for a message
// number, and which it is; false if there is none. A damaged unit leads a search
// astray, and then stands here or is the first that Units gives.
func (q *BatchQueue) InFront(at int64) (u codec.BatchUnit, i int64, ok bool, err error) {
	cuts := q.q.cuts.Load()
	i, err = q.Find(at)
	lo, _ := q.Span()
	return q.before(cuts, lo, i, err)
}

// Last returns the last unit that is in front, and which it is; see First.
func (q *BatchQueue) Last(front func(codec.BatchUnit) bool) (u codec.BatchUnit, i int64, ok bool, err error) {
	cuts := q.q.cuts.Load()
	lo, i, _, err := q.find(front)
	return q.before(cuts, lo, i, err)
}

// before returns the unit in front of unit i, which a search from lo on found;
// cuts is from before the search.
func (q *BatchQueue) before(cuts uint64, lo, i int64, err error) (u codec.BatchUnit, at int64, ok bool, _ error) {
	if err != nil || i <= lo {
		return u, 0, false, err
	}
	u, err = q.at(i - 1)
	if q.went(cuts, i-1, err) {
		return u, 0, false, nil
	}
	return u, i - 1, err == nil, err
}

// went reports whether err says that the file of the i-th unit is not there because
// retention or a cut of the log took it away; cuts is from before it was looked at.
func (q *BatchQueue) went(cuts uint64, i int64, err error) bool {
	return errors.Is(err, fs.ErrNotExist) && (q.q.cuts.Load() != cuts || i < q.min.Load() || i >= q.end.Load())
}

// First returns the first unit that is not in front; front must hold for the units
// up to some one and for none behind. False if there is no such unit.
func (q *BatchQueue) First(front func(codec.BatchUnit) bool) (codec.BatchUnit, bool, error) {
	cuts := q.q.cuts.Load()
	_, i, end, err := q.find(front)
	if err != nil || i >= end {
		return codec.BatchUnit{}, false, err
	}
	u, err := q.at(i)
	if q.went(cuts, i, err) {
		return u, false, nil
	}
	return u, err == nil, err
}
