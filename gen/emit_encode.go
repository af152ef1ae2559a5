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
	p.function(doc, fmt.Sprintf("func (m *%s) Encode(dst []byte) (int, error)", r.Name), func() {
		for _, f := range r.Fields {
			emitEncodeCheck(p, r, f)
		}
		size := r.sizeName()
		if r.Size == 0 {
			size = r.End().expr("a")
			p.block(fmt.Sprintf("if %s > math.MaxInt32", size), func() {
				p.line("return 0, outOfRange(%q, %q, %s, int64(%s), %s, math.MaxInt32)",
					r.Name, r.Total.Name, r.Total.At.expr("a"), size, r.sizeName())
			})
		}
		p.block(fmt.Sprintf("if len(dst) < %s", size), func() {
			p.line("return 0, shortBuffer(%q, %s, len(dst))", r.Name, size)
		})
		if r.Size == 0 {
			p.line("dst = dst[:%s]", size)
		}
		emitParts(p, r)
		for _, f := range r.Fields {
			if f.Kind == KindChecksum {
				covered := r.coveredByEncode(f)
				p.line("%s", storeInt(f.Int, "dst", f.At.expr("a"), f.End.expr("a"), f.sum(covered)))
			}
		}
		p.line("return %s, nil", size)
	})
}

// coveredByEncode is the expression of the bytes that a checksum covers. The
// caller's own bytes are taken where they are the same, since reading back
// what was just written is slower.
func (r *Record) coveredByEncode(sum *Field) string {
	for _, f := range r.Fields {
		if f.Kind == KindVarBytes && f.Reserve == "" && f.Data == sum.Sum.From && f.End == sum.Sum.To {
			return "m." + f.Name
		}
	}
	return fmt.Sprintf("dst[%s:%s]", sum.Sum.From.expr("a"), sum.Sum.To.expr("a"))
}

// emitEncodeCheck prints the check of one field of the struct, and the
// reckoning of the anchors that follow from it.
func emitEncodeCheck(p *printer, r *Record, f *Field) {
	value := "m." + f.Name
	switch f.Kind {
	case KindMagic, KindInt:
		if f.InStruct() {
			emitValueChecks(p, r, f, value, "return 0, ")
		}
	case KindFlagBytes:
		a := f.End.Anchor
		p.line("a%d := %s", a, f.At.add(f.Width).expr("a"))
		p.block(fmt.Sprintf("if m.%s&%s != 0", f.AltIf.Field.Name, f.AltIf.Mask.Text), func() {
			p.line("a%d += %d", a, f.AltWidth-f.Width)
		})
		p.block(fmt.Sprintf("if len(%s) != a%d-(%s)", value, a, f.At.expr("a")), func() {
			p.line("return 0, badWidth(%q, %q, %s, len(%s), a%d-(%s))",
				r.Name, f.Name, f.At.expr("a"), value, a, f.At.expr("a"))
		})
	case KindVarBytes:
		emitEncodeLength(p, r, f)
	}
}

func emitEncodeLength(p *printer, r *Record, f *Field) {
	limit := fmt.Sprint(f.limit(f.Int))
	if f.Alt != nil {
		limit = fmt.Sprintf("limit%d", f.End.Anchor)
		p.line("%s, a%d := %d, %s", limit, f.Data.Anchor, f.limit(f.Int), f.At.add(f.Int.Bytes).expr("a"))
		p.block(fmt.Sprintf("if m.%s == %s", r.Magic.Name, r.choiceName(r.Magic, r.Magic.choice(f.AltIf.ValueName))), func() {
			p.line("%s, a%d = %d, %s", limit, f.Data.Anchor, f.limit(*f.Alt), f.At.add(f.Alt.Bytes).expr("a"))
		})
	}
	least := "0"
	bad := fmt.Sprintf("len(m.%s) > %s", f.Name, limit)
	if f.Min != nil && f.Min.Abs > 0 {
		least = f.Min.String()
		bad += fmt.Sprintf(" || len(m.%s) < %s", f.Name, least)
	}
	if f.Reserve != "" {
		bad += fmt.Sprintf(" || uint(m.%s) > uint(%s-len(m.%s))", f.Reserve, limit, f.Name)
	}
	sum := "len(m." + f.Name + ")"
	if f.Reserve != "" {
		sum += "+m." + f.Reserve
	}
	p.block("if "+bad, func() {
		p.line("return 0, outOfRange(%q, %q, %s, int64(%s), %s, int64(%s))",
			r.Name, f.Name, f.At.expr("a"), sum, least, limit)
	})
	p.line("a%d := %s + %s", f.End.Anchor, f.Data.expr("a"), sum)
}

