package gen

import (
	"fmt"
	"strings"
)

// group is a run of fields whose bounds Parse checks at once: all that can be
// placed before the next length or flag has been read.
type group struct {
	fields []*Field
	// end is the place up to which the group's fixed parts reach.
	end Pos
}

// groups cuts the fields of r into groups. A group ends behind a length, and
// before a width that hangs on a field of the same group.
func (r *Record) groups() []group {
	var out []group
	var cur group
	has := func(f *Field) bool {
		for _, x := range cur.fields {
			if x == f {
				return true
			}
		}
		return false
	}
	flush := func() {
		if len(cur.fields) > 0 {
			out = append(out, cur)
		}
		cur = group{}
	}
	for _, f := range r.Fields {
		if f.AltIf != nil && has(f.AltIf.Field) {
			flush()
		}
		cur.fields = append(cur.fields, f)
		cur.end = f.End
		if f.Kind == KindVarBytes {
			cur.end = f.Data
			flush()
		}
	}
	flush()
	return out
}

// emitParse prints the validator. Every length is bounded by what is left
// before it is used, so that no input can make it read beyond its end.
func emitParse(p *printer, r *Record) {
	doc := []string{
		fmt.Sprintf("Parse checks that b starts with a %s and makes v a view of it. b may be", r.Name),
		"longer than the record. The error is a *FieldError that names the first field",
		"that is wrong; v is then as it was. Parse allocates only for an error.",
	}
	for _, f := range r.Fields {
		if f.Sum != nil && f.Sum.Lazy {
			doc = append(doc, fmt.Sprintf("%s is not checked: see Check%s.", f.Name, f.Name))
		}
	}
	p.function(doc, fmt.Sprintf("func (v *%s) Parse(b []byte) error", r.viewName()), func() {
		for i, g := range r.groups() {
			emitGroup(p, r, g, i == 0)
		}
		if r.Size > 0 {
			p.line("v.p = h")
			p.line("return nil")
			return
		}
		end := r.End().expr("a")
		p.block(fmt.Sprintf("if %s != len(b)", end), func() {
			p.line("return badSum(%q, %q, %s, len(b), %s)", r.Name, r.Total.Name, r.Total.At.expr("a"), end)
		})
		for _, f := range r.Fields {
			emitSumCheck(p, r, f)
		}
		p.line("v.b = b")
		for a := 1; a <= r.storedAnchors(); a++ {
			p.line("v.a%d = a%d", a, a)
		}
		p.line("return nil")
	})
}

// emitSumCheck prints the check of a checksum that is not lazy.
func emitSumCheck(p *printer, r *Record, f *Field) {
	if f.Kind != KindChecksum || f.Sum != nil && f.Sum.Lazy {
		return
	}
	covered := fmt.Sprintf("b[%s:%s]", f.Sum.From.expr("a"), f.Sum.To.expr("a"))
	stored := loadInt(f.Int, "b", f.At.expr("a"), f.End.expr("a"))
	p.block(fmt.Sprintf("if want, got := %s, %s; got != want", f.sum(covered), stored), func() {
		p.line("return badChecksum(%q, %q, %s, got, want)", r.Name, f.Name, f.At.expr("a"))
	})
}

func emitGroup(p *printer, r *Record, g group, first bool) {
	last := g.fields[len(g.fields)-1]
	for _, f := range g.fields {
		if f.Kind == KindFlagBytes {
			a := f.End.Anchor
			p.line("a%d := %s", a, f.At.add(f.Width).expr("a"))
			flag := loadInt(f.AltIf.Field.Int, "h", f.AltIf.Field.At.expr(""), f.AltIf.Field.End.expr(""))
			p.block(fmt.Sprintf("if %s&%s != 0", flag, f.AltIf.Mask.Text), func() {
				p.line("a%d += %d", a, f.AltWidth-f.Width)
			})
		}
	}
	if last.Alt != nil {
		p.line("a%d := %s", last.Data.Anchor, last.At.add(last.Int.Bytes).expr("a"))
		p.block(fmt.Sprintf("if magic == %s", r.choiceName(r.Magic, r.Magic.choice(last.AltIf.ValueName))), func() {
			p.line("a%d += %d", last.Data.Anchor, last.Alt.Bytes-last.Int.Bytes)
		})
	}
	end := g.end.expr("a")
	if r.Size > 0 {
		end = r.sizeName()
	}
	p.block(fmt.Sprintf("if len(b) < %s", end), func() {
		var spans []string
		for _, f := range g.fields {
			spans = append(spans, fmt.Sprintf("{%q, %s, %s}", f.spanName(), f.At.expr("a"), f.spanEnd().expr("a")))
		}
		p.line("return truncated(%q, len(b), []span{%s})", r.Name, strings.Join(spans, ", "))
	})
	if first {
		p.line("h := (*[%s]byte)(b)", end)
	}
	for _, kind := range []Kind{KindMagic, KindVersion, KindTotal} {
		for _, f := range g.fields {
			if f.Kind == kind {
				emitHeadCheck(p, r, f)
			}
		}
	}
	if r.Size > 0 {
		for _, f := range g.fields {
			emitSumCheck(p, r, f)
		}
	}
	for _, f := range g.fields {
		emitFieldCheck(p, r, f)
	}
	if last.Kind == KindVarBytes {
		emitLength(p, r, last)
	}
}

