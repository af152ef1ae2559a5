package gen

import (
	"fmt"
	"slices"
	"strings"
)

// emitTests prints the tests of all that f declares: golden bytes, random
// values, refusals, allocations, a fuzz target and benchmarks.
func emitTests(f *File) ([]byte, error) {
	p := &printer{}
	for _, r := range f.Records {
		emitFromView(p, r)
		emitRandom(p, r)
		emitHold(p, r)
		emitRandomTest(p, r)
		emitFuzz(p, r)
		for _, v := range r.Vectors {
			if v.newest(r) {
				emitSample(p, r, v)
				emitGoldenTest(p, r, v)
			} else {
				emitOldGoldenTest(p, r, v)
			}
		}
		if v := r.sample(); v != nil {
			emitBenchmarks(p, r, v)
		}
		if r.Key {
			emitOrderTest(p, r)
		}
	}
	for _, g := range f.Pages {
		emitPageTest(p, g)
	}
	return file(f, p)
}

// newest says whether Encode gives the bytes of the vector.
func (v *Vector) newest(r *Record) bool {
	return r.Version == nil || v.Version == r.Version.Value.Int64()
}

// sample returns the first vector that Encode gives, or nil.
func (r *Record) sample() *Vector {
	for _, v := range r.Vectors {
		if v.newest(r) {
			return v
		}
	}
	return nil
}

// givenBytes prints the argument for a checksum over given bytes.
func (r *Record) givenBytes(v *Vector) string {
	if r.givenSum() == nil {
		return ""
	}
	return fmt.Sprintf(", []byte(%q)", string(v.Given))
}

func emitFromView(p *printer, r *Record) {
	p.function([]string{fmt.Sprintf("%sOf reads every field of a view.", lower(r.Name))},
		fmt.Sprintf("func %sOf(v *%s) %s", lower(r.Name), r.viewName(), r.Name), func() {
			p.line("m := %s{", r.Name)
			for _, f := range r.Fields {
				switch {
				case !f.InStruct() || f.Kind == KindGroup:
				case f.goType() == "[]byte":
					p.line("%s: normal(v.%s()),", f.Name, f.Name)
				default:
					p.line("%s: v.%s(),", f.Name, f.Name)
				}
			}
			p.line("}")
			for _, f := range r.Fields {
				if f.InStruct() && f.Kind == KindGroup {
					p.block(fmt.Sprintf("for _, entry := range v.%s().All()", f.Name), func() {
						p.line("m.%s = append(m.%s, %sOf(&entry))", f.Name, f.Name, lower(f.Entry.Name))
					})
				}
			}
			p.line("return m")
		})
}

// emitHold prints what must be true of whatever Parse accepts.
func emitHold(p *printer, r *Record) {
	doc := []string{
		fmt.Sprintf("hold%s parses b, whatever it is: an error names a field, every accessor works, and", title(r.Name)),
		"what Parse accepts Encode gives back byte for byte.",
	}
	p.function(doc, fmt.Sprintf("func hold%s(t testing.TB, b []byte)", title(r.Name)), func() {
		p.line("t.Helper()")
		p.line("var v %s", r.viewName())
		p.block("if err := v.Parse(b); err != nil", func() {
			p.line("requireFieldError(t, err, %q)", r.Name)
			p.line("return")
		})
		p.block("if len(v.Bytes()) > len(b)", func() { p.line(`t.Fatalf("a view of %%d of %%d bytes", len(v.Bytes()), len(b))`) })
		p.line("m := %sOf(&v)", lower(r.Name))
		p.line("requireJSON(t, v.AppendJSON(nil))")
		p.line("end := 0")
		p.line("v.Describe(func(f FieldInfo) bool {")
		p.block("if f.Offset < 0 || f.Offset+f.Size > len(v.Bytes())", func() { p.line(`t.Errorf("%%+v lies outside", f)`) })
		p.line("end = max(end, f.Offset+f.Size)")
		p.line("return true")
		p.line("})")
		p.block("if end != len(v.Bytes())", func() { p.line(`t.Errorf("the fields end at %%d of %%d", end, len(v.Bytes()))`) })
		conds := r.againConds()
		emitAgain := func() {
			p.line("again := make([]byte, %s)", r.sizeExpr())
			given := ""
			if r.givenSum() != nil {
				given = ", nil"
			}
			p.block(fmt.Sprintf("if _, err := m.Encode(again%s); err != nil", given), func() {
				p.line(`t.Fatalf("Encode of what Parse accepted: %%v", err)`)
			})
			cond := "!bytes.Equal(again, v.Bytes())"
			if lazy := r.lazyChecks(); lazy != "" {
				cond = lazy + " && " + cond
			}
			p.block("if "+cond, func() { p.line(`t.Fatalf("encoded again:\n%%x\nparsed:\n%%x", again, v.Bytes())`) })
		}
		if conds != "" {
			p.block("if "+conds, emitAgain)
		} else {
			emitAgain()
		}
	})
}

