package commitlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
	"github.com/stratalog/stratalog/mmap"
)

// reader is what reading needs: the segments, the watermarks, and how far
// readers may see. Log and ReadOnly embed it.
type reader struct {
	fs     vfs.FS
	size   int64
	verify bool

	segs      atomic.Pointer[segmentList]
	ranges    atomic.Pointer[ourRanges]
	appended  atomic.Int64
	durable   atomic.Int64
	confirmed atomic.Int64

	publishMu  sync.Mutex   // over each change of confirmed
	cuts       atomic.Int64 // how often the watermarks went back
	visibility contract.Visibility
	confirmer  contract.Confirmer

	// hot is where this process began to append: from there on, as far as
	// hotBytes below the end, the bytes were written lately and are in memory.
	hot atomic.Int64
	// warm tells which pieces of the log were brought in lately, checked which
	// records lanes found whole.
	warm    warmPieces
	checked checkedRange

	watchMu  sync.Mutex
	watchers []*watcher
}

// watcher is woken when confirmed moves.
type watcher struct{ wake chan struct{} }

var watcherPool = sync.Pool{New: func() any { return &watcher{wake: make(chan struct{}, 1)} }}

func (r *reader) init(opt Options) {
	r.fs = opt.FS
	r.verify = !opt.NoVerifyReads
	r.visibility = opt.Visibility
	r.confirmer = opt.Confirmer
	r.segs.Store(&segmentList{size: 1})
	r.ranges.Store(&ourRanges{})
	r.hot.Store(math.MaxInt64)
}

// MinOffset returns the start of the first segment.
func (r *reader) MinOffset() contract.Offset { return contract.Offset(r.segs.Load().min()) }

// Appended returns the exclusive end of what was written.
func (r *reader) Appended() contract.Offset { return contract.Offset(r.appended.Load()) }

// Durable returns the exclusive end of what a successful sync covers.
func (r *reader) Durable() contract.Offset { return contract.Offset(r.durable.Load()) }

// Confirmed returns the exclusive end of what readers and lanes may see.
func (r *reader) Confirmed() contract.Offset { return contract.Offset(r.confirmed.Load()) }

// Watermarks returns a consistent snapshot: durable and confirmed are never
// ahead of appended.
func (r *reader) Watermarks() contract.Watermarks {
	confirmed, durable := r.confirmed.Load(), r.durable.Load()
	return contract.Watermarks{Appended: contract.Offset(r.appended.Load()),
		Durable: contract.Offset(durable), Confirmed: contract.Offset(confirmed)}
}

// publish recomputes confirmed and wakes who waits for it. It must be called
// after each change of a watermark, and by the owner of a Confirmer after its
// answer changed.
func (r *reader) publish() {
	if !r.raiseConfirmed() {
		return
	}
	r.watchMu.Lock()
	for _, w := range r.watchers {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
	r.watchMu.Unlock()
}

// raiseConfirmed moves confirmed up to what the policy allows, and reports
// whether it moved. A value that was read before a cut is not published after it; no lock
// is held over the Confirmer's answer.
func (r *reader) raiseConfirmed() bool {
	for {
		cuts := r.cuts.Load()
		end := r.allowed()
		r.publishMu.Lock()
		if r.cuts.Load() == cuts {
			moved := end > r.confirmed.Load()
			if moved {
				r.confirmed.Store(end)
			}
			r.publishMu.Unlock()
			return moved
		}
		r.publishMu.Unlock()
	}
}

// allowed returns the end of what the policy lets readers see.
func (r *reader) allowed() int64 {
	end := r.durable.Load()
	if r.visibility == contract.VisibilityAppended {
		end = r.appended.Load()
	}
	if r.confirmer != nil {
		end = min(end, int64(r.confirmer.Confirmed()))
	}
	return end
}

// lower moves the watermarks back to at. Confirmed goes first and last, since
// it may be published again in between.
func (r *reader) lower(at int64) {
	r.publishMu.Lock()
	defer r.publishMu.Unlock()
	r.cuts.Add(1)
	r.confirmed.Store(min(r.confirmed.Load(), at))
	r.durable.Store(min(r.durable.Load(), at))
	r.appended.Store(min(r.appended.Load(), at))
}

// ConfirmerChanged tells the log that its Confirmer's answer changed.
func (r *reader) ConfirmerChanged() { r.publish() }

// WaitConfirmed waits until the confirmed watermark is beyond off. It returns
// ctx's error if that ends first.
func (r *reader) WaitConfirmed(ctx context.Context, off contract.Offset) error {
	if r.Confirmed() > off {
		return nil
	}
	w := watcherPool.Get().(*watcher)
	r.watchMu.Lock()
	r.watchers = append(r.watchers, w)
	r.watchMu.Unlock()
	var err error
	for r.Confirmed() <= off && err == nil {
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-w.wake:
		}
	}
	r.watchMu.Lock()
	for i, x := range r.watchers {
		if x == w {
			last := len(r.watchers) - 1
			r.watchers[i] = r.watchers[last]
			r.watchers[last] = nil
			r.watchers = r.watchers[:last]
			break
		}
	}
	r.watchMu.Unlock()
	select {
	case <-w.wake:
	default:
	}
	watcherPool.Put(w)
	return err
}

