package commitlog

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/stratalog/stratalog/contract"
)

// # How an append becomes durable
//
// assign (under mu) puts the bytes of a record into the batch being filled.
// flush (under writeMu) takes the whole batch and writes it, one pwrite for
// each segment it touches, then publishes appended. commit (under commitMu)
// flushes, syncs what is appended, publishes durable, and answers.
//
// The simple way, one lock over all three, would stop every producer for the
// length of a sync. Here appends go on into the next batch while a sync runs,
// and Memory appends flush for themselves, so that they never wait for one.
//
// One commit is in flight at a time: the batches of two would share the 4 KiB
// block at their edge, which serialises their syncs anyway, and closed-loop
// producers would settle into two half-size cohorts. Instead the committer
// waits a moment for the producers that it woke last (gather).

// stagedMax is how much memory an idle batch keeps.
const stagedMax = 4 << 20

// batch is what was placed and not yet written.
type batch struct {
	// buf holds the bytes of all extents (pwrite path only).
	buf     []byte
	extents []extent
	// end is the log's tail behind the batch.
	end     int64
	waiters []waiter
}

// extent is the part of a batch that lies in one segment.
type extent struct {
	seg  *segment
	off  int64 // in the segment
	size int   // of buf
}

// stage puts b at the log's place off in seg into the batch being filled.
// Under mu.
func (l *Log) stage(seg *segment, off int64, b []byte) {
	f := l.filling
	f.end = off + int64(len(b))
	if l.mapped {
		seg.file.WriteMapped(b, off-seg.base)
		return
	}
	rel := off - seg.base
	if n := len(f.extents); n > 0 {
		if last := &f.extents[n-1]; last.seg == seg && last.off+int64(last.size) == rel {
			last.size += len(b)
			f.buf = append(f.buf, b...)
			return
		}
	}
	f.extents = append(f.extents, extent{seg: seg, off: rel, size: len(b)})
	f.buf = append(f.buf, b...)
}

// flush writes what is staged and publishes it. It returns the cause of the
// fence if the log is fenced.
func (l *Log) flush() error {
	err := func() error {
		l.writeMu.Lock()
		defer l.writeMu.Unlock()
		return l.flushLocked()
	}()
	l.runDone()
	return err
}

func (l *Log) flushLocked() error {
	l.mu.Lock()
	b := l.filling
	if b.end <= l.appended.Load() && len(b.waiters) == 0 {
		l.mu.Unlock()
		return l.fenceErr()
	}
	l.filling, l.idle = l.idle, b
	l.mu.Unlock()
	if l.opt.broken == brokenAckBeforeWrite {
		l.advanceAppended(b.end)
		l.routeWaiters(b)
		l.runDone()
	}
	pos := 0
	for i := range b.extents {
		e := &b.extents[i]
		if i == len(b.extents)-1 {
			b.pad(e)
		}
		l.counts.writes.Add(1)
		if _, err := e.seg.file.Handle().WriteAt(b.buf[pos:pos+e.size], e.off); err != nil {
			err = contract.NewError(contract.KindIO, contract.OpAppend, contract.ComponentSegment,
				fmt.Sprintf("write %d bytes at %d of %s", e.size, e.off, e.seg.file.Path()), err)
			l.raiseFence(err, b.waiters)
			b.reset()
			return l.fenceErr()
		}
		pos += e.size
	}
	l.advanceAppended(b.end)
	l.routeWaiters(b)
	b.reset()
	return l.fenceErr()
}

// pad fills up the last extent with zeros to a whole block: what lies there is
// zero already, and the kernel need not read the block from the disk to write a
// part of it.
func (b *batch) pad(e *extent) {
	end := e.off + int64(e.size)
	if rest := end % blockSize; rest != 0 {
		n := int(min(blockSize-rest, e.seg.file.Size()-end))
		b.buf = append(b.buf, zeroBlock[:n]...)
		e.size += n
	}
}

