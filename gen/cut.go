package gen

import (
	"bytes"
	"fmt"
	"strings"
)

// A second reader of the IR, beside the generated one: it cuts the bytes of a
// record by the fields of its layout. The pages take their worked examples from
// it, and the tests hold the generated codecs against it.

// Piece is a field of a record as it stands in some bytes.
type Piece struct {
	Field *Field
	// At is where the field starts, Data where its bytes start behind their
	// length, End where it ends, all counted from the first byte of the record.
	At, Data, End int
	// Num is the value of an integer, of a length or of a count.
	Num Number
	// Bytes are the value of bytes, without what fills them up or ends them.
	Bytes []byte
	// Entries are the entries of a group.
	Entries [][]Piece
}

// cutter walks over the fields of one record.
type cutter struct {
	record *Record
	b      []byte
	pieces []Piece
	nums   map[*Field]Number
	at     int
}

// Cut cuts the record at the front of b, which may be longer unless the record
// goes on to the end, and returns its fields and its size. It looks at what
// tells where fields start and end, and not at whether their values are legal.
func (r *Record) Cut(b []byte) ([]Piece, int, error) {
	c := &cutter{record: r, b: b, nums: map[*Field]Number{}}
	for _, f := range r.Fields {
		if err := c.field(f); err != nil {
			return nil, 0, fmt.Errorf("gen: %s.%s at byte %d: %w", r.Name, f.Name, c.at, err)
		}
	}
	return c.pieces, c.at, nil
}

// take returns the next n bytes.
func (c *cutter) take(n int) ([]byte, error) {
	if n < 0 || n > len(c.b)-c.at {
		return nil, fmt.Errorf("needs %d bytes, %d are left", n, len(c.b)-c.at)
	}
	b := c.b[c.at : c.at+n]
	c.at += n
	return b, nil
}

// number takes an integer.
func (c *cutter) number(t Int) (Number, error) {
	b, err := c.take(t.Bytes)
	if err != nil {
		return Number{}, err
	}
	return t.decode(b)
}

func (c *cutter) field(f *Field) error {
	for _, cond := range f.If {
		if !cond.holds(c.nums[cond.Field]) {
			return nil
		}
	}
	p := Piece{Field: f, At: c.at}
	err := c.value(f, &p)
	p.End = c.at
	c.pieces = append(c.pieces, p)
	if err == nil && f.Kind == KindTotal {
		if p.Num.Neg || p.Num.Abs < uint64(c.at) || p.Num.Abs > uint64(len(c.b)) {
			return fmt.Errorf("the total is %s, %d bytes are there", p.Num, len(c.b))
		}
		c.b = c.b[:p.Num.Abs]
	}
	return err
}

// value takes the bytes of a field that is there.
func (c *cutter) value(f *Field, p *Piece) (err error) {
	if f.IsInt() {
		p.Num, err = c.number(f.Int)
		c.nums[f] = p.Num
		return err
	}
	length, err := c.length(f, p)
	if err != nil {
		return err
	}
	p.Data = c.at
	if f.Kind == KindGroup {
		return c.group(f, p, length)
	}
	if p.Bytes, err = c.take(length); err != nil {
		return err
	}
	switch f.Kind {
	case KindPadBytes:
		for n := len(p.Bytes); n > 0 && p.Bytes[n-1] == f.Pad; n-- {
			p.Bytes = p.Bytes[:n-1]
		}
	case KindUntilBytes:
		_, err = c.take(1)
	}
	return err
}

// length returns the number of bytes, or of entries, of a field; -1 for entries
// up to the end.
func (c *cutter) length(f *Field, p *Piece) (int, error) {
	rest := len(c.b) - c.at - c.record.trailing(f)
	switch {
	case f.SizedBy != nil:
		p.Num = c.nums[f.SizedBy]
	case f.Kind == KindVarBytes || f.Kind == KindGroup && f.Int.Bytes > 0:
		t := f.Int
		if f.Alt != nil && f.AltIf.holds(c.nums[f.AltIf.Field]) {
			t = *f.Alt
		}
		var err error
		if p.Num, err = c.number(t); err != nil {
			return 0, err
		}
	case f.Kind == KindFlagBytes && f.AltIf.holds(c.nums[f.AltIf.Field]):
		return f.AltWidth, nil
	case f.Kind == KindUntilBytes:
		n := bytes.IndexByte(c.b[c.at:], f.Stop)
		if n < 0 {
			return 0, fmt.Errorf("has no byte %#02x, which ends it", f.Stop)
		}
		return n, nil
	case f.Kind == KindRestBytes:
		return rest, nil
	case f.Kind == KindGroup:
		return -1, nil
	default:
		return f.Width, nil
	}
	if p.Num.Neg || p.Num.Abs > uint64(len(c.b)) {
		return 0, fmt.Errorf("the length or count is %s, %d bytes are there", p.Num, len(c.b))
	}
	return int(p.Num.Abs), nil
}

