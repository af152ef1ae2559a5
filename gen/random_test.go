package gen

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// schemaMaker writes random schemas. What it writes is not always legal: the
// rules of the language are many, and those that it breaks are told by Parse.
type schemaMaker struct {
	*rand.Rand
	name string
	b    strings.Builder
	// ints are fields that a condition may look at, all the fields so far.
	ints, all []string
	// enum and flags are the names of types that may be used, or "".
	enum, flags string
	total       bool
	version     int
	newest      int
	key, entry  bool
}

func (m *schemaMaker) oneOf(words ...string) string { return words[m.IntN(len(words))] }

func (m *schemaMaker) chance(percent int) bool { return m.IntN(100) < percent }

func (m *schemaMaker) line(format string, args ...any) { fmt.Fprintf(&m.b, format+"\n", args...) }

// intType returns a random integer type.
func (m *schemaMaker) intType() string {
	bytes := 1 + m.IntN(8)
	s := m.oneOf("i", "u") + fmt.Sprint(8*bytes)
	if bytes > 1 && m.chance(30) && !m.key {
		s += m.oneOf("le", "be")
	}
	return s
}

func (m *schemaMaker) lengthType() string {
	return m.oneOf("u8", "i8", "u16", "u16le", "i16", "u24", "i32", "u32", "i24le")
}

// schema returns the text of a declaration called name, with what it needs.
func (m *schemaMaker) schema() string {
	if m.chance(40) {
		m.enum = m.name + "Enum"
		m.line("// %s is random.\nenum %s %s%s { A = %d, B = %d, C = 77 }", m.enum, m.enum, m.intType(), m.oneOf("", " open"), m.IntN(10), 10+m.IntN(60))
	}
	if m.chance(40) {
		m.flags = m.name + "Flags"
		m.line("// %s is random.\nflags %s %s%s {\n\tX = 1\n\tY = 2\n\tM = 0xc { None = 0, One = 4, Both = 0xc }\n\tN = 0x30\n}",
			m.flags, m.flags, m.intType(), m.oneOf("", "", " open"))
	}
	switch {
	case m.chance(20):
		m.key = true
		m.record("key")
	default:
		m.record("record")
	}
	return m.b.String()
}

func (m *schemaMaker) record(word string) {
	entry := ""
	if !m.key && m.chance(15) {
		entry = m.name + "Item"
		m.entry = true
		m.line("// %s is random.\nrecord %s {", entry, entry)
		m.body(1 + m.IntN(4))
		m.line("}")
		*m = schemaMaker{Rand: m.Rand, name: m.name, b: m.b, enum: m.enum, flags: m.flags}
	}
	m.line("// %s is random.\n%s %s {", m.name, word, m.name)
	m.body(1 + m.IntN(8))
	if entry != "" || !m.key && m.chance(12) {
		m.group(entry)
	}
	if m.total && m.chance(30) || !m.key && m.chance(10) {
		m.line("\tRest %s rest%s", m.oneOf("bytes", "text", "text"), m.oneOf("", " max 9", " min 1", " utf8"))
		if m.chance(40) {
			m.line("\tTail %s", m.intType())
		}
	}
	if !m.key && m.chance(30) {
		m.line("\tEndSum checksum %s over preceding%s", m.algorithm(), m.oneOf("", "", " lazy"))
	}
	m.line("}")
}

func (m *schemaMaker) algorithm() string {
	return m.oneOf("u32 crc32", "u32le crc32c", "u32 adler32", "u64 crc64", "u64le crc64", "decimal[10] crc32",
		"decimal[12] reversed crc32")
}

func (m *schemaMaker) body(n int) {
	if !m.key {
		if m.chance(40) {
			m.line("\tTotal total %s", m.oneOf("u32", "i32", "u16", "u24le", "u32le"))
			m.total = true
		}
		if m.chance(30) {
			m.line("\tMagic magic %s", m.oneOf("u32 = 0xCAFEBABE", "u16 = \"ab\"", "u32 { V1 = 1, V2 = 2 }", "u64le = 0xF000000000000001"))
		}
		if m.chance(30) {
			m.version, m.newest = 1+m.IntN(2), 2+m.IntN(3)
			m.line("\tVersion version %s = %d from %d", m.oneOf("u8", "u16", "i16le"), m.newest, min(m.version, m.newest))
		}
	}
	for i := range n {
		m.field(fmt.Sprintf("F%d", i))
	}
}

// presence returns a random condition or version bound, often none.
func (m *schemaMaker) presence() string {
	if m.key {
		return ""
	}
	s := ""
	if m.newest > 0 && m.chance(30) {
		if m.newest > m.version && m.chance(60) {
			s = fmt.Sprintf(" since %d", m.version+1+m.IntN(m.newest-m.version))
		} else {
			s = fmt.Sprintf(" until %d", m.version+m.IntN(max(1, m.newest-m.version)))
		}
	}
	if len(m.ints) > 0 && m.chance(25) {
		s += " if " + m.condition()
	}
	return s
}

func (m *schemaMaker) condition() string {
	name, kind, _ := strings.Cut(m.oneOf(m.ints...), " ")
	switch kind {
	case "bool":
		return name
	case "enum":
		return name + m.oneOf(" == A", " B", " != C")
	case "flags":
		return name + m.oneOf(" & X", " & M == Both", " & N", " & M != None", " & 3 == 2")
	}
	return name + m.oneOf(" & 1", " & 6 == 2", " == 0", " != 0", " >= 3", " <= 60")
}

