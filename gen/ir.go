package gen

// The intermediate representation: records whose places and sizes are decided.
// The checker makes it, every emitter reads it, nobody changes it after that.
// What a schema may not say is refused before there is an IR, so an emitter
// need not check again.

// File is a checked schema.
type File struct {
	// Doc is the comment above the package line.
	Doc []string
	// Path is the name of the file as it was given to Parse, Source its last
	// part.
	Path, Source string
	Package      string
	// Enums holds the enums and flags, in the order of the schema.
	Enums []*Enum
	// Records holds the records and keys, in the order of the schema; the entry
	// of a group that was declared inside a record stands before that record.
	Records []*Record
	Pages   []*Page
}

// Enum is a named integer type: one of some values or, with Flags, a set of
// them.
type Enum struct {
	Doc   []string
	Name  string
	Where Where
	Int   Int
	// Flags says that the values are bits, or masks of several bits.
	Flags bool
	// Open says that other values, or other bits, are legal, too.
	Open   bool
	Values []*Choice
}

// Mask returns the bits of all values.
func (e *Enum) Mask() uint64 {
	var mask uint64
	for _, c := range e.Values {
		mask |= c.Value.Abs
	}
	return mask
}

// Choice is a named value.
type Choice struct {
	Doc   []string
	Name  string
	Where Where
	Value Number
	// Values are the named values of the bits that a flag with several bits
	// covers. If there are any, others but 0 are illegal unless the flags are
	// open.
	Values []*Choice
}

// Record is a record, a key or the entry of a group.
type Record struct {
	Doc   []string
	Name  string
	Where Where
	// Key says that the order of the encoded bytes is the order of the fields,
	// and that the bytes hold nothing behind the key.
	Key bool
	// Entry says that the record is an entry of a group.
	Entry  bool
	Fields []*Field
	// Size is the size of every record if it is fixed, else 0.
	Size int
	// MinSize is the smallest size that a record can have, in any version.
	MinSize int
	// Anchors is the number of anchors; see Pos.
	Anchors int
	// Total, Magic and Version are fields of Fields, or nil.
	Total, Magic, Version *Field
	Vectors               []*Vector
}

// End returns the place of the record's end.
func (r *Record) End() Pos {
	if len(r.Fields) == 0 {
		return Pos{}
	}
	return r.Fields[len(r.Fields)-1].End
}

// Pos is a place in a record: Off bytes behind an anchor. Anchor 0 is the start
// of the record. Each other anchor is the Data or End of exactly one field: of
// one whose width is not fixed, or that is not always there. So the fields say
// in order how to reckon the anchors.
type Pos struct {
	Anchor int
	Off    int
}

// add returns the place n bytes on.
func (p Pos) add(n int) Pos { return Pos{p.Anchor, p.Off + n} }

// Kind is what a field is.
type Kind int

// The kinds of fields.
const (
	// KindInt is an integer: a number, a bool, an Enum, or one of Choices. With
	// Value it is constant, with Measure it counts something else.
	KindInt Kind = iota
	// KindTotal holds the size of the whole record.
	KindTotal
	// KindMagic tells records apart: Value, or one of Choices; never 0.
	KindMagic
	// KindVersion tells which fields there are: FromVersion to Value.
	KindVersion
	// KindChecksum covers other bytes.
	KindChecksum
	// KindReserved is zero bytes.
	KindReserved
	// KindConstBytes is the bytes of Const.
	KindConstBytes
	// KindFixedBytes is Width bytes.
	KindFixedBytes
	// KindPadBytes is at most Width bytes, filled up with Pad.
	KindPadBytes
	// KindFlagBytes is Width bytes, or AltWidth if AltIf holds.
	KindFlagBytes
	// KindVarBytes is bytes behind their length, which is an Int, or an Alt if
	// AltIf holds.
	KindVarBytes
	// KindSizedBytes is bytes whose length is in the field SizedBy.
	KindSizedBytes
	// KindUntilBytes is bytes that end before the first byte Stop, which
	// follows them.
	KindUntilBytes
	// KindRestBytes is bytes up to the end of the record.
	KindRestBytes
	// KindGroup is entries: their count stands before them as an Int, or in the
	// field SizedBy, or, with neither, they go on to the end of the record.
	KindGroup
)