// blockSize is the unit in which file systems read and write.
const blockSize = 4096

func (b *batch) reset() {
	clear(b.waiters)
	clear(b.extents)
	b.waiters, b.extents, b.buf = b.waiters[:0], b.extents[:0], b.buf[:0]
	b.end = 0 // a stale end would move appended after a truncation
	if cap(b.buf) > stagedMax {
		b.buf = nil
	}
}

// advanceAppended publishes a new appended watermark.
func (l *Log) advanceAppended(end int64) {
	for {
		now := l.appended.Load()
		if end <= now || l.appended.CompareAndSwap(now, end) {
			break
		}
	}
	if l.opt.Visibility == contract.VisibilityAppended {
		l.publish()
	}
}

// routeWaiters sends the waiters of a written batch on: those of Sync appends
// wait for durable, the others are answered.
func (l *Log) routeWaiters(b *batch) {
	for i := range b.waiters {
		w := &b.waiters[i]
		if w.sync && l.opt.broken != brokenAckBeforeSync {
			l.pendMu.Lock()
			l.pend = append(l.pend, *w)
			l.pendMu.Unlock()
			continue
		}
		l.answer(w, contract.StatusPutOk, 0, nil)
	}
	if l.fence.Load() != nil {
		// The fence came up while this batch was written: nobody will sync it.
		l.failPending()
	}
	clear(b.waiters)
	b.waiters = b.waiters[:0]
}

// kickCommit makes sure that the commit loop runs once more.
func (l *Log) kickCommit() {
	if l.kicked.CompareAndSwap(false, true) {
		select {
		case l.kick <- struct{}{}:
		default:
		}
	}
}

// commitLoop commits when it is kicked and when a background sync is due.
func (l *Log) commitLoop(ctx context.Context) {
	timer := l.clk.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.kick:
		case <-timer.C():
		}
		l.kicked.Store(false)
		wait := l.commitWanted()
		if wait == 0 {
			l.commitOnce()
			wait = l.commitWanted()
		}
		if l.syncWanted.Load() > 0 && l.fenceErr() == nil {
			l.kickCommit()
		}
		timer.Reset(max(wait, time.Microsecond))
	}
}

// commitOnce commits for the loop. A panic must not leave the lock held.
func (l *Log) commitOnce() {
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	// The error went to the waiters and into the fence.
	_ = l.commit(true)
}

// commitWanted returns how long until a commit is needed; 0 means now.
func (l *Log) commitWanted() time.Duration {
	if l.fenceErr() != nil {
		return time.Hour
	}
	if l.syncWanted.Load() > 0 {
		return 0
	}
	l.mu.Lock()
	due := l.dueAt
	l.mu.Unlock()
	if due == 0 {
		return time.Hour
	}
	return max(0, due-l.clk.Mono())
}

// gather waits a moment for the producers that are on their way: those that the
// last commit woke, so that one sync serves them and those that have come
// meanwhile. It gives up when nobody has come for Options.Gather, or after a
// few times that in all. A lone producer is never waited for.
func (l *Log) gather() {
	want := int64(l.expected)
	if want <= 1 || l.opt.Gather < 0 {
		return
	}
	start := l.clk.Mono()
	have, came := l.syncWanted.Load(), start
	for i := 0; i < gatherSpins && have < want; i++ {
		runtime.Gosched()
		now := l.clk.Mono()
		if n := l.syncWanted.Load(); n > have {
			have, came = n, now
		}
		if now-came >= l.opt.Gather || now-start >= gatherMost*l.opt.Gather {
			return
		}
	}
}

const (
	// gatherSpins bounds the wait of gather where the clock stands still.
	gatherSpins = 4096
	// gatherMost bounds the whole wait, in units of Options.Gather: about the
	// time of the sync that a second, smaller commit would cost.
	gatherMost = 4
)

