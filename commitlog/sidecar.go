package commitlog

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// The sidecar is what the log keeps beside the segments: three small files in
// <root>/stratalog, each of two slots, preallocated, every slot checksummed.
//
//	bound   the durable bound: written after each commit, synced now and then
//	state   log id, epochs, ranges we wrote, end of the log: synced at each write
//	cursors where each lane is: synced at each write
//
// Rule (S1): the slot whose content is known to be on disk is never written.
// A write goes to the other slot, and only a successful sync swaps the two. So
// a power cut leaves at least one whole slot.
const (
	// SidecarDir is the sidecar's directory below the store root.
	SidecarDir = "stratalog"

	boundName   = "bound"
	stateName   = "state"
	cursorsName = "cursors"
	maxEpochs   = 1000
	maxRanges   = 1000

	// openEnd is the end of the range that is being written.
	openEnd = contract.Offset(math.MaxInt64)
)

// sideStatus is what a sidecar file turned out to be.
type sideStatus uint8

const (
	sideMissing sideStatus = iota
	sideOK
	sideDamaged
	sideNewer

	sideStatusCount
)

// String returns a lower-case word.
func (s sideStatus) String() string {
	return [...]string{"missing", "ok", "damaged", "newer"}[s]
}

// sidecar is the log's memory of itself. It is safe for concurrent use.
type sidecar struct {
	fs  vfs.FS
	dir string

	// boundMu guards bound and its file.
	boundMu   sync.Mutex
	bound     codec.Bound
	boundFile *slotFile
	boundBuf  [codec.BoundSize]byte
	// boundBusy tells that a sync of the bound runs, boundLate that what
	// putBound recorded meanwhile is still to be written.
	boundBusy bool
	boundLate bool
	// boundSync lets one sync of the bound run at a time; taken before boundMu.
	boundSync sync.Mutex

	// stateMu guards state and cursors. boundMu is never taken inside it.
	stateMu sync.Mutex
	state   stateSlots
	cursors stateSlots
	// table is the epoch table as handed out, nil when it has to be made.
	table atomic.Pointer[[]contract.EpochStart]
	// cursorsFound says what the cursors file was when it was loaded.
	cursorsFound sideStatus
}

// sidecarFound is what loading a sidecar told.
type sidecarFound struct {
	bound sideStatus
	state sideStatus
	// reason describes damage for the report.
	reason string
}

// loadSidecar reads the sidecar in root. Nothing is written.
func loadSidecar(fsys vfs.FS, root string, flag vfs.Flag) (*sidecar, sidecarFound, error) {
	s := &sidecar{fs: fsys, dir: path.Join(root, SidecarDir)}
	var found sidecarFound
	var err error
	if found.state, err = s.state.load(fsys, path.Join(s.dir, stateName), flag); err != nil {
		return nil, found, err
	}
	if found.state == sideOK && len(s.state.Epochs) == 0 {
		found.state = sideDamaged
	}
	if found.state == sideNewer {
		found.reason = fmt.Sprintf("state needs a newer version (incompatible feature bits %#x)", s.state.Incompatible)
	}
	if s.cursorsFound, err = s.cursors.load(fsys, path.Join(s.dir, cursorsName), flag); err != nil {
		return nil, found, errors.Join(err, s.close())
	}
	if s.cursorsFound == sideOK && found.state == sideOK && s.cursors.LogID != s.state.LogID {
		s.cursorsFound = sideDamaged
	}
	var v codec.BoundView
	s.boundFile, found.bound, err = openSlots(fsys, path.Join(s.dir, boundName), codec.BoundFileSlotSize, flag,
		func(b []byte) (int, error) {
			page, err := codec.OpenBoundFile(b)
			if err != nil {
				return -1, err
			}
			slot, err := page.Newest(&v)
			if err == nil {
				s.bound = codec.Bound{Sequence: v.Sequence(), Epoch: v.Epoch(), Durable: v.Durable(), Window: v.Window(),
					Appended: v.Appended(), LogID: v.LogID()}
			}
			return slot, err
		})
	if err != nil {
		return nil, found, errors.Join(err, s.close())
	}
	if found.bound == sideOK && found.state == sideOK && s.bound.LogID != s.state.LogID {
		found.bound = sideDamaged
		found.reason = "the bound belongs to another log"
	}
	if found.reason == "" {
		found.reason = describeSidecar(found, s.cursorsFound)
	}
	return s, found, nil
}

// describeSidecar names the files that are damaged, or missing beside others.
func describeSidecar(found sidecarFound, cursors sideStatus) string {
	if sidecarNone(startFacts{state: found.state, bound: found.bound}) && cursors == sideMissing {
		return ""
	}
	var bad []string
	for i, status := range []sideStatus{found.state, found.bound, cursors} {
		if status != sideOK {
			bad = append(bad, [...]string{stateName, boundName, cursorsName}[i]+" is "+status.String())
		}
	}
	return strings.Join(bad, ", ")
}

