package gen

import "fmt"

// endsVariable says whether the last field ends at the last anchor.
func (r *Record) endsVariable() bool {
	end := r.End()
	return r.Size == 0 && end.Anchor == r.Anchors && end.Off == 0
}

// storedAnchors is the number of anchors that a view keeps: the end of the
// record is the end of its bytes.
func (r *Record) storedAnchors() int {
	if r.endsVariable() {
		return r.Anchors - 1
	}
	return r.Anchors
}

// inView prints a place over what a view keeps.
func (r *Record) inView(at Pos) string {
	if at.Anchor <= r.storedAnchors() {
		return at.expr("v.a")
	}
	if at.Off == 0 {
		return "len(v.b)"
	}
	return fmt.Sprintf("len(v.b)%+d", at.Off)
}

// viewBase is the expression of the record's bytes in a view.
func (r *Record) viewBase() string {
	if r.Size > 0 {
		return "v.p"
	}
	return "v.b"
}

// slice prints a capped slice of a view from one place to another.
func (r *Record) slice(from, to Pos) string {
	base := r.viewBase()
	if r.endsVariable() && to == r.End() {
		return fmt.Sprintf("%s[%s:]", base, r.inView(from))
	}
	end := r.inView(to)
	return fmt.Sprintf("%s[%s:%s:%s]", base, r.inView(from), end, end)
}

func emitView(p *printer, r *Record) {
	p.blank()
	p.line("// %s reads a %s in place: it aliases the bytes that Parse was given and", r.viewName(), r.Name)
	p.line("// holds while they do. Its accessors may be called after Parse returned nil.")
	p.block("type "+r.viewName()+" struct", func() {
		if r.Size > 0 {
			p.line("p *[%s]byte", r.sizeName())
			return
		}
		p.line("b []byte")
		for a := 1; a <= r.storedAnchors(); a++ {
			p.line("a%d int", a)
		}
	})
	p.function([]string{"Bytes returns the whole record, which aliases the input of Parse."},
		fmt.Sprintf("func (v *%s) Bytes() []byte", r.viewName()), func() {
			if r.Size > 0 {
				p.line("return v.p[:]")
			} else {
				p.line("return v.b")
			}
		})
}

// hasAccessor says whether a view returns the field.
func (f *Field) hasAccessor() bool { return f.Kind != KindReserved && f.Kind != KindConstBytes }

// viewType is the type of the accessor.
func (f *Field) viewType() string {
	if f.Kind == KindGroup {
		return f.Entry.viewsName()
	}
	return f.goType()
}

// viewLoad prints the reading of an integer field in a view.
func (r *Record) viewLoad(f *Field) string { return f.load(r.viewBase(), r.inView) }

func emitAccessors(p *printer, r *Record) {
	for _, f := range r.Fields {
		if f.maybe() && f.Kind != KindReserved {
			p.function([]string{fmt.Sprintf("Has%s says whether the record has %s.", f.Name, f.Name)},
				fmt.Sprintf("func (v *%s) Has%s() bool", r.viewName(), f.Name), func() {
					p.line("return %s", r.condsExpr(f.If, func(x *Field) string { return "v." + x.Name + "()" }))
				})
		}
		if !f.hasAccessor() {
			continue
		}
		doc := []string{fmt.Sprintf("%s returns the field of the same name.", f.Name)}
		if len(f.Doc) > 0 {
			doc = f.Doc
		}
		p.function(doc, fmt.Sprintf("func (v *%s) %s() %s", r.viewName(), f.Name, f.viewType()), func() {
			emitAccess(p, r, f)
		})
		if f.Sum != nil && (f.Sum.Lazy || f.Sum.Given) {
			emitLazyCheck(p, r, f)
		}
	}
}