// spanName names a field in an error about too few bytes.
func (f *Field) spanName() string { return f.Name }

// spanEnd is where the part of a field ends that its group checks.
func (f *Field) spanEnd() Pos {
	if f.Kind == KindVarBytes {
		return f.Data
	}
	return f.End
}

// load prints the reading of a scalar field in Parse.
func (f *Field) load() string {
	if f.At.Anchor == 0 {
		return loadInt(f.Int, "h", f.At.expr("a"), f.End.expr("a"))
	}
	return loadInt(f.Int, "b", f.At.expr("a"), f.End.expr("a"))
}

// emitHeadCheck prints the checks that decide how to read on.
func emitHeadCheck(p *printer, r *Record, f *Field) {
	where := fmt.Sprintf("%q, %q, %s", r.Name, f.Name, f.At.expr("a"))
	switch f.Kind {
	case KindMagic:
		p.line("magic := %s", f.load())
		emitValueChecks(p, r, f, "magic", "return ")
	case KindVersion:
		name := r.constName(f)
		p.block(fmt.Sprintf("if version := %s; version != %s", f.load(), name), func() {
			p.line("return badVersion(%s, int64(version), int64(%s))", where, name)
		})
	case KindTotal:
		p.line("total := int(%s)", f.load())
		if r.Size > 0 {
			p.block(fmt.Sprintf("if total != %s", r.sizeName()), func() {
				p.line("return badTotal(%s, total, %s, %s)", where, r.sizeName(), r.sizeName())
			})
			return
		}
		p.block(fmt.Sprintf("if total < %s || total > len(b)", r.sizeName()), func() {
			p.line("return badTotal(%s, total, %s, len(b))", where, r.sizeName())
		})
		p.line("b = b[:total:total]")
	}
}

func emitFieldCheck(p *printer, r *Record, f *Field) {
	switch {
	case f.Kind == KindReserved:
		p.block(fmt.Sprintf("if [%d]byte(b[%s:%s]) != [%d]byte{}", f.Width, f.At.expr("a"), f.End.expr("a"), f.Width), func() {
			p.line("return notZero(%q, %q, %s)", r.Name, f.Name, f.At.expr("a"))
		})
	case f.Kind == KindInt && (f.Value != nil || len(f.Choices) > 0 || f.Min != nil || f.Max != nil):
		p.line("%s := %s", localName(f), f.load())
		emitValueChecks(p, r, f, localName(f), "return ")
	}
}

func localName(f *Field) string { return "x" + f.Name }

// emitLength prints the reading of a length, its bounds, and the anchor behind
// the bytes that it counts.
func emitLength(p *printer, r *Record, f *Field) {
	n := fmt.Sprintf("n%d", f.End.Anchor)
	prefixEnd := f.At.add(f.Int.Bytes).expr("a")
	p.line("%s := int(%s)", n, loadInt(f.Int, "b", f.At.expr("a"), prefixEnd))
	if f.Alt != nil {
		p.block(fmt.Sprintf("if magic == %s", r.choiceName(r.Magic, r.Magic.choice(f.AltIf.ValueName))), func() {
			p.line("%s = int(%s)", n, loadInt(*f.Alt, "b", f.At.expr("a"), f.At.add(f.Alt.Bytes).expr("a")))
		})
	}
	bad := fmt.Sprintf("uint(%s) > uint(len(b)-(%s))", n, f.Data.expr("a"))
	least, most := "0", "math.MaxInt32"
	if f.Max != nil {
		most = f.Max.String()
		bad += fmt.Sprintf(" || %s > %s", n, most)
	}
	if f.Min != nil && f.Min.Abs > 0 {
		least = f.Min.String()
		bad += fmt.Sprintf(" || %s < %s", n, least)
	}
	p.block("if "+bad, func() {
		p.line("return badLength(%q, %q, %s, %s, %s, %s, len(b)-(%s))",
			r.Name, f.Name, f.At.expr("a"), n, least, most, f.Data.expr("a"))
	})
	p.line("a%d := %s + %s", f.End.Anchor, f.Data.expr("a"), n)
}
