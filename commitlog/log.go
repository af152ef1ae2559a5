package commitlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/clock"
	"github.com/stratalog/stratalog/internal/task"
	"github.com/stratalog/stratalog/mmap"
)

// Log is the primary log, opened for writing by its one owner. Its methods are
// safe for concurrent use.
//
// # Locks
//
// In order of taking: shapeMu, commitMu, writeMu, mu, then pendMu or doneMu
// (leaves).
//
//	shapeMu   who makes, cuts or retires segments, and who uses spares
//	commitMu  one commit in flight: held over the sync
//	writeMu   one writer of staged bytes: held over the pwrite, never the sync
//	mu        the order of records: queue offset, room, place, late fields
//	pendMu    appends whose bytes are written and that wait for a sync
//	doneMu    completions to run, in log order
type Log struct {
	reader
	opt    Options
	clk    clock.Clock
	side   *sidecar
	spares *mmap.Spares
	report RecoveryReport
	mapped bool
	empty  string // the empty last segment file that was found, if any

	shapeMu sync.Mutex
	guards  []guard // oldest first; under shapeMu

	commitMu sync.Mutex
	// expected is how many Sync appends the next commit may find: those that
	// the last one answered and those that came meanwhile. Under commitMu.
	expected int

	writeMu sync.Mutex
	// idle is the batch that is not being filled; under writeMu.
	idle *batch

	mu      sync.Mutex
	room    sync.Cond // signalled when admission may have room; on mu
	waiting int       // appends waiting on room; under mu
	started bool
	closed  bool
	ended   bool // Close was called
	inline  bool // tests without tasks: an Append commits for itself
	frozen  bool // appends wait
	// tail is the next place; active the segment that holds it, nil when a
	// roll has to come first.
	tail   int64
	active *segment
	// next is ready under its name for the next roll; nextAsked tells that it
	// was asked for, nextErr why it could not be made.
	next      *segment
	nextAsked bool
	nextErr   error
	// unreserved tells that the active segment's space could not be reserved.
	unreserved    bool
	lastStoreTime int64
	filling       *batch
	queues        *queueTable
	zero          zeroing
	// dueAt is when what is unsynced must be synced, 0 for never.
	dueAt time.Duration

	// fence holds the cause since the first failed write or sync.
	fence  atomic.Pointer[fenceCause]
	fences atomic.Int64
	// inFlight and inFlightSize count what was admitted and not yet answered.
	inFlight     atomic.Int64
	inFlightSize atomic.Int64
	// syncWanted counts Sync appends staged or pending.
	syncWanted atomic.Int64
	kicked     atomic.Bool
	kick       chan struct{}
	makeNext   chan struct{}
	rolled     chan struct{}

	pendMu sync.Mutex
	pend   []waiter // ascending end; those below pendAt are answered
	pendAt int

	blank [codec.BlankSize]byte // under mu

	doneMu   sync.Mutex
	done     []answer
	doneIdle []answer
	draining bool

	counts counters
}

// fenceCause wraps the error for an atomic pointer.
type fenceCause struct{ err error }

// counters are totals since the log was opened.
type counters struct {
	records, bytes, writes, syncs, rolls, commits, restored atomic.Int64
}

// Stats is a snapshot of totals since the log was opened.
type Stats struct {
	Records int64 // appended
	Bytes   int64 // appended, without end-of-segment marks
	Writes  int64 // pwrite calls for log bytes
	Syncs   int64 // sync calls for log bytes
	Commits int64 // group commits that had something to sync
	Rolls   int64 // segments begun
	// Restored counts segments that another program had deleted and that got
	// their names back.
	Restored int64
	// Unanswered is the number of appends admitted and not yet answered.
	Unanswered int64
}

// Open loads the log in opt.Dir, makes it if there is none, and recovers it.
// Nothing runs in the background, and appends are refused, until Start. A
// failed Open leaves every file as it was found, unless the failure came while
// recovery was writing.
func Open(ctx context.Context, opt Options) (*Log, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	l := newLog(opt)
	if err := l.load(ctx); err != nil {
		return nil, errors.Join(err, l.abandon())
	}
	return l, nil
}

// newLog returns a log that is not loaded.
func newLog(opt Options) *Log {
	opt = opt.withDefaults()
	if opt.Catalog == nil {
		opt.Catalog = NewDirCatalog(opt.FS, path.Join(opt.Dir, "commitlog"))
	}
	l := &Log{opt: opt, clk: opt.Clock, mapped: opt.WritePath == WriteMmap,
		zero: newZeroing(opt.zeroing), kick: make(chan struct{}, 1), makeNext: make(chan struct{}, 1), rolled: make(chan struct{}, 1),
		filling: &batch{}, idle: &batch{}, queues: newQueueTable()}
	l.room.L = &l.mu
	l.reader.init(opt)
	return l
}

// abandon gives back what a failed load holds.
func (l *Log) abandon() error {
	if list := l.segs.Load(); list != nil {
		list.close()
	}
	if l.side != nil {
		return l.side.close()
	}
	return nil
}

// maxRecord is the largest record, or batch of records, that is admitted.
func (l *Log) maxRecord() int64 {
	return min(int64(l.opt.MaxMessageSize)+64<<10, l.size-codec.BlankSize)
}

// window is the most that is ever appended beyond durable: what recovery needs
// to know to tell a torn tail from damage.
func (l *Log) window() int64 { return max(l.opt.MaxUnsynced, 2*(l.maxRecord()+codec.BlankSize)) }

