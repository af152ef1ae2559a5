package gen

import (
	"fmt"
	"strings"
)

// where prints the arguments that name a field in an error.
func (r *Record) where(f *Field) string {
	return fmt.Sprintf("%q, %q, %s", r.Name, f.Name, f.At.local())
}

// emitChecks prints every check of Encode, and the reckoning of the anchors
// that follow from the struct.
func emitChecks(p *printer, r *Record) {
	for _, f := range r.Fields {
		emitEncodeCheck(p, r, f)
	}
	for _, f := range r.Fields {
		if f.Measure != MeasureNone && f.Of.SizedBy != f && f.Until == 0 {
			n, high := r.measured(f), f.Int.Max()
			p.block(fmt.Sprintf("if %s > %s", n, high), func() {
				p.line("return 0, outOfRange(%s, int64(%s), 0, %s)", r.where(f), n, high)
			})
		}
	}
	if t := r.Total; t != nil && r.Size == 0 {
		size, high := r.End().local(), "math.MaxInt32"
		if t.Int.Max().Abs < 1<<31-1 {
			high = t.Int.Max().String()
		}
		p.block(fmt.Sprintf("if %s > %s", size, high), func() {
			p.line("return 0, outOfRange(%s, int64(%s), %s, %s)", r.where(t), size, r.sizeName(), high)
		})
	}
}

// emitCheck prints the method by which a record with a group checks its
// entries before it writes anything.
func emitCheck(p *printer, r *Record) {
	p.function([]string{"check returns the number of bytes that Encode writes, and its error."},
		fmt.Sprintf("func (m *%s) check() (int, error)", r.Name), func() {
			emitChecks(p, r)
			if r.Size > 0 {
				p.line("return %s, nil", r.sizeName())
			} else {
				p.line("return %s, nil", r.End().local())
			}
		})
}

// emitEncodeCheck prints the check of one field of the struct, and the
// reckoning of its anchors.
func emitEncodeCheck(p *printer, r *Record, f *Field) {
	if f.Until != 0 {
		if f.Data.Anchor != f.At.Anchor {
			p.line("a%d := %s", f.Data.Anchor, f.At.local())
		}
		p.line("a%d := %s", f.End.Anchor, f.Data.local())
		return
	}
	switch {
	case f.Kind == KindFlagBytes:
		emitFlagWidth(p, r, f)
	case f.isDynamic():
		emitEncodeLength(p, r, f)
	case f.End.Anchor == f.At.Anchor:
		emitContentCheck(p, r, f)
	case len(f.encodeConds()) == 0:
		p.line("a%d := %s", f.End.Anchor, f.At.add(f.Width).local())
		emitContentCheck(p, r, f)
	default:
		p.line("a%d := %s", f.End.Anchor, f.At.local())
		emitPresence(p, r, f, func() {
			p.line("a%d += %d", f.End.Anchor, f.Width)
			emitContentCheck(p, r, f)
		})
	}
}

// emitPresence prints body under the conditions of f, and the refusal of a
// value where they do not hold.
func emitPresence(p *printer, r *Record, f *Field, body func()) {
	conds := f.encodeConds()
	if len(conds) == 0 {
		body()
		return
	}
	p.line("if %s {", r.condsExpr(conds, structValue))
	body()
	if f.InStruct() {
		set := "m." + f.Name
		switch {
		case f.IsBytes() && f.Kind != KindFixedBytes || f.Kind == KindGroup:
			set = fmt.Sprintf("len(%s) != 0", set)
		case f.Kind == KindFixedBytes:
			set = fmt.Sprintf("%s != (%s)", set, f.zero())
		case !f.Int.Bool:
			set += " != 0"
		}
		p.line("} else if %s {", set)
		p.line("return 0, notAbsent(%s)", r.where(f))
	}
	p.line("}")
}

// emitContentCheck prints the checks of the value of a field of fixed width.
func emitContentCheck(p *printer, r *Record, f *Field) {
	if !f.InStruct() {
		return
	}
	value := "m." + f.Name
	switch {
	case f.IsInt():
		emitValueChecks(p, r, f, value, "return 0, ", true)
	case f.Kind == KindPadBytes:
		p.block(fmt.Sprintf("if badPad(%s, %d, %#02x)", value, f.Width, f.Pad), func() {
			p.line("return 0, badPadded(%s, len(%s), %d, %#02x)", r.where(f), value, f.Width, f.Pad)
		})
	}
	if f.UTF8 {
		all := value
		if f.Kind == KindFixedBytes {
			all += "[:]"
		}
		p.block(fmt.Sprintf("if !utf8.Valid(%s)", all), func() { p.line("return 0, notText(%s)", r.where(f)) })
	}
}