// field writes one random field.
func (m *schemaMaker) field(name string) {
	presence := m.presence()
	text := m.oneOf("bytes", "text")
	utf8 := ""
	if text == "text" {
		utf8 = m.oneOf("", " utf8")
	}
	switch m.IntN(15) {
	case 0, 1, 2:
		m.intField(name, presence)
	case 3:
		m.line("\t%s bool%s", name, presence)
		m.ints = append(m.ints, name+" bool")
	case 4:
		if m.enum != "" {
			m.line("\t%s %s%s", name, m.enum, presence)
			m.ints = append(m.ints, name+" enum")
		}
	case 5:
		if m.flags != "" {
			m.line("\t%s %s%s", name, m.flags, presence)
			m.ints = append(m.ints, name+" flags")
		}
	case 6:
		m.line("\treserved[%d]%s", 1+m.IntN(9), presence)
		return
	case 7:
		m.line("\t%s %s = %q%s", name, text, m.oneOf("a", "max", "\x01\x00\xff"), presence)
	case 8:
		pad := ""
		if m.chance(50) {
			pad = m.oneOf(" pad 0", " pad 0x20")
			utf8 = ""
		}
		m.line("\t%s %s[%d]%s%s%s", name, text, 1+m.IntN(20), pad, utf8, presence)
	case 9, 10:
		m.prefixed(name, text, utf8, presence)
	case 11:
		m.line("\t%sLen %s length of %s\n\t%s %s[%sLen]%s%s%s", name, m.lengthType(), name, name, text, name, utf8,
			m.oneOf("", "", " max 20"), presence)
	case 12:
		m.line("\t%s %s until %s%s%s", name, text, m.oneOf("0", "0x40", "'\\n'"), m.oneOf("", " max 12", " min 2"), presence)
	case 13:
		if len(m.ints) > 0 && !m.key {
			m.line("\t%s %s[%d | %d if %s]", name, text, 1+m.IntN(8), 9+m.IntN(12), m.condition())
		}
	case 14:
		m.checksum(name, presence)
		return
	}
	m.all = append(m.all, name)
}

func (m *schemaMaker) intField(name, presence string) {
	typ, option := m.intType(), ""
	switch {
	case m.key && typ[0] == 'i':
		option = m.oneOf(" ordered", " min 0", " = 7")
	case m.chance(10):
		option = " = " + m.oneOf("7", "-3", "0")
	case m.chance(10):
		option = " { One = 1, Two = 2, Odd = 99 }"
	case m.chance(20):
		option = m.oneOf(" min 3", " max 100", " min 2 max 2")
	case m.chance(15) && !m.key && presence == "":
		option = " late"
	}
	m.line("\t%s %s%s%s", name, typ, option, presence)
	if !strings.HasPrefix(option, " =") && !strings.Contains(option, "One") {
		m.ints = append(m.ints, name+" int")
	}
}

func (m *schemaMaker) prefixed(name, text, utf8, presence string) {
	typ := m.lengthType()
	if m.key {
		typ = m.oneOf("u8", "u16", "i32")
	}
	option := m.oneOf("", "", "", " min 1", " max 30", " min 2 max 4")
	if len(m.ints) > 0 && presence == "" && m.chance(25) && !m.key {
		m.line("\t%s %s len u8 | %s if %s%s%s", name, text, m.oneOf("u8", "u16", "i24", "u32le"), m.condition(), utf8, option)
		return
	}
	m.line("\t%s %s len %s%s%s%s", name, text, typ, utf8, option, presence)
}

func (m *schemaMaker) checksum(name, presence string) {
	if m.key || len(m.all) == 0 {
		return
	}
	over := m.oneOf(m.all...)
	switch {
	case m.chance(30):
		over = "preceding"
	case m.chance(30):
		over = m.all[0] + ".." + m.all[len(m.all)-1]
	case m.chance(10) && !m.entry:
		over = "given"
	}
	option := m.oneOf("", "", " lazy")
	if strings.Contains(over, "given") {
		option = m.oneOf("", " mask 0x7fffffff")
	}
	m.line("\t%s checksum %s over %s%s%s", name, m.algorithm(), over, option, presence)
}

// group writes a group at the end of a record, of entry or of its own fields.
func (m *schemaMaker) group(entry string) {
	count := m.oneOf("group u8", "group u16le", "group rest", "group i32", "group[GroupCount]")
	if strings.HasSuffix(count, "]") {
		m.line("\tGroupCount %s count of Group", m.lengthType())
	}
	limits := m.oneOf("", "", " max 5", " min 1 max 9")
	if entry != "" {
		m.line("\tGroup %s of %s%s%s", count, entry, limits, m.presence())
		return
	}
	m.line("\tGroup %s%s%s {", count, limits, m.presence())
	inner := schemaMaker{Rand: m.Rand, enum: m.enum, flags: m.flags, entry: true}
	inner.body(1 + m.IntN(4))
	m.b.WriteString(inner.b.String())
	m.line("\t}")
	if m.chance(30) {
		m.line("\tGroupBytes u32 length of Group")
	}
}