// Field is a field with its place decided.
type Field struct {
	Doc []string
	// Name is "reserved" for reserved bytes, which have no name.
	Name  string
	Where Where
	Kind  Kind
	// Int is the integer of the field, or that of its length or count; it has
	// no bytes if there is none.
	Int Int
	// Enum is the named type of an integer, or nil.
	Enum *Enum
	// At is where the field starts (its length or count, if it has one), Data
	// where its bytes or entries start, End where it ends. A field that is not
	// there has all three at the same place.
	At, Data, End Pos
	// Width is the number of bytes if it is fixed, else the smallest one.
	Width int

	// If says when the field is there: when all conditions hold.
	If []*Cond
	// Since and Until are the first and the last version with the field; 0 is
	// no bound. The conditions in If include them.
	Since, Until int64

	// Value is the only legal value of a constant, a magic or a version: of the
	// last, the one that Encode writes.
	Value *Number
	// FromVersion is the oldest version that can be read.
	FromVersion int64
	// Choices are the legal values of an integer without an Enum, or of a magic.
	Choices []*Choice
	// Min and Max bound an integer, the length of bytes or the count of
	// entries; nil is no bound beside that of the type.
	Min, Max *Number
	// Late says that Encode may write any value, since the true one is set by a
	// patch afterwards.
	Late bool

	// Measure says that Encode computes the integer: from the bytes or entries
	// of Of, or from the bytes from the start of Of to the end of OfEnd.
	Measure   Measure
	Of, OfEnd *Field
	// SizedBy is the field with the length or count of this one.
	SizedBy *Field

	// Text says that bytes stand for text; UTF8 says that they must be valid.
	Text, UTF8 bool
	// Const are the bytes of KindConstBytes.
	Const []byte
	// Pad belongs to KindPadBytes, Stop to KindUntilBytes.
	Pad, Stop byte
	// AltWidth belongs to KindFlagBytes, Alt to KindVarBytes, AltIf to both.
	AltWidth int
	Alt      *Int
	AltIf    *Cond
	// Reserve names the number of zero bytes to leave behind the data, counted
	// in the length.
	Reserve string

	// Entry is the record of an entry of KindGroup.
	Entry *Record

	// Sum belongs to KindChecksum.
	Sum *Sum
}

// Measure is what an integer measures.
type Measure int

// The measures.
const (
	// MeasureNone is for integers that the caller sets.
	MeasureNone Measure = iota
	// MeasureLength counts bytes.
	MeasureLength
	// MeasureCount counts entries.
	MeasureCount
)

// Sum is a checksum.
type Sum struct {
	// Algorithm is a key of the table in algorithms.go: crc32, crc32c, ...
	Algorithm string
	// Given says that the caller gives the bytes; they are not in the record.
	Given bool
	// Preceding says that everything before the checksum is covered.
	Preceding bool
	// From and To are the first place covered and the first one behind. First
	// and Last are the fields of the range, nil for Preceding and Given. If they
	// are the same field, its bytes are covered without their length.
	From, To    Pos
	First, Last *Field
	// Mask is and-ed to the sum; nil is none.
	Mask *Number
	// Lazy says that Parse does not check the sum; CheckX of the view does.
	Lazy bool
}

// Cond is a condition on an integer field: Field&Mask Op Value.
type Cond struct {
	Field *Field
	// Mask is nil if the whole integer is compared.
	Mask *Number
	// Op is "==", "!=", ">=" or "<=".
	Op    string
	Value Number
	// MaskName and ValueName are the names that the schema has for them, or "".
	MaskName, ValueName string
}

// String returns the condition as the language writes it.
func (c *Cond) String() string {
	s := c.Field.Name
	if c.Mask != nil {
		s += " & " + nameOr(c.MaskName, *c.Mask)
		if c.Op == "!=" && c.Value.Abs == 0 {
			return s
		}
	}
	return s + " " + c.Op + " " + nameOr(c.ValueName, c.Value)
}

func nameOr(name string, n Number) string {
	if name != "" {
		return name
	}
	return n.Text
}

// Page is a file of slots, each of which holds one record: the one with the
// largest By holds, and the next write goes to another slot.
type Page struct {
	Doc   []string
	Name  string
	Where Where
	// Size is the number of bytes of the page, a multiple of Slots.
	Size, Slots int
	Record      *Record
	By          *Field
}

// SlotSize returns the number of bytes of a slot.
func (p *Page) SlotSize() int { return p.Size / p.Slots }

// Vector is a record with known bytes, kept in testdata/NAME.golden.
type Vector struct {
	Doc  []string
	Name string
	// Version is the version of the bytes. If it is not the newest, they are
	// only read.
	Version int64
	Values  []Value
	// Given are the bytes that a checksum over given covers.
	Given []byte
}

// Value is the value of one field in a vector.
type Value struct {
	Field *Field
	// Reserve says that Num is the number of bytes that Field.Reserve names.
	Reserve bool
	// Num is the value of an integer, Bytes that of bytes.
	Num   Number
	Bytes []byte
	// Names holds the choices by which the schema names the value, if it does.
	Names []*Choice
	// Entries are the entries of a group.
	Entries [][]Value
}

// InStruct says whether the caller of Encode sets the field.
func (f *Field) InStruct() bool {
	switch f.Kind {
	case KindTotal, KindVersion, KindChecksum, KindReserved, KindConstBytes:
		return false
	}
	return f.Value == nil && f.Measure == MeasureNone && f.Until == 0
}

// IsInt says whether the field is one integer on disk.
func (f *Field) IsInt() bool { return f.Kind <= KindChecksum }

// IsBytes says whether the field is bytes or text that a view returns.
func (f *Field) IsBytes() bool { return f.Kind >= KindConstBytes && f.Kind < KindGroup }

// limit returns the largest length or count that t and f.Max allow.
func (f *Field) limit(t Int) uint64 {
	n := t.Max().Abs
	if f.Max != nil && f.Max.Abs < n {
		n = f.Max.Abs
	}
	return n
}

// single returns the only measured field, or nil if there are several.
func (f *Field) single() *Field {
	if f.Of == f.OfEnd {
		return f.Of
	}
	return nil
}
