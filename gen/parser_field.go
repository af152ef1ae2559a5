package gen

import "fmt"

const typeWords = "a type (i8 to i64, u8 to u64, bool, bytes, text, the name of an enum or of flags), " +
	"a role (total, magic, version, checksum) or group"

func (p *parser) field(doc []string) (*syntaxField, error) {
	f := &syntaxField{doc: doc}
	var err error
	if f.name, err = p.name(`a field name or "}"`); err != nil {
		return nil, err
	}
	if f.name.text == "reserved" {
		f.role = f.name
		f.width, err = p.width(false)
	} else {
		err = p.fieldType(f)
	}
	if err != nil {
		return nil, err
	}
	if err := p.options(f); err != nil {
		return nil, err
	}
	if f.group != nil && (f.group.entry == nil || p.isPunct("{")) {
		if !p.isPunct("{") {
			return nil, p.expected(`"of" and a record, or "{" before the fields of an entry`)
		}
		return f, p.inlineEntry(f)
	}
	trailing, err := p.endOfLine()
	if err != nil {
		return nil, err
	}
	if f.doc == nil {
		f.doc = trailing
	}
	return f, nil
}

// inlineEntry reads the fields of an entry in braces.
func (p *parser) inlineEntry(f *syntaxField) error {
	at := p.take().at
	if _, err := p.endOfLine(); err != nil {
		return err
	}
	fields, err := p.fields()
	f.group.inline = &syntaxRecord{at: at, fields: fields}
	return err
}

func (p *parser) fieldType(f *syntaxField) error {
	word, err := p.name(typeWords)
	if err != nil {
		return err
	}
	switch word.text {
	case "total", "magic", "version":
		f.role = word
		f.typ, err = p.name("an integer type")
		return err
	case "checksum":
		f.role = word
		return p.checksum(f)
	case "bytes", "text":
		f.typ = word
		return p.bytes(f)
	case "group":
		f.role = word
		return p.group(f)
	}
	f.typ = word
	return nil
}

// bytes reads what follows the word bytes or text.
func (p *parser) bytes(f *syntaxField) error {
	var err error
	switch {
	case p.isPunct("["):
		f.width, err = p.width(true)
	case p.isWord("len"):
		f.prefix, err = p.prefix()
	case p.isWord("until"):
		p.take()
		var n syntaxNumber
		n, err = p.number("the byte that ends the bytes")
		f.stop = &n
	case p.isWord("rest"):
		p.take()
		f.rest = true
	case p.isPunct("="):
		// The width is that of the constant.
	default:
		err = p.expected(`"[" with a width, "len" with a length type, "until", "rest" or "="`)
	}
	return err
}

// width reads "[8]", "[Len]" or "[8 | 20 if Flag & 0x10]".
func (p *parser) width(conditional bool) (*syntaxWidth, error) {
	if err := p.punct("[", "with a width"); err != nil {
		return nil, err
	}
	w := &syntaxWidth{}
	var err error
	if conditional && p.peek().kind == tokenIdent {
		name, _ := p.name("")
		w.field = &name
		return w, p.punct("]", "after the width")
	}
	if w.base, err = p.number("a width in bytes"); err != nil {
		return nil, err
	}
	if conditional && p.isPunct("|") {
		p.take()
		alt, err := p.number("a width in bytes")
		if err != nil {
			return nil, err
		}
		w.alt = &alt
		if w.cond, err = p.condition(); err != nil {
			return nil, err
		}
	}
	return w, p.punct("]", "after the width")
}

// condition reads "if Attr & X", "if Attr & Mask == X", "if Kind == A",
// "if Count >= 2", "if Magic V2" or, of a bool, "if Known".
func (p *parser) condition() (*syntaxCond, error) {
	if err := p.word("if"); err != nil {
		return nil, err
	}
	c := &syntaxCond{}
	var err error
	if c.field, err = p.name("the name of an integer field"); err != nil {
		return nil, err
	}
	if p.isPunct("&") {
		p.take()
		mask, err := p.literal("a mask", true)
		if err != nil {
			return nil, err
		}
		c.mask = &mask
	}
	for _, op := range []string{"==", "!=", ">=", "<="} {
		if p.isPunct(op) {
			p.take()
			c.op = op
		}
	}
	switch {
	case c.op == "" && c.mask != nil:
		return c, nil
	case c.op == "" && p.peek().kind == tokenIdent && !optionWords[p.peek().text]:
		c.op = "=="
	case c.op == "":
		c.bare = p.expected(`"&" and a mask, "==" and a value, or the name of a value`)
		return c, nil
	}
	value, err := p.literal("a value", true)
	c.value = &value
	return c, err
}

// prefix reads "len i32" or "len i8 | i16 if Magic V2".
func (p *parser) prefix() (*syntaxPrefix, error) {
	p.take()
	x := &syntaxPrefix{}
	var err error
	if x.base, err = p.name("the integer type of the length"); err != nil {
		return nil, err
	}
	if !p.isPunct("|") {
		return x, nil
	}
	p.take()
	alt, err := p.name("the integer type of the length")
	if err != nil {
		return nil, err
	}
	x.alt = &alt
	x.cond, err = p.condition()
	return x, err
}

