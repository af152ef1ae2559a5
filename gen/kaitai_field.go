package gen

import (
	"fmt"
	"strings"
)

// kaitaiType builds the Kaitai type of one record.
type kaitaiType struct {
	names     *kaitaiNames
	r         *Record
	ids       map[*Field]*kaitaiField
	taken     namer
	seq       []*attribute
	instances []*attribute
}

func (n *kaitaiNames) newType(r *Record) *kaitaiType {
	k := &kaitaiType{names: n, r: r}
	k.ids, k.taken = n.fields(r)
	for _, f := range r.Fields {
		k.field(f)
	}
	return k
}

// intAttribute says how an integer of type t is read; halves says that it is
// read in two.
func (n *kaitaiNames) intAttribute(t Int, halves bool) attribute {
	order := "be"
	if t.Little {
		order = "le"
	}
	switch {
	case halves:
		return attribute{typ: n.helper(t)}
	case t.Decimal:
		return attribute{typ: "str", size: fmt.Sprint(t.Bytes), encoding: "ASCII"}
	case t.Bytes == 3:
		return attribute{typ: "b24" + order}
	}
	letter := "u"
	if t.Signed && !t.Ordered {
		letter = "s"
	}
	if t.Bytes == 1 {
		order = ""
	}
	return attribute{typ: fmt.Sprintf("%s%d%s", letter, t.Bytes, order)}
}

func (k *kaitaiType) field(f *Field) {
	id := k.ids[f]
	if f.IsInt() {
		k.integer(f, id)
		return
	}
	condition := k.conditionOf(f)
	for _, x := range []struct {
		id    string
		t     *Int
		other bool
	}{{id.length, &f.Int, false}, {id.wide, f.Alt, true}} {
		if x.id == "" {
			continue
		}
		a := k.names.intAttribute(*x.t, false)
		a.id, a.condition, a.valid = x.id, condition, lengthValid(f, *x.t)
		if f.Alt != nil {
			a.condition = k.oneCondition(f.AltIf)
			if !x.other {
				a.condition = "not (" + a.condition + ")"
			}
		}
		a.doc = []string{"The number of bytes of " + id.id + "."}
		if f.Kind == KindGroup {
			a.doc = []string{"The number of entries of " + id.id + "."}
		}
		k.seq = append(k.seq, &a)
	}
	a := &attribute{id: id.id, condition: condition, doc: k.doc(f)}
	if f.Kind == KindGroup {
		k.group(f, a)
	} else {
		k.bytes(f, a)
	}
	k.seq = append(k.seq, a)
	if f.Text && !f.UTF8 && f.Kind != KindConstBytes {
		id.text = k.taken.name(id.id + "_text")
		k.instances = append(k.instances, &attribute{id: id.text, condition: condition,
			value: id.id + `.to_s("UTF-8")`, doc: []string{id.id + " as text; it may not be valid UTF-8."}})
	}
}

// conditionOf prints when a field is there, "" for always.
func (k *kaitaiType) conditionOf(f *Field) string {
	if len(f.If) == 0 {
		return ""
	}
	return k.condition(f.If)
}

// lengthValid is what a length or count of type t must be.
func lengthValid(f *Field, t Int) []string {
	low, high := NumberOf(0), t.Max()
	if f.Min != nil {
		low = *f.Min
	}
	if f.Max != nil {
		high = *f.Max
	}
	var out []string
	if t.Signed || low.Abs > 0 {
		out = append(out, "min: "+low.String())
	}
	if high.Abs < t.Max().Abs || t.Signed && t.Bytes == 3 {
		out = append(out, "max: "+high.String())
	}
	return out
}

// integer makes the attribute of an integer, and an instance for its value if
// Kaitai cannot read that at once.
func (k *kaitaiType) integer(f *Field, id *kaitaiField) {
	a := k.names.intAttribute(f.Int, id.halves)
	a.id, a.condition = id.id, k.conditionOf(f)
	if id.raw == "" {
		a.enum, a.doc, a.valid = id.enum, k.doc(f), k.valid(f, id)
		k.seq = append(k.seq, &a)
	} else {
		a.id, a.doc, a.valid = id.raw, []string{"What " + id.id + " is made from."}, k.valid(f, id)
		k.seq = append(k.seq, &a)
		k.instances = append(k.instances, &attribute{id: id.id, value: rawValue(f.Int, id.raw), enum: id.enum,
			condition: a.condition, doc: k.doc(f)})
	}
	if f.Enum != nil && f.Enum.Flags {
		k.flags(f, id, a.condition)
	}
}