// emitAccess prints the body of an accessor.
func emitAccess(p *printer, r *Record, f *Field) {
	if f.maybe() && (!f.isDynamic() || f.Kind == KindUntilBytes) {
		p.block(fmt.Sprintf("if %s == %s", r.inView(f.End), r.inView(f.At)), func() { p.line("return %s", f.zero()) })
	}
	switch {
	case f.IsInt():
		p.line("return %s", r.viewLoad(f))
	case f.Kind == KindFixedBytes:
		p.line("return %s(%s[%s:%s])", f.goType(), r.viewBase(), r.inView(f.At), r.inView(f.At.add(f.Width)))
	case f.Kind == KindPadBytes:
		p.line("return trimPad(%s[%s:%s], %#02x)", r.viewBase(), r.inView(f.At), r.inView(f.At.add(f.Width)), f.Pad)
	case f.Kind == KindUntilBytes:
		p.line("return %s", r.slice(f.Data, f.End.add(-1)))
	case f.Kind == KindGroup:
		p.line("return %s{%s}", f.viewType(), r.slice(f.Data, f.End))
	default:
		p.line("return %s", r.slice(f.Data, f.End))
	}
}

func emitLazyCheck(p *printer, r *Record, f *Field) {
	if f.Sum.Given {
		p.function([]string{fmt.Sprintf("Check%s says whether %s fits given, which Parse does not know.", f.Name, f.Name)},
			fmt.Sprintf("func (v *%s) Check%s(given []byte) bool", r.viewName(), f.Name), func() {
				emitAbsentFits(p, f)
				p.line("return v.%s() == %s", f.Name, f.sum("given"))
			})
		return
	}
	doc := []string{
		fmt.Sprintf("Check%s says whether %s fits the bytes that it covers, which", f.Name, f.Name),
		"Parse does not look at.",
	}
	p.function(doc, fmt.Sprintf("func (v *%s) Check%s() bool", r.viewName(), f.Name), func() {
		emitAbsentFits(p, f)
		p.line("return v.%s() == %s", f.Name, f.sum(r.slice(f.Sum.From, f.Sum.To)))
	})
}

// emitAbsentFits prints that a checksum that is not there fits.
func emitAbsentFits(p *printer, f *Field) {
	if f.maybe() {
		p.block(fmt.Sprintf("if !v.Has%s()", f.Name), func() { p.line("return true") })
	}
}

func emitPatches(p *printer, r *Record) {
	for _, f := range r.Fields {
		if !f.Late {
			continue
		}
		doc := []string{
			fmt.Sprintf("Patch%s%s writes %s into rec, an encoded %s.", title(r.Name), f.Name, f.Name, r.Name),
			"It panics if rec is too short to be one.",
		}
		if !f.Int.exact() {
			doc = append(doc, fmt.Sprintf("A value that %d bytes cannot hold is refused with a *FieldError, and rec stays as it", f.Int.Bytes), "is.")
		}
		if r.needsSeal() {
			doc = append(doc, fmt.Sprintf("Seal%s must follow the last patch.", title(r.Name)))
		}
		head := fmt.Sprintf("func Patch%s%s(rec []byte, x %s)", title(r.Name), f.Name, f.Int.GoType())
		if !f.Int.exact() {
			head += " error"
		}
		p.function(doc, head, func() { emitPatch(p, r, f) })
	}
	if r.needsSeal() {
		emitSeal(p, r)
	}
}

func emitPatch(p *printer, r *Record, f *Field) {
	at, end := f.At.local(), f.End.local()
	if f.At.Anchor > 0 {
		emitPatchPlace(p, r, f)
		at, end = "at", fmt.Sprintf("at+%d", f.Width)
	}
	if f.Int.exact() {
		p.line("%s", storeInt(f.Int, "rec", at, end, "x"))
		return
	}
	low, high := f.Int.Min(), f.Int.Max()
	cond := fmt.Sprintf("x > %s", high)
	if f.Int.Signed {
		cond = fmt.Sprintf("x < %s || %s", low, cond)
	}
	p.block("if "+cond, func() { p.line("return outOfRange(%q, %q, %s, x, %s, %s)", r.Name, f.Name, at, low, high) })
	p.line("%s", storeInt(f.Int, "rec", at, end, "x"))
	p.line("return nil")
}