// group reads "group u16", "group[Count]" or "group rest", and "of Entry"
// behind it.
func (p *parser) group(f *syntaxField) error {
	g := &syntaxGroup{}
	f.group = g
	switch {
	case p.isWord("rest"):
		p.take()
		f.rest = true
	case p.isPunct("["):
		p.take()
		name, err := p.name("the name of the field with the count")
		if err != nil {
			return err
		}
		g.field = &name
		if err := p.punct("]", "after the name"); err != nil {
			return err
		}
	default:
		name, err := p.name(`the integer type of the count, "[" with a field, or "rest"`)
		if err != nil {
			return err
		}
		g.count = &name
	}
	if !p.isWord("of") {
		return nil
	}
	p.take()
	name, err := p.name("a record name")
	g.entry = &name
	return err
}

// checksum reads "u32 crc32 over Body mask 0x7fffffff lazy".
func (p *parser) checksum(f *syntaxField) error {
	c := &syntaxChecksum{}
	f.checksum = c
	var err error
	if f.typ, err = p.name(`an integer type or "decimal"`); err != nil {
		return err
	}
	if f.typ.text == "decimal" {
		if err := p.decimal(f); err != nil {
			return err
		}
	}
	what := fmt.Sprintf("a checksum algorithm (%s)", algorithmNames)
	if c.algorithm, err = p.name(what); err != nil {
		return err
	}
	if _, ok := algorithms[c.algorithm.text]; !ok {
		return p.fail(c.algorithm.at, "expected %s, found %q", what, c.algorithm.text)
	}
	if err = p.word("over"); err != nil {
		return err
	}
	if c.from, c.to, err = p.fieldRange(`a field, a range of fields, "preceding" or "given"`); err != nil {
		return err
	}
	if p.isWord("mask") {
		p.take()
		n, err := p.number("a mask")
		if err != nil {
			return err
		}
		c.mask = &n
	}
	if p.isWord("lazy") {
		p.take()
		c.lazy = true
	}
	return nil
}

// decimal reads "[10] reversed".
func (p *parser) decimal(f *syntaxField) error {
	if err := p.punct("[", "with a number of digits"); err != nil {
		return err
	}
	n, err := p.number("a number of digits")
	if err != nil {
		return err
	}
	f.decimal = &syntaxDecimal{digits: n}
	if err := p.punct("]", "after the number of digits"); err != nil {
		return err
	}
	if p.isWord("reversed") {
		p.take()
		f.decimal.reversed = true
	}
	return nil
}

// fieldRange reads "A" or "A..B".
func (p *parser) fieldRange(what string) (from, to syntaxName, err error) {
	if from, err = p.name(what); err != nil {
		return from, from, err
	}
	if !p.isPunct("..") {
		return from, from, nil
	}
	p.take()
	to, err = p.name("the last field of the range")
	return from, to, err
}

// options reads what may follow a type, in any order.
func (p *parser) options(f *syntaxField) error {
	for {
		t := p.peek()
		var err error
		switch {
		case p.isPunct("="):
			p.take()
			var x syntaxLiteral
			x, err = p.literal("a value", false)
			f.constant = &x
		case p.isPunct("{") && f.group == nil:
			f.choices, err = p.choices(false)
		case t.kind != tokenIdent:
			return nil
		default:
			var more bool
			if more, err = p.wordOption(f); !more {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

// optionWords are the words that start an option, so they name no value in a
// condition that ends without one.
var optionWords = map[string]bool{
	"min": true, "max": true, "pad": true, "since": true, "until": true, "from": true, "if": true, "reserve": true,
	"late": true, "ordered": true, "utf8": true, "length": true, "count": true, "of": true,
}

// wordOption reads an option that starts with a word, if there is one.
func (p *parser) wordOption(f *syntaxField) (more bool, err error) {
	numbers := map[string]struct {
		to   **syntaxNumber
		what string
	}{
		"min": {&f.min, "a minimum"}, "max": {&f.max, "a maximum"}, "pad": {&f.pad, "the byte to fill up with"},
		"since": {&f.since, "a version"}, "until": {&f.until, "a version"}, "from": {&f.from, "a version"},
	}
	t := p.peek()
	word := syntaxName{t.text, t.at}
	if optionWords[t.text] {
		if f.options == nil {
			f.options = map[string]bool{}
		}
		if f.options[t.text] {
			return false, p.fail(t.at, "%q is given twice", t.text)
		}
		f.options[t.text] = true
	}
	if n, ok := numbers[t.text]; ok {
		p.take()
		x, err := p.number(n.what)
		*n.to = &x
		return true, err
	}
	switch t.text {
	case "if":
		f.cond, err = p.condition()
		return true, err
	case "reserve":
		p.take()
		name, err := p.name("the name of the reserve")
		f.reserve = &name
		return true, err
	case "late":
		f.late = true
	case "ordered":
		f.ordered = &word
	case "utf8":
		f.utf8 = &word
	case "length", "count":
		p.take()
		m := &syntaxMeasure{count: t.text == "count", at: t.at}
		f.measure = m
		if err := p.word("of"); err != nil {
			return false, err
		}
		m.from, m.to, err = p.fieldRange("a field")
		return true, err
	default:
		return false, nil
	}
	p.take()
	return true, nil
}
