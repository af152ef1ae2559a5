package gen

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
)

// recordMaker makes random bytes that are a record. It knows the layout only
// from the IR, and computes no checksums, which Kaitai does not look at.
type recordMaker struct {
	*rand.Rand
	r *Record
	b []byte
	// nums, starts and ends are the value and the place of each field so far.
	nums         map[*Field]Number
	starts, ends map[*Field]int
	// counts are lengths and counts that stand before what they count.
	counts map[*Field]int
}

// makeRecord returns random bytes of a record, and false if what was drawn does
// not fit its lengths.
func makeRecord(r *rand.Rand, rec *Record) ([]byte, bool) {
	m := &recordMaker{Rand: r, r: rec, nums: map[*Field]Number{}, starts: map[*Field]int{}, ends: map[*Field]int{},
		counts: map[*Field]int{}}
	for _, f := range rec.Fields {
		if !slices.ContainsFunc(f.If, func(c *Cond) bool { return !c.holds(m.nums[c.Field]) }) {
			m.starts[f] = len(m.b)
			if !m.field(f) {
				return nil, false
			}
			m.ends[f] = len(m.b)
		}
	}
	// What is measured is known now.
	for _, f := range rec.Fields {
		n := 0
		switch {
		case f.Kind == KindTotal:
			n = len(m.b)
		case f.Measure == MeasureCount || f.Measure == MeasureLength && f.Of.SizedBy == f:
			n = m.counts[f]
		case f.Measure == MeasureLength && f.Of == f.OfEnd:
			n = m.counts[f.Of]
		case f.Measure == MeasureLength:
			n = m.span(f)
		default:
			continue
		}
		if !f.Int.holds(NumberOf(int64(n))) {
			return nil, false
		}
		if at, there := m.starts[f]; there {
			copy(m.b[at:], f.Int.encode(NumberOf(int64(n))))
		}
	}
	return m.b, true
}

// span is the number of bytes from Of to OfEnd, as far as they are there.
func (m *recordMaker) span(f *Field) int {
	low, high := -1, 0
	a, b := slices.Index(m.r.Fields, f.Of), slices.Index(m.r.Fields, f.OfEnd)
	for _, x := range m.r.Fields[a : b+1] {
		if at, there := m.starts[x]; there {
			if low < 0 {
				low = at
			}
			high = m.ends[x]
		}
	}
	return high - max(low, 0)
}

func (m *recordMaker) number(t Int, n Number) { m.b = append(m.b, t.encode(n)...) }

func (m *recordMaker) field(f *Field) bool {
	if f.IsInt() {
		n := m.value(f)
		m.nums[f] = n
		m.number(f.Int, n)
		return true
	}
	n := f.Width
	switch f.Kind {
	case KindReserved:
		m.b = append(m.b, make([]byte, n)...)
		return true
	case KindConstBytes:
		m.b = append(m.b, f.Const...)
		return true
	case KindFlagBytes:
		if f.AltIf.holds(m.nums[f.AltIf.Field]) {
			n = f.AltWidth
		}
	case KindPadBytes:
		n = m.IntN(f.Width + 1)
	case KindFixedBytes:
	default:
		low, high := 0, 6
		if f.Min != nil {
			low = int(f.Min.Abs)
		}
		if high = max(high, low); f.Max != nil {
			high = min(high, int(f.Max.Abs))
		}
		n = low + m.IntN(high-low+1)
	}
	m.counts[f] = n
	if f.SizedBy != nil {
		m.counts[f.SizedBy] = n
	}
	if f.Kind == KindVarBytes || f.Kind == KindGroup && f.SizedBy == nil && f.Int.Bytes > 0 {
		t := f.Int
		if f.Alt != nil && f.AltIf.holds(m.nums[f.AltIf.Field]) {
			t = *f.Alt
		}
		m.number(t, NumberOf(int64(n)))
	}
	if f.Kind == KindGroup {
		return m.group(f, n)
	}
	m.content(f, n)
	return true
}

func (m *recordMaker) group(f *Field, n int) bool {
	start := len(m.b)
	for range n {
		entry, ok := makeRecord(m.Rand, f.Entry)
		if !ok {
			return false
		}
		m.b = append(m.b, entry...)
	}
	m.counts[f] = len(m.b) - start
	return true
}

// content appends n bytes of a field, and what fills them up or ends them.
func (m *recordMaker) content(f *Field, n int) {
	start := len(m.b)
	for range n {
		c := byte(m.IntN(256))
		if f.UTF8 {
			c = 'a' + c%20
		}
		if f.Kind == KindUntilBytes && c == f.Stop || f.Kind == KindPadBytes && c == f.Pad {
			c ^= 1
		}
		m.b = append(m.b, c)
	}
	switch f.Kind {
	case KindUntilBytes:
		m.b = append(m.b, f.Stop)
	case KindPadBytes:
		m.b = append(m.b, bytes.Repeat([]byte{f.Pad}, f.Width-(len(m.b)-start))...)
	}
}

