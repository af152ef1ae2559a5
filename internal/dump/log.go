package dump

import (
	"fmt"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// logWalk walks the records of a segment of a log.
type logWalk struct {
	*walk
	// base is the offset in the log of the file's first byte; -1 until a whole
	// record has told it.
	base int64
}

// What stands at a place of a segment.
type placeKind uint8

const (
	placeBad placeKind = iota
	placeZero
	placeRecord
	placeBlank
)

// place is what stands at a place of a segment.
type place struct {
	kind placeKind
	size int64
	view codec.Describer
	// checksum is what the checksum over all bytes of a record says.
	checksum codec.ChecksumState
	fault    *fault
}

// walkLog dumps a segment of a log.
func walkLog(w *walk) error {
	l := &logWalk{walk: w, base: w.kind.base}
	off := w.opt.From
	if off > 0 {
		p, err := l.examine(off)
		if err != nil {
			return err
		}
		if p.kind == placeBad {
			next, err := l.search(off + 1)
			if err != nil {
				return err
			}
			if err := w.skip(off, next, "no record begins here"); err != nil {
				return err
			}
			off = next
		}
	}
	for off < w.size {
		next, err := l.step(off)
		if err != nil {
			return err
		}
		off = next
	}
	return nil
}

// step hands out what stands at off, and returns where to go on.
func (l *logWalk) step(off int64) (int64, error) {
	p, err := l.examine(off)
	if err != nil {
		return 0, err
	}
	switch p.kind {
	case placeRecord:
		m := p.view.(*codec.MessageView)
		return off + p.size, l.record("Message", off, p.view, Note{"log_offset", m.PhysicalOffset()},
			Note{"checksum", p.checksum.String()})
	case placeBlank:
		var notes []Note
		if l.base >= 0 {
			notes = append(notes, Note{"log_offset", l.base + off})
		}
		if err := l.record("Blank", off, p.view, notes...); err != nil {
			return 0, err
		}
		return l.size, l.skip(off+p.size, l.size, "behind the end-of-segment mark")
	case placeZero:
		return l.zeros(off)
	}
	next, err := l.search(off + 1)
	if err == nil && l.again(off) {
		return off, nil
	}
	if err == nil && next == l.size {
		next, err = l.zerosFrom(off+1, l.size)
	}
	if err != nil {
		return 0, err
	}
	var view func(b []byte) (codec.Describer, error)
	if p.view != nil {
		view = mustInfo(p.fault.record).View
	}
	return next, l.wrong(off, next, p.fault, view, p.size)
}

// zeros hands out the zeros at off, which are wrong if a record stands behind
// them.
func (l *logWalk) zeros(off int64) (int64, error) {
	nz, err := l.nonZero(off, l.size)
	if err != nil {
		return 0, err
	}
	if nz == l.size {
		return nz, l.skip(off, nz, "")
	}
	next, err := l.search(off + 1)
	if err != nil {
		return 0, err
	}
	if l.again(off) {
		return off, nil
	}
	if next < l.size {
		return next, l.wrong(off, next, &fault{reason: "zeros where a record must stand"}, nil, 0)
	}
	if err := l.skip(off, nz, ""); err != nil {
		return 0, err
	}
	end, err := l.zerosFrom(nz, l.size)
	if err != nil {
		return 0, err
	}
	return end, l.wrong(nz, end, &fault{reason: "bytes behind the end of the log that are no record"}, nil, 0)
}

// examine judges what stands at off.
func (l *logWalk) examine(off int64) (place, error) {
	b, err := l.at(off, codec.BlankSize)
	if err != nil {
		return place{}, err
	}
	total, magic, ok := codec.PeekMessage(b)
	left := l.size - off
	switch {
	case zero(b):
		return place{kind: placeZero}, nil
	case !ok:
		return place{fault: &fault{reason: fmt.Sprintf("%d bytes are left, fewer than an end-of-segment mark has", left)}}, nil
	case magic == codec.BlankMagic:
		v, err := mustInfo("Blank").View(b)
		if err == nil && int64(total) != left {
			return place{view: v, size: codec.BlankSize, fault: &fault{"Blank", "Size", 0,
				fmt.Sprintf("says %d bytes up to the end of the file, %d are there", total, left)}}, nil
		}
		if err != nil {
			return place{fault: faultOf("Blank", err)}, nil
		}
		return place{kind: placeBlank, size: codec.BlankSize, view: v}, nil
	case magic != codec.MessageMagicV1 && magic != codec.MessageMagicV2:
		return place{fault: &fault{"Message", "Magic", 4, fmt.Sprintf("is %#x, which no record has", magic)}}, nil
	case int64(total) > left:
		return place{fault: &fault{"Message", "TotalSize", 0, fmt.Sprintf("says %d bytes, %d are left in the file", total, left)}}, nil
	case total > maxRecord:
		return place{fault: &fault{"Message", "TotalSize", 0, fmt.Sprintf("says %d bytes, more than the %d that are read", total, maxRecord)}}, nil
	}
	if b, err = l.at(off, max(int64(total), codec.MessageMinSize)); err != nil {
		return place{}, err
	}
	v := new(codec.MessageView)
	if err := v.Parse(b); err != nil {
		return place{fault: faultOf("Message", err)}, nil
	}
	return l.judge(off, v), nil
}

// judge checks the place and the checksums of a record that can be read.
func (l *logWalk) judge(off int64, v *codec.MessageView) place {
	p := place{kind: placeRecord, size: int64(len(v.Bytes())), view: v}
	bad := func(field, format string, args ...any) place {
		p.kind, p.fault = placeBad, &fault{record: "Message", field: field, reason: fmt.Sprintf(format, args...)}
		p.fault.at = fieldAt(v, field)
		return p
	}
	base := l.base
	if base < 0 {
		base = v.PhysicalOffset() - off
	}
	at := base + off
	if base < 0 || v.PhysicalOffset() != at {
		return bad("PhysicalOffset", "is %d, which is not where the record stands", v.PhysicalOffset())
	}
	switch p.checksum = codec.CheckRecord(v.Bytes()); {
	case p.checksum != codec.ChecksumValid && contains(l.opt.Ours, at):
		return bad("Properties", "the checksum over the whole record is %v, where every record has one", p.checksum)
	case p.checksum != codec.ChecksumValid && !v.CheckBodyCRC():
		return bad("BodyCRC", "is %#08x, the body gives another one", v.BodyCRC())
	case l.kind.full && off+p.size+codec.BlankSize > l.size:
		return bad("TotalSize", "leaves no room for the end-of-segment mark")
	}
	l.base = base
	return p
}

// contains says whether off is in one of the ranges.
func contains(ranges []contract.Range, off int64) bool {
	for _, r := range ranges {
		if r.Contains(contract.Offset(off)) {
			return true
		}
	}
	return false
}

// search returns the first place from off on where a record stands that belongs
// there, the file's length if there is none.
func (l *logWalk) search(off int64) (int64, error) {
	for pos := off; pos < l.size; {
		b, err := l.some(pos, codec.BlankSize)
		if err != nil {
			return 0, err
		}
		hit := firstStart(b)
		if hit < 0 {
			// The last bytes may be the start of a record, and the first ones of
			// its size are zeros.
			next := pos + max(1, int64(len(b)-codec.BlankSize+1))
			if pos, err = l.nonZero(next, l.size); err != nil {
				return 0, err
			}
			if pos < l.size {
				pos = max(next, pos-codec.MessageMagicOffset)
			}
			continue
		}
		at := pos + int64(hit)
		pos = at + 1
		if b, err = l.at(at, codec.BlankSize); err != nil {
			return 0, err
		}
		if total, magic, _ := codec.PeekMessage(b); magic != codec.BlankMagic && (total < codec.MessageMinSize || int64(total) > l.size-at) {
			continue
		}
		base := l.base
		p, err := l.examine(at)
		if err != nil {
			return 0, err
		}
		if l.base = base; p.kind == placeRecord || p.kind == placeBlank {
			return at, nil
		}
	}
	return l.size, nil
}

// firstStart returns the first place in b where a record of either kind may
// start, or -1.
func firstStart(b []byte) int {
	hit, blank := codec.FindMessage(b), codec.FindBlank(b)
	if hit < 0 || blank >= 0 && blank < hit {
		return blank
	}
	return hit
}
