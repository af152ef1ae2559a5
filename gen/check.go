package gen

import (
	"fmt"
	"path/filepath"
	"unicode"
	"unicode/utf8"
)

// checker turns a syntax tree into records whose places are decided.
type checker struct {
	file   string
	little bool
	// taken says what each Go name stands for that the file declares.
	taken   map[string]string
	enums   map[string]*Enum
	records map[string]*Record
	out     *File
	told    *mistakes
	// lost are names of declarations that are wrong, stray says that others may
	// be, too.
	lost  map[string]bool
	stray bool
}

// recordChecker checks one record.
type recordChecker struct {
	*checker
	record *Record
	// byName holds the fields of the record that were checked so far, syntax
	// the lines of all fields in Record.Fields.
	byName map[string]*Field
	syntax []*syntaxField
	// methods are the names that the view has taken.
	methods map[string]bool
	// lostFields are the names of fields that are wrong, and of those that hang
	// on them.
	lostFields  map[string]bool
	lostVersion bool
	// at is the end of the fields so far.
	at Pos
}

func (c *checker) fail(at Where, format string, args ...any) error {
	return &Error{File: c.file, Line: at.Line, Col: at.Col, Msg: fmt.Sprintf(format, args...)}
}

// checkFile checks a whole schema, and adds what is wrong to told: a mistake
// ends the check of a field, a value or a line, and what names something that
// has one is passed over.
func checkFile(file string, tree *syntaxFile, told *mistakes) *File {
	c := &checker{
		file: file, little: tree.little, told: told, lost: tree.lost, stray: tree.stray,
		taken: map[string]string{}, enums: map[string]*Enum{}, records: map[string]*Record{},
		out: &File{Doc: tree.doc, Path: file, Source: filepath.Base(file), Package: tree.pkg.text},
	}
	c.told.add(c.checkPackage(tree.pkg))
	for _, name := range supportNames {
		c.taken[name] = "what every package of codecs has"
	}
	for _, e := range tree.enums {
		if !c.told.add(c.checkEnum(e)) {
			c.lost[e.name.text] = true
		}
	}
	for _, r := range tree.records {
		_, err := c.checkRecord(r)
		c.told.add(err)
	}
	c.told.add(c.checkMagics())
	for _, p := range tree.pages {
		if !c.isLost(p.record.text) {
			c.told.add(c.checkPage(p))
		}
	}
	vectors := map[string]bool{}
	for _, v := range tree.vectors {
		if vectors[v.name.text] {
			c.told.add(c.fail(v.name.at, "vector %q is declared twice", v.name.text))
		}
		vectors[v.name.text] = true
		if !c.isLost(v.record.text) {
			c.told.add(c.checkVector(v))
		}
	}
	return c.out
}

// isLost says whether a name may be that of a declaration that is wrong.
func (c *checker) isLost(name string) bool {
	return c.lost[name] || c.stray && c.records[name] == nil && c.enums[name] == nil
}

func (c *checker) checkEnum(e *syntaxEnum) error {
	what := "enum"
	if e.flags {
		what = "flags"
	}
	if err := c.declare(what, e.doc, e.name.text, e.name.at); err != nil {
		return err
	}
	t, ok := intType(e.typ.text, c.little)
	if !ok || t.Bool {
		return c.fail(e.typ.at, "expected an integer type, found %q", e.typ.text)
	}
	out := &Enum{Doc: e.doc, Name: e.name.text, Where: e.name.at, Int: t, Flags: e.flags, Open: e.open}
	if len(e.choices) == 0 {
		return c.fail(e.name.at, "%s %q has no values", what, e.name.text)
	}
	var err error
	if out.Values, err = c.checkChoices(e.choices, t, e.typ.text); err != nil {
		return err
	}
	good := true
	for _, v := range out.Values {
		good = c.told.add(c.take(v.Where, out.Name+v.Name, "a value of "+out.Name)) && good
		if e.flags {
			good = c.told.add(c.checkFlag(out, v)) && good
		}
	}
	if !good {
		return errTold
	}
	c.enums[out.Name] = out
	c.out.Enums = append(c.out.Enums, out)
	return nil
}

// checkFlag checks one value of flags, which is a bit or a mask.
func (c *checker) checkFlag(e *Enum, v *Choice) error {
	bits := v.Value.Abs
	if v.Value.Neg || bits == 0 {
		return c.fail(v.Where, "expected at least one bit, found %s", v.Value.Text)
	}
	for _, other := range e.Values {
		if other == v {
			break
		}
		if other.Value.Abs&bits != 0 {
			return c.fail(v.Where, "%s has a bit of %s", v.Name, other.Name)
		}
	}
	if len(v.Values) > 0 && bits&(bits-1) == 0 {
		return c.fail(v.Where, "%s has one bit, so its values need no names", v.Name)
	}
	for _, x := range v.Values {
		if x.Value.Neg || x.Value.Abs&^bits != 0 {
			return c.fail(x.Where, "%s has bits that %s has not", x.Name, v.Name)
		}
		if err := c.take(x.Where, e.Name+v.Name+x.Name, "a value of "+v.Name); err != nil {
			return err
		}
	}
	return nil
}

