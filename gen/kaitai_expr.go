package gen

import (
	"fmt"
	"strings"
)

// Expressions of Kaitai. They have to be right in JavaScript, too, where
// numbers are exact up to 2^53 only and bit operations work on 32 bits with a
// sign. So bits of wider integers are looked at in two halves, and a mask with
// bit 31 is compared in two parts.

// number prints the value of a field as a number.
func (k *kaitaiField) number() string {
	if k.enum != "" {
		return k.id + ".to_i"
	}
	return k.id
}

// condition prints conditions that must all hold.
func (k *kaitaiType) condition(conds []*Cond) string {
	var list []string
	for _, c := range conds {
		list = append(list, k.oneCondition(c))
	}
	if len(list) == 1 {
		return list[0]
	}
	return "(" + strings.Join(list, ") and (") + ")"
}

func (k *kaitaiType) oneCondition(c *Cond) string {
	x, t := k.ids[c.Field], c.Field.Int
	if c.Mask != nil {
		from := x.number()
		if x.halves {
			from = x.raw
		}
		return maskTest(from, x.halves, t.bits(*c.Mask), c.Op, t.bits(c.Value))
	}
	if x.enum != "" && (c.Op == "==" || c.Op == "!=") {
		if name := k.choiceID(c.Field, c.Value); name != "" {
			return fmt.Sprintf("%s %s %s::%s", x.id, c.Op, x.enum, name)
		}
	}
	return fmt.Sprintf("%s %s %s", x.number(), c.Op, c.Value)
}

// choiceID returns the name of a value in the enum of f, or "".
func (k *kaitaiType) choiceID(f *Field, n Number) string {
	choices := f.Choices
	if f.Enum != nil {
		choices = f.Enum.Values
	}
	for i, id := range choiceIDs(choices) {
		if choices[i].Value.Cmp(n) == 0 {
			return id
		}
	}
	return ""
}

// choiceIDs names the values of an enum.
func choiceIDs(choices []*Choice) []string {
	names := namer{}
	var out []string
	for _, c := range choices {
		out = append(out, names.name(snake(c.Name)))
	}
	return out
}

// maskTest prints (x & mask) op value; op is == or !=, with halves x has hi
// and lo.
func maskTest(x string, halves bool, mask uint64, op string, value uint64) string {
	type part struct {
		x           string
		mask, value uint64
	}
	parts := []part{{x, mask, value}}
	if halves {
		parts = []part{{x + ".hi", mask >> 32, value >> 32}, {x + ".lo", mask & (1<<32 - 1), value & (1<<32 - 1)}}
	}
	var list []string
	for _, p := range parts {
		switch {
		case p.mask == 0:
		case p.value>>31 == 1:
			list = append(list, fmt.Sprintf("((%s >> 16) & %#x) %s %#x", p.x, p.mask>>16, op, p.value>>16))
			if p.mask&0xffff != 0 {
				list = append(list, fmt.Sprintf("(%s & %#x) %s %s", p.x, p.mask&0xffff, op, hexOf(p.value&0xffff)))
			}
		default:
			list = append(list, fmt.Sprintf("(%s & %#x) %s %s", p.x, p.mask, op, hexOf(p.value)))
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	join := " and "
	if op == "!=" {
		join = " or "
	}
	return "(" + strings.Join(list, join) + ")"
}

func hexOf(x uint64) string {
	if x == 0 {
		return "0"
	}
	return fmt.Sprintf("%#x", x)
}

// rawValue prints the value of an integer of type t that was read as raw.
func rawValue(t Int, raw string) string {
	switch {
	case t.Decimal && t.Reversed:
		return raw + ".reverse.to_i"
	case t.Decimal:
		return raw + ".to_i"
	}
	bits, wide := 8*t.Bytes, t.Bytes > 4
	top := raw
	if wide {
		top = raw + ".hi"
		bits -= 32
		raw = fmt.Sprintf("%s * 4294967296 + %s.lo", top, raw)
	}
	half, whole := uint64(1)<<(bits-1), uint64(1)<<bits
	switch {
	case t.Ordered && wide:
		return strings.Replace(raw, top, fmt.Sprintf("(%s - %d)", top, half), 1)
	case t.Ordered:
		return fmt.Sprintf("%s - %d", raw, half)
	case t.Signed && wide:
		return strings.Replace(raw, top, fmt.Sprintf("(%s < %d ? %s : %s - %d)", top, half, top, top, whole), 1)
	case t.Signed:
		return fmt.Sprintf("%s < %d ? %s : %s - %d", raw, half, raw, raw, whole)
	}
	return raw
}

// flagsTest prints the condition that x has only known bits, or "" if there is
// nothing to test.
func flagsTest(e *Enum, x string, halves bool) string {
	var list []string
	if unknown := e.Int.bits(Number{Abs: ^e.Mask()}); unknown != 0 {
		list = append(list, maskTest(x, halves, unknown, "==", 0))
	}
	for _, c := range e.Values {
		if len(c.Values) == 0 {
			continue
		}
		some := []string{maskTest(x, halves, e.Int.bits(c.Value), "==", 0)}
		for _, v := range c.Values {
			if v.Value.Abs != 0 {
				some = append(some, maskTest(x, halves, e.Int.bits(c.Value), "==", e.Int.bits(v.Value)))
			}
		}
		list = append(list, "("+strings.Join(some, " or ")+")")
	}
	return strings.Join(list, " and ")
}

// boundsTest prints the condition that x is within the bounds, which may be nil.
func boundsTest(x string, low, high *Number) string {
	var list []string
	if low != nil {
		list = append(list, fmt.Sprintf("(%s) >= %s", x, low))
	}
	if high != nil {
		list = append(list, fmt.Sprintf("(%s) <= %s", x, high))
	}
	return strings.Join(list, " and ")
}
