package dump

import (
	"fmt"

	"github.com/stratalog/stratalog/codec"
)

// units is a part of a file with records of one size.
type units struct {
	info       codec.RecordInfo
	start, end int64
	// ends says that nothing may stand behind zeros.
	ends bool
	// check looks for what the codec cannot know; number is that of the unit in
	// the part. It may be nil.
	check func(v codec.Describer, number int64) *fault
	// notes says what a unit is; it may be nil.
	notes func(v codec.Describer, off, number int64) []Note
}

// walkUnits dumps a file that holds nothing but records of one size.
func walkUnits(w *walk) error {
	u := units{info: mustInfo(w.kind.record), end: w.size, ends: w.kind.ends}
	switch w.kind.record {
	case "QueueUnit":
		u.check, u.notes = checkQueueUnit, w.queueOffset
	case "BatchUnit":
		u.check = checkBatchUnit
	case "TimerSlot":
		u.check = checkTimerSlot
	}
	return w.units(u)
}

// units dumps a part of a file; a part that lies before Options.From not at all.
func (w *walk) units(u units) error {
	size := int64(u.info.MinSize)
	off := u.start
	if from := w.opt.From; from > off {
		off += (from - off + size - 1) / size * size
	}
	for off < u.end {
		b, err := w.at(off, min(size, u.end-off))
		if err != nil {
			return err
		}
		if zero(b) {
			nz, err := w.nonZero(off, u.end)
			if err != nil {
				return err
			}
			end := nz
			if nz < u.end {
				end = off + (nz-off)/size*size
			}
			if u.ends && end < u.end {
				if w.again(off) {
					continue
				}
				err = w.wrong(off, end, &fault{u.info.Name, "", 0, "zeros where a unit must stand"}, nil, 0)
			} else {
				err = w.skip(off, end, "")
			}
			if err != nil {
				return err
			}
			off = end
			continue
		}
		next := min(off+size, u.end)
		number := (off - u.start) / size
		view, bad := u.judge(b, number)
		switch {
		case bad == nil:
			var notes []Note
			if u.notes != nil {
				notes = u.notes(view, off, number)
			}
			err = w.record(u.info.Name, off, view, notes...)
		case w.again(off):
			continue
		default:
			err = w.wrong(off, next, bad, u.info.View, size)
		}
		if err != nil {
			return err
		}
		off = next
	}
	return nil
}

// judge reads the unit b.
func (u *units) judge(b []byte, number int64) (codec.Describer, *fault) {
	if len(b) < u.info.MinSize {
		return nil, &fault{record: u.info.Name, reason: fmt.Sprintf("needs %d bytes, %d are left", u.info.MinSize, len(b))}
	}
	view, err := u.info.View(b)
	if err != nil {
		return nil, faultOf(u.info.Name, err)
	}
	if u.check != nil {
		if bad := u.check(view, number); bad != nil {
			bad.record = u.info.Name
			bad.at = fieldAt(view, bad.field)
			return view, bad
		}
	}
	return view, nil
}

// fieldAt returns where a field starts in a record.
func fieldAt(v codec.Describer, field string) (at int64) {
	v.Describe(func(f codec.FieldInfo) bool {
		if f.Name == field {
			at = int64(f.Offset)
		}
		return f.Name != field
	})
	return at
}

// below is the fault of a field that must not be below low.
func below(field string, x, low int64) *fault {
	if x >= low {
		return nil
	}
	return &fault{field: field, reason: fmt.Sprintf("is %d, less than %d", x, low)}
}

// first returns the first fault that there is.
func first(faults ...*fault) *fault {
	for _, f := range faults {
		if f != nil {
			return f
		}
	}
	return nil
}

func checkQueueUnit(v codec.Describer, _ int64) *fault {
	u := v.(*codec.QueueUnitView)
	return first(below("PhysicalOffset", u.PhysicalOffset(), 0), below("Size", int64(u.Size()), 1))
}

// queueOffset is the index in the queue of a unit.
func (w *walk) queueOffset(v codec.Describer, off, _ int64) []Note {
	if w.kind.base < 0 {
		return nil
	}
	notes := []Note{{"queue_offset", (w.kind.base + off) / codec.QueueUnitSize}}
	if v.(*codec.QueueUnitView).IsBlank() {
		notes = append(notes, Note{"blank", true})
	}
	return notes
}

func checkBatchUnit(v codec.Describer, _ int64) *fault {
	u := v.(*codec.BatchUnitView)
	if u.PhysicalOffset() == -1 && u.Size() == 0 {
		return nil // ends a file of a compacted queue
	}
	return first(below("PhysicalOffset", u.PhysicalOffset(), 0), below("Size", int64(u.Size()), 1),
		below("BaseOffset", u.BaseOffset(), 0), below("BatchSize", int64(u.BatchSize()), 1))
}

func checkTimerSlot(v codec.Describer, _ int64) *fault {
	u := v.(*codec.TimerSlotView)
	return first(below("Time", u.Time(), -1), below("First", u.First(), -1), below("Last", u.Last(), -1))
}

// walkFront dumps a file with one record at its front and zeros behind it.
func walkFront(w *walk) error {
	info := mustInfo(w.kind.record)
	end := int64(info.MinSize)
	if w.size < end {
		return w.wrong(w.opt.From, w.size, &fault{record: info.Name, reason: fmt.Sprintf("needs %d bytes, the file has %d", end, w.size)}, nil, 0)
	}
	if err := w.units(units{info: info, end: end}); err != nil {
		return err
	}
	off := max(end, w.opt.From)
	nz, err := w.nonZero(off, w.size)
	if err != nil {
		return err
	}
	if nz < w.size {
		if err := w.skip(off, nz, ""); err != nil {
			return err
		}
		off = nz
		if nz, err = w.zerosFrom(off, w.size); err != nil {
			return err
		}
		if err := w.wrong(off, nz, &fault{reason: "bytes behind the record that are not zero"}, nil, 0); err != nil {
			return err
		}
		off = nz
	}
	return w.skip(off, w.size, "")
}

// walkSpare dumps a segment to come, which holds nothing.
func walkSpare(w *walk) error {
	off := w.opt.From
	from, err := w.nonZero(off, w.size)
	if err != nil {
		return err
	}
	to, err := w.zerosFrom(from, w.size)
	if err != nil {
		return err
	}
	if err := w.skip(off, from, ""); err != nil {
		return err
	}
	switch {
	case from == to:
	case w.kind.full:
		err = w.wrong(from, to, &fault{reason: "bytes in a spare that are not zero"}, nil, 0)
	default:
		err = w.skip(from, to, "without a meaning yet")
	}
	if err != nil {
		return err
	}
	return w.skip(to, w.size, "")
}

// maxText is how much of a text is shown, in bytes.
const maxText = 1 << 20

// walkText dumps a file of plain text.
func walkText(w *walk) error {
	b, err := w.at(w.opt.From, min(maxText, w.size-w.opt.From))
	if err != nil || len(b) == 0 {
		return err
	}
	end := w.opt.From + int64(len(b))
	if err := w.sink.Skipped(&Skipped{Offset: w.opt.From, End: end, Why: "text", Text: b}); err != nil {
		return err
	}
	return w.skip(end, w.size, "more text")
}