// checkChoices checks named values of type t.
func (c *checker) checkChoices(choices []syntaxChoice, t Int, typ string) ([]*Choice, error) {
	var out []*Choice
	good := true
	for i := range choices {
		choice, err := c.checkChoice(&choices[i], out, t, typ)
		if c.told.add(err) {
			out = append(out, choice)
		}
		good = good && err == nil
	}
	if !good {
		return nil, errTold
	}
	return out, nil
}

// checkChoice checks a named value that follows others.
func (c *checker) checkChoice(x *syntaxChoice, others []*Choice, t Int, typ string) (*Choice, error) {
	value, err := c.number(x.value, t, typ)
	if err != nil {
		return nil, err
	}
	for _, other := range others {
		switch {
		case other.Name == x.name.text:
			return nil, c.fail(x.name.at, "value %q is declared twice", x.name.text)
		case other.Value.Cmp(value) == 0:
			return nil, c.fail(x.value.at, "%s is the value of %s already", value.Text, other.Name)
		}
	}
	out := &Choice{Doc: x.doc, Name: x.name.text, Where: x.name.at, Value: value}
	out.Values, err = c.checkChoices(x.values, t, typ)
	return out, err
}

// number returns the value of a literal for an integer of type t: a number, or
// a string of its bytes.
func (c *checker) number(x syntaxLiteral, t Int, typ string) (Number, error) {
	n := x.number
	switch {
	case x.kind == tokenString && len(x.text) != t.Bytes:
		return n, c.fail(x.at, "expected a string of %d bytes for %s, found %d", t.Bytes, typ, len(x.text))
	case x.kind == tokenString:
		n = t.fromBytes(x.text)
	case !t.holds(n):
		return n, c.fail(x.at, "%s does not fit into %s", n.Text, typ)
	}
	return n, nil
}

// viewMethods are taken by methods of every view or record.
var viewMethods = []string{"Bytes", "Parse", "Encode", "Append", "AppendPrefix", "AppendText", "AppendJSON",
	"String", "Describe"}

