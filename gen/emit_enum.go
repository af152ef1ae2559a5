package gen

import (
	"fmt"
	"strings"
)

func emitEnum(p *printer, e *Enum) {
	p.blank()
	p.doc(e.Doc)
	p.line("type %s %s", e.Name, e.Int.GoType())
	p.blank()
	p.line("// Values of %s.", e.Name)
	p.line("const (")
	for _, c := range e.Values {
		emitChoice(p, c, e.Name+c.Name, e.Name, e.Name)
		for _, x := range c.Values {
			emitChoice(p, x, e.Name+c.Name+x.Name, e.Name, e.Name+c.Name)
		}
	}
	p.line(")")
	if e.Flags {
		emitFlagMethods(p, e)
		return
	}
	p.function([]string{"Known says whether x is one of the values."}, fmt.Sprintf("func (x %s) Known() bool", e.Name), func() {
		var names []string
		for _, c := range e.Values {
			names = append(names, e.Name+c.Name)
		}
		p.block("switch x", func() {
			p.line("case %s:", strings.Join(names, ", "))
			p.line("return true")
		})
		p.line("return false")
	})
	p.function([]string{"String returns the name of the value, or its number."},
		fmt.Sprintf("func (x %s) String() string", e.Name), func() {
			p.block("switch x", func() {
				for _, c := range e.Values {
					p.line("case %s:", e.Name+c.Name)
					p.line("return %q", c.Name)
				}
			})
			if e.Int.Signed {
				p.line("return strconv.FormatInt(int64(x), 10)")
			} else {
				p.line("return strconv.FormatUint(uint64(x), 10)")
			}
		})
}

func emitFlagMethods(p *printer, e *Enum) {
	p.function([]string{"Known says whether x has no other bits than those of the values, and under each",
		"mask one of the values there."}, fmt.Sprintf("func (x %s) Known() bool", e.Name), func() {
		for _, c := range e.Values {
			if len(c.Values) == 0 {
				continue
			}
			names := []string{"0"}
			for _, x := range c.Values {
				if x.Value.Abs != 0 {
					names = append(names, e.Name+c.Name+x.Name)
				}
			}
			p.block(fmt.Sprintf("switch x & %s", e.Name+c.Name), func() {
				p.line("case %s:", strings.Join(names, ", "))
				p.line("default:")
				p.line("return false")
			})
		}
		p.line("return x&^%#x == 0", e.Mask())
	})
	p.function([]string{"String returns the names of the flags, joined by \"|\", and \"0\" for none."},
		fmt.Sprintf("func (x %s) String() string", e.Name), func() {
			p.line("return string(x.appendText(nil))")
		})
	p.function([]string{"appendText appends what String returns."},
		fmt.Sprintf("func (x %s) appendText(dst []byte) []byte", e.Name), func() {
			p.line("start := len(dst)")
			for _, c := range e.Values {
				emitFlagText(p, e, c)
			}
			p.block(fmt.Sprintf("if rest := x &^ %#x; rest != 0", e.Mask()), func() {
				p.line(`dst = appendFlag(dst, start, "0x")`)
				p.line("dst = strconv.AppendUint(dst, uint64(uint%d(rest)), 16)", e.Int.goBits())
			})
			p.block("if len(dst) == start", func() { p.line("dst = append(dst, '0')") })
			p.line("return dst")
		})
}

func emitFlagText(p *printer, e *Enum, c *Choice) {
	name := e.Name + c.Name
	if c.Value.Abs&(c.Value.Abs-1) == 0 {
		p.block(fmt.Sprintf("if x&%s != 0", name), func() { p.line("dst = appendFlag(dst, start, %q)", c.Name) })
		return
	}
	p.block(fmt.Sprintf("switch bits := x & %s; bits", name), func() {
		zero := false
		for _, v := range c.Values {
			p.line("case %s:", name+v.Name)
			zero = zero || v.Value.Abs == 0
			if v.Value.Abs != 0 {
				p.line("dst = appendFlag(dst, start, %q)", c.Name+"="+v.Name)
			}
		}
		if !zero {
			p.line("case 0:")
		}
		p.line("default:")
		p.line("dst = appendFlag(dst, start, %q)", c.Name+"=0x")
		p.line("dst = strconv.AppendUint(dst, uint64(bits), 16)")
	})
}