// create makes what is missing or damaged of the sidecar's files for a log that
// starts at first, and what is there durable. The caller syncs the directory.
func (s *sidecar) create(found sidecarFound, segmentSize, first, now int64) error {
	if err := s.fs.MkdirAll(s.dir); err != nil {
		return err
	}
	cursorsOK := s.cursorsFound == sideOK && found.state == sideOK
	if found.state == sideOK {
		if err := s.state.file.settle(); err != nil {
			return err
		}
	}
	if cursorsOK {
		if err := s.cursors.file.settle(); err != nil {
			return err
		}
	}
	if found.bound == sideOK {
		if err := s.boundFile.settle(); err != nil {
			return err
		}
	}
	if found.state != sideOK {
		s.state.State = codec.State{SegmentSize: segmentSize, CreatedAt: now,
			Epochs: []codec.EpochEntry{{Epoch: 1, Start: 0}}}
		if found.bound == sideOK {
			s.state.LogID = s.bound.LogID
		} else if _, err := rand.Read(s.state.LogID[:]); err != nil {
			return err
		}
		if err := s.state.create(s.fs, path.Join(s.dir, stateName)); err != nil {
			return err
		}
	}
	if !cursorsOK {
		s.cursors.State = codec.State{LogID: s.state.LogID, SegmentSize: segmentSize, CreatedAt: now}
		if err := s.cursors.create(s.fs, path.Join(s.dir, cursorsName)); err != nil {
			return err
		}
	}
	if found.bound != sideOK {
		if s.boundFile != nil {
			if err := s.boundFile.file.Close(); err != nil {
				return err
			}
		}
		s.bound = codec.Bound{Sequence: 1, Epoch: s.epochLocked(), Durable: first, Appended: first, LogID: s.state.LogID}
		if _, err := s.bound.Encode(s.boundBuf[:]); err != nil {
			return err
		}
		f, err := createSlots(s.fs, path.Join(s.dir, boundName), codec.BoundFileSlotSize, s.boundBuf[:])
		if err != nil {
			return err
		}
		s.boundFile = f
	}
	return nil
}

// update changes the state and makes the change durable.
func (s *sidecar) update(change func(*codec.State)) error {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	return s.state.update(change)
}

// newEpoch starts a new epoch at start, durably. An epoch that starts there
// already, with nothing behind it that was ever durable, is used again: no
// cursor of it can lie behind start.
func (s *sidecar) newEpoch(start int64) error {
	s.boundMu.Lock()
	durable := s.bound.Durable
	s.boundMu.Unlock()
	s.stateMu.Lock()
	last := s.state.Epochs[len(s.state.Epochs)-1]
	s.stateMu.Unlock()
	again := last.Start == start && last.Epoch > 1 && durable <= start
	defer s.table.Store(nil)
	return s.update(func(st *codec.State) {
		// From here on the log may rightly end as low as start.
		if st.End = min(st.End, start); again {
			return
		}
		st.Epochs = append(st.Epochs, codec.EpochEntry{Epoch: last.Epoch + 1, Start: start})
		if n := len(st.Epochs) - maxEpochs; n > 0 {
			st.Epochs = append(st.Epochs[:0], st.Epochs[n:]...)
		}
	})
}

// epochs returns the epoch table; nobody changes what was returned.
func (s *sidecar) epochs() []contract.EpochStart {
	if table := s.table.Load(); table != nil {
		return *table
	}
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	table := make([]contract.EpochStart, len(s.state.Epochs))
	for i, e := range s.state.Epochs {
		table[i] = contract.EpochStart{Epoch: contract.Epoch(e.Epoch), Start: contract.Offset(e.Start)}
	}
	s.table.Store(&table)
	return table
}

func (s *sidecar) epochLocked() uint32 {
	return s.state.Epochs[len(s.state.Epochs)-1].Epoch
}

// epoch returns the current epoch, 0 if there is no sidecar.
func (s *sidecar) epoch() contract.Epoch {
	table := s.epochs()
	if len(table) == 0 {
		return 0
	}
	return table[len(table)-1].Epoch
}

// ranges returns the parts of the log that we wrote with a checksum on every
// record.
func (s *sidecar) ranges() ourRanges {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	ranges := make(ourRanges, len(s.state.Ranges))
	for i, r := range s.state.Ranges {
		ranges[i] = contract.Range{Start: contract.Offset(r.Start), End: contract.Offset(r.End)}
	}
	return ranges
}

