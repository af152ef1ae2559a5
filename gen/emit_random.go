package gen

import (
	"fmt"
	"strings"
)

// emitRandom prints the function that makes a random legal record.
func emitRandom(p *printer, r *Record) {
	p.function([]string{fmt.Sprintf("random%s returns a legal record.", title(r.Name))},
		fmt.Sprintf("func random%s(r *rand.Rand) %s", title(r.Name), r.Name), func() {
			p.line("var m %s", r.Name)
			for _, f := range r.Fields {
				if !f.InStruct() {
					continue
				}
				conds := f.encodeConds()
				p.when(len(conds) > 0, "if "+r.condsExpr(conds, structValue), func() { emitRandomField(p, r, f) })
			}
			p.line("return m")
		})
}

func emitRandomField(p *printer, r *Record, f *Field) {
	set := "m." + f.Name
	low, high := 0, 0
	if f.Min != nil {
		low = int(min(f.Min.Abs, 1<<16))
	}
	switch {
	case f.IsInt():
		p.line("%s = %s", set, r.randomInt(f))
	case f.Kind == KindGroup:
		high = int(min(f.highest(), 1<<16))
		p.block(fmt.Sprintf("for range %d+r.IntN(%d)", low, min(high-low, 3)+1), func() {
			p.line("%s = append(%s, random%s(r))", set, set, title(f.Entry.Name))
		})
	case f.Kind == KindFixedBytes:
		p.line("copy(%s[:], %s)", set, f.randomBytes(f.Width, f.Width))
	case f.Kind == KindPadBytes:
		p.line("%s = trimmed(%s, %#02x)", set, f.randomBytes(0, f.Width), f.Pad)
	case f.Kind == KindFlagBytes:
		p.line("if %s {", r.condExpr(f.AltIf, structValue(f.AltIf.Field)))
		p.line("%s = %s", set, f.randomBytes(f.AltWidth, f.AltWidth))
		p.line("} else {")
		p.line("%s = %s", set, f.randomBytes(f.Width, f.Width))
		p.line("}")
	case f.Kind == KindUntilBytes:
		p.line("%s = without(%s, %#02x)", set, f.randomBytes(low, int(min(f.highest(), 1<<16))), f.Stop)
	default:
		p.line("%s = %s", set, f.randomBytes(low, int(min(f.highest(), 1<<16))))
	}
}

// highest is the largest length or count that the field can have.
func (f *Field) highest() uint64 {
	n := uint64(1 << 31)
	if f.Int.Bytes > 0 {
		n = f.limit(f.Int)
	} else if f.Max != nil {
		n = f.Max.Abs
	}
	return n
}

func (f *Field) randomBytes(low, high int) string {
	call := "randomBytes"
	if f.Text {
		call = "randomText"
	}
	return fmt.Sprintf("%s(r, %d, %d)", call, low, high)
}

// randomInt prints a random legal value of an integer.
func (r *Record) randomInt(f *Field) string {
	switch {
	case f.Int.Bool:
		return "r.IntN(2) == 1"
	case len(f.Choices) > 0:
		return oneOf(r, f, f.goType(), f.Choices)
	case f.Enum != nil && !f.Enum.Flags:
		return oneOf(r, f, f.goType(), f.Enum.Values)
	case f.Enum != nil:
		var parts []string
		for _, c := range f.Enum.Values {
			switch {
			case len(c.Values) > 0:
				parts = append(parts, oneOf(r, f, f.goType(), c.Values))
			default:
				parts = append(parts, fmt.Sprintf("%s(r.Uint64())&%s", f.goType(), c.Value.Text))
			}
		}
		return strings.Join(parts, " | ")
	}
	low, high := f.Int.Min(), f.Int.Max()
	if f.Min != nil && f.Min.Cmp(low) > 0 {
		low = *f.Min
	}
	if f.Max != nil {
		high = *f.Max
	}
	call := "randomUint"
	if f.Int.Signed {
		call = "randomInt"
	}
	return fmt.Sprintf("%s(%s(r, %s, %s))", f.goType(), call, low, high)
}

// oneOf prints the choice of one of some named values.
func oneOf(r *Record, f *Field, typ string, choices []*Choice) string {
	var names []string
	for _, c := range choices {
		names = append(names, r.choiceName(f, c))
	}
	return fmt.Sprintf("[]%s{%s}[r.IntN(%d)]", typ, strings.Join(names, ", "), len(names))
}

