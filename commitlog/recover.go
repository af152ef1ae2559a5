package commitlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
	"github.com/stratalog/stratalog/mmap"
)

// RecoveryReport tells what opening (or Recover) found and did. Nothing is cut,
// moved or renumbered without a line here.
type RecoveryReport struct {
	// Start and Tail name the rows of the decision tables that applied.
	Start string
	Tail  string
	// Foreign tells that another program wrote to the log since.
	Foreign bool
	// ScannedFrom and End bound what was read; End is where the log ends.
	ScannedFrom contract.Offset
	End         contract.Offset
	// Records counts the records in [ScannedFrom, End).
	Records int64
	// Cut is the range from the end to the last byte that was not zero; empty
	// if nothing was cut. CutCause says why the first byte of it is invalid.
	Cut      contract.Range
	CutCause error
	// SetAside lists the files that were moved to <root>/stratalog/cut.
	SetAside []string
	// SidecarReason describes damage to the sidecar, empty for none.
	SidecarReason string
	// Epoch is the current epoch; NewEpoch tells that it begins at End.
	Epoch    contract.Epoch
	NewEpoch bool
	// Took is how long it took.
	Took time.Duration
}

var fingerprintTable = crc32.MakeTable(crc32.Castagnoli)

// fingerprintBytes is how much below the log's end the fingerprint covers.
const fingerprintBytes = 4096

// fingerprint is a checksum of the bytes just below end, in its segment.
func fingerprint(list *segmentList, end int64) uint32 {
	seg := list.find(end - 1)
	if end <= 0 || seg == nil {
		return 0
	}
	to := end - seg.base
	from := max(0, to-fingerprintBytes)
	if err := seg.file.Populate(from, to-from); err != nil {
		return 0
	}
	return crc32.Checksum(seg.file.Bytes()[from:to], fingerprintTable)
}

// load opens and recovers. On failure the caller closes what was opened.
func (l *Log) load(ctx context.Context) error {
	began := l.clk.Mono()
	files, found, err := l.inventory()
	if err != nil {
		return err
	}
	facts := l.startFacts(files, found)
	row := decideStart(facts)
	l.report = RecoveryReport{Start: row.name, Foreign: row.foreign, SidecarReason: found.reason}
	switch row.action {
	case startRefuseNewer:
		return contract.NewError(contract.KindNewerFormat, contract.OpOpen, contract.ComponentSidecar, found.reason, nil)
	case startRefuseLost:
		first, _ := l.opt.Catalog.Place(contract.Offset(l.side.bound.Durable / l.size * l.size))
		return &contract.CorruptionError{File: first, Cause: errSegmentsGone,
			Lost: contract.Range{Start: contract.Offset(l.segs.Load().min()), End: contract.Offset(l.side.bound.Durable)}}
	}
	if err := l.recoverLog(ctx, row, facts); err != nil {
		return err
	}
	l.report.Took = l.clk.Mono() - began
	return nil
}

var errSegmentsGone = errors.New("segments below the durable bound are missing")

// inventory finds the segments and the sidecar. It changes nothing. An empty
// last segment file, which a power cut may leave and Java removes too, is noted
// for prepareFiles to remove.
func (l *Log) inventory() ([]SegmentFile, sidecarFound, error) {
	var found sidecarFound
	if err := l.checkRoot(); err != nil {
		return nil, found, err
	}
	files, err := l.opt.Catalog.List()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, found, openError(contract.ComponentLog, err)
	}
	var empty *SegmentFile
	if n := len(files); n > 0 && files[n-1].Size == 0 {
		empty, files = &files[n-1], files[:n-1]
	}
	l.side, found, err = loadSidecar(l.opt.FS, l.opt.Dir, vfs.ReadWrite)
	if err != nil {
		return nil, found, openError(contract.ComponentSidecar, err)
	}
	want := l.opt.SegmentSize
	if want == 0 && found.state == sideOK {
		want = l.side.state.SegmentSize
	}
	if l.size, err = checkFiles(files, want); err != nil {
		return nil, found, err
	}
	if int64(l.opt.MaxUnsynced) < 0 {
		return nil, found, invalidOption("MaxUnsynced %d is negative", l.opt.MaxUnsynced)
	}
	list, err := openSegments(l.opt.FS, files, l.size, l.mode())
	if err != nil {
		return nil, found, openError(contract.ComponentSegment, err)
	}
	l.segs.Store(list)
	if empty != nil {
		l.empty = empty.Path
	}
	return files, found, nil
}

