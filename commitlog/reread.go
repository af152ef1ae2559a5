package commitlog

import (
	"errors"
	"io"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// reread takes up a state that the owner wrote since, and tells whether there is
// one. What cannot be read, or is of another log, leaves st as it is.
func (s *sidecar) reread(st *stateSlots) bool {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	fresh, newer := st.newer()
	if newer {
		st.State = fresh
	}
	return newer
}

// newer reads a state that the owner wrote since; false if there is none. Under
// stateMu.
func (st *stateSlots) newer() (fresh codec.State, newer bool) {
	scratch := slotScratch.Get().(*[codec.StateFileSize]byte)
	defer slotScratch.Put(scratch)
	if n, err := st.file.file.ReadAt(scratch[:], 0); n < len(scratch) || err != nil && !errors.Is(err, io.EOF) {
		return fresh, false
	}
	page, err := codec.OpenStateFile(scratch[:])
	if err != nil {
		return fresh, false
	}
	var v codec.StateView
	if _, err := page.Newest(&v); err != nil || v.LogID() != st.LogID || v.Sequence() <= st.Sequence {
		return fresh, false
	}
	err = codec.ParseState(v.Bytes(), &fresh)
	return fresh, err == nil && fresh.Incompatible == 0 && len(fresh.Epochs) >= min(len(st.Epochs), 1)
}

// CutSince reports whether the owner cut the log since it was refreshed: what looks
// like damage then need not be any.
func (r *ReadOnly) CutSince() bool {
	if r.found.state != sideOK {
		return false
	}
	r.side.stateMu.Lock()
	defer r.side.stateMu.Unlock()
	st := &r.side.state
	fresh, newer := st.newer()
	n := len(fresh.Epochs)
	return newer && n > 0 && (len(st.Epochs) == 0 || fresh.Epochs[n-1].Epoch != st.Epochs[len(st.Epochs)-1].Epoch)
}

// readBound reads the bound again, as the owner may have written it since.
func (s *sidecar) readBound() (codec.Bound, error) {
	s.boundMu.Lock()
	defer s.boundMu.Unlock()
	best := s.bound
	var v codec.BoundView
	var b [codec.BoundSize]byte
	for slot := range int64(2) {
		if _, err := s.boundFile.file.ReadAt(b[:], slot*s.boundFile.size); err != nil {
			return best, err
		}
		if v.Parse(b[:]) == nil && v.LogID() == best.LogID && v.Sequence() >= best.Sequence {
			best.Sequence, best.Epoch, best.Durable, best.Appended, best.Window = v.Sequence(), v.Epoch(), v.Durable(), v.Appended(), v.Window()
		}
	}
	s.bound = best
	return best, nil
}

// takeUp reads the sidecar again after the bound was read, so that whatever lies
// below that is of an epoch which is known. An owner that cuts notes the epoch
// first; a bound of before counts up to the cut only.
func (r *ReadOnly) takeUp(bound int64) int64 {
	if r.found.state == sideOK && r.side.reread(&r.side.state) {
		r.side.table.Store(nil)
		r.strange = r.stranger
	}
	if r.side.cursorsFound == sideOK {
		r.side.reread(&r.side.cursors)
	}
	for _, e := range r.Epochs() {
		if r.Bounded() && e.Epoch > r.first && e.Epoch > contract.Epoch(r.side.bound.Epoch) {
			bound = min(bound, int64(e.Start))
		}
	}
	return bound
}
