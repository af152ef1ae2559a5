package gen

import (
	"slices"
	"strings"
)

// Records whose widths hang on flags or on the magic nearly always have the
// first of each width. Encode has a path of its own for them, on which these
// fields are at fixed places: see emitEncode.

// firstForm returns the record as it is if no alternative holds, and the
// conditions of the alternatives; nil if r has none. The record is for
// emitters alone.
func (r *Record) firstForm() (*Record, []*Cond) {
	var alts []*Cond
	places := map[int]Pos{} // of the anchors that are no more
	place := func(p Pos) Pos {
		for {
			q, ok := places[p.Anchor]
			if !ok {
				return p
			}
			p = q.add(p.Off)
		}
	}
	form, copies := *r, map[*Field]*Field{}
	form.Fields = nil
	for _, f := range r.Fields {
		x := *f
		if f.AltIf != nil && len(f.If) == 0 && f.Until == 0 {
			alts = append(alts, f.AltIf)
			x.Alt, x.AltIf, x.AltWidth = nil, nil, 0
			if f.Kind == KindFlagBytes {
				places[f.End.Anchor] = f.At.add(f.Width)
			} else {
				places[f.Data.Anchor] = f.At.add(f.Int.Bytes)
			}
		}
		x.At, x.Data, x.End = place(f.At), place(f.Data), place(f.End)
		form.Fields = append(form.Fields, &x)
		copies[f] = &x
	}
	if alts == nil {
		return nil, nil
	}
	copyOf := func(f *Field) *Field {
		if f == nil {
			return nil
		}
		return copies[f]
	}
	for _, x := range form.Fields {
		x.Of, x.OfEnd, x.SizedBy = copyOf(x.Of), copyOf(x.OfEnd), copyOf(x.SizedBy)
		if x.Sum != nil {
			sum := *x.Sum
			sum.First, sum.Last = copyOf(sum.First), copyOf(sum.Last)
			sum.From, sum.To = place(sum.From), place(sum.To)
			x.Sum = &sum
		}
	}
	form.Total, form.Magic, form.Version = copyOf(r.Total), copyOf(r.Magic), copyOf(r.Version)
	return &form, alts
}

// noneExpr prints that none of the conditions holds.
func (r *Record) noneExpr(conds []*Cond) string {
	var parts []string
	for _, c := range conds {
		part := "!" + structValue(c.Field)
		if !c.Field.Int.Bool {
			not := *c
			not.Op = map[string]string{"==": "!=", "!=": "==", ">=": "<", "<=": ">"}[c.Op]
			part = r.condExpr(&not, structValue(c.Field))
		}
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " && ")
}
