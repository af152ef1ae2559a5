package gen

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// parser reads the tokens of one file.
type parser struct {
	lexer  *lexer
	tokens []token
	pos    int
}

// parseFile reads a schema into its syntax tree.
func parseFile(file, src string) (*syntaxFile, error) {
	l := &lexer{file: file, src: src}
	tokens, err := l.tokens()
	if err != nil {
		return nil, err
	}
	p := &parser{lexer: l, tokens: tokens}
	return p.file()
}

func (p *parser) peek() token { return p.tokens[p.pos] }

func (p *parser) take() token {
	t := p.tokens[p.pos]
	if t.kind != tokenEOF {
		p.pos++
	}
	return t
}

func (p *parser) fail(at place, format string, args ...any) error {
	return p.lexer.fail(at, format, args...)
}

func (p *parser) expected(what string) error {
	t := p.peek()
	return p.fail(t.at, "expected %s, found %s", what, t.describe())
}

func (p *parser) isPunct(text string) bool {
	t := p.peek()
	return t.kind == tokenPunct && t.text == text
}

func (p *parser) isWord(text string) bool {
	t := p.peek()
	return t.kind == tokenIdent && t.text == text
}

func (p *parser) punct(text, what string) error {
	if !p.isPunct(text) {
		return p.expected(fmt.Sprintf("%q %s", text, what))
	}
	p.take()
	return nil
}

func (p *parser) name(what string) (syntaxName, error) {
	t := p.peek()
	if t.kind != tokenIdent {
		return syntaxName{}, p.expected(what)
	}
	p.take()
	return syntaxName{t.text, t.at}, nil
}

func (p *parser) number(what string) (syntaxNumber, error) {
	t := p.peek()
	if t.kind != tokenInt {
		return syntaxNumber{}, p.expected(what)
	}
	p.take()
	return syntaxNumber{t.value, t.text, t.at}, nil
}

// endOfLine takes the end of a line, and a comment before it, which it
// returns.
func (p *parser) endOfLine() ([]string, error) {
	var doc []string
	if p.peek().kind == tokenComment {
		doc = append(doc, p.take().text)
	}
	switch p.peek().kind {
	case tokenNewline:
		p.take()
	case tokenEOF:
	default:
		return nil, p.expected("the end of the line")
	}
	return doc, nil
}

// comments takes the comment lines that stand directly above the next word,
// and skips what is separated from it by an empty line.
func (p *parser) comments() []string {
	var doc []string
	for {
		switch p.peek().kind {
		case tokenComment:
			doc = append(doc, p.take().text)
			if p.peek().kind == tokenNewline {
				p.take()
			}
		case tokenNewline:
			p.take()
			doc = nil
		default:
			return doc
		}
	}
}

func (p *parser) file() (*syntaxFile, error) {
	f := &syntaxFile{}
	for {
		doc := p.comments()
		t := p.peek()
		switch {
		case t.kind == tokenEOF:
			if f.pkg == "" {
				return nil, p.expected(`"package"`)
			}
			return f, nil
		case p.isWord("package"):
			if f.pkg != "" {
				return nil, p.fail(t.at, "expected a record or a vector, found a second package line")
			}
			p.take()
			name, err := p.name("a package name")
			if err != nil {
				return nil, err
			}
			f.pkg, f.doc = name.text, doc
			if _, err := p.endOfLine(); err != nil {
				return nil, err
			}
		case f.pkg == "":
			return nil, p.expected(`"package"`)
		case p.isWord("record"):
			r, err := p.record(doc)
			if err != nil {
				return nil, err
			}
			f.records = append(f.records, r)
		case p.isWord("vector"):
			v, err := p.vector(doc)
			if err != nil {
				return nil, err
			}
			f.vectors = append(f.vectors, v)
		default:
			return nil, p.expected(`"record" or "vector"`)
		}
	}
}

