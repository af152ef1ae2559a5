package gen

import (
	"fmt"
	"math"
)

// intType is an integer type of the language.
type intType struct {
	name   string
	goName string
	bytes  int
	signed bool
}

var intTypes = map[string]intType{
	"i8":  {"i8", "int8", 1, true},
	"i16": {"i16", "int16", 2, true},
	"i32": {"i32", "int32", 4, true},
	"i64": {"i64", "int64", 8, true},
	"u8":  {"u8", "uint8", 1, false},
	"u16": {"u16", "uint16", 2, false},
	"u32": {"u32", "uint32", 4, false},
	"u64": {"u64", "uint64", 8, false},
}

// max returns the largest value of t, cut to what an int64 holds.
func (t intType) max() int64 {
	switch {
	case t.bytes == 8:
		return math.MaxInt64
	case t.signed:
		return 1<<(8*t.bytes-1) - 1
	}
	return 1<<(8*t.bytes) - 1
}

// min returns the smallest value of t.
func (t intType) min() int64 {
	if t.signed {
		return -t.max() - 1
	}
	return 0
}

// checksumCalls gives the Go expression of each algorithm.
var checksumCalls = map[string]string{
	"crc32":  "crc32.ChecksumIEEE(%s)",
	"crc32c": "crc32.Checksum(%s, castagnoli)",
}

// Pos is a place in a record: so many bytes behind an anchor. Anchor 0 is the
// start of the record; the others are the ends of what has no fixed width.
type Pos struct {
	Anchor int
	Off    int
}

// add returns the place n bytes on.
func (p Pos) add(n int) Pos { return Pos{p.Anchor, p.Off + n} }

// expr prints the place as a Go expression over anchors called prefix1,
// prefix2 and so on.
func (p Pos) expr(prefix string) string {
	switch {
	case p.Anchor == 0:
		return fmt.Sprint(p.Off)
	case p.Off == 0:
		return fmt.Sprintf("%s%d", prefix, p.Anchor)
	}
	return fmt.Sprintf("%s%d+%d", prefix, p.Anchor, p.Off)
}

// Kind is what a field is.
type Kind int

// The kinds of fields.
const (
	// KindInt is an integer.
	KindInt Kind = iota
	// KindTotal holds the size of the whole record.
	KindTotal
	// KindMagic tells records apart.
	KindMagic
	// KindVersion is a number above which this code refuses to read.
	KindVersion
	// KindChecksum covers other bytes of the record.
	KindChecksum
	// KindReserved is zero bytes.
	KindReserved
	// KindFixedBytes is bytes of a fixed width.
	KindFixedBytes
	// KindFlagBytes is bytes of one of two widths, told by a flag bit.
	KindFlagBytes
	// KindVarBytes is bytes behind their length.
	KindVarBytes
)

// Choice is a named value.
type Choice struct {
	Doc   []string
	Name  string
	Text  string
	Value int64
}

// Field is a field with its place decided.
type Field struct {
	Doc  []string
	Name string
	Kind Kind
	Int  intType
	// At is where the field starts (its length prefix, if it has one), Data
	// where its bytes start, End where it ends.
	At, Data, End Pos
	// Width is the number of bytes if it is fixed.
	Width int

	// Value is the only legal value of a constant, magic or version.
	Value *Choice
	// Choices are the legal values of an enum or magic.
	Choices  []Choice
	Min, Max *int64
	Late     bool

	// AltWidth, Flag and Mask belong to KindFlagBytes.
	AltWidth int
	Flag     *Field
	Mask     string

	// Alt, Magic and Choice give another prefix type for one magic value.
	Alt    *intType
	Choice *Choice
	// Reserve names the number of bytes to leave behind the data.
	Reserve string

	// Algorithm, From, To, SumMask and Lazy belong to KindChecksum.
	Algorithm string
	From, To  Pos
	SumMask   string
	Lazy      bool
}

// hasStructField says whether the caller sets the field.
func (f *Field) hasStructField() bool {
	switch f.Kind {
	case KindTotal, KindVersion, KindChecksum, KindReserved:
		return false
	}
	return f.Value == nil
}

// isScalar says whether the field is one integer on disk.
func (f *Field) isScalar() bool {
	switch f.Kind {
	case KindReserved, KindFixedBytes, KindFlagBytes, KindVarBytes:
		return false
	}
	return true
}

// limit returns the largest length of variable bytes with prefix type t.
func (f *Field) limit(t intType) int64 {
	n := t.max()
	if f.Max != nil && *f.Max < n {
		n = *f.Max
	}
	return n
}

// Record is a record with all places decided.
type Record struct {
	Doc    []string
	Name   string
	Fields []*Field
	// Size is the size of a record of fixed size, else 0.
	Size int
	// MinSize is the smallest size that a record can have.
	MinSize int
	// Anchors is the number of anchors; the last one is the end of the record
	// if the record ends with variable bytes.
	Anchors int
	Total   *Field
	Magic   *Field
	Version *Field
	Vectors []*Vector
}

// endsVariable says whether the last field ends at the last anchor.
func (r *Record) endsVariable() bool {
	return r.Size == 0 && r.Fields[len(r.Fields)-1].End.Off == 0
}

// end returns the place of the record's end.
func (r *Record) end() Pos { return r.Fields[len(r.Fields)-1].End }

// Value is a value of a vector: Go source for the struct literal.
type Value struct {
	Field *Field
	// Name is the struct field, which differs from Field.Name for a reserve.
	Name string
	Expr string
}

// Vector is a record with known bytes, kept in testdata/NAME.golden.
type Vector struct {
	Doc    []string
	Name   string
	Values []Value
}

// File is a checked schema.
type File struct {
	Doc     []string
	Source  string
	Package string
	Records []*Record
}
