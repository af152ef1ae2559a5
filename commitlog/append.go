package commitlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// place is where a prepared append went.
type place struct {
	start       int64
	end         int64
	queueOffset int64
	storeTime   int64
	// fences is how often the log had been fenced: a higher count later means
	// that the bytes may not have been written.
	fences int64
}

// reject returns the error and receipt of an append that was refused.
func reject(status contract.AppendStatus, kind contract.Kind, detail string, cause error) *contract.Error {
	e := contract.NewError(kind, contract.OpAppend, contract.ComponentLog, detail, cause)
	e.Status = status
	return e
}

// rejected returns the receipt of an append that err refused.
func (l *Log) rejected(err error) contract.Receipt {
	status := contract.StatusUnknown
	var e *contract.Error
	if errors.As(err, &e) {
		status = e.Status
	}
	durable := contract.Offset(l.durable.Load())
	r, bad := contract.NewReceipt(contract.ReceiptFields{Status: status,
		Appended: contract.Offset(l.appended.Load()), Durable: durable})
	if bad != nil {
		return contract.Receipt{}
	}
	return r
}

// durability resolves the default.
func (l *Log) durability(d contract.Durability) (contract.Durability, error) {
	if d == contract.DurabilityDefault {
		return l.opt.Durability, nil
	}
	if d > contract.DurabilitySync {
		return 0, reject(contract.StatusInvalidMessage, contract.KindInvalid, d.String()+" is unknown", nil)
	}
	return d, nil
}

// Submit admits m and returns; done is called once the durability that was
// asked for is reached or cannot be. m and its slices may be reused at once.
// An error means that nothing was written and done is never called. Submit
// waits up to Options.AdmissionWait for room, or until ctx ends.
func (l *Log) Submit(ctx context.Context, m *contract.Message, d contract.Durability, done contract.Completion) error {
	d, err := l.durability(d)
	if err != nil {
		return err
	}
	if done == nil {
		return reject(contract.StatusInvalidMessage, contract.KindInvalid, "no completion", nil)
	}
	pool := bufferPool(encodedSize(m))
	buf := pool.Get()
	defer pool.Put(buf)
	now := l.clk.Now().UnixMilli()
	if buf.B, err = l.encode(buf.B[:0], m, now); err != nil {
		return err
	}
	p := prepared{topic: m.Topic, queueID: m.QueueID, inQueue: countsInQueue(codec.SysFlag(m.SysFlag)), records: 1, buf: buf.B}
	if _, err := l.admit(ctx, &p, now, d, done); err != nil {
		return err
	}
	l.after(d)
	return nil
}

// after makes sure that somebody acts on an admitted append.
func (l *Log) after(d contract.Durability) {
	if d == contract.DurabilitySync {
		l.kickCommit()
		return
	}
	// The error, if any, went to the completion.
	_ = l.flush()
}

// Append is Submit plus the wait. It returns the receipt also with an error: the
// receipt says whether, and where, the bytes are in the log, but for
// ErrOutcomeUnknown, with which it claims nothing.
func (l *Log) Append(ctx context.Context, m *contract.Message, d contract.Durability) (contract.Receipt, error) {
	d, err := l.durability(d)
	if err != nil {
		return l.rejected(err), err
	}
	pool := bufferPool(encodedSize(m))
	buf := pool.Get()
	now := l.clk.Now().UnixMilli()
	if buf.B, err = l.encode(buf.B[:0], m, now); err != nil {
		pool.Put(buf)
		return l.rejected(err), err
	}
	p := prepared{topic: m.Topic, queueID: m.QueueID, inQueue: countsInQueue(codec.SysFlag(m.SysFlag)), records: 1, buf: buf.B}
	r, err := l.appendPrepared(ctx, &p, now, d)
	pool.Put(buf)
	return r, err
}

// appendPrepared admits p and waits for d.
func (l *Log) appendPrepared(ctx context.Context, p *prepared, now int64, d contract.Durability) (contract.Receipt, error) {
	if d != contract.DurabilitySync {
		at, err := l.admit(ctx, p, now, d, nil)
		if err != nil {
			return l.rejected(err), err
		}
		if err := l.flush(); l.fences.Load() != at.fences || l.appended.Load() < at.end {
			return l.unwritten(err)
		}
		return l.receipt(at, contract.StatusPutOk, 0)
	}
	w := getWaiter()
	if _, err := l.admit(ctx, p, now, d, w.complete); err != nil {
		putWaiter(w)
		return l.rejected(err), err
	}
	// The commit is handed over, although a lone producer could do it for less:
	// a sync may hang, and then ctx and SyncTimeout must still end the wait.
	if l.inline && l.commitMu.TryLock() {
		_ = l.commit(true)
		l.commitMu.Unlock()
	}
	if l.syncWanted.Load() > 0 {
		l.kickCommit()
	}
	select {
	case <-w.answered:
	case <-ctx.Done():
		if w.state.CompareAndSwap(waiterArmed, waiterLeft) {
			// The completion gives w back.
			e := contract.NewError(contract.KindTimeout, contract.OpAppend, contract.ComponentLog,
				"the wait ended; the record is or will be in the log once", ctx.Err())
			e.Sentinel = contract.ErrOutcomeUnknown
			return contract.Receipt{}, e
		}
		<-w.answered
	}
	r, err := w.receipt, w.err
	putWaiter(w)
	return r, err
}

// unwritten is the answer to an append whose bytes were placed and not written.
func (l *Log) unwritten(cause error) (contract.Receipt, error) {
	e := contract.NewError(contract.KindFenced, contract.OpAppend, contract.ComponentLog,
		"the write failed; Recover decides whether the record is in the log", cause)
	e.Status = contract.StatusUnknown
	e.Sentinel = contract.ErrOutcomeUnknown
	return l.rejected(e), e
}

