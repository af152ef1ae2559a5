package stratalog

import (
	"errors"
	"time"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/dispatch"
	"github.com/stratalog/stratalog/index"
)

// The key index is a lane that nobody waits for: neither the frontier, nor an
// open or a close that would have to build much of it, nor retention.
const (
	// indexPersist is how often the index is flushed while it changes. Its slots
	// lie anywhere in a file, so that often is dear.
	indexPersist = 5 * time.Second
	// indexLagMax is how many bytes of the log an open or a close still puts
	// into the index.
	indexLagMax = 64 << 20
)

// index returns the options of the key index.
func (o Options) index() index.Options {
	return index.Options{Slots: o.IndexSlots, Entries: o.IndexEntries, Tags: o.IndexTags, Clock: o.Clock}
}

// openIndex opens the key index, unless there is to be none.
func (s *Store) openIndex(undo *undoStack) error {
	s.index = nil
	if s.opt.NoIndex {
		return nil
	}
	opt := s.opt.index()
	opt.StoreTime = s.storeTime
	var err error
	if s.index, err = index.Open(s.opt.FS, s.path(indexDirName), opt); err != nil {
		return err
	}
	undo.add(s.index.Close)
	return nil
}

// storeTime returns the store time of the record at a place of the log.
func (s *Store) storeTime(off contract.Offset) (int64, bool, error) {
	var rec Record
	defer rec.Release()
	found, err := s.log.Read(off, &rec)
	if errors.Is(err, contract.ErrCorrupt) {
		return 0, false, nil
	}
	if err != nil || !found {
		return 0, false, err
	}
	return rec.StoreTimestamp(), true, nil
}

// fitIndex makes the key index fit the recovered log and its lane's cursor.
func (s *Store) fitIndex(foreign bool) error {
	if s.index == nil {
		return nil
	}
	first, end := s.log.MinOffset(), s.log.Durable()
	cursor, trusted, exact := s.laneCursor(contract.LaneIndex)
	fit := index.Fit{Limit: first, Tally: -1, LogMin: first}
	if trusted {
		fit.Limit, fit.Tally = min(cursor.Next, end), s.log.CursorTally(contract.LaneIndex)
		fit.Exact = exact && cursor.Next <= end
		fit.Clean = fit.Exact && !s.report.Unclean && !foreign
	}
	lower := func(to contract.Offset, tally int64) error {
		if !s.log.RecordStartsAt(to) {
			to = first
		}
		epochs := s.log.Epochs()
		return s.log.SaveCursor(contract.Cursor{Lane: contract.LaneIndex, Epoch: epochs[len(epochs)-1].Epoch, Next: to}, tally)
	}
	var err error
	s.report.Index, err = s.index.Fit(fit, lower)
	return err
}

// addIndexLane makes the key index a lane.
func (s *Store) addIndexLane() error {
	if s.index == nil {
		return nil
	}
	opened, err := s.dispatcher.Add(s.index, dispatch.LaneOptions{OnRetired: dispatch.RetiredSkip,
		PersistEvery: indexPersist, LagMax: indexLagMax})
	s.report.Lanes = append(s.report.Lanes, opened)
	return err
}

func (s *Store) closeIndex() error {
	if s.index == nil {
		return nil
	}
	return s.index.Close()
}

// indexed returns the place in the log up to which the key index holds all keys.
func (s *Store) indexed() (contract.Offset, error) {
	lane, err := s.dispatcher.Status(contract.LaneIndex)
	if err != nil {
		return 0, err
	}
	if _, err = contract.ResolveCursor(lane.Applied, s.log.Epochs()); err != nil {
		var cut *contract.RollBackError
		if errors.As(err, &cut) {
			return cut.To, nil // The lane follows the cut in a moment.
		}
	}
	return lane.Applied.Next, nil
}
