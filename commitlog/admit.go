package commitlog

import (
	"context"
	"fmt"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// admit waits for room and gives p its place. done is nil when the caller
// answers for itself (Memory and Interval).
func (l *Log) admit(ctx context.Context, p *prepared, now int64, d contract.Durability, done contract.Completion) (place, error) {
	if err := ctx.Err(); err != nil {
		return place{}, reject(contract.StatusServiceUnavailable, contract.KindTimeout,
			"the context had ended before admission; nothing was written", err)
	}
	l.mu.Lock()
	var limit *admissionWait
	for {
		need, err := l.refusal(p)
		if err == nil && need == "" {
			break
		}
		if err == nil {
			if limit == nil {
				limit = l.newAdmissionWait(ctx)
			}
			err = limit.wait(need)
		}
		if err != nil {
			l.mu.Unlock()
			limit.stop()
			return place{}, err
		}
	}
	at := l.assign(p, now)
	if done != nil {
		l.inFlight.Add(1)
		l.inFlightSize.Add(int64(len(p.buf)))
		if d == contract.DurabilitySync {
			l.syncWanted.Add(1)
		}
		l.filling.waiters = append(l.filling.waiters, waiter{place: at, size: int64(len(p.buf)), sync: d == contract.DurabilitySync,
			deadline: l.clk.Mono() + l.opt.SyncTimeout, done: done})
	}
	if d != contract.DurabilitySync {
		l.oweSync(d)
	}
	l.mu.Unlock()
	limit.stop()
	return at, nil
}

// dueNow is a dueAt that is over on any clock.
const dueNow = -time.Hour

// oweSync notes by when a background sync must come. Under mu.
func (l *Log) oweSync(d contract.Durability) {
	if l.dueAt != 0 && d == contract.DurabilityMemory {
		return
	}
	wait := l.opt.SyncInterval
	if d == contract.DurabilityInterval {
		wait = min(wait, l.opt.Interval)
	}
	if due := l.clk.Mono() + wait; l.dueAt == 0 || due < l.dueAt {
		l.dueAt = due
		l.kickCommit()
	}
}

// refusal tells why p cannot be placed now: an error is final, a text names
// the limit to wait for. Under mu.
func (l *Log) refusal(p *prepared) (string, error) {
	switch {
	case l.closed:
		return "", reject(contract.StatusServiceUnavailable, contract.KindClosed, "the log is closed", nil)
	case !l.started:
		return "", reject(contract.StatusServiceUnavailable, contract.KindNotStarted, "Start was not called", nil)
	}
	if err := l.fenceErr(); err != nil {
		return "", reject(contract.StatusServiceUnavailable, contract.KindFenced, "call Recover", err)
	}
	if l.frozen {
		return "the log is being truncated", nil
	}
	if l.unreserved {
		l.wantNext()
		return "", l.noSegment()
	}
	size := int64(len(p.buf))
	need, inActive := size, size
	rolls := l.active == nil || l.tail+size+codec.BlankSize > l.active.end()
	if rolls {
		if l.active != nil {
			need += l.active.end() - l.tail
			inActive = codec.BlankSize
		}
		if l.next == nil {
			l.wantNext()
			if l.nextErr != nil {
				return "", l.noSegment()
			}
			return "the next segment", nil
		}
	}
	if l.zero.claim >= 0 && l.tail+inActive > l.zero.claim {
		return "zeros being written ahead", nil
	}
	durable := l.durable.Load()
	if n := l.inFlight.Load(); n > 0 && n >= int64(l.opt.MaxInFlight) {
		return "records in flight", nil
	}
	if n := l.inFlightSize.Load(); n > 0 && n+size > l.opt.MaxInFlightSize {
		return "bytes in flight", nil
	}
	if l.tail+need-durable > l.opt.MaxUnsynced/2 {
		// Half full: start a sync before anybody has to wait for one.
		l.dueAt = dueNow
		l.kickCommit()
	}
	if l.tail > durable && l.tail+need-durable > l.opt.MaxUnsynced {
		return "bytes appended and not yet durable", nil
	}
	if rolls && l.nextGone() {
		l.wantNext()
		return "the next segment", nil
	}
	return "", nil
}

// Refusing returns why appends are refused although the log is neither closed
// nor fenced: there is no room for records on the disk. Nil means that they are
// admitted.
func (l *Log) Refusing() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := l.active == nil || l.tail+codec.MessageMinSize+codec.ChecksumTrailerSize+codec.BlankSize > l.active.end()
	if l.unreserved || full && l.next == nil && l.nextErr != nil {
		return l.noSegment()
	}
	return nil
}

// noSegment is the refusal when the next segment cannot be made.
func (l *Log) noSegment() error {
	e := reject(contract.StatusStorageUnavailable, contract.KindIO, "the next segment cannot be made", l.nextErr)
	if isDiskFull(l.nextErr) {
		e.Status, e.Kind, e.Sentinel = contract.StatusServiceUnavailable, contract.KindCapacity, contract.ErrDiskFull
	}
	return e
}

// admissionWait is one append's wait for room.
type admissionWait struct {
	log      *Log
	ctx      context.Context
	until    time.Duration
	stopCtx  func() bool
	stopTime func() bool
}

func (l *Log) newAdmissionWait(ctx context.Context) *admissionWait {
	w := &admissionWait{log: l, ctx: ctx, until: l.clk.Mono() + l.opt.AdmissionWait}
	wake := func() {
		l.mu.Lock()
		l.room.Broadcast()
		l.mu.Unlock()
	}
	w.stopCtx = context.AfterFunc(ctx, wake)
	if l.opt.AdmissionWait > 0 {
		w.stopTime = l.clk.AfterFunc(l.opt.AdmissionWait, wake).Stop
	}
	return w
}

// wait sleeps until there may be room for what need names. Under mu.
func (w *admissionWait) wait(need string) error {
	if err := w.ctx.Err(); err != nil {
		return reject(contract.StatusPageCacheBusy, contract.KindTimeout, "the wait for room ended, nothing was written: "+need, err)
	}
	if w.log.opt.AdmissionWait < 0 || w.log.clk.Mono() >= w.until {
		e := reject(contract.StatusPageCacheBusy, contract.KindCapacity,
			fmt.Sprintf("no room: %s; try again in %v", need, w.log.opt.Interval), nil)
		e.Sentinel = contract.ErrBusy
		return e
	}
	w.log.waiting++
	w.log.room.Wait()
	w.log.waiting--
	return nil
}

// stop releases the timers; w may be nil.
func (w *admissionWait) stop() {
	if w == nil {
		return
	}
	w.stopCtx()
	if w.stopTime != nil {
		w.stopTime()
	}
}
