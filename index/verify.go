package index

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// Fault is something wrong that a Verifier found.
type Fault struct {
	// File and Offset are the place.
	File   string
	Offset int64
	// Record is the place in the log of the record that it is about, -1 for
	// none.
	Record contract.Offset
	// Missing tells that the record lacks an entry.
	Missing bool
	// Text does not repeat the places.
	Text string
}

// Verifier holds an index against the log: each record has an entry for each
// key, each entry is that of a record, and the chains, slots and headers are
// what the entries give. It goes through both in order, and holds the slots of
// one file in memory.
type Verifier struct {
	s              *Store
	from, boundary int64
	tell           func(Fault)
	keys           keyer
	found          []bool

	list  []*file
	at    int // The file in work; len(list) at the end.
	k     int64
	block []byte
	start int64 // The entry at the front of block.
	slots []int32
	used  int32
	h     *handle
	// cut tells that more of the file is on disk than what is looked at, and
	// last that its slots may lead there.
	cut, last bool

	entries int64
	lagging int64
	err     error
}

// NewVerifier returns a verifier of what the store showed when it was made.
// Records in [from, boundary), in order, are given to Record. Finish must follow.
func (s *Store) NewVerifier(from, boundary contract.Offset, tell func(Fault)) *Verifier {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return &Verifier{s: s, from: int64(from), boundary: int64(boundary), tell: tell, list: s.list}
}

// Entries returns how many entries were checked, Lagging how many records at or
// above the boundary have keys.
func (v *Verifier) Entries() int64 { return v.entries }

// Lagging returns how many records at or above the boundary have keys.
func (v *Verifier) Lagging() int64 { return v.lagging }

// Record checks the entries of the next record. The error says that the check
// could not be done.
func (v *Verifier) Record(rec *codec.MessageView) error {
	hashes, tagged := v.keys.of(rec)
	if rec.SysFlag()&codec.SysFlagTransaction == codec.SysFlagTransactionRollback {
		hashes, tagged = nil, false
	}
	phy := rec.PhysicalOffset()
	needed := len(hashes)
	if tagged && !v.s.opts.Tags {
		needed--
	}
	if phy >= v.boundary {
		if needed > 0 {
			v.lagging++
		}
		return nil
	}
	if err := v.skipTo(phy); err != nil {
		return err
	}
	v.found = append(v.found[:0], make([]bool, len(hashes))...)
	for {
		e, ok := v.peek()
		if !ok || e.PhysicalOffset != phy {
			break
		}
		v.entry(e, hashes, rec.StoreTimestamp())
		v.next(e)
	}
	for i := range needed {
		if !v.found[i] {
			f := Fault{Record: contract.Offset(phy), Missing: true, Text: fmt.Sprintf("the record at %d has no entry for its key %d", phy, i+1)}
			if v.at < len(v.list) {
				f.File, f.Offset = v.list[v.at].path, v.s.entryAt(v.k)
			}
			v.tell(f)
		}
	}
	return v.err
}

// entry checks the next entry, e, which leads to a record with the hashes.
func (v *Verifier) entry(e codec.IndexEntry, hashes []int32, stored int64) {
	known := false
	for i, hash := range hashes {
		if hash == e.KeyHash {
			v.found[i], known = true, true
		}
	}
	if !known {
		v.fault(e, "the record that it leads to, at %d, has no key with its hash", e.PhysicalOffset)
	}
	f := v.list[v.at]
	begin, timed := f.head.BeginTime, true
	if v.k == 1 {
		if stored != f.head.BeginTime {
			v.header(e, "the file begins at time %d, its first record was stored at %d", f.head.BeginTime, stored)
		}
		// It is timed from the end of the file before, if that is still there.
		if timed = v.at > 0; timed {
			begin = v.list[v.at-1].head.EndTime
		}
	}
	if timed && e.TimeDiff != timeDiff(begin, stored) {
		v.fault(e, "its time is off: %d seconds, the record says %d", e.TimeDiff, timeDiff(begin, stored))
	}
	if v.k == f.count()-1 && !v.cut && stored != f.head.EndTime {
		v.header(e, "the file ends at time %d, its last record was stored at %d", f.head.EndTime, stored)
	}
}

// skipTo goes on to the entries of records at and above phy.
func (v *Verifier) skipTo(phy int64) error {
	for {
		e, ok := v.peek()
		if !ok || e.PhysicalOffset >= phy {
			return v.err
		}
		if e.PhysicalOffset >= v.from {
			v.fault(e, "it leads to %d, where no record with keys begins", e.PhysicalOffset)
		}
		v.next(e)
	}
}

// Finish checks what is left.
func (v *Verifier) Finish() error {
	err := v.skipTo(v.boundary)
	for err == nil {
		e, ok := v.peek()
		if !ok {
			break
		}
		v.next(e)
	}
	return errors.Join(err, v.err, v.close())
}

func (v *Verifier) close() error {
	if v.h == nil {
		return nil
	}
	h := v.h
	v.h = nil
	return v.s.files.release(h)
}

// peek returns the next entry; false at the end, and after a failure.
func (v *Verifier) peek() (codec.IndexEntry, bool) {
	for v.err == nil && v.at < len(v.list) {
		f := v.list[v.at]
		if v.h == nil && !v.open(f) {
			continue
		}
		if v.k < f.count() {
			if v.k-v.start >= int64(len(v.block))/entrySize {
				v.block = v.block[:min(scanBytes, (f.count()-v.k)*entrySize)]
				v.start = v.k
				if v.err = v.h.readAt(v.block, v.s.entryAt(v.k)); v.err != nil {
					break
				}
			}
			return decodeEntry(v.block[(v.k-v.start)*entrySize:]), true
		}
		v.ended(f)
		v.err = errors.Join(v.err, v.close())
		v.at++
	}
	return codec.IndexEntry{}, false
}