// Record is one record of the log under a lease. The zero value is ready for
// use; Read fills it, Release ends the lease. Its bytes are valid until then.
type Record struct {
	codec.MessageView
	file *mmap.File
}

// Release ends the lease. It is harmless on a record that holds none.
func (r *Record) Release() {
	if r.file != nil {
		r.file.Release()
		r.file = nil
		r.MessageView = codec.MessageView{}
	}
}

// Held reports whether r holds a lease.
func (r *Record) Held() bool { return r.file != nil }

// Read fills dst with the record at off. found is false when nothing of the
// log that may be seen starts there: beyond the confirmed watermark, below the
// first segment, at the unused end of a segment, or inside a record. A damaged
// record is a *contract.CorruptionError. A lease that dst held before is
// released.
func (r *reader) Read(off contract.Offset, dst *Record) (found bool, err error) {
	if found, err = r.readSized(off, 0, dst); err != nil && errors.Is(err, contract.ErrCorrupt) {
		err = r.confirmDamage(int64(off), err)
	}
	return found, err
}

// confirmDamage returns damage, which was met by reading at off, or nil if the
// records in front show that none starts at off: then the bytes there say
// nothing. It walks the segment from its start.
func (r *reader) confirmDamage(off int64, damage error) error {
	seg := r.segs.Load().find(off)
	if seg == nil || seg.file.Acquire() != nil {
		return nil // retired meanwhile
	}
	defer seg.file.Release()
	end := min(r.confirmed.Load(), seg.end())
	if off >= end {
		return nil
	}
	if err := seg.populateTo(end - seg.base); err != nil {
		return err
	}
	if !seg.startsAt(off, end, *r.ranges.Load()) {
		return nil
	}
	return damage
}

// startsAt reports whether a record of seg below end must start at off, or may,
// because of damage in front of it.
func (s *segment) startsAt(off, end int64, ranges ourRanges) bool {
	whole := s.file.Bytes()
	at := s.base
	for at < off {
		n := stepOver(whole[at-s.base:], at)
		if n == 0 {
			if n = resync(s, whole, ranges, at, end) - at; at+n > off {
				return true
			}
		}
		at += n
	}
	if at > off {
		return false
	}
	var view codec.MessageView
	kind, _, _ := examine(&view, whole[off-s.base:], off, ranges.contains(off))
	return kind != placeRecord // a whole one reaches beyond what may be seen
}

// stepOver returns the length of what stands at the front of b, by its
// structure alone: a record whose place is at, or the end-of-segment mark; 0 if
// it is neither.
func stepOver(b []byte, at int64) int64 {
	size, magic, ok := codec.PeekMessage(b)
	total := int64(size)
	if !ok {
		return 0
	}
	if total == int64(len(b)) && magic == codec.BlankMagic {
		return total
	}
	var view codec.MessageView
	if view.Parse(b) != nil || view.PhysicalOffset() != at {
		return 0
	}
	return int64(view.TotalSize())
}

// populateTo brings the first n bytes of s into memory.
func (s *segment) populateTo(n int64) error {
	for from := int64(0); from < n; from += populatePiece {
		if err := s.file.Populate(from, min(populatePiece, n-from)); err != nil {
			return openError(contract.ComponentSegment, err)
		}
	}
	return nil
}

// readSized is Read with the size that the caller expects, 0 for any.
func (r *reader) readSized(off contract.Offset, size int32, dst *Record) (found bool, err error) {
	dst.Release()
	at := int64(off)
	end := r.confirmed.Load()
	if at < 0 || at >= end {
		return false, nil
	}
	seg := r.segs.Load().find(at)
	if seg == nil || seg.file.Acquire() != nil {
		return false, nil
	}
	rel := at - seg.base
	b := seg.file.Bytes()[rel:min(seg.file.Size(), end-seg.base)]
	guess := int64(size)
	if guess == 0 {
		guess = coldGuess
	}
	if err = r.bringIn(seg, rel, min(guess, int64(len(b)))); err == nil {
		found, err = r.parse(dst, seg, b, at, size, guess)
	}
	if !found {
		seg.file.Release()
		return false, err
	}
	dst.file = seg.file
	return true, nil
}

// coldGuess is how much is brought in for a record of unknown size.
const coldGuess = 4096

// parse checks the record at the front of b and makes dst a view of it.
func (r *reader) parse(dst *Record, seg *segment, b []byte, at int64, size int32, have int64) (bool, error) {
	front, magic, ok := codec.PeekMessage(b)
	total := int64(front)
	if !ok || magic == codec.BlankMagic && at+total == seg.end() {
		return false, nil
	}
	if total > have && total <= int64(len(b)) {
		if err := r.bringIn(seg, at-seg.base, total); err != nil {
			return false, err
		}
	}
	err := dst.Parse(b)
	if err == nil && size != 0 && dst.TotalSize() != size {
		err = fmt.Errorf("record has %d bytes where %d were expected", dst.TotalSize(), size)
	}
	if err == nil {
		if r.verify {
			err = checkRecord(&dst.MessageView, at, r.ranges.Load().contains(at))
		} else if dst.PhysicalOffset() != at {
			err = errForeignPlace
		}
	}
	if err == nil {
		return true, nil
	}
	lost := max(int64(size), 1)
	dst.MessageView = codec.MessageView{}
	return false, &contract.CorruptionError{File: seg.file.Path(), Offset: at - seg.base, Cause: err,
		Lost: contract.Range{Start: contract.Offset(at), End: contract.Offset(at + lost)}}
}

