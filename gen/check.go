package gen

import (
	"fmt"
	gotoken "go/token"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// checker turns a syntax tree into records whose places are decided.
type checker struct {
	file   string
	record *Record
	// byName holds the fields of the record that were checked so far.
	byName map[string]*Field
	// at is the end of those fields.
	at Pos
}

func (c *checker) fail(at place, format string, args ...any) error {
	return &Error{File: c.file, Line: at.line, Col: at.col, Msg: fmt.Sprintf(format, args...)}
}

// checkFile checks a whole schema.
func checkFile(file string, tree *syntaxFile) (*File, error) {
	out := &File{Doc: tree.doc, Source: file, Package: tree.pkg}
	byName := map[string]*Record{}
	for _, r := range tree.records {
		c := &checker{file: file, byName: map[string]*Field{}}
		if byName[r.name] != nil {
			return nil, c.fail(r.at, "record %q is declared twice", r.name)
		}
		rec, err := c.checkRecord(r)
		if err != nil {
			return nil, err
		}
		byName[r.name] = rec
		out.Records = append(out.Records, rec)
	}
	vectors := map[string]bool{}
	for _, v := range tree.vectors {
		c := &checker{file: file}
		rec := byName[v.record.text]
		if rec == nil {
			return nil, c.fail(v.record.at, "expected a record of this file, found %q", v.record.text)
		}
		if vectors[v.name.text] {
			return nil, c.fail(v.name.at, "vector %q is declared twice", v.name.text)
		}
		vectors[v.name.text] = true
		if err := c.checkVector(rec, v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *checker) checkRecord(r *syntaxRecord) (*Record, error) {
	c.record = &Record{Doc: r.doc, Name: r.name}
	if gotoken.IsKeyword(r.name) {
		return nil, c.fail(r.at, "expected a record name that is no word of Go, found %q", r.name)
	}
	if len(r.doc) == 0 {
		return nil, c.fail(r.at, "record %q needs a comment above it", r.name)
	}
	for _, f := range r.fields {
		field, err := c.checkField(f)
		if err != nil {
			return nil, err
		}
		c.record.Fields = append(c.record.Fields, field)
		if field.Kind != KindReserved {
			c.byName[field.Name] = field
		}
	}
	if len(r.fields) == 0 {
		return nil, c.fail(r.at, "record %q has no fields", r.name)
	}
	if err := c.resolveSums(r); err != nil {
		return nil, err
	}
	if c.at.Anchor == 0 {
		c.record.Size = c.at.Off
	} else if c.record.Total == nil {
		return nil, c.fail(r.at, "record %q has no fixed size, so it needs a total field", r.name)
	} else if clash := c.byName["Size"]; clash != nil {
		return nil, c.fail(r.at, "a field of a record without a fixed size must not be called Size")
	}
	return c.record, nil
}

// methodNames are taken by methods of every view.
var methodNames = map[string]bool{"Bytes": true, "Parse": true, "Encode": true}

func (c *checker) checkField(f *syntaxField) (*Field, error) {
	out := &Field{Doc: f.doc, Name: f.name.text, Late: f.late, Int: intTypes[f.typ.text], At: c.at}
	if f.role.text != "reserved" {
		first, _ := utf8.DecodeRuneInString(out.Name)
		switch {
		case !unicode.IsUpper(first):
			return nil, c.fail(f.name.at, "expected a field name that starts with an upper-case letter, found %q",
				out.Name)
		case methodNames[out.Name]:
			return nil, c.fail(f.name.at, "a field must not be called %s, since every view has that method", out.Name)
		case c.byName[out.Name] != nil:
			return nil, c.fail(f.name.at, "field %q is declared twice", out.Name)
		}
	}
	if err := c.decideKind(f, out); err != nil {
		return nil, err
	}
	if err := c.checkOptions(f, out); err != nil {
		return nil, err
	}
	c.at = out.End
	return out, nil
}

// decideKind sets the kind of a field, its width and its places.
func (c *checker) decideKind(f *syntaxField, out *Field) error {
	switch {
	case f.role.text == "reserved":
		out.Kind = KindReserved
		return c.fixed(f.width, out)
	case f.width != nil && f.width.cond:
		return c.flagBytes(f.width, out)
	case f.width != nil:
		out.Kind = KindFixedBytes
		return c.fixed(f.width, out)
	case f.prefix != nil:
		return c.varBytes(f.prefix, out)
	}
	out.Width = out.Int.bytes
	out.Data, out.End = c.at, c.at.add(out.Width)
	c.record.MinSize += out.Width
	switch f.role.text {
	case "total":
		return c.total(f, out)
	case "magic":
		return c.magic(f, out)
	case "version":
		return c.version(f, out)
	case "checksum":
		return c.checksum(f, out)
	}
	return nil
}

func (c *checker) fixed(w *syntaxWidth, out *Field) error {
	if w.base.value < 1 || w.base.value > 4096 {
		return c.fail(w.base.at, "expected a width from 1 to 4096, found %s", w.base.text)
	}
	out.Width = int(w.base.value)
	out.Data, out.End = c.at, c.at.add(out.Width)
	c.record.MinSize += out.Width
	return nil
}

// nextAnchor returns the place behind bytes whose width is not fixed.
func (c *checker) nextAnchor() Pos {
	c.record.Anchors++
	return Pos{Anchor: c.record.Anchors}
}

func (c *checker) flagBytes(w *syntaxWidth, out *Field) error {
	out.Kind = KindFlagBytes
	if w.base.value < 1 || w.alt.value <= w.base.value || w.alt.value > 4096 {
		return c.fail(w.base.at, "expected two widths from 1 to 4096, the smaller one first")
	}
	flag := c.byName[w.flag.text]
	if flag == nil || !flag.isScalar() || flag.At.Anchor != 0 {
		return c.fail(w.flag.at, "expected an integer field at a fixed place before this one, found %q", w.flag.text)
	}
	out.Width, out.AltWidth = int(w.base.value), int(w.alt.value)
	out.Flag, out.Mask = flag, w.mask.text
	out.Data, out.End = c.at, c.nextAnchor()
	c.record.MinSize += out.Width
	return nil
}

// prefixTypes may hold a length.
var prefixTypes = map[string]bool{"i8": true, "u8": true, "i16": true, "u16": true, "i32": true, "u32": true}

func (c *checker) varBytes(x *syntaxPrefix, out *Field) error {
	out.Kind = KindVarBytes
	if !prefixTypes[x.base.text] {
		return c.fail(x.base.at, "expected a length type of at most 32 bits, found %q", x.base.text)
	}
	out.Int = intTypes[x.base.text]
	out.Data = c.at.add(out.Int.bytes)
	c.record.MinSize += out.Int.bytes
	if x.cond {
		if !prefixTypes[x.alt.text] {
			return c.fail(x.alt.at, "expected a length type of at most 32 bits, found %q", x.alt.text)
		}
		alt := intTypes[x.alt.text]
		if alt.bytes < out.Int.bytes {
			return c.fail(x.alt.at, "expected a length type at least as wide as %s, found %q", x.base.text, x.alt.text)
		}
		if c.record.Magic == nil || c.record.Magic.Name != x.magic.text {
			return c.fail(x.magic.at, "expected the magic field of this record, found %q", x.magic.text)
		}
		for i := range c.record.Magic.Choices {
			if c.record.Magic.Choices[i].Name == x.choice.text {
				out.Choice = &c.record.Magic.Choices[i]
			}
		}
		if out.Choice == nil {
			return c.fail(x.choice.at, "expected a value of %s, found %q", x.magic.text, x.choice.text)
		}
		out.Alt = &alt
		out.Data = c.nextAnchor()
	}
	out.End = c.nextAnchor()
	return nil
}

func (c *checker) total(f *syntaxField, out *Field) error {
	out.Kind = KindTotal
	if c.record.Total != nil {
		return c.fail(f.role.at, "a record has one total field at most")
	}
	if c.at.Anchor != 0 {
		return c.fail(f.role.at, "expected the total field before the first field without a fixed width")
	}
	if out.Int.bytes != 4 {
		return c.fail(f.typ.at, "expected i32 or u32, found %q", f.typ.text)
	}
	c.record.Total = out
	return nil
}

func (c *checker) magic(f *syntaxField, out *Field) error {
	out.Kind = KindMagic
	switch {
	case c.record.Magic != nil:
		return c.fail(f.role.at, "a record has one magic field at most")
	case c.at.Anchor != 0:
		return c.fail(f.role.at, "expected the magic field before the first field without a fixed width")
	case out.Int.bytes != 4 || out.Int.signed:
		return c.fail(f.typ.at, "expected u32, found %q", f.typ.text)
	case f.constant == nil && len(f.choices) == 0:
		return c.fail(f.name.at, `a magic field needs "=" and a value or named values in braces`)
	}
	c.record.Magic = out
	return nil
}

func (c *checker) version(f *syntaxField, out *Field) error {
	out.Kind = KindVersion
	switch {
	case c.record.Version != nil:
		return c.fail(f.role.at, "a record has one version field at most")
	case c.at.Anchor != 0:
		return c.fail(f.role.at, "expected the version field before the first field without a fixed width")
	case f.constant == nil || f.constant.value < 1:
		return c.fail(f.name.at, `a version field needs "=" and a value of at least 1`)
	}
	c.record.Version = out
	return nil
}

func (c *checker) checksum(f *syntaxField, out *Field) error {
	out.Kind = KindChecksum
	sum := f.checksum
	if out.Int.bytes != 4 || out.Int.signed {
		return c.fail(f.typ.at, "expected u32, found %q", f.typ.text)
	}
	out.Algorithm, out.Lazy = sum.algorithm.text, sum.lazy
	if sum.mask != nil {
		out.SumMask = sum.mask.text
	}
	if sum.preceding {
		out.To = out.At
	}
	return nil
}

// checkOptions checks what follows the type.
func (c *checker) checkOptions(f *syntaxField, out *Field) error {
	inRange := func(n *syntaxNumber) error {
		if n != nil && out.isScalar() && (n.value < out.Int.min() || n.value > out.Int.max()) {
			return c.fail(n.at, "%s does not fit into %s", n.text, f.typ.text)
		}
		return nil
	}
	for _, n := range []*syntaxNumber{f.constant, f.min, f.max} {
		if err := inRange(n); err != nil {
			return err
		}
	}
	if n := f.constant; n != nil {
		if !out.isScalar() || out.Kind == KindTotal || out.Kind == KindChecksum {
			return c.fail(n.at, "only integers, a magic and a version take a value")
		}
		out.Value = &Choice{Text: n.text, Value: n.value}
	}
	if len(f.choices) > 0 && out.Kind != KindInt && out.Kind != KindMagic {
		return c.fail(f.choices[0].name.at, "only integers and a magic take named values")
	}
	if n := out.Name; (out.Value != nil || f.constant != nil) && (n == "Size" || n == "MinSize" || n == "View") {
		return c.fail(f.name.at, "a field with a value must not be called %s, since its constant would clash", n)
	}
	for i := range f.choices {
		x := &f.choices[i]
		for _, other := range out.Choices {
			if other.Name == x.name.text {
				return c.fail(x.name.at, "value %q is declared twice", x.name.text)
			}
		}
		if err := inRange(&x.value); err != nil {
			return err
		}
		if out.Kind == KindMagic && x.value.value == 0 {
			return c.fail(x.value.at, "zero is no magic, since empty space must not look like a record")
		}
		out.Choices = append(out.Choices, Choice{Doc: x.doc, Name: x.name.text, Text: x.value.text, Value: x.value.value})
	}
	if out.Kind == KindMagic && out.Value != nil && out.Value.Value == 0 {
		return c.fail(f.constant.at, "zero is no magic, since empty space must not look like a record")
	}
	if f.min != nil {
		out.Min = &f.min.value
	}
	if f.max != nil {
		out.Max = &f.max.value
	}
	if (f.min != nil || f.max != nil) && out.Kind != KindInt && out.Kind != KindVarBytes {
		return c.fail(f.name.at, "only integers and bytes with a length take min and max")
	}
	if f.late && (!out.isScalar() || !out.hasStructField() || out.Kind != KindInt) {
		return c.fail(f.name.at, "only integers can be late")
	}
	if f.late && out.At.Anchor != 0 && !c.flagAnchorsOnly() {
		return c.fail(f.name.at, "a late field must stand before the first bytes with a length")
	}
	if f.reserve != nil {
		if out.Kind != KindVarBytes {
			return c.fail(f.reserve.at, "only bytes with a length take a reserve")
		}
		out.Reserve = f.reserve.text
	}
	return nil
}

// flagAnchorsOnly says whether every width so far follows from flags.
func (c *checker) flagAnchorsOnly() bool {
	for _, f := range c.record.Fields {
		if f.Kind == KindVarBytes {
			return false
		}
	}
	return true
}

// resolveSums decides what each checksum of the record covers; it runs when
// all fields are known, since a checksum may stand before what it covers.
func (c *checker) resolveSums(r *syntaxRecord) error {
	for i, f := range r.fields {
		if f.checksum == nil || f.checksum.preceding {
			continue
		}
		from, to := c.byName[f.checksum.from.text], c.byName[f.checksum.to.text]
		if from == nil {
			return c.fail(f.checksum.from.at, "expected a field of this record, found %q", f.checksum.from.text)
		}
		if to == nil {
			return c.fail(f.checksum.to.at, "expected a field of this record, found %q", f.checksum.to.text)
		}
		out := c.record.Fields[i]
		out.From, out.To = from.Data, to.End
		if from != to {
			out.From = from.At
		}
		a, b, self := c.index(from), c.index(to), i
		if a > b {
			return c.fail(f.checksum.from.at, "expected a range from an earlier to a later field")
		}
		if self >= a && self <= b {
			return c.fail(f.checksum.from.at, "a checksum cannot cover itself")
		}
	}
	return nil
}

func (c *checker) index(f *Field) int {
	for i, x := range c.record.Fields {
		if x == f {
			return i
		}
	}
	return -1
}

// checkVector resolves the values of a vector to Go expressions.
func (c *checker) checkVector(r *Record, v *syntaxVector) error {
	out := &Vector{Doc: v.doc, Name: v.name.text}
	for _, x := range v.values {
		value, err := c.vectorValue(r, x)
		if err != nil {
			return err
		}
		out.Values = append(out.Values, value)
	}
	r.Vectors = append(r.Vectors, out)
	return nil
}

func (c *checker) vectorValue(r *Record, x syntaxValue) (Value, error) {
	for _, f := range r.Fields {
		if f.Reserve == x.field.text && f.Reserve != "" && x.kind == tokenInt {
			return Value{Field: f, Name: f.Reserve, Expr: fmt.Sprint(x.number)}, nil
		}
		if f.Name != x.field.text || !f.hasStructField() {
			continue
		}
		switch {
		case f.isScalar() && x.kind == tokenInt:
			return Value{f, f.Name, fmt.Sprint(x.number)}, nil
		case f.isScalar() && x.kind == tokenIdent:
			for _, choice := range f.Choices {
				if choice.Name == x.text {
					return Value{f, f.Name, r.Name + f.Name + x.text}, nil
				}
			}
		case f.Kind == KindFixedBytes && x.kind == tokenString && len(x.text) == f.Width:
			return Value{f, f.Name, fmt.Sprintf("[%d]byte([]byte(%s))", f.Width, strconv.Quote(x.text))}, nil
		case !f.isScalar() && f.Kind != KindFixedBytes && x.kind == tokenString:
			return Value{f, f.Name, fmt.Sprintf("[]byte(%s)", strconv.Quote(x.text))}, nil
		}
		return Value{}, c.fail(x.at, "this value does not fit field %q", f.Name)
	}
	return Value{}, c.fail(x.field.at, "expected a field of record %q that can be set, found %q", r.Name, x.field.text)
}
