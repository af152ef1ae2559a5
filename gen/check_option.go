package gen

import (
	"slices"
	"unicode"
)

// checkOptions checks what follows the type.
func (c *recordChecker) checkOptions(f *syntaxField, out *Field) error {
	for _, check := range []func(*syntaxField, *Field) error{
		c.checkConstant, c.checkNamed, c.checkBounds, c.checkLate, c.checkWords,
	} {
		if err := check(f, out); err != nil {
			return err
		}
	}
	return c.checkMeasure(f, out)
}

// checkConstant checks the only value of an integer.
func (c *recordChecker) checkConstant(f *syntaxField, out *Field) error {
	x := f.constant
	if x == nil || out.Kind == KindConstBytes {
		return nil
	}
	if !out.IsInt() || out.Kind == KindTotal || out.Kind == KindChecksum || out.Enum != nil || out.Int.Bool {
		return c.fail(x.at, "only integers, a magic, a version and bytes take a value")
	}
	n, err := c.number(*x, out.Int, f.typ.text)
	if err != nil {
		return err
	}
	if out.Kind == KindMagic && n.Abs == 0 {
		return c.fail(x.at, "zero is no magic, since empty space must not look like a record")
	}
	out.Value = &n
	if name := out.Name; name == "Size" || name == "MinSize" || name == "View" || name == "Views" {
		return c.fail(f.name.at, "a field with a value must not be called %s, since its constant would clash", name)
	}
	return c.take(f.name.at, c.record.Name+out.Name, "field "+out.Name)
}

// checkNamed checks the named values of an integer.
func (c *recordChecker) checkNamed(f *syntaxField, out *Field) error {
	if f.choices == nil {
		return nil
	}
	if len(f.choices) == 0 {
		return c.fail(f.name.at, "field %q has no values", out.Name)
	}
	at := f.choices[0].name.at
	if out.Kind != KindInt && out.Kind != KindMagic || out.Enum != nil || out.Int.Bool {
		return c.fail(at, "only integers and a magic take named values")
	}
	if out.Value != nil {
		return c.fail(at, "an integer with a value takes no named values")
	}
	var err error
	if out.Choices, err = c.checkChoices(f.choices, out.Int, f.typ.text); err != nil {
		return err
	}
	for i, x := range out.Choices {
		if out.Kind == KindMagic && x.Value.Abs == 0 {
			return c.fail(f.choices[i].value.at, "zero is no magic, since empty space must not look like a record")
		}
		if err := c.take(x.Where, c.record.Name+out.Name+x.Name, "a value of "+out.Name); err != nil {
			return err
		}
	}
	return nil
}

// checkBounds checks min and max.
func (c *recordChecker) checkBounds(f *syntaxField, out *Field) error {
	for _, n := range []*syntaxNumber{f.min, f.max} {
		if n == nil {
			continue
		}
		typ := f.typ.text
		switch {
		case out.Kind == KindInt && (out.Enum != nil || out.Int.Bool || out.Value != nil || out.Choices != nil),
			out.Kind != KindInt && (out.Kind < KindVarBytes || out.Kind == KindPadBytes):
			return c.fail(f.name.at, "only integers, groups and bytes without a fixed width take min and max")
		case out.Kind == KindInt:
			if !out.Int.holds(n.value) {
				return c.fail(n.at, "%s does not fit into %s", n.value.Text, typ)
			}
		case n.value.Neg || n.value.Abs > 1<<31-1:
			return c.fail(n.at, "expected a length or count from 0 to %d, found %s", 1<<31-1, n.value.Text)
		}
	}
	if f.min != nil {
		out.Min = &f.min.value
	}
	if f.max != nil {
		out.Max = &f.max.value
		if out.Min != nil && out.Max.Cmp(*out.Min) < 0 {
			return c.fail(f.max.at, "the maximum is less than the minimum")
		}
	}
	return nil
}

func (c *recordChecker) checkLate(f *syntaxField, out *Field) error {
	if !f.late {
		return nil
	}
	if out.Kind != KindInt || !out.InStruct() || f.measure != nil || out.Int.Bool {
		return c.fail(f.name.at, "only integers can be late")
	}
	if len(out.If) > 0 {
		return c.fail(f.name.at, "a late field is always there")
	}
	if out.Enum != nil || out.Choices != nil || out.Min != nil || out.Max != nil {
		return c.fail(f.name.at, "a late field takes any value, since a patch is not checked")
	}
	if !c.patchable() {
		return c.fail(f.name.at, "a late field must stand before the first bytes with a length")
	}
	return c.take(f.name.at, "Patch"+title(c.record.Name)+out.Name, "field "+out.Name)
}

// patchable says whether the place reached follows from integers at fixed
// places alone.
func (c *recordChecker) patchable() bool {
	for _, f := range c.record.Fields {
		if f.End.Anchor == f.At.Anchor {
			continue
		}
		if f.Kind >= KindVarBytes {
			return false
		}
		conds := f.If
		if f.AltIf != nil {
			conds = append(slices.Clone(conds), f.AltIf)
		}
		for _, x := range conds {
			if x.Field.At.Anchor != 0 {
				return false
			}
		}
	}
	return true
}

// checkWords checks the options that only some kinds take.
func (c *recordChecker) checkWords(f *syntaxField, out *Field) error {
	if f.reserve != nil {
		if out.Kind != KindVarBytes || len(out.If) > 0 {
			return c.fail(f.reserve.at, "only bytes with a length take a reserve")
		}
		out.Reserve = f.reserve.text
		if r := []rune(out.Reserve)[0]; !unicode.IsUpper(r) {
			return c.fail(f.reserve.at, "expected a name for the reserve that begins with an upper-case letter, found %q", out.Reserve)
		}
	}
	if f.ordered != nil {
		if out.Kind != KindInt || !out.Int.Signed || out.Enum != nil || out.Value != nil || out.Choices != nil ||
			f.measure != nil {
			return c.fail(f.ordered.at, "only signed integers can be ordered")
		}
		if out.Int.Little {
			return c.fail(f.ordered.at, "only big-endian integers can be ordered")
		}
		out.Int.Ordered = true
	}
	if f.utf8 != nil {
		if !out.Text {
			return c.fail(f.utf8.at, "only text can be utf8")
		}
		out.UTF8 = true
	}
	if f.pad != nil && out.Kind != KindPadBytes {
		return c.fail(f.pad.at, "only bytes of one fixed width take a pad")
	}
	if f.from != nil && out.Kind != KindVersion {
		return c.fail(f.from.at, `only a version takes "from"`)
	}
	return nil
}

// checkMeasure checks what the integer measures, as far as it is known yet.
func (c *recordChecker) checkMeasure(f *syntaxField, out *Field) error {
	m := f.measure
	if m == nil {
		return nil
	}
	word := "length"
	out.Measure = MeasureLength
	if m.count {
		word, out.Measure = "count", MeasureCount
	}
	if out.Kind != KindInt || out.Enum != nil || out.Int.Bool || out.Value != nil || out.Choices != nil ||
		out.Min != nil || out.Max != nil || out.Late || out.Int.Bytes > 4 || len(out.If) > 0 {
		return c.fail(m.at, "only a plain integer of at most 32 bits that is always there can be a %s", word)
	}
	return nil
}
