package stratalog

import (
	"context"
	"errors"

	"github.com/stratalog/stratalog/commitlog"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/dispatch"
)

// refusal is the error of a call that came too early or too late.
func (s *Store) refusal(op contract.Operation, want stage) error {
	if err := s.order(op, want); err != nil {
		return err
	}
	// The stage was reached while the call was on its way.
	e := contract.NewError(contract.KindNotStarted, op, contract.ComponentStore, "the store is starting", nil)
	e.Status = contract.StatusServiceUnavailable
	return e
}

// noMessage refuses an append of nothing.
func noMessage() error {
	e := contract.NewError(contract.KindInvalid, contract.OpAppend, contract.ComponentStore, "there is no message", nil)
	e.Status = contract.StatusInvalidMessage
	return e
}

// refused is the receipt of an append that err refused before it came to the
// log.
func refused(err error) Receipt {
	var e *contract.Error
	if !errors.As(err, &e) {
		return Receipt{}
	}
	r, bad := contract.NewReceipt(contract.ReceiptFields{Status: e.Status})
	if bad != nil {
		return Receipt{}
	}
	return r
}

// Submit admits m and returns before it is durable; done is called when the
// durability asked for is reached, or cannot be, in log order among messages of
// the same durability. m and its slices may be reused at once. An error means
// that nothing was or will be written, and done is never called.
//
// done must not block. It may call Submit.
func (s *Store) Submit(ctx context.Context, m *Message, d Durability, done Completion) error {
	if m == nil {
		return noMessage()
	}
	log := s.live.Load()
	if log == nil {
		return s.refusal(contract.OpAppend, stageStarted)
	}
	return log.Submit(ctx, m, d, done)
}

// Append is Submit plus the wait. With an error the receipt still says whether,
// and where, the bytes are in the log, with one exception: ErrOutcomeUnknown. If
// ctx ends after the message was admitted the record is, or will be, in the log
// once; if the write failed, Recover decides. The receipt then claims nothing.
func (s *Store) Append(ctx context.Context, m *Message, d Durability) (Receipt, error) {
	log := s.live.Load()
	if m == nil || log == nil {
		err := noMessage()
		if m != nil {
			err = s.refusal(contract.OpAppend, stageStarted)
		}
		return refused(err), err
	}
	return log.Append(ctx, m, d)
}

// AppendBatch appends msgs, all of one topic and queue, with consecutive queue
// offsets, and waits once. One receipt per message is appended to out. Without
// an ack a crash may leave a prefix of the batch.
func (s *Store) AppendBatch(ctx context.Context, msgs []Message, d Durability, out []Receipt) ([]Receipt, error) {
	log := s.live.Load()
	if log == nil {
		return out, s.refusal(contract.OpAppend, stageStarted)
	}
	return log.AppendBatch(ctx, msgs, d, out)
}

// Get fills out with records of one queue; out's status says what was found,
// and its Next where to go on. Every record was checked. Damage is a
// *contract.CorruptionError that names file and offset: of the log, or of the
// queue if its unit leads astray. With an error out holds no records; behind
// damage its Next leads past it.
func (s *Store) Get(ctx context.Context, req Request, out *Records) error {
	g := s.reading.Load()
	if g == nil {
		if out != nil {
			out.clear()
			out.Next = req.Offset
		}
		return s.refusal(contract.OpRead, stageLoaded)
	}
	err := s.owned(g).get(ctx, req, out)
	if s.closedUnder(g) && (errors.Is(err, contract.ErrCorrupt) || err == nil && out.Len() == 0) {
		out.clear()
		out.Next = req.Offset
		return s.refusal(contract.OpRead, stageLoaded)
	}
	return err
}

// closedUnder reports whether the store was closed while g answered. Files go one
// after the other then, and what is not found any more is not damaged, nor past
// the end.
func (s *Store) closedUnder(g *getter) bool { return s.reading.Load() != g }

// GetAt fills out with the record at a physical offset; false if no record that
// may be seen starts there. With false or an error out holds no record.
func (s *Store) GetAt(_ context.Context, off Offset, out *Record) (bool, error) {
	if out == nil {
		return false, noTarget()
	}
	g := s.reading.Load()
	if g == nil {
		out.Release()
		return false, s.refusal(contract.OpRead, stageLoaded)
	}
	found, err := g.log.Read(off, out)
	if !found && s.closedUnder(g) {
		return false, s.refusal(contract.OpRead, stageLoaded)
	}
	return found, err
}

