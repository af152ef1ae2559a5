package dump

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"

	"github.com/stratalog/stratalog/codec"
)

// JSON is a Sink that prints one object per line, each with a "kind": record,
// finding, zeros, bytes or text.
type JSON struct {
	// Fields adds the place and the size of each field, Hex the bytes.
	Fields, Hex bool

	w   *bufio.Writer
	buf bytes.Buffer
	enc *json.Encoder
	err error
}

// NewJSON returns a JSON that writes to w.
func NewJSON(w io.Writer) *JSON {
	j := &JSON{w: bufio.NewWriter(w)}
	j.enc = json.NewEncoder(&j.buf)
	j.enc.SetEscapeHTML(false)
	return j
}

// Flush writes what is buffered.
func (j *JSON) Flush() error { return j.w.Flush() }

// jsonField is a field of a record.
type jsonField struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset"`
	Size   int    `json:"size"`
	Value  string `json:"value"`
}

// begin starts an object.
func (j *JSON) begin(kind string) {
	j.buf.Reset()
	j.err = nil
	j.buf.WriteByte('{')
	j.member("kind", kind)
}

// member adds a member to the object.
func (j *JSON) member(name string, value any) {
	if j.buf.Len() > 1 {
		j.buf.WriteByte(',')
	}
	for i, x := range []any{name, value} {
		if err := j.enc.Encode(x); err != nil && j.err == nil {
			j.err = err
		}
		j.buf.Truncate(max(1, j.buf.Len()-1)) // the line's end
		if i == 0 {
			j.buf.WriteByte(':')
		}
	}
}

// end writes the object.
func (j *JSON) end() error {
	if j.err != nil {
		return j.err
	}
	j.buf.WriteString("}\n")
	_, err := j.w.Write(j.buf.Bytes())
	return err
}

// Record prints a record.
func (j *JSON) Record(r *Record) error {
	j.begin("record")
	j.member("record", r.Name)
	j.member("offset", r.Offset)
	j.member("size", len(r.View.Bytes()))
	for _, n := range r.Notes {
		j.member(n.Name, n.Value)
	}
	j.view(r.View, r.Offset)
	return j.end()
}

// view adds what a record holds.
func (j *JSON) view(v codec.Describer, off int64) {
	b := v.Bytes()
	j.member("value", json.RawMessage(v.AppendJSON(nil)))
	means := map[string]any{}
	fields := []jsonField{}
	v.Describe(func(f codec.FieldInfo) bool {
		if d, ok := decode(f, b[f.Offset:][:f.Size]); ok {
			means[f.Name] = d.text
			if d.pairs != nil {
				properties := map[string]string{}
				for _, p := range d.pairs {
					properties[p.name] = p.value
				}
				means[f.Name] = properties
			}
		}
		if j.Fields {
			fields = append(fields, jsonField{f.Name, off + int64(f.Offset), f.Size, f.Value})
		}
		return true
	})
	if len(means) > 0 {
		j.member("decoded", means)
	}
	if j.Fields {
		j.member("fields", fields)
	}
	if j.Hex {
		j.member("hex", hex.EncodeToString(b))
	}
}

// Finding prints a finding.
func (j *JSON) Finding(f *Finding) error {
	j.begin("finding")
	j.member("file", f.File)
	j.member("offset", f.Offset)
	j.member("end", f.End)
	if f.Record != "" {
		j.member("record", f.Record)
	}
	if f.Field != "" {
		j.member("field", f.Field)
		j.member("field_offset", f.FieldOffset)
	}
	j.member("reason", f.Reason)
	if f.View != nil {
		j.view(f.View, f.Offset)
	} else {
		j.member("first_bytes", hex.EncodeToString(f.Bytes))
	}
	return j.end()
}

// Skipped prints what holds no record.
func (j *JSON) Skipped(s *Skipped) error {
	switch {
	case s.Text != nil:
		j.begin("text")
	case s.Zeros:
		j.begin("zeros")
	default:
		j.begin("bytes")
	}
	j.member("offset", s.Offset)
	j.member("end", s.End)
	if s.Text != nil {
		j.member("text", string(s.Text))
	} else if s.Why != "" {
		j.member("reason", s.Why)
	}
	return j.end()
}
