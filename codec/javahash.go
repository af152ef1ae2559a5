package codec

import "unicode/utf8"

// JavaHash returns what Java's String.hashCode gives for the text that Java
// decodes from s: h = 31*h + unit over UTF-16 units, wrapping at 32 bits.
// Bytes that are no UTF-8 count as U+FFFD, as often as Java's decoder would
// put one. It allocates nothing.
func JavaHash(s []byte) int32 { return javaHash(s) }

// JavaHashString is JavaHash of the bytes of s.
func JavaHashString(s string) int32 { return javaHash(s) }

func javaHash[T string | []byte](s T) int32 {
	var h int32
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return javaHashUnicode(h, s, i)
		}
		h = 31*h + int32(s[i])
	}
	return h
}

// javaHashUnicode goes on from the hash h of s[:i].
func javaHashUnicode[T string | []byte](h int32, s T, i int) int32 {
	for i < len(s) {
		r, size := javaRune(s, i)
		i += size
		if r >= 0x10000 {
			r -= 0x10000
			h = 31*h + (0xD800 + r>>10)
			r = 0xDC00 + r&0x3FF
		}
		h = 31*h + r
	}
	return h
}

// javaRune decodes the rune at s[i:] as Java's String constructor does, and
// tells how many bytes it took. What differs from Go's decoder is only how
// many bytes one U+FFFD stands for: the longest start of a sequence that could
// still have become a rune, and all three bytes of an encoded surrogate.
func javaRune[T string | []byte](s T, i int) (rune, int) {
	b, left := s[i], len(s)-i
	more := func(k int) bool { return left > k && s[i+k]&0xC0 == 0x80 }
	switch {
	case b < utf8.RuneSelf:
		return rune(b), 1
	case b >= 0xC2 && b <= 0xDF:
		if more(1) {
			return rune(b&0x1F)<<6 | rune(s[i+1]&0x3F), 2
		}
	case b >= 0xE0 && b <= 0xEF:
		if !more(1) || b == 0xE0 && s[i+1] < 0xA0 {
			break
		}
		if !more(2) {
			return utf8.RuneError, 2
		}
		r := rune(b&0x0F)<<12 | rune(s[i+1]&0x3F)<<6 | rune(s[i+2]&0x3F)
		if r >= 0xD800 && r <= 0xDFFF {
			r = utf8.RuneError
		}
		return r, 3
	case b >= 0xF0 && b <= 0xF4:
		if !more(1) || b == 0xF0 && s[i+1] < 0x90 || b == 0xF4 && s[i+1] > 0x8F {
			break
		}
		if !more(2) {
			return utf8.RuneError, 2
		}
		if !more(3) {
			return utf8.RuneError, 3
		}
		return rune(b&0x07)<<18 | rune(s[i+1]&0x3F)<<12 | rune(s[i+2]&0x3F)<<6 | rune(s[i+3]&0x3F), 4
	}
	return utf8.RuneError, 1
}
