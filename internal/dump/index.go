package dump

import (
	"errors"
	"fmt"
	"io"

	"github.com/stratalog/stratalog/codec"
)

// javaSlots is the number of slots of an index file with Java's defaults, and
// javaIndexSize its size.
const (
	javaSlots     = 5000000
	javaIndexSize = codec.IndexHeaderSize + javaSlots*codec.IndexSlotSize + 20000000*codec.IndexEntrySize
)

// walkIndex dumps a key index: the header, the slots, the entries.
func walkIndex(w *walk) error {
	header := mustInfo("IndexHeader")
	b, err := w.at(0, codec.IndexHeaderSize)
	if err != nil {
		return err
	}
	front := min(int64(codec.IndexHeaderSize), w.size)
	h := new(codec.IndexHeaderView)
	if h.Parse(b) != nil {
		return w.units(units{info: header, end: front})
	}
	slots, begin, end, count := w.opt.Slots, h.BeginPhysicalOffset(), h.EndPhysicalOffset(), int64(h.Count())
	if slots == 0 {
		if slots, err = w.findSlots(begin, end, count); err != nil {
			return err
		}
		if slots == 0 && w.size == javaIndexSize {
			slots = javaSlots // something in it is wrong; its size is not
		}
	}
	entries := codec.IndexHeaderSize + slots*codec.IndexSlotSize
	room := (w.size - entries) / codec.IndexEntrySize
	err = w.units(units{info: header, end: front, check: func(v codec.Describer, _ int64) *fault {
		h := v.(*codec.IndexHeaderView)
		return first(below("UsedSlots", int64(h.UsedSlots()), 0), below("Count", int64(h.Count()), 0))
	}})
	if err != nil {
		return err
	}
	off := max(front, w.opt.From)
	nz, err := w.nonZero(off, w.size)
	if err != nil {
		return err
	}
	switch {
	case nz == w.size && off == front && off < w.size && (count > 1 || h.UsedSlots() > 0):
		return w.wrong(off, w.size, &fault{reason: fmt.Sprintf("are zeros, where the header counts %d entries in %d slots", count-1, h.UsedSlots())}, nil, 0)
	case nz == w.size && off < w.size:
		return w.skip(off, w.size, "")
	case nz == w.size:
		return nil
	case slots <= 0 || room < 0:
		return w.wrong(off, w.size, &fault{reason: "slots and entries, but nothing tells how many slots there are; --slots does"}, nil, 0)
	}
	err = w.units(units{info: mustInfo("IndexSlot"), start: front, end: min(entries, w.size),
		check: func(v codec.Describer, _ int64) *fault {
			return within("Entry", int64(v.(*codec.IndexSlotView).Entry()), room)
		},
		notes: func(_ codec.Describer, _, number int64) []Note { return []Note{{"slot", number}} }})
	if err != nil {
		return err
	}
	return w.units(units{info: mustInfo("IndexEntry"), start: entries, end: w.size,
		check: func(v codec.Describer, number int64) *fault {
			e := v.(*codec.IndexEntryView)
			return first(below("KeyHash", int64(e.KeyHash()), 0), below("PhysicalOffset", e.PhysicalOffset(), 0),
				within("Previous", int64(e.Previous()), number))
		},
		notes: func(_ codec.Describer, _, number int64) []Note {
			notes := []Note{{"entry", number}}
			if number >= count {
				notes = append(notes, Note{"beyond_count", true})
			}
			return notes
		}})
}

// within is the fault of a number of an entry that is not below high.
func within(field string, x, high int64) *fault {
	if x >= 0 && (x < high || x == 0) {
		return nil
	}
	return &fault{field: field, reason: fmt.Sprintf("is %d, which is no entry below %d", x, high)}
}

// findSlots finds out how many slots an index file has, 0 if it cannot. The
// header does not say; but the first entry names the first message, the last
// one the last message, and the slot of the last one's hash leads to it.
func (w *walk) findSlots(begin, end, count int64) (int64, error) {
	if count < 2 {
		return 0, nil
	}
	var (
		e   codec.IndexEntryView
		s   codec.IndexSlotView
		far [codec.IndexEntrySize]byte
	)
	fits := func(slots int64) (bool, error) {
		entries := codec.IndexHeaderSize + slots*codec.IndexSlotSize
		if slots <= 0 || entries+count*codec.IndexEntrySize > w.size {
			return false, nil
		}
		b, err := w.at(entries+codec.IndexEntrySize, codec.IndexEntrySize)
		if err != nil || e.Parse(b) != nil || zero(b) || e.PhysicalOffset() != begin || e.Previous() != 0 {
			return false, err
		}
		// What is far away goes past the window, which would have to come back.
		if err := w.far(far[:], entries+(count-1)*codec.IndexEntrySize); err != nil {
			return false, err
		}
		if e.Parse(far[:]) != nil || e.PhysicalOffset() != end || e.KeyHash() < 0 {
			return false, nil
		}
		slot := far[:codec.IndexSlotSize]
		if err := w.far(slot, codec.IndexHeaderSize+int64(e.KeyHash())%slots*codec.IndexSlotSize); err != nil {
			return false, err
		}
		return s.Parse(slot) == nil && int64(s.Entry()) == count-1, nil
	}
	if w.size == javaIndexSize {
		if ok, err := fits(javaSlots); ok || err != nil {
			return javaSlots, err
		}
	}
	// Behind the slots stand whole entries.
	rest := (w.size - codec.IndexHeaderSize) % codec.IndexEntrySize
	if rest%codec.IndexSlotSize != 0 {
		return 0, nil
	}
	step := int64(codec.IndexEntrySize / codec.IndexSlotSize)
	for slots := rest / codec.IndexSlotSize; codec.IndexHeaderSize+slots*codec.IndexSlotSize < w.size; slots += step {
		if ok, err := fits(slots); ok || err != nil {
			return slots, err
		}
	}
	return 0, nil
}

// far fills b with the bytes at off, past the window.
func (s *source) far(b []byte, off int64) error {
	if _, err := s.f.ReadAt(b, off); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading at %d: %w", off, err)
	}
	return nil
}
