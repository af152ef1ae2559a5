package gen

import (
	"fmt"
	"strings"
)

// What a field is and must be, in words, for the pages and for Kaitai.

// sumNames are the checksums as people call them.
var sumNames = map[string]string{"adler32": "Adler-32", "crc32": "CRC-32 (IEEE)", "crc32c": "CRC-32C (Castagnoli)",
	"crc64": "CRC-64 (ECMA)"}

// sumWords says what a checksum covers.
func (f *Field) sumWords() string {
	s := f.Sum
	words := sumNames[s.Algorithm] + " over "
	switch {
	case s.Given:
		words += "bytes that are not in the record"
	case s.Preceding:
		words += "all bytes before it"
	case s.First == s.Last:
		words += "the bytes of " + s.First.Name
		switch {
		case s.First.Kind == KindUntilBytes:
			words += ", without the byte that ends them"
		case s.First.At != s.First.Data:
			words += ", without their length"
		}
	default:
		words += fmt.Sprintf("%s to %s, both whole", s.First.Name, s.Last.Name)
	}
	if s.Mask != nil {
		words += ", and-ed with " + s.Mask.Text
	}
	if f.Int.Decimal {
		words += fmt.Sprintf(", as %d decimal digits", f.Int.Bytes)
		if f.Int.Reversed {
			words += ", the least significant first"
		}
	}
	if s.Lazy {
		words += "; checked on demand"
	}
	return words
}

// measureWords says what an integer counts, "" if it counts nothing.
func (f *Field) measureWords() string {
	switch {
	case f.Measure == MeasureCount:
		return "the number of entries of " + f.Of.Name
	case f.Measure == MeasureNone:
		return ""
	case f.Of != f.OfEnd:
		return fmt.Sprintf("the number of bytes from the start of %s to the end of %s", f.Of.Name, f.OfEnd.Name)
	}
	return "the number of bytes of " + f.Of.Name
}

// presenceWords says when a field is there, "" for always.
func (f *Field) presenceWords() string {
	var list []string
	switch {
	case f.Since > 0 && f.Until > 0:
		list = append(list, fmt.Sprintf("in versions %d to %d", f.Since, f.Until))
	case f.Since > 0:
		list = append(list, fmt.Sprintf("since version %d", f.Since))
	case f.Until > 0:
		list = append(list, fmt.Sprintf("until version %d", f.Until))
	}
	for _, c := range f.If {
		if c.Field.Kind != KindVersion {
			list = append(list, "if "+c.words())
		}
	}
	return strings.Join(list, ", ")
}

// words returns the condition for people.
func (c *Cond) words() string {
	if c.Field.Int.Bool {
		return c.Field.Name
	}
	return c.String()
}

// limitWords says between which numbers something is, "" for no limit.
func limitWords(low, high *Number) string {
	switch {
	case low != nil && high != nil:
		return fmt.Sprintf("%s to %s", low.Text, high.Text)
	case low != nil:
		return "at least " + low.Text
	case high != nil:
		return "at most " + high.Text
	}
	return ""
}

// silentRules are the rules of a field that Kaitai cannot check.
func (f *Field) silentRules() []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if f.Sum != nil {
		add("%s. Kaitai does not compute it.", f.sumWords())
	}
	if f.Measure != MeasureNone {
		add("It is %s.", f.measureWords())
	}
	if f.Reserve != "" {
		add("Zero bytes may stand behind the data; the length counts them.")
	}
	if limits := limitWords(f.Min, f.Max); limits != "" {
		ownLength := f.Kind == KindVarBytes || f.Kind == KindGroup && f.SizedBy == nil && f.Int.Bytes > 0
		switch {
		case f.Kind == KindGroup && !ownLength:
			add("The number of entries is %s.", limits)
		case f.UTF8 && !ownLength:
			add("The number of bytes is %s.", limits)
		}
	}
	return out
}

// doc is the comment of a field with the rules that Kaitai cannot check.
func (k *kaitaiType) doc(f *Field) []string {
	return append(f.Doc[:len(f.Doc):len(f.Doc)], f.silentRules()...)
}
