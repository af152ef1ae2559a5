package index

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/stratalog/stratalog/contract"
)

// Fit is what the owner knows of the lane when it opens the index.
type Fit struct {
	// Limit is where the lane's cursor stands, or where the log was cut below
	// it.
	Limit contract.Offset
	// Tally was kept with the cursor, -1 for none.
	Tally int64
	// Exact says that the cursor is the very one that was kept with Tally, and
	// that the log was not cut below it.
	Exact bool
	// Clean says that the index was closed in order, and that nobody else
	// wrote to the store since.
	Clean bool
	// LogMin is the log's start.
	LogMin contract.Offset
}

// FitReport says what Fit found and did.
type FitReport struct {
	// Replay is where the replay of the log has to start.
	Replay contract.Offset
	// Rebuilt says why entries of records below the limit were dropped; empty
	// if they were not.
	Rebuilt string
	// Files counts the files removed.
	Files int
}

// Fit makes the index what it was when the cursor and the tally were kept: what
// came later is cut, and applied again by the lane. Where it cannot prove that
// what came before is whole, that is dropped too. An owner calls it after Open,
// when the log's end is known and before anything is applied.
//
// If the replay has to start below the limit, lower is called with its start,
// and the tally of what stays, before anything is changed; it makes the lane's
// cursor say so, durably.
//
// With ReadOnly it only tells what is certain from what is not, and lower is not
// called.
func (s *Store) Fit(fit Fit, lower func(replay contract.Offset, tally int64) error) (FitReport, error) {
	s.writer.Lock()
	defer s.writer.Unlock()
	s.pending = s.pending[:0]
	keep, report, err := s.plan(&fit)
	if err != nil {
		return report, err
	}
	if s.opts.ReadOnly {
		s.narrow(keep, fit.Limit, fit.Exact && report.Rebuilt == "")
		return report, nil
	}
	m, err := s.markOf(keep)
	if err != nil {
		return report, err
	}
	if report.Replay < fit.Limit || report.Rebuilt != "" {
		if err := lower(report.Replay, m.tally); err != nil {
			return report, err
		}
	}
	for _, f := range s.list[:max(keep.at, 0)] {
		f.seal()
	}
	s.mark = m
	report.Files = len(s.list) - 1 - keep.at
	if fit.Clean && report.Files == 0 && report.Rebuilt == "" && keep.whole(s) {
		return report, s.adopt(keep)
	}
	err = s.cut(keep)
	var typed *contract.CorruptionError
	if !errors.As(err, &typed) {
		return report, err
	}
	// The entries do not make chains: something else is wrong with them.
	report.Replay, report.Rebuilt = fit.LogMin, err.Error()
	if err := lower(report.Replay, 0); err != nil {
		return report, err
	}
	report.Files = len(s.list)
	s.mark = mark{phy: -1}
	return report, s.cut(place{at: -1})
}

// place names a number of entries: all of the files in front of file number at,
// and those of that file below count. at is -1 for none at all.
type place struct {
	at    int
	count int64
}

// whole reports whether the place is the end of what the file itself says.
func (p place) whole(s *Store) bool {
	return p.at < 0 || s.list[p.at].count() == p.count && s.list[p.at].size == s.fileSize()
}

// plan finds out what can be kept.
func (s *Store) plan(fit *Fit) (place, FitReport, error) {
	none := place{at: -1}
	report := FitReport{Replay: fit.Limit}
	drop := func(format string, args ...any) (place, FitReport, error) {
		report.Replay = fit.LogMin
		if fit.Tally > 0 || slices.ContainsFunc(s.list, func(f *file) bool { return !f.empty() }) {
			report.Rebuilt = fmt.Sprintf(format, args...)
		}
		return none, report, nil
	}
	if fit.Tally == 0 && fit.Exact {
		return none, report, nil
	}
	if fit.Tally <= 0 {
		return drop("it is not known how far the index had come")
	}
	at := -1
	for i := len(s.list) - 1; i >= 0 && at < 0; i-- {
		ok, err := s.hasTally(s.list[i], fit.Tally)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return none, report, err
		}
		if ok {
			at = i
		}
	}
	if at < 0 {
		return drop("the files do not hold what the index had when its cursor was saved")
	}
	for i, f := range s.list[:at] {
		err := f.sound(s.layout)
		if err == nil && s.list[i+1].head.BeginPhysicalOffset < f.head.EndPhysicalOffset {
			err = damaged(f, 0, ErrHeader)
		}
		if err != nil {
			return drop("%v", err)
		}
	}
	if fit.Exact {
		return place{at, tallyCount(fit.Tally)}, report, nil
	}
	// The log was cut below the cursor. The file of that time may have been
	// written since, so that only those in front of it are certain.
	for at--; at >= 0; at-- {
		if h := &s.list[at].head; h.EndPhysicalOffset < int64(fit.Limit) {
			// The record of the last entry may have more in the next file.
			report.Replay = max(contract.Offset(h.EndPhysicalOffset), fit.LogMin)
			report.Rebuilt = fmt.Sprintf("the log was cut at %d", fit.Limit)
			return place{at, s.list[at].count()}, report, nil
		}
	}
	return drop("the log was cut at %d", fit.Limit)
}

// narrow is Fit for a store that is only read: what lies below the place is
// vouched for. Behind it may stand what the owner, or a Java broker, has written
// since, or what a power cut left of it: it is looked at, and its faults are
// none.
func (s *Store) narrow(keep place, limit contract.Offset, exact bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		for _, f := range *s.shown.Load() {
			f.seal()
		}
	}()
	s.view = view{}
	if !exact {
		return // Every file is seen as it says itself; nothing is promised.
	}
	loose := slices.DeleteFunc(slices.Clone(s.list[keep.at+1:]), func(f *file) bool { return f.sound(s.layout) != nil })
	list := s.list[: keep.at+1 : keep.at+1]
	s.view = view{exact: true, limit: int64(limit), trusted: keep.at + 1, all: append(list, loose...)}
	s.show(list)
	if keep.at >= 0 {
		h := &s.list[keep.at].head
		h.Count, h.UsedSlots = int32(keep.count), min(h.UsedSlots, int32(keep.count)-1)
	}
}

// markOf is the mark of a place, as read from the files.
func (s *Store) markOf(p place) (mark, error) {
	if p.at < 0 {
		return mark{phy: -1}, nil
	}
	f := s.list[p.at]
	m := mark{file: f, count: p.count}
	err := s.with(f, contract.OpOpen, func(h *handle) error {
		tail := make([]byte, s.entryAt(p.count)-s.tailStart(p.count))
		if err := h.readAt(tail, s.tailStart(p.count)); err != nil {
			return err
		}
		var last [entrySize]byte
		err := h.readAt(last[:], s.entryAt(p.count-1))
		if err != nil {
			return err
		}
		m.phy = decodeEntry(last[:]).PhysicalOffset
		head := f.head
		head.Count = int32(p.count)
		m.tally, err = tallyOf(f.name, &head, tail)
		return err
	})
	return m, err
}

// view is what a read-only store shows.
type view struct {
	// exact says that the lane's cursor vouches for the entries in Store.list,
	// which are those of records below limit. all has the files behind, too:
	// the first trusted ones are those of the list.
	exact   bool
	limit   int64
	trusted int
	all     []*file
}

// Exact reports, of a read-only store, whether Fit found what the lane's cursor
// vouches for: then every record below it is found.
func (s *Store) Exact() bool { return s.view.exact }
