package commitlog

import (
	"errors"
	"syscall"

	"github.com/stratalog/stratalog/contract"
)

// isDiskFull reports whether err says that there is no room.
func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, contract.ErrDiskFull)
}

// raiseFence makes the log refuse appends until Recover, and answers everybody
// who waits with the cause: unwritten are the waiters of the batch whose write
// failed. The first cause stays. Reads go on.
//
// A failed sync is never retried: the kernel may have marked the pages clean,
// so that a second sync succeeds and the bytes are gone.
func (l *Log) raiseFence(cause error, unwritten []waiter) {
	l.mu.Lock()
	e := contract.NewError(contract.KindFenced, contract.OpFlush, contract.ComponentLog, "", cause)
	l.fences.Add(1)
	l.fence.CompareAndSwap(nil, &fenceCause{err: e})
	// What was placed behind the failure is not written any more.
	staged := l.filling
	l.filling = &batch{}
	l.room.Broadcast()
	l.mu.Unlock()

	// What a successful sync covers is durable, whatever came after it.
	l.settle(l.durable.Load())
	l.failPending()
	appended := l.appended.Load()
	for _, batch := range [][]waiter{unwritten, staged.waiters} {
		for i := range batch {
			w := &batch[i]
			if l.mapped && w.end <= appended {
				// Through the mapping it is written as soon as it is placed.
				l.answer(w, contract.StatusFlushDiskTimeout, contract.WaitDisk, l.fenceErr())
				continue
			}
			l.answerUnwritten(w, l.fenceErr())
		}
	}
}

// failPending answers every append that waits for a sync with the cause of the
// fence: its bytes are in the log, and nobody will sync them before Recover.
func (l *Log) failPending() {
	l.pendMu.Lock()
	n := len(l.pend) - l.pendAt
	for i := range n {
		l.answer(&l.pend[l.pendAt+i], contract.StatusFlushDiskTimeout, contract.WaitDisk, l.fenceErr())
	}
	l.dropPending(n)
	l.pendMu.Unlock()
}

// Fail fences the log with a cause from outside: something that it depends on
// is in an unknown state. Recover lifts it.
func (l *Log) Fail(cause error) {
	l.raiseFence(cause, nil)
	l.runDone()
}
