package gen

import "fmt"

// emitEncode prints Encode: first every check, then one store per field into
// parts whose bounds are checked once.
func emitEncode(p *printer, r *Record) {
	doc := []string{
		"Encode writes the record into the front of dst and returns its size. It",
		"allocates nothing. The error is a *FieldError if a field is not legal or dst",
		"is too short; dst is then as it was.",
	}
	if f := r.givenSum(); f != nil {
		doc = append(doc, fmt.Sprintf("%s covers given.", f.Name))
	}
	p.function(doc, fmt.Sprintf("func (m *%s) Encode(dst []byte%s) (int, error)", r.Name, r.givenParam()), func() {
		if form, alts := r.firstForm(); form != nil {
			p.line("// The widths are the first ones nearly always: then more is at fixed places.")
			p.block("if "+r.noneExpr(alts), func() { emitEncodeBody(p, form) })
		}
		emitEncodeBody(p, r)
	})
}

// emitEncodeBody prints the checks, the stores and the return.
func emitEncodeBody(p *printer, r *Record) {
	emitChecks(p, r)
	size := r.sizeName()
	if r.Size == 0 {
		size = r.End().local()
	}
	p.block(fmt.Sprintf("if len(dst) < %s", size), func() {
		p.line("return 0, shortBuffer(%q, %s, len(dst))", r.Name, size)
	})
	if r.Size == 0 {
		p.line("dst = dst[:%s]", size)
	}
	emitParts(p, r)
	for _, f := range r.Fields {
		if f.Kind == KindChecksum && f.Until == 0 {
			p.when(len(f.encodeConds()) > 0, fmt.Sprintf("if %s > %s", f.End.local(), f.At.local()), func() {
				p.line("%s", storeInt(f.Int, "dst", f.At.local(), f.At.add(f.Int.Bytes).local(), f.sum(r.coveredByEncode(f))))
			})
		}
	}
	p.line("return %s, nil", size)
}

// coveredByEncode is the expression of the bytes that a checksum covers. The
// caller's own bytes are taken where they are the same, since reading back
// what was just written is slower.
func (r *Record) coveredByEncode(sum *Field) string {
	if sum.Sum.Given {
		return "given"
	}
	if f := sum.Sum.First; f != nil && f == sum.Sum.Last && f.IsBytes() && f.isDynamic() && f.Reserve == "" && f.Until == 0 {
		return "m." + f.Name
	}
	return fmt.Sprintf("dst[%s:%s]", sum.Sum.From.local(), sum.Sum.To.local())
}

// sum prints the checksum of the bytes that covered names.
func (f *Field) sum(covered string) string {
	s := fmt.Sprintf(algorithms[f.Sum.Algorithm].call, covered)
	if f.Sum.Mask != nil {
		s += "&" + f.Sum.Mask.Text
	}
	return s
}

// measured prints what a length or count field has to say.
func (r *Record) measured(f *Field) string {
	of := f.single()
	switch {
	case f.Measure == MeasureCount && f.Of.Until != 0:
		return "0"
	case f.Measure == MeasureCount:
		return fmt.Sprintf("len(m.%s)", f.Of.Name)
	case of == nil:
		return fmt.Sprintf("%s-(%s)", f.OfEnd.End.local(), f.Of.At.local())
	case of.isDynamic() && of.IsBytes() && of.Reserve == "" && of.Until == 0:
		return fmt.Sprintf("len(m.%s)", of.Name)
	}
	return fmt.Sprintf("%s-(%s)", of.End.local(), of.Data.local())
}

// emitParts prints the stores. A part is a run of fields of fixed width; its
// bounds are checked by one conversion to an array pointer.
func emitParts(p *printer, r *Record) {
	for i := 0; i < len(r.Fields); {
		start, end := r.Fields[i].At, r.Fields[i].At
		j := i
		for j < len(r.Fields) && r.Fields[j].partEnd().Anchor == start.Anchor && r.Fields[j].At.Anchor == start.Anchor {
			end = r.Fields[j].partEnd()
			j++
			if r.Fields[j-1].isDynamic() {
				break
			}
		}
		if j > i && end.Off > start.Off {
			emitPart(p, r, r.Fields[i:j], start, end)
		}
		if j == i {
			j++
		}
		for _, f := range r.Fields[i:j] {
			emitData(p, r, f)
		}
		i = j
	}
}

// partEnd returns where the part of the field ends that is always there and
// has a fixed width: of bytes with a length that is the end of the length.
func (f *Field) partEnd() Pos {
	end := f.End
	if f.isDynamic() {
		end = f.Data
	}
	if end.Anchor != f.At.Anchor {
		return Pos{Anchor: -1}
	}
	return end
}

// stores says whether emitStore prints anything for the field.
func (f *Field) stores() bool {
	return f.Kind != KindChecksum && (!f.isDynamic() || f.hasPrefix())
}

