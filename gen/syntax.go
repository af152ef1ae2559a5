package gen

// The syntax tree: what the parser read, before any meaning is checked.

// syntaxFile is one schema file.
type syntaxFile struct {
	doc     []string
	pkg     string
	records []*syntaxRecord
	vectors []*syntaxVector
}

// syntaxRecord is one `record NAME { ... }`.
type syntaxRecord struct {
	doc    []string
	name   string
	at     place
	fields []*syntaxField
}

// syntaxNumber is an integer with the place where it stands.
type syntaxNumber struct {
	value int64
	text  string
	at    place
}

// syntaxName is a word with the place where it stands.
type syntaxName struct {
	text string
	at   place
}

// syntaxChoice is one named value of an enum or magic.
type syntaxChoice struct {
	doc   []string
	name  syntaxName
	value syntaxNumber
}

// syntaxWidth is a byte width that may hang on a flag bit:
// base, or alt if flag & mask.
type syntaxWidth struct {
	base syntaxNumber
	cond bool
	alt  syntaxNumber
	flag syntaxName
	mask syntaxNumber
}

// syntaxPrefix is a length prefix whose type may hang on the magic: base, or
// alt if the magic field has the given named value.
type syntaxPrefix struct {
	base   syntaxName
	cond   bool
	alt    syntaxName
	magic  syntaxName
	choice syntaxName
}

// syntaxChecksum is what follows the word checksum.
type syntaxChecksum struct {
	algorithm syntaxName
	preceding bool
	from, to  syntaxName
	mask      *syntaxNumber
	lazy      bool
}

// syntaxField is one field line.
type syntaxField struct {
	doc  []string
	name syntaxName
	// role is "", "total", "magic", "version", "checksum" or "reserved".
	role syntaxName
	// typ is an integer type or "bytes".
	typ      syntaxName
	width    *syntaxWidth
	prefix   *syntaxPrefix
	checksum *syntaxChecksum
	constant *syntaxNumber
	choices  []syntaxChoice
	min, max *syntaxNumber
	reserve  *syntaxName
	late     bool
}

// syntaxVector is one `vector NAME RECORD { ... }`.
type syntaxVector struct {
	doc    []string
	name   syntaxName
	record syntaxName
	values []syntaxValue
}

// syntaxValue is one `Field = value` of a vector.
type syntaxValue struct {
	field syntaxName
	// kind tells which of the others is set: tokenInt, tokenString, tokenIdent.
	kind   tokenKind
	number int64
	text   string
	at     place
}
