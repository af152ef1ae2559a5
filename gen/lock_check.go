package gen

import (
	"fmt"
	"strconv"
	"strings"
)

// accept ends every refusal of a change.
const accept = "; give the record a new version (since, until), or accept the break with -accept"

// CheckLock checks that what the lock file describes can still be read with the
// schemas of files. The error is an *Error that names the place in the schema
// and what has changed; the changes that it allows are new declarations, new
// values of enums, an open enum for an integer that was none, wider limits, and
// fields that only newer versions have. Where the text itself is no lock file the
// error names no file, only its line.
func CheckLock(files []*File, lock string) error {
	now, open := map[string]*lockBlock{}, map[string]bool{}
	blocks := lockBlocks(files)
	for i := range blocks {
		b := &blocks[i]
		now[b.name], b.openEnums = b, open
		_, open[b.name] = b.attrs.get("open")
	}
	olds, err := parseLock(lock)
	if err != nil {
		return err
	}
	for _, old := range olds {
		b := now[old.name]
		if b == nil || b.what != old.what {
			return &Error{files[0].Path, 1, 1, fmt.Sprintf("%s %s is gone, which the lock file has%s", old.what, old.name, accept)}
		}
		if err := b.follows(&old); err != nil {
			return err
		}
	}
	return nil
}

// lockWords are the words that a block of a lock file begins with.
var lockWords = map[string]bool{"enum": true, "flags": true, "record": true, "key": true, "page": true}

// parseLock reads a lock file. A file that was cut off or badly merged would
// check nothing, so a line that has no place in it is an error.
func parseLock(text string) ([]lockBlock, error) {
	fail := func(line int, format string, args ...any) ([]lockBlock, error) {
		return nil, &Error{Line: line, Col: 1, Msg: fmt.Sprintf(format, args...) + "; -accept writes the lock file anew"}
	}
	head, _, _ := strings.Cut(lockHead, "%s")
	if !strings.HasPrefix(text, head) {
		return fail(1, "expected the heading of a lock file, %q", head)
	}
	var out []lockBlock
	seen, number := map[string]bool{}, 0
	for line := range strings.Lines(text) {
		number++
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || line[0] == '#':
		case line[0] == '\t' && len(words) > 1 && len(out) > 0:
			last := &out[len(out)-1]
			last.lines = append(last.lines, lockLine{name: words[0], attrs: words[1:]})
		case line[0] == '\t' || len(words) < 2 || !lockWords[words[0]]:
			return fail(number, "expected a declaration or one of its fields, found %q", strings.TrimSpace(line))
		case seen[words[1]]:
			return fail(number, "%s is there twice", words[1])
		default:
			seen[words[1]] = true
			out = append(out, lockBlock{what: words[0], name: words[1], attrs: words[2:]})
		}
	}
	return out, nil
}

func (b *lockBlock) fail(at Where, format string, args ...any) error {
	return &Error{b.file, at.Line, at.Col, fmt.Sprintf(format, args...) + accept}
}

// follows says whether b may follow old.
func (b *lockBlock) follows(old *lockBlock) error {
	switch b.what {
	case "enum", "flags":
		return b.enumFollows(old)
	case "page":
		for _, key := range []string{"size", "slots", "of", "by"} {
			if err := b.same(b.name, b.at, key, old.attrs, b.attrs); err != nil {
				return err
			}
		}
		return nil
	}
	from, last := old.versions()
	newFrom, newLast := b.versions()
	switch {
	case last == 0:
		return b.fieldsFollow(old.lines, b.lines, 0)
	case newLast < last:
		return b.fail(b.at, "%s is of version %d, but was of version %d", b.name, newLast, last)
	case newFrom > from:
		return b.fail(b.at, "%s can be read from version %d on, but could from version %d on", b.name, newFrom, from)
	}
	for v := max(from, newFrom); v <= last; v++ {
		if err := b.fieldsFollow(old.inVersion(v), b.inVersion(v), v); err != nil {
			return err
		}
	}
	return nil
}

// versions returns the versions that can be read, 0 to 0 of a record that has
// none.
func (b *lockBlock) versions() (from, last int) {
	return b.attrs.number("from", 0), b.attrs.number("version", 0)
}

// number returns the value of a key.
func (a lockAttrs) number(key string, otherwise int) int {
	text, ok := a.get(key)
	if n, err := strconv.Atoi(text); ok && err == nil {
		return n
	}
	return otherwise
}

// inVersion returns the fields that a version has.
func (b *lockBlock) inVersion(v int) []lockLine {
	var out []lockLine
	for _, l := range b.lines {
		if l.attrs.number("since", 0) <= v && v <= l.attrs.number("until", v) {
			out = append(out, l)
		}
	}
	return out
}

