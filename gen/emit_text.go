package gen

import "fmt"

// emitText prints String, JSON and Describe of all views of f.
func emitText(f *File) ([]byte, error) {
	p := &printer{}
	for _, r := range f.Records {
		emitFieldTable(p, r)
		emitAppendValue(p, r)
		emitAppendText(p, r)
		emitAppendJSON(p, r)
		emitDescribe(p, r)
	}
	return file(f, p)
}

// emitFieldTable prints the method that finds the fields of a view by number.
func emitFieldTable(p *printer, r *Record) {
	p.function([]string{"field returns the name of field i and its place; \"\" if it is not there."},
		fmt.Sprintf("func (v *%s) field(i int) (name string, at, end int)", r.viewName()), func() {
			p.block("switch i", func() {
				for i, f := range r.Fields {
					p.line("case %d:", i)
					if f.maybe() {
						cond := fmt.Sprintf("!v.Has%s()", f.Name)
						if f.Kind == KindReserved {
							cond = fmt.Sprintf("%s == %s", r.inView(f.End), r.inView(f.At))
						}
						p.block("if "+cond, func() { p.line(`return "", 0, 0`) })
					}
					p.line("return %q, %s, %s", f.Name, r.inView(f.At), r.inView(f.End))
				}
			})
			p.line(`return "", 0, 0`)
		})
}

// emitAppendValue prints the method that writes the value of field i.
func emitAppendValue(p *printer, r *Record) {
	p.function([]string{"appendValue appends the value of field i as text or as JSON."},
		fmt.Sprintf("func (v *%s) appendValue(dst []byte, i int, asJSON bool) []byte", r.viewName()), func() {
			p.block("switch i", func() {
				for i, f := range r.Fields {
					p.line("case %d:", i)
					emitFieldValue(p, r, f)
				}
			})
			p.line("return dst")
		})
}

func emitFieldValue(p *printer, r *Record, f *Field) {
	get := fmt.Sprintf("v.%s()", f.Name)
	quoted := "appendHex"
	if f.Text {
		quoted = "appendQuoted"
	}
	switch {
	case f.Kind == KindReserved:
		p.line("return appendHex(dst, make([]byte, %d))", f.Width)
	case f.Kind == KindConstBytes:
		p.line("return %s(dst, []byte(%s))", quoted, r.constName(f))
	case f.Kind == KindGroup:
		emitGroupValue(p, f)
	case f.Kind == KindFixedBytes:
		p.line("x := %s", get)
		p.line("return %s(dst, x[:])", quoted)
	case f.IsBytes():
		p.line("return %s(dst, %s)", quoted, get)
	case f.Int.Bool:
		p.line("return strconv.AppendBool(dst, %s)", get)
	case f.Enum != nil && f.Enum.Flags:
		p.block("if asJSON", func() { p.line("return appendFlagList(dst, %s.String())", get) })
		p.line("return %s.appendText(dst)", get)
	case f.Enum != nil:
		p.line("return appendName(dst, %s.String(), asJSON && %s.Known())", get, get)
	case len(f.Choices) > 0:
		p.block("switch "+get, func() {
			for _, c := range f.Choices {
				p.line("case %s:", r.choiceName(f, c))
				p.line("return appendName(dst, %q, asJSON)", c.Name)
			}
		})
		fallthrough
	default:
		if f.Int.Signed {
			p.line("return strconv.AppendInt(dst, int64(%s), 10)", get)
		} else {
			p.line("return strconv.AppendUint(dst, uint64(%s), 10)", get)
		}
	}
}

func emitGroupValue(p *printer, f *Field) {
	p.line("dst = append(dst, '[')")
	p.block(fmt.Sprintf("for i, entry := range v.%s().All()", f.Name), func() {
		p.block("if i > 0", func() { p.line("dst = append(dst, ',')") })
		p.line("if asJSON {")
		p.line("dst = entry.AppendJSON(dst)")
		p.line("} else {")
		p.line("dst = entry.AppendText(dst)")
		p.line("}")
	})
	p.line("return append(dst, ']')")
}

