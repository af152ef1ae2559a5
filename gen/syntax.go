package gen

// The syntax tree: what the parser read, before any meaning is checked.

// syntaxFile is one schema file.
type syntaxFile struct {
	doc []string
	// pkg is the name of the package, empty if the line is missing or wrong.
	pkg syntaxName
	// lost are names that may be declared where the syntax is wrong. stray says
	// that there may be others, since not even the word and the name of a
	// declaration stand there.
	lost    map[string]bool
	stray   bool
	little  bool
	enums   []*syntaxEnum
	records []*syntaxRecord
	pages   []*syntaxPage
	vectors []*syntaxVector
}

// syntaxNumber is an integer with the place where it stands.
type syntaxNumber struct {
	value Number
	at    Where
}

// syntaxName is a word with the place where it stands.
type syntaxName struct {
	text string
	at   Where
}

// syntaxLiteral is what stands for a value: an integer, a string or, in
// conditions and vectors, names joined by "|".
type syntaxLiteral struct {
	// kind is tokenInt, tokenString or tokenIdent.
	kind   tokenKind
	number Number
	text   string
	names  []syntaxName
	at     Where
}

// syntaxChoice is one named value of an enum, of flags or of a magic.
type syntaxChoice struct {
	doc   []string
	name  syntaxName
	value syntaxLiteral
	// values are named values within a mask of flags.
	values []syntaxChoice
}

// syntaxEnum is one `enum NAME TYPE { ... }` or `flags NAME TYPE { ... }`.
type syntaxEnum struct {
	doc     []string
	flags   bool
	name    syntaxName
	typ     syntaxName
	open    bool
	choices []syntaxChoice
}

// syntaxRecord is one `record NAME { ... }` or `key NAME { ... }`.
type syntaxRecord struct {
	doc    []string
	key    bool
	name   string
	at     Where
	fields []*syntaxField
}

// syntaxPage is one `page NAME size N slots N of RECORD by FIELD`.
type syntaxPage struct {
	doc         []string
	name        syntaxName
	size, slots syntaxNumber
	record, by  syntaxName
}

// syntaxCond is what follows the word if: FIELD [& mask] [op value], FIELD
// VALUE or FIELD.
type syntaxCond struct {
	field syntaxName
	mask  *syntaxLiteral
	// op is "==", "!=", ">=" or "<=".
	op    string
	value *syntaxLiteral
	// bare is set for a condition that is only a field: the error if that is no
	// bool.
	bare error
}

// syntaxWidth is what stands in brackets behind bytes: a number of bytes; two,
// of which the second holds under a condition; or the field that has it.
type syntaxWidth struct {
	base  syntaxNumber
	alt   *syntaxNumber
	cond  *syntaxCond
	field *syntaxName
}

// syntaxPrefix is a length prefix: of type base, or of type alt under a
// condition.
type syntaxPrefix struct {
	base syntaxName
	alt  *syntaxName
	cond *syntaxCond
}

// syntaxChecksum is what follows the type of a checksum.
type syntaxChecksum struct {
	algorithm syntaxName
	// from is "preceding", "given" or a field.
	from, to syntaxName
	mask     *syntaxNumber
	lazy     bool
}

// syntaxDecimal is `decimal[n] [reversed]`.
type syntaxDecimal struct {
	digits   syntaxNumber
	reversed bool
}

// syntaxMeasure is `length of A..B` or `count of A`.
type syntaxMeasure struct {
	count    bool
	at       Where
	from, to syntaxName
}

// syntaxGroup is what follows the word group.
type syntaxGroup struct {
	// count is the type of a count that stands before the entries; field the
	// field that has it. If both are nil, the entries go on to the end.
	count, field *syntaxName
	// entry names a record; inline holds the fields in braces.
	entry  *syntaxName
	inline *syntaxRecord
}

// syntaxField is one field.
type syntaxField struct {
	doc  []string
	name syntaxName
	// role is "", "total", "magic", "version", "checksum", "group" or
	// "reserved".
	role syntaxName
	// typ is an integer type, the name of an enum, "bytes" or "text".
	typ      syntaxName
	width    *syntaxWidth
	prefix   *syntaxPrefix
	stop     *syntaxNumber // bytes until
	rest     bool          // bytes rest
	decimal  *syntaxDecimal
	checksum *syntaxChecksum
	group    *syntaxGroup

	// options are the words of the options that were read.
	options  map[string]bool
	constant *syntaxLiteral
	choices  []syntaxChoice
	min, max *syntaxNumber
	reserve  *syntaxName
	late     bool
	ordered  *syntaxName
	utf8     *syntaxName
	pad      *syntaxNumber
	cond     *syntaxCond
	measure  *syntaxMeasure

	since, until, from *syntaxNumber
}

// syntaxVector is one `vector NAME RECORD [version N] { ... }`.
type syntaxVector struct {
	doc     []string
	name    syntaxName
	record  syntaxName
	version *syntaxNumber
	values  []syntaxValue
}

// syntaxValue is one `Field = value` or `Group { ... }` of a vector.
type syntaxValue struct {
	field syntaxName
	value syntaxLiteral
	// entry is set instead of value for an entry of a group.
	entry []syntaxValue
}