func emitFlagWidth(p *printer, r *Record, f *Field) {
	a, value := f.End.Anchor, "m."+f.Name
	if f.AltIf == nil {
		p.block(fmt.Sprintf("if len(%s) != %d", value, f.Width), func() {
			p.line("return 0, badWidth(%s, len(%s), %d)", r.where(f), value, f.Width)
		})
		if f.UTF8 {
			emitContentCheck(p, r, f)
		}
		return
	}
	p.line("a%d := %s", a, f.At.add(f.Width).local())
	p.block("if "+r.condExpr(f.AltIf, structValue(f.AltIf.Field)), func() {
		p.line("a%d += %d", a, f.AltWidth-f.Width)
	})
	p.block(fmt.Sprintf("if len(%s) != a%d-(%s)", value, a, f.At.local()), func() {
		p.line("return 0, badWidth(%s, len(%s), a%d-(%s))", r.where(f), value, a, f.At.local())
	})
	if f.UTF8 {
		emitContentCheck(p, r, f)
	}
}

// emitEncodeLength prints the check of bytes or entries without a fixed width.
func emitEncodeLength(p *printer, r *Record, f *Field) {
	limit := ""
	if f.Int.Bytes > 0 {
		limit = fmt.Sprint(f.limit(f.Int))
	} else if f.Max != nil {
		limit = f.Max.String()
	}
	moved := f.Data.Anchor != f.At.Anchor && f.Data.Anchor != f.End.Anchor
	switch {
	case f.Alt != nil:
		limit = fmt.Sprintf("limit%d", f.End.Anchor)
		p.line("%s, a%d := %d, %s", limit, f.Data.Anchor, f.limit(f.Int), f.At.add(f.Int.Bytes).local())
		p.block("if "+r.condExpr(f.AltIf, structValue(f.AltIf.Field)), func() {
			p.line("%s, a%d = %d, %s", limit, f.Data.Anchor, f.limit(*f.Alt), f.At.add(f.Alt.Bytes).local())
		})
	case moved && len(f.encodeConds()) == 0:
		p.line("a%d := %s", f.Data.Anchor, f.At.add(f.Int.Bytes).local())
	case moved:
		p.line("a%d := %s", f.Data.Anchor, f.At.local())
	}
	stop := ""
	if f.Kind == KindUntilBytes {
		stop = " + 1"
		if len(f.encodeConds()) > 0 {
			p.line("a%d := %s", f.End.Anchor, f.At.local())
		}
	}
	emitPresence(p, r, f, func() {
		if moved && f.Alt == nil && len(f.encodeConds()) > 0 {
			p.line("a%d += %d", f.Data.Anchor, f.Int.Bytes)
		}
		emitLengthBounds(p, r, f, limit)
		if stop != "" && len(f.encodeConds()) > 0 {
			p.line("a%d += len(m.%s) + 1", f.End.Anchor, f.Name)
		}
	})
	switch {
	case f.Kind == KindGroup:
		emitEntryChecks(p, r, f)
	case stop == "" || len(f.encodeConds()) == 0:
		sum := "len(m." + f.Name + ")" + stop
		if f.Reserve != "" {
			sum += " + m." + f.Reserve
		}
		p.line("a%d := %s + %s", f.End.Anchor, f.Data.local(), sum)
	}
}

// emitLengthBounds prints the bounds of a length or count; limit is "" for no
// upper one.
func emitLengthBounds(p *printer, r *Record, f *Field, limit string) {
	var bad []string
	n, low := fmt.Sprintf("len(m.%s)", f.Name), "0"
	if limit != "" {
		bad = append(bad, n+" > "+limit)
	} else {
		limit = "math.MaxInt32"
	}
	if f.Min != nil && f.Min.Abs > 0 {
		low = f.Min.String()
		bad = append(bad, n+" < "+low)
	}
	sum := n
	if f.Reserve != "" {
		bad = append(bad, fmt.Sprintf("uint(m.%s) > uint(%s-len(m.%s))", f.Reserve, limit, f.Name))
		sum += "+m." + f.Reserve
	}
	if len(bad) > 0 {
		p.block("if "+strings.Join(bad, " || "), func() {
			p.line("return 0, outOfRange(%s, int64(%s), %s, int64(%s))", r.where(f), sum, low, limit)
		})
	}
	if f.Kind == KindUntilBytes {
		p.block(fmt.Sprintf("if bytes.IndexByte(m.%s, %#02x) >= 0", f.Name, f.Stop), func() {
			p.line("return 0, hasStop(%s, %#02x)", r.where(f), f.Stop)
		})
	}
	if f.UTF8 {
		p.block(fmt.Sprintf("if !utf8.Valid(m.%s)", f.Name), func() { p.line("return 0, notText(%s)", r.where(f)) })
	}
}

