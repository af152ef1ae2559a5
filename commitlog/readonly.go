package commitlog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
	"github.com/stratalog/stratalog/mmap"
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
	stranger bool // now
	strange  bool // at any time since the state was read
	salvage  bool
	over     bool // see PassOver
	// first is the epoch when the log was opened.
	first  contract.Epoch
	faults []OpenFault
}

// OpenFault is something for which the log cannot be opened in order.
type OpenFault struct {
	Damage *contract.CorruptionError
	// Missing tells that segments are not there; else File is none, or not a
	// whole one, and was left out.
	Missing bool
}

// OpenReadOnly opens the log in opt.Dir for reading. With appended, it sees up
// to the last valid record, beyond the published bound. Of opt only FS,
// Catalog, Dir, SegmentSize, Stranger and NoVerifyReads count. A directory without a log
// is contract.ErrNotFound; segments that are missing, also below the published
// bound, are a *contract.CorruptionError.
func OpenReadOnly(opt Options, appended bool) (*ReadOnly, error) {
	return openReadOnly(opt, &ReadOnly{appended: appended, stranger: opt.Stranger, strange: opt.Stranger})
}

// OpenSalvage is OpenReadOnly for a log with segments missing and files that
// are none: what is there can be read, and Faults tells the rest.
func OpenSalvage(opt Options, appended bool) (*ReadOnly, error) {
	return openReadOnly(opt, &ReadOnly{appended: appended, salvage: true, stranger: opt.Stranger, strange: opt.Stranger})
}

