package gen

// place places a field of a fixed width, which may not be there.
func (c *recordChecker) place(out *Field, width int) {
	out.Width = width
	out.Data, out.End = c.at, c.at.add(width)
	if len(out.If) > 0 {
		out.End = c.nextAnchor()
		return
	}
	c.record.MinSize += width
}

// placeVar places a field that starts with a length or count, or with nothing.
// least is the smallest number of bytes after that.
func (c *recordChecker) placeVar(out *Field, least int) {
	out.Data = c.at.add(out.Int.Bytes)
	if out.SizedBy != nil {
		out.Data = c.at
	}
	n := out.Data.Off - c.at.Off
	if n > 0 && (len(out.If) > 0 || out.Alt != nil) {
		out.Data = c.nextAnchor()
	}
	out.End = c.nextAnchor()
	if len(out.If) == 0 {
		c.record.MinSize += n + least
	}
}

// nextAnchor returns the place behind something whose width is not fixed.
func (c *recordChecker) nextAnchor() Pos {
	c.record.Anchors++
	return Pos{Anchor: c.record.Anchors}
}

// decideKind sets the kind of a field, its width and its places.
func (c *recordChecker) decideKind(f *syntaxField, out *Field) error {
	switch {
	case f.role.text == "reserved":
		out.Kind = KindReserved
		return c.fixed(f.width, out)
	case f.role.text == "" && (f.typ.text == "bytes" || f.typ.text == "text"):
		out.Text = f.typ.text == "text"
		return c.bytes(f, out)
	case f.role.text == "group":
		return c.group(f, out)
	case f.role.text == "checksum":
		return c.checksum(f, out)
	}
	var known bool
	if out.Int, known = intType(f.typ.text, c.little); !known {
		out.Enum = c.enums[f.typ.text]
		switch {
		case f.role.text != "":
			return c.fail(f.typ.at, "expected an integer type, found %q", f.typ.text)
		case out.Enum == nil:
			return c.fail(f.typ.at, "expected %s, found %q", typeWords, f.typ.text)
		}
		out.Int = out.Enum.Int
	}
	if f.role.text != "" && len(out.If) > 0 {
		return c.fail(f.name.at, "a %s field is always there", f.role.text)
	}
	c.place(out, out.Int.Bytes)
	switch f.role.text {
	case "total":
		return c.total(f, out)
	case "magic":
		return c.magic(f, out)
	case "version":
		return c.version(f, out)
	}
	return nil
}

const maxWidth = 4096

func (c *recordChecker) fixed(w *syntaxWidth, out *Field) error {
	n := w.base.value
	if n.Neg || n.Abs < 1 || n.Abs > maxWidth {
		return c.fail(w.base.at, "expected a width from 1 to %d, found %s", maxWidth, n.Text)
	}
	c.place(out, int(n.Abs))
	return nil
}

func (c *recordChecker) bytes(f *syntaxField, out *Field) error {
	switch {
	case f.constant != nil:
		return c.constBytes(f, out)
	case f.width == nil && f.prefix == nil && f.stop == nil:
		out.Kind = KindRestBytes
		c.placeVar(out, 0)
	case f.stop != nil:
		out.Kind = KindUntilBytes
		n := f.stop.value
		if n.Neg || n.Abs > 255 {
			return c.fail(f.stop.at, "expected a byte from 0 to 255, found %s", n.Text)
		}
		out.Stop = byte(n.Abs)
		c.placeVar(out, 1)
	case f.prefix != nil:
		return c.varBytes(f.prefix, out)
	case f.width.field != nil:
		out.Kind = KindSizedBytes
		return c.sizedBy(f.width.field, MeasureLength, out)
	case f.width.alt != nil:
		return c.flagBytes(f.width, out)
	case f.pad != nil:
		out.Kind = KindPadBytes
		n := f.pad.value
		if n.Neg || n.Abs > 255 {
			return c.fail(f.pad.at, "expected a byte from 0 to 255, found %s", n.Text)
		}
		out.Pad = byte(n.Abs)
		return c.fixed(f.width, out)
	default:
		out.Kind = KindFixedBytes
		return c.fixed(f.width, out)
	}
	return nil
}

func (c *recordChecker) constBytes(f *syntaxField, out *Field) error {
	out.Kind = KindConstBytes
	x := f.constant
	switch {
	case x.kind != tokenString:
		return c.fail(x.at, "expected a string or hex digits as the value of bytes, found %s", x.number.Text)
	case len(x.text) < 1 || len(x.text) > maxWidth:
		return c.fail(x.at, "expected 1 to %d bytes, found %d", maxWidth, len(x.text))
	case f.prefix != nil || f.stop != nil || f.rest || f.pad != nil || f.width != nil && (f.width.field != nil || f.width.alt != nil):
		return c.fail(x.at, "only bytes of a fixed width take a value")
	case f.width != nil && (f.width.base.value.Neg || f.width.base.value.Abs != uint64(len(x.text))):
		return c.fail(x.at, "expected %s bytes, found %d", f.width.base.value.Text, len(x.text))
	}
	out.Const = []byte(x.text)
	c.place(out, len(out.Const))
	return c.take(out.Where, c.record.Name+out.Name, "field "+out.Name)
}

