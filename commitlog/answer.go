package commitlog

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/invariant"
)

// waiter is an admitted append whose answer is still owed.
type waiter struct {
	place
	size     int64
	sync     bool
	deadline time.Duration // on the monotonic clock
	done     contract.Completion
}

// answer is a completion that is due, in log order.
type answer struct {
	receipt contract.Receipt
	err     error
	size    int64
	done    contract.Completion
}

// answer queues the completion of w. The receipt is made now, from the
// watermarks as they are.
func (l *Log) answer(w *waiter, status contract.AppendStatus, failed contract.Waits, cause error) {
	r, bad := l.receipt(w.place, status, failed)
	invariant.Check(bad == nil, "receipt at %d: %v", w.start, bad)
	if bad != nil && cause == nil {
		cause = bad
	}
	l.queueAnswer(w, r, cause)
}

// answerUnwritten queues the completion of an append whose bytes were placed
// and not written.
func (l *Log) answerUnwritten(w *waiter, cause error) {
	r, err := l.unwritten(cause)
	l.queueAnswer(w, r, err)
}

func (l *Log) queueAnswer(w *waiter, r contract.Receipt, err error) {
	if w.sync {
		l.syncWanted.Add(-1)
	}
	l.doneMu.Lock()
	l.done = append(l.done, answer{receipt: r, err: err, size: w.size, done: w.done})
	l.doneMu.Unlock()
}

// runDone runs the completions that are due, in order, one goroutine at a
// time. Whoever comes while they run leaves his to the one who runs them: so a
// completion may append.
func (l *Log) runDone() {
	l.doneMu.Lock()
	if l.draining {
		l.doneMu.Unlock()
		return
	}
	l.draining = true
	for len(l.done) > 0 {
		due := l.done
		l.done = l.doneIdle[:0]
		l.doneMu.Unlock()
		for i := range due {
			a := &due[i]
			l.complete(a)
			l.inFlight.Add(-1)
			l.inFlightSize.Add(-a.size)
		}
		clear(due)
		l.wakeRoom()
		l.doneMu.Lock()
		l.doneIdle = due[:0]
	}
	l.draining = false
	l.doneMu.Unlock()
}

// complete runs one completion. One that panics fences the log: the host's code
// is in an unknown state, and nobody may go on as if it had taken the answer.
func (l *Log) complete(a *answer) {
	defer func() {
		if p := recover(); p != nil {
			l.Fail(fmt.Errorf("a completion panicked: %v\n%s", p, debug.Stack()))
		}
	}()
	a.done(a.receipt, a.err)
}

// settle answers every pending append that durable covers and returns how
// many there were.
func (l *Log) settle(durable int64) int {
	l.pendMu.Lock()
	n := 0
	for l.pendAt+n < len(l.pend) && l.pend[l.pendAt+n].end <= durable {
		l.answer(&l.pend[l.pendAt+n], contract.StatusPutOk, 0, nil)
		n++
	}
	l.dropPending(n)
	l.pendMu.Unlock()
	return n
}

// expire answers pending appends whose time is over: the bytes are in the log,
// the sync is not confirmed.
func (l *Log) expire(now time.Duration) {
	l.pendMu.Lock()
	n := 0
	for l.pendAt+n < len(l.pend) && l.pend[l.pendAt+n].deadline <= now {
		w := &l.pend[l.pendAt+n]
		l.answer(w, contract.StatusFlushDiskTimeout, contract.WaitDisk, contract.NewError(contract.KindTimeout,
			contract.OpFlush, contract.ComponentLog, "the sync was not confirmed in time; it goes on", nil))
		n++
	}
	l.dropPending(n)
	l.pendMu.Unlock()
	if n > 0 {
		// Nobody waits for these bytes now, but they still owe a sync.
		l.mu.Lock()
		l.oweSync(contract.DurabilityMemory)
		l.mu.Unlock()
	}
}

// dropPending removes the first n pending appends. Under pendMu.
func (l *Log) dropPending(n int) {
	clear(l.pend[l.pendAt : l.pendAt+n])
	l.pendAt += n
	if l.pendAt == len(l.pend) {
		l.pend, l.pendAt = l.pend[:0], 0
	}
}

// appendWaiter is what an Append blocks on; reused.
type appendWaiter struct {
	answered chan struct{}
	receipt  contract.Receipt
	err      error
	// state decides who gives the waiter back: the append that waits, or the
	// completion when the append has left.
	state    atomic.Int32
	complete contract.Completion
}

const (
	waiterArmed int32 = iota
	waiterDone
	waiterLeft
)

var waiters sync.Pool

func getWaiter() *appendWaiter {
	w, ok := waiters.Get().(*appendWaiter)
	if !ok {
		w = &appendWaiter{answered: make(chan struct{}, 1)}
		w.complete = w.answer
	}
	w.state.Store(waiterArmed)
	return w
}

// putWaiter gives w back; its answer has been taken.
func putWaiter(w *appendWaiter) {
	w.receipt, w.err = contract.Receipt{}, nil
	waiters.Put(w)
}

// answer is the completion of the append that w stands for.
func (w *appendWaiter) answer(r contract.Receipt, err error) {
	w.receipt, w.err = r, err
	if w.state.CompareAndSwap(waiterArmed, waiterDone) {
		w.answered <- struct{}{}
		return
	}
	putWaiter(w)
}