// same refuses another value of a key.
func (b *lockBlock) same(name string, at Where, key string, old, now lockAttrs) error {
	was, _ := old.get(key)
	is, _ := now.get(key)
	switch {
	case was == is:
		return nil
	case was == "":
		return b.fail(at, "%s has %s=%s, but had none", name, key, is)
	case is == "":
		return b.fail(at, "%s has no %s, but had %s=%s", name, key, key, was)
	}
	return b.fail(at, "%s has %s=%s, but had %s=%s", name, key, is, key, was)
}

// enumFollows allows new values, and an open enum in place of a closed one.
func (b *lockBlock) enumFollows(old *lockBlock) error {
	if err := b.same(b.name, b.at, "type", old.attrs, b.attrs); err != nil {
		return err
	}
	_, was := old.attrs.get("open")
	if _, is := b.attrs.get("open"); was && !is {
		return b.fail(b.at, "%s is closed, but was open", b.name)
	}
	masks := map[string]bool{} // those that had named values
	for _, l := range old.lines {
		if mask, _, ok := strings.Cut(l.name, "."); ok {
			masks[mask] = true
		}
	}
	for _, l := range b.lines {
		mask, _, ok := strings.Cut(l.name, ".")
		if ok && !was && !masks[mask] && find(old.lines, mask) != nil {
			return b.fail(l.at, "%s.%s has named values only, but had any", b.name, mask)
		}
	}
	for _, l := range old.lines {
		now := find(b.lines, l.name)
		if now == nil {
			return b.fail(b.at, "the value %s of %s is gone", l.name, b.name)
		}
		if err := b.same(b.name+"."+l.name, now.at, "value", l.attrs, now.attrs); err != nil {
			return err
		}
	}
	return nil
}

func find(lines []lockLine, name string) *lockLine {
	for i := range lines {
		if lines[i].name == name {
			return &lines[i]
		}
	}
	return nil
}

// fieldsFollow compares the fields of one version.
func (b *lockBlock) fieldsFollow(old, now []lockLine, version int) error {
	of := b.name
	if version > 0 {
		of = fmt.Sprintf("version %d of %s", version, b.name)
	}
	for i, l := range old {
		if i >= len(now) || now[i].name != l.name {
			switch {
			case find(now, l.name) == nil:
				return b.fail(b.at, "the field %s of %s is gone", l.name, of)
			case find(old, now[i].name) == nil:
				return b.fail(now[i].at, "the field %s is new in %s, before %s", now[i].name, of, l.name)
			}
			return b.fail(now[i].at, "the fields of %s are in another order: %s stands where %s did", of, now[i].name, l.name)
		}
		if err := b.fieldFollows(&l, &now[i]); err != nil {
			return err
		}
	}
	if len(now) > len(old) {
		l := now[len(old)]
		return b.fail(l.at, "the field %s is new in %s", l.name, of)
	}
	return nil
}

// layoutKeys are the keys of which a field must keep the value.
var layoutKeys = []string{"kind", "type", "enum", "width", "or", "or-if", "value", "is", "pad", "stop", "by", "of", "length",
	"count", "sum", "over", "mask", "if"}

func (b *lockBlock) fieldFollows(old, now *lockLine) error {
	name := b.name + "." + now.name
	for _, key := range layoutKeys {
		if _, had := old.attrs.get(key); key == "enum" && !had {
			if is, _ := now.attrs.get(key); b.openEnums[is] {
				continue // it refuses nothing
			}
		}
		if err := b.same(name, now.at, key, old.attrs, now.attrs); err != nil {
			return err
		}
	}
	if _, was := old.attrs.get("utf8"); !was {
		if _, is := now.attrs.get("utf8"); is {
			return b.fail(now.at, "%s must be valid UTF-8, but could be other", name)
		}
	}
	if _, was := old.attrs.get("lazy"); was {
		if _, is := now.attrs.get("lazy"); !is {
			return b.fail(now.at, "%s is checked when it is read, but was not", name)
		}
	}
	for _, limit := range []string{"min", "max"} {
		is, bounded := now.attrs.get(limit)
		if !bounded {
			continue
		}
		n, _ := parseNumber(is)
		was, wasBounded := old.attrs.get(limit)
		m, _ := parseNumber(was)
		if !wasBounded || limit == "min" && n.Cmp(m) > 0 || limit == "max" && n.Cmp(m) < 0 {
			return b.fail(now.at, "%s has a tighter %s than before", name, limit)
		}
	}
	return b.valuesFollow(name, old, now)
}

// valuesFollow allows new named values, or none at all in place of some.
func (b *lockBlock) valuesFollow(name string, old, now *lockLine) error {
	was, had := old.attrs.get("values")
	is, has := now.attrs.get("values")
	if !has {
		return nil
	}
	if !had {
		return b.fail(now.at, "%s has named values only, but had any", name)
	}
	for value := range strings.SplitSeq(was, ",") {
		if !strings.Contains(","+is+",", ","+value+",") {
			return b.fail(now.at, "the value %s of %s is gone", value, name)
		}
	}
	return nil
}
