package dump

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/codec"
)

// TestLogDamage: each damage of a log is named with its place and field, and
// what stands behind it is found.
func TestLogDamage(t *testing.T) {
	const base = 4096
	name := fmt.Sprintf("/s/commitlog/%020d", base)
	whole, at := segment(t, base, 600, true, true, "one", "two", "three")
	put := func(off int64, bytes ...byte) func([]byte) {
		return func(b []byte) { copy(b[off:], bytes) }
	}
	for _, c := range []struct {
		what     string
		change   func([]byte)
		off, end int64
		field    string
		fieldAt  int64
		reason   string
		records  int
		readable bool
	}{
		{"magic", put(at[1]+5, 0), at[1], at[2], "Magic", at[1] + 4, "which no record has", 3, false},
		{"size too large", put(at[1], 0x7f), at[1], at[2], "TotalSize", at[1], "are left in the file", 3, false},
		{"size too small", put(at[1]+3, 9), at[1], at[2], "TotalSize", at[1], "the smallest record has", 3, false},
		{"size", put(at[1]+3, 0x7f), at[1], at[2], "", 0, "", 3, false},
		{"place", put(at[1]+35, 0), at[1], at[2], "PhysicalOffset", at[1] + 28, "not where the record stands", 3, true},
		{"queue", put(at[1]+15, 9), at[1], at[2], "Properties", at[1] + 93, "checksum over the whole record is invalid", 3, true},
		{"body length", put(at[1]+84, 0xff), at[1], at[2], "Body", at[1] + 84, "length", 3, false},
		{"first", put(0, 1), 0, at[1], "TotalSize", 0, "are left", 3, false},
		{"last", put(at[2]+4, 0), at[2], at[3], "Magic", at[2] + 4, "which no record has", 3, false},
		{"end mark", put(at[3]+3, 0x11), at[3], at[3] + 8, "Size", at[3], "up to the end of the file", 3, true},
		{"zeros inside", func(b []byte) { clear(b[at[1]:at[2]]) }, at[1], at[2], "", 0, "zeros where a record must stand", 3, false},
		{"behind the end", func(b []byte) { clear(b[at[2]:]); b[590] = 1 }, 590, 591, "", 0, "behind the end of the log", 2, false},
		{"torn", func(b []byte) { clear(b[at[2]+50:]) }, at[2], at[2] + 49, "", 0, "", 2, false},
		{"all but the end", func(b []byte) { clear(b[:at[3]]); b[0] = 1 }, 0, at[3], "Magic", 4, "which no record has", 1, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			b := slices.Clone(whole)
			c.change(b)
			got := dumpAll(t, mem(name, b), kindOf(t, name, b), Options{Ours: all})
			bad := findings(got)
			if len(bad) != 1 || len(recordsOf(got)) != c.records {
				t.Fatalf("%+v", got)
			}
			f := bad[0]
			if f.off != c.off || f.end != c.end || c.field != "" && (f.field != c.field || f.fieldAt != c.fieldAt) ||
				!strings.Contains(f.reason, c.reason) || f.readable != c.readable {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestChecksumsOfOthers: outside of our ranges a record without a checksum over
// all its bytes is right if its body is.
func TestChecksumsOfOthers(t *testing.T) {
	b, at := segment(t, 0, 600, false, false, "one", "two")
	name := "/s/commitlog/" + strings.Repeat("0", 20)
	got := dumpAll(t, mem(name, b), kindOf(t, name, b), Options{})
	if len(findings(got)) != 0 || got[0].notes[1] != (Note{"checksum", "absent"}) {
		t.Errorf("%+v", got)
	}
	if got := findings(dumpAll(t, mem(name, b), kindOf(t, name, b), Options{Ours: all[:1]})); len(got) == 0 || !strings.Contains(got[0].reason, "is absent") {
		t.Errorf("%+v", got)
	}
	b[at[1]+88] ^= 1
	got = findings(dumpAll(t, mem(name, b), kindOf(t, name, b), Options{}))
	if len(got) != 1 || got[0].field != "BodyCRC" || got[0].fieldAt != at[1]+8 || got[0].off != at[1] {
		t.Errorf("%+v", got)
	}
}

// TestEveryByte changes each byte of each kind of file: the parts still fill the
// file, and where everything is covered by a checksum there is a finding.
func TestEveryByte(t *testing.T) {
	flips := []byte{0xff, 1, 0x80}
	if testing.Short() {
		flips = flips[:1]
	}
	for _, s := range samples(t) {
		kind := kindOf(t, s.path, s.bytes)
		intact := len(recordsOf(dumpAll(t, mem(s.path, s.bytes), kind, Options{Ours: all})))
		b := slices.Clone(s.bytes)
		step := max(1, len(b)/50)
		for i := 0; i < len(b); i++ {
			if i >= 600 && i%step != 0 {
				continue
			}
			for _, flip := range flips {
				b[i] ^= flip
				got := dumpAll(t, mem(s.path, b), kind, Options{Ours: all})
				bad := len(findings(got))
				if s.strict && i < s.used && bad == 0 {
					t.Errorf("%s: byte %d ^ %#x: nothing is found", s.path, i, flip)
				}
				if bad == 0 && len(recordsOf(got)) < intact-1 && kind.Name != extKind.Name && kind.Name != wheelKind.Name {
					t.Errorf("%s: byte %d ^ %#x: %d records of %d, and nothing is found", s.path, i, flip, len(recordsOf(got)), intact)
				}
				b[i] = s.bytes[i]
			}
		}
	}
}

// TestEveryLength cuts each kind of file at every length.
func TestEveryLength(t *testing.T) {
	for _, s := range samples(t) {
		kind := kindOf(t, s.path, s.bytes)
		for n := 0; n <= len(s.bytes); n += max(1, len(s.bytes)/200) {
			dumpAll(t, mem(s.path, s.bytes[:n:n]), kind, Options{Ours: all})
		}
	}
}

// TestUnits: a wrong unit is named, and the next one is at its place.
func TestUnits(t *testing.T) {
	good := &codec.QueueUnit{PhysicalOffset: 4096, Size: 115}
	name := fmt.Sprintf("/s/consumequeue/T/0/%020d", 400)
	b := encode(t, 110, good, &codec.QueueUnit{PhysicalOffset: -1, Size: 1}, &codec.QueueUnit{PhysicalOffset: 1}, good)
	b[109] = 1
	got := dumpAll(t, mem(name, b), kindOf(t, name, b), Options{})
	var text []string
	for _, f := range got {
		text = append(text, fmt.Sprintf("%s %d-%d %s %s", f.kind, f.off, f.end, f.field, f.reason))
	}
	want := []string{"record 0-20  ", "finding 20-40 PhysicalOffset is -1, less than 0", "finding 40-60 Size is 0, less than 1", "record 60-80  ",
		"finding 80-100  zeros where a unit must stand", "finding 100-110  needs 20 bytes, 10 are left"}
	if !slices.Equal(text, want) {
		t.Errorf("%q", text)
	}
	if got[3].notes[0] != (Note{"queue_offset", int64(23)}) {
		t.Errorf("%+v", got[3])
	}
}

// TestIndex: the number of slots is found, whatever it is, and entries that are
// wrong are named.
func TestIndex(t *testing.T) {
	name := "/s/index/20261130045319200"
	for _, shape := range [][2]int{{1, 2}, {3, 100}, {7, 20}, {50, 200}, {1000, 4}} {
		keys := []int32{5, 12, 40, 5, 99}[:min(shape[1]-1, 5)]
		b := indexFile(t, shape[0], shape[1], keys...)
		got := dumpAll(t, mem(name, b), kindOf(t, name, b), Options{})
		entries := 0
		for _, r := range recordsOf(got) {
			if r.name == "IndexEntry" {
				entries++
			}
		}
		if entries != len(keys) || len(findings(got)) != 0 {
			t.Errorf("%v: %+v", shape, got)
		}
	}
	b := indexFile(t, 7, 20, 5, 12, 40)
	at := codec.IndexHeaderSize + 7*codec.IndexSlotSize
	b[at+2*codec.IndexEntrySize+19] = 5 // Previous of entry 2
	got := findings(dumpAll(t, mem(name, b), kindOf(t, name, b), Options{}))
	if len(got) != 1 || got[0].field != "Previous" || got[0].off != int64(at+2*codec.IndexEntrySize) || got[0].reason != "is 5, which is no entry below 2" {
		t.Errorf("%+v", got)
	}
	// A damaged header leaves it open how many slots there are.
	b = indexFile(t, 7, 20, 5, 12, 40)
	b[39] = 0
	if got := findings(dumpAll(t, mem(name, b), kindOf(t, name, b), Options{})); len(got) != 1 || !strings.Contains(got[0].reason, "--slots") {
		t.Errorf("%+v", got)
	}
	if got := dumpAll(t, mem(name, b), kindOf(t, name, b), Options{Slots: 7}); len(findings(got)) != 0 || len(recordsOf(got)) != 1+1+3 {
		t.Errorf("%+v", got)
	}
	// More slots than there is room for.
	dumpAll(t, mem(name, b), kindOf(t, name, b), Options{Slots: 1 << 60})
}

// TestFront: what stands behind a checkpoint is no zeros, or the file ends in it.
func TestFront(t *testing.T) {
	b := encode(t, 4096, &codec.Checkpoint{PhysicTimestamp: 1700000000123})
	b[100], b[200] = 1, 1
	got := dumpAll(t, mem("/s/checkpoint", b), kindOf(t, "/s/checkpoint", b), Options{})
	if bad := findings(got); len(bad) != 1 || bad[0].off != 100 || bad[0].end != 201 || len(got) != 4 {
		t.Errorf("%+v", got)
	}
	for _, n := range []int{0, 20, 47} {
		got := dumpAll(t, mem("/s/checkpoint", b[:n]), kindOf(t, "/s/checkpoint", b), Options{})
		if len(got) != 1 || got[0].kind != "finding" || !strings.Contains(got[0].reason, "needs 48 bytes") {
			t.Errorf("%d bytes: %+v", n, got)
		}
	}
}

// TestExt: behind damage the next unit is found by what it holds.
func TestExt(t *testing.T) {
	unit := &codec.QueueExtUnit{TagsCode: 5, StoreTime: 1700000000123, Filter: []byte{1, 2, 3, 4, 5, 6, 7, 8}}
	name := "/s/consumequeue_ext/T/0/" + strings.Repeat("0", 20)
	b := encode(t, 0, unit, unit, unit)
	b = append(b, 0xff, 0xff, 1, 2, 0, 0)
	b[28] = 0x40
	got := dumpAll(t, mem(name, b), kindOf(t, name, b), Options{})
	bad := findings(got)
	if len(bad) != 1 || bad[0].off != 28 || bad[0].end != 56 || bad[0].field != "Size" || len(recordsOf(got)) != 2 ||
		got[len(got)-1].kind != "bytes" {
		t.Errorf("%+v", got)
	}
	if got[0].notes[0] != (Note{"address", int64(-1 << 63)}) {
		t.Errorf("%+v", got[0])
	}
}

// FuzzFile: whatever the bytes are, the parts fill the file and can be printed.
func FuzzFile(f *testing.F) {
	list := samples(f)
	for i, s := range list {
		if len(s.bytes) < 10000 {
			f.Add(uint8(i), s.bytes, false)
		}
	}
	for _, name := range Names() {
		f.Add(uint8(len(list)), []byte(name), true)
	}
	f.Fuzz(func(t *testing.T, i uint8, b []byte, byName bool) {
		s := list[int(i)%len(list)]
		kind := kindOf(t, s.path, s.bytes)
		if byName {
			kind, _ = KindOf(Names()[int(i)%len(Names())], s.path)
		}
		opt := Options{Slots: int64(i % 4)}
		if i&0x80 != 0 {
			opt.Ours = all
		}
		dumpAll(t, mem(s.path, b), kind, opt)
	})
}
