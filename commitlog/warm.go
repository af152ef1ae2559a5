package commitlog

import (
	"sync/atomic"

	"github.com/stratalog/stratalog/contract"
)

// Bytes that may be cold are brought in by a system call before anybody
// touches them through the mapping: a read error is then an error and not a
// signal, and a page fault does not stall the scheduler. Asking for each read
// would cost a system call each time, so pieces that were brought in lately are
// remembered.
const (
	// warmPiece is the unit of memory, in bytes.
	warmPiece = 64 << 10
	// warmSlots is how many pieces are remembered; a power of two.
	warmSlots = 4096
	// hotBytes is how far below the end of the log what this process wrote
	// counts as being in memory.
	hotBytes = 64 << 20
	// warmUses is how many reads a memory is good for. Pages that are read
	// again and again stay in the page cache; those that are not are asked
	// for again.
	warmUses = 1024
)

// warmPieces remembers which pieces of the log were brought in lately. Each
// slot holds piece<<16 | uses left; a race loses a memory, which costs one
// system call.
type warmPieces struct {
	slots [warmSlots]atomic.Uint64
}

// use reports whether piece was brought in lately, and counts the use.
func (w *warmPieces) use(piece int64) bool {
	slot := &w.slots[piece&(warmSlots-1)]
	v := slot.Load()
	if v>>16 != uint64(piece+1) || v&0xffff == 0 {
		return false
	}
	slot.CompareAndSwap(v, v-1)
	return true
}

// note remembers that piece was brought in.
func (w *warmPieces) note(piece int64) {
	w.slots[piece&(warmSlots-1)].Store(uint64(piece+1)<<16 | warmUses)
}

// bringIn makes sure that the bytes [rel, rel+n) of seg are in memory.
func (r *reader) bringIn(seg *segment, rel, n int64) error {
	if at := seg.base + rel; at >= r.hot.Load() && at >= r.appended.Load()-hotBytes {
		return nil
	}
	first, last := (seg.base+rel)/warmPiece, (seg.base+rel+n-1)/warmPiece
	for piece := first; piece <= last; piece++ {
		if r.warm.use(piece) {
			continue
		}
		from := max(piece*warmPiece-seg.base, 0)
		to := min((piece+1)*warmPiece-seg.base, seg.file.Size())
		if err := seg.file.Populate(from, to-from); err != nil {
			return typed(contract.OpRead, contract.ComponentSegment, err)
		}
		r.warm.note(piece)
	}
	return nil
}
