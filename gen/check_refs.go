package gen

import "slices"

// What a field says about others is resolved when all fields are known, since
// it may stand before them.

// resolveMeasures decides what each length and count measures.
func (c *recordChecker) resolveMeasures() error {
	return c.eachField(func(i int, f *Field) error {
		m := c.syntax[i].measure
		if m == nil {
			return nil
		}
		var err error
		if f.Of, f.OfEnd, err = c.fieldRange(m.from, m.to, i, "an integer cannot measure itself"); err != nil {
			return err
		}
		of := f.single()
		switch {
		case m.count && (of == nil || of.Kind != KindGroup):
			return c.fail(m.from.at, "expected a group, found %q", m.from.text)
		case of != nil && !of.IsBytes() && of.Kind != KindGroup:
			return c.fail(m.from.at, "expected bytes, a group or a range of fields, found %q", m.from.text)
		case m.count && of.SizedBy != f:
			return c.fail(m.from.at, "expected a group that this field has the count of, found %q", m.from.text)
		}
		return nil
	})
}

// eachField calls check with all fields, and tells what it returns.
func (c *recordChecker) eachField(check func(i int, f *Field) error) error {
	good := true
	for i, f := range c.record.Fields {
		good = c.told.add(check(i, f)) && good
	}
	if !good {
		return errTold
	}
	return nil
}

// fieldRange finds the fields from..to, which must not hold field self.
func (c *recordChecker) fieldRange(from, to syntaxName, self int, itself string) (first, last *Field, err error) {
	if c.lostFields[from.text] || c.lostFields[to.text] {
		return nil, nil, errTold
	}
	first, last = c.byName[from.text], c.byName[to.text]
	if first == nil {
		return nil, nil, c.fail(from.at, "expected a field of this record, found %q", from.text)
	}
	if last == nil {
		return nil, nil, c.fail(to.at, "expected a field of this record, found %q", to.text)
	}
	a, b := slices.Index(c.record.Fields, first), slices.Index(c.record.Fields, last)
	if a > b {
		return nil, nil, c.fail(from.at, "expected a range from an earlier to a later field")
	}
	if self >= a && self <= b {
		return nil, nil, c.fail(from.at, "%s", itself)
	}
	return first, last, nil
}

// resolveSums decides what each checksum of the record covers.
func (c *recordChecker) resolveSums() error {
	given := false
	err := c.eachField(func(i int, f *Field) error {
		if f.Sum == nil {
			return nil
		}
		if f.Sum.Given {
			if given {
				return c.fail(f.Where, "a record has one checksum over given bytes at most")
			}
			given = true
		}
		if f.Sum.Preceding || f.Sum.Given {
			return nil
		}
		return c.resolveSum(i, f)
	})
	if err != nil {
		return err
	}
	return c.orderSums()
}

// resolveSum decides what one checksum covers.
func (c *recordChecker) resolveSum(i int, f *Field) error {
	x := c.syntax[i].checksum
	first, last, err := c.fieldRange(x.from, x.to, i, "a checksum cannot cover itself")
	if err != nil {
		return err
	}
	f.Sum.First, f.Sum.Last = first, last
	f.Sum.From, f.Sum.To = first.At, last.End
	if first == last {
		f.Sum.From = first.Data
		if first.Kind == KindUntilBytes {
			if len(first.If) > 0 {
				return c.fail(x.from.at, "a checksum over one field needs bytes that are always there")
			}
			f.Sum.To = first.End.add(-1)
		}
	}
	return nil
}

// orderSums refuses a checksum that covers a later one, or two that cover one
// another: Encode computes them in order.
func (c *recordChecker) orderSums() error {
	return c.eachField(func(i int, f *Field) error {
		if f.Sum == nil || f.Sum.First == nil {
			return nil
		}
		a := slices.Index(c.record.Fields, f.Sum.First)
		b := slices.Index(c.record.Fields, f.Sum.Last)
		for _, other := range c.record.Fields[a : b+1] {
			if other.Sum != nil && slices.Index(c.record.Fields, other) > i {
				return c.fail(f.Where, "a checksum cannot cover one that stands behind it")
			}
		}
		return nil
	})
}

// checkRest checks that what goes on to the end is followed only by fields of
// fixed widths.
func (c *recordChecker) checkRest() error {
	var rest *Field
	for i, f := range c.record.Fields {
		if rest != nil && f.End.Anchor != rest.End.Anchor {
			return c.fail(c.syntax[i].name.at, "behind %s, which goes on to the end, only fields of fixed widths may stand",
				rest.Name)
		}
		if f.isRest() {
			rest = f
			if len(f.If) > 0 && i < len(c.record.Fields)-1 {
				return c.fail(c.syntax[i].name.at, "a field that goes on to the end and is not always there must be the last one")
			}
		}
	}
	return nil
}

// isRest says whether the field goes on to the end of the record.
func (f *Field) isRest() bool {
	return f.Kind == KindRestBytes || f.Kind == KindGroup && f.SizedBy == nil && f.Int.Bytes == 0
}

// trailing returns the number of bytes behind a field that goes on to the end.
func (r *Record) trailing(f *Field) int { return r.End().Off - f.End.Off }

// checkKey checks that the order of the bytes is the order of the fields.
func (c *recordChecker) checkKey() error {
	return c.eachField(func(i int, f *Field) error {
		at := f.Where
		switch {
		case f.Kind == KindTotal || f.Kind == KindVersion || f.Kind == KindChecksum:
			return c.fail(at, "a key has no %s", c.syntax[i].role.text)
		case len(f.If) > 0 || f.AltIf != nil:
			return c.fail(at, "a field of a key is always there and has one form")
		case f.Late:
			return c.fail(at, "a field of a key cannot be late")
		case f.Reserve != "":
			return c.fail(at, "a field of a key has no reserve")
		case f.Int.Little:
			return c.fail(at, "an integer of a key is big-endian")
		case f.Kind == KindInt && f.Int.Signed && !f.Int.Ordered && !f.notNegative():
			return c.fail(at, `a signed integer of a key needs "min 0" or "ordered"`)
		case f.Kind == KindPadBytes && f.Pad != 0:
			return c.fail(at, "bytes of a key are filled up with 0")
		case f.Kind == KindRestBytes && i < len(c.record.Fields)-1:
			return c.fail(at, "bytes of a key without an end of their own must be the last field")
		case f.Kind == KindInt && f.Measure != MeasureNone && f.single() == nil:
			return c.fail(at, "a length of a key is that of one field")
		}
		if f.Kind == KindInt && f.Measure != MeasureNone && f.Of.SizedBy != f {
			return c.fail(at, "a length of a key is that of bytes in brackets")
		}
		if f.SizedBy == nil {
			return nil
		}
		for k := i - 1; c.record.Fields[k] != f.SizedBy; k-- {
			if c.record.Fields[k].InStruct() {
				return c.fail(at, "between a length of a key and its bytes only constants may stand")
			}
		}
		return nil
	})
}

// notNegative says whether a signed integer has no legal value below 0.
func (f *Field) notNegative() bool {
	if f.Value != nil {
		return !f.Value.Neg
	}
	if f.Min != nil && !f.Min.Neg || f.Measure != MeasureNone {
		return true
	}
	choices := f.Choices
	if f.Enum != nil {
		if f.Enum.Open {
			return false
		}
		choices = f.Enum.Values
	}
	for _, c := range choices {
		if c.Value.Neg {
			return false
		}
	}
	return len(choices) > 0
}
