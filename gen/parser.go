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
	told   mistakes
}

func newParser(file, src string) *parser {
	l := &lexer{file: file, src: src}
	return &parser{lexer: l, tokens: l.tokens()}
}

func (p *parser) peek() token { return p.tokens[p.pos] }

func (p *parser) take() token {
	t := p.tokens[p.pos]
	if t.kind != tokenEOF {
		p.pos++
	}
	return t
}

func (p *parser) fail(at Where, format string, args ...any) error {
	return p.lexer.fail(at, format, args...)
}

func (p *parser) expected(what string) error {
	t := p.peek()
	if t.kind == tokenBad {
		return t.err
	}
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

func (p *parser) word(text string) error {
	if !p.isWord(text) {
		return p.expected(fmt.Sprintf("%q", text))
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
	return syntaxNumber{t.value, t.at}, nil
}

// literal reads an integer, a string, hex digits, or, if names is set, names
// joined by "|".
func (p *parser) literal(what string, names bool) (syntaxLiteral, error) {
	t := p.peek()
	x := syntaxLiteral{kind: t.kind, at: t.at}
	switch {
	case t.kind == tokenInt:
		x.number = p.take().value
	case t.kind == tokenString:
		x.text = p.take().text
	case p.isWord("hex") && p.tokens[p.pos+1].kind == tokenString:
		p.take()
		s := p.peek()
		raw, err := hex.DecodeString(strings.ReplaceAll(s.text, " ", ""))
		if err != nil {
			return x, p.expected("a string of hex digits")
		}
		p.take()
		x.kind, x.text = tokenString, string(raw)
	case t.kind == tokenIdent && names:
		for {
			name, err := p.name("the name of a value")
			if err != nil {
				return x, err
			}
			x.names = append(x.names, name)
			if !p.isPunct("|") {
				return x, nil
			}
			p.take()
		}
	default:
		return x, p.expected(what)
	}
	return x, nil
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
		t := p.peek()
		switch {
		case t.kind == tokenComment || t.kind == tokenBad && strings.HasPrefix(t.text, "//"):
			p.told.add(t.err)
			doc = append(doc, p.take().text)
			if p.peek().kind == tokenNewline {
				p.take()
			}
		case t.kind == tokenNewline:
			p.take()
			doc = nil
		default:
			return doc
		}
	}
}

func (p *parser) enum(doc []string, flags bool) (*syntaxEnum, error) {
	e := &syntaxEnum{doc: doc, flags: flags}
	var err error
	what := "the name of the enum"
	if flags {
		what = "the name of the flags"
	}
	if e.name, err = p.name(what); err != nil {
		return nil, err
	}
	if e.typ, err = p.name("an integer type"); err != nil {
		return nil, err
	}
	if p.isWord("open") {
		p.take()
		e.open = true
	}
	if !p.isPunct("{") {
		return nil, p.expected(`"{" before the values`)
	}
	if e.choices, err = p.choices(flags); err != nil {
		return nil, err
	}
	_, err = p.endOfLine()
	return e, err
}

// choices reads "{ V1 = 1, V2 = 2 }" on one line, or one choice per line; a
// comma may end a line. With nested set a choice may hold choices of its own.
func (p *parser) choices(nested bool) ([]syntaxChoice, error) {
	p.take()
	out := []syntaxChoice{}
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
		if c.value, err = p.literal("a value", false); err != nil {
			return nil, err
		}
		if nested && p.isPunct("{") {
			if c.values, err = p.choices(false); err != nil {
				return nil, err
			}
		}
		if p.isPunct(",") {
			p.take()
		} else if t := p.peek(); t.kind != tokenNewline && t.kind != tokenComment && !p.isPunct("}") {
			return nil, p.expected(`"," or "}"`)
		}
		if t := p.peek(); t.kind == tokenComment {
			if c.doc == nil {
				c.doc = []string{t.text}
			}
			p.take()
		}
		out = append(out, c)
	}
}

func (p *parser) page(doc []string) (*syntaxPage, error) {
	g := &syntaxPage{doc: doc}
	var err error
	if g.name, err = p.name("a page name"); err != nil {
		return nil, err
	}
	if err = p.word("size"); err != nil {
		return nil, err
	}
	if g.size, err = p.number("a size in bytes"); err != nil {
		return nil, err
	}
	if err = p.word("slots"); err != nil {
		return nil, err
	}
	if g.slots, err = p.number("a number of slots"); err != nil {
		return nil, err
	}
	if err = p.word("of"); err != nil {
		return nil, err
	}
	if g.record, err = p.name("a record name"); err != nil {
		return nil, err
	}
	if err = p.word("by"); err != nil {
		return nil, err
	}
	if g.by, err = p.name("the name of an integer field"); err != nil {
		return nil, err
	}
	_, err = p.endOfLine()
	return g, err
}

func (p *parser) record(doc []string, key bool) (*syntaxRecord, error) {
	what := "a record name"
	if key {
		what = "a key name"
	}
	name, err := p.name(what)
	if err != nil {
		return nil, err
	}
	r := &syntaxRecord{doc: doc, key: key, name: name.text, at: name.at}
	if err := p.openBlock("after the " + strings.TrimPrefix(what, "a ")); err != nil {
		return nil, err
	}
	r.fields, err = p.fields()
	return r, err
}

// fields reads the fields of a block up to its closing brace and line end.
func (p *parser) fields() ([]*syntaxField, error) {
	var out []*syntaxField
	for {
		doc := p.comments()
		if p.isPunct("}") {
			p.take()
			_, err := p.endOfLine()
			return out, err
		}
		f, err := p.field(doc)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
}

func (p *parser) openBlock(what string) error {
	if err := p.punct("{", what); err != nil {
		return err
	}
	_, err := p.endOfLine()
	return err
}

func (p *parser) vector(doc []string) (*syntaxVector, error) {
	v := &syntaxVector{doc: doc}
	var err error
	if v.name, err = p.name("a vector name"); err != nil {
		return nil, err
	}
	if v.record, err = p.name("a record name"); err != nil {
		return nil, err
	}
	if p.isWord("version") {
		p.take()
		n, err := p.number("a version")
		if err != nil {
			return nil, err
		}
		v.version = &n
	}
	if err := p.openBlock("after the record name"); err != nil {
		return nil, err
	}
	v.values, err = p.values()
	return v, err
}

// values reads the values of a vector up to its closing brace and line end.
func (p *parser) values() ([]syntaxValue, error) {
	var out []syntaxValue
	for {
		p.comments()
		if p.isPunct("}") {
			p.take()
			_, err := p.endOfLine()
			return out, err
		}
		x, err := p.value()
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
}

// value reads `Field = 7`, `Field = "text"`, `Field = hex "00ff"`,
// `Field = V1`, `Field = A | B` or `Group { ... }`.
func (p *parser) value() (syntaxValue, error) {
	x := syntaxValue{}
	var err error
	if x.field, err = p.name(`a field name or "}"`); err != nil {
		return x, err
	}
	if p.isPunct("{") {
		p.take()
		if _, err = p.endOfLine(); err != nil {
			return x, err
		}
		x.entry, err = p.values()
		if x.entry == nil {
			x.entry = []syntaxValue{}
		}
		return x, err
	}
	if err = p.punct("=", "and a value"); err != nil {
		return x, err
	}
	x.value, err = p.literal("an integer, a string, hex digits or the name of a value", true)
	if err != nil {
		return x, err
	}
	_, err = p.endOfLine()
	return x, err
}
