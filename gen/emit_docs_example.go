package gen

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// exampleLine is a part of an example: some bytes and what they are.
type exampleLine struct {
	at    int
	bytes []byte
	what  string
}

// example prints the bytes of a vector, cut by field.
func (p *page) example(r *Record, v *Vector) error {
	text, err := p.golden(v.Name)
	if err != nil {
		return err
	}
	b, err := readHex(text)
	if err != nil {
		return fmt.Errorf("gen: vector %s: %w", v.Name, err)
	}
	pieces, size, err := r.Cut(b)
	if err != nil {
		return err
	}
	if size != len(b) {
		return fmt.Errorf("gen: vector %s has %d bytes, the record %d", v.Name, len(b), size)
	}
	p.line("### Example %s\n", v.Name)
	p.paragraphs(v.Doc)
	if v.Given != nil {
		p.line("The bytes that are not in the record: `%x`.\n", v.Given)
	}
	lines := exampleLines(nil, "", 0, b, pieces)
	width := 0
	for _, l := range lines {
		width = max(width, min(len(l.bytes), 16))
	}
	p.line("```")
	for _, l := range lines {
		what := l.what
		for i := 0; i == 0 || i < len(l.bytes); i += 16 {
			part := l.bytes[i:min(i+16, len(l.bytes))]
			p.line("%s", strings.TrimRight(fmt.Sprintf("%04x  %-*s  %s", l.at+i, 3*width-1, fmt.Sprintf("% x", part), what), " "))
			what = ""
		}
	}
	p.line("```\n")
	return nil
}

// readHex reads hex digits with blanks anywhere and comments behind '#'.
func readHex(text string) ([]byte, error) {
	var digits strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	return hex.DecodeString(digits.String())
}

// exampleLines appends the lines of pieces, which start at byte base of b.
func exampleLines(lines []exampleLine, prefix string, base int, b []byte, pieces []Piece) []exampleLine {
	add := func(from, to int, format string, args ...any) {
		if from < to {
			lines = append(lines, exampleLine{base + from, b[base+from : base+to], fmt.Sprintf(format, args...)})
		}
	}
	for _, x := range pieces {
		name := prefix + x.Field.Name
		switch {
		case x.Field.IsInt():
			add(x.At, x.End, "%s = %s", name, x.exampleNumber())
		case x.Field.Kind == KindGroup:
			add(x.At, x.Data, "count of %s = %s", name, x.Num)
			at := base + x.Data
			for i, entry := range x.Entries {
				lines = exampleLines(lines, fmt.Sprintf("%s[%d].", name, i), at, b, entry)
				at += entry[len(entry)-1].End
			}
		case x.Field.Kind == KindReserved:
			add(x.At, x.End, "%sreserved", prefix)
		default:
			end := x.End
			if x.Field.Kind == KindUntilBytes {
				end--
			}
			add(x.At, x.Data, "length of %s = %s", name, x.Num)
			add(x.Data, end, "%s%s", name, exampleBytes(x.Bytes))
			add(end, x.End, "end of %s", name)
		}
	}
	return lines
}

// exampleNumber is the value of an integer, named and in digits.
func (p Piece) exampleNumber() string {
	text, digits := p.Text(), p.Num.String()
	if p.Field.Kind == KindMagic || p.Field.Kind == KindChecksum || p.Field.Enum != nil && p.Field.Enum.Flags {
		digits = fmt.Sprintf("%#x", p.Field.Int.bits(p.Num))
	}
	switch {
	case p.Field.Kind == KindMagic && text == p.Num.String(), p.Field.Kind == KindChecksum, text == digits, text == "0":
		return digits
	case p.Field.Int.Bool:
		return text
	}
	return fmt.Sprintf("%s (%s)", text, digits)
}

// exampleBytes is " = " and bytes as a string if most of them are characters.
func exampleBytes(b []byte) string {
	readable := 0
	for _, c := range b {
		if c >= 0x20 && c < 0x7f {
			readable++
		}
	}
	if readable*2 < len(b) {
		return ""
	}
	return " = " + strconv.Quote(string(b))
}
