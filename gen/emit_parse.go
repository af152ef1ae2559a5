package gen

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// bound is a run of fields whose bounds Parse checks at once: all that can be
// placed before the next length or condition has been read.
type bound struct {
	fields []*Field
	// end is the place up to which the fixed parts of the fields reach.
	end Pos
}

// bounds cuts the fields of r into runs. A run ends behind a length, and before
// a field that hangs on a field of the same run.
func (r *Record) bounds() []bound {
	var out []bound
	var cur bound
	flush := func() {
		if len(cur.fields) > 0 {
			out = append(out, cur)
		}
		cur = bound{}
	}
	for _, f := range r.Fields {
		for _, x := range f.needs() {
			if slices.Contains(cur.fields, x) {
				flush()
			}
		}
		cur.fields = append(cur.fields, f)
		cur.end = f.spanEnd()
		if f.isDynamic() {
			flush()
		}
	}
	flush()
	return out
}

// needs returns the fields that must be read before f can be placed.
func (f *Field) needs() []*Field {
	var out []*Field
	for _, c := range f.If {
		out = append(out, c.Field)
	}
	if f.AltIf != nil {
		out = append(out, f.AltIf.Field)
	}
	if f.SizedBy != nil {
		out = append(out, f.SizedBy)
	}
	return out
}

// spanEnd is where the part of a field ends that its run checks.
func (f *Field) spanEnd() Pos {
	if f.isDynamic() {
		return f.Data
	}
	return f.End
}

// needsSeal says whether a patch of a late field makes a checksum wrong that
// Parse checks.
func (r *Record) needsSeal() bool {
	late := slices.ContainsFunc(r.Fields, func(f *Field) bool { return f.Late })
	return late && slices.ContainsFunc(r.Fields, func(f *Field) bool { return f.eager() && f.coversLate(r) })
}

// eager says whether Parse checks the checksum f.
func (f *Field) eager() bool { return f.Kind == KindChecksum && !f.Sum.Lazy && !f.Sum.Given }

// coversLate says whether a checksum covers a late field, or another checksum
// that does.
func (f *Field) coversLate(r *Record) bool {
	first, last := 0, slices.Index(r.Fields, f)-1
	if f.Sum.Given {
		return false
	}
	if !f.Sum.Preceding {
		first, last = slices.Index(r.Fields, f.Sum.First), slices.Index(r.Fields, f.Sum.Last)
	}
	for _, x := range r.Fields[first : last+1] {
		if x.Late || x.Sum != nil && x.coversLate(r) {
			return true
		}
	}
	return false
}

// emitParse prints the validator. Every length is bounded by what is left
// before it is used, so that no input can make it read beyond its end.
func emitParse(p *printer, r *Record) {
	doc := []string{
		fmt.Sprintf("Parse checks that b starts with a %s and makes v a view of it. b may be", r.Name),
		"longer than the record. The error is a *FieldError that names the first field",
		"that is wrong; v is then as it was. Parse allocates only for an error.",
	}
	switch {
	case r.Key:
		doc[0] = fmt.Sprintf("Parse checks that b is a %s, no more and no less, and makes v a view of", r.Name)
		doc[1] = "it. The error is a *FieldError that names the first field"
	case r.Total == nil && slices.ContainsFunc(r.Fields, (*Field).isRest):
		doc[0] = fmt.Sprintf("Parse checks that b is a %s, to its end, and makes v a view of it.", r.Name)
		doc[1] = "The error is a *FieldError that names the first field"
	}
	for _, f := range r.Fields {
		if f.Sum != nil && (f.Sum.Lazy || f.Sum.Given) {
			doc = append(doc, fmt.Sprintf("%s is not checked: see Check%s.", f.Name, f.Name))
		}
	}
	head := fmt.Sprintf("func (v *%s) Parse(b []byte) error", r.viewName())
	if r.needsSeal() {
		p.function(doc, head, func() { p.line("return v.parse(b, true)") })
		doc = []string{"parse is Parse; without sums it checks no checksum."}
		head = fmt.Sprintf("func (v *%s) parse(b []byte, sums bool) error", r.viewName())
	}
	p.function(doc, head, func() {
		body := &parseEmitter{p: p, r: r}
		for i, g := range r.bounds() {
			body.bound(g, i == 0)
		}
		body.finish()
		body.declareHead()
	})
}

