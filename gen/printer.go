package gen

import (
	"bytes"
	"fmt"
	"go/format"
)

// printer collects Go source. It only knows lines and comments; what the
// lines say is the emitters' affair, and go/format does the layout.
type printer struct {
	buf bytes.Buffer
}

// line prints one line.
func (p *printer) line(layout string, args ...any) {
	fmt.Fprintf(&p.buf, layout, args...)
	p.buf.WriteByte('\n')
}

// blank prints an empty line.
func (p *printer) blank() { p.buf.WriteByte('\n') }

// doc prints lines as a comment.
func (p *printer) doc(lines []string) {
	for _, l := range lines {
		if l == "" {
			p.line("//")
			continue
		}
		p.line("// %s", l)
	}
}

// block prints head, an opening brace, the body and the closing brace.
func (p *printer) block(head string, body func()) {
	p.line("%s {", head)
	body()
	p.line("}")
}

// function prints a function with an empty line before it.
func (p *printer) function(doc []string, head string, body func()) {
	p.blank()
	p.doc(doc)
	p.block(head, body)
}

// source returns the formatted source.
func (p *printer) source() ([]byte, error) {
	out, err := format.Source(p.buf.Bytes())
	if err != nil {
		return nil, fmt.Errorf("gen: the emitters made no valid Go (a bug of gen): %w", err)
	}
	return out, nil
}

// when prints body in a block with head if cond holds, else body alone.
func (p *printer) when(cond bool, head string, body func()) {
	if cond {
		p.block(head, body)
		return
	}
	body()
}