// Start begins background work under owner: commits, and the making of
// segments ahead of need.
func (l *Log) Start(owner *task.Group) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return contract.NewError(contract.KindClosed, contract.OpStart, contract.ComponentLog, "", nil)
	}
	if l.started {
		return contract.NewError(contract.KindInvalid, contract.OpStart, contract.ComponentLog, "started already", nil)
	}
	l.started = true
	for name, f := range map[string]func(context.Context){
		"commitlog-commit": l.commitLoop, "commitlog-segments": l.segmentLoop, "commitlog-bound": l.boundLoop, "commitlog-expire": l.expireLoop,
		"commitlog-zero": l.zeroLoop} {
		if err := owner.Go(name, f); err != nil {
			return contract.NewError(contract.KindClosed, contract.OpStart, contract.ComponentLog, "", err)
		}
	}
	if l.active == nil || l.unreserved || l.tail-l.active.base >= l.size/nextAt {
		l.wantNext()
	}
	return nil
}

// Drain stops the admission of appends, then commits what was admitted. After
// it every append has its answer.
func (l *Log) Drain(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	l.room.Broadcast()
	l.mu.Unlock()
	if err := lockWithin(ctx, &l.commitMu); err != nil {
		return contract.NewError(contract.KindTimeout, contract.OpClose, contract.ComponentLog, "a commit is still running", err)
	}
	defer l.commitMu.Unlock()
	return l.commit(false)
}

// lockWithin takes mu, or gives up when ctx ends.
func lockWithin(ctx context.Context, mu *sync.Mutex) error {
	if mu.TryLock() {
		return nil
	}
	// The goroutine ends as soon as the holder lets go; until then the mutex
	// is busy anyhow.
	got := make(chan struct{})
	var once sync.Once
	abandoned := false
	go func() {
		mu.Lock()
		once.Do(func() { close(got) })
		if abandoned {
			mu.Unlock()
		}
	}()
	select {
	case <-got:
		return nil
	case <-ctx.Done():
		timedOut := false
		once.Do(func() { abandoned, timedOut = true, true })
		if timedOut {
			return ctx.Err()
		}
		return nil
	}
}

// Close ends the log. Drain comes first, and background work must have ended.
// clean says that everything derived is complete too; only then is the log
// marked as closed well. The result names what could not be done; a second
// call does nothing.
func (l *Log) Close(clean bool) error {
	l.mu.Lock()
	ended := l.ended
	l.closed, l.ended = true, true
	l.room.Broadcast()
	l.mu.Unlock()
	if ended {
		return nil
	}
	err := l.fenceErr()
	if err == nil && l.Durable() < l.Appended() {
		err = contract.NewError(contract.KindIO, contract.OpClose, contract.ComponentLog,
			fmt.Sprintf("%d bytes are not synced", l.Appended()-l.Durable()), nil)
	}
	if names := typed(contract.OpClose, contract.ComponentSegment, l.keepNames(everyName)); err == nil {
		err = names
	}
	if err == nil && clean {
		err = typed(contract.OpClose, contract.ComponentSidecar, l.markClean())
	}
	if err == nil {
		err = typed(contract.OpClose, contract.ComponentSegment, l.returnNext())
	}
	if err == nil && clean {
		err = typed(contract.OpClose, contract.ComponentSegment, l.dropGuards(math.MaxInt64))
	}
	if l.next != nil {
		l.next.file.Close(nil)
	}
	l.segs.Load().close()
	return errors.Join(err, l.side.close())
}

// Report tells what the last recovery found and did.
func (l *Log) Report() RecoveryReport { return l.report }

// Stats returns totals since the log was opened.
func (l *Log) Stats() Stats {
	return Stats{Records: l.counts.records.Load(), Bytes: l.counts.bytes.Load(), Writes: l.counts.writes.Load(),
		Syncs: l.counts.syncs.Load(), Commits: l.counts.commits.Load(), Rolls: l.counts.rolls.Load(), Restored: l.counts.restored.Load(),
		Unanswered: l.inFlight.Load()}
}

// WritePath returns the path in use.
func (l *Log) WritePath() WritePath { return l.opt.WritePath }

// SegmentSize returns the length of a segment in bytes.
func (l *Log) SegmentSize() int64 { return l.size }

// Fenced returns the cause of the fence, nil when there is none.
func (l *Log) Fenced() error { return l.fenceErr() }

func (l *Log) fenceErr() error {
	if f := l.fence.Load(); f != nil {
		return f.err
	}
	return nil
}

// Epochs returns the epoch table, ascending.
func (l *Log) Epochs() []contract.EpochStart { return l.side.epochs() }

// LoadCursor returns the persisted cursor of a lane; false if there is none.
func (l *Log) LoadCursor(lane contract.Lane) (contract.Cursor, bool, error) {
	return l.side.LoadCursor(lane)
}

// SaveCursor makes a lane's cursor durable, and with it what the lane's own state
// counts there (-1 if it does not), so that an owner notices when that state was
// lost.
func (l *Log) SaveCursor(c contract.Cursor, tally int64) error {
	return l.side.SaveCursor(c, tally)
}

// CursorTally returns what was saved with the cursor of a lane, -1 if nothing
// was.
func (l *Log) CursorTally(lane contract.Lane) int64 { return l.side.tally(lane) }

// ID returns the log's identity.
func (l *Log) ID() [16]byte { return l.side.state.LogID }

// syncDirs makes the names in every segment directory and in extra durable.
func (l *Log) syncDirs(extra ...string) error {
	if l.opt.broken == brokenNoDirSync {
		return nil
	}
	dirs := l.opt.Catalog.Dirs()
	for _, dir := range append(dirs[:len(dirs):len(dirs)], extra...) {
		if err := l.opt.FS.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}