// emitRandomTest prints the test of random records.
func emitRandomTest(p *printer, r *Record) {
	name := title(r.Name)
	given := ""
	if r.givenSum() != nil {
		given = ", given"
	}
	p.function([]string{fmt.Sprintf("TestRandom%s encodes and parses random records, cuts them off and flips their bits.", name)},
		fmt.Sprintf("func TestRandom%s(t *testing.T)", name), func() {
			p.line("r := rand.New(rand.NewPCG(1, 2))")
			p.line("var want, front []byte")
			if given != "" {
				p.line(`given := []byte("given")`)
			}
			p.block("for i := range 20", func() {
				p.line("m := random%s(r)", name)
				p.line("var err error")
				p.block(fmt.Sprintf("if want, err = m.Append(front%s); err != nil", given), func() { p.line(`t.Fatalf("%%+v: %%v", m, err)`) })
				p.block(fmt.Sprintf("if len(want) != %s", r.sizeExpr()), func() {
					p.line(`t.Fatalf("%%d bytes, want %%d", len(want), %s)`, r.sizeExpr())
				})
				p.line("var v %s", r.viewName())
				p.block("if err := v.Parse(want); err != nil || len(v.Bytes()) != len(want)", func() {
					p.line(`t.Fatalf("%%+v: %%v in\n%%x", m, err, want)`)
				})
				p.block(fmt.Sprintf("if got := %sOf(&v); !reflect.DeepEqual(got, m)", lower(r.Name)), func() {
					p.line(`t.Fatalf("got  %%+v\nwant %%+v", got, m)`)
				})
				for _, f := range r.Fields {
					if f.Sum != nil && f.Sum.Lazy && f.Until == 0 {
						p.block(fmt.Sprintf("if !v.Check%s()", f.Name), func() { p.line(`t.Fatal("%s does not fit")`, f.Name) })
					}
				}
				if f := r.givenSum(); f != nil {
					p.block(fmt.Sprintf(`if !v.Check%s(given)`, f.Name), func() { p.line(`t.Fatal("%s does not fit")`, f.Name) })
				}
				emitPatchTest(p, r)
				p.block("if i > 4", func() { p.line("continue") })
				emitRefusals(p, r, "want")
				p.block("if i > 0", func() { p.line("continue") })
				p.line("requireNoAllocs(t, func() {")
				p.line("m.Encode(want%s)", given)
				p.line("v.Parse(want)")
				emitTouch(p, r)
				p.line("})")
			})
		})
}

// emitPatchTest prints the patching of every late field.
func emitPatchTest(p *printer, r *Record) {
	for _, f := range r.Fields {
		if !f.Late {
			continue
		}
		p.line("m.%s = %s", f.Name, r.randomInt(f))
		patch := "Patch" + title(r.Name) + f.Name
		if f.Int.exact() {
			p.line("%s(want, m.%s)", patch, f.Name)
		} else {
			p.block(fmt.Sprintf("if err := %s(want, m.%s); err != nil", patch, f.Name), func() { p.line("t.Fatal(err)") })
		}
		if r.needsSeal() {
			p.block(fmt.Sprintf("if err := Seal%s(want); err != nil", title(r.Name)), func() { p.line("t.Fatal(err)") })
		}
		p.block(fmt.Sprintf("if err := v.Parse(want); err != nil || v.%s() != m.%s", f.Name, f.Name), func() {
			p.line(`t.Fatalf("patched: %%v", err)`)
		})
		if !f.Int.exact() {
			emitPatchRefusals(p, r, f, patch)
		}
	}
}

// emitPatchRefusals prints that what does not fit is refused, and changes
// nothing.
func emitPatchRefusals(p *printer, r *Record, f *Field, patch string) {
	list := f.Int.Max().Text + "+1"
	if f.Int.Signed {
		list += ", " + f.Int.Min().Text + "-1"
	}
	p.block(fmt.Sprintf("for _, x := range []%s{%s}", f.Int.GoType(), list), func() {
		p.block(fmt.Sprintf("if e := requireFieldError(t, %s(want, x), %q); e.Field != %q || v.%s() != m.%s", patch, r.Name, f.Name, f.Name, f.Name), func() {
			p.line(`t.Fatalf("patched with %%d: %%v", x, e)`)
		})
	})
}