// againConds is the condition under which what Parse accepted can be encoded:
// Encode writes only the newest version.
func (r *Record) againConds() string {
	for _, f := range r.Fields {
		if f.Kind == KindGroup && f.Entry.againConds() != "" {
			return "false"
		}
	}
	if f := r.Version; f != nil && f.FromVersion < f.Value.Int64() {
		return fmt.Sprintf("v.%s() == %s", f.Name, r.constName(f))
	}
	return ""
}

// lazyChecks is the condition under which encoding again gives the same
// bytes: Encode writes right checksums, Parse does not look at lazy ones.
func (r *Record) lazyChecks() string {
	var checks []string
	for _, f := range r.Fields {
		switch {
		case f.Sum != nil && f.Sum.Given:
			checks = append(checks, fmt.Sprintf("v.Check%s(nil)", f.Name))
		case f.Sum != nil && f.Sum.Lazy && f.Until == 0:
			checks = append(checks, fmt.Sprintf("v.Check%s()", f.Name))
		case f.Kind == KindGroup && f.Entry.lazyChecks() != "":
			checks = append(checks, "false")
		}
	}
	return strings.Join(checks, " && ")
}

func emitFuzz(p *printer, r *Record) {
	doc := []string{
		fmt.Sprintf("Fuzz%sParse: no input makes Parse panic, an error names a field, and what", title(r.Name)),
		"Parse accepts Encode gives back byte for byte.",
	}
	p.function(doc, fmt.Sprintf("func Fuzz%sParse(f *testing.F)", title(r.Name)), func() {
		p.line("f.Add(make([]byte, %s))", r.sizeName())
		for _, v := range r.Vectors {
			p.line("f.Add(readGolden(f, %q))", v.Name)
		}
		p.line("f.Fuzz(func(t *testing.T, b []byte) { hold%s(t, b) })", title(r.Name))
	})
}

func emitSample(p *printer, r *Record, v *Vector) {
	doc := append([]string{fmt.Sprintf("sample%s is the record of testdata/%s.golden.", camel(v.Name), v.Name)}, v.Doc...)
	p.function(doc, fmt.Sprintf("func sample%s() %s", camel(v.Name), r.Name), func() {
		p.line("return %s{", r.Name)
		for _, x := range v.Values {
			p.line("%s: %s,", x.goName(), r.valueExpr(x))
		}
		p.line("}")
	})
}

func emitGoldenTest(p *printer, r *Record, v *Vector) {
	given := r.givenBytes(v)
	doc := []string{
		fmt.Sprintf("TestGolden%s encodes and parses the record of testdata/%s.golden.", camel(v.Name), v.Name),
	}
	p.function(doc, fmt.Sprintf("func TestGolden%s(t *testing.T)", camel(v.Name)), func() {
		p.line("m := sample%s()", camel(v.Name))
		if given != "" {
			p.line("given := %s", strings.TrimPrefix(given, ", "))
			given = ", given"
		}
		p.line("want := readGolden(t, %q)", v.Name)
		p.line("got := make([]byte, %s)", r.sizeExpr())
		p.block(fmt.Sprintf("if n, err := m.Encode(got%s); err != nil || n != len(got)", given), func() {
			p.line(`t.Fatalf("Encode = %%d, %%v, want %%d", n, err, len(got))`)
		})
		p.block("if !bytes.Equal(got, want)", func() {
			p.line(`t.Fatalf("Encode gives\n%%x\nwant\n%%x", got, want)`)
		})
		p.block(fmt.Sprintf("if _, err := m.Encode(got[:len(got)-1]%s); err == nil", given), func() {
			p.line(`t.Error("Encode fits into a buffer that is a byte too short")`)
		})
		p.line("var v %s", r.viewName())
		p.block("if err := v.Parse(want); err != nil || !bytes.Equal(v.Bytes(), want)", func() {
			p.line(`t.Fatalf("Parse = %%v", err)`)
		})
		for _, x := range v.Values {
			if !x.Reserve && x.Field.Reserve == "" && x.Field.Kind != KindGroup {
				emitFieldComparison(p, x.Field)
			}
		}
		if f := r.givenSum(); f != nil {
			p.block(fmt.Sprintf("if !v.Check%s(given)", f.Name), func() {
				p.line(`t.Error("%s does not fit")`, f.Name)
			})
		}
		emitRefusals(p, r, "want")
		p.line("requireNoAllocs(t, func() {")
		p.line("m.Encode(got%s)", given)
		p.line("v.Parse(got)")
		emitTouch(p, r)
		p.line("})")
	})
}