// emitEntryChecks prints the checks of the entries of a group, and the anchor
// behind them.
func emitEntryChecks(p *printer, r *Record, f *Field) {
	e, end := f.Entry, fmt.Sprintf("a%d", f.End.Anchor)
	if e.Size > 0 {
		p.line("%s := %s + len(m.%s)*%s", end, f.Data.local(), f.Name, e.sizeName())
		if !e.checked() {
			return
		}
	} else {
		p.line("%s := %s", end, f.Data.local())
	}
	p.block(fmt.Sprintf("for i := range m.%s", f.Name), func() {
		if e.Size > 0 {
			p.block(fmt.Sprintf("if _, err := m.%s[i].check(); err != nil", f.Name), func() {
				p.line("return 0, inEntry(err, %q, %q, i, %s+i*%s)", r.Name, f.Name, f.Data.local(), e.sizeName())
			})
			return
		}
		p.line("n, err := m.%s[i].check()", f.Name)
		p.block("if err != nil", func() { p.line("return 0, inEntry(err, %q, %q, i, %s)", r.Name, f.Name, end) })
		p.line("%s += n", end)
	})
}

// checked says whether a record of a fixed size can be wrong, in the struct or
// in its bytes.
func (r *Record) checked() bool {
	for _, f := range r.Fields {
		switch f.Kind {
		case KindInt:
			if f.Value != nil || f.Choices != nil || f.Min != nil || f.Max != nil || !f.Int.exact() ||
				f.Enum != nil && !f.Enum.Open {
				return true
			}
		case KindFixedBytes:
			if f.UTF8 {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// emitValueChecks prints the checks of an integer that reading and writing
// share. Only writing must look at values that the bytes cannot hold.
func emitValueChecks(p *printer, r *Record, f *Field, value, ret string, write bool) {
	switch {
	case f.Value != nil:
		p.block(fmt.Sprintf("if %s != %s", value, r.constName(f)), func() {
			p.line("%snotOneOf(%s, %s, %s)", ret, r.where(f), value, r.constName(f))
		})
	case len(f.Choices) > 0:
		var conds, list []string
		for _, c := range f.Choices {
			name := r.choiceName(f, c)
			conds = append(conds, fmt.Sprintf("%s != %s", value, name))
			list = append(list, name)
		}
		p.block("if "+strings.Join(conds, " && "), func() {
			p.line("%snotOneOf(%s, %s, %s)", ret, r.where(f), value, strings.Join(list, ", "))
		})
	case f.Enum != nil && !f.Enum.Open:
		p.block(fmt.Sprintf("if !%s.Known()", value), func() {
			p.line("%sunknownValue(%s, %s, %q)", ret, r.where(f), value, f.Enum.Name)
		})
	default:
		emitBounds(p, r, f, value, ret, write)
	}
}

func emitBounds(p *printer, r *Record, f *Field, value, ret string, write bool) {
	if f.Kind != KindInt || f.Int.Bool {
		return
	}
	low, high := f.Int.Min(), f.Int.Max()
	var conds []string
	below, above := write && !f.Int.exact() && f.Int.Signed, write && !f.Int.exact()
	if f.Min != nil {
		below, low = f.Min.Cmp(low) > 0, *f.Min
	}
	if f.Max != nil {
		above, high = f.Max.Cmp(high) < 0 || above, *f.Max
	}
	if below {
		conds = append(conds, fmt.Sprintf("%s < %s", value, low))
	}
	if above {
		conds = append(conds, fmt.Sprintf("%s > %s", value, high))
	}
	if len(conds) == 0 {
		return
	}
	p.block("if "+strings.Join(conds, " || "), func() {
		p.line("%soutOfRange(%s, %s, %s, %s)", ret, r.where(f), value, low, high)
	})
}
