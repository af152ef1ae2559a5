package gen

import (
	"fmt"
	"strings"
)

// A lock file holds what schemas said when they were accepted: one block for
// each declaration, one line for each field, made of words and of words with a
// value (key=value). It is written and compared, never read as a schema.

const lockHead = `# The layouts of package %s, as they were accepted. layoutgen wrote this file and
# checks schemas against it: a change after which old bytes could not be read, or
# would mean something else, is refused. layoutgen -accept writes it anew.
`

// LockText returns the lock file for the schemas of a package.
func LockText(files []*File) string {
	var b strings.Builder
	if len(files) > 0 {
		fmt.Fprintf(&b, lockHead, files[0].Package)
	}
	for _, block := range lockBlocks(files) {
		fmt.Fprintf(&b, "\n%s %s %s\n", block.what, block.name, block.attrs)
		for _, l := range block.lines {
			fmt.Fprintf(&b, "\t%s %s\n", l.name, l.attrs)
		}
	}
	return strings.ReplaceAll(b.String(), " \n", "\n")
}

// lockLine is one line of a block.
type lockLine struct {
	name  string
	attrs lockAttrs
	at    Where
}

// lockBlock is one declaration.
type lockBlock struct {
	what, name string
	attrs      lockAttrs
	lines      []lockLine
	// openEnums are the enums and flags of the schemas that take any value.
	openEnums map[string]bool
	// file and at say where the schema has it; they are empty of a lock file.
	file string
	at   Where
}

// lockAttrs are words, and words with a value, in order.
type lockAttrs []string

func (a lockAttrs) String() string { return strings.Join(a, " ") }

// get returns the value of a key, and whether it is there.
func (a lockAttrs) get(key string) (string, bool) {
	for _, x := range a {
		if k, v, _ := strings.Cut(x, "="); k == key {
			return v, true
		}
	}
	return "", false
}

// lockBlocks describes all declarations of some files.
func lockBlocks(files []*File) []lockBlock {
	var out []lockBlock
	for _, f := range files {
		for _, e := range f.Enums {
			out = append(out, e.lock(f))
		}
		for _, r := range f.Records {
			out = append(out, r.lock(f))
		}
		for _, p := range f.Pages {
			attrs := lockAttrs{fmt.Sprintf("size=%d", p.Size), fmt.Sprintf("slots=%d", p.Slots), "of=" + p.Record.Name, "by=" + p.By.Name}
			out = append(out, lockBlock{"page", p.Name, attrs, nil, nil, f.Path, p.Where})
		}
	}
	return out
}

func (e *Enum) lock(f *File) lockBlock {
	b := lockBlock{what: "enum", name: e.Name, file: f.Path, at: e.Where}
	if e.Flags {
		b.what = "flags"
	}
	b.attrs = lockAttrs{"type=" + e.Int.Name()}
	if e.Open {
		b.attrs = append(b.attrs, "open")
	}
	for _, c := range e.Values {
		b.lines = append(b.lines, lockLine{c.Name, lockAttrs{"value=" + c.Value.String()}, c.Where})
		for _, x := range c.Values {
			b.lines = append(b.lines, lockLine{c.Name + "." + x.Name, lockAttrs{"value=" + x.Value.String()}, x.Where})
		}
	}
	return b
}

func (r *Record) lock(f *File) lockBlock {
	b := lockBlock{what: "record", name: r.Name, file: f.Path, at: r.Where}
	if r.Key {
		b.what = "key"
	}
	if v := r.Version; v != nil {
		b.attrs = lockAttrs{fmt.Sprintf("version=%s", v.Value), fmt.Sprintf("from=%d", v.FromVersion)}
	}
	for _, x := range r.Fields {
		b.lines = append(b.lines, lockLine{x.Name, x.lock(), x.Where})
	}
	return b
}

// kindNames are the words for the kinds in a lock file.
var kindNames = map[Kind]string{
	KindInt: "int", KindTotal: "total", KindMagic: "magic", KindVersion: "version", KindChecksum: "checksum",
	KindReserved: "reserved", KindConstBytes: "const", KindFixedBytes: "bytes", KindPadBytes: "padded",
	KindFlagBytes: "bytes-of-two-widths", KindVarBytes: "bytes-with-length", KindSizedBytes: "bytes-sized",
	KindUntilBytes: "bytes-until", KindRestBytes: "bytes-rest", KindGroup: "group",
}

// lock describes a field.
func (f *Field) lock() lockAttrs {
	a := lockAttrs{"kind=" + kindNames[f.Kind]}
	add := func(is bool, key string, value any) {
		if is {
			a = append(a, fmt.Sprintf("%s=%v", key, value))
		}
	}
	typ := f.Int.Name()
	if f.Int.Ordered {
		typ += "-ordered"
	}
	add(f.Int.Bytes > 0 && f.SizedBy == nil, "type", strings.ReplaceAll(typ, " ", "-"))
	add(f.Enum != nil, "enum", f.enumName())
	add(!f.IsInt() && !f.isDynamic(), "width", f.Width)
	add(f.AltWidth > 0, "or", f.AltWidth)
	if f.Alt != nil {
		add(true, "or", f.Alt.Name())
	}
	if f.AltIf != nil {
		add(true, "or-if", f.AltIf.lock())
	}
	if f.Value != nil && f.Kind != KindVersion {
		add(true, "value", *f.Value)
	}
	var values []string
	for _, c := range f.Choices {
		values = append(values, c.Name+":"+c.Value.String())
	}
	add(values != nil, "values", strings.Join(values, ","))
	add(f.Const != nil, "is", fmt.Sprintf("%x", f.Const))
	add(f.Kind == KindPadBytes, "pad", f.Pad)
	add(f.Kind == KindUntilBytes, "stop", f.Stop)
	if f.SizedBy != nil {
		add(true, "by", f.SizedBy.Name)
	}
	if f.Entry != nil {
		add(true, "of", f.Entry.Name)
	}
	if f.Measure != MeasureNone {
		add(f.Measure == MeasureLength, "length", f.Of.Name+".."+f.OfEnd.Name)
		add(f.Measure == MeasureCount, "count", f.Of.Name)
	}
	if f.Sum != nil {
		add(true, "sum", f.Sum.Algorithm)
		add(true, "over", f.Sum.over())
		if f.Sum.Mask != nil {
			add(true, "mask", *f.Sum.Mask)
		}
		if f.Sum.Lazy {
			a = append(a, "lazy")
		}
	}
	if f.Min != nil {
		add(true, "min", *f.Min)
	}
	if f.Max != nil {
		add(true, "max", *f.Max)
	}
	if f.UTF8 {
		a = append(a, "utf8")
	}
	for _, c := range f.encodeConds() {
		add(true, "if", c.lock())
	}
	add(f.Since > 0, "since", f.Since)
	add(f.Until > 0, "until", f.Until)
	return a
}

func (f *Field) enumName() string {
	if f.Enum == nil {
		return ""
	}
	return f.Enum.Name
}

// over names what a checksum covers.
func (s *Sum) over() string {
	switch {
	case s.Given:
		return "given"
	case s.Preceding:
		return "preceding"
	case s.First == s.Last:
		return s.First.Name
	}
	return s.First.Name + ".." + s.Last.Name
}

// lock describes a condition by its numbers, since names may change.
func (c *Cond) lock() string {
	s := c.Field.Name
	if c.Mask != nil {
		s += "&" + c.Mask.String()
	}
	return s + c.Op + c.Value.String()
}