// checkRoot makes sure that the store root is a directory, made if missing.
func (l *Log) checkRoot() error {
	info, err := l.opt.FS.Stat(l.opt.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = mkdirDurable(l.opt.FS, l.opt.Dir)
	case err == nil && !info.IsDir:
		return invalidOption("%s is not a directory", l.opt.Dir)
	}
	if err != nil {
		return openError(contract.ComponentLog, err)
	}
	return nil
}

// openError is typed for OpOpen.
func openError(component contract.Component, err error) error {
	return typed(contract.OpOpen, component, err)
}

// typed wraps what the system said; typed errors, and nil, pass.
func typed(op contract.Operation, component contract.Component, err error) error {
	if err == nil {
		return nil
	}
	var c *contract.CorruptionError
	var e *contract.Error
	var length *mmap.LengthError
	switch {
	case errors.As(err, &c), errors.As(err, &e):
		return err
	case errors.As(err, &length):
		return &contract.CorruptionError{File: length.Path, Offset: min(length.Got, length.Want), Cause: length}
	}
	wrapped := contract.NewError(contract.KindIO, op, component, "", err)
	if isDiskFull(err) {
		wrapped.Kind, wrapped.Sentinel = contract.KindCapacity, contract.ErrDiskFull
	}
	return wrapped
}

// startFacts gathers the inputs of the first table.
func (l *Log) startFacts(files []SegmentFile, found sidecarFound) startFacts {
	f := startFacts{segments: len(files) > 0, state: found.state, bound: found.bound, abort: l.opt.Unclean}
	list := l.segs.Load()
	if found.bound == sideOK {
		b := l.side.bound.Durable
		switch {
		case !f.segments && b != 0, f.segments && b > list.last().end():
			f.where = boundBeyond
		case f.segments && b < list.min():
			f.where = boundBelow
		}
	}
	if found.state == sideOK {
		f.clean = l.side.state.Clean
		f.matches = f.segments && l.side.state.FirstSegment == list.min() && l.side.state.End == l.side.bound.Durable &&
			fingerprint(list, l.side.state.End) == l.side.state.EndCRC
	}
	return f
}

// recoverLog brings the log to a state in which appends may go on.
func (l *Log) recoverLog(ctx context.Context, row startRow, facts startFacts) error {
	list := l.segs.Load()
	from := list.min()
	if row.action == startAtBound {
		from = l.side.bound.Durable
	}
	ranges := l.trustedRanges(row, facts)
	l.ranges.Store(&ranges)

	s := newScanner(list, ranges, from, list.min()+int64(len(list.segs))*l.size)
	window := l.window()
	if facts.bound == sideOK {
		window = max(window, l.side.bound.Window) // the last owner's may have been wider
	}
	records := int64(0)
	lastStoreTime := int64(0)
	for s.Next() {
		records++
		lastStoreTime = max(lastStoreTime, s.View().StoreTimestamp())
	}
	end := s.off
	tail, err := l.judgeTail(list, ranges, row, facts, end, window, s)
	if err != nil {
		return err
	}
	l.report.ScannedFrom, l.report.End, l.report.Records = contract.Offset(from), contract.Offset(end), records
	l.report.Tail = tail.name

	// From here on files change.
	if err := l.prepareFiles(facts); err != nil {
		return openError(contract.ComponentSidecar, err)
	}
	foreignRecords := row.foreign || facts.clean && facts.segments && end > from
	l.report.Foreign = foreignRecords
	if tail.action == tailCut || foreignRecords {
		if tail.action == tailCut {
			l.report.CutCause = s.err
			if s.err == nil {
				l.report.CutCause = errZeroInside
			}
		}
		if err := l.side.newEpoch(l.epochStart(row, from, end)); err != nil {
			return err
		}
		l.report.NewEpoch = true
	}
	if !facts.untouched(end, s, list) {
		written, err := l.noteWritten(end, window)
		if err != nil {
			return openError(contract.ComponentSidecar, err)
		}
		if err := l.cutTail(ctx, end, written); err != nil {
			return openError(contract.ComponentSegment, err)
		}
	}
	rewrite := from
	if row.action != startAtBound {
		rewrite = max(from, end-window)
	}
	if err := l.rewriteTail(from, rewrite, end); err != nil {
		return openError(contract.ComponentSegment, err)
	}
	return l.enter(ctx, end, lastStoreTime)
}