// ReadSized is Read for a caller who knows the record's size, as a consume
// queue unit tells it; another size at that place is damage.
func (r *reader) ReadSized(off contract.Offset, size int32, dst *Record) (found bool, err error) {
	return r.readSized(off, size, dst)
}

// selection is a stretch of log bytes under a lease.
type selection struct {
	b    []byte
	file *mmap.File
}

var selectionPool = sync.Pool{New: func() any { return new(selection) }}

// Bytes implements contract.Selection.
func (s *selection) Bytes() []byte { return s.b }

// Release implements contract.Selection.
func (s *selection) Release() {
	file := s.file
	*s = selection{}
	selectionPool.Put(s)
	file.Release()
}

// ReadAt implements contract.WALPort.
func (r *reader) ReadAt(off contract.Offset, size int32) (contract.Selection, error) {
	var rec Record
	found, err := r.readSized(off, size, &rec)
	if !found {
		return nil, err
	}
	s := selectionPool.Get().(*selection)
	s.b, s.file = rec.Bytes(), rec.file
	return s, nil
}

// ReadFrom implements contract.WALPort. The bytes end with the last whole
// record below limit bytes; the end-of-segment mark counts as a record of
// which only the 8 header bytes are in the selection. Each record was checked,
// by this call or by one shortly before.
func (r *reader) ReadFrom(off contract.Offset, limit int) (contract.Selection, error) {
	at := int64(off)
	end, cuts := r.reach()
	if at < 0 || at >= end {
		return nil, nil
	}
	seg := r.segs.Load().find(at)
	if seg == nil || seg.file.Acquire() != nil {
		return nil, nil
	}
	rel := at - seg.base
	b := seg.file.Bytes()[rel:min(seg.file.Size(), end-seg.base)]
	known, front := r.checked.begin(at, cuts)
	if known > at {
		// No further: there another lane is, and what it checks need not be
		// checked here.
		limit = int(min(int64(limit), known-at))
	}
	n, err := r.wholeRecords(seg, b, at, int64(limit), known-at)
	if err == nil {
		r.checked.add(at, at+n, cuts)
	}
	r.checked.finish(front)
	if err != nil {
		seg.file.Release()
		return nil, err
	}
	s := selectionPool.Get().(*selection)
	s.b, s.file = b[:n], seg.file
	return s, nil
}

// wholeRecords returns how many bytes of b are whole, checked records, at
// least one and about limit. The first known bytes were checked before.
func (r *reader) wholeRecords(seg *segment, b []byte, at, limit, known int64) (int64, error) {
	var rec Record
	n, have := int64(0), int64(0)
	for n < int64(len(b)) {
		if n > 0 && n >= limit {
			break
		}
		if have < n+codec.BlankSize {
			have = min(max(n+limit, n+coldGuess), int64(len(b)))
			if err := r.bringIn(seg, at+n-seg.base, have-n); err != nil {
				return 0, err
			}
		}
		rest := b[n:]
		total, magic, _ := codec.PeekMessage(rest)
		if magic == codec.BlankMagic {
			if n+int64(total) != int64(len(b)) || int64(len(b)) != seg.end()-at {
				return n, r.damage(seg, at+n, errBlankSize, n)
			}
			n += codec.BlankSize
			break
		}
		if step := int64(total); step > 0 && n+step <= known {
			if step > have-n {
				if err := r.bringIn(seg, at+n-seg.base, step); err != nil {
					return 0, err
				}
			}
			if stepOver(rest, at+n) == step {
				n += step
				continue
			}
		}
		found, err := r.parse(&rec, seg, rest, at+n, 0, have-n)
		if err != nil {
			if n > 0 {
				break // what is whole comes first; the next call meets the damage
			}
			return 0, err
		}
		if !found {
			return 0, r.damage(seg, at+n, errZeroInside, 0)
		}
		n += int64(rec.TotalSize())
	}
	return n, nil
}

// damage is a *contract.CorruptionError, or nil when whole bytes come first.
func (r *reader) damage(seg *segment, at int64, cause error, whole int64) error {
	if whole > 0 {
		return nil
	}
	return &contract.CorruptionError{File: seg.file.Path(), Offset: at - seg.base, Cause: cause,
		Lost: contract.Range{Start: contract.Offset(at), End: contract.Offset(at + 1)}}
}

// scanFrom walks the records of [from, end), whatever the watermarks say.
func (r *reader) scanFrom(from, end contract.Offset) *scanner {
	return newScanner(r.segs.Load(), *r.ranges.Load(), int64(from), int64(end))
}
