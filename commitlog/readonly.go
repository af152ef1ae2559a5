package commitlog

import (
	"errors"
	"io/fs"
	"path"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// ReadOnly is the log opened for reading: no lock is taken and nothing is
// changed, so any number of them, in this process or others, may stand beside
// the one owner. It sees what is durable by the published bound, or the last
// valid record.
type ReadOnly struct {
	reader
	opt  Options
	side *sidecar
	// Sidecar tells what the sidecar's files were.
	found    sidecarFound
	appended bool
}

// OpenReadOnly opens the log in opt.Dir for reading. With appended, it sees up
// to the last valid record, beyond the published bound. Of opt only FS,
// Catalog, Dir, SegmentSize and NoVerifyReads count.
func OpenReadOnly(opt Options, appended bool) (*ReadOnly, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	opt = opt.withDefaults()
	if opt.Catalog == nil {
		opt.Catalog = NewDirCatalog(opt.FS, path.Join(opt.Dir, "commitlog"))
	}
	r := &ReadOnly{opt: opt, appended: appended}
	opt.Visibility, opt.Confirmer = contract.VisibilityAppended, nil
	r.reader.init(opt)
	var err error
	if r.side, r.found, err = loadSidecar(opt.FS, opt.Dir, vfs.ReadOnly); err != nil {
		return nil, openError(contract.ComponentSidecar, err)
	}
	if sideNewerThanUs(startFacts{state: r.found.state, bound: r.found.bound}) {
		return nil, errors.Join(contract.NewError(contract.KindNewerFormat, contract.OpOpen, contract.ComponentSidecar,
			r.found.reason, nil), r.side.close())
	}
	if err := r.Refresh(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Refresh takes up segments and a bound that the owner published since.
func (r *ReadOnly) Refresh() error {
	if err := r.refreshSegments(); err != nil {
		return err
	}
	list := r.segs.Load()
	end, known := list.min(), false
	if r.found.bound == sideOK && r.found.state == sideOK {
		bound, err := r.side.readBound()
		if err == nil && bound.Durable >= list.min() {
			end, known = bound.Durable, true
			if len(list.segs) > 0 {
				end = min(end, list.last().end()) // the owner may have rolled meanwhile
			}
		}
	}
	if !known || r.appended {
		s := newScanner(list, *r.ranges.Load(), end, list.min()+int64(len(list.segs))*list.size)
		for s.Next() {
		}
		end = s.off
	}
	// The owner may have truncated: then all go back.
	r.lower(end)
	r.reader.appended.Store(end)
	r.durable.Store(end)
	r.publish()
	return nil
}

// refreshTries is how often the list of segments is read again when one of them
// goes in between.
const refreshTries = 10

// refreshSegments maps segments that are new and drops those that are gone.
func (r *ReadOnly) refreshSegments() error {
	for try := 1; ; try++ {
		err := r.mapSegments()
		if try == refreshTries || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
}

func (r *ReadOnly) mapSegments() error {
	files, err := r.opt.Catalog.List()
	if err != nil {
		return openError(contract.ComponentLog, err)
	}
	if n := len(files); n > 0 && files[n-1].Size == 0 {
		files = files[:n-1]
	}
	old := r.segs.Load()
	size, err := checkFiles(files, r.opt.SegmentSize)
	if err != nil {
		return err
	}
	if len(files) == 0 && r.found.state == sideOK {
		size = r.side.state.SegmentSize
	}
	r.size = size
	if r.found.state == sideOK {
		ranges := r.side.ranges()
		r.ranges.Store(&ranges)
	}
	list := &segmentList{size: size}
	for _, f := range files {
		// After a truncation another file may stand under the name.
		if seg := old.find(int64(f.Base)); seg != nil && seg.base == int64(f.Base) && seg.file.CheckName(r.opt.FS) == nil {
			list.segs = append(list.segs, seg)
			continue
		}
		file, err := segmentsReadOnly.open(r.opt.FS, f.Path, size)
		if err != nil {
			for _, seg := range list.segs {
				if old.find(seg.base) != seg {
					seg.file.Close(nil)
				}
			}
			return openError(contract.ComponentSegment, err)
		}
		list.segs = append(list.segs, &segment{base: int64(f.Base), file: file})
	}
	r.segs.Store(list)
	for _, seg := range old.segs {
		if now := list.find(seg.base); now != seg {
			seg.file.Close(nil)
		}
	}
	return nil
}

// Bounded reports whether the end comes from a published bound.
func (r *ReadOnly) Bounded() bool { return r.found.bound == sideOK && r.found.state == sideOK }

// Epochs returns the epoch table, empty without a sidecar.
func (r *ReadOnly) Epochs() []contract.EpochStart {
	if r.found.state != sideOK {
		return nil
	}
	return r.side.epochs()
}

// Ranges returns the parts of the log in which every record carries a checksum
// of the whole record.
func (r *ReadOnly) Ranges() []contract.Range { return *r.ranges.Load() }

// LoadCursor returns the persisted cursor of a lane.
func (r *ReadOnly) LoadCursor(lane contract.Lane) (contract.Cursor, bool, error) {
	return r.side.LoadCursor(lane)
}

// Sidecar describes the state of the sidecar's files, for people.
func (r *ReadOnly) Sidecar() string {
	return "state " + r.found.state.String() + ", bound " + r.found.bound.String() + ", cursors " + r.side.cursorsFound.String()
}

// ID returns the log's identity; zero without a sidecar.
func (r *ReadOnly) ID() [16]byte { return r.side.state.LogID }

// SegmentSize returns the length of a segment in bytes.
func (r *ReadOnly) SegmentSize() int64 { return r.size }

// Close ends reading. Records under a lease stay valid until released.
func (r *ReadOnly) Close() error {
	r.segs.Load().close()
	return r.side.close()
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
			best.Sequence, best.Durable, best.Appended, best.Window = v.Sequence(), v.Durable(), v.Appended(), v.Window()
		}
	}
	s.bound = best
	return best, nil
}
