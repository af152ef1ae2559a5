package commitlog

import (
	"context"
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

	visibility contract.Visibility
	confirmer  contract.Confirmer

	// hot is where this process began to append: from there on, as far as
	// hotBytes below the end, the bytes were written lately and are in memory.
	hot atomic.Int64
	// warm tells which pieces of the log were brought in lately.
	warm warmPieces

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
	end := r.durable.Load()
	if r.visibility == contract.VisibilityAppended {
		end = r.appended.Load()
	}
	if r.confirmer != nil {
		end = min(end, int64(r.confirmer.Confirmed()))
	}
	for {
		now := r.confirmed.Load()
		if end <= now {
			return
		}
		if r.confirmed.CompareAndSwap(now, end) {
			break
		}
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

// lower moves the watermarks back to at. Confirmed goes first and last, since
// it may be published again in between.
func (r *reader) lower(at int64) {
	r.confirmed.Store(min(r.confirmed.Load(), at))
	r.durable.Store(min(r.durable.Load(), at))
	r.appended.Store(min(r.appended.Load(), at))
	r.confirmed.Store(min(r.confirmed.Load(), at))
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
// first segment, or at the unused end of a segment. A damaged record is a
// *contract.CorruptionError. A lease that dst held before is released.
func (r *reader) Read(off contract.Offset, dst *Record) (found bool, err error) {
	return r.readSized(off, 0, dst)
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
	if len(b) < codec.BlankSize {
		return false, nil
	}
	total := int64(be32(b))
	if be32(b[4:]) == codec.BlankMagic {
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

func be32(b []byte) uint32 {
	_ = b[3]
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
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
// which only the 8 header bytes are in the selection.
func (r *reader) ReadFrom(off contract.Offset, limit int) (contract.Selection, error) {
	at := int64(off)
	end := r.confirmed.Load()
	if at < 0 || at >= end {
		return nil, nil
	}
	seg := r.segs.Load().find(at)
	if seg == nil || seg.file.Acquire() != nil {
		return nil, nil
	}
	rel := at - seg.base
	b := seg.file.Bytes()[rel:min(seg.file.Size(), end-seg.base)]
	n, err := r.wholeRecords(seg, b, at, int64(limit))
	if err != nil {
		seg.file.Release()
		return nil, err
	}
	s := selectionPool.Get().(*selection)
	s.b, s.file = b[:n], seg.file
	return s, nil
}

// wholeRecords returns how many bytes of b are whole, checked records, at
// least one and about limit.
func (r *reader) wholeRecords(seg *segment, b []byte, at, limit int64) (int64, error) {
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
		if len(rest) >= codec.BlankSize && be32(rest[4:]) == codec.BlankMagic {
			if n+int64(be32(rest)) != int64(len(b)) || int64(len(b)) != seg.end()-at {
				return n, r.damage(seg, at+n, errBlankSize, n)
			}
			n += codec.BlankSize
			break
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