// emitValueChecks prints the checks of an integer that reading and writing
// share.
func emitValueChecks(p *printer, r *Record, f *Field, value, ret string) {
	where := fmt.Sprintf("%q, %q, %s", r.Name, f.Name, f.At.expr("a"))
	switch {
	case f.Value != nil:
		p.block(fmt.Sprintf("if %s != %s", value, r.constName(f)), func() {
			p.line("%snotOneOf(%s, int64(%s), int64(%s))", ret, where, value, r.constName(f))
		})
	case len(f.Choices) > 0:
		cond, list := "", ""
		for i := range f.Choices {
			name := r.choiceName(f, f.Choices[i])
			if i > 0 {
				cond += " && "
			}
			cond += fmt.Sprintf("%s != %s", value, name)
			list += fmt.Sprintf(", int64(%s)", name)
		}
		p.block("if "+cond, func() {
			p.line("%snotOneOf(%s, int64(%s)%s)", ret, where, value, list)
		})
	}
	if f.Kind != KindInt || f.Min == nil && f.Max == nil {
		return
	}
	low, high, cond := f.Int.Min().Int64(), int64(f.Int.Max().Abs), ""
	if f.Min != nil {
		low = f.Min.Int64()
		cond = fmt.Sprintf("%s < %d", value, low)
	}
	if f.Max != nil {
		high = f.Max.Int64()
		if cond != "" {
			cond += " || "
		}
		cond += fmt.Sprintf("%s > %d", value, high)
	}
	p.block("if "+cond, func() {
		p.line("%soutOfRange(%s, int64(%s), %d, %d)", ret, where, value, low, high)
	})
}

// emitParts prints the stores. A part is a run of fields of fixed width; its
// bounds are checked by one conversion to an array pointer.
func emitParts(p *printer, r *Record) {
	for i := 0; i < len(r.Fields); {
		start, end := r.Fields[i].At, r.Fields[i].At
		j := i
		for j < len(r.Fields) && r.Fields[j].fixedEnd().Anchor == start.Anchor && r.Fields[j].At.Anchor == start.Anchor {
			end = r.Fields[j].fixedEnd()
			j++
			if r.Fields[j-1].Kind == KindVarBytes {
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

// fixedEnd returns where the part of the field ends whose width is fixed: of
// bytes with a length that is the end of the length.
func (f *Field) fixedEnd() Pos {
	switch {
	case f.Kind == KindFlagBytes || f.Kind == KindVarBytes && f.Alt != nil:
		return Pos{Anchor: -1}
	case f.Kind == KindVarBytes:
		return f.Data
	}
	return f.End
}

func emitPart(p *printer, r *Record, fields []*Field, start, end Pos) {
	width := end.Off - start.Off
	part := "p0"
	if start.Anchor == 0 && start.Off == 0 {
		p.line("%s := (*[%d]byte)(dst)", part, width)
	} else {
		part = fmt.Sprintf("p%d", start.Anchor)
		p.line("%s := (*[%d]byte)(dst[%s:])", part, width, start.expr("a"))
	}
	for _, f := range fields {
		from, to := fmt.Sprint(f.At.Off-start.Off), fmt.Sprint(f.fixedEnd().Off-start.Off)
		switch f.Kind {
		case KindChecksum:
		case KindReserved:
			p.line("*(*[%d]byte)(%s[%s:%s]) = [%d]byte{}", f.Width, part, from, to, f.Width)
		case KindFixedBytes:
			p.line("*(*[%d]byte)(%s[%s:%s]) = m.%s", f.Width, part, from, to, f.Name)
		case KindVarBytes:
			p.line("%s", storeInt(f.Int, part, from, to, fmt.Sprintf("%s-(%s)", f.End.expr("a"), f.Data.expr("a"))))
		case KindTotal:
			value := r.sizeName()
			if r.Size == 0 {
				value = r.End().expr("a")
			}
			p.line("%s", storeInt(f.Int, part, from, to, value))
		default:
			value := "m." + f.Name
			if f.Value != nil {
				value = r.constName(f)
			}
			p.line("%s", storeInt(f.Int, part, from, to, value))
		}
	}
}

// emitData prints the copying of bytes whose width is not fixed.
func emitData(p *printer, r *Record, f *Field) {
	switch f.Kind {
	case KindFlagBytes:
		at, value := f.At.expr("a"), "m."+f.Name
		p.line("if len(%s) == %d {", value, f.Width)
		p.line("*(*[%d]byte)(dst[%s:]) = [%d]byte(%s)", f.Width, at, f.Width, value)
		p.line("} else {")
		p.line("*(*[%d]byte)(dst[%s:]) = [%d]byte(%s)", f.AltWidth, at, f.AltWidth, value)
		p.line("}")
	case KindVarBytes:
		if f.Alt != nil {
			n := fmt.Sprintf("%s-%s", f.End.expr("a"), f.Data.expr("a"))
			p.line("if m.%s == %s {", r.Magic.Name, r.choiceName(r.Magic, r.Magic.choice(f.AltIf.ValueName)))
			p.line("%s", storeInt(*f.Alt, "dst", f.At.expr("a"), "", n))
			p.line("} else {")
			p.line("%s", storeInt(f.Int, "dst", f.At.expr("a"), "", n))
			p.line("}")
		}
		p.line("copy(dst[%s:], m.%s)", f.Data.expr("a"), f.Name)
		if f.Reserve != "" {
			p.block(fmt.Sprintf("if m.%s > 0", f.Reserve), func() {
				p.line("clear(dst[%s+len(m.%s) : %s])", f.Data.expr("a"), f.Name, f.End.expr("a"))
			})
		}
	}
}
