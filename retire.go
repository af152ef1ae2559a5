package stratalog

import (
	"context"
	"errors"

	"github.com/stratalog/stratalog/contract"
)

// Retired is what Retire removed.
type Retired struct {
	// MinOffset is where the log starts now.
	MinOffset Offset
	// QueueFiles is how many consume queue files went with it, IndexFiles how
	// many of the key index.
	QueueFiles int
	IndexFiles int
}

// Retire removes the segments of the log that lie wholly below off, oldest
// first, and the consume queue and key index files that only named records in them. The
// active segment stays, and so does what a required lane has not yet made
// durable: nothing is removed that would be needed to derive state again.
// Records that are held under a lease stay readable until they are released.
// It is safe beside appends and reads, and may be called again after an error.
func (s *Store) Retire(ctx context.Context, off Offset) (Retired, error) {
	if err := s.life.enter(ctx, contract.OpAdmin); err != nil {
		return Retired{}, err
	}
	defer s.life.leave()
	if err := s.order(contract.OpAdmin, stageStarted); err != nil {
		return Retired{}, err
	}
	if s.lanesHold() < off {
		_ = s.dispatcher.Persist() // a lane that fails says so in its status, and holds the log
		off = min(off, s.lanesHold())
	}
	start, err := s.log.Retire(off)
	r := Retired{MinOffset: start}
	if err != nil {
		return r, err
	}
	r.QueueFiles, err = s.queues.DeleteExpired(start)
	if s.index != nil {
		var e error
		r.IndexFiles, e = s.index.DeleteExpired(start)
		err = errors.Join(err, e)
	}
	return r, err
}

// lanesHold returns the end of what every required lane has made durable.
func (s *Store) lanesHold() Offset {
	held := s.log.Watermarks().Durable
	for _, lane := range s.dispatcher.Lanes() {
		switch {
		case !lane.Required:
		case lane.HasPersisted:
			held = min(held, lane.Persisted.Next)
		default:
			held = 0
		}
	}
	return held
}
