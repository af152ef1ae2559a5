package gen

import (
	"fmt"
	"strings"
	"unicode"
)

// kaitaiWords mean something in Kaitai expressions, so they name nothing.
var kaitaiWords = map[string]bool{"and": true, "or": true, "not": true, "true": true, "false": true,
	"sizeof": true, "bitsizeof": true, "as": true}

// snake turns a Go name into one of Kaitai: QueueID into queue_id.
func snake(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, c := range runes {
		switch {
		case c > unicode.MaxASCII:
			fmt.Fprintf(&b, "x%x", c)
			continue
		case i > 0 && unicode.IsUpper(c) && runes[i-1] != '_':
			before := unicode.IsUpper(runes[i-1])
			behind := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if !before || behind {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(c))
	}
	s := strings.TrimLeft(b.String(), "_")
	if s == "" || s[0] >= '0' && s[0] <= '9' || kaitaiWords[s] {
		s = "x_" + s
	}
	return s
}

// namer gives out names, each once.
type namer map[string]bool

// name returns want, or what is still free of want_2, want_3 and so on.
func (n namer) name(want string) string {
	name := want
	for i := 2; n[name]; i++ {
		name = fmt.Sprintf("%s_%d", want, i)
	}
	n[name] = true
	return name
}

// kaitaiField is how a field is called in its type.
type kaitaiField struct {
	// id is the attribute or instance with the value.
	id string
	// raw is the attribute with what is read if that is not the value, else "".
	raw string
	// length is the attribute with the length or count before the field, wide
	// the one of the other type that it may have.
	length, wide string
	// halves says that raw has hi and lo, each of at most 32 bits.
	halves bool
	// enum is the enum of the value, or "".
	enum string
	// flags are the instances for the values of flags, text the one for bytes
	// that stand for text.
	flags []string
	text  string
}

// kaitaiNames are the names of one layout file and its records.
type kaitaiNames struct {
	types, enums namer
	records      map[*Record]string
	frames       map[*Record]string
	enumOf       map[any]string // by *Enum, or by the *Field that has the choices
	maskOf       map[*Choice]string
	// lists are the types for groups that end before the record does, with the
	// type of an entry.
	lists     map[*Field][2]string
	listOrder []*Field
	// helpers are the types for integers that are read in two halves.
	helpers     map[Int]string
	helperOrder []Int
}

func newKaitaiNames(f *File) *kaitaiNames {
	n := &kaitaiNames{types: namer{}, enums: namer{}, records: map[*Record]string{}, frames: map[*Record]string{},
		enumOf: map[any]string{}, maskOf: map[*Choice]string{}, helpers: map[Int]string{},
		lists: map[*Field][2]string{}}
	for _, r := range f.Records {
		n.records[r] = n.types.name(snake(r.Name))
	}
	for _, r := range f.Records {
		if r.Total != nil {
			n.frames[r] = n.types.name(n.records[r] + "_frame")
		}
	}
	for _, e := range f.Enums {
		if !e.Flags {
			if kaitaiEnumerable(e.Values) {
				n.enumOf[e] = n.enums.name(snake(e.Name))
			}
			continue
		}
		for _, c := range e.Values {
			if len(c.Values) > 0 && kaitaiEnumerable(c.Values) {
				n.maskOf[c] = n.enums.name(snake(e.Name + c.Name))
			}
		}
	}
	for _, r := range f.Records {
		for _, x := range r.Fields {
			if len(x.Choices) > 0 && kaitaiEnumerable(x.Choices) {
				n.enumOf[x] = n.enums.name(n.records[r] + "_" + snake(x.Name))
			}
		}
	}
	return n
}

// kaitaiEnumerable says whether the values can be those of a Kaitai enum: they
// must fit the numbers of JavaScript.
func kaitaiEnumerable(choices []*Choice) bool {
	for _, c := range choices {
		if c.Value.Abs >= 1<<53 {
			return false
		}
	}
	return true
}

// helper returns the type that reads an integer of the size of t in two halves,
// without a sign.
func (n *kaitaiNames) helper(t Int) string {
	t = Int{Bytes: t.Bytes, Little: t.Little}
	if n.helpers[t] == "" {
		order := "be"
		if t.Little {
			order = "le"
		}
		n.helpers[t] = n.types.name(fmt.Sprintf("halves_%d%s", 8*t.Bytes, order))
		n.helperOrder = append(n.helperOrder, t)
	}
	return n.helpers[t]
}

// list returns the type that holds the entries of a group of their type.
func (n *kaitaiNames) list(r *Record, f *Field, entry string) string {
	if n.lists[f][0] == "" {
		n.lists[f] = [2]string{n.types.name(fmt.Sprintf("%s_%s_list", n.records[r], snake(f.Name))), entry}
		n.listOrder = append(n.listOrder, f)
	}
	return n.lists[f][0]
}

// fields names the fields of a record.
func (n *kaitaiNames) fields(r *Record) (map[*Field]*kaitaiField, namer) {
	out := map[*Field]*kaitaiField{}
	ids := namer{}
	for _, f := range r.Fields { // the values first: they get the plain names
		id := snake(f.Name)
		if f.Kind == KindReserved {
			id = fmt.Sprintf("reserved_%d", len(out))
		}
		k := &kaitaiField{id: ids.name(id)}
		out[f] = k
		if f.Enum != nil {
			k.enum = n.enumOf[f.Enum]
		} else if len(f.Choices) > 0 {
			k.enum = n.enumOf[f]
		}
	}
	for _, f := range r.Fields {
		k := out[f]
		switch {
		case f.IsInt():
			k.halves = f.Int.Bytes > 4 && !f.Int.Decimal && (f.Int.Bytes < 8 || f.Int.Ordered || r.masks(f))
			if k.halves || f.Int.Decimal || f.Int.Ordered || f.Int.Signed && f.Int.Bytes == 3 {
				k.raw = ids.name(k.id + "_raw")
			}
		case f.Kind == KindVarBytes:
			k.length = ids.name("len_" + k.id)
			if f.Alt != nil {
				k.wide = ids.name("len_" + k.id + "_wide")
			}
		case f.Kind == KindGroup && f.SizedBy == nil && f.Int.Bytes > 0:
			k.length = ids.name("num_" + k.id)
		}
	}
	return out, ids
}

// masks says whether anybody looks at single bits of f.
func (r *Record) masks(f *Field) bool {
	if f.Enum != nil && f.Enum.Flags {
		return true
	}
	for _, x := range r.Fields {
		for _, c := range x.conds() {
			if c.Field == f && c.Mask != nil {
				return true
			}
		}
	}
	return false
}

// conds returns all conditions of a field.
func (f *Field) conds() []*Cond {
	if f.AltIf == nil {
		return f.If
	}
	return append(f.If[:len(f.If):len(f.If)], f.AltIf)
}
