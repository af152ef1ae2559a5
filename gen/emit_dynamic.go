package gen

import (
	"fmt"
	"strings"
)

// dynamic prints the reading of a length, a count or an end, its bounds, and
// the anchor behind the bytes or entries.
func (e *parseEmitter) dynamic(f *Field) {
	switch {
	case f.Kind == KindUntilBytes:
		e.until(f)
	case f.isRest():
		e.rest(f)
	default:
		e.counted(f)
	}
}

// counted prints the reading of a length or count.
func (e *parseEmitter) counted(f *Field) {
	p := e.p
	n := fmt.Sprintf("n%d", f.End.Anchor)
	switch {
	case f.SizedBy != nil:
		p.line("%s := int(%s)", n, e.read(f.SizedBy))
	case f.maybe():
		p.line("%s := 0", n)
		p.block(fmt.Sprintf("if %s > %s", f.Data.local(), f.At.local()), func() {
			p.line("%s = %s", n, e.readAs(f.Int, f.At))
		})
	default:
		p.line("%s := %s", n, e.readAs(f.Int, f.At))
	}
	if f.Alt != nil {
		p.block("if "+e.r.condExpr(f.AltIf, e.load(f.AltIf.Field)), func() {
			p.line("%s = %s", n, e.readAs(*f.Alt, f.At))
		})
	}
	if f.SizedBy != nil && f.maybe() {
		p.block(fmt.Sprintf("if %s != 0 && !(%s)", n, e.present(f)), func() {
			p.line("return notAbsent(%s)", e.r.where(f))
		})
	}
	left := fmt.Sprintf("len(b)-(%s)", f.Data.local())
	if f.Kind != KindGroup {
		e.lengthBounds(f, n, left, "badLength", fmt.Sprintf("uint(%s) > uint(%s)", n, left))
		p.line("a%d := %s + %s", f.End.Anchor, f.Data.local(), n)
		e.validText(f)
		return
	}
	size := f.Entry.sizeName()
	e.lengthBounds(f, n, left, "badCount", fmt.Sprintf("uint(%s) > uint(%s)/%s", n, left, size))
	if f.Entry.Size > 0 {
		p.line("a%d := %s + %s*%s", f.End.Anchor, f.Data.local(), n, size)
		e.fixedEntries(f, n)
		return
	}
	p.line("a%d := %s", f.End.Anchor, f.Data.local())
	p.block(fmt.Sprintf("for i := range %s", n), func() { e.entry(f, "b[%s:]") })
}

// lengthBounds prints the bounds of a length or count; bad is the condition
// that it is more than what is left.
func (e *parseEmitter) lengthBounds(f *Field, n, left, call, bad string) {
	low, high := "0", "math.MaxInt32"
	conds := []string{}
	if bad != "" {
		conds = append(conds, bad)
	}
	if f.Max != nil {
		high = f.Max.String()
		conds = append(conds, fmt.Sprintf("%s > %s", n, high))
	}
	if f.Min != nil && f.Min.Abs > 0 {
		low = f.Min.String()
		cond := fmt.Sprintf("%s < %s", n, low)
		if f.maybe() {
			cond = fmt.Sprintf("%s && (%s)", cond, e.present(f))
		}
		conds = append(conds, cond)
	}
	if len(conds) == 0 {
		return
	}
	e.p.block("if "+strings.Join(conds, " || "), func() {
		e.p.line("return %s(%s, %s, %s, %s, %s)", call, e.r.where(f), n, low, high, left)
	})
}

// validText prints the check of text without a fixed width.
func (e *parseEmitter) validText(f *Field) {
	if f.UTF8 {
		e.text(e.p, f, f.Data.local(), f.End.local())
	}
}

// until prints the search for the byte that ends the bytes.
func (e *parseEmitter) until(f *Field) {
	p, a, at := e.p, f.End.Anchor, f.At.local()
	n := fmt.Sprintf("n%d", a)
	if f.maybe() {
		p.line("a%d := %s", a, at)
	}
	body := func() {
		p.line("%s := bytes.IndexByte(b[%s:], %#02x)", n, at, f.Stop)
		p.block(fmt.Sprintf("if %s < 0", n), func() { p.line("return noStop(%s, %#02x)", e.r.where(f), f.Stop) })
		e.lengthBounds(f, n, fmt.Sprintf("len(b)-(%s)", at), "badLength", "")
		if f.UTF8 {
			e.text(p, f, at, fmt.Sprintf("%s+%s", at, n))
		}
		assign := "="
		if !f.maybe() {
			assign = ":="
		}
		p.line("a%d %s %s + %s + 1", a, assign, at, n)
	}
	p.when(f.maybe(), "if "+e.present(f), body)
}