func (c *recordChecker) checkField(f *syntaxField) (*Field, error) {
	out := &Field{Doc: f.doc, Name: f.name.text, Where: f.name.at, Late: f.late, At: c.at}
	if f.role.text != "reserved" {
		first, _ := utf8.DecodeRuneInString(out.Name)
		switch {
		case !unicode.IsUpper(first):
			return nil, c.fail(f.name.at, "expected a field name that starts with an upper-case letter, found %q",
				out.Name)
		case c.byName[out.Name] != nil || c.lostFields[out.Name]:
			return nil, c.fail(f.name.at, "field %q is declared twice", out.Name)
		case c.methods[out.Name]:
			return nil, c.fail(f.name.at, "a field must not be called %s, since every view has that method", out.Name)
		}
		c.methods[out.Name] = true
	}
	if err := c.presence(f, out); err != nil {
		return nil, err
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

// presence decides when the field is there.
func (c *recordChecker) presence(f *syntaxField, out *Field) error {
	for _, bound := range []struct {
		n    *syntaxNumber
		word string
		op   string
	}{{f.since, "since", ">="}, {f.until, "until", "<="}} {
		if bound.n == nil {
			continue
		}
		version := c.record.Version
		if version == nil {
			return c.fail(bound.n.at, "a field with %s needs a version field before it", bound.word)
		}
		n := bound.n.value
		low, high := version.FromVersion+1, version.Value.Int64()
		if bound.word == "until" {
			low, high = low-1, high-1
		}
		if n.Neg || n.Abs < uint64(low) || n.Abs > uint64(high) {
			return c.fail(bound.n.at, "expected a version from %d to %d behind %s, found %s", low, high, bound.word, n.Text)
		}
		out.If = append(out.If, &Cond{Field: version, Op: bound.op, Value: n})
	}
	if f.since != nil {
		out.Since = f.since.value.Int64()
	}
	if f.until != nil {
		out.Until = f.until.value.Int64()
		if out.Until < out.Since {
			return c.fail(f.until.at, "the field would be in no version")
		}
	}
	if f.cond != nil {
		cond, err := c.condition(f.cond)
		if err != nil {
			return err
		}
		out.If = append(out.If, cond)
	}
	if len(out.If) > 0 && f.role.text != "reserved" {
		if c.methods["Has"+out.Name] {
			return c.fail(f.name.at, "the method Has%s of this field is taken by another field", out.Name)
		}
		c.methods["Has"+out.Name] = true
	}
	return nil
}

// condition resolves a condition on a field before.
func (c *recordChecker) condition(x *syntaxCond) (*Cond, error) {
	field := c.byName[x.field.text]
	if field == nil || !field.IsInt() || !field.InStruct() || len(field.If) > 0 {
		return nil, c.fail(x.field.at, "expected an integer field before this one that is always there, found %q",
			x.field.text)
	}
	if field.Late {
		return nil, c.fail(x.field.at, "a condition cannot look at %s, which is late: a patch would change what is there", field.Name)
	}
	out := &Cond{Field: field, Op: x.op}
	if field.Int.Bool != (x.bare != nil) {
		if x.bare != nil {
			return nil, x.bare
		}
		return nil, c.fail(x.field.at, "expected no more than the name of the bool %s as a condition", field.Name)
	}
	if x.bare != nil {
		out.Op, out.Value = "==", NumberOf(1)
		return out, nil
	}
	if x.mask != nil {
		mask, name, err := c.condValue(field, *x.mask)
		if err != nil {
			return nil, err
		}
		if mask.Abs == 0 {
			return nil, c.fail(x.mask.at, "a mask of 0 never holds")
		}
		out.Mask, out.MaskName = &mask, name
		if x.value == nil {
			out.Op, out.Value = "!=", Number{Text: "0"}
			return out, nil
		}
	}
	var err error
	if out.Value, out.ValueName, err = c.condValue(field, *x.value); err != nil {
		return nil, err
	}
	if out.Mask != nil && out.Value.Abs&^out.Mask.Abs != 0 {
		return nil, c.fail(x.value.at, "%s has bits that the mask has not", out.Value.Text)
	}
	return out, nil
}

// condValue resolves a number, or the name of a value of field.
func (c *recordChecker) condValue(field *Field, x syntaxLiteral) (Number, string, error) {
	if x.kind != tokenIdent {
		n, err := c.number(x, field.Int, field.Int.Name())
		return n, "", err
	}
	if len(x.names) > 1 {
		return Number{}, "", c.fail(x.names[1].at, "expected one name")
	}
	if choice := field.choice(x.names[0].text); choice != nil {
		return choice.Value, choice.Name, nil
	}
	return Number{}, "", c.fail(x.at, "expected a value of %s, found %q", field.Name, x.names[0].text)
}

// choice finds a named value of an integer, also within the masks of flags.
func (f *Field) choice(name string) *Choice {
	choices := f.Choices
	if f.Enum != nil {
		choices = f.Enum.Values
	}
	for _, c := range choices {
		if c.Name == name {
			return c
		}
	}
	for _, c := range choices {
		for _, x := range c.Values {
			if x.Name == name {
				return x
			}
		}
	}
	return nil
}

func (c *checker) checkPage(p *syntaxPage) error {
	if err := c.declare("page", p.doc, p.name.text, p.name.at); err != nil {
		return err
	}
	r := c.records[p.record.text]
	if r == nil || r.Key {
		return c.fail(p.record.at, "expected a record of this file, found %q", p.record.text)
	}
	if n := p.slots.value; n.Neg || n.Abs < 2 || n.Abs > 16 {
		return c.fail(p.slots.at, "expected 2 to 16 slots, found %s", n.Text)
	}
	if n := p.size.value; n.Neg || n.Abs == 0 || n.Abs > 1<<30 || n.Abs%p.slots.value.Abs != 0 {
		return c.fail(p.size.at, "expected a multiple of %s up to 1073741824, found %s", p.slots.value.Text, n.Text)
	}
	out := &Page{Doc: p.doc, Name: p.name.text, Where: p.name.at, Size: int(p.size.value.Abs),
		Slots: int(p.slots.value.Abs), Record: r}
	if r.MinSize > out.SlotSize() {
		return c.fail(p.size.at, "a slot has %d bytes, a %s at least %d", out.SlotSize(), r.Name, r.MinSize)
	}
	sum := false
	for _, f := range r.Fields {
		if f.Name == p.by.text && f.Kind == KindInt && len(f.If) == 0 && f.Value == nil && !f.Int.Bool {
			out.By = f
		}
		sum = sum || f.Kind == KindChecksum && !f.Sum.Lazy && !f.Sum.Given && len(f.If) == 0
	}
	if out.By == nil {
		return c.fail(p.by.at, "expected an integer field of %s that is always there, found %q", r.Name, p.by.text)
	}
	if !sum {
		return c.fail(p.record.at, "a record of a page needs a checksum that Parse checks")
	}
	for _, name := range []string{"Size", "SlotSize", "Slots"} {
		if err := c.take(p.name.at, out.Name+name, "page "+out.Name); err != nil {
			return err
		}
	}
	c.out.Pages = append(c.out.Pages, out)
	return nil
}