// parseEmitter prints the body of Parse.
type parseEmitter struct {
	p *printer
	r *Record
	// head holds the fields of the first run, which are read through an array
	// called h. It is declared at headAt if anything reads it.
	head     []*Field
	headAt   int
	headSize string
}

// declareHead declares h where it is due.
func (e *parseEmitter) declareHead() {
	all := e.p.buf.Bytes()
	if e.head == nil || !bytes.Contains(all[e.headAt:], []byte("h[")) && e.r.Size == 0 {
		return
	}
	rest := bytes.Clone(all[e.headAt:])
	e.p.buf.Truncate(e.headAt)
	e.p.line("h := (*[%s]byte)(b)", e.headSize)
	e.p.buf.Write(rest)
}

// load prints the reading of an integer field.
func (e *parseEmitter) load(f *Field) string {
	switch {
	case f.Kind == KindMagic:
		return "magic"
	case f.Kind == KindVersion:
		return "version"
	}
	return e.read(f)
}

func (e *parseEmitter) read(f *Field) string {
	if slices.Contains(e.head, f) {
		return f.load("h", Pos.local)
	}
	return f.load("b", Pos.local)
}

// readAs prints the reading of a length or count of type t at a place.
func (e *parseEmitter) readAs(t Int, at Pos) string {
	base := "b"
	return fmt.Sprintf("int(%s)", loadInt(t, base, at.local(), at.add(t.Bytes).local()))
}

// maybe says whether the field may be absent, and present prints the condition
// under which its first bytes are there.
func (f *Field) maybe() bool { return len(f.If) > 0 }

func (e *parseEmitter) present(f *Field) string { return e.r.condsExpr(f.If, e.load) }

// bound prints the checks of one run.
func (e *parseEmitter) bound(g bound, first bool) {
	p, r := e.p, e.r
	for _, f := range g.fields {
		e.anchors(f)
	}
	last := g.fields[len(g.fields)-1]
	if end := g.end.local(); g.end != g.fields[0].At {
		if r.Size > 0 {
			end = r.sizeName()
		}
		p.block(fmt.Sprintf("if len(b) < %s", end), func() {
			var spans []string
			for _, f := range g.fields {
				spans = append(spans, fmt.Sprintf("{%q, %s, %s}", f.Name, f.At.local(), f.spanEnd().local()))
			}
			p.line("return truncated(%q, len(b), []span{%s})", r.Name, strings.Join(spans, ", "))
		})
		if first {
			e.headAt, e.headSize = p.buf.Len(), end
			e.head = g.fields
		}
	}
	for _, kind := range []Kind{KindMagic, KindVersion, KindTotal} {
		for _, f := range g.fields {
			if f.Kind == kind {
				e.headCheck(f)
			}
		}
	}
	if r.Size > 0 {
		e.sums()
	}
	for _, f := range g.fields {
		if !f.isDynamic() {
			e.content(f)
		}
	}
	if last.isDynamic() {
		e.dynamic(last)
	}
}

// checkedInParse says whether an integer has values that Parse refuses.
func (f *Field) checkedInParse() bool {
	return f.Kind == KindInt && (f.Value != nil || f.Choices != nil || f.Int.Bool || f.Enum != nil && !f.Enum.Open ||
		f.Min != nil && f.Min.Cmp(f.Int.Min()) > 0 || f.Max != nil && f.Max.Cmp(f.Int.Max()) < 0)
}

// anchors prints the reckoning of the anchors of a field that follow from
// conditions.
func (e *parseEmitter) anchors(f *Field) {
	p := e.p
	least, more, cond := f.Width, 0, ""
	switch {
	case f.Kind == KindFlagBytes:
		more, cond = f.AltWidth-f.Width, e.r.condExpr(f.AltIf, e.load(f.AltIf.Field))
	case f.Alt != nil:
		least, more, cond = f.Int.Bytes, f.Alt.Bytes-f.Int.Bytes, e.r.condExpr(f.AltIf, e.load(f.AltIf.Field))
	case !f.maybe():
		return
	case f.hasPrefix():
		least, more, cond = 0, f.Int.Bytes, e.present(f)
	case f.isDynamic():
		return
	default:
		least, more, cond = 0, f.Width, e.present(f)
	}
	a := f.spanEnd().Anchor
	p.line("a%d := %s", a, f.At.add(least).local())
	p.block("if "+cond, func() { p.line("a%d += %d", a, more) })
}

