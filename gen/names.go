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

// sizeName returns the constant of the record's size or smallest size.
func (r *Record) sizeName() string {
	if r.Size > 0 {
		return r.Name + "Size"
	}
	return r.Name + "MinSize"
}

// viewName returns the type of the record's view.
func (r *Record) viewName() string { return r.Name + "View" }

// goType returns the type of the field in the struct and of its accessor.
func (f *Field) goType() string {
	switch f.Kind {
	case KindFixedBytes:
		return fmt.Sprintf("[%d]byte", f.Width)
	case KindFlagBytes, KindVarBytes:
		return "[]byte"
	}
	return f.Int.GoType()
}

// loadInt prints the reading of an integer of type t from the bytes that
// slice names; slice is an expression without the brackets, from and to are
// the bounds, to being empty for an open slice.
func loadInt(t Int, base, from, to string) string {
	if t.Bytes == 1 {
		return fmt.Sprintf("%s(%s[%s])", t.GoType(), base, from)
	}
	load := fmt.Sprintf("binary.BigEndian.Uint%d(%s[%s:%s])", 8*t.Bytes, base, from, to)
	if t.Signed {
		return fmt.Sprintf("%s(%s)", t.GoType(), load)
	}
	return load
}

// storeInt prints the writing of value, which is an expression of any integer
// type.
func storeInt(t Int, base, from, to, value string) string {
	if t.Bytes == 1 {
		return fmt.Sprintf("%s[%s] = byte(%s)", base, from, value)
	}
	return fmt.Sprintf("binary.BigEndian.PutUint%d(%s[%s:%s], uint%d(%s))", 8*t.Bytes, base, from, to, 8*t.Bytes, value)
}

// endsVariable says whether the last field ends at the last anchor.
func (r *Record) endsVariable() bool { return r.Size == 0 && r.End().Off == 0 }

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
