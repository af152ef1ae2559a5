package commitlog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/valyala/bytebufferpool"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// countsInQueue reports whether a record with these flags takes a place in its
// queue: prepared and rolled back ones do not.
func countsInQueue(sysFlag int32) bool {
	t := sysFlag & codec.SysFlagTransactionMask
	return t != codec.TransactionPrepared && t != codec.TransactionRollback
}

// prepared is one record, or a batch of them, encoded but for its late fields.
type prepared struct {
	topic   string
	queueID int32
	inQueue bool
	records int
	sizes   []int32 // of a batch; nil for one record
	buf     []byte
}

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

// encoders are reused encode targets: the message struct and its host bytes.
type encoder struct {
	msg   codec.Message
	born  [20]byte
	store [20]byte
	props []byte
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// checkTopic refuses what could not be a directory name of a queue.
func checkTopic(topic string) error {
	switch {
	case topic == "":
		return errors.New("topic is empty")
	case len(topic) > maxTopic:
		return fmt.Errorf("topic has %d bytes, at most %d are allowed", len(topic), maxTopic)
	case topic == "." || topic == "..":
		return fmt.Errorf("topic %q is not allowed", topic)
	}
	for i := 0; i < len(topic); i++ {
		if c := topic[i]; c < 0x20 || c == 0x7f || c == '/' || c == '\\' {
			return fmt.Errorf("topic %q holds a separator or control byte at %d", topic, i)
		}
	}
	return nil
}

// CheckTopic returns nil if topic may be appended to.
func CheckTopic(topic string) error {
	if err := checkTopic(topic); err != nil {
		return reject(contract.StatusInvalidMessage, contract.KindInvalid, err.Error(), nil)
	}
	return nil
}

// check judges m without encoding it.
func (l *Log) check(m *contract.Message) error {
	if m == nil {
		return reject(contract.StatusInvalidMessage, contract.KindInvalid, "no message", nil)
	}
	if err := checkTopic(m.Topic); err != nil {
		return reject(contract.StatusInvalidMessage, contract.KindInvalid, err.Error(), nil)
	}
	if m.QueueID < 0 {
		return reject(contract.StatusInvalidMessage, contract.KindInvalid, fmt.Sprintf("queue %d is negative", m.QueueID), nil)
	}
	if len(m.Body) > l.opt.MaxMessageSize {
		return reject(contract.StatusInvalidMessage, contract.KindInvalid,
			fmt.Sprintf("body has %d bytes, at most %d are allowed", len(m.Body), l.opt.MaxMessageSize), nil)
	}
	if n := len(m.Properties); n > maxProperties-codec.ChecksumTrailerSize {
		return reject(contract.StatusPropertiesTooLarge, contract.KindInvalid,
			fmt.Sprintf("properties take %d bytes, at most %d are allowed", n, maxProperties-codec.ChecksumTrailerSize), nil)
	}
	if len(m.Properties) > 0 {
		if err := codec.CheckProperties(m.Properties); err != nil {
			return reject(contract.StatusInvalidMessage, contract.KindInvalid, "properties", err)
		}
	}
	return nil
}

// encode appends the encoded record of m to dst.
func (l *Log) encode(dst []byte, m *contract.Message, now int64) ([]byte, error) {
	if err := l.check(m); err != nil {
		return dst, err
	}
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	c := &e.msg
	*c = codec.Message{
		Magic:                     codec.MessageMagicV1,
		QueueID:                   m.QueueID,
		Flag:                      m.Flag,
		SysFlag:                   m.SysFlag &^ (codec.SysFlagBornHostV6 | codec.SysFlagStoreHostV6),
		BornTimestamp:             m.BornTimestamp,
		ReconsumeTimes:            m.ReconsumeTimes,
		PreparedTransactionOffset: m.PreparedTransactionOffset,
		Body:                      m.Body,
		// The bytes of a string are only read, and only until Encode returns.
		Topic:      unsafe.Slice(unsafe.StringData(m.Topic), len(m.Topic)),
		Properties: m.Properties,
	}
	if c.BornTimestamp == 0 {
		c.BornTimestamp = now
	}
	c.BornHost = l.host(e.born[:0], m.BornHost, codec.SysFlagBornHostV6, &c.SysFlag)
	c.StoreHost = l.host(e.store[:0], m.StoreHost, codec.SysFlagStoreHostV6, &c.SysFlag)
	separator := 0
	if !l.opt.NoRecordChecksum {
		c.Properties = codec.StripChecksum(m.Properties, e.props)
		if n := len(c.Properties); n > 0 && c.Properties[n-1] != codec.PropertyEnd {
			separator = 1
		}
		c.PropertiesReserve = codec.ChecksumTrailerSize + separator
	}
	if n := len(c.Properties) + c.PropertiesReserve; n > maxProperties {
		return dst, reject(contract.StatusPropertiesTooLarge, contract.KindInvalid,
			fmt.Sprintf("properties take %d bytes, at most %d are allowed", n, maxProperties), nil)
	}
	size := c.Size()
	if limit := l.maxRecord(); int64(size) > limit {
		return dst, reject(contract.StatusInvalidMessage, contract.KindInvalid,
			fmt.Sprintf("record takes %d bytes, at most %d are allowed", size, limit), nil)
	}
	at := len(dst)
	dst = grow(dst, size)
	if _, err := c.Encode(dst[at:]); err != nil {
		return dst[:at], reject(contract.StatusInvalidMessage, contract.KindInvalid, "encode", err)
	}
	if separator == 1 {
		dst[len(dst)-codec.ChecksumTrailerSize-1] = codec.PropertyEnd
	}
	// The encoder must not keep the caller's slices alive.
	*c = codec.Message{}
	return dst, nil
}

// maxProperties is the format's limit, the checksum trailer included.
const maxProperties = 32767

// grow returns b with n more bytes, whatever they hold.
func grow(b []byte, n int) []byte {
	need := len(b) + n
	if need <= cap(b) {
		return b[:need]
	}
	bigger := make([]byte, need, max(need, 2*cap(b)))
	copy(bigger, b)
	return bigger
}

// host appends h, or the store's own host if h is zero.
func (l *Log) host(dst []byte, h contract.Host, v6 int32, sysFlag *int32) []byte {
	if h == (contract.Host{}) {
		h = l.opt.StoreHost
	}
	if h.IPv6 {
		*sysFlag |= v6
	}
	return codec.AppendHost(dst, h.Addr, h.IPv6, h.Port)
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
	buf := bytebufferpool.Get()
	defer bytebufferpool.Put(buf)
	now := l.clk.Now().UnixMilli()
	if buf.B, err = l.encode(buf.B[:0], m, now); err != nil {
		return err
	}
	p := prepared{topic: m.Topic, queueID: m.QueueID, inQueue: countsInQueue(m.SysFlag), records: 1, buf: buf.B}
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

// Append is Submit plus the wait. It returns the receipt also with an error:
// the receipt says whether, and where, the bytes are in the log.
func (l *Log) Append(ctx context.Context, m *contract.Message, d contract.Durability) (contract.Receipt, error) {
	d, err := l.durability(d)
	if err != nil {
		return l.rejected(err), err
	}
	buf := bytebufferpool.Get()
	now := l.clk.Now().UnixMilli()
	if buf.B, err = l.encode(buf.B[:0], m, now); err != nil {
		bytebufferpool.Put(buf)
		return l.rejected(err), err
	}
	p := prepared{topic: m.Topic, queueID: m.QueueID, inQueue: countsInQueue(m.SysFlag), records: 1, buf: buf.B}
	r, err := l.appendPrepared(ctx, &p, now, d)
	bytebufferpool.Put(buf)
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
	if l.active == nil || l.tail+size+codec.BlankSize > l.active.end() {
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
	buf := bytebufferpool.Get()
	defer bytebufferpool.Put(buf)
	now := l.clk.Now().UnixMilli()
	p := prepared{topic: msgs[0].Topic, queueID: msgs[0].QueueID, inQueue: true, records: len(msgs),
		sizes: make([]int32, 0, len(msgs))}
	b := buf.B[:0]
	for i := range msgs {
		m := &msgs[i]
		if m.Topic != p.topic || m.QueueID != p.queueID {
			return out, reject(contract.StatusInvalidMessage, contract.KindInvalid,
				fmt.Sprintf("message %d is for %s/%d, the batch for %s/%d", i, m.Topic, m.QueueID, p.topic, p.queueID), nil)
		}
		if m.SysFlag&codec.SysFlagTransactionMask != 0 {
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
