package commitlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/mmap"
)

// Recover lifts the fence after a failed write or sync. Everything in
// [durable, appended) is written again from memory, record by record as far as
// the records are whole, or cut (which starts a new epoch); then it is synced
// through fresh descriptors, and only that sync lifts the fence. On a log that
// is not fenced it only lets the sidecar write again, if that had failed.
func (l *Log) Recover(ctx context.Context, source OffsetSource) (RecoveryReport, error) {
	l.shapeMu.Lock()
	defer l.shapeMu.Unlock()
	if err := lockWithin(ctx, &l.commitMu); err != nil {
		return l.report, stillCommitting(contract.OpRecover, err)
	}
	defer l.commitMu.Unlock()
	l.writeMu.Lock()
	defer l.writeMu.Unlock()
	cause := l.fenceErr()
	if cause == nil {
		return l.report, l.side.heal()
	}
	began := l.clk.Mono()
	l.report = RecoveryReport{Start: "fenced", Tail: "nothing behind", CutCause: cause}
	err := l.keepNames(everyName)
	if err == nil {
		err = l.dropGuards(math.MaxInt64)
	}
	if err != nil {
		return l.report, typed(contract.OpRecover, contract.ComponentSegment, err)
	}
	from := l.durable.Load()
	list := l.segs.Load()
	for _, seg := range list.overlapping(from, max(l.tail, from+1)) {
		if err := seg.file.ReplaceHandle(l.opt.FS); err != nil {
			return l.report, typed(contract.OpRecover, contract.ComponentSegment, err)
		}
	}
	if err := l.side.reopen(); err != nil {
		return l.report, typed(contract.OpRecover, contract.ComponentSidecar, err)
	}
	s := newScanner(list, *l.ranges.Load(), from, l.appended.Load())
	for s.Next() {
		l.report.Records++
	}
	end := s.off
	l.report.ScannedFrom, l.report.End = contract.Offset(from), contract.Offset(end)
	l.mu.Lock()
	placed := l.tail
	l.mu.Unlock()
	if end < placed {
		l.report.Tail = "cut"
		if err := l.side.newEpoch(end); err != nil {
			return l.report, err
		}
		l.report.NewEpoch = true
	}
	err = l.returnNext()
	if err == nil {
		// Should the cut's own sync fail, the next recovery zeroes as far again.
		err = l.side.putBound(from, max(placed, l.appended.Load()), l.window())
	}
	if err == nil {
		err = l.side.syncBound()
	}
	var rest remains
	if err == nil {
		rest, err = survey(list, end)
	}
	if err == nil {
		err = l.cutTail(ctx, end, placed, rest)
	}
	if err == nil {
		err = l.syncNames() // a cut that failed before may have come as far as its sync
	}
	if err == nil {
		err = l.rewriteTail(from, from, end)
	}
	if err != nil {
		return l.report, typed(contract.OpRecover, contract.ComponentSegment, err)
	}
	if err := l.resume(ctx, end, source); err != nil {
		return l.report, err
	}
	l.report.Took = l.clk.Mono() - began
	return l.report, nil
}

// stillCommitting is the error of a call whose context ended before it could
// begin.
func stillCommitting(op contract.Operation, cause error) error {
	return contract.NewError(contract.KindTimeout, op, contract.ComponentLog, "a commit is still running", cause)
}

// resume lets appends go on at end after bytes behind it were cut. Under
// shapeMu, commitMu and writeMu.
func (l *Log) resume(ctx context.Context, end int64, source OffsetSource) error {
	l.mu.Lock()
	l.filling = &batch{}
	lastStoreTime := l.lastStoreTime
	l.mu.Unlock()
	if err := l.enter(ctx, end, lastStoreTime); err != nil {
		return err
	}
	if err := l.LoadQueueOffsets(source); err != nil {
		return err
	}
	l.mu.Lock()
	l.fence.Store(nil)
	if l.active == nil || l.unreserved {
		l.wantNext()
	}
	l.room.Broadcast()
	l.mu.Unlock()
	return nil
}

// TruncateTo cuts the log at off, durably: off must be where a record starts or
// the log ends. The bytes behind it are zeroed from the back, so that a crash on
// the way leaves a whole shorter log. A new epoch starts at off. Appends wait
// meanwhile; those that were not answered are synced first.
func (l *Log) TruncateTo(ctx context.Context, off contract.Offset, source OffsetSource) error {
	// Completions run when no lock is held: they may append.
	defer l.runDone()
	l.shapeMu.Lock()
	defer l.shapeMu.Unlock()
	if err := lockWithin(ctx, &l.commitMu); err != nil {
		return stillCommitting(contract.OpTruncate, err)
	}
	defer l.commitMu.Unlock()
	if err := l.commit(false); err != nil {
		return err
	}
	l.writeMu.Lock()
	defer l.writeMu.Unlock()
	l.freeze(true)
	defer l.freeze(false)
	if err := l.flushLocked(); err != nil {
		return err
	}
	if err := l.syncTo(l.appended.Load()); err != nil {
		l.raiseFence(err, nil)
		return l.fenceErr()
	}
	l.settle(l.durable.Load())
	at := int64(off)
	if err := l.checkBoundary(at); err != nil {
		return err
	}
	if at == l.tail {
		return nil
	}
	// The next segment goes before the one that it follows.
	err := l.keepNames(everyName)
	if err == nil {
		err = l.returnNext()
	}
	if err == nil {
		err = l.dropGuards(math.MaxInt64)
	}
	if err != nil {
		return typed(contract.OpTruncate, contract.ComponentSegment, err)
	}
	if err := l.side.newEpoch(at); err != nil {
		return err
	}
	// The bound goes down first: a crash then finds a tail, not damage.
	err = l.side.putBound(at, l.appended.Load(), l.window())
	if err == nil {
		err = l.side.syncBound()
	}
	if err == nil {
		l.lower(at)
		if err = l.dropFrom(ctx, at); err == nil {
			err = l.resume(ctx, at, source)
		}
	}
	if err != nil {
		// Whether the bytes are gone is not known: Recover decides.
		l.raiseFence(err, nil)
		return typed(contract.OpTruncate, contract.ComponentSegment, err)
	}
	return nil
}

