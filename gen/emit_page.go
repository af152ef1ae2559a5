package gen

import "fmt"

// emitPage prints what a page needs: its sizes, its slots, the choice of the
// newest one and of the next one to write.
func emitPage(p *printer, g *Page) {
	name, r := g.Name, g.Record
	p.blank()
	p.line("// Constants of %s.", name)
	p.line("const (")
	p.line("// %sSize is the number of bytes of a %s.", name, name)
	p.line("%sSize = %d", name, g.Size)
	p.line("// %sSlots is the number of its slots, %sSlotSize that of the bytes of each.", name, name)
	p.line("%sSlots = %d", name, g.Slots)
	p.line("%sSlotSize = %d", name, g.SlotSize())
	p.line(")")
	p.blank()
	p.doc(g.Doc)
	p.line("//")
	p.line("// It has %d slots of %d bytes, each with a %s. The valid one with the", g.Slots, g.SlotSize(), r.Name)
	p.line("// largest %s holds; a write goes to another slot, so that a torn one spares it.", g.By.Name)
	p.line("type %s struct{ b []byte }", name)
	p.function([]string{fmt.Sprintf("Open%s returns b as a page. The error is a *FieldError if b is too short.", title(name))},
		fmt.Sprintf("func Open%s(b []byte) (%s, error)", title(name), name), func() {
			p.block(fmt.Sprintf("if len(b) < %sSize", name), func() {
				p.line("return %s{}, truncated(%q, len(b), []span{{%q, 0, %sSize}})", name, name, r.Name, name)
			})
			p.line("return %s{b[:%sSize:%sSize]}, nil", name, name, name)
		})
	p.function([]string{"Slot returns the bytes of slot i. It panics if there is none."},
		fmt.Sprintf("func (g %s) Slot(i int) []byte", name), func() {
			p.line("return g.b[i*%sSlotSize : (i+1)*%sSlotSize : (i+1)*%sSlotSize]", name, name, name)
		})
	doc := []string{
		fmt.Sprintf("Newest makes v a view of the valid record with the largest %s and returns its", g.By.Name),
		"slot. Without one the error is that of the first slot with a newer version, else",
		"that of the first slot; v is then as it was.",
	}
	p.function(doc, fmt.Sprintf("func (g %s) Newest(v *%s) (slot int, err error)", name, r.viewName()), func() {
		p.line("slot = -1")
		p.block(fmt.Sprintf("for i := range %sSlots", name), func() {
			p.line("var x %s", r.viewName())
			p.line("wrong := x.Parse(g.Slot(i))")
			p.line("switch {")
			p.line("case wrong == nil && (slot < 0 || x.%s() > v.%s()):", g.By.Name, g.By.Name)
			p.line("*v, slot = x, i")
			p.line("case wrong != nil && (err == nil || !errors.Is(err, ErrNewerVersion) && errors.Is(wrong, ErrNewerVersion)):")
			p.line("err = wrong")
			p.line("}")
		})
		p.block("if slot >= 0", func() { p.line("return slot, nil") })
		p.line("return slot, err")
	})
	p.function([]string{
		"Next returns the slot that the next write goes to: the one behind the newest, or",
		"the first one if none is valid.",
	}, fmt.Sprintf("func (g %s) Next() int", name), func() {
		p.line("var v %s", r.viewName())
		p.line("slot, _ := g.Newest(&v)")
		p.line("return (slot + 1) %% %sSlots", name)
	})
	p.function([]string{
		"Put writes m into slot i and fills the rest of the slot with zeros. The error is",
		"that of Encode; the page is then as it was.",
	}, fmt.Sprintf("func (g %s) Put(i int, m *%s) error", name, r.Name), func() {
		p.line("b := g.Slot(i)")
		p.line("n, err := m.Encode(b)")
		p.block("if err == nil", func() { p.line("clear(b[n:])") })
		p.line("return err")
	})
}