// noteWritten makes durable, before anything is cut at end, up to where bytes may
// stand on the disk, and returns it. If the cut's own sync fails, the page cache
// shows zeros where the disk does not: the next recovery then zeroes as far
// again.
func (l *Log) noteWritten(end, window int64) (int64, error) {
	written := max(l.side.bound.Appended, end)
	for _, seg := range l.segs.Load().segs {
		if seg.end() <= end {
			continue
		}
		if last := lastNonZero(seg.file.Bytes()); last >= 0 {
			written = max(written, seg.base+int64(last)+1)
		}
	}
	if written == l.side.bound.Appended {
		return written, nil
	}
	if err := l.side.putBound(l.side.bound.Durable, written, window); err != nil {
		return written, err
	}
	return written, l.side.syncBound()
}

// epochStart is where the new epoch begins: where the bytes may be others than
// before.
func (l *Log) epochStart(row startRow, from, end int64) int64 {
	if row.foreign {
		return from
	}
	return min(end, max(from, l.side.bound.Durable))
}

// trustedRanges returns the ranges in which every record must carry its
// checksum. The open one ends at the bound if another program wrote since.
func (l *Log) trustedRanges(row startRow, facts startFacts) ourRanges {
	if facts.state != sideOK {
		return nil
	}
	ranges := l.side.ranges()
	if row.foreign {
		for i := range ranges {
			ranges[i].End = min(ranges[i].End, contract.Offset(l.side.state.End))
		}
	}
	return ranges
}

// judgeTail applies the second table to what the scan met at end.
func (l *Log) judgeTail(list *segmentList, ranges ourRanges, row startRow, facts startFacts, end, window int64, s *scanner) (tailRow, error) {
	if s.err != nil && !errors.Is(s.err, contract.ErrCorrupt) {
		return tailRow{}, openError(contract.ComponentSegment, s.err) // a read error is no damage
	}
	known := l.knownDurable(facts)
	b := behindZeros
	if !facts.untouched(end, s, list) {
		var err error
		if b, err = lookBehind(list, ranges, end, window); err != nil {
			return tailRow{}, openError(contract.ComponentSegment, err)
		}
	}
	tail := decideTail(tailFacts{bounded: row.action == startAtBound, clean: facts.clean, abort: facts.abort, behind: b,
		anchored: b == behindZeros || s.at >= 0 || l.anchored(list, end), short: end < known})
	if tail.action == tailDamage && l.opt.broken == brokenCutBelowBound {
		tail.action = tailCut
	}
	if tail.action != tailDamage {
		return tail, nil
	}
	var damage *contract.CorruptionError
	if !errors.As(s.err, &damage) {
		file, err := l.opt.Catalog.Place(contract.Offset(end / l.size * l.size))
		if err != nil {
			return tail, openError(contract.ComponentLog, err)
		}
		damage = &contract.CorruptionError{File: file, Offset: end % l.size, Cause: errZeroInside,
			Lost: contract.Range{Start: contract.Offset(end), End: contract.Offset(end + 1)}}
	}
	damage.Lost.End = max(damage.Lost.End, contract.Offset(known))
	return tail, fmt.Errorf("%s: %w", tail.name, damage)
}

