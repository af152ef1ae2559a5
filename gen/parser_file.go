package gen

const declarations = `"record", "key", "enum", "flags", "page" or "vector"`

// file reads a schema into its syntax tree. Behind a mistake it goes on at the
// next declaration; what it has told is in p.told.
func (p *parser) file() *syntaxFile {
	f := &syntaxFile{lost: map[string]bool{}}
	for first := true; ; first = false {
		doc := p.comments()
		start := p.pos
		if doc == nil && start > 1 && p.tokens[start-2].kind == tokenBad {
			doc = []string{""} // that line may have been a comment
		}
		if p.peek().kind == tokenEOF && (!first || len(p.told.list) > 0) {
			return f
		}
		if first && !p.isWord("package") {
			p.told.add(p.expected(`"package"`))
			p.resume(start)
			continue
		}
		if !p.told.add(p.declaration(f, doc)) {
			p.resume(start)
			p.lose(f, start)
		}
	}
}

// resume goes on to the next declaration: a line that begins with the word of one
// where no brace is open since start, or one at the left margin that looks like one.
func (p *parser) resume(start int) {
	depth := 0
	for i := start; p.tokens[i].kind != tokenEOF; i++ {
		switch p.tokens[i].raw {
		case "{":
			depth++
		case "}":
			depth--
		}
		if i >= p.pos && p.begins(i) && (depth <= 0 || p.tokens[i].at.Col == 1 && p.declares(i)) {
			p.pos = p.commentsAbove(i)
			return
		}
	}
	p.pos = len(p.tokens) - 1
}

// commentsAbove returns the first token of the comment lines directly above line
// start i, which are not behind p.pos, or i.
func (p *parser) commentsAbove(i int) int {
	for i-2 >= p.pos && p.tokens[i-1].kind == tokenNewline && p.tokens[i-2].kind == tokenComment &&
		(i == 2 || p.tokens[i-3].kind == tokenNewline) {
		i -= 2
	}
	return i
}

// declarationWords begin a declaration.
var declarationWords = map[string]bool{"record": true, "key": true, "enum": true, "flags": true, "page": true, "vector": true}

// begins says whether token i begins a line and is the word of a declaration.
func (p *parser) begins(i int) bool {
	return (i == 0 || p.tokens[i-1].kind == tokenNewline) && declarationWords[p.tokens[i].raw]
}

// declares says whether the line from token i on looks like a declaration.
func (p *parser) declares(i int) bool {
	switch {
	case p.tokens[i+1].kind != tokenIdent:
		return false
	case p.tokens[i].raw == "page":
		return p.tokens[i+2].raw == "size"
	}
	for ; p.tokens[i].kind != tokenNewline && p.tokens[i].kind != tokenEOF; i++ {
		if p.tokens[i].raw == "{" {
			return true
		}
	}
	return false
}

// lose notes what may have been declared from start on, up to where the parser
// goes on.
func (p *parser) lose(f *syntaxFile, start int) {
	f.stray = f.stray || !declarationWords[p.tokens[start].raw] || p.tokens[start+1].kind != tokenIdent
	for i := start + 1; i < p.pos; i++ {
		if before := p.tokens[i-1].raw; p.tokens[i].kind == tokenIdent && (declarationWords[before] || before == "of") {
			f.lost[p.tokens[i].text] = true
		}
	}
}

func (p *parser) declaration(f *syntaxFile, doc []string) error {
	if p.peek().kind != tokenIdent {
		return p.expected(declarations)
	}
	t := p.take()
	switch t.text {
	case "package":
		if f.pkg.text != "" {
			return p.fail(t.at, "expected a record or a vector, found a second package line")
		}
		name, err := p.name("a package name")
		if err != nil {
			return err
		}
		f.pkg, f.doc = name, doc
		_, err = p.endOfLine()
		return err
	case "byteorder":
		return p.byteOrder(f)
	case "enum", "flags":
		e, err := p.enum(doc, t.text == "flags")
		if err == nil {
			f.enums = append(f.enums, e)
		}
		return err
	case "record", "key":
		r, err := p.record(doc, t.text == "key")
		if err == nil {
			f.records = append(f.records, r)
		}
		return err
	case "page":
		g, err := p.page(doc)
		if err == nil {
			f.pages = append(f.pages, g)
		}
		return err
	case "vector":
		v, err := p.vector(doc)
		if err == nil {
			f.vectors = append(f.vectors, v)
		}
		return err
	}
	return p.fail(t.at, "expected %s, found %s", declarations, t.describe())
}

func (p *parser) byteOrder(f *syntaxFile) error {
	order, err := p.name(`"little" or "big"`)
	switch {
	case err != nil:
		return err
	case order.text != "little" && order.text != "big":
		return p.fail(order.at, `expected "little" or "big", found %q`, order.text)
	case len(f.records)+len(f.enums)+len(f.lost) > 0:
		return p.fail(order.at, "expected the byte order before the first record, enum or flags")
	}
	f.little = order.text == "little"
	_, err = p.endOfLine()
	return err
}
