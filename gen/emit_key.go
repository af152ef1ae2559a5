package gen

import "fmt"

// emitKeyPrefix prints the type that names the fields of a key, and the method
// that appends a key up to one of them.
func emitKeyPrefix(p *printer, r *Record) {
	typ := r.Name + "Field"
	var settable []*Field
	for _, f := range r.Fields {
		if f.InStruct() {
			settable = append(settable, f)
		}
	}
	if len(settable) == 0 {
		return
	}
	p.blank()
	p.line("// %s names a field of %s.", typ, r.Name)
	p.line("type %s int", typ)
	p.blank()
	p.line("// Fields of %s, in order.", r.Name)
	p.line("const (")
	for i, f := range settable {
		p.line("// %s%s names %s.", typ, f.Name, f.Name)
		if i == 0 {
			p.line("%s%s %s = iota", typ, f.Name, typ)
		} else {
			p.line("%s%s", typ, f.Name)
		}
	}
	p.line(")")
	doc := []string{
		"AppendPrefix appends the key up to its field last, without what stands behind it:",
		"all keys with the same values up to there have these bytes in front. It looks at",
		"no other field. The error is a *FieldError if one of the fields is not legal; dst",
		"is then as it was.",
	}
	p.function(doc, fmt.Sprintf("func (m *%s) AppendPrefix(dst []byte, last %s) ([]byte, error)", r.Name, typ), func() {
		p.line("short := *m")
		for i, f := range settable {
			if i == 0 {
				continue
			}
			p.block(fmt.Sprintf("if last < %s%s", typ, f.Name), func() {
				p.line("short.%s = %s", f.Name, r.smallest(f))
			})
		}
		p.line("start := len(dst)")
		p.line("out, err := short.Append(dst)")
		p.block("if err != nil", func() { p.line("return dst, err") })
		if r.Size == 0 {
			p.line("var v %s", r.viewName())
			p.block("if err := v.Parse(out[start:]); err != nil", func() { p.line("return dst, err") })
		}
		p.block("switch last", func() {
			for _, f := range settable {
				p.line("case %s%s:", typ, f.Name)
				p.line("out = out[:start+%s]", r.inView(f.prefixEnd()))
			}
		})
		p.line("return out, nil")
	})
}

// prefixEnd is where the value of a field ends that a prefix has: behind the
// byte that ends bytes, since without it longer bytes would match, too.
func (f *Field) prefixEnd() Pos { return f.End }

// smallest prints a legal value of a field of a key.
func (r *Record) smallest(f *Field) string {
	switch {
	case f.IsBytes() && f.isDynamic():
		if f.Min != nil && f.Min.Abs > 0 {
			fill := `"a"`
			if f.Stop == 'a' {
				fill = `"b"`
			}
			return fmt.Sprintf("bytes.Repeat([]byte(%s), %s)", fill, f.Min)
		}
		return "nil"
	case f.Kind == KindFixedBytes:
		return f.goType() + "{}"
	case f.IsBytes():
		return "nil"
	case len(f.Choices) > 0:
		return r.choiceName(f, f.Choices[0])
	case f.Enum != nil && !f.Enum.Flags:
		return r.choiceName(f, f.Enum.Values[0])
	case f.Min != nil:
		return f.Min.String()
	case f.Int.Bool:
		return "false"
	case f.Max != nil && f.Max.Neg:
		return f.Max.String()
	}
	return "0"
}