// knownDurable returns up to where the log was durable by what the sidecar says,
// its parts taken each for itself.
func (l *Log) knownDurable(facts startFacts) int64 {
	known := int64(0)
	if facts.state == sideOK {
		known = l.side.state.End
	}
	if facts.bound == sideOK {
		known = max(known, l.side.bound.Durable)
	}
	return known
}

// anchored tells that what lies just below end belongs there: a record that
// ends at it, or nothing because a segment begins there.
func (l *Log) anchored(list *segmentList, end int64) bool {
	seg := list.find(end)
	if seg == nil || seg.base == end {
		return true
	}
	_, ok := l.lastRecordTime(seg, end)
	return ok
}

// untouched tells that the log was closed well, that nothing was appended
// since, and that no segment lies behind the active one: then the rest of that
// is zero, and an open does not depend on its size.
func (f startFacts) untouched(end int64, s *scanner, list *segmentList) bool {
	return f.clean && !f.abort && f.matches && f.where == boundInside && s.kind != placeInvalid && s.at < 0 && len(list.segs) > 0 && list.last().base <= end
}

// prepareFiles makes the directories and the sidecar files that are missing.
func (l *Log) prepareFiles(facts startFacts) error {
	if err := l.opt.Catalog.Prepare(); err != nil {
		return err
	}
	found := sidecarFound{state: facts.state, bound: facts.bound}
	list := l.segs.Load()
	if err := l.side.create(found, l.size, list.min(), l.clk.Now().UnixMilli()); err != nil {
		return err
	}
	if l.empty != "" {
		if err := l.opt.FS.Remove(l.empty); err != nil {
			return err
		}
	}
	var used []vfs.FileID
	for _, seg := range list.segs {
		info, err := seg.file.Handle().Stat()
		if err != nil {
			return err
		}
		used = append(used, info.ID)
	}
	var err error
	l.spares, err = mmap.NewSpares(l.opt.FS, path.Join(l.opt.Dir, SidecarDir, "spare"), l.size, l.mapped, used...)
	if err != nil {
		return err
	}
	// The last owner may have died between a change of a name and its sync.
	if err := l.syncNames(); err != nil {
		return err
	}
	return syncParent(l.opt.FS, l.opt.Dir)
}