// emitOrderTest prints the test that the bytes of keys are in the order of
// their fields.
func emitOrderTest(p *printer, r *Record) {
	name := title(r.Name)
	p.function([]string{fmt.Sprintf("compare%s compares field by field.", name)},
		fmt.Sprintf("func compare%s(a, b *%s) int", name, r.Name), func() {
			for _, f := range r.Fields {
				if f.Measure != MeasureNone && f.Until == 0 {
					p.block(fmt.Sprintf("if c := cmp.Compare(len(a.%s), len(b.%s)); c != 0", f.Of.Name, f.Of.Name), func() { p.line("return c") })
				}
				if f.InStruct() {
					emitFieldOrder(p, f)
				}
			}
			p.line("return 0")
		})
	p.function([]string{fmt.Sprintf("TestOrder%s: the order of the bytes is that of the fields, and a prefix is in front of its keys.", name)},
		fmt.Sprintf("func TestOrder%s(t *testing.T)", name), func() {
			p.line("r := rand.New(rand.NewPCG(3, 4))")
			p.block("for range 200", func() {
				p.line("a, b := random%s(r), random%s(r)", name, name)
				for _, f := range r.Fields {
					if f.InStruct() {
						p.block("if r.IntN(2) == 0", func() { p.line("b.%s = a.%s", f.Name, f.Name) })
					}
				}
				p.line("x, err := a.Append(nil)")
				p.block("if err != nil", func() { p.line("t.Fatal(err)") })
				p.line("y, err := b.Append(nil)")
				p.block("if err != nil", func() { p.line("t.Fatal(err)") })
				p.block(fmt.Sprintf("if got, want := bytes.Compare(x, y), compare%s(&a, &b); got != want", name), func() {
					p.line(`t.Fatalf("%%+v and %%+v: bytes %%d, fields %%d", a, b, got, want)`)
				})
				some := false
				for _, f := range r.Fields {
					some = some || f.InStruct()
				}
				if !some {
					return
				}
				p.block(fmt.Sprintf("for last := range %sField%s + 1", r.Name, r.lastSettable().Name), func() {
					p.line("front, err := a.AppendPrefix(nil, last)")
					p.block("if err != nil || !bytes.HasPrefix(x, front)", func() { p.line(`t.Fatalf("prefix %%x of %%x: %%v", front, x, err)`) })
				})
			})
		})
}

// lastSettable is the last field that the caller sets.
func (r *Record) lastSettable() *Field {
	var last *Field
	for _, f := range r.Fields {
		if f.InStruct() {
			last = f
		}
	}
	return last
}

// emitFieldOrder prints the comparison of one field.
func emitFieldOrder(p *printer, f *Field) {
	c := fmt.Sprintf("bytes.Compare(a.%s, b.%s)", f.Name, f.Name)
	switch {
	case f.Int.Bool && f.IsInt():
		c = fmt.Sprintf("cmp.Compare(boolByte(a.%s), boolByte(b.%s))", f.Name, f.Name)
	case f.IsInt():
		c = fmt.Sprintf("cmp.Compare(a.%s, b.%s)", f.Name, f.Name)
	case f.Kind == KindFixedBytes:
		c = fmt.Sprintf("bytes.Compare(a.%s[:], b.%s[:])", f.Name, f.Name)
	case f.Kind == KindVarBytes:
		p.block(fmt.Sprintf("if c := cmp.Compare(len(a.%s), len(b.%s)); c != 0", f.Name, f.Name), func() { p.line("return c") })
	case f.Kind == KindUntilBytes:
		c = fmt.Sprintf("bytes.Compare(append(bytes.Clone(a.%s), %#02x), append(bytes.Clone(b.%s), %#02x))", f.Name, f.Stop, f.Name, f.Stop)
	}
	p.block(fmt.Sprintf("if c := %s; c != 0", c), func() { p.line("return c") })
}

// emitPageTest prints the test of the slots of a page.
func emitPageTest(p *printer, g *Page) {
	name, r := title(g.Name), g.Record
	doc := fmt.Sprintf("Test%sSlots: the newest record that is whole is found, and never the next one to be overwritten.", name)
	p.function([]string{doc}, fmt.Sprintf("func Test%sSlots(t *testing.T)", name), func() {
		p.line("page, err := Open%s(make([]byte, %sSize))", name, g.Name)
		p.block("if err != nil", func() { p.line("t.Fatal(err)") })
		p.block(fmt.Sprintf("if _, err := Open%s(make([]byte, %sSize-1)); err == nil", name, g.Name), func() {
			p.line(`t.Error("a page may be short")`)
		})
		p.line("var v %s", r.viewName())
		p.block("if slot, err := page.Newest(&v); err == nil || slot != -1 || page.Next() != 0", func() {
			p.line(`t.Fatalf("an empty page: %%d, %%v", slot, err)`)
		})
		p.line("r := rand.New(rand.NewPCG(5, 6))")
		low := "0"
		if g.By.Min != nil {
			low = g.By.Min.String()
		}
		p.block(fmt.Sprintf("for i := range %s(%sSlots*2)", g.By.goType(), g.Name), func() {
			p.line("m := random%s(r)", title(r.Name))
			p.line("m.%s = %s + i", g.By.Name, low)
			p.line("next := page.Next()")
			p.block("if err := page.Put(next, &m); err != nil", func() { p.line("t.Fatal(err)") })
			p.block(fmt.Sprintf("if slot, err := page.Newest(&v); err != nil || slot != next || v.%s() != m.%s", g.By.Name, g.By.Name), func() {
				p.line(`t.Fatalf("wrote slot %%d, found %%d, %%v", next, slot, err)`)
			})
		})
		p.line("torn := page.Next()")
		p.line("newest, _ := page.Newest(&v)")
		p.line("page.Slot(torn)[0] ^= 1")
		p.block("if slot, err := page.Newest(&v); err != nil || slot != newest", func() {
			p.line(`t.Errorf("a torn slot %%d hides slot %%d: %%d, %%v", torn, newest, slot, err)`)
		})
	})
}
