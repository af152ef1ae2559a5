package gen

import (
	"fmt"
	"strings"
	"unicode"
)

// title returns name with an upper-case first letter.
func title(name string) string {
	r := []rune(name)
	r[0] = unicode.ToUpper(r[0])
	return string(r)
}

// lower returns name with a lower-case first letter.
func lower(name string) string {
	r := []rune(name)
	r[0] = unicode.ToLower(r[0])
	return string(r)
}

// camel turns message_v1 into MessageV1.
func camel(name string) string {
	var b strings.Builder
	for _, part := range strings.Split(name, "_") {
		if part != "" {
			b.WriteString(title(part))
		}
	}
	return b.String()
}

// constName returns the constant of a field's only value.
func (r *Record) constName(f *Field) string { return r.Name + f.Name }

// choiceName returns the constant of a named value.
func (r *Record) choiceName(f *Field, c *Choice) string {
	if f.Enum == nil {
		return r.Name + f.Name + c.Name
	}
	for _, v := range f.Enum.Values {
		for _, x := range v.Values {
			if x == c {
				return f.Enum.Name + v.Name + c.Name
			}
		}
	}
	return f.Enum.Name + c.Name
}

// hasOffset says whether there is a constant for the field's place: who looks
// for records in a damaged file looks for their magics.
func (f *Field) hasOffset() bool { return f.Kind == KindMagic && f.At.Anchor == 0 }

// offsetName returns the constant of a field's place.
func (r *Record) offsetName(f *Field) string { return r.Name + f.Name + "Offset" }

// sizeName returns the constant of the record's size or smallest size.
func (r *Record) sizeName() string {
	if r.Size > 0 {
		return r.Name + "Size"
	}
	return r.Name + "MinSize"
}

// viewName returns the type of the record's view, viewsName that of a list of
// them.
func (r *Record) viewName() string  { return r.Name + "View" }
func (r *Record) viewsName() string { return r.Name + "Views" }

// goType returns the type of the field in the struct.
func (f *Field) goType() string {
	switch {
	case f.Kind == KindGroup:
		return "[]" + f.Entry.Name
	case f.Kind == KindFixedBytes:
		return fmt.Sprintf("[%d]byte", f.Width)
	case f.IsBytes():
		return "[]byte"
	case f.Enum != nil:
		return f.Enum.Name
	}
	return f.Int.GoType()
}

// zero returns the zero value of goType.
func (f *Field) zero() string {
	switch {
	case f.Kind == KindGroup:
		return f.Entry.viewsName() + "{}"
	case f.Kind == KindFixedBytes:
		return f.goType() + "{}"
	case f.IsBytes():
		return "nil"
	case f.Int.Bool:
		return "false"
	}
	return "0"
}

// expr prints the place as a Go expression over anchors called prefix1,
// prefix2 and so on.
func (p Pos) expr(prefix string) string {
	switch {
	case p.Anchor == 0:
		return fmt.Sprint(p.Off)
	case p.Off == 0:
		return fmt.Sprintf("%s%d", prefix, p.Anchor)
	}
	return fmt.Sprintf("%s%d%+d", prefix, p.Anchor, p.Off)
}

// local is the place over the anchors of Encode and Parse.
func (p Pos) local() string { return p.expr("a") }

// order is the prefix of the functions that read and write integers.
func (t Int) order() string {
	if t.Little {
		return "binary.LittleEndian"
	}
	return "binary.BigEndian"
}

// flip prints the flipping of the sign bit of an ordered integer.
func (t Int) flip() string {
	if !t.Ordered {
		return ""
	}
	return fmt.Sprintf("^%#x", uint64(1)<<(8*t.Bytes-1))
}

