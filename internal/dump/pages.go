package dump

import (
	"fmt"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// walkSlots dumps a file of two slots, of which the newer one holds.
func walkSlots(w *walk) error {
	info := mustInfo(w.kind.record)
	newest := w.newest(info)
	for slot := range int64(2) {
		off := slot * w.kind.slot
		end := min(off+w.kind.slot, w.size)
		if off < w.opt.From {
			continue
		}
		if err := w.slot(info, slot, newest, off, end); err != nil {
			return err
		}
	}
	off := max(2*w.kind.slot, w.opt.From)
	if off >= w.size {
		return nil
	}
	return w.wrong(off, w.size, &fault{reason: "bytes behind the two slots"}, nil, 0)
}

// slot dumps one slot.
func (w *walk) slot(info codec.RecordInfo, slot, newest, off, end int64) error {
	for {
		if off >= end {
			return w.wrong(end, end, &fault{record: info.Name, reason: fmt.Sprintf("slot %d is not there: the file has %d bytes", slot, w.size)}, nil, 0)
		}
		b, err := w.at(off, end-off)
		if err != nil {
			return err
		}
		if zero(b) {
			return w.skip(off, end, "")
		}
		view, err := info.View(b)
		if err == nil {
			size := int64(len(view.Bytes()))
			if err := w.record(info.Name, off, view, Note{"slot", slot}, Note{"newest", slot == newest}); err != nil {
				return err
			}
			return w.skip(off+size, end, "behind the record of a slot")
		}
		if !w.again(off) {
			return w.wrong(off, end, faultOf(info.Name, err), nil, 0)
		}
	}
}

// newest returns the number of the slot that holds, -1 if none does.
func (w *walk) newest(info codec.RecordInfo) int64 {
	newest, largest := int64(-1), uint64(0)
	for slot := range int64(2) {
		b, err := w.at(slot*w.kind.slot, w.kind.slot)
		if err != nil {
			return -1
		}
		view, err := info.View(b)
		if err != nil {
			continue
		}
		if s := view.(interface{ Sequence() uint64 }).Sequence(); newest < 0 || s > largest {
			newest, largest = slot, s
		}
	}
	return newest
}

// Ours reads from the sidecar of the store in root in which ranges of the log
// every record carries a checksum over all its bytes. Without a sidecar, or one
// that can be read, there are none.
func Ours(fsys vfs.FS, root string) []contract.Range {
	f, err := fsys.Open(root+"/stratalog/state", vfs.ReadOnly)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	w := &walk{source: source{f: f, size: info.Size}, kind: stateKind}
	state := mustInfo(stateKind.record)
	newest := w.newest(state)
	if newest < 0 {
		return nil
	}
	b, err := w.at(newest*stateSlot, stateSlot)
	if err != nil {
		return nil
	}
	v, err := state.View(b)
	if err != nil {
		return nil
	}
	var ours []contract.Range
	for _, r := range v.(*codec.StateView).Ranges().All() {
		ours = append(ours, contract.Range{Start: contract.Offset(r.Start()), End: contract.Offset(r.End())})
	}
	return ours
}