func (c *recordChecker) flagBytes(w *syntaxWidth, out *Field) error {
	out.Kind = KindFlagBytes
	base, alt := w.base.value, w.alt.value
	if base.Neg || base.Abs < 1 || alt.Cmp(base) <= 0 || alt.Abs > maxWidth {
		return c.fail(w.base.at, "expected two widths from 1 to %d, the smaller one first", maxWidth)
	}
	if len(out.If) > 0 {
		return c.fail(out.Where, "a field of two widths is always there")
	}
	var err error
	if out.AltIf, err = c.condition(w.cond); err != nil {
		return err
	}
	out.Width, out.AltWidth = int(base.Abs), int(alt.Abs)
	out.Data, out.End = c.at, c.nextAnchor()
	c.record.MinSize += out.Width
	return nil
}

// prefixType finds a type that may hold a length or a count.
func (c *recordChecker) prefixType(name syntaxName, what string) (Int, error) {
	t, ok := intType(name.text, c.little)
	if !ok || t.Bool || t.Bytes > 4 {
		return t, c.fail(name.at, "expected a %s type of at most 32 bits, found %q", what, name.text)
	}
	return t, nil
}

func (c *recordChecker) varBytes(x *syntaxPrefix, out *Field) error {
	out.Kind = KindVarBytes
	var err error
	if out.Int, err = c.prefixType(x.base, "length"); err != nil {
		return err
	}
	if x.alt != nil {
		if len(out.If) > 0 {
			return c.fail(out.Where, "a field with two types of length is always there")
		}
		alt, err := c.prefixType(*x.alt, "length")
		if err != nil {
			return err
		}
		if alt.Bytes < out.Int.Bytes {
			return c.fail(x.alt.at, "expected a length type at least as wide as %s, found %q", x.base.text, x.alt.text)
		}
		if out.AltIf, err = c.condition(x.cond); err != nil {
			return err
		}
		out.Alt = &alt
	}
	c.placeVar(out, 0)
	return nil
}

// sizedBy finds the field that has the length or count of this one.
func (c *recordChecker) sizedBy(name *syntaxName, measure Measure, out *Field) error {
	by := c.byName[name.text]
	what := "length"
	if measure == MeasureCount {
		what = "count"
	}
	i := -1
	for k, f := range c.record.Fields {
		if f == by {
			i = k
		}
	}
	if by == nil || by.Measure != measure || len(by.If) > 0 ||
		c.syntax[i].measure.from.text != out.Name || c.syntax[i].measure.to.text != out.Name {
		return c.fail(name.at, `expected a field before this one with "%s of %s", found %q`, what, out.Name, name.text)
	}
	out.SizedBy, out.Int = by, by.Int
	c.placeVar(out, 0)
	return nil
}

func (c *recordChecker) group(f *syntaxField, out *Field) error {
	out.Kind = KindGroup
	g := f.group
	if err := c.entry(f, out); err != nil {
		return err
	}
	var err error
	switch {
	case g.field != nil:
		return c.sizedBy(g.field, MeasureCount, out)
	case g.count != nil:
		if out.Int, err = c.prefixType(*g.count, "count"); err != nil {
			return err
		}
	}
	c.placeVar(out, 0)
	return nil
}

// entry finds or declares the record of a group's entries.
func (c *recordChecker) entry(f *syntaxField, out *Field) error {
	g, at := f.group, f.name.at
	if c.record.Key {
		return c.fail(at, "a key has no groups")
	}
	if g.inline != nil {
		r := *g.inline
		r.name, r.at, r.doc = c.record.Name+f.name.text+"Entry", at, f.doc
		if g.entry != nil {
			r.name, r.at = g.entry.text, g.entry.at
		}
		if len(r.doc) == 0 {
			r.doc = []string{r.name + " is an entry of " + f.name.text + " in " + c.record.Name + "."}
		}
		entry, err := c.checkRecord(&r)
		if err != nil {
			return err
		}
		out.Entry = entry
	} else {
		at = g.entry.at
		out.Entry = c.records[g.entry.text]
		if out.Entry == nil || out.Entry.Key {
			return c.fail(at, "expected a record that is declared before, found %q", g.entry.text)
		}
	}
	for _, x := range out.Entry.Fields {
		switch {
		case x.Kind == KindGroup:
			return c.fail(at, "an entry of a group has no groups")
		case x.Sum != nil && x.Sum.Given:
			return c.fail(at, "an entry of a group has no checksum over given bytes")
		case x.Kind == KindRestBytes && out.Entry.Total == nil:
			return c.fail(at, "an entry of a group has an end of its own, which bytes up to the rest have not")
		}
	}
	out.Entry.Entry = true
	return nil
}

