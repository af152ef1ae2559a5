package dump

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/stratalog/stratalog/codec"
)

const (
	// rowBytes is how many bytes stand in a row.
	rowBytes = 16
	// fieldRows is how many rows of a field are printed, unless all are.
	fieldRows = 4
	// valueWidth is how much of a value is printed, in bytes.
	valueWidth = 80
)

// Text is a Sink that prints for people: per record a heading, then the bytes
// of each field in hex with the field's name and value.
type Text struct {
	// All prints all bytes of long fields.
	All bool

	w     *bufio.Writer
	width int
}

// NewText returns a Text that writes to w. size is the length of the file.
func NewText(w io.Writer, size int64) *Text {
	return &Text{w: bufio.NewWriter(w), width: max(6, len(strconv.FormatInt(size, 10)))}
}

// Flush writes what is buffered.
func (t *Text) Flush() error { return t.w.Flush() }

// Heading prints one line.
func (t *Text) Heading(line string) error {
	_, err := fmt.Fprintln(t.w, line)
	return err
}

// Record prints a record.
func (t *Text) Record(r *Record) error {
	fmt.Fprintf(t.w, "%d: %s, %d bytes", r.Offset, r.Name, len(r.View.Bytes()))
	for _, n := range r.Notes {
		fmt.Fprintf(t.w, ", %s %v", strings.ReplaceAll(n.Name, "_", " "), n.Value)
	}
	t.w.WriteByte('\n')
	t.fields(r.View, r.Offset)
	return t.w.WriteByte('\n')
}

// Finding prints a finding, and the record or the bytes that it is about.
func (t *Text) Finding(f *Finding) error {
	fmt.Fprintf(t.w, "%d: FINDING, %d bytes: %s\n", f.Offset, f.End-f.Offset, f.what())
	if f.View != nil {
		t.fields(f.View, f.Offset)
	} else {
		t.rows(f.Bytes, f.Offset, "", false)
		if rest := f.End - f.Offset - int64(len(f.Bytes)); rest > 0 {
			fmt.Fprintf(t.w, "  %*s  ... %d bytes more\n", t.width, "", rest)
		}
	}
	return t.w.WriteByte('\n')
}

// Skipped prints one line.
func (t *Text) Skipped(s *Skipped) error {
	switch {
	case s.Text != nil:
		fmt.Fprintf(t.w, "%d: text, %d bytes\n", s.Offset, s.End-s.Offset)
		for line := range strings.Lines(string(s.Text)) {
			fmt.Fprintf(t.w, "  %s\n", plain([]byte(strings.TrimRight(line, "\r\n"))))
		}
	case s.Zeros:
		fmt.Fprintf(t.w, "%d: zeros from %d to %d", s.Offset, s.Offset, s.End)
		if s.Why != "" {
			fmt.Fprintf(t.w, ", %s", s.Why)
		}
		t.w.WriteByte('\n')
	default:
		fmt.Fprintf(t.w, "%d: %d bytes: %s\n", s.Offset, s.End-s.Offset, s.Why)
	}
	return t.w.WriteByte('\n')
}

// fields prints the fields of a record that starts at off.
func (t *Text) fields(v codec.Describer, off int64) {
	b := v.Bytes()
	var group codec.FieldInfo // waits for its first entry
	flush := func() {
		if group.Name != "" {
			t.field(group, b, off)
		}
		group.Name = ""
	}
	v.Describe(func(f codec.FieldInfo) bool {
		if group.Name != "" && strings.HasPrefix(f.Name, group.Name+"[") {
			group.Name = "" // its entries are printed instead
		}
		flush()
		if strings.HasPrefix(f.Value, "[") {
			group = f
			return true
		}
		t.field(f, b, off)
		return true
	})
	flush()
}

// field prints the rows of one field.
func (t *Text) field(f codec.FieldInfo, record []byte, off int64) {
	b := record[f.Offset:][:f.Size]
	value := f.Value
	d, ok := decode(f, b)
	switch data, isBytes := content(f, b); {
	case ok && times[f.Name[strings.LastIndexByte(f.Name, '.')+1:]]:
		value += " " + d.text
	case ok && (hosts[f.Name] || d.pairs != nil):
		value = d.text
	case ok:
		value = strconv.Quote(cut(d.text))
	case isBytes:
		value = fmt.Sprintf("%d bytes", len(data))
	}
	if len(value) > valueWidth {
		value = cut(value) + "..."
	}
	t.rows(b, off+int64(f.Offset), f.Name+" = "+value, t.All)
}

// rows prints bytes that stand at off; label stands in the first row.
func (t *Text) rows(b []byte, off int64, label string, all bool) {
	for i := 0; i == 0 || i < len(b); i += rowBytes {
		if i == fieldRows*rowBytes && !all {
			fmt.Fprintf(t.w, "  %*s  ... %d bytes more\n", t.width, "", len(b)-i)
			return
		}
		row := b[i:min(i+rowBytes, len(b))]
		line := fmt.Sprintf("  %*d  % -*x  %s", t.width, off+int64(i), 3*rowBytes-1, row, label)
		if i > 0 || label == "" {
			line = fmt.Sprintf("  %*d  % -*x  |%s|", t.width, off+int64(i), 3*rowBytes-1, row, ascii(row))
		}
		t.w.WriteString(strings.TrimRight(line, " "))
		t.w.WriteByte('\n')
	}
}

// ascii is b with a dot for each byte that does not print.
func ascii(b []byte) string {
	out := make([]byte, len(b))
	for i, c := range b {
		if out[i] = c; c < ' ' || c > '~' {
			out[i] = '.'
		}
	}
	return string(out)
}

// cut returns the part of text that is printed.
func cut(text string) string {
	if len(text) <= valueWidth {
		return text
	}
	return strings.ToValidUTF8(text[:valueWidth], "")
}
