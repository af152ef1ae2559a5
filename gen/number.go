package gen

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Number is an integer of a schema. It holds every value that an i64 or a u64
// can have.
type Number struct {
	// Text is the number as the schema has it; it is a Go expression, too.
	Text string
	// Neg says that the number is below zero; Abs is its size without the sign.
	Neg bool
	Abs uint64
}

// NumberOf returns the number x.
func NumberOf(x int64) Number {
	if x < 0 {
		return Number{strconv.FormatInt(x, 10), true, -uint64(x)}
	}
	return Number{strconv.FormatInt(x, 10), false, uint64(x)}
}

// parseNumber reads a number as it is written in Go, with a sign.
func parseNumber(text string) (Number, bool) {
	digits, neg := strings.CutPrefix(text, "-")
	abs, err := strconv.ParseUint(digits, 0, 64)
	if err != nil || neg && abs > 1<<63 {
		return Number{}, false
	}
	return Number{text, neg && abs > 0, abs}, true
}

// Cmp returns -1, 0 or 1 as n is less than, equal to or more than o.
func (n Number) Cmp(o Number) int {
	switch {
	case n.Neg != o.Neg:
		if n.Neg {
			return -1
		}
		return 1
	case n.Abs == o.Abs:
		return 0
	case n.Abs < o.Abs != n.Neg:
		return -1
	}
	return 1
}

// Int64 returns the number in the bits of an int64.
func (n Number) Int64() int64 {
	if n.Neg {
		return -int64(n.Abs)
	}
	return int64(n.Abs)
}

// String returns the number in decimal digits.
func (n Number) String() string {
	if n.Neg {
		return "-" + strconv.FormatUint(n.Abs, 10)
	}
	return strconv.FormatUint(n.Abs, 10)
}

// Int is how an integer is laid out in bytes.
type Int struct {
	// Bytes is the number of bytes: 1 to 8, or the number of Digits.
	Bytes int
	// Signed integers are two's complement.
	Signed bool
	// Little says that the least significant byte comes first.
	Little bool
	// Ordered says that the sign bit is flipped, so that the order of the bytes
	// is the order of the numbers.
	Ordered bool
	// Bool says that the one byte is 0 or 1 and stands for a Go bool.
	Bool bool
	// Decimal says that the bytes are decimal digits in ASCII, filled up with
	// '0'; with Reversed the least significant digit comes first.
	Decimal, Reversed bool
}

// intType finds an integer type by its name, which may end with a byte order;
// little is the order of names without one.
func intType(name string, little bool) (Int, bool) {
	if name == "bool" {
		return Int{Bytes: 1, Bool: true}, true
	}
	base := name
	if b, ok := strings.CutSuffix(name, "le"); ok {
		base, little = b, true
	} else if b, ok := strings.CutSuffix(name, "be"); ok {
		base, little = b, false
	}
	for bytes := 1; bytes <= 8; bytes++ {
		digits := strconv.Itoa(8 * bytes)
		if base == "i"+digits || base == "u"+digits {
			t := Int{Bytes: bytes, Signed: base[0] == 'i', Little: little && bytes > 1}
			return t, base == name || bytes > 1
		}
	}
	return Int{}, false
}

// Name returns the type as the language writes it, with its byte order if it
// has more than one byte.
func (t Int) Name() string {
	switch {
	case t.Bool:
		return "bool"
	case t.Decimal && t.Reversed:
		return fmt.Sprintf("decimal[%d] reversed", t.Bytes)
	case t.Decimal:
		return fmt.Sprintf("decimal[%d]", t.Bytes)
	}
	name := fmt.Sprintf("u%d", 8*t.Bytes)
	if t.Signed {
		name = fmt.Sprintf("i%d", 8*t.Bytes)
	}
	switch {
	case t.Bytes == 1:
		return name
	case t.Little:
		return name + "le"
	}
	return name + "be"
}

// GoType returns the Go type of a value: the next one that is wide enough.
func (t Int) GoType() string {
	switch {
	case t.Bool:
		return "bool"
	case t.Signed:
		return fmt.Sprintf("int%d", t.goBits())
	}
	return fmt.Sprintf("uint%d", t.goBits())
}

// goBits is the number of bits of the Go type.
func (t Int) goBits() int {
	switch {
	case t.Decimal:
		return 32
	case t.Bytes == 3:
		return 32
	case t.Bytes > 4:
		return 64
	}
	return 8 * t.Bytes
}

// exact says whether the Go type has no values that the bytes cannot hold.
func (t Int) exact() bool { return !t.Bool && !t.Decimal && t.goBits() == 8*t.Bytes }

// Max returns the largest value.
func (t Int) Max() Number {
	abs := uint64(math.MaxUint64)
	switch {
	case t.Bool:
		abs = 1
	case t.Decimal:
		abs = 0
		for range min(t.Bytes, 19) {
			abs = abs*10 + 9
		}
		abs = min(abs, math.MaxUint32)
	case t.Signed:
		abs >>= 64 - 8*t.Bytes + 1
	default:
		abs >>= 64 - 8*t.Bytes
	}
	return Number{Text: strconv.FormatUint(abs, 10), Abs: abs}
}

// Min returns the smallest value.
func (t Int) Min() Number {
	if !t.Signed {
		return Number{Text: "0"}
	}
	abs := uint64(1) << (8*t.Bytes - 1)
	return Number{Text: "-" + strconv.FormatUint(abs, 10), Neg: true, Abs: abs}
}

// holds says whether n is a value of the type.
func (t Int) holds(n Number) bool { return n.Cmp(t.Min()) >= 0 && n.Cmp(t.Max()) <= 0 }

// toBytes returns the bytes that stand for n, which t holds.
func (t Int) toBytes(n Number) string {
	b := make([]byte, t.Bytes)
	for i := range b {
		at := t.Bytes - 1 - i
		if t.Little {
			at = i
		}
		b[at] = byte(uint64(n.Int64()) >> (8 * i))
	}
	return string(b)
}

// fromBytes returns the number that the bytes of s stand for; s has as many
// bytes as the type.
func (t Int) fromBytes(s string) Number {
	var abs uint64
	for i := range len(s) {
		at := i
		if t.Little {
			at = len(s) - 1 - i
		}
		abs = abs<<8 | uint64(s[at])
	}
	if t.Signed && abs>>(8*t.Bytes-1) == 1 {
		return NumberOf(int64(abs<<(64-8*t.Bytes)) >> (64 - 8*t.Bytes))
	}
	return Number{Text: fmt.Sprintf("%#x", abs), Abs: abs}
}
