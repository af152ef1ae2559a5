package gen

import (
	"strings"
)

// Format returns a schema in its standard form: one tab for each open brace, one
// blank between words, at most one empty line in a row, and the "=" of
// neighbouring lines below one another. Line ends and comments stay where they
// are. A byte order mark goes. The error is an *Error or Errors if src is no schema.
func Format(file, src string) (string, error) {
	p := newParser(file, src)
	p.file()
	if err := errorOf(p.told.sorted()); err != nil {
		return "", err
	}
	f := &formatter{}
	var line []token
	for _, t := range p.tokens {
		if t.kind != tokenNewline && t.kind != tokenEOF {
			line = append(line, t)
			continue
		}
		f.line(line)
		line = nil
	}
	f.align()
	return strings.Join(f.lines, "\n") + "\n", nil
}

// formatter collects the lines of a schema.
type formatter struct {
	lines []string
	depth int
	// blank says that an empty line is due before the next one.
	blank bool
	// run holds lines of the form NAME = VALUE that follow one another; they are
	// added when the run ends.
	run [][2]string
}

// line adds one line.
func (f *formatter) line(tokens []token) {
	if len(tokens) == 0 {
		f.blank = len(f.lines)+len(f.run) > 0
		return
	}
	closes := tokens[0].kind == tokenPunct && tokens[0].text == "}"
	if f.blank && !closes && !f.opened() {
		f.align()
		f.lines = append(f.lines, "")
	}
	f.blank = false
	depth := f.depth
	if closes {
		depth--
	}
	for _, t := range tokens {
		if t.kind == tokenPunct && t.text == "{" {
			f.depth++
		}
		if t.kind == tokenPunct && t.text == "}" {
			f.depth--
		}
	}
	indent := strings.Repeat("\t", max(depth, 0))
	if len(tokens) > 2 && tokens[1].raw == "=" && f.depth == depth {
		f.run = append(f.run, [2]string{indent + tokens[0].raw, join(tokens[1:])})
		return
	}
	f.align()
	f.lines = append(f.lines, indent+join(tokens))
}

// opened says whether the last line ends with an opening brace.
func (f *formatter) opened() bool {
	return len(f.run) == 0 && len(f.lines) > 0 && strings.HasSuffix(f.lines[len(f.lines)-1], "{")
}

// align adds the lines of the run.
func (f *formatter) align() {
	width := 0
	for _, l := range f.run {
		width = max(width, len(l[0]))
	}
	for _, l := range f.run {
		f.lines = append(f.lines, l[0]+strings.Repeat(" ", width-len(l[0]))+" "+l[1])
	}
	f.run = nil
}

// join returns the tokens with the blanks that stand between them.
func join(tokens []token) string {
	var b strings.Builder
	for i, t := range tokens {
		if i > 0 && spaced(tokens[i-1], t) {
			b.WriteByte(' ')
		}
		b.WriteString(t.raw)
	}
	return b.String()
}

// spaced says whether a blank stands between two tokens.
func spaced(a, b token) bool {
	if b.kind == tokenPunct && strings.Contains(",][..", b.text) {
		return false
	}
	return a.kind != tokenPunct || a.text != "[" && a.text != ".." && !(a.text == "{" && b.text == "}")
}