func emitPart(p *printer, r *Record, fields []*Field, start, end Pos) {
	some := false
	for _, f := range fields {
		some = some || f.stores()
	}
	if !some {
		return
	}
	width := end.Off - start.Off
	part := "p0"
	if start.Anchor == 0 && start.Off == 0 {
		p.line("%s := (*[%d]byte)(dst)", part, width)
	} else {
		part = fmt.Sprintf("p%d", start.Anchor)
		p.line("%s := (*[%d]byte)(dst[%s:])", part, width, start.local())
	}
	for _, f := range fields {
		from, to := f.At.Off-start.Off, f.partEnd().Off-start.Off
		emitStore(p, r, f, part, fmt.Sprint(from), fmt.Sprint(to))
	}
}

// emitStore prints the store of a field of fixed width, or of a length or
// count, to base[from:to].
func emitStore(p *printer, r *Record, f *Field, base, from, to string) {
	if !f.stores() {
		return
	}
	value := "m." + f.Name
	switch f.Kind {
	case KindReserved:
		p.line("*(*[%d]byte)(%s[%s:%s]) = [%d]byte{}", f.Width, base, from, to, f.Width)
	case KindConstBytes:
		p.line("copy(%s[%s:%s], %s)", base, from, to, r.constName(f))
	case KindFixedBytes:
		p.line("*(*[%d]byte)(%s[%s:%s]) = %s", f.Width, base, from, to, value)
	case KindFlagBytes:
		p.line("*(*[%d]byte)(%s[%s:%s]) = [%d]byte(%s)", f.Width, base, from, to, f.Width, value)
	case KindPadBytes:
		p.line("putPadded(%s[%s:%s], %s, %#02x)", base, from, to, value, f.Pad)
	default:
		switch {
		case f.Kind == KindGroup:
			value = fmt.Sprintf("len(%s)", value)
		case f.isDynamic():
			value = fmt.Sprintf("%s-(%s)", f.End.local(), f.Data.local())
		case f.Measure != MeasureNone:
			value = r.measured(f)
		case f.Kind == KindTotal && r.Size > 0:
			value = r.sizeName()
		case f.Kind == KindTotal:
			value = r.End().local()
		case f.Value != nil:
			value = r.storedValue(f)
		}
		p.line("%s", storeInt(f.Int, base, from, to, value))
	}
}

// emitData prints the stores of what has no fixed width or may not be there.
func emitData(p *printer, r *Record, f *Field) {
	if f.Until != 0 {
		return
	}
	at, data, end, value := f.At.local(), f.Data.local(), f.End.local(), "m."+f.Name
	maybe := len(f.encodeConds()) > 0
	switch {
	case f.Kind == KindFlagBytes && f.AltIf != nil:
		p.line("if len(%s) == %d {", value, f.Width)
		p.line("*(*[%d]byte)(dst[%s:]) = [%d]byte(%s)", f.Width, at, f.Width, value)
		p.line("} else {")
		p.line("*(*[%d]byte)(dst[%s:]) = [%d]byte(%s)", f.AltWidth, at, f.AltWidth, value)
		p.line("}")
		return
	case !f.isDynamic():
		if f.End.Anchor != f.At.Anchor && f.stores() {
			p.when(maybe, fmt.Sprintf("if %s > %s", end, at), func() {
				emitStore(p, r, f, "dst", at, f.At.add(f.Width).local())
			})
		}
		return
	case f.Alt != nil:
		n := fmt.Sprintf("%s-%s", end, data)
		p.line("if %s {", r.condExpr(f.AltIf, structValue(f.AltIf.Field)))
		p.line("%s", storeInt(*f.Alt, "dst", at, f.At.add(f.Alt.Bytes).local(), n))
		p.line("} else {")
		p.line("%s", storeInt(f.Int, "dst", at, f.At.add(f.Int.Bytes).local(), n))
		p.line("}")
	case f.hasPrefix() && f.Data.Anchor != f.At.Anchor:
		p.when(maybe, fmt.Sprintf("if %s > %s", data, at), func() {
			emitStore(p, r, f, "dst", at, f.At.add(f.Int.Bytes).local())
		})
	}
	switch f.Kind {
	case KindGroup:
		emitEntryStores(p, f)
	case KindUntilBytes:
		p.when(maybe, fmt.Sprintf("if %s > %s", end, at), func() {
			p.line("copy(dst[%s:], %s)", data, value)
			p.line("dst[%s] = %#02x", f.End.add(-1).local(), f.Stop)
		})
	default:
		p.line("copy(dst[%s:], %s)", data, value)
		if f.Reserve != "" {
			p.block(fmt.Sprintf("if m.%s > 0", f.Reserve), func() {
				p.line("clear(dst[%s+len(m.%s) : %s])", data, f.Name, end)
			})
		}
	}
}

// emitEntryStores prints the encoding of the entries of a group, which were
// checked before.
func emitEntryStores(p *printer, f *Field) {
	if f.Entry.Size > 0 {
		p.block(fmt.Sprintf("for i := range m.%s", f.Name), func() {
			p.line("m.%s[i].Encode(dst[%s+i*%s:])", f.Name, f.Data.local(), f.Entry.sizeName())
		})
		return
	}
	at := fmt.Sprintf("e%d", f.End.Anchor)
	p.line("%s := %s", at, f.Data.local())
	p.block(fmt.Sprintf("for i := range m.%s", f.Name), func() {
		p.line("n, _ := m.%s[i].Encode(dst[%s:])", f.Name, at)
		p.line("%s += n", at)
	})
}