// rest prints the reckoning of the end of what goes on to the end.
func (e *parseEmitter) rest(f *Field) {
	p, r, a, at := e.p, e.r, f.End.Anchor, f.At.local()
	end := "len(b)"
	if n := r.trailing(f); n > 0 {
		end = fmt.Sprintf("len(b) - %d", n)
		p.block(fmt.Sprintf("if %s < %s", end, at), func() {
			var spans []string
			for _, x := range r.Fields {
				if x.At.Anchor == a {
					from, to := f.At.add(x.At.Off), f.At.add(x.End.Off)
					spans = append(spans, fmt.Sprintf("{%q, %s, %s}", x.Name, from.local(), to.local()))
				}
			}
			p.line("return truncated(%q, len(b), []span{%s})", r.Name, strings.Join(spans, ", "))
		})
	}
	if !f.maybe() {
		p.line("a%d := %s", a, end)
		e.restContent(f)
		return
	}
	p.line("a%d := %s", a, at)
	p.block("if "+e.present(f), func() {
		p.line("a%d = %s", a, end)
		e.restContent(f)
	})
}

func (e *parseEmitter) restContent(f *Field) {
	p, a, at := e.p, fmt.Sprintf("a%d", f.End.Anchor), f.At.local()
	length := fmt.Sprintf("%s-(%s)", a, at)
	if f.Kind != KindGroup {
		e.lengthBounds(f, length, length, "badLength", "")
		e.validText(f)
		return
	}
	n := fmt.Sprintf("n%d", f.End.Anchor)
	counted := f.Min != nil || f.Max != nil
	if size := f.Entry.Size; size > 0 {
		name := f.Entry.sizeName()
		p.block(fmt.Sprintf("if (%s)%%%s != 0", length, name), func() {
			p.line("return badEntries(%s, %s, %s)", e.r.where(f), length, name)
		})
		if counted || f.Entry.checked() {
			p.line("%s := (%s) / %s", n, length, name)
		}
		if counted {
			e.lengthBounds(f, n, length, "badCount", "")
		}
		e.fixedEntries(f, n)
		return
	}
	limit := fmt.Sprintf("end%d", f.End.Anchor)
	p.line("%s := %s", limit, a)
	p.line("%s = %s", a, at)
	i := "i"
	if counted {
		i = n
	}
	p.line("%s := 0", i)
	p.block(fmt.Sprintf("for ; %s < %s; %s++", a, limit, i), func() {
		p.line("var entry %s", f.Entry.viewName())
		p.block(fmt.Sprintf("if err := entry.Parse(b[%s:%s]); err != nil", a, limit), func() {
			p.line("return inEntry(err, %q, %q, %s, %s)", e.r.Name, f.Name, i, a)
		})
		p.line("%s += len(entry.b)", a)
	})
	if counted {
		e.lengthBounds(f, n, length, "badCount", "")
	}
}

// fixedEntries prints the checks of entries of a fixed size.
func (e *parseEmitter) fixedEntries(f *Field, n string) {
	if !f.Entry.checked() {
		return
	}
	p, size := e.p, f.Entry.sizeName()
	p.block(fmt.Sprintf("for i := range %s", n), func() {
		at := fmt.Sprintf("%s+i*%s", f.Data.local(), size)
		p.line("var entry %s", f.Entry.viewName())
		p.block(fmt.Sprintf("if err := entry.Parse(b[%s:a%d]); err != nil", at, f.End.Anchor), func() {
			p.line("return inEntry(err, %q, %q, i, %s)", e.r.Name, f.Name, at)
		})
	})
}

// entry prints the check of one entry without a fixed size; slice prints the
// bytes that it starts.
func (e *parseEmitter) entry(f *Field, slice string) {
	p, a := e.p, fmt.Sprintf("a%d", f.End.Anchor)
	p.line("var entry %s", f.Entry.viewName())
	p.block(fmt.Sprintf("if err := entry.Parse(%s); err != nil", fmt.Sprintf(slice, a)), func() {
		p.line("return inEntry(err, %q, %q, i, %s)", e.r.Name, f.Name, a)
	})
	p.line("%s += len(entry.b)", a)
}
