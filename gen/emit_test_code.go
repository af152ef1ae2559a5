package gen

import (
	"fmt"
	"strings"
)

// emitTests prints the tests of all records of f: golden bytes, refusals,
// allocations, a fuzz target and benchmarks.
func emitTests(f *File) ([]byte, error) {
	body := &printer{}
	for _, r := range f.Records {
		emitFromView(body, r)
		emitFuzz(body, r)
		for _, v := range r.Vectors {
			emitSample(body, r, v)
			emitGoldenTest(body, r, v)
		}
		if len(r.Vectors) > 0 {
			emitBenchmarks(body, r)
		}
	}
	p := &printer{}
	header(p, f)
	p.line("import (")
	for _, path := range []string{"bytes", "testing"} {
		if strings.Contains(body.buf.String(), path+".") {
			p.line("%q", path)
		}
	}
	p.line(")")
	p.buf.Write(body.buf.Bytes())
	return p.source()
}

// sizeExpr is the size of the struct m.
func (r *Record) sizeExpr() string {
	if r.Size > 0 {
		return r.sizeName()
	}
	return "m.Size()"
}

// lazyChecks is the condition under which encoding again gives the same
// bytes: Encode writes right checksums, Parse does not look at lazy ones.
func (r *Record) lazyChecks() string {
	var checks []string
	for _, f := range r.Fields {
		if f.Sum != nil && f.Sum.Lazy {
			checks = append(checks, fmt.Sprintf("v.Check%s()", f.Name))
		}
	}
	return strings.Join(checks, " && ")
}

func emitFromView(p *printer, r *Record) {
	p.function([]string{fmt.Sprintf("%sOf reads every field of a view.", lower(r.Name))},
		fmt.Sprintf("func %sOf(v *%s) %s", lower(r.Name), r.viewName(), r.Name), func() {
			p.line("return %s{", r.Name)
			for _, f := range r.Fields {
				if f.InStruct() {
					p.line("%s: v.%s(),", f.Name, f.Name)
				}
			}
			p.line("}")
		})
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
		p.line("f.Fuzz(func(t *testing.T, b []byte) {")
		p.line("var v %s", r.viewName())
		p.block("if err := v.Parse(b); err != nil", func() {
			p.line("requireFieldError(t, err, %q)", r.Name)
			p.line("return")
		})
		p.line("m := %sOf(&v)", lower(r.Name))
		p.line("again := make([]byte, %s)", r.sizeExpr())
		p.block("if _, err := m.Encode(again); err != nil", func() {
			p.line(`t.Fatalf("Encode of what Parse accepted: %%v", err)`)
		})
		cond := "!bytes.Equal(again, v.Bytes())"
		if lazy := r.lazyChecks(); lazy != "" {
			cond = lazy + " && " + cond
		}
		p.block("if "+cond, func() {
			p.line(`t.Fatalf("encoded again:\n%%x\nparsed:\n%%x", again, v.Bytes())`)
		})
		p.line("})")
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
	doc := []string{
		fmt.Sprintf("TestGolden%s encodes and parses the record of testdata/%s.golden.", camel(v.Name), v.Name),
	}
	p.function(doc, fmt.Sprintf("func TestGolden%s(t *testing.T)", camel(v.Name)), func() {
		p.line("m := sample%s()", camel(v.Name))
		p.line("want := readGolden(t, %q)", v.Name)
		p.line("got := make([]byte, %s)", r.sizeExpr())
		p.block("if n, err := m.Encode(got); err != nil || n != len(got)", func() {
			p.line(`t.Fatalf("Encode = %%d, %%v, want %%d", n, err, len(got))`)
		})
		p.block("if !bytes.Equal(got, want)", func() {
			p.line(`t.Fatalf("Encode gives\n%%x\nwant\n%%x", got, want)`)
		})
		p.block("if _, err := m.Encode(got[:len(got)-1]); err == nil", func() {
			p.line(`t.Error("Encode fits into a buffer that is a byte too short")`)
		})
		p.line("var v %s", r.viewName())
		p.line("longer := append(bytes.Clone(want), 0xAA, 0xAA)")
		p.block("if err := v.Parse(longer); err != nil || !bytes.Equal(v.Bytes(), want)", func() {
			p.line(`t.Fatalf("Parse = %%v", err)`)
		})
		for _, x := range v.Values {
			if !x.Reserve && x.Field.Reserve == "" {
				emitFieldComparison(p, x.Field)
			}
		}
		p.block("for n := range want", func() {
			p.block("if err := new("+r.viewName()+").Parse(want[:n:n]); err == nil", func() {
				p.line(`t.Fatalf("Parse accepts %%d of %%d bytes", n, len(want))`)
			})
		})
		p.block("for bit := range 8 * len(want)", func() {
			p.line("longer[bit/8] ^= 1 << (bit %% 8)")
			p.block("if err := new("+r.viewName()+").Parse(longer); err != nil", func() {
				p.line("requireFieldError(t, err, %q)", r.Name)
			})
			p.line("longer[bit/8] ^= 1 << (bit %% 8)")
		})
		p.line("requireNoAllocs(t, func() {")
		p.line("m.Encode(got)")
		p.line("v.Parse(got)")
		p.line("m = %sOf(&v)", lower(r.Name))
		p.line("})")
	})
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

func emitBenchmarks(p *printer, r *Record) {
	v := r.Vectors[0]
	name := title(r.Name)
	p.function([]string{fmt.Sprintf("Benchmark%sEncode encodes the record of testdata/%s.golden.", name, v.Name)},
		fmt.Sprintf("func Benchmark%sEncode(b *testing.B)", name), func() {
			p.line("m := sample%s()", camel(v.Name))
			p.line("dst := make([]byte, %s)", r.sizeExpr())
			p.line("b.ReportAllocs()")
			p.block("for b.Loop()", func() { p.line("m.Encode(dst)") })
		})
	p.function([]string{fmt.Sprintf("Benchmark%sParse parses the record of testdata/%s.golden.", name, v.Name)},
		fmt.Sprintf("func Benchmark%sParse(b *testing.B)", name), func() {
			p.line("src := readGolden(b, %q)", v.Name)
			p.line("var v %s", r.viewName())
			p.line("b.ReportAllocs()")
			p.block("for b.Loop()", func() { p.line("v.Parse(src)") })
		})
}
