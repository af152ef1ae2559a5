package codec

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestFindProperty(t *testing.T) {
	for _, c := range []struct {
		props, name, want string
		found             bool
	}{
		{"", "A", "", false},
		{"A\x01b\x02", "A", "b", true},
		{"A\x01b", "A", "b", true},
		{"A\x01b\x02A\x01c\x02", "A", "c", true},
		{"A\x01b\x02A\x01\x02", "A", "b", true},
		{"A\x01b\x02B\x01c\x02", "A", "b", true},
		{"A\x01\x02", "A", "", false},
		{"\x01b\x02", "", "", false},
		{"A\x02", "A", "", false},
		{"AB\x02", "A", "", false},
		{"AA\x01b\x02", "A", "", false},
		{"BA\x01b\x02", "A", "", false},
		{"A\x01b\x01c\x02", "A", "b\x01c", true},
		{"A\x01\x01\x02", "A", "\x01", true},
		{"\x01A\x01b\x02", "A", "", false},
		{"\x02\x02A\x01b\x02\x02", "A", "b", true},
		{"\x02", "A", "", false},
		{"KEYS\x01k1\x02TAGS\x01TagA\x02", "TAGS", "TagA", true},
	} {
		got, found := FindProperty([]byte(c.props), c.name)
		if string(got) != c.want || found != c.found {
			t.Errorf("FindProperty(%q, %q) = %q, %v", c.props, c.name, got, found)
		}
	}
}

func TestWalkProperties(t *testing.T) {
	collect := func(props string, limit int) string {
		var b strings.Builder
		WalkProperties([]byte(props), func(name, value []byte) bool {
			b.WriteString(string(name) + "=" + string(value) + ";")
			limit--
			return limit > 0
		})
		return b.String()
	}
	for _, c := range []struct {
		props string
		limit int
		want  string
	}{
		{"", 9, ""},
		{"A\x01b\x02C\x01d", 9, "A=b;C=d;"},
		{"A\x01b\x02C\x01d", 1, "A=b;"},
		{"\x01b\x02A\x01\x02\x02xyz\x02A\x01b\x01c\x02", 9, "A=b\x01c;"},
	} {
		if got := collect(c.props, c.limit); got != c.want {
			t.Errorf("WalkProperties(%q) gives %q, want %q", c.props, got, c.want)
		}
	}
}

func TestStripChecksum(t *testing.T) {
	for _, c := range []struct{ props, want string }{
		{"", ""},
		{"A\x01b\x02", "A\x01b\x02"},
		{"A\x01__CRC32#\x02", "A\x01__CRC32#\x02"},
		{"__CRC32#\x01123\x02", ""},
		{"A\x01b\x02__CRC32#\x01123\x02C\x01d\x02", "A\x01b\x02C\x01d\x02"},
		{"A\x01b\x02__CRC32#\x01123", "A\x01b\x02"},
		{"__CRC32#\x011\x02__CRC32#\x012\x02A\x01b", "A\x01b"},
		{"x__CRC32#\x011\x02", "x__CRC32#\x011\x02"},
	} {
		if got := StripChecksum([]byte(c.props), nil); string(got) != c.want {
			t.Errorf("StripChecksum(%q) = %q, want %q", c.props, got, c.want)
		}
	}
	props := []byte("A\x01b\x02")
	dst := make([]byte, 0, 64)
	requireNoAllocs(t, func() {
		if got := StripChecksum(props, dst); &got[0] != &props[0] {
			t.Error("properties without a checksum were copied")
		}
	})
	stripped := []byte("A\x01b\x02__CRC32#\x01123\x02")
	requireNoAllocs(t, func() { StripChecksum(stripped, dst) })
}

func TestCheckProperties(t *testing.T) {
	full := AppendProperty(nil, "N", strings.Repeat("v", MaxPropertiesLength-ChecksumTrailerSize-3))
	for _, c := range []struct {
		props  string
		offset int
		reason string
	}{
		{"", 0, ""},
		{"A\x01b\x02", 0, ""},
		{"A\x01b\x02C\x01d\x02", 0, ""},
		{string(full), 0, ""},
		{string(full) + "\x02", 0, "32748 bytes are more than 32747"},
		{"A\x01b", 0, "the last pair does not end in 0x02"},
		{"A\x01b\x02C\x01d", 4, "the last pair does not end in 0x02"},
		{"A\x02", 0, "a pair has no 0x01 between name and value"},
		{"\x02", 0, "a pair has no 0x01 between name and value"},
		{"A\x01b\x02\x01d\x02", 4, "a pair has an empty name"},
		{"A\x01\x02", 0, "a pair has an empty value"},
		{"A\x01b\x01c\x02", 0, "a pair has a second 0x01"},
	} {
		err := CheckProperties([]byte(c.props))
		var e *PropertyError
		switch {
		case c.reason == "" && err != nil:
			t.Errorf("CheckProperties(%.40q) = %v", c.props, err)
		case c.reason != "" && (!errors.As(err, &e) || e.Offset != c.offset || e.Reason != c.reason):
			t.Errorf("CheckProperties(%.40q) = %v, want %q at %d", c.props, err, c.reason, c.offset)
		}
	}
}

func TestTagsCode(t *testing.T) {
	for props, want := range map[string]int64{
		"":                               0,
		"KEYS\x01k\x02":                  0,
		"TAGS\x01\x02":                   0,
		"TAGS\x01TagA\x02":               2598919,
		"TAGS\x01x\x02TAGS\x01TagA\x02":  2598919,
		"TAGS\x01polygenelubricants\x02": -2147483648,
	} {
		if got := TagsCode([]byte(props)); got != want {
			t.Errorf("TagsCode(%q) = %d, want %d", props, got, want)
		}
	}
}

// FuzzProperties: legal properties are read back pair by pair, and no input
// makes any of the readers panic or disagree.
func FuzzProperties(f *testing.F) {
	f.Add([]byte("KEYS\x01k1\x02TAGS\x01TagA\x02"))
	f.Add([]byte("A\x01b\x02__CRC32#\x01123"))
	f.Add([]byte("\x01\x02\x02\x01"))
	f.Fuzz(func(t *testing.T, props []byte) {
		last := map[string]string{}
		var again []byte
		WalkProperties(props, func(name, value []byte) bool {
			last[string(name)] = string(value)
			again = AppendProperty(again, string(name), string(value))
			return true
		})
		for name, want := range last {
			if got, ok := FindProperty(props, name); !ok || string(got) != want {
				t.Fatalf("FindProperty(%q, %q) = %q, %v, want %q", props, name, got, ok, want)
			}
		}
		if CheckProperties(props) == nil && !bytes.Equal(again, props) {
			t.Fatalf("legal properties %q are read as %q", props, again)
		}
		if _, found := FindProperty(StripChecksum(props, nil), PropertyChecksum); found {
			t.Fatalf("a checksum is left in %q", props)
		}
	})
}