// group takes n entries, or with n = -1 all up to the end.
func (c *cutter) group(f *Field, p *Piece, n int) error {
	end := len(c.b) - c.record.trailing(f)
	for i := 0; n >= 0 && i < n || n < 0 && c.at < end; i++ {
		from := c.b[c.at:]
		if n < 0 {
			from = c.b[c.at:end]
		}
		entry, size, err := f.Entry.Cut(from)
		if err != nil {
			return err
		}
		p.Entries = append(p.Entries, entry)
		c.at += size
	}
	return nil
}

// bits returns the number as an integer of t holds it.
func (t Int) bits(n Number) uint64 {
	x := uint64(n.Int64())
	if t.Bytes < 8 {
		x &= 1<<(8*t.Bytes) - 1
	}
	return x
}

// decode returns the value of an integer that stands in b.
func (t Int) decode(b []byte) (Number, error) {
	if !t.Decimal {
		s := bytes.Clone(b)
		if t.Ordered {
			s[0] ^= 0x80
		}
		n := t.fromBytes(string(s))
		n.Text = n.String()
		return n, nil
	}
	var n Number
	for i := range b {
		c := b[i]
		if t.Reversed {
			c = b[len(b)-1-i]
		}
		d := uint64(c - '0')
		if d > 9 || n.Abs > (1<<32-1-d)/10 {
			return n, fmt.Errorf("%q is no number in decimal digits", b)
		}
		n.Abs = n.Abs*10 + d
	}
	n.Text = n.String()
	return n, nil
}

// holds says whether the condition holds for the value n of its field.
func (c *Cond) holds(n Number) bool {
	value := c.Value
	if c.Mask != nil {
		t := c.Field.Int
		n = Number{Abs: t.bits(n) & t.bits(*c.Mask)}
		value = Number{Abs: t.bits(value)}
	}
	switch c.Op {
	case "==":
		return n.Cmp(value) == 0
	case "!=":
		return n.Cmp(value) != 0
	case ">=":
		return n.Cmp(value) >= 0
	}
	return n.Cmp(value) <= 0
}

// Text returns the value as String of a generated view writes it: integers in
// decimal digits or by name, bytes as hex digits and text in quotes.
func (p Piece) Text() string {
	f := p.Field
	switch {
	case f.Kind == KindReserved:
		return fmt.Sprintf("%q", fmt.Sprintf("%x", make([]byte, f.Width)))
	case f.Kind == KindGroup:
		var list []string
		for _, entry := range p.Entries {
			list = append(list, recordText(f.Entry, entry))
		}
		return "[" + strings.Join(list, ",") + "]"
	case f.IsBytes() && f.Text:
		return quoteJSON(p.Bytes)
	case f.IsBytes():
		return fmt.Sprintf("\"%x\"", p.Bytes)
	}
	return f.numberText(p.Num)
}

// recordText is the text of a whole record.
func recordText(r *Record, pieces []Piece) string {
	var list []string
	for _, p := range pieces {
		if p.Field.Kind != KindReserved {
			list = append(list, p.Field.Name+":"+p.Text())
		}
	}
	return r.Name + "{" + strings.Join(list, " ") + "}"
}

// numberText is the text of the value of an integer field.
func (f *Field) numberText(n Number) string {
	switch {
	case f.Int.Bool:
		return fmt.Sprint(n.Abs == 1)
	case f.Enum != nil && f.Enum.Flags:
		return f.Enum.text(n)
	}
	choices := f.Choices
	if f.Enum != nil {
		choices = f.Enum.Values
	}
	for _, c := range choices {
		if c.Value.Cmp(n) == 0 {
			return c.Name
		}
	}
	return n.String()
}

// text is the text of flags: names joined by "|", 0 for none.
func (e *Enum) text(n Number) string {
	x, left := e.Int.bits(n), e.Int.bits(n)
	var list []string
	for _, c := range e.Values {
		mask := e.Int.bits(c.Value)
		bits := x & mask
		left &^= mask
		if mask&(mask-1) == 0 {
			if bits != 0 {
				list = append(list, c.Name)
			}
			continue
		}
		name := fmt.Sprintf("%#x", bits)
		for _, v := range c.Values {
			if v.Value.Abs == bits {
				name = v.Name
			}
		}
		if bits != 0 {
			list = append(list, c.Name+"="+name)
		}
	}
	if left != 0 {
		list = append(list, fmt.Sprintf("%#x", left))
	}
	if len(list) == 0 {
		return "0"
	}
	return strings.Join(list, "|")
}

// quoteJSON puts text in quotes as the generated code does.
func quoteJSON(text []byte) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range string(text) {
		switch {
		case c == '"' || c == '\\':
			b.WriteString("\\" + string(c))
		case c == '\n':
			b.WriteString("\\n")
		case c < 0x20 || c == 0x7f || c == '\u2028' || c == '\u2029':
			fmt.Fprintf(&b, "\\u%04x", c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