// freeze makes appends wait, or lets them go on.
func (l *Log) freeze(on bool) {
	l.mu.Lock()
	l.frozen = on
	l.room.Broadcast()
	l.mu.Unlock()
}

// checkBoundary makes sure that a record starts, or the log ends, at off.
func (l *Log) checkBoundary(off int64) error {
	list := l.segs.Load()
	if off < list.min() || off > l.tail {
		return contract.NewError(contract.KindInvalid, contract.OpTruncate, contract.ComponentLog,
			fmt.Sprintf("%d lies outside the log, %v", off, contract.Range{Start: contract.Offset(list.min()), End: contract.Offset(l.tail)}), nil)
	}
	seg := list.find(off)
	if off == l.tail || off == list.min() || seg != nil && off == seg.base {
		return nil
	}
	var v codec.MessageView
	kind, _, err := examine(&v, seg.file.Bytes()[off-seg.base:], off, l.ranges.Load().contains(off))
	if kind == placeRecord {
		return nil
	}
	return contract.NewError(contract.KindInvalid, contract.OpTruncate, contract.ComponentLog,
		fmt.Sprintf("no record starts at %d", off), err)
}

// RecordStartsAt reports whether a whole record of the log, or nothing because
// the log ends, stands at off.
func (l *Log) RecordStartsAt(off contract.Offset) bool { return l.checkBoundary(int64(off)) == nil }

// dropFrom zeroes what lies behind at, from the back, and removes the segments
// that begin there.
func (l *Log) dropFrom(ctx context.Context, at int64) error {
	list := l.segs.Load()
	n := len(list.segs)
	for ; n > 0 && list.segs[n-1].base >= at && n > 1; n-- {
		seg := list.segs[n-1]
		if err := l.opt.FS.Remove(seg.file.Path()); err != nil {
			return err
		}
		l.dropLast()
		if err := l.syncDirs(); err != nil {
			return err
		}
	}
	last := list.segs[n-1]
	from := max(at, last.base)
	rest, err := survey(l.segs.Load(), from)
	if err != nil {
		return err
	}
	end := last.base + rest.of(last).end
	for end > from {
		// No larger than the window: what a power cut leaves of a piece must
		// still look like a tail.
		piece := min(end-from, rewritePiece, l.window())
		if err := mmap.Zero(ctx, last.file.Handle(), end-piece-last.base, piece); err != nil {
			return err
		}
		end -= piece
	}
	return nil
}

// dropLast takes the last segment, whose file has left the directory, out of
// the list.
func (l *Log) dropLast() {
	list := l.segs.Load()
	n := len(list.segs) - 1
	l.segs.Store(&segmentList{size: list.size, segs: list.segs[:n:n]})
	list.segs[n].file.Close(nil)
}

// Retire removes the segments that lie wholly below off, oldest first, never
// the active one. A segment with live leases keeps its bytes until they are
// released; its name goes at once. It returns the log's new start.
func (l *Log) Retire(off contract.Offset) (contract.Offset, error) {
	defer l.runDone() // with no lock held
	l.shapeMu.Lock()
	defer l.shapeMu.Unlock()
	if err := l.fenceErr(); err != nil {
		return l.MinOffset(), err
	}
	list := l.segs.Load()
	if len(list.segs) < 2 || list.segs[0].end() > int64(off) {
		return l.MinOffset(), nil
	}
	if err := l.keepNames(everyName); err != nil {
		return l.MinOffset(), typed(contract.OpAdmin, contract.ComponentSegment, err)
	}
	// The bound on disk must not lie below the first segment that is left.
	bound, err := l.side.durableBound()
	if err != nil {
		err = contract.NewError(contract.KindIO, contract.OpAdmin, contract.ComponentSidecar, "retire", err)
		l.raiseFence(err, nil)
		return l.MinOffset(), err
	}
	for _, seg := range list.segs[:len(list.segs)-1] {
		if seg.end() > min(int64(off), bound) {
			break
		}
		// One after the other, each durably: a power cut must not leave a gap.
		err := l.dropGuards(seg.end())
		if err == nil {
			err = l.opt.FS.Remove(seg.file.Path())
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // an earlier call came as far as this
		}
		if err == nil {
			err = l.syncDirs()
		}
		if err != nil {
			return l.MinOffset(), contract.NewError(contract.KindIO, contract.OpAdmin, contract.ComponentSegment, "retire", err)
		}
		l.mu.Lock()
		l.segs.Store(l.segs.Load().withoutFirst())
		l.mu.Unlock()
		seg.file.Close(nil)
	}
	return l.MinOffset(), nil
}
