package stratalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/dispatch"
)

// Strata returns the names of the strata that Rebuild knows.
func Strata() []string {
	return []string{contract.LaneQueue.String(), contract.LaneIndex.String()}
}

// Rebuild removes the files of a stratum, one of Strata, and makes them anew from
// the log, between Load and Start. progress, if not nil, is told how many bytes of
// the log are done, and of how many. While the consume queues are made, reads are
// refused with contract.ErrNotStarted. If it does not come to its end, or the
// process dies, the next Load goes on where it came to.
//
// Queues of which the log has no record left are not made anew, since their files
// alone know at which number they go on: with one of them nothing is done, and the
// error is contract.ErrInvalid.
func (s *Store) Rebuild(ctx context.Context, stratum string, progress func(done, total int64)) (dispatch.CatchUpReport, error) {
	if err := s.life.enter(ctx, contract.OpAdmin); err != nil {
		return dispatch.CatchUpReport{}, err
	}
	defer s.life.leave()
	if err := s.order(contract.OpAdmin, stageLoaded); err != nil {
		return dispatch.CatchUpReport{}, err
	}
	refuse := func(kind contract.Kind, format string, args ...any) (dispatch.CatchUpReport, error) {
		return dispatch.CatchUpReport{}, contract.NewError(kind, contract.OpAdmin, contract.ComponentStore, fmt.Sprintf(format, args...), nil)
	}
	switch stratum {
	case contract.LaneQueue.String():
		if topic, queue, end, found := s.bareQueue(); found {
			return refuse(contract.KindInvalid, "the log has no record of queue %s/%d left: only its files know that it goes on at %d", topic, queue, end)
		}
		// Half a queue would send consumers back to its end.
		g := s.reading.Swap(nil)
		defer s.reading.Store(g)
		report, err := s.remake(ctx, contract.LaneQueue, s.queues.DropAll, progress)
		return report, errors.Join(err, s.queues.CorrectMin(s.log.MinOffset()), s.log.LoadQueueOffsets(offsetSource{s}))
	case contract.LaneIndex.String():
		if s.index == nil {
			return refuse(contract.KindUnsupported, "the store was opened without a key index")
		}
		return s.remake(ctx, contract.LaneIndex, s.index.DropAll, progress)
	}
	return refuse(contract.KindInvalid, "no stratum %q", stratum)
}

// bareQueue finds a queue that has a number to go on with and no record.
func (s *Store) bareQueue() (topic string, queue int32, end int64, found bool) {
	for _, topic := range s.queues.Topics() {
		for _, queue := range s.queues.Queues(topic) {
			first, end := s.queues.Min(topic, queue), s.queues.Max(topic, queue)
			if first >= end && end > 0 {
				return topic, queue, end, true
			}
		}
	}
	return "", 0, 0, false
}

// remake drops the state of a lane and applies the log to it, all of it.
func (s *Store) remake(ctx context.Context, lane contract.Lane, drop func() error, progress func(done, total int64)) (dispatch.CatchUpReport, error) {
	first := s.log.MinOffset()
	if err := s.dispatcher.Rebuild(lane, first, drop); err != nil {
		return dispatch.CatchUpReport{}, err
	}
	total := int64(s.log.Confirmed() - first)
	return s.dispatcher.Fill(ctx, lane, func(at contract.Offset) {
		if progress != nil {
			progress(int64(at-first), total)
		}
	})
}