func emitAppendText(p *printer, r *Record) {
	view := r.viewName()
	p.function([]string{"AppendText appends the record as one line of text, as String returns it."},
		fmt.Sprintf("func (v *%s) AppendText(dst []byte) []byte", view), func() {
			p.line(`dst = append(dst, "%s{"...)`, r.Name)
			emitFieldLoop(p, r, false)
		})
	p.function([]string{"String returns the record as one line of text: bytes in hex digits, text in quotes."},
		fmt.Sprintf("func (v *%s) String() string", view), func() { p.line("return string(v.AppendText(nil))") })
}

func emitAppendJSON(p *printer, r *Record) {
	p.function([]string{
		"AppendJSON appends the record as a JSON object: bytes as strings of hex digits,",
		"text as strings, named values by name, flags as lists of names. Reserved bytes and",
		"fields that are not there are left out.",
	}, fmt.Sprintf("func (v *%s) AppendJSON(dst []byte) []byte", r.viewName()), func() {
		p.line("dst = append(dst, '{')")
		emitFieldLoop(p, r, true)
	})
}

// emitFieldLoop prints the loop over the fields that AppendText and AppendJSON
// share.
func emitFieldLoop(p *printer, r *Record, asJSON bool) {
	p.line("comma := false")
	p.block(fmt.Sprintf("for i := range %d", len(r.Fields)), func() {
		p.line("name, _, _ := v.field(i)")
		p.block(`if name == "" || name == "reserved"`, func() { p.line("continue") })
		if !asJSON {
			p.block("if comma", func() { p.line("dst = append(dst, ' ')") })
			p.line("dst = append(append(dst, name...), ':')")
			p.line("dst = v.appendValue(dst, i, false)")
		} else {
			p.block("if comma", func() { p.line("dst = append(dst, ',')") })
			p.line("dst = append(append(append(dst, '\"'), name...), '\"', ':')")
			p.line("dst = v.appendValue(dst, i, true)")
		}
		p.line("comma = true")
	})
	p.line("return append(dst, '}')")
}

// emitDescribe prints what the table of records needs.
func emitDescribe(p *printer, r *Record) {
	view := r.viewName()
	p.function([]string{
		"Describe hands the fields to yield, in order, until that returns false, and returns",
		"what it returned last. The entries of a group follow the group.",
	}, fmt.Sprintf("func (v *%s) Describe(yield func(FieldInfo) bool) bool", view), func() {
		p.line(`return v.describe("", 0, yield)`)
	})
	p.function([]string{"describe is Describe for a view within another one."},
		fmt.Sprintf("func (v *%s) describe(prefix string, base int, yield func(FieldInfo) bool) bool", view), func() {
			p.block(fmt.Sprintf("for i := range %d", len(r.Fields)), func() {
				p.line("name, at, end := v.field(i)")
				p.block(`if name == ""`, func() { p.line("continue") })
				p.line("value := v.appendValue(nil, i, false)")
				p.block("if !yield(FieldInfo{prefix + name, base + at, end - at, string(value)})", func() { p.line("return false") })
				for i, f := range r.Fields {
					if f.Kind == KindGroup {
						p.block(fmt.Sprintf("if i == %d", i), func() { emitDescribeGroup(p, r, f) })
					}
				}
			})
			p.line("return true")
		})
	p.function([]string{fmt.Sprintf("describe%s is the function of %s in Records.", title(r.Name), r.Name)},
		fmt.Sprintf("func describe%s(b []byte, yield func(FieldInfo) bool) (int, error)", title(r.Name)), func() {
			p.line("var v %s", view)
			p.block("if err := v.Parse(b); err != nil", func() { p.line("return 0, err") })
			p.line("v.Describe(yield)")
			p.line("return len(v.Bytes()), nil")
		})
}

func emitDescribeGroup(p *printer, r *Record, f *Field) {
	p.line("at := base + %s", r.inView(f.Data))
	p.block(fmt.Sprintf("for k, entry := range v.%s().All()", f.Name), func() {
		p.block(`if !entry.describe(fmt.Sprintf("%s%s[%d].", prefix, name, k), at, yield)`, func() {
			p.line("return false")
		})
		p.line("at += len(entry.Bytes())")
	})
}