// assign decides queue offset, place and late fields, and stages the bytes.
// Under mu; there is room.
func (l *Log) assign(p *prepared, now int64) place {
	if l.active == nil || l.tail+int64(len(p.buf))+codec.BlankSize > l.active.end() {
		l.roll()
	}
	l.lastStoreTime = max(l.lastStoreTime, now, 1)
	at := place{start: l.tail, end: l.tail + int64(len(p.buf)), storeTime: l.lastStoreTime, fences: l.fences.Load()}
	if p.inQueue {
		q := l.queues.queue(p.topic, p.queueID)
		at.queueOffset = q.next
		q.next += int64(p.records)
	}
	if p.sizes == nil {
		l.finish(p.buf, at.start, at.queueOffset, at.storeTime)
	} else {
		pos, queueOffset := 0, at.queueOffset
		for _, size := range p.sizes {
			l.finish(p.buf[pos:pos+int(size)], at.start+int64(pos), queueOffset, at.storeTime)
			pos += int(size)
			queueOffset++
		}
	}
	l.stage(l.active, at.start, p.buf)
	l.tail = at.end
	l.counts.records.Add(int64(p.records))
	l.counts.bytes.Add(int64(len(p.buf)))
	if l.mapped {
		l.advanceAppended(l.tail)
	}
	if l.tail >= l.zero.wake {
		l.zero.wake = l.active.end()
		l.wakeZero()
	}
	if !l.nextAsked && l.tail-l.active.base >= l.size/nextAt {
		l.wantNext()
	}
	return at
}

// finish writes the late fields of one encoded record.
func (l *Log) finish(rec []byte, physical, queueOffset, storeTime int64) {
	codec.PatchMessageQueueOffset(rec, queueOffset)
	codec.PatchMessagePhysicalOffset(rec, physical)
	codec.PatchMessageStoreTimestamp(rec, storeTime)
	if !l.opt.NoRecordChecksum {
		codec.SealRecord(rec)
	}
}

// receipt makes the receipt for a place from the watermarks as they are now.
func (l *Log) receipt(at place, status contract.AppendStatus, failed contract.Waits) (contract.Receipt, error) {
	durable := contract.Offset(l.durable.Load())
	end := contract.Offset(at.end)
	return contract.NewReceipt(contract.ReceiptFields{
		Status: status, Range: contract.Range{Start: contract.Offset(at.start), End: end}, HasRange: true,
		QueueOffset: at.queueOffset, StoreTime: at.storeTime,
		Appended: contract.Offset(l.appended.Load()), Durable: durable,
		Reached: contract.ReachedBy(end, durable, contract.ReplicationProof{}), Failed: failed,
	})
}

// AppendBatch appends msgs, all of one topic and queue, with consecutive queue
// offsets and contiguous places in one segment, and waits once. It returns one
// receipt per message, appended to out. Without an ack a crash may leave a
// prefix of the batch.
func (l *Log) AppendBatch(ctx context.Context, msgs []contract.Message, d contract.Durability, out []contract.Receipt) ([]contract.Receipt, error) {
	d, err := l.durability(d)
	if err == nil && len(msgs) == 0 {
		err = reject(contract.StatusInvalidMessage, contract.KindInvalid, "batch is empty", nil)
	}
	if err != nil {
		return out, err
	}
	size := 0
	for i := range msgs {
		size += encodedSize(&msgs[i])
	}
	pool := bufferPool(size)
	buf := pool.Get()
	defer pool.Put(buf)
	now := l.clk.Now().UnixMilli()
	p := prepared{topic: msgs[0].Topic, queueID: msgs[0].QueueID, inQueue: true, records: len(msgs),
		sizes: make([]int32, 0, len(msgs))}
	b := grow(buf.B[:0], size)[:0]
	for i := range msgs {
		m := &msgs[i]
		if m.Topic != p.topic || m.QueueID != p.queueID {
			return out, reject(contract.StatusInvalidMessage, contract.KindInvalid,
				fmt.Sprintf("message %d is for %s/%d, the batch for %s/%d", i, m.Topic, m.QueueID, p.topic, p.queueID), nil)
		}
		if codec.SysFlag(m.SysFlag)&codec.SysFlagTransaction != 0 {
			return out, reject(contract.StatusInvalidMessage, contract.KindInvalid,
				fmt.Sprintf("message %d is part of a transaction; a batch cannot hold one", i), nil)
		}
		at := len(b)
		if b, err = l.encode(b, m, now); err != nil {
			buf.B = b
			return out, fmt.Errorf("message %d of the batch: %w", i, err)
		}
		p.sizes = append(p.sizes, int32(len(b)-at))
	}
	buf.B, p.buf = b, b
	if limit := l.maxRecord(); int64(len(b)) > limit {
		return out, reject(contract.StatusInvalidMessage, contract.KindInvalid,
			fmt.Sprintf("batch takes %d bytes, at most %d are allowed", len(b), limit), nil)
	}
	whole, err := l.appendPrepared(ctx, &p, now, d)
	rng, ok := whole.Range()
	if !ok {
		return out, err
	}
	at := place{start: int64(rng.Start), queueOffset: whole.QueueOffset(), storeTime: whole.StoreTime()}
	for _, size := range p.sizes {
		at.end = at.start + int64(size)
		r, bad := l.receipt(at, whole.Status(), whole.FailedWaits())
		if bad != nil {
			return out, errors.Join(err, bad)
		}
		out = append(out, r)
		at.start = at.end
		at.queueOffset++
	}
	return out, err
}