// WaitVisible waits until everything below off can be found through its queue.
// off is, for example, the end of a receipt's range.
func (s *Store) WaitVisible(ctx context.Context, off Offset) error {
	if s.reading.Load() == nil {
		return s.refusal(contract.OpRead, stageLoaded)
	}
	return s.dispatcher.WaitFrontier(ctx, off)
}

// Topics returns the topics that have queues, sorted; Queues the queue ids of
// one, sorted.
func (s *Store) Topics() []string {
	g := s.reading.Load()
	if g == nil {
		return nil
	}
	return g.queues.Topics()
}

// Queues returns the queue ids of topic, sorted.
func (s *Store) Queues(topic string) []int32 {
	g := s.reading.Load()
	if g == nil {
		return nil
	}
	return g.queues.Queues(topic)
}

// QueueRange returns the first live offset of a queue and its end, equal when
// it is empty or does not exist.
func (s *Store) QueueRange(topic string, queueID int32) (first, end int64) {
	g := s.reading.Load()
	if g == nil {
		return 0, 0
	}
	return g.queues.Min(topic, queueID), g.queues.Max(topic, queueID)
}

// Report returns what Load found and did.
func (s *Store) Report() LoadReport {
	if s.life.enter(context.Background(), contract.OpAdmin) != nil {
		return LoadReport{}
	}
	defer s.life.leave()
	return s.report
}

// Health is a snapshot of how the store is.
type Health struct {
	// Stage is new, loaded, started or closed.
	Stage string
	// Writable tells that appends are admitted; if not, Reason says why.
	Writable bool
	Reason   error
	// Watermarks of the log, and the start of its first segment.
	Watermarks contract.Watermarks
	MinOffset  Offset
	Epoch      contract.Epoch
	// Frontier is the end of what is in all required lanes.
	Frontier Offset
	Lanes    []dispatch.LaneStatus
	// WritePath is the path in use.
	WritePath WritePath
	// Stats are totals since Load.
	Stats commitlog.Stats
}

// Health returns a snapshot. It never blocks on a sync.
func (s *Store) Health() Health {
	h := Health{Stage: s.now().String(), Reason: s.order(contract.OpAppend, stageStarted)}
	if s.reading.Load() == nil {
		return h
	}
	if err := s.log.Fenced(); h.Reason == nil {
		h.Reason = err
	}
	if h.Reason == nil {
		h.Reason = s.log.Refusing()
	}
	h.Writable = h.Reason == nil
	h.Watermarks, h.MinOffset, h.Epoch = s.log.Watermarks(), s.log.MinOffset(), s.log.Epoch()
	h.Frontier, h.Lanes = s.dispatcher.Frontier(), s.dispatcher.Lanes()
	h.WritePath, h.Stats = s.log.WritePath(), s.log.Stats()
	return h
}

// Recover lifts the fence after a failed write or sync: what is not durable is
// written again from memory or cut, then synced through fresh descriptors. A
// failed sync is never retried.
func (s *Store) Recover(ctx context.Context) (commitlog.RecoveryReport, error) {
	if err := s.life.enter(ctx, contract.OpRecover); err != nil {
		return commitlog.RecoveryReport{}, err
	}
	defer s.life.leave()
	if err := s.order(contract.OpRecover, stageStarted); err != nil {
		return commitlog.RecoveryReport{}, err
	}
	var report commitlog.RecoveryReport
	err := s.holdLanes(func() (err error) {
		report, err = s.log.Recover(ctx, offsetSource{s})
		return err
	})
	return report, err
}

// TruncateTo cuts the log at off, durably, where a record starts; the lanes
// follow. Records at and behind off are gone: they are zeroed in place, also for
// whoever holds one of them under a lease.
func (s *Store) TruncateTo(ctx context.Context, off Offset) error {
	if err := s.life.enter(ctx, contract.OpTruncate); err != nil {
		return err
	}
	defer s.life.leave()
	if err := s.order(contract.OpTruncate, stageStarted); err != nil {
		return err
	}
	return s.holdLanes(func() error { return s.log.TruncateTo(ctx, off, offsetSource{s}) })
}

// holdLanes runs f, which may cut the log, while no lane reads it. Behind it the
// lanes look at the log anew: they may have waited for what lay behind the end.
func (s *Store) holdLanes(f func() error) error {
	defer s.dispatcher.Kick()
	s.cuts.Add(1)
	defer s.cuts.Add(1)
	for _, lane := range s.dispatcher.Lanes() {
		if err := s.dispatcher.Pause(lane.Lane); err != nil {
			return err
		}
		defer s.dispatcher.Resume(lane.Lane)
	}
	return f()
}
