package index

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// Store is the key index of one log.
type Store struct {
	fs    vfs.FS
	dir   string
	opts  Options
	files *handles
	maps  *mappings
	layout
	keys keyer

	// The lane's own: what was applied since the last Commit.
	pending []pendingKey
	near    byte // Of no meaning: where preload puts what it fetched.

	// writer is held while files are made, written, synced or removed. Whoever
	// changes what mu guards holds both.
	writer sync.Mutex
	// unsynced are files in front of the last one that were written since the
	// last good Flush.
	unsynced  []*file
	changed   bool // Something was put since the last good Flush.
	newNames  bool // The directory was not synced since a file was made in it.
	newDir    bool
	mark      mark
	restoring bool // A Flush failed, and the files are not back at mark yet.
	// lastPhy is the record of the newest entry, -1 for none, and lastKeys how
	// many entries it has. Records below, and as many keys of it, are in.
	lastPhy  int64
	lastKeys int

	// mu guards the list, which is replaced and never changed, and the last
	// file: its header, its image and its buffer.
	mu   sync.RWMutex
	list []*file
	act  active
	// shown is the list that searches go through.
	shown atomic.Pointer[[]*file]

	// view says what a read-only store shows.
	view   view
	closed atomic.Bool
	// cuts is odd while the index is being cut. A search during which it
	// changed, or was odd, may have met both sides of a cut.
	cuts atomic.Int64
}

// mark is what the last good Flush made durable: the entries of file below
// count, and all files in front of it. file is nil if there was none.
type mark struct {
	file  *file
	count int64
	tally int64
	// phy is the record of the last entry, -1 for none.
	phy int64
}

// active is the last file while entries are put into it.
type active struct {
	f    *file
	made bool // The file is there.
	// image is the header and the slots, as in the file. Pages of it that are
	// not in loaded are to be read first; nil stands for all.
	image  image
	loaded bits
	dirty  bits
	// buf holds the file's entries from byte bufAt on: at least those of the
	// last page, and those that are not written yet, from byte wrote on.
	buf   []byte
	bufAt int64
	wrote int64
}

// bits is a set of small numbers.
type bits []uint64

func newBits(n int64) bits { return make(bits, (n+63)/64) }

func (b bits) has(i int64) bool { return b[i/64]&(1<<(i%64)) != 0 }
func (b bits) set(i int64)      { b[i/64] |= 1 << (i % 64) }
func (b bits) unset(i int64)    { b[i/64] &^= 1 << (i % 64) }

// Lane returns contract.LaneIndex.
func (s *Store) Lane() contract.Lane { return contract.LaneIndex }

// Slots and Entries return the sizes of a file in use.
func (s *Store) Slots() int { return int(s.layout.slots) }

// Entries returns the number of places for entries of a file.
func (s *Store) Entries() int { return int(s.layout.entries) }

// Tally tells what the files held at the last good Flush, as one number to be
// kept beside the lane's cursor. It is 0 for nothing.
func (s *Store) Tally() int64 {
	s.writer.Lock()
	defer s.writer.Unlock()
	return s.mark.tally
}

// FlushedBelow returns the place behind which the last record begins that the
// last good Flush covers: -1 if it covers none. A tally is the one of a cursor
// only if that lies above.
func (s *Store) FlushedBelow() contract.Offset {
	s.writer.Lock()
	defer s.writer.Unlock()
	return contract.Offset(s.mark.phy)
}

// FileInfo describes an index file.
type FileInfo struct {
	Path string
	// Entries counts the entries, UsedSlots the chains.
	Entries   int64
	UsedSlots int64
	// BeginTime and EndTime are the store times of the first and the last
	// record, in epoch milliseconds; Begin and End their places.
	BeginTime, EndTime int64
	Begin, End         contract.Offset
	// Full tells that there is room for no more.
	Full bool
}

// Files describes the files, oldest first.
func (s *Store) Files() []FileInfo {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]FileInfo, 0, len(s.list))
	for _, f := range s.list {
		h := &f.head
		out = append(out, FileInfo{Path: f.path, Entries: max(f.count()-1, 0), UsedSlots: int64(h.UsedSlots), BeginTime: h.BeginTime,
			EndTime: h.EndTime, Begin: contract.Offset(h.BeginPhysicalOffset), End: contract.Offset(h.EndPhysicalOffset),
			Full: f.count() >= s.entries})
	}
	return out
}

// FullUntil returns the end time of the newest file that is full and was
// flushed, 0 if there is none: what Java keeps in its checkpoint.
func (s *Store) FullUntil() int64 {
	s.writer.Lock()
	defer s.writer.Unlock()
	until := int64(0)
	for _, f := range s.list {
		if s.mark.file == nil || f == s.mark.file && s.mark.count < s.entries {
			return until
		}
		until = f.head.EndTime
		if f == s.mark.file {
			return until
		}
	}
	return until
}

// Close closes the open files. It does not flush: the lane's owner flushes
// before it saves the cursor, and what came later is replayed.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	return errors.Join(s.maps.close(), s.files.close())
}

func (s *Store) checkOpen(op contract.Operation) error {
	if s.closed.Load() {
		return contract.NewError(contract.KindClosed, op, contract.ComponentIndex, "", nil)
	}
	return nil
}

func (s *Store) checkWritable(op contract.Operation) error {
	if err := s.checkOpen(op); err != nil {
		return err
	}
	if s.opts.ReadOnly {
		return contract.NewError(contract.KindUnsupported, op, contract.ComponentIndex,
			"the index was opened for reading only", nil)
	}
	return nil
}

// emptyHead is the header of a new file behind one with the header last, which
// is nil for none. Its times are replaced by the first entry, which is timed
// from them.
func emptyHead(last *codec.IndexHeader) codec.IndexHeader {
	h := codec.IndexHeader{Count: 1}
	if last != nil {
		h.BeginTime, h.EndTime = last.EndTime, last.EndTime
		h.BeginPhysicalOffset, h.EndPhysicalOffset = last.EndPhysicalOffset, last.EndPhysicalOffset
	}
	return h
}