// syncNames makes all names below the root durable, those that segments are
// moved to before those in the log: a power cut in between leaves two names,
// not none.
func (l *Log) syncNames() error {
	dirs := []string{l.opt.Dir, path.Join(l.opt.Dir, SidecarDir), l.spares.Dir()}
	if _, err := l.opt.FS.Stat(l.cutDir()); err == nil {
		dirs = append(dirs, l.cutDir())
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, dir := range l.opt.Catalog.Dirs() {
		if dir = path.Dir(dir); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	if l.opt.broken == brokenNoDirSync {
		return nil
	}
	for _, dir := range dirs {
		if err := l.opt.FS.SyncDir(dir); err != nil {
			return err
		}
	}
	return l.syncDirs()
}

// mkdirDurable makes dir and its parents, from the top, each durable before the
// next. So where the last one exists, those above it are durable.
func mkdirDurable(fsys vfs.FS, dir string) error {
	dir = path.Clean(dir)
	var missing []string
	for d := dir; d != path.Dir(d); d = path.Dir(d) {
		_, err := fsys.Stat(d)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		missing = append(missing, d)
		if err == nil {
			break // that it is there does not say that an earlier try synced its name
		}
	}
	for _, d := range slices.Backward(missing) {
		if err := fsys.MkdirAll(d); err != nil {
			return err
		}
		if err := syncParent(fsys, d); err != nil {
			return err
		}
	}
	return nil
}

// syncParent makes the name of dir durable. Who may not read the directory
// above did not make dir either.
func syncParent(fsys vfs.FS, dir string) error {
	if err := fsys.SyncDir(path.Dir(path.Clean(dir))); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// cutTail makes everything from end on zero and durable: first the segments
// behind the one that holds end, from the back, so that a crash on the way
// leaves no gap, then the rest of that one. A segment of zeros becomes a spare;
// one with bytes is set aside. written is how far bytes may have been written:
// up to there zeros are written even over zeros, as those may be in memory only.
func (l *Log) cutTail(ctx context.Context, end, written int64) error {
	list := l.segs.Load()
	n := len(list.segs)
	for ; n > 0 && list.segs[n-1].base > end; n-- {
		seg := list.segs[n-1]
		if last := lastNonZero(seg.file.Bytes()); last >= 0 {
			l.noteCut(end, seg.base+int64(last)+1)
			to, err := l.setAside(seg)
			if err != nil {
				return err
			}
			l.report.SetAside = append([]string{to}, l.report.SetAside...)
			l.dropLast()
		} else {
			if seg.base < written {
				// Zero in memory; what the disk holds is not known.
				if err := mmap.Zero(ctx, seg.file.Handle(), 0, l.size); err != nil {
					return err
				}
			}
			if err := l.spares.Return(seg.file.Path()); err != nil {
				return err
			}
			l.dropLast()
		}
		if err := l.syncNames(); err != nil {
			return err
		}
	}
	if n == 0 || list.segs[n-1].end() <= end {
		return nil
	}
	seg := list.segs[n-1]
	from, to := end-seg.base, min(written, seg.end())-seg.base
	if last := lastNonZero(seg.file.Bytes()[from:]); last >= 0 {
		l.noteCut(end, end+int64(last)+1)
		to = max(to, from+int64(last)+1)
	}
	return mmap.Zero(ctx, seg.file.Handle(), from, to-from)
}

// noteCut puts [from, to) into the report, joined to what is there.
func (l *Log) noteCut(from, to int64) {
	l.report.Cut = contract.Range{Start: contract.Offset(from), End: max(l.report.Cut.End, contract.Offset(to))}
}

// rewriteTail writes the bytes of [from, end) once more, from memory, and
// syncs them. Without it a tail that a failed sync left in the page cache only
// would look durable: the kernel marks such pages clean. Where the bound was
// not known, what lies further back than the window was synced long ago by
// whoever wrote it, or is as durable as we can make it by a plain sync.
func (l *Log) rewriteTail(from, rewrite, end int64) error {
	list := l.segs.Load()
	for _, seg := range list.overlapping(from, end+1) {
		handle := seg.file.Handle()
		for off := max(rewrite, seg.base); off < min(end, seg.end()); {
			n := min(rewritePiece, min(end, seg.end())-off)
			b := append([]byte(nil), seg.file.Bytes()[off-seg.base:off-seg.base+n]...)
			if _, err := handle.WriteAt(b, off-seg.base); err != nil {
				return err
			}
			off += n
		}
		if err := handle.Datasync(); err != nil {
			return err
		}
	}
	return nil
}

const rewritePiece = 1 << 20

// enter publishes end as the log's end and gets ready for appends behind it.
func (l *Log) enter(ctx context.Context, end, lastStoreTime int64) error {
	list := l.segs.Load()
	active := list.find(end)
	if active == nil && len(list.segs) == 0 {
		seg, err := l.makeSegment(ctx, end)
		if err != nil {
			return openError(contract.ComponentSegment, err)
		}
		active = seg
		l.segs.Store(list.with(seg))
	}
	var full error
	if active != nil {
		if err := active.file.Handle().Allocate(0, l.size); isDiskFull(err) {
			full = err
		} else if err != nil {
			return openError(contract.ComponentSegment, err)
		}
	}
	if err := l.markOpen(end); err != nil {
		return err
	}
	if err := l.side.putBound(end, end, l.window()); err != nil {
		return openError(contract.ComponentSidecar, err)
	}
	if err := l.side.syncBound(); err != nil {
		return openError(contract.ComponentSidecar, err)
	}
	lastStoreTime = max(lastStoreTime, l.storeTimeBefore(end))
	l.mu.Lock()
	l.tail, l.active = end, active
	l.activeChanged()
	l.unreserved, l.nextErr = full != nil, full
	l.lastStoreTime = lastStoreTime
	l.mu.Unlock()
	l.lower(end)
	l.hot.Store(min(l.hot.Load(), end))
	l.appended.Store(end)
	l.durable.Store(end)
	l.publish()
	l.report.Epoch = l.side.epoch()
	return nil
}

// lastRecordTime looks for the record of seg that ends at end, from the back.
func (l *Log) lastRecordTime(seg *segment, end int64) (int64, bool) {
	b, last := seg.file.Bytes(), int(end-seg.base)
	ranges := *l.ranges.Load()
	var v codec.MessageView
	for hi := last; hi > 0; {
		lo := max(0, hi-populatePiece/16)
		if err := seg.file.Populate(int64(lo), int64(hi-lo)); err != nil {
			return 0, false
		}
		// A magic may straddle the edge of two pieces.
		for piece := b[lo:min(hi+len(magicPrefix)-1, last)]; ; {
			hit := bytes.LastIndex(piece, magicPrefix)
			if hit < 0 {
				break
			}
			piece = piece[:hit+len(magicPrefix)-1]
			at := lo + hit - 4
			if at < 0 {
				continue
			}
			off := seg.base + int64(at)
			if kind, size, _ := examine(&v, b[at:], off, ranges.contains(off)); kind != placeRecord || at+size > last {
				continue
			} else if rest := b[at+size:]; at+size == last ||
				end == seg.end() && int(be32(rest)) == len(rest) && be32(rest[4:]) == codec.BlankMagic {
				return v.StoreTimestamp(), true
			}
		}
		hi = lo
	}
	return 0, false
}

// storeTimeBefore returns the store time of the record that ends at end; if it
// cannot be found, the latest of its segment.
func (l *Log) storeTimeBefore(end int64) int64 {
	list := l.segs.Load()
	seg := list.find(end - 1)
	if end <= list.min() || seg == nil {
		return 0
	}
	if t, ok := l.lastRecordTime(seg, end); ok {
		return t
	}
	t := int64(0)
	s := newScanner(list, *l.ranges.Load(), seg.base, end)
	for s.Next() {
		t = max(t, s.View().StoreTimestamp())
	}
	return t
}

// markOpen records, before anything is appended, that the log is being
// written, and from where on every record carries a checksum.
func (l *Log) markOpen(end int64) error {
	err := l.side.update(func(st *codec.State) {
		st.Clean = false
		st.FirstSegment, st.End = l.segs.Load().min(), end
		clipRanges(st, end)
		if l.report.Foreign {
			closeRange(st, l.side.bound.Durable)
		}
		if l.opt.NoRecordChecksum {
			closeRange(st, end)
		} else {
			openRange(st, end)
		}
	})
	ranges := l.side.ranges()
	l.ranges.Store(&ranges)
	return err
}

// markClean records that the log was closed with everything done.
func (l *Log) markClean() error {
	end := l.durable.Load()
	if err := l.side.putBound(end, end, l.window()); err != nil {
		return err
	}
	if err := l.side.syncBound(); err != nil {
		return err
	}
	err := l.side.update(func(st *codec.State) {
		st.Clean = true
		st.FirstSegment, st.End = l.segs.Load().min(), end
		st.EndCRC = fingerprint(l.segs.Load(), end)
		closeRange(st, end)
	})
	if err != nil {
		return err
	}
	return l.side.bothSlots()
}

// LoadQueueOffsets asks the offset source for the next offset of every queue.
// It must be called once between Open and Start; with nil the log is scanned.
func (l *Log) LoadQueueOffsets(source OffsetSource) error {
	if source == nil {
		source = scanOffsets{}
	}
	table := newQueueTable()
	err := source.QueueOffsets(l, contract.Offset(l.tail), func(topic string, id int32, next int64) {
		q := table.queue(topic, id)
		q.next = max(q.next, next)
	})
	if err != nil {
		return openError(contract.ComponentLog, err)
	}
	l.mu.Lock()
	l.queues = table
	l.mu.Unlock()
	return nil
}