func (c *recordChecker) total(f *syntaxField, out *Field) error {
	out.Kind = KindTotal
	switch {
	case c.record.Total != nil:
		return c.fail(f.role.at, "a record has one total field at most")
	case out.At.Anchor != 0:
		return c.fail(f.role.at, "expected the total field before the first field without a fixed width")
	case out.Int.Bytes > 4 || out.Int.Bool:
		return c.fail(f.typ.at, "expected an integer of at most 32 bits, found %q", f.typ.text)
	}
	c.record.Total = out
	return nil
}

func (c *recordChecker) magic(f *syntaxField, out *Field) error {
	out.Kind = KindMagic
	switch {
	case c.record.Magic != nil:
		return c.fail(f.role.at, "a record has one magic field at most")
	case out.At.Anchor != 0:
		return c.fail(f.role.at, "expected the magic field before the first field without a fixed width")
	case out.Int.Signed || out.Int.Bool:
		return c.fail(f.typ.at, "expected an unsigned integer, found %q", f.typ.text)
	case f.constant == nil && len(f.choices) == 0:
		return c.fail(f.name.at, `a magic field needs "=" and a value or named values in braces`)
	}
	c.record.Magic = out
	return nil
}

func (c *recordChecker) version(f *syntaxField, out *Field) error {
	out.Kind = KindVersion
	switch {
	case c.record.Version != nil:
		return c.fail(f.role.at, "a record has one version field at most")
	case out.At.Anchor != 0:
		return c.fail(f.role.at, "expected the version field before the first field without a fixed width")
	case f.constant == nil || f.constant.kind != tokenInt || f.constant.number.Neg || f.constant.number.Abs < 1:
		return c.fail(f.name.at, `a version field needs "=" and a value of at least 1`)
	case f.constant.number.Abs > 1<<31:
		return c.fail(f.constant.at, "expected a version of at most %d, found %s", 1<<31, f.constant.number.Text)
	}
	out.FromVersion = f.constant.number.Int64()
	if f.from != nil {
		if n := f.from.value; n.Neg || n.Abs < 1 || n.Abs > f.constant.number.Abs {
			return c.fail(f.from.at, "expected a version from 1 to %s, found %s", f.constant.number.Text, n.Text)
		}
		out.FromVersion = f.from.value.Int64()
	}
	out.Value = &f.constant.number
	c.record.Version = out
	return nil
}

func (c *recordChecker) checksum(f *syntaxField, out *Field) error {
	out.Kind = KindChecksum
	sum := f.checksum
	out.Sum = &Sum{Algorithm: sum.algorithm.text, Lazy: sum.lazy}
	width := algorithms[sum.algorithm.text].bytes
	if f.decimal != nil {
		digits := f.decimal.digits
		need := uint64(10)
		if width == 8 {
			need = 20
		}
		if digits.value.Neg || digits.value.Abs < need || digits.value.Abs > 20 {
			return c.fail(digits.at, "expected %d to 20 digits, found %s", need, digits.value.Text)
		}
		out.Int = Int{Bytes: int(digits.value.Abs), Decimal: true, Reversed: f.decimal.reversed}
		if width == 8 {
			return c.fail(digits.at, "expected a checksum of 32 bits in decimal digits")
		}
	} else {
		var ok bool
		if out.Int, ok = intType(f.typ.text, c.little); !ok || out.Int.Signed || out.Int.Bool || out.Int.Bytes != width {
			return c.fail(f.typ.at, "expected u%d, found %q", 8*width, f.typ.text)
		}
	}
	if sum.mask != nil {
		n := sum.mask.value
		if n.Neg || n.Abs == 0 || width == 4 && n.Abs > 1<<32-1 {
			return c.fail(sum.mask.at, "expected a mask of %d bits, found %s", 8*width, n.Text)
		}
		out.Sum.Mask = &n
	}
	switch sum.from.text {
	case "preceding":
		out.Sum.Preceding = true
		out.Sum.To = out.At
	case "given":
		out.Sum.Given = true
	}
	if out.Sum.Lazy || out.Sum.Given {
		if c.methods["Check"+out.Name] {
			return c.fail(f.name.at, "the method Check%s of this field is taken by another field", out.Name)
		}
		c.methods["Check"+out.Name] = true
	}
	c.place(out, out.Int.Bytes)
	return nil
}