// value returns a legal value of an integer.
func (m *recordMaker) value(f *Field) Number {
	choices := f.Choices
	if f.Enum != nil {
		choices = f.Enum.Values
	}
	switch {
	case f.Kind == KindVersion:
		return NumberOf(f.FromVersion + int64(m.IntN(int(f.Value.Int64()-f.FromVersion)+1)))
	case f.Value != nil:
		return *f.Value
	case f.Kind == KindTotal || f.Measure != MeasureNone:
		return Number{}
	case f.Int.Decimal:
		return Number{Abs: uint64(m.Uint32())}
	case f.Enum != nil && f.Enum.Flags:
		return m.flags(f.Enum)
	case len(choices) > 0 && (f.Enum == nil || !f.Enum.Open || m.IntN(3) > 0):
		return choices[m.IntN(len(choices))].Value
	}
	// Small numbers are drawn often, since conditions ask for them.
	low, high := f.Int.Min(), f.Int.Max()
	if f.Min != nil {
		low = *f.Min
	}
	if f.Max != nil {
		high = *f.Max
	}
	n := m.random(f.Int)
	if n.Cmp(low) < 0 {
		n = low
	}
	if n.Cmp(high) > 0 {
		n = high
	}
	return n
}

func (m *recordMaker) random(t Int) Number {
	if t.Bool {
		return NumberOf(int64(m.IntN(2)))
	}
	x := m.Uint64() >> (64 - 8*t.Bytes)
	if m.IntN(2) == 0 {
		x = uint64(m.IntN(8))
	}
	b := make([]byte, 8)
	for i := range b {
		b[7-i] = byte(x >> (8 * i))
	}
	return Int{Bytes: t.Bytes, Signed: t.Signed}.fromBytes(string(b[8-t.Bytes:]))
}

// flags returns legal flags.
func (m *recordMaker) flags(e *Enum) Number {
	if e.Open {
		return m.random(e.Int)
	}
	var x uint64
	for _, c := range e.Values {
		bits := m.Uint64() & e.Int.bits(c.Value)
		if len(c.Values) > 0 {
			bits = c.Values[m.IntN(len(c.Values))].Value.Abs
		}
		x |= bits
	}
	return Number{Abs: x}
}

// encode returns the bytes of an integer.
func (t Int) encode(n Number) []byte {
	if t.Decimal {
		b := fmt.Appendf(nil, "%0*d", t.Bytes, n.Abs)
		if t.Reversed {
			slices.Reverse(b)
		}
		return b
	}
	x := t.bits(n)
	b := make([]byte, t.Bytes)
	for i := range b {
		b[t.Bytes-1-i] = byte(x >> (8 * i))
	}
	if t.Ordered {
		b[0] ^= 0x80
	}
	if t.Little {
		slices.Reverse(b)
	}
	return b
}

// TestKaitaiRandomSchemas: the compiler takes the Kaitai file of random schemas,
// and what comes out reads random records of them as their layout says.
func TestKaitaiRandomSchemas(t *testing.T) {
	needNode(t)
	count := 150
	if testing.Short() {
		count = 20
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(*schemaSeed, 7))
	var jobs []job
	var checks []func(answer)
	for made := 0; made < count; {
		name := fmt.Sprintf("R%d", made)
		maker := schemaMaker{Rand: r, name: name}
		text := "package p\n" + maker.schema()
		f, err := Parse(fmt.Sprintf("r%d.layout", made), text)
		if err != nil {
			continue
		}
		made++
		out, err := Kaitai(f)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, out.Name), out.Source)
		if _, err := Docs(f, nil); err != nil {
			t.Fatal(err)
		}
		if made%10 == 0 { // a sample, since that takes a while
			jobs = append(jobs, job{Schema: snake(name) + "_records", Languages: true})
			checks = append(checks, func(a answer) {
				if refused := a.refused(out.Source); a.Error != "" || len(refused) > 0 {
					t.Errorf("%s: %s %v\n%s", name, a.Error, refused, text)
				}
			})
		}
		names, rec := newKaitaiNames(f), f.Records[len(f.Records)-1]
		for range 4 {
			b, ok := makeRecord(r, rec)
			if !ok {
				continue
			}
			jobs = append(jobs, job{Schema: snake(name) + "_records", Type: names.records[rec], Hex: fmt.Sprintf("%x", b)})
			checks = append(checks, func(a answer) {
				pieces, n, err := rec.Cut(b)
				if err != nil || n != len(b) {
					t.Fatalf("%s: %d of %d bytes, %v\n%s%x", name, n, len(b), err, text, b)
				}
				if a.Error != "" || a.Left != 0 {
					t.Errorf("%s: %d bytes left, %s\n%s%x", name, a.Left, a.Error, text, b)
					return
				}
				k := &kaitaiReader{t, names}
				sameFields(t, name, flatten("", k.pieces(rec, a.Value)), flatten("", pieces))
				if t.Failed() {
					t.Logf("%s%s\n%x", text, out.Source, b)
				}
			})
		}
	}
	for i, a := range runKaitai(t, []string{dir}, jobs) {
		if checks[i](a); t.Failed() {
			return
		}
	}
	t.Logf("%d records of %d schemas", len(jobs), count)
}
