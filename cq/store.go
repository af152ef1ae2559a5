package cq

import (
	"errors"
	"path"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// Store is the set of all consume queues of one log.
type Store struct {
	fs           vfs.FS
	dir          string
	opts         Options
	unitsPerFile int64
	files        *handles
	ext          *extension
	batches      *batches
	batchCheck   func(topic string, queue int32, u codec.BatchUnit) (bool, error)
	load         LoadReport

	// mu guards topics. The lane and Open add, the cuts take away.
	mu     sync.RWMutex
	topics map[string]map[int32]*queue

	// maxPhy is the largest end of a record over all queues.
	maxPhy atomic.Int64
	// logMin is the highest log start that retention told us.
	logMin atomic.Int64

	// The lane's own: no other goroutine touches these.
	last    *queue
	batch   []*queue
	runPool [][]byte
	wild    uint64 // See Stats.Wild.
	now     int64  // The store time of the record being applied.

	// tallied is what Flush found: the tally, -1 for none, and MaxPhysical. Guarded
	// by tallyMu, a leaf.
	tallyMu sync.Mutex
	tallied tallied

	// writer is held while files are made, written, synced or removed, and
	// guards the fields below and the files of every queue.
	writer      sync.Mutex
	dirty       []*queue
	dirtyTopics map[string]struct{}
	dirtyRoot   bool
	scratch     []byte
	stats       Stats
	closed      atomic.Bool
	incomplete  atomic.Bool // A file is gone and could not be written anew.
}

// tallied is a tally of units of which no record ends above phy.
type tallied struct {
	phy   contract.Offset
	tally int64
}

// Stats counts what Commit found.
type Stats struct {
	// Written counts units written, blanks not included.
	Written uint64
	// Same counts units that stood in their place already, durable.
	Same uint64
	// Replaced counts units that stood where another one belongs.
	Replaced uint64
	// Blank counts units that fill jumps.
	Blank uint64
	// Below counts units below the first file of their queue, dropped.
	Below uint64
	// Wild counts entries of light queues that have no place: a name that is
	// no directory's, or a number far beyond the queue's end; and records of a
	// topic with batch queues that are no batches.
	Wild uint64
	// Restored counts files that another program deleted and that were written
	// anew.
	Restored uint64
}

// queue is one queue of one topic.
type queue struct {
	topic string
	id    int32
	dir   string

	// Written under Store.writer, read by anybody. Ends are in units; first is
	// the first file's start in bytes; count the number of files.
	end    atomic.Int64
	min    atomic.Int64
	first  atomic.Int64
	count  atomic.Int64
	maxPhy atomic.Int64
	// cuts grows when a cut begins to remove files behind the end, and when it has
	// done so: files of the same names may follow.
	cuts atomic.Uint64

	// The lane's own: the units of the current batch, for offsets runFrom on.
	runFrom int64
	run     []byte
	times   []int64 // Store times of run, with Options.ExtWrite.
	runPhy  int64
	inBatch bool
	light   bool // Entries lead to records of other topics.

	// Guarded by Store.writer. wend is the end as the writer sees it: below
	// end only after a failed sync. What lies below flushed was synced by
	// this Store; below anchor, also by one before.
	wend       int64
	flushed    int64
	anchor     int64
	dirtyLo    int64 // First and last file written since the last sync, if isDirty.
	dirtyHi    int64
	isDirty    bool
	dirtyNames bool

	// What Open found and TruncateAbove clears.
	short    bool    // The last file is shorter than FileSize.
	orphans  []int64 // Starts of files behind a missing or short one.
	suspects []Suspect
	holes    []int64 // First units of files behind a hole, of the last search.
}

func (q *queue) path(start int64) string { return q.dir + "/" + fileName(start) }

// lastStart returns the start of the last file; there must be one.
func (s *Store) lastStart(q *queue) int64 {
	return q.first.Load() + (q.count.Load()-1)*s.opts.FileSize
}

// fileOf returns the start of the file that unit i stands in.
func (s *Store) fileOf(i int64) int64 {
	return i / s.unitsPerFile * s.opts.FileSize
}

// Lane returns contract.LaneQueue.
func (s *Store) Lane() contract.Lane { return contract.LaneQueue }

// lookup returns the queue if it is known.
func (s *Store) lookup(topic string, id int32) *queue {
	s.mu.RLock()
	q := s.topics[topic][id]
	s.mu.RUnlock()
	return q
}

// queueFor returns the queue of a record, known or new. Nothing is made on
// disk yet.
func (s *Store) queueFor(topic []byte, id int32) (*queue, error) {
	if q := s.last; q != nil && q.id == id && q.topic == string(topic) {
		return q, nil
	}
	s.mu.RLock()
	q := s.topics[string(topic)][id]
	s.mu.RUnlock()
	if q == nil {
		if err := checkTopic(topic); err != nil {
			return nil, err
		}
		q = s.addQueue(string(topic), id)
	}
	s.last = q
	return q, nil
}

func (s *Store) addQueue(topic string, id int32) *queue {
	q := &queue{topic: topic, id: id, dir: path.Join(s.dir, topic, strconv.Itoa(int(id)))}
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := s.topics[topic]
	if ids == nil {
		ids = make(map[int32]*queue)
		s.topics[topic] = ids
	}
	ids[id] = q
	return q
}

func (s *Store) dropQueue(q *queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.topics[q.topic], q.id)
	if len(s.topics[q.topic]) == 0 {
		delete(s.topics, q.topic)
	}
	if s.last == q {
		s.last = nil
	}
	s.extForget(q)
}