// commit writes and syncs what was placed, and answers. Under commitMu.
func (l *Log) commit(gather bool) error {
	if gather {
		l.gather()
	}
	l.mu.Lock()
	// What is placed from here on owes its own sync.
	l.dueAt = 0
	l.mu.Unlock()
	if err := l.flush(); err != nil {
		return err
	}
	from, target := l.durable.Load(), l.appended.Load()
	if from < target {
		l.counts.commits.Add(1)
		if err := l.syncTo(target); err != nil {
			l.raiseFence(err, nil)
			l.runDone()
			return l.fenceErr()
		}
	}
	l.expected = l.settle(l.durable.Load()) + int(l.syncWanted.Load())
	l.runDone()
	return nil
}

// syncTo syncs every segment with bytes in [durable, target), in order, and
// moves durable behind each. Under commitMu.
func (l *Log) syncTo(target int64) error {
	for {
		from := l.durable.Load()
		if from >= target {
			break
		}
		seg := l.segs.Load().find(from)
		if seg == nil {
			return contract.NewError(contract.KindInternal, contract.OpFlush, contract.ComponentLog,
				fmt.Sprintf("no segment at %d", from), nil)
		}
		l.counts.syncs.Add(1)
		err := seg.file.Handle().Datasync()
		if err != nil && l.opt.broken == brokenRetrySync {
			err = seg.file.Handle().Datasync()
		}
		if err != nil {
			return contract.NewError(contract.KindIO, contract.OpFlush, contract.ComponentSegment, seg.file.Path(), err)
		}
		l.advanceDurable(min(seg.end(), target))
	}
	return l.side.putBound(target, l.appended.Load(), l.window())
}

// advanceDurable publishes a new durable watermark and wakes who waits for it.
func (l *Log) advanceDurable(end int64) {
	l.durable.Store(end)
	l.publish()
	l.wakeRoom()
}

// wakeRoom wakes the appends that wait for admission.
func (l *Log) wakeRoom() {
	l.mu.Lock()
	if l.waiting > 0 {
		l.room.Broadcast()
	}
	l.mu.Unlock()
}

// boundSyncEvery is how far the bound on disk may lag behind after a power cut.
const boundSyncEvery = time.Second

// boundLoop makes the bound durable now and then, beside the commits.
func (l *Log) boundLoop(ctx context.Context) {
	timer := l.clk.NewTimer(boundSyncEvery)
	defer timer.Stop()
	looked := l.clk.Mono()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		case <-l.rolled:
		}
		if l.fenceErr() == nil {
			_ = l.syncBound() // the error is in the fence
		}
		if now := l.clk.Mono(); now-looked >= keepNamesEvery && l.fenceErr() == nil && l.shapeMu.TryLock() {
			looked = now
			if len(l.guards) > 0 {
				_ = l.keepNamesOrFence(everyName) // so is this one
			}
			l.shapeMu.Unlock()
			l.runDone()
		}
		timer.Reset(boundSyncEvery)
	}
}

// syncBound makes the bound durable, or raises the fence.
func (l *Log) syncBound() error {
	err := l.side.syncBound()
	if err == nil {
		return nil
	}
	l.raiseFence(contract.NewError(contract.KindIO, contract.OpFlush, contract.ComponentSidecar, "bound", err), nil)
	l.runDone()
	return l.fenceErr()
}

// expireLoop answers Sync appends whose time is over. It syncs nothing itself:
// a disk that hangs holds up every sync, and just then it is needed.
func (l *Log) expireLoop(ctx context.Context) {
	step := max(l.opt.SyncTimeout/4, time.Millisecond)
	timer := l.clk.NewTimer(step)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
		if l.syncWanted.Load() > 0 && l.writeMu.TryLock() {
			// Behind a sync that hangs, appends are staged and not yet pending.
			// Behind a write that hangs they stay so: their bytes have no place
			// in the page cache yet, and nothing can be said of them.
			_ = l.flushLocked()
			l.writeMu.Unlock()
		}
		l.expire(l.clk.Mono())
		l.runDone()
		timer.Reset(step)
	}
}