// headCheck prints the checks that decide how to read on.
func (e *parseEmitter) headCheck(f *Field) {
	p, r := e.p, e.r
	switch f.Kind {
	case KindMagic:
		p.line("magic := %s", e.read(f))
		emitValueChecks(p, r, f, "magic", "return ", false)
	case KindVersion:
		e.version(f)
	case KindTotal:
		p.line("total := int(%s)", e.read(f))
		if r.Size > 0 {
			p.block(fmt.Sprintf("if total != %s", r.sizeName()), func() {
				p.line("return badTotal(%s, total, %s, %s)", r.where(f), r.sizeName(), r.sizeName())
			})
			return
		}
		p.block(fmt.Sprintf("if total < %s || total > len(b)", r.sizeName()), func() {
			p.line("return badTotal(%s, total, %s, len(b))", r.where(f), r.sizeName())
		})
		p.line("b = b[:total:total]")
	}
}

func (e *parseEmitter) version(f *Field) {
	p, r := e.p, e.r
	name := r.constName(f)
	used := slices.ContainsFunc(r.Fields, func(x *Field) bool { return slices.Contains(x.needs(), f) })
	head := "if version := " + e.read(f) + "; "
	if used {
		p.line("version := %s", e.read(f))
		head = "if "
	}
	if f.FromVersion == f.Value.Int64() {
		p.block(fmt.Sprintf("%sversion != %s", head, name), func() {
			p.line("return badVersion(%s, version, %s)", r.where(f), name)
		})
		return
	}
	p.block(fmt.Sprintf("%sversion > %s || version == 0", head, name), func() {
		p.line("return badVersion(%s, version, %s)", r.where(f), name)
	})
	if !used {
		head = "if version := " + e.read(f) + "; "
	}
	if f.FromVersion > 1 || f.Int.Signed {
		p.block(fmt.Sprintf("%sversion < %d", head, f.FromVersion), func() {
			p.line("return oldVersion(%s, version, %d)", r.where(f), f.FromVersion)
		})
	}
}

// content prints the checks of a field of fixed width.
func (e *parseEmitter) content(f *Field) {
	body := &printer{}
	e.contentChecks(body, f)
	if body.buf.Len() == 0 {
		return
	}
	e.p.when(f.maybe(), fmt.Sprintf("if %s > %s", f.End.local(), f.At.local()), func() {
		e.p.buf.Write(body.buf.Bytes())
	})
}

func (e *parseEmitter) contentChecks(p *printer, f *Field) {
	r, at, end := e.r, f.At.local(), f.At.add(f.Width).local()
	if f.Kind == KindFlagBytes {
		end = f.End.local()
	}
	switch {
	case f.Kind == KindReserved:
		p.block(fmt.Sprintf("if [%d]byte(b[%s:%s]) != [%d]byte{}", f.Width, at, end, f.Width), func() {
			p.line("return notZero(%s)", r.where(f))
		})
	case f.Kind == KindConstBytes:
		p.block(fmt.Sprintf("if string(b[%s:%s]) != %s", at, end, r.constName(f)), func() {
			p.line("return wrongBytes(%s, b[%s:%s], %s)", r.where(f), at, end, r.constName(f))
		})
	case f.Kind == KindChecksum && f.Int.Decimal:
		p.block(fmt.Sprintf("if _, ok := getDecimal(b[%s:%s], %s, %t); !ok", at, end, f.decimalLimit(), f.Int.Reversed), func() {
			p.line("return notDigits(%s)", r.where(f))
		})
	case f.Int.Bool && f.Kind == KindInt:
		p.block(fmt.Sprintf("if b[%s] > 1", at), func() { p.line("return outOfRange(%s, b[%s], 0, 1)", r.where(f), at) })
	case f.checkedInParse():
		p.line("x%s := %s", f.Name, e.read(f))
		emitValueChecks(p, r, f, "x"+f.Name, "return ", false)
	}
	if f.UTF8 {
		e.text(p, f, at, end)
	}
}