func (p *parser) record(doc []string) (*syntaxRecord, error) {
	p.take()
	name, err := p.name("a record name")
	if err != nil {
		return nil, err
	}
	r := &syntaxRecord{doc: doc, name: name.text, at: name.at}
	if err := p.openBlock("after the record name"); err != nil {
		return nil, err
	}
	for {
		doc := p.comments()
		if p.isPunct("}") {
			p.take()
			_, err := p.endOfLine()
			return r, err
		}
		f, err := p.field(doc)
		if err != nil {
			return nil, err
		}
		r.fields = append(r.fields, f)
	}
}

func (p *parser) openBlock(what string) error {
	if err := p.punct("{", what); err != nil {
		return err
	}
	_, err := p.endOfLine()
	return err
}

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
	trailing, err := p.endOfLine()
	if err != nil {
		return nil, err
	}
	if f.doc == nil {
		f.doc = trailing
	}
	return f, nil
}

const typeWords = "a type (i8 to i64, u8 to u64, bytes) or a role (total, magic, version, checksum)"

func (p *parser) fieldType(f *syntaxField) error {
	word, err := p.name(typeWords)
	if err != nil {
		return err
	}
	switch word.text {
	case "total", "magic", "version", "checksum":
		f.role = word
		if f.typ, err = p.name("an integer type"); err != nil {
			return err
		}
		if _, ok := intTypes[f.typ.text]; !ok {
			return p.fail(f.typ.at, "expected an integer type, found %q", f.typ.text)
		}
		if word.text == "checksum" {
			f.checksum, err = p.checksum()
		}
		return err
	case "bytes":
		f.typ = word
		if p.isPunct("[") {
			f.width, err = p.width(true)
			return err
		}
		if p.isWord("len") {
			f.prefix, err = p.prefix()
			return err
		}
		return p.expected(`"[" with a width or "len" with a length type`)
	}
	if _, ok := intTypes[word.text]; !ok {
		return p.fail(word.at, "expected %s, found %q", typeWords, word.text)
	}
	f.typ = word
	return nil
}

// width reads "[8]" or "[8 | 20 if Flag & 0x10]".
func (p *parser) width(conditional bool) (*syntaxWidth, error) {
	if err := p.punct("[", "with a width"); err != nil {
		return nil, err
	}
	w := &syntaxWidth{}
	var err error
	if w.base, err = p.number("a width in bytes"); err != nil {
		return nil, err
	}
	if conditional && p.isPunct("|") {
		p.take()
		w.cond = true
		if w.alt, err = p.number("a width in bytes"); err != nil {
			return nil, err
		}
		if err = p.word("if"); err != nil {
			return nil, err
		}
		if w.flag, err = p.name("the name of an integer field"); err != nil {
			return nil, err
		}
		if err = p.punct("&", "and a mask"); err != nil {
			return nil, err
		}
		if w.mask, err = p.number("a mask"); err != nil {
			return nil, err
		}
	}
	return w, p.punct("]", "after the width")
}

func (p *parser) word(text string) error {
	if !p.isWord(text) {
		return p.expected(fmt.Sprintf("%q", text))
	}
	p.take()
	return nil
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
	x.cond = true
	if x.alt, err = p.name("the integer type of the length"); err != nil {
		return nil, err
	}
	if err = p.word("if"); err != nil {
		return nil, err
	}
	if x.magic, err = p.name("the name of the magic field"); err != nil {
		return nil, err
	}
	x.choice, err = p.name("the name of a magic value")
	return x, err
}

// checksum reads "crc32 over Body mask 0x7fffffff lazy".
func (p *parser) checksum() (*syntaxChecksum, error) {
	c := &syntaxChecksum{}
	var err error
	if c.algorithm, err = p.name("a checksum algorithm (crc32, crc32c)"); err != nil {
		return nil, err
	}
	if _, ok := checksumCalls[c.algorithm.text]; !ok {
		return nil, p.fail(c.algorithm.at, "expected a checksum algorithm (crc32, crc32c), found %q",
			c.algorithm.text)
	}
	if err = p.word("over"); err != nil {
		return nil, err
	}
	if c.from, err = p.name(`a field, a range of fields or "preceding"`); err != nil {
		return nil, err
	}
	c.to = c.from
	if c.from.text == "preceding" {
		c.preceding = true
	} else if p.isPunct("..") {
		p.take()
		if c.to, err = p.name("the last field of the range"); err != nil {
			return nil, err
		}
	}
	if p.isWord("mask") {
		p.take()
		n, err := p.number("a mask")
		if err != nil {
			return nil, err
		}
		c.mask = &n
	}
	if p.isWord("lazy") {
		p.take()
		c.lazy = true
	}
	return c, nil
}