func openReadOnly(opt Options, r *ReadOnly) (*ReadOnly, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	opt = opt.withDefaults()
	if opt.Catalog == nil {
		opt.Catalog = NewDirCatalog(opt.FS, path.Join(opt.Dir, "commitlog"))
	}
	r.opt = opt
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
	r.first = r.Epoch()
	if err := r.Refresh(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Stranger tells whether another program owns the log, or has since its owner
// closed it or died: then the published bound is not the end, and what stands
// behind it need not be as the owner writes it. It counts from the next Refresh.
func (r *ReadOnly) Stranger(is bool) { r.stranger, r.strange = is, r.strange || is }

// Refresh takes up segments, a bound, epochs and cursors that the owner published
// since. If it fails, r sees what it saw before.
func (r *ReadOnly) Refresh() error {
	list, bound, err := r.look()
	if err != nil {
		return err
	}
	bound = r.takeUp(bound)
	old := r.segs.Swap(list)
	r.size = list.size
	if r.found.state == sideOK {
		ranges := r.side.ranges()
		if r.strange {
			ranges.endAt(contract.Offset(r.side.state.End))
		}
		r.ranges.Store(&ranges)
	}
	list.release(old)
	end := list.min()
	known := r.Bounded() && bound >= end
	if known {
		end = min(bound, list.end()) // beyond it only when salvaging
	}
	if !known || r.appended || r.stranger {
		end = r.lastValid(list, max(end, list.lastRun()))
	}
	// The owner may have truncated: then all go back.
	r.lower(end)
	r.reader.appended.Store(end)
	r.durable.Store(end)
	r.publish()
	return nil
}

// OpenEnded tells that the log ends where its last valid record does, and not at
// a published bound: then what is invalid there may be damage.
func (r *ReadOnly) OpenEnded() bool { return !r.Bounded() || r.stranger }

// PassOver goes on behind what is invalid at the end of an open-ended log, if a
// valid record stands there: then it is damage, which reads and Verify meet at its
// place. It holds for each Refresh from now on.
func (r *ReadOnly) PassOver() error {
	if r.over || !r.OpenEnded() {
		return nil
	}
	r.over = true
	return r.Refresh()
}

// lastValid returns where the records from from on end.
func (r *ReadOnly) lastValid(list *segmentList, from int64) int64 {
	ranges := *r.ranges.Load()
	for at, end := from, from; ; {
		s := newScanner(list, ranges, at, list.end())
		for s.Next() {
		}
		if s.off > at {
			end = s.off
		}
		if !r.over || !r.OpenEnded() {
			return end
		}
		if at = nextValid(list, ranges, s.off); at < 0 {
			return end
		}
	}
}

// nextValid returns the first place behind x where a record or the mark at the end
// of a segment stands, -1 if there is none or it cannot be read.
func nextValid(list *segmentList, ranges ourRanges, x int64) int64 {
	var v codec.MessageView
	for _, seg := range list.segs {
		if seg.end() <= x {
			continue
		}
		from := max(x, seg.base)
		if seg.populateTo(seg.end()-seg.base) != nil {
			return -1
		}
		whole := seg.file.Bytes()
		if firstNonZero(whole[from-seg.base:]) < 0 {
			continue
		}
		// An owner writes in order: what became valid meanwhile is no damage.
		if kind, _, _ := examine(&v, whole[from-seg.base:], from, ranges.contains(from)); kind == placeRecord {
			return from
		}
		if next := resync(seg, whole, ranges, from, seg.end()); next < seg.end() {
			return next
		}
	}
	return -1
}

// refreshTries is how often the directory is read again when it changes in
// between.
const refreshTries = 10

// look maps the segments that exist and returns them with the published bound.
// The bound is read first: an owner makes a segment before it publishes a bound
// in it, and takes the bound back before it removes one.
func (r *ReadOnly) look() (*segmentList, int64, error) {
	for try := 1; ; try++ {
		bound := r.publishedBound()
		r.faults = nil
		list, err := r.mapSegments()
		if errors.Is(err, fs.ErrNotExist) && try < refreshTries {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		gone := r.gone(list, bound)
		switch {
		case gone == nil:
			return list, bound, nil
		case try < refreshTries:
		case r.salvage:
			r.noteMissing(gone)
			return list, bound, nil
		default:
			r.segs.Load().release(list)
			return nil, 0, gone
		}
		r.segs.Load().release(list)
	}
}

// publishedBound returns the durable bound, -1 if it is not known.
func (r *ReadOnly) publishedBound() int64 {
	if r.found.bound != sideOK {
		return -1
	}
	bound, err := r.side.readBound()
	if err != nil {
		return -1
	}
	return bound.Durable
}

// gone returns the damage if list ends below bound.
func (r *ReadOnly) gone(list *segmentList, bound int64) *contract.CorruptionError {
	end := list.end()
	if len(list.segs) == 0 && r.found.state == sideOK {
		end = min(r.side.state.FirstSegment, bound)
	}
	// As for the owner: beside segments a bound without a state is not trusted.
	if bound <= list.end() || len(list.segs) > 0 && r.found.state != sideOK {
		return nil
	}
	return r.missing(end, bound, errSegmentsGone)
}

// missing is the damage of segments that should hold [from, to).
func (r *ReadOnly) missing(from, to int64, cause error) *contract.CorruptionError {
	file, err := r.opt.Catalog.Place(contract.Offset(from))
	if err != nil {
		file = segmentName(contract.Offset(from))
	}
	return &contract.CorruptionError{File: file, Cause: cause,
		Lost: contract.Range{Start: contract.Offset(from), End: contract.Offset(to)}}
}

// noteMissing notes segments that are missing, unless that is because of a file
// that was left out.
func (r *ReadOnly) noteMissing(damage *contract.CorruptionError) {
	for _, f := range r.faults {
		if f.Damage.File == damage.File && damage.Lost.End <= f.Damage.Lost.End {
			return
		}
	}
	r.faults = append(r.faults, OpenFault{damage, true})
}

// listFiles lists the segments; with salvage it leaves out what is none.
func (r *ReadOnly) listFiles() ([]SegmentFile, error) {
	c, ok := r.opt.Catalog.(*dirCatalog)
	list := r.opt.Catalog.List
	if ok && r.salvage {
		list = func() ([]SegmentFile, error) { return c.list(r.leaveOut) }
	}
	files, err := list()
	if errors.Is(err, fs.ErrNotExist) && !r.anyDir() {
		if r.found.state == sideOK || r.found.bound == sideOK {
			return nil, nil // there was a log
		}
		return nil, contract.NewError(contract.KindNotFound, contract.OpOpen, contract.ComponentLog, "no store", err)
	}
	if err != nil {
		return nil, openError(contract.ComponentLog, err)
	}
	if n := len(files); n > 0 && files[n-1].Size == 0 {
		files = files[:n-1]
	}
	return files, nil
}

// leaveOut notes a file that is not used.
func (r *ReadOnly) leaveOut(damage *contract.CorruptionError) error {
	r.faults = append(r.faults, OpenFault{Damage: damage})
	return nil
}

// anyDir reports whether a directory for segments exists.
func (r *ReadOnly) anyDir() bool {
	for _, dir := range r.opt.Catalog.Dirs() {
		if _, err := r.opt.FS.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// sound checks files and returns the segment size. With salvage it leaves out
// what cannot be a segment, and notes gaps.
func (r *ReadOnly) sound(files []SegmentFile) ([]SegmentFile, int64, error) {
	size, err := checkFiles(files, r.opt.SegmentSize)
	if err == nil && len(files) == 0 && r.found.state == sideOK {
		size = r.side.state.SegmentSize
	}
	if err == nil || !r.salvage || !errors.Is(err, contract.ErrCorrupt) {
		return files, size, err
	}
	if size = r.opt.SegmentSize; size == 0 {
		size = r.likelySize(files)
	}
	if size < MinSegmentSize || size > MaxSegmentSize {
		return nil, 0, err
	}
	var whole []SegmentFile
	for _, f := range files {
		next := f.Base + contract.Offset(size)
		cause := errMisaligned
		if f.Size != size {
			cause = &mmap.LengthError{Path: path.Base(f.Path), Got: f.Size, Want: size}
		} else if int64(f.Base)%size == 0 {
			whole = append(whole, f)
			continue
		}
		_ = r.leaveOut(&contract.CorruptionError{File: f.Path, Offset: min(f.Size, size), Cause: cause,
			Lost: contract.Range{Start: f.Base, End: next}})
	}
	for i := 1; i < len(whole); i++ {
		if end := whole[i-1].Base + contract.Offset(size); end != whole[i].Base {
			r.noteMissing(r.missing(int64(end), int64(whole[i].Base), errGap))
		}
	}
	return whole, size, nil
}

// likelySize is the segment size that the sidecar tells, or the one that most
// files have.
func (r *ReadOnly) likelySize(files []SegmentFile) int64 {
	if r.found.state == sideOK {
		return r.side.state.SegmentSize
	}
	count, best := map[int64]int{}, int64(0)
	for _, f := range files {
		if count[f.Size]++; count[f.Size] > count[best] {
			best = f.Size
		}
	}
	return best
}

// mapSegments maps the segments that exist; those that are mapped already are
// taken over.
func (r *ReadOnly) mapSegments() (*segmentList, error) {
	files, err := r.listFiles()
	if err != nil {
		return nil, err
	}
	files, size, err := r.sound(files)
	if err != nil {
		return nil, err
	}
	old := r.segs.Load()
	list := &segmentList{size: size}
	for i, f := range files {
		list.gaps = list.gaps || i > 0 && f.Base != files[i-1].Base+contract.Offset(size)
		// After a truncation another file may stand under the name.
		if seg := old.find(int64(f.Base)); seg != nil && seg.base == int64(f.Base) && seg.file.CheckName(r.opt.FS) == nil {
			list.segs = append(list.segs, seg)
			continue
		}
		file, err := segmentsReadOnly.open(r.opt.FS, f.Path, size)
		if err != nil {
			old.release(list)
			return nil, openError(contract.ComponentSegment, err)
		}
		list.segs = append(list.segs, &segment{base: int64(f.Base), file: file})
	}
	return list, nil
}

// release closes the segments of other that are not l's.
func (l *segmentList) release(other *segmentList) {
	for _, seg := range other.segs {
		if l.find(seg.base) != seg {
			seg.file.Close(nil)
		}
	}
}

// lastRun returns where the last stretch of l without a gap starts.
func (l *segmentList) lastRun() int64 {
	start := l.min()
	for i, seg := range l.segs {
		if i > 0 && seg.base != l.segs[i-1].end() {
			start = seg.base
		}
	}
	return start
}

// Faults returns what was met by OpenSalvage, or by the last Refresh since.
func (r *ReadOnly) Faults() []OpenFault { return r.faults }

// FirstSegment returns the start of the log's first segment as the owner wrote
// it down last; false if that is not known.
func (r *ReadOnly) FirstSegment() (contract.Offset, bool) {
	return contract.Offset(r.side.state.FirstSegment), r.found.state == sideOK
}

// SidecarDamage returns, as *contract.CorruptionError, the slots of the
// sidecar's files that are damaged beside a whole one, which does not matter,
// and the cursors file if nothing in it can be read.
func (r *ReadOnly) SidecarDamage() (slots []error, cursors error) {
	var v codec.BoundView
	var st codec.State
	for _, f := range []struct {
		name   string
		size   int64
		status sideStatus
		parse  func([]byte) error
	}{
		{stateName, codec.StateFileSlotSize, r.found.state, func(b []byte) error { st = codec.State{}; return codec.ParseState(b, &st) }},
		{boundName, codec.BoundFileSlotSize, r.found.bound, v.Parse},
		{cursorsName, codec.StateFileSlotSize, r.side.cursorsFound, func(b []byte) error { st = codec.State{}; return codec.ParseState(b, &st) }},
	} {
		name := path.Join(r.side.dir, f.name)
		if f.status == sideOK {
			slots = append(slots, damagedSlots(r.opt.FS, name, f.size, f.parse)...)
		} else if f.name == cursorsName && r.found.state == sideOK {
			cursors = &contract.CorruptionError{File: name, Cause: fmt.Errorf("the cursors file is %v", f.status)}
		}
	}
	return slots, cursors
}

// damagedSlots returns the damage of each slot that holds something that parse
// refuses. A slot that changes meanwhile is being written.
func damagedSlots(fsys vfs.FS, name string, size int64, parse func([]byte) error) (damaged []error) {
	f, err := fsys.Open(name, vfs.ReadOnly)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	b, again := make([]byte, size), make([]byte, size)
	for slot := range int64(2) {
		n, _ := f.ReadAt(b, slot*size)
		err := parse(b[:n])
		if m, _ := f.ReadAt(again, slot*size); err == nil || !bytes.Equal(b[:n], again[:m]) || n == len(b) && firstNonZero(b) < 0 {
			continue
		}
		damaged = append(damaged, &contract.CorruptionError{File: name, Offset: slot * size, Cause: err})
	}
	return damaged
}

// Bounded reports whether there is a published bound, below which all was durable.
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

// CursorTally returns what was saved with the cursor of a lane, -1 if nothing
// was.
func (r *ReadOnly) CursorTally(lane contract.Lane) int64 { return r.side.tally(lane) }

// Sidecar describes the state of the sidecar's files, for people.
func (r *ReadOnly) Sidecar() string {
	return fmt.Sprintf("state %v, bound %v, cursors %v", r.found.state, r.found.bound, r.side.cursorsFound)
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