// text prints the check that text is valid.
func (e *parseEmitter) text(p *printer, f *Field, at, end string) {
	value := fmt.Sprintf("b[%s:%s]", at, end)
	if f.Kind == KindPadBytes {
		value = fmt.Sprintf("trimPad(%s, %#02x)", value, f.Pad) // what fills it up may be no text
	}
	p.block(fmt.Sprintf("if !utf8.Valid(%s)", value), func() { p.line("return notText(%s)", e.r.where(f)) })
}

// decimalLimit is the largest number that the digits of a checksum can be.
func (f *Field) decimalLimit() string {
	if f.Sum.Mask != nil {
		return f.Sum.Mask.Text
	}
	return "0xffffffff"
}

// sums prints the checks of all checksums.
func (e *parseEmitter) sums() {
	p := e.p
	body := &printer{}
	for _, f := range e.r.Fields {
		if !f.eager() {
			continue
		}
		body.when(f.maybe(), fmt.Sprintf("if %s > %s", f.End.local(), f.At.local()), func() {
			covered := fmt.Sprintf("b[%s:%s]", f.Sum.From.local(), f.Sum.To.local())
			stored := loadInt(f.Int, "b", f.At.local(), f.At.add(f.Int.Bytes).local())
			body.block(fmt.Sprintf("if want, got := %s, %s; got != want", f.sum(covered), stored), func() {
				body.line("return badChecksum(%s, got, want)", e.r.where(f))
			})
		})
	}
	if body.buf.Len() > 0 {
		p.when(e.r.needsSeal(), "if sums", func() { p.buf.Write(body.buf.Bytes()) })
	}
}

// finish prints what follows the last field.
func (e *parseEmitter) finish() {
	p, r := e.p, e.r
	last := r.Fields[len(r.Fields)-1]
	end := r.End().local()
	switch {
	case r.Key && r.Size > 0:
		p.block(fmt.Sprintf("if len(b) > %s", r.sizeName()), func() {
			p.line("return badEnd(%q, %q, %s, len(b)-%s)", r.Name, last.Name, last.At.local(), r.sizeName())
		})
	case r.Key && !last.isRest():
		p.block(fmt.Sprintf("if %s != len(b)", end), func() {
			p.line("return badEnd(%q, %q, %s, len(b)-(%s))", r.Name, last.Name, last.At.local(), end)
		})
	case r.Total != nil && r.Size == 0:
		p.block(fmt.Sprintf("if %s != len(b)", end), func() {
			p.line("return badSum(%s, len(b), %s)", r.where(r.Total), end)
		})
	}
	for _, f := range r.Fields {
		if f.Measure == MeasureNone || f.Of.SizedBy == f && f.single() == f.Of {
			continue
		}
		n := e.measured(f)
		p.when(f.maybe(), fmt.Sprintf("if %s > %s", f.End.local(), f.At.local()), func() {
			p.block(fmt.Sprintf("if got := int(%s); got != %s", e.read(f), n), func() {
				p.line("return badSum(%s, got, %s)", r.where(f), n)
			})
		})
	}
	if r.Size > 0 {
		p.line("v.p = h")
		p.line("return nil")
		return
	}
	e.sums()
	if r.Total == nil {
		p.line("v.b = b[:%s:%s]", end, end)
	} else {
		p.line("v.b = b")
	}
	for a := 1; a <= r.storedAnchors(); a++ {
		p.line("v.a%d = a%d", a, a)
	}
	p.line("return nil")
}

// measured prints the number of bytes that a length field must have.
func (e *parseEmitter) measured(f *Field) string {
	from, to := f.Of.At, f.OfEnd.End
	if of := f.single(); of != nil {
		from = of.Data
		if of.Kind == KindUntilBytes {
			to = to.add(-1)
		}
	}
	return fmt.Sprintf("%s-(%s)", to.local(), from.local())
}
