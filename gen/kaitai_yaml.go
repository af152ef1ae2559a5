package gen

import (
	"bytes"
	"fmt"
	"strings"
)

// yaml collects lines of YAML.
type yaml struct {
	buf    bytes.Buffer
	indent int
}

// line prints one line.
func (y *yaml) line(layout string, args ...any) {
	y.buf.WriteString(strings.Repeat("  ", y.indent))
	fmt.Fprintf(&y.buf, layout, args...)
	y.buf.WriteByte('\n')
}

// in prints a key and, indented, what belongs to it.
func (y *yaml) in(key string, body func()) {
	y.line("%s:", key)
	y.indent++
	body()
	y.indent--
}

// text prints lines of text under a key, and nothing if there are none.
func (y *yaml) text(key string, lines []string) {
	if len(lines) == 0 {
		return
	}
	y.line("%s: |", key)
	y.indent++
	for i, l := range lines {
		switch {
		case i == 0: // the indentation of the first line is that of the block
			y.line("%s", strings.TrimLeft(l, " \t"))
		case l == "":
			y.buf.WriteByte('\n')
		default:
			y.line("%s", l)
		}
	}
	y.indent--
}

// kaitaiPlain are the characters of expressions that need no quotes.
const kaitaiPlain = "abcdefghijklmnopqrstuvwxyz0123456789_."

// quote puts a string in quotes.
func (y *yaml) quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// attribute is an attribute or an instance of a Kaitai type. Empty fields are
// left out.
type attribute struct {
	id, pos, value, typ, enum, size, encoding string
	contents                                  []byte
	// more are lines as they stand in the file.
	more      []string
	repeat    string
	condition string
	// valid are lines under the key valid.
	valid []string
	doc   []string
}

// print prints the attribute; first is what its first line starts with.
func (a *attribute) print(y *yaml) {
	for _, x := range []struct {
		key, value string
		quoted     bool
	}{{"pos", a.pos, true}, {"value", a.value, true}, {"type", a.typ, false}, {"enum", a.enum, false},
		{"encoding", a.encoding, false}, {"size", a.size, true}} {
		switch {
		case x.value == "":
		case x.quoted && strings.Trim(x.value, kaitaiPlain) != "":
			y.line("%s: %s", x.key, y.quote(x.value))
		default:
			y.line("%s: %s", x.key, x.value)
		}
	}
	if a.contents != nil {
		var list []string
		for _, c := range a.contents {
			list = append(list, fmt.Sprint(c))
		}
		y.line("contents: [%s]", strings.Join(list, ", "))
	}
	for _, l := range a.more {
		y.line("%s", l)
	}
	if a.repeat != "" {
		y.line("repeat: expr")
		y.line("repeat-expr: %s", a.repeat)
	}
	if a.condition != "" {
		y.line("if: %s", y.quote(a.condition))
	}
	if len(a.valid) > 0 {
		y.in("valid", func() {
			for _, l := range a.valid {
				y.line("%s", l)
			}
		})
	}
	y.text("doc", a.doc)
}

// sequence prints attributes under the key seq.
func (y *yaml) sequence(list []*attribute) {
	if len(list) == 0 {
		return
	}
	y.in("seq", func() {
		for _, a := range list {
			y.line("- id: %s", a.id)
			y.indent++
			a.print(y)
			y.indent--
		}
	})
}

// instances prints instances.
func (y *yaml) instances(list []*attribute) {
	if len(list) == 0 {
		return
	}
	y.in("instances", func() {
		for _, a := range list {
			y.in(a.id, func() { a.print(y) })
		}
	})
}