// options reads what may follow a type, in any order.
func (p *parser) options(f *syntaxField) error {
	for {
		var err error
		switch {
		case p.isPunct("="):
			p.take()
			f.constant, err = p.optionNumber("a value")
		case p.isPunct("{"):
			f.choices, err = p.choices()
		case p.isWord("min"):
			p.take()
			f.min, err = p.optionNumber("a minimum")
		case p.isWord("max"):
			p.take()
			f.max, err = p.optionNumber("a maximum")
		case p.isWord("reserve"):
			p.take()
			var n syntaxName
			n, err = p.name("the name of the reserve")
			f.reserve = &n
		case p.isWord("late"):
			p.take()
			f.late = true
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (p *parser) optionNumber(what string) (*syntaxNumber, error) {
	n, err := p.number(what)
	return &n, err
}

// choices reads "{ V1 = 1, V2 = 2 }" on one line, or one choice per line.
func (p *parser) choices() ([]syntaxChoice, error) {
	p.take()
	var out []syntaxChoice
	for {
		doc := p.comments()
		if p.isPunct("}") {
			p.take()
			return out, nil
		}
		c := syntaxChoice{doc: doc}
		var err error
		if c.name, err = p.name(`the name of a value or "}"`); err != nil {
			return nil, err
		}
		if err = p.punct("=", "and a value"); err != nil {
			return nil, err
		}
		if c.value, err = p.number("a value"); err != nil {
			return nil, err
		}
		out = append(out, c)
		if p.isPunct(",") {
			p.take()
		} else if t := p.peek(); t.kind == tokenIdent {
			return nil, p.expected(`"," or "}"`)
		}
	}
}

func (p *parser) vector(doc []string) (*syntaxVector, error) {
	p.take()
	v := &syntaxVector{doc: doc}
	var err error
	if v.name, err = p.name("a vector name"); err != nil {
		return nil, err
	}
	if v.record, err = p.name("a record name"); err != nil {
		return nil, err
	}
	if err := p.openBlock("after the record name"); err != nil {
		return nil, err
	}
	for {
		p.comments()
		if p.isPunct("}") {
			p.take()
			_, err := p.endOfLine()
			return v, err
		}
		x, err := p.value()
		if err != nil {
			return nil, err
		}
		v.values = append(v.values, x)
	}
}

// value reads `Field = 7`, `Field = "text"`, `Field = hex "00ff"` or
// `Field = V1`.
func (p *parser) value() (syntaxValue, error) {
	x := syntaxValue{}
	var err error
	if x.field, err = p.name(`a field name or "}"`); err != nil {
		return x, err
	}
	if err = p.punct("=", "and a value"); err != nil {
		return x, err
	}
	t := p.peek()
	x.kind, x.at = t.kind, t.at
	switch {
	case t.kind == tokenInt:
		x.number = p.take().value
	case t.kind == tokenString:
		x.text = p.take().text
	case p.isWord("hex"):
		p.take()
		s := p.peek()
		raw, hexErr := hex.DecodeString(strings.ReplaceAll(s.text, " ", ""))
		if s.kind != tokenString || hexErr != nil {
			return x, p.expected("a string of hex digits")
		}
		p.take()
		x.kind, x.text = tokenString, string(raw)
	case t.kind == tokenIdent:
		x.text = p.take().text
	default:
		return x, p.expected("an integer, a string, hex digits or the name of a value")
	}
	_, err = p.endOfLine()
	return x, err
}
