package stratalog

import (
	"errors"
	"fmt"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/commitlog"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/cq"
	"github.com/stratalog/stratalog/index"
)

// laneCursors keeps the cursors of the lanes in the log's sidecar. With the
// queues' cursor goes their tally, so that queues which were deleted, emptied
// or replaced while nobody looked are noticed: a cursor alone would vouch for
// files that are gone.
type laneCursors struct {
	log    *commitlog.Log
	queues *cq.Store
	index  *index.Store // nil without one
}

// LoadCursor implements dispatch.CursorStore.
func (c laneCursors) LoadCursor(lane contract.Lane) (contract.Cursor, bool, error) {
	return c.log.LoadCursor(lane)
}

// SaveCursor implements dispatch.CursorStore.
func (c laneCursors) SaveCursor(cursor contract.Cursor) error {
	tally := int64(-1)
	if cursor.Lane == contract.LaneQueue {
		tally = c.queues.TallyFor(cursor.Next)
	}
	if cursor.Lane == contract.LaneIndex && c.index != nil && c.index.FlushedBelow() < cursor.Next {
		tally = c.index.Tally()
	}
	return c.log.SaveCursor(cursor, tally)
}

// fitQueues makes the consume queues fit the recovered log: units of records
// that the log does not hold are cut, and where units are missing that the
// cursor vouches for, the replay starts before them.
func (s *Store) fitQueues(foreign bool) error {
	cursors := s.cursors()
	cursor, trusted, exact := s.laneCursor(contract.LaneQueue)
	end := s.log.Durable()
	limit, check := end, cq.Check(nil)
	if s.report.Unclean || foreign || !trusted {
		check, limit = s.checkUnit, s.log.MinOffset()
		if trusted {
			limit = min(end, cursor.Next)
		}
	}
	// The log must be whole where it will be replayed, or cutting the queues
	// would only lose what can still be read through them.
	if err := s.checkReplay(limit); err != nil {
		return err
	}
	// What the cursor counted, before it is lowered.
	counted := s.log.CursorTally(contract.LaneQueue)
	if exact && limit == cursor.Next && s.queues.Tally() < counted {
		// All will be rebuilt, so all of the log will be read.
		if err := s.checkReplay(s.log.MinOffset()); err != nil {
			return err
		}
	}
	lower := func(to contract.Offset) error {
		if !s.log.RecordStartsAt(to) {
			// A damaged unit told where to begin.
			to = s.log.MinOffset()
		}
		if err := s.checkReplay(to); err != nil {
			return err
		}
		epochs := s.log.Epochs()
		c := contract.Cursor{Lane: contract.LaneQueue, Epoch: epochs[len(epochs)-1].Epoch, Next: to}
		if to > s.log.MinOffset() && exact && limit == cursor.Next {
			// With the count, though it is that of a higher cursor: if we are killed
			// before all is done, the next open misses what is missing still.
			return s.log.SaveCursor(c, counted)
		}
		return cursors.SaveCursor(c)
	}
	var err error
	if s.report.QueueCut, err = s.queues.TruncateAbove(limit, check, lower); err != nil {
		return err
	}
	// Also where a loss was seen and the replay begins below it: another queue may
	// have lost more, and show nothing.
	have := s.queues.Tally()
	if !exact || limit != cursor.Next || counted < 0 || counted == have {
		return nil
	}
	s.report.QueueTally = fmt.Sprintf("the queues hold %d entries where their cursor counted %d: all are rebuilt", have, counted)
	first := s.log.MinOffset()
	if err := lower(first); err != nil {
		return err
	}
	s.report.QueueCut, err = s.queues.TruncateAbove(first, s.checkUnit, lower)
	return err
}

// checkReplay reads the log from off to its end; damage there is the error.
func (s *Store) checkReplay(off contract.Offset) error {
	from, end := max(off, s.log.MinOffset()), s.log.Durable()
	if from >= end {
		return nil
	}
	if !s.log.RecordStartsAt(from) {
		return nil // the cursor is not this log's; the lane will say so
	}
	return s.log.Walk(from, end, func(*codec.MessageView) {})
}

// cursors is where the lanes keep their cursors.
func (s *Store) cursors() laneCursors { return laneCursors{s.log, s.queues, s.index} }

// laneCursor returns a lane's cursor, brought to the current epoch,
// whether it can be trusted, and whether it is the very one that was saved.
func (s *Store) laneCursor(lane contract.Lane) (cursor contract.Cursor, trusted, exact bool) {
	cursor, found, err := s.log.LoadCursor(lane)
	if err != nil || !found {
		return cursor, false, false
	}
	resolved, err := contract.ResolveCursor(cursor, s.log.Epochs())
	var back *contract.RollBackError
	if errors.As(err, &back) {
		cursor.Next = back.To
		return cursor, true, false
	}
	return resolved, err == nil, err == nil
}
