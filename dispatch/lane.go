package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// LaneState is what a lane is doing.
type LaneState uint8

// The states.
const (
	LaneIdle LaneState = iota // Not started.
	LaneRunning
	LanePaused
	LaneFailed // Waiting for the next try.
	LaneClosed
)

var laneStateNames = [...]string{"idle", "running", "paused", "failed", "closed"}

// String returns a lower-case word.
func (s LaneState) String() string {
	if int(s) < len(laneStateNames) {
		return laneStateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// LaneStatus is a lane's state at a moment.
type LaneStatus struct {
	Lane     contract.Lane
	Required bool
	State    LaneState
	// Applied is where readers of the lane may look up to.
	Applied contract.Cursor
	// Persisted is the cursor that was saved last, if HasPersisted.
	Persisted    contract.Cursor
	HasPersisted bool
	// LagBytes is how far Applied lies below what the log confirms.
	LagBytes int64
	// Err is why the lane failed; nil as soon as it goes on.
	Err error
	// Records and Duplicates count records applied, and records that lay
	// below the cursor. A record that is applied again counts again.
	Records    uint64
	Duplicates uint64
	// Failures counts failed turns, RollBacks the times that the log was cut
	// below the cursor, SkippedBytes what RetiredSkip left out.
	Failures     uint64
	RollBacks    uint64
	SkippedBytes int64
}

// lane is one sink with its cursor.
type lane struct {
	d      *Dispatcher
	sink   Sink
	id     contract.Lane
	opts   LaneOptions
	paused atomic.Bool
	wake   chan struct{} // There may be more of the log.
	urge   chan struct{} // Somebody asked for a try now.
	ended  chan struct{} // Closed when the goroutine ended; nil before Start.

	// armed is when the timer of run fires, 0 if it is not set.
	armed time.Duration

	// turn is held for a batch, a save, or a rebuild, and guards these.
	turn sync.Mutex
	// work is the next record to apply. It lies below the published cursor
	// only while effects are repeated after a failed Flush.
	work contract.Cursor
	// safe is the last cursor below which everything is durable in the sink
	// and that was saved, or where the lane started.
	safe contract.Cursor
	// flushed is a cursor that waits for the log to become durable.
	flushed    contract.Cursor
	hasFlushed bool
	savedAt    time.Duration // Time of the last save, successful or not.
	backoff    time.Duration
	view       codec.MessageView
	blank      codec.BlankView

	// mu guards status.
	mu     sync.Mutex
	status LaneStatus
}

func newLane(d *Dispatcher, sink Sink, opts LaneOptions) *lane {
	if opts.PersistEvery <= 0 {
		opts.PersistEvery = d.opts.PersistEvery
	}
	return &lane{
		d: d, sink: sink, id: sink.Lane(), opts: opts, wake: make(chan struct{}, 1), urge: make(chan struct{}, 1),
		savedAt: d.clock.Mono(),
		status:  LaneStatus{Lane: sink.Lane(), Required: opts.Required},
	}
}

// restart puts the lane at a cursor, forgetting what it knew.
func (l *lane) restart(at contract.Cursor) {
	l.work, l.safe, l.hasFlushed = at, at, false
	l.mu.Lock()
	l.status.Applied = at
	l.mu.Unlock()
}

func (l *lane) setPersisted(c contract.Cursor) {
	l.mu.Lock()
	l.status.Persisted, l.status.HasPersisted = c, true
	l.mu.Unlock()
}

func (l *lane) appliedNext() contract.Offset {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status.Applied.Next
}

func (l *lane) report() LaneStatus {
	confirmed := l.d.log.Confirmed()
	l.mu.Lock()
	s := l.status
	l.mu.Unlock()
	s.LagBytes = max(int64(confirmed-s.Applied.Next), 0)
	if l.paused.Load() && s.State != LaneClosed {
		s.State = LanePaused
	}
	return s
}

func (l *lane) setState(state LaneState) {
	l.mu.Lock()
	l.status.State = state
	l.mu.Unlock()
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// tally counts what a batch held.
type tally struct {
	records    uint64
	duplicates uint64
}

// step reads, applies and commits one batch, if there is one below target. The
// caller holds turn. It reports whether the cursor moved.
func (l *lane) step(target contract.Offset) (bool, error) {
	if err := l.followEpoch(); err != nil {
		return false, err
	}
	if l.work.Next >= min(target, l.d.log.Confirmed()) {
		return false, nil
	}
	if moved, err := l.followMin(); moved || err != nil {
		return moved, err
	}
	sel, err := l.d.log.ReadFrom(l.work.Next, l.d.opts.BatchBytes)
	if err != nil {
		return false, l.fail(l.work.Next, err)
	}
	if sel == nil {
		return l.followMin() // Not there yet, or retired since.
	}
	next, n, err := l.apply(sel.Bytes())
	sel.Release()
	if err != nil {
		return false, err
	}
	if err := l.sink.Commit(); err != nil {
		return false, l.fail(l.work.Next, err)
	}
	l.advance(next, n)
	return true, nil
}

func (l *lane) fail(at contract.Offset, cause error) error {
	return &LaneError{Lane: l.id, At: at, Cause: cause}
}

// advance publishes the cursor after its effects.
func (l *lane) advance(next contract.Cursor, n tally) {
	l.work = next
	l.mu.Lock()
	if next.Epoch != l.status.Applied.Epoch || next.Next > l.status.Applied.Next {
		l.status.Applied = next
	}
	l.status.Records += n.records
	l.status.Duplicates += n.duplicates
	l.mu.Unlock()
	l.moved()
}

// moved wakes those who wait for the frontier, if it depends on the lane.
func (l *lane) moved() {
	if l.opts.Required {
		l.d.moved()
	}
}

// apply hands the records of b to the sink and returns the cursor behind them.
func (l *lane) apply(b []byte) (contract.Cursor, tally, error) {
	cursor, n := l.work, tally{}
	place := cursor.Next
	// Read after the bytes: if the log was cut in between, the records are of
	// an epoch that the cursor is not of, and Prepare says so.
	table := l.d.log.Epochs()
	if len(table) == 0 {
		return cursor, n, l.fail(place, contract.ErrCursorEpoch)
	}
	epoch := table[len(table)-1].Epoch
	for len(b) > 0 {
		id, blank, err := l.parse(b, epoch, place)
		if err != nil {
			return cursor, n, l.fail(place, err)
		}
		move, err := cursor.Prepare(id)
		if err != nil {
			return cursor, n, l.fail(place, err)
		}
		if id.Offset != place {
			return cursor, n, l.fail(place, ErrMisplaced)
		}
		switch {
		case move.Done:
			n.duplicates++
		case !blank:
			if err := l.sink.Apply(id, &l.view); err != nil {
				return cursor, n, l.fail(place, err)
			}
			n.records++
		}
		cursor = move.Next
		place += contract.Offset(id.Length)
		if blank {
			break
		}
		b = b[id.Length:]
	}
	return cursor, n, nil
}

// parse reads the record at the front of b into view, or an end-of-segment
// mark, of which only the header is in b.
func (l *lane) parse(b []byte, epoch contract.Epoch, place contract.Offset) (
	id contract.RecordID, blank bool, err error,
) {
	_, magic, ok := codec.PeekMessage(b)
	if !ok {
		return id, false, ErrPartRecord
	}
	if magic == codec.BlankMagic {
		if len(b) > codec.BlankSize {
			return id, true, ErrBlank
		}
		if err := l.blank.Parse(b); err != nil {
			return id, true, err
		}
		return contract.RecordID{Epoch: epoch, Offset: place, Length: int64(l.blank.Size())}, true, nil
	}
	if err := l.view.Parse(b); err != nil {
		return id, false, err
	}
	return contract.RecordID{
		Epoch:  epoch,
		Offset: contract.Offset(l.view.PhysicalOffset()),
		Length: int64(l.view.TotalSize()),
	}, false, nil
}

// followMin handles a cursor below the log's first record.
func (l *lane) followMin() (bool, error) {
	first := l.d.log.MinOffset()
	if l.work.Next >= first {
		return false, nil
	}
	if l.opts.OnRetired == RetiredFail {
		return false, &RetiredError{Lane: l.id, Next: l.work.Next, Min: first}
	}
	skipped := int64(first - l.work.Next)
	next := l.work
	next.Next = first
	l.advance(next, tally{})
	l.mu.Lock()
	l.status.SkippedBytes += skipped
	l.mu.Unlock()
	return true, nil
}

// followEpoch brings the cursors to the log's current epoch, and rolls the lane
// back if the log was cut below it.
func (l *lane) followEpoch() error {
	table := l.d.log.Epochs()
	if len(table) == 0 {
		return l.fail(l.work.Next, contract.ErrCursorEpoch)
	}
	if table[len(table)-1].Epoch == l.work.Epoch {
		return nil
	}
	// The furthest effects decide, not the cursor: it may be repeating some.
	reach := l.work
	l.mu.Lock()
	if l.status.Applied.Next > reach.Next {
		reach = l.status.Applied
	}
	l.mu.Unlock()
	_, err := contract.ResolveCursor(reach, table)
	var cut *contract.RollBackError
	if errors.As(err, &cut) {
		return l.rollBack(cut.To, table)
	}
	if err != nil {
		return l.fail(l.work.Next, err)
	}
	last := table[len(table)-1].Epoch
	l.work.Epoch, l.safe.Epoch, l.flushed.Epoch = last, last, last
	l.mu.Lock()
	l.status.Applied.Epoch = last
	l.mu.Unlock()
	return nil
}

func (l *lane) rollBack(to contract.Offset, table []contract.EpochStart) error {
	if back, ok := l.sink.(RollBacker); ok {
		if err := back.RollBack(to); err != nil {
			return l.fail(to, err)
		}
	}
	last := table[len(table)-1].Epoch
	safe := min(l.safe.Next, to)
	l.work = contract.Cursor{Lane: l.id, Epoch: last, Next: min(l.work.Next, to)}
	l.safe = contract.Cursor{Lane: l.id, Epoch: last, Next: safe}
	l.hasFlushed = false
	l.mu.Lock()
	l.status.Applied = contract.Cursor{Lane: l.id, Epoch: last, Next: to}
	l.status.RollBacks++
	l.mu.Unlock()
	l.moved()
	return nil
}

// persist saves the cursor if that is allowed: the sink has flushed everything
// below it, and the log holds everything below it durably. The caller holds
// turn.
func (l *lane) persist() error {
	l.savedAt = l.d.clock.Mono()
	if err := l.followEpoch(); err != nil {
		return err
	}
	if err := l.saveFlushed(); err != nil {
		return err
	}
	// While a flushed cursor waits for the log, the next flush would only
	// put it off.
	if l.hasFlushed || l.work == l.safe {
		return nil
	}
	if err := l.sink.Flush(); err != nil {
		at := l.work.Next
		l.work = l.safe
		return l.fail(at, err)
	}
	l.flushed, l.hasFlushed = l.work, true
	return l.saveFlushed()
}

func (l *lane) saveFlushed() error {
	if !l.hasFlushed || l.flushed.Next > l.d.log.Durable() {
		return nil
	}
	if err := l.d.cursors.SaveCursor(l.flushed); err != nil {
		return l.fail(l.flushed.Next, err)
	}
	l.safe, l.hasFlushed = l.flushed, false
	l.setPersisted(l.safe)
	return nil
}

// unsaved reports whether there is something that a save could still save.
func (l *lane) unsaved() bool { return l.hasFlushed || l.work != l.safe }

// persistIfDue saves if the last save was long ago.
func (l *lane) persistIfDue() error {
	if l.unsaved() && l.d.clock.Mono()-l.savedAt >= l.opts.PersistEvery {
		return l.persist()
	}
	return nil
}

// catchUp runs the lane to target, with far also if that is beyond LagMax.
func (l *lane) catchUp(ctx context.Context, target contract.Offset, far bool, progress func(contract.Offset)) CatchUpReport {
	l.turn.Lock()
	defer l.turn.Unlock()
	before := l.report()
	r := CatchUpReport{Lane: l.id, From: l.work.Next}
	began := l.d.clock.Mono()
	if l.paused.Load() {
		if l.work.Next < target {
			r.Err = l.fail(l.work.Next, errors.Join(ErrBehind, ErrPaused))
		}
	} else {
		r.Err = l.drain(ctx, target, far, progress)
	}
	after := l.report()
	r.To, r.Took = after.Applied.Next, l.d.clock.Mono()-began
	r.Records = after.Records - before.Records
	r.Duplicates = after.Duplicates - before.Duplicates
	return r
}

// drain takes steps until the lane is at target. The caller holds turn.
func (l *lane) drain(ctx context.Context, target contract.Offset, far bool, progress func(contract.Offset)) error {
	if !far && l.opts.LagMax > 0 && int64(target-l.work.Next) > l.opts.LagMax {
		return l.fail(l.work.Next, ErrBehind)
	}
	for {
		if ctx.Err() != nil {
			return l.fail(l.work.Next, context.Cause(ctx))
		}
		moved, err := l.step(target)
		if err == nil {
			err = l.persistIfDue()
		}
		l.noteTurn(err)
		if err != nil {
			return err
		}
		if !moved {
			if l.work.Next < min(target, l.d.log.Confirmed()) {
				return l.fail(l.work.Next, ErrBehind)
			}
			return nil
		}
		if progress != nil {
			progress(l.work.Next)
		}
	}
}

// noteTurn keeps the outcome of a turn for the status.
func (l *lane) noteTurn(err error) {
	l.mu.Lock()
	l.status.Err = err
	if err != nil {
		l.status.Failures++
	}
	l.mu.Unlock()
}
