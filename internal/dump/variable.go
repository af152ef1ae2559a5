package dump

import (
	"fmt"
	"math"

	"github.com/stratalog/stratalog/codec"
)

// walkSequence dumps records of a size of their own, one behind the other.
// Nothing in them says where another one begins, so it ends at the first that
// cannot be read.
func walkSequence(w *walk) error {
	info := mustInfo(w.kind.record)
	for off := w.opt.From; off < w.size; {
		b, err := w.at(off, maxRecord)
		if err != nil {
			return err
		}
		view, err := info.View(b)
		if err == nil && len(view.Bytes()) == 0 {
			err = &codec.FieldError{Record: info.Name, Reason: "has no bytes"}
		}
		if err != nil {
			if w.again(off) {
				continue
			}
			return w.wrong(off, w.size, faultOf(info.Name, err), nil, 0)
		}
		size := int64(len(view.Bytes()))
		if err := w.record(info.Name, off, view); err != nil {
			return err
		}
		off += size
	}
	return nil
}

// walkTimer dumps a file of the timer log.
func walkTimer(w *walk) error {
	unit, blank := mustInfo("TimerUnit"), mustInfo("TimerBlank")
	off := (w.opt.From + codec.TimerUnitSize - 1) / codec.TimerUnitSize * codec.TimerUnitSize
	for off < w.size {
		b, err := w.at(off, codec.TimerUnitSize)
		if err != nil {
			return err
		}
		if v, err := blank.View(b); err == nil && int64(v.(*codec.TimerBlankView).Size()) == w.size-off {
			if err := w.record("TimerBlank", off, v, w.timerOffset(off)...); err != nil {
				return err
			}
			return w.skip(off+codec.TimerBlankSize, w.size, "behind the end-of-file mark")
		}
		if zero(b) {
			nz, err := w.nonZero(off, w.size)
			if err != nil {
				return err
			}
			if nz == w.size {
				return w.skip(off, nz, "")
			}
			if w.again(off) {
				continue
			}
			end := nz / codec.TimerUnitSize * codec.TimerUnitSize
			if err := w.wrong(off, end, &fault{"TimerUnit", "", 0, "zeros where a unit must stand"}, nil, 0); err != nil {
				return err
			}
			off = end
			continue
		}
		u := units{info: unit, check: checkTimerUnit}
		next := min(off+codec.TimerUnitSize, w.size)
		view, bad := u.judge(b, 0)
		switch {
		case bad == nil:
			err = w.record("TimerUnit", off, view, w.timerOffset(off)...)
		case w.again(off):
			continue
		default:
			err = w.wrong(off, next, bad, unit.View, codec.TimerUnitSize)
		}
		if err != nil {
			return err
		}
		off = next
	}
	return nil
}

// timerOffset is the place of a unit in the timer log, which slots and units
// name.
func (w *walk) timerOffset(off int64) []Note {
	if w.kind.base < 0 {
		return nil
	}
	return []Note{{"timer_offset", w.kind.base + off}}
}

func checkTimerUnit(v codec.Describer, _ int64) *fault {
	u := v.(*codec.TimerUnitView)
	return first(below("Previous", u.Previous(), -1), below("PhysicalOffset", u.PhysicalOffset(), 0),
		below("MessageSize", int64(u.MessageSize()), 1))
}

// walkExt dumps a file of the extension of a consume queue.
func walkExt(w *walk) error {
	for off := w.opt.From; off < w.size; {
		next, err := w.ext(off)
		if err != nil {
			return err
		}
		off = next
	}
	return nil
}

// ext hands out what stands at off, and returns where to go on.
func (w *walk) ext(off int64) (int64, error) {
	v, kind, bad, err := w.examineExt(off)
	if err != nil {
		return 0, err
	}
	switch kind {
	case placeRecord:
		var notes []Note
		if w.kind.base >= 0 {
			// What the queue's unit has for a tags code.
			notes = []Note{{"address", w.kind.base + off + math.MinInt64}}
		}
		return off + int64(len(v.Bytes())), w.record("QueueExtUnit", off, v, notes...)
	case placeBlank:
		return w.size, w.skip(off, w.size, "the end mark and what is behind it")
	}
	nz, err := w.nonZero(off, w.size)
	if err == nil && nz == w.size {
		return nz, w.skip(off, nz, "")
	}
	if err != nil {
		return 0, err
	}
	// Nothing tells where a unit begins but that it can be read and has a time.
	next := off + 1
	for next < w.size {
		if v, kind, _, err = w.examineExt(next); err != nil {
			return 0, err
		}
		if kind == placeRecord && v.(*codec.QueueExtUnitView).StoreTime() > 0 {
			break
		}
		next++
		if kind == placeZero {
			if nz, err = w.nonZero(next, w.size); err != nil {
				return 0, err
			}
			next = max(next, nz-1)
		}
	}
	if w.again(off) {
		return off, nil
	}
	if next == w.size {
		if next, err = w.zerosFrom(off+1, w.size); err != nil {
			return 0, err
		}
	}
	if w.opt.From == off && off > 0 {
		return next, w.skip(off, next, "no record begins here")
	}
	return next, w.wrong(off, next, bad, nil, 0)
}

// examineExt judges what stands at off.
func (w *walk) examineExt(off int64) (codec.Describer, placeKind, *fault, error) {
	b, err := w.at(off, math.MaxInt16)
	if err != nil {
		return nil, placeBad, nil, err
	}
	switch {
	case len(b) >= 2 && b[0] == 0xff && b[1] == 0xff:
		return nil, placeBlank, nil, nil
	case zero(b[:min(len(b), 2)]):
		return nil, placeZero, &fault{reason: "zeros where a unit must stand"}, nil
	}
	v, err := mustInfo("QueueExtUnit").View(b)
	if err != nil {
		return nil, placeBad, faultOf("QueueExtUnit", err), nil
	}
	if t := v.(*codec.QueueExtUnitView).StoreTime(); t < 0 {
		return nil, placeBad, &fault{"QueueExtUnit", "StoreTime", fieldAt(v, "StoreTime"), fmt.Sprintf("is %d", t)}, nil
	}
	return v, placeRecord, nil, nil
}
