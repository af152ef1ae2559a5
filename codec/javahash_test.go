package codec

import (
	"testing"
	"unicode/utf16"
)

func TestJavaHash(t *testing.T) {
	for _, c := range []struct {
		text string
		want int32
	}{
		{"", 0},
		{"TAG1", 2567159},
		{"TagA", 2598919},
		{"T#k1", 2539445},
		{"TopicTest#MessageKey", 638347386},
		{"polygenelubricants", -2147483648},
		{"\u00e9", 0xE9},
		{"a\u4f60", 31*'a' + 0x4F60},
		{"\U0001F600", 31*0xD83D + 0xDE00},
	} {
		if got := JavaHashString(c.text); got != c.want {
			t.Errorf("JavaHashString(%q) = %d, want %d", c.text, got, c.want)
		}
		if got := JavaHash([]byte(c.text)); got != c.want {
			t.Errorf("JavaHash(%q) = %d, want %d", c.text, got, c.want)
		}
	}
}

// TestJavaHashInvalid counts the U+FFFD that Java's decoder puts for bytes
// that are no UTF-8.
func TestJavaHashInvalid(t *testing.T) {
	const bad = 0xFFFD
	for _, c := range []struct {
		text  string
		units []int32
	}{
		{"\x80", []int32{bad}},
		{"\xC0\x80", []int32{bad, bad}},
		{"\xC3", []int32{bad}},
		{"\xC3A", []int32{bad, 'A'}},
		{"\xE4\xBD", []int32{bad}},
		{"\xE4\xBDA", []int32{bad, 'A'}},
		{"\xE4AB", []int32{bad, 'A', 'B'}},
		{"\xE0\x80\x80", []int32{bad, bad, bad}},
		{"\xED\xA0\x80", []int32{bad}},
		{"\xF0\x9F\x98", []int32{bad}},
		{"\xF0\x9F\x98A", []int32{bad, 'A'}},
		{"\xF0\x9FA", []int32{bad, 'A'}},
		{"\xF0\x80\x80\x80", []int32{bad, bad, bad, bad}},
		{"\xF4\x90\x80\x80", []int32{bad, bad, bad, bad}},
		{"\xF5\xFF", []int32{bad, bad}},
	} {
		var want int32
		for _, u := range c.units {
			want = 31*want + u
		}
		if got := JavaHashString(c.text); got != want {
			t.Errorf("JavaHashString(%x) = %d, want %d", c.text, got, want)
		}
	}
}

func FuzzJavaHash(f *testing.F) {
	f.Add("TagA")
	f.Add("\xE4\xBD")
	f.Add("\U0001F600")
	f.Fuzz(func(t *testing.T, s string) {
		got := JavaHashString(s)
		if other := JavaHash([]byte(s)); got != other {
			t.Fatalf("string %d, bytes %d", got, other)
		}
		// Text that is UTF-8 must give what the definition says.
		clean := string([]rune(s))
		var want int32
		for _, u := range utf16.Encode([]rune(clean)) {
			want = 31*want + int32(u)
		}
		if got := JavaHashString(clean); got != want {
			t.Fatalf("JavaHashString(%q) = %d, want %d", clean, got, want)
		}
	})
}