// all returns every queue, ordered by topic and id.
func (s *Store) all() []*queue {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []*queue
	for _, ids := range s.topics {
		for _, q := range ids {
			out = append(out, q)
		}
	}
	slices.SortFunc(out, func(a, b *queue) int {
		if a.topic != b.topic {
			if a.topic < b.topic {
				return -1
			}
			return 1
		}
		return int(a.id) - int(b.id)
	})
	return out
}

// Exists reports whether the queue has a file.
func (s *Store) Exists(topic string, queue int32) bool {
	q := s.lookup(topic, queue)
	return q != nil && q.count.Load() > 0 || s.Batch(topic, queue) != nil
}

// Max returns the queue's end: the offset of the unit that comes next. It is 0
// for a queue that does not exist.
func (s *Store) Max(topic string, queue int32) int64 {
	if q := s.lookup(topic, queue); q != nil {
		return q.end.Load()
	}
	if b := s.Batch(topic, queue); b != nil {
		_, to := b.Range()
		return to
	}
	return 0
}

// Min returns the offset of the queue's first live unit, or its end if there is
// none. It is 0 for a queue that does not exist.
func (s *Store) Min(topic string, queue int32) int64 {
	if q := s.lookup(topic, queue); q != nil {
		return min(q.min.Load(), q.end.Load())
	}
	if b := s.Batch(topic, queue); b != nil {
		from, _ := b.Range()
		return from
	}
	return 0
}

// MaxPhysical returns the largest end of a record over all queues, 0 if there
// is none: the boundary that a Java store derives from these files. Every
// record below it that belongs to a queue was applied if the lane that wrote
// the files was stopped in order.
func (s *Store) MaxPhysical() contract.Offset { return contract.Offset(s.maxPhy.Load()) }

// Topics returns the topics that have a queue with a file, sorted.
func (s *Store) Topics() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []string
	for topic, ids := range s.topics {
		for _, q := range ids {
			if q.count.Load() > 0 {
				out = append(out, topic)
				break
			}
		}
	}
	for _, q := range s.allBatches() {
		if q.q.count.Load() > 0 && !slices.Contains(out, q.q.topic) {
			out = append(out, q.q.topic)
		}
	}
	slices.Sort(out)
	return out
}

// Queues returns the ids of the topic's queues that have a file, sorted.
func (s *Store) Queues(topic string) []int32 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []int32
	for id, q := range s.topics[topic] {
		if q.count.Load() > 0 {
			out = append(out, id)
		}
	}
	for _, q := range s.allBatches() {
		if q.q.topic == topic && q.q.count.Load() > 0 {
			out = append(out, q.q.id)
		}
	}
	slices.Sort(out)
	return out
}

// Stats returns the counters.
func (s *Store) Stats() Stats {
	s.writer.Lock()
	defer s.writer.Unlock()
	return s.stats
}

// Close closes the open files. It does not flush: the lane's owner flushes
// before it saves the cursor, and what came later is replayed.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	errs := []error{s.files.close()}
	// An Open that failed may not have come to these.
	if s.ext != nil && s.ext.files != nil {
		errs = append(errs, s.ext.files.close())
	}
	if s.batches != nil && s.batches.files != nil {
		errs = append(errs, s.batches.files.close())
	}
	return errors.Join(errs...)
}

func (s *Store) checkWritable(op contract.Operation) error {
	if s.closed.Load() {
		return contract.NewError(contract.KindClosed, op, contract.ComponentQueue, "", nil)
	}
	if s.opts.ReadOnly {
		return contract.NewError(contract.KindUnsupported, op, contract.ComponentQueue,
			"the queues were opened for reading only", nil)
	}
	return nil
}

func (s *Store) raiseMaxPhy(end int64) {
	if end > s.maxPhy.Load() {
		s.maxPhy.Store(end)
	}
}

// TallyFor returns the tally of what lies below next: that of all units, if no
// record of theirs ends above it, or what it was at the last Flush, if that is so
// of the units then. Else it is -1. What a Flush left is told once: it is for the
// cursor that the lane had then, which may have to wait for the log.
func (s *Store) TallyFor(next contract.Offset) int64 {
	t := s.tallyFlushed(0, -1)
	if s.MaxPhysical() <= next {
		return s.tally()
	}
	if t.phy <= next {
		return t.tally
	}
	return -1
}

// tally is Tally, or a number that no files have if one is gone: the next owner is
// to rebuild them.
func (s *Store) tally() int64 {
	if s.incomplete.Load() {
		return s.Tally() + 1
	}
	return s.Tally()
}

// tallyFlushed replaces what Flush found, and returns what it was.
func (s *Store) tallyFlushed(phy contract.Offset, tally int64) tallied {
	s.tallyMu.Lock()
	defer s.tallyMu.Unlock()
	was := s.tallied
	s.tallied = tallied{phy, tally}
	return was
}

// Tally returns the sum of the queues' ends: how many units there would be if
// every queue began at 0. It does not depend on retention, so an owner who
// saves it notices when queues, or files of them, are gone.
func (s *Store) Tally() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sum := int64(0)
	for _, ids := range s.topics {
		for _, q := range ids {
			sum += q.end.Load()
		}
	}
	for _, q := range s.allBatches() {
		sum += q.to.Load()
	}
	return sum
}
