package stratalog

import (
	"context"

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
	return contract.NewError(contract.KindNotStarted, op, contract.ComponentStore, "the store is starting", nil)
}

// Submit admits m and returns before it is durable; done is called when the
// durability asked for is reached, or cannot be, in log order among messages of
// the same durability. m and its slices may be reused at once. An error means
// that nothing was or will be written, and done is never called.
//
// done must not block. It may call Submit.
func (s *Store) Submit(ctx context.Context, m *Message, d Durability, done Completion) error {
	log := s.live.Load()
	if log == nil {
		return s.refusal(contract.OpAppend, stageStarted)
	}
	return log.Submit(ctx, m, d, done)
}

// Append is Submit plus the wait. With an error the receipt still says whether,
// and where, the bytes are in the log. If ctx ends after the message was
// admitted the error is ErrOutcomeUnknown: the record is, or will be, in the
// log once.
func (s *Store) Append(ctx context.Context, m *Message, d Durability) (Receipt, error) {
	log := s.live.Load()
	if log == nil {
		return Receipt{}, s.refusal(contract.OpAppend, stageStarted)
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
// *contract.CorruptionError that names file and offset.
func (s *Store) Get(ctx context.Context, req Request, out *Records) error {
	g := s.reading.Load()
	if g == nil {
		return s.refusal(contract.OpRead, stageLoaded)
	}
	return g.get(ctx, req, out)
}

// GetAt fills out with the record at a physical offset; false if no record that
// may be seen starts there.
func (s *Store) GetAt(_ context.Context, off Offset, out *Record) (bool, error) {
	g := s.reading.Load()
	if g == nil {
		return false, s.refusal(contract.OpRead, stageLoaded)
	}
	return g.log.Read(off, out)
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
	// The lanes may be waiting for what lies behind the old end.
	defer s.dispatcher.Kick()
	return s.log.Recover(ctx, offsetSource{s})
}

// TruncateTo cuts the log at off, durably, where a record starts; the lanes
// follow. Records at and behind off are gone.
func (s *Store) TruncateTo(ctx context.Context, off Offset) error {
	if err := s.life.enter(ctx, contract.OpTruncate); err != nil {
		return err
	}
	defer s.life.leave()
	if err := s.order(contract.OpTruncate, stageStarted); err != nil {
		return err
	}
	// The lanes may be waiting for what lies behind the old end.
	defer s.dispatcher.Kick()
	return s.log.TruncateTo(ctx, off, offsetSource{s})
}