// valid is what an integer must be.
func (k *kaitaiType) valid(f *Field, id *kaitaiField) []string {
	expr := func(test string) []string {
		if test == "" {
			return nil
		}
		return []string{"expr: " + (&yaml{}).quote(test)}
	}
	low, high := f.Min, f.Max
	switch {
	case f.Kind == KindVersion:
		n := NumberOf(f.FromVersion)
		low, high = &n, f.Value
	case f.Value != nil:
		low, high = f.Value, f.Value
	case f.Kind == KindTotal:
		n := NumberOf(int64(k.r.MinSize))
		low = &n
		if k.r.Size > 0 {
			high = &n
		}
	case f.Enum != nil && f.Enum.Flags:
		if f.Enum.Open {
			return nil
		}
		return expr(flagsTest(f.Enum, "_", id.halves))
	case f.Enum != nil && f.Enum.Open:
		return nil
	case f.Enum != nil || len(f.Choices) > 0:
		return k.validChoice(f, id)
	case f.Int.Bool:
		n := NumberOf(1)
		high = &n
	case f.Measure != MeasureNone:
		if f.Int.Signed {
			n := NumberOf(0)
			low = &n
		}
		if of := f.single(); of != nil && of.SizedBy == f && len(of.If) == 0 {
			low, high = orNumber(of.Min, low), of.Max
		}
	}
	if id.raw != "" {
		return expr(boundsTest(rawValue(f.Int, "_"), low, high))
	}
	if low != nil && high != nil && low.Cmp(*high) == 0 {
		return []string{"eq: " + kaitaiNumber(*low)}
	}
	var out []string
	if low != nil && low.Cmp(f.Int.Min()) > 0 {
		out = append(out, "min: "+kaitaiNumber(*low))
	}
	if high != nil && high.Cmp(f.Int.Max()) < 0 {
		out = append(out, "max: "+kaitaiNumber(*high))
	}
	return out
}

func orNumber(a, b *Number) *Number {
	if a != nil {
		return a
	}
	return b
}

// kaitaiNumber prints a number as the schema has it if it is in hex there.
func kaitaiNumber(n Number) string {
	if strings.HasPrefix(n.Text, "0x") || strings.HasPrefix(n.Text, "0X") {
		return fmt.Sprintf("%#x", n.Abs)
	}
	return n.String()
}

// validChoice is that an integer is one of its named values.
func (k *kaitaiType) validChoice(f *Field, id *kaitaiField) []string {
	choices := f.Choices
	if f.Enum != nil {
		choices = f.Enum.Values
	}
	if id.raw == "" && id.enum != "" {
		return []string{"in-enum: true"}
	}
	x := "_"
	if id.raw != "" {
		x = "(" + rawValue(f.Int, "_") + ")"
	}
	var list []string
	for _, c := range choices {
		list = append(list, fmt.Sprintf("%s == %s", x, c.Value))
	}
	return []string{"expr: " + (&yaml{}).quote(strings.Join(list, " or "))}
}

// flags makes an instance for each flag, and one for each mask of several bits.
func (k *kaitaiType) flags(f *Field, id *kaitaiField, condition string) {
	x := id.number()
	if id.halves {
		x = id.raw
	}
	for _, c := range f.Enum.Values {
		mask := f.Enum.Int.bits(c.Value)
		a := &attribute{id: k.taken.name(id.id + "_" + snake(c.Name)), condition: condition, doc: c.Doc}
		if mask&(mask-1) == 0 {
			a.value = maskTest(x, id.halves, mask, "!=", 0)
		} else {
			a.value = fmt.Sprintf("%s & %#x", x, mask)
			if id.halves {
				a.value = fmt.Sprintf("(%s.hi & %#x) * 4294967296 + (%s.lo & %#x)", x, mask>>32, x, mask&(1<<32-1))
			}
			a.enum = k.names.maskOf[c]
		}
		id.flags = append(id.flags, a.id)
		k.instances = append(k.instances, a)
	}
}

// bytes fills in the attribute of bytes.
func (k *kaitaiType) bytes(f *Field, a *attribute) {
	id, width := k.ids[f], fmt.Sprint(f.Width)
	switch f.Kind {
	case KindReserved:
		a.contents = make([]byte, f.Width)
		return
	case KindConstBytes:
		a.contents = f.Const
		return
	case KindFixedBytes:
		a.size = width
	case KindPadBytes:
		a.size = width
		a.more = append(a.more, fmt.Sprintf("pad-right: %#02x", f.Pad))
	case KindFlagBytes:
		a.size = fmt.Sprintf("%s ? %d : %d", k.oneCondition(f.AltIf), f.AltWidth, f.Width)
	case KindVarBytes:
		a.size = id.length
		if f.Alt != nil {
			a.size = fmt.Sprintf("%s ? %s : %s", k.oneCondition(f.AltIf), id.wide, id.length)
		}
	case KindSizedBytes:
		a.size = k.ids[f.SizedBy].id
	case KindUntilBytes:
		a.more = append(a.more, fmt.Sprintf("terminator: %#02x", f.Stop))
	case KindRestBytes:
		if n := k.r.trailing(f); n > 0 {
			a.size = fmt.Sprintf("_io.size - _io.pos - %d", n)
		} else {
			a.more = append(a.more, "size-eos: true")
		}
	}
	if f.UTF8 {
		a.typ, a.encoding = "str", "UTF-8"
		return
	}
	if f.Kind == KindUntilBytes || f.Kind == KindRestBytes || f.Kind == KindSizedBytes {
		if test := boundsTest("_.length", f.Min, f.Max); test != "" {
			a.valid = []string{"expr: " + (&yaml{}).quote(test)}
		}
	}
}

// group fills in the attribute of a group.
func (k *kaitaiType) group(f *Field, a *attribute) {
	id := k.ids[f]
	a.typ = k.names.records[f.Entry]
	if frame := k.names.frames[f.Entry]; frame != "" {
		a.typ = frame
	}
	switch n := k.r.trailing(f); {
	case f.SizedBy != nil:
		a.repeat = k.ids[f.SizedBy].id
	case id.length != "":
		a.repeat = id.length
	case n == 0:
		a.more = append(a.more, "repeat: eos")
	default:
		a.size = fmt.Sprintf("_io.size - _io.pos - %d", n)
		a.typ = k.names.list(k.r, f, a.typ)
	}
}