// clipRanges takes what lies at or behind end out of the ranges: other bytes
// will stand there.
func clipRanges(st *codec.State, end int64) {
	kept := st.Ranges[:0]
	for _, r := range st.Ranges {
		if r.Start >= end {
			continue
		}
		if r.End != int64(openEnd) {
			r.End = min(r.End, end)
		}
		kept = append(kept, r)
	}
	st.Ranges = kept
}

// closeRange ends the open range at end, if there is one.
func closeRange(st *codec.State, end int64) {
	n := len(st.Ranges)
	if n == 0 || st.Ranges[n-1].End != int64(openEnd) {
		return
	}
	if st.Ranges[n-1].Start >= end {
		st.Ranges = st.Ranges[:n-1]
		return
	}
	st.Ranges[n-1].End = end
}

// openRange starts a range at start that ends nowhere yet, joined to the one
// before if they touch.
func openRange(st *codec.State, start int64) {
	n := len(st.Ranges)
	if n > 0 && st.Ranges[n-1].End >= start {
		st.Ranges[n-1].End = int64(openEnd)
		return
	}
	st.Ranges = append(st.Ranges, codec.RangeEntry{Start: start, End: int64(openEnd)})
	if n := len(st.Ranges) - maxRanges; n > 0 {
		st.Ranges = append(st.Ranges[:0], st.Ranges[n:]...)
	}
}

// errCursors is returned by LoadCursor when the cursors file could not be read.
var errCursors = errors.New("the cursors file is damaged or belongs to another log")

// LoadCursor returns the persisted cursor of lane; false if there is none, an
// error if the file that held it was damaged.
func (s *sidecar) LoadCursor(lane contract.Lane) (contract.Cursor, bool, error) {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	if e := s.cursor(lane); e != nil {
		return contract.Cursor{Lane: lane, Epoch: contract.Epoch(e.Epoch), Next: contract.Offset(e.Next)}, true, nil
	}
	if s.cursorsFound == sideDamaged || s.cursorsFound == sideNewer {
		return contract.Cursor{}, false, &contract.CorruptionError{File: path.Join(s.dir, cursorsName), Cause: errCursors}
	}
	return contract.Cursor{}, false, nil
}

// cursor returns the entry of lane, or nil. Under stateMu.
func (s *sidecar) cursor(lane contract.Lane) *codec.CursorEntry {
	for i := range s.cursors.Cursors {
		if contract.Lane(s.cursors.Cursors[i].Lane) == lane {
			return &s.cursors.Cursors[i]
		}
	}
	return nil
}

// tally returns what was saved with the cursor of lane, -1 if nothing was.
func (s *sidecar) tally(lane contract.Lane) int64 {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	if e := s.cursor(lane); e != nil {
		return e.Tally
	}
	return -1
}

// SaveCursor makes c and what its lane counts there durable.
func (s *sidecar) SaveCursor(c contract.Cursor, tally int64) error {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	return s.cursors.update(func(st *codec.State) {
		entry := codec.CursorEntry{Lane: uint8(c.Lane), Epoch: uint32(c.Epoch), Next: int64(c.Next), Tally: tally}
		if e := s.cursor(c.Lane); e != nil {
			*e = entry
			return
		}
		st.Cursors = append(st.Cursors, entry)
	})
}

// bothSlots writes each file once more, so that both of its slots hold what
// they hold now, and one that is damaged later does not matter.
func (s *sidecar) bothSlots() error {
	err := s.rewriteBound()
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	same := func(*codec.State) {}
	return errors.Join(err, s.state.update(same), s.cursors.update(same))
}

// close closes the files.
func (s *sidecar) close() error {
	err := errors.Join(s.state.close(), s.cursors.close())
	if s.boundFile != nil {
		err = errors.Join(err, s.boundFile.file.Close())
	}
	return err
}

// reopen takes fresh descriptors after a failure and writes what was not known
// to be on disk once more.
func (s *sidecar) reopen() error {
	s.boundSync.Lock()
	defer s.boundSync.Unlock()
	s.boundMu.Lock()
	defer s.boundMu.Unlock()
	if err := s.boundFile.reopen(s.fs, path.Join(s.dir, boundName)); err != nil {
		return err
	}
	s.boundLate = false
	if err := s.boundFile.put(s.boundBuf[:]); err != nil {
		return err
	}
	if err := s.boundFile.sync(); err != nil {
		return err
	}
	return s.heal()
}

// heal lets state and cursors be written again after a failure: through fresh
// descriptors, the slot that failed from memory.
func (s *sidecar) heal() error {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	for name, st := range map[string]*stateSlots{stateName: &s.state, cursorsName: &s.cursors} {
		if st.failed == nil {
			continue
		}
		if err := st.file.reopen(s.fs, path.Join(s.dir, name)); err != nil {
			return err
		}
		st.failed = nil
		if err := st.update(func(*codec.State) {}); err != nil {
			return err
		}
	}
	return nil
}