// openEnded says whether the front part of a record can be one.
func (r *Record) openEnded() bool {
	return r.Total == nil && slices.ContainsFunc(r.Fields, (*Field).isRest)
}

// emitRefusals prints the check of every truncation and every flipped bit of
// the bytes that want names.
func emitRefusals(p *printer, r *Record, want string) {
	p.block("for n := range "+want, func() {
		if r.openEnded() {
			p.line("hold%s(t, %s[:n:n])", title(r.Name), want)
			return
		}
		p.block(fmt.Sprintf("if err := new(%s).Parse(%s[:n:n]); err == nil", r.viewName(), want), func() {
			p.line(`t.Fatalf("Parse accepts %%d of %%d bytes", n, len(%s))`, want)
		})
	})
	longer := fmt.Sprintf("append(bytes.Clone(%s), 0xAA, 0xAA)", want)
	if r.Key || r.openEnded() {
		longer = fmt.Sprintf("bytes.Clone(%s)", want)
	}
	p.line("longer := %s", longer)
	p.block(fmt.Sprintf("for bit := range 8 * len(%s)", want), func() {
		p.line("longer[bit/8] ^= 1 << (bit %% 8)")
		p.line("hold%s(t, longer)", title(r.Name))
		p.line("longer[bit/8] ^= 1 << (bit %% 8)")
	})
}

// emitTouch prints the use of every accessor of v.
func emitTouch(p *printer, r *Record) {
	for _, f := range r.Fields {
		switch {
		case !f.hasAccessor():
		case f.Kind == KindGroup:
			p.block(fmt.Sprintf("for _, entry := range v.%s().All()", f.Name), func() { p.line("entry.Bytes()") })
		default:
			p.line("v.%s()", f.Name)
		}
	}
}

func emitFieldComparison(p *printer, f *Field) {
	cond := fmt.Sprintf("v.%s() != m.%s", f.Name, f.Name)
	if f.goType() == "[]byte" {
		cond = fmt.Sprintf("!bytes.Equal(v.%s(), m.%s)", f.Name, f.Name)
	}
	p.block("if "+cond, func() {
		p.line(`t.Errorf("%s = %%v, want %%v", v.%s(), m.%s)`, f.Name, f.Name, f.Name)
	})
}

// emitOldGoldenTest prints the test of bytes of an older version.
func emitOldGoldenTest(p *printer, r *Record, v *Vector) {
	doc := []string{
		fmt.Sprintf("TestGolden%s reads the record of testdata/%s.golden, of version %d.", camel(v.Name), v.Name, v.Version),
	}
	p.function(doc, fmt.Sprintf("func TestGolden%s(t *testing.T)", camel(v.Name)), func() {
		p.line("want := readGolden(t, %q)", v.Name)
		p.line("var v %s", r.viewName())
		p.block("if err := v.Parse(want); err != nil || !bytes.Equal(v.Bytes(), want)", func() { p.line(`t.Fatalf("Parse = %%v", err)`) })
		for _, x := range v.Values {
			f := x.Field
			if x.Reserve || f.Kind == KindGroup {
				continue
			}
			p.block(fmt.Sprintf("if got, want := v.%s(), %s(%s); !reflect.DeepEqual(got, want)", f.Name, f.goType(), r.valueExpr(x)), func() {
				p.line(`t.Errorf("%s = %%v, want %%v", got, want)`, f.Name)
			})
		}
		for _, f := range r.Fields {
			if f.Since > v.Version {
				p.block(fmt.Sprintf("if v.Has%s()", f.Name), func() { p.line(`t.Error("it has %s")`, f.Name) })
			}
		}
		emitRefusals(p, r, "want")
	})
}

func emitBenchmarks(p *printer, r *Record, v *Vector) {
	name, given := title(r.Name), r.givenBytes(v)
	p.function([]string{fmt.Sprintf("Benchmark%sEncode encodes the record of testdata/%s.golden.", name, v.Name)},
		fmt.Sprintf("func Benchmark%sEncode(b *testing.B)", name), func() {
			p.line("m := sample%s()", camel(v.Name))
			p.line("dst := make([]byte, %s)", r.sizeExpr())
			if given != "" {
				p.line("given := %s", strings.TrimPrefix(given, ", "))
				given = ", given"
			}
			p.line("b.ReportAllocs()")
			p.block("for b.Loop()", func() { p.line("m.Encode(dst%s)", given) })
		})
	p.function([]string{fmt.Sprintf("Benchmark%sParse parses the record of testdata/%s.golden.", name, v.Name)},
		fmt.Sprintf("func Benchmark%sParse(b *testing.B)", name), func() {
			p.line("src := readGolden(b, %q)", v.Name)
			p.line("var v %s", r.viewName())
			p.line("b.ReportAllocs()")
			p.block("for b.Loop()", func() { p.line("v.Parse(src)") })
		})
}