// open begins with a file; false if there is nothing to look at.
func (v *Verifier) open(f *file) bool {
	if f.empty() {
		// One that stands ready is the last, and its first chain is counted
		// before its first entry.
		if h := &f.head; h.Count < 0 || h.UsedSlots > 1 || v.at < len(v.list)-1 {
			v.report(damaged(f, 0, fmt.Errorf("%w: it counts no entries", ErrHeader)), -1)
		}
		v.at++
		return false
	}
	v.last = v.s.opts.ReadOnly && v.at == len(v.list)-1
	possible := possibleHeader
	if v.last {
		possible = possibleAmid
	}
	if bad := f.soundFor(v.s.layout, possible); bad != nil {
		v.report(bad, -1)
	}
	var err error
	if v.h, err = v.s.files.acquire(f); err != nil || f.headErr != nil || f.size != v.s.fileSize() || f.count() > v.s.entries {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			v.err = ioError(contract.OpVerify, f.path, err)
		}
		v.err = errors.Join(v.err, v.close())
		v.at++
		return false
	}
	var disk codec.IndexHeader
	if disk, v.err = v.h.header(); v.err != nil {
		return false
	}
	if v.cut = v.last && disk != f.head; v.last && !v.cut {
		// An entry that was counted a moment before is not yet the end.
		var e codec.IndexEntry
		if e, v.err = v.h.entryAt(v.s.layout, f.count()-1); v.err == nil && e.PhysicalOffset != f.head.EndPhysicalOffset {
			v.cut, v.err = v.h.endsBefore(f, v.s.layout)
		}
		if v.err != nil {
			return false
		}
	}
	v.k, v.start, v.used = 1, 1, 0
	if v.block == nil {
		v.block, v.slots = make([]byte, scanBytes), make([]int32, v.s.slots)
	}
	v.block = v.block[:0]
	clear(v.slots)
	return true
}

// next checks that the entry continues its chain, and goes on.
func (v *Verifier) next(e codec.IndexEntry) {
	v.entries++
	switch {
	case e.KeyHash < 0 || e.PhysicalOffset < 0 || e.TimeDiff < 0:
		v.fault(e, "%v", ErrEntry)
	default:
		slot := &v.slots[int64(e.KeyHash)%v.s.slots]
		if *slot != e.Previous {
			v.fault(e, "it is chained to entry %d, and %d is the one before", e.Previous, *slot)
		}
		if *slot == 0 {
			v.used++
		}
		*slot = int32(v.k)
	}
	v.k++
}

// ended compares slots and header with what the entries gave.
func (v *Verifier) ended(f *file) {
	count := f.count()
	var first, last codec.IndexEntry
	if first, v.err = v.h.entryAt(v.s.layout, 1); v.err != nil {
		return
	}
	if last, v.err = v.h.entryAt(v.s.layout, count-1); v.err != nil {
		return
	}
	if first.PhysicalOffset != f.head.BeginPhysicalOffset || !v.cut && last.PhysicalOffset != f.head.EndPhysicalOffset {
		v.tell(Fault{File: f.path, Record: -1, Text: fmt.Sprintf("the header spans [%d,%d], the entries [%d,%d]",
			f.head.BeginPhysicalOffset, f.head.EndPhysicalOffset, first.PhysicalOffset, last.PhysicalOffset)})
	}
	begun := int32(0)
	for from := int64(0); from < v.s.slots; {
		n := min(v.s.slots-from, scanBytes/slotSize)
		b := v.block[:n*slotSize]
		if v.err = v.h.readAt(b, v.s.slotAt(from)); v.err != nil {
			return
		}
		for i := range n {
			got, want := decodeSlot(b[i*slotSize:]), int64(v.slots[from+i])
			ahead := v.last && got >= count && got < v.s.entries
			if ahead && want == 0 {
				begun = 1
			}
			if got != want && !ahead {
				v.tell(Fault{File: f.path, Offset: v.s.slotAt(from + i), Record: -1,
					Text: fmt.Sprintf("slot %d leads to entry %d, its newest is %d", from+i, got, want)})
			}
		}
		from += n
	}
	// A chain may be counted before its first entry is.
	if used := f.head.UsedSlots; !v.cut && used != v.used && used != v.used+begun {
		v.tell(Fault{File: f.path, Record: -1, Text: fmt.Sprintf("the header counts %d chains, the entries make %d", used, v.used)})
	}
}

func (v *Verifier) fault(e codec.IndexEntry, format string, args ...any) {
	v.tell(Fault{File: v.list[v.at].path, Offset: v.s.entryAt(v.k), Record: contract.Offset(e.PhysicalOffset),
		Text: fmt.Sprintf("entry %d: ", v.k) + fmt.Sprintf(format, args...)})
}

func (v *Verifier) header(e codec.IndexEntry, format string, args ...any) {
	v.tell(Fault{File: v.list[v.at].path, Record: contract.Offset(e.PhysicalOffset), Text: fmt.Sprintf(format, args...)})
}

// report tells of damage that has an error.
func (v *Verifier) report(err error, record contract.Offset) {
	f := Fault{Record: record, Text: err.Error()}
	var typed *contract.CorruptionError
	if errors.As(err, &typed) {
		f.File, f.Offset, f.Text = typed.File, typed.Offset, typed.Cause.Error()
	}
	v.tell(f)
}