// loadInt prints the reading of an integer from base[from:to].
func loadInt(t Int, base, from, to string) string {
	slice := fmt.Sprintf("%s[%s:%s]", base, from, to)
	switch {
	case t.Bool:
		return fmt.Sprintf("%s[%s] != 0", base, from)
	case t.Decimal:
		return fmt.Sprintf("decimalOf(%s, %t)", slice, t.Reversed)
	case t.Bytes == 1:
		return fmt.Sprintf("%s(%s[%s]%s)", t.GoType(), base, from, t.flip())
	case t.Bytes&(t.Bytes-1) == 0:
		load := fmt.Sprintf("%s.Uint%d(%s)", t.order(), 8*t.Bytes, slice)
		if t.Signed {
			return fmt.Sprintf("%s(%s%s)", t.GoType(), load, t.flip())
		}
		return load
	}
	get := "getBE"
	if t.Little {
		get = "getLE"
	}
	load := fmt.Sprintf("%s(%s)%s", get, slice, t.flip())
	if t.Signed {
		shift := t.goBits() - 8*t.Bytes
		return fmt.Sprintf("%s(uint%d(%s)<<%d)>>%d", t.GoType(), t.goBits(), load, shift, shift)
	}
	return fmt.Sprintf("%s(%s)", t.GoType(), load)
}

// storeInt prints the writing of value, which is an expression of any integer
// type, to base[from:to].
func storeInt(t Int, base, from, to, value string) string {
	slice := fmt.Sprintf("%s[%s:%s]", base, from, to)
	switch {
	case t.Bool:
		return fmt.Sprintf("%s[%s] = boolByte(%s)", base, from, value)
	case t.Decimal && t.Reversed && t.Bytes == 10:
		return fmt.Sprintf("*(*[10]byte)(%s) = digitsOf(%s)", slice, value)
	case t.Decimal:
		return fmt.Sprintf("putDecimal(%s, %s, %t)", slice, value, t.Reversed)
	case t.Bytes == 1:
		return fmt.Sprintf("%s[%s] = byte(%s)%s", base, from, value, t.flip())
	case t.Bytes&(t.Bytes-1) == 0:
		return fmt.Sprintf("%s.PutUint%d(%s, uint%d(%s)%s)", t.order(), 8*t.Bytes, slice, 8*t.Bytes, value, t.flip())
	case t.Little:
		return fmt.Sprintf("putLE(%s, uint64(%s))", slice, value)
	}
	return fmt.Sprintf("putBE(%s, uint64(%s)%s)", slice, value, t.flip())
}

// load prints the reading of an integer field as its Go type; base names the
// bytes of the record, place prints places.
func (f *Field) load(base string, place func(Pos) string) string {
	x := loadInt(f.Int, base, place(f.Data), place(f.Data.add(f.Int.Bytes)))
	if f.Enum != nil {
		return fmt.Sprintf("%s(%s)", f.Enum.Name, x)
	}
	return x
}

// storedValue prints the constant of a field as storeInt takes it: Go converts
// no negative constant to an unsigned type.
func (r *Record) storedValue(f *Field) string {
	if f.Value.Neg {
		bits := uint64(f.Value.Int64())
		return fmt.Sprintf("uint64(%#x)", bits<<(64-8*f.Int.Bytes)>>(64-8*f.Int.Bytes))
	}
	return r.constName(f)
}

// condExpr prints a condition on the value that x reads.
func (r *Record) condExpr(c *Cond, x string) string {
	if c.Field.Int.Bool {
		return x
	}
	name := func(named string, n Number) string {
		if named == "" {
			return n.Text
		}
		return r.choiceName(c.Field, c.Field.choice(named))
	}
	if c.Mask != nil {
		x += "&" + name(c.MaskName, *c.Mask)
	}
	return fmt.Sprintf("%s %s %s", x, c.Op, name(c.ValueName, c.Value))
}

// condsExpr prints all conditions, joined; value reads the field of one.
func (r *Record) condsExpr(conds []*Cond, value func(*Field) string) string {
	var parts []string
	for _, c := range conds {
		parts = append(parts, r.condExpr(c, value(c.Field)))
	}
	return strings.Join(parts, " && ")
}

// encodeConds are the conditions that Encode looks at: it writes the newest
// version.
func (f *Field) encodeConds() []*Cond {
	var out []*Cond
	for _, c := range f.If {
		if c.Field.Kind != KindVersion {
			out = append(out, c)
		}
	}
	return out
}

// hasPrefix says whether a length or count stands before the data.
func (f *Field) hasPrefix() bool {
	return f.Int.Bytes > 0 && f.SizedBy == nil && (f.Kind == KindVarBytes || f.Kind == KindGroup)
}

// isDynamic says whether the field ends where its content says.
func (f *Field) isDynamic() bool { return f.Kind >= KindVarBytes }