// emitPatchPlace prints the reckoning of the place of a field that stands
// behind others whose widths hang on conditions.
func emitPatchPlace(p *printer, r *Record, f *Field) {
	at := 0
	for _, x := range r.Fields {
		if x == f {
			break
		}
		if !x.maybe() {
			at += x.Width
		}
	}
	p.line("at := %d", at)
	read := func(x *Field) string { return x.load("rec", Pos.local) }
	for _, x := range r.Fields {
		switch {
		case x == f:
			return
		case x.Kind == KindFlagBytes:
			p.block("if "+r.condExpr(x.AltIf, read(x.AltIf.Field)), func() { p.line("at += %d", x.AltWidth-x.Width) })
		case x.maybe():
			p.block("if "+r.condsExpr(x.If, read), func() { p.line("at += %d", x.Width) })
		}
	}
}

// emitSeal prints the function that sets checksums right behind a patch.
func emitSeal(p *printer, r *Record) {
	name := title(r.Name)
	doc := []string{
		fmt.Sprintf("Seal%s sets the checksums of rec, an encoded %s, right after a patch.", name, r.Name),
		"The error is that of Parse; it does not look at checksums.",
	}
	p.function(doc, fmt.Sprintf("func Seal%s(rec []byte) error", name), func() {
		p.line("var v %s", r.viewName())
		p.block("if err := v.parse(rec, false); err != nil", func() { p.line("return err") })
		for _, f := range r.Fields {
			if f.Kind != KindChecksum || f.Sum.Given {
				continue
			}
			p.when(f.maybe(), fmt.Sprintf("if %s > %s", r.inView(f.End), r.inView(f.At)), func() {
				p.line("%s", storeInt(f.Int, r.viewBase(), r.inView(f.At), r.inView(f.At.add(f.Int.Bytes)),
					f.sum(r.slice(f.Sum.From, f.Sum.To))))
			})
		}
		p.line("return nil")
	})
}

// emitViews prints the list of the entries of a group.
func emitViews(p *printer, r *Record) {
	view, views := r.viewName(), r.viewsName()
	p.blank()
	p.line("// %s is a list of %s in a record.", views, r.Name)
	p.line("type %s struct{ b []byte }", views)
	doc := []string{"All yields the entries with their numbers."}
	head := fmt.Sprintf("func (l %s) All() iter.Seq2[int, %s]", views, view)
	if r.Size > 0 {
		p.function([]string{"Len returns the number of entries."}, fmt.Sprintf("func (l %s) Len() int", views), func() {
			p.line("return len(l.b) / %s", r.sizeName())
		})
		p.function([]string{"At returns entry i. It panics if there is none."},
			fmt.Sprintf("func (l %s) At(i int) %s", views, view), func() {
				p.line("return %s{(*[%s]byte)(l.b[i*%s:])}", view, r.sizeName(), r.sizeName())
			})
		p.function(doc, head, func() {
			p.line("return func(yield func(int, %s) bool) {", view)
			p.line("for i := 0; i < l.Len() && yield(i, l.At(i)); i++ {")
			p.line("}")
			p.line("}")
		})
		return
	}
	p.function([]string{"Len returns the number of entries. It reads them all."}, fmt.Sprintf("func (l %s) Len() int", views), func() {
		p.line("n := 0")
		p.line("for range l.All() {")
		p.line("n++")
		p.line("}")
		p.line("return n")
	})
	p.function(doc, head, func() {
		p.line("return func(yield func(int, %s) bool) {", view)
		p.line("var v %s", view)
		p.line("for i, b := 0, l.b; len(b) > 0 && v.Parse(b) == nil && yield(i, v); i++ {")
		p.line("b = b[len(v.b):]")
		p.line("}")
		p.line("}")
	})
}
