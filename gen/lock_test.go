package gen

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// TestLock: changes after which old bytes could not be read are refused where
// they are, and others are not.
func TestLock(t *testing.T) {
	record := func(fields string) string { return "// R.\nrecord R {\n" + fields + "\n}\n" }
	const kind, attr = "// K.\nenum K u8 { A = 1, B = 2 }\n", "// F.\nflags F u8 { X = 1, M = 6 { P = 2 } }\n"
	const page = "// P.\npage P size 64 slots 2 of R by A\n"
	const sum = "\nS checksum u32 crc32 over preceding"
	for _, c := range []struct{ name, old, now, want string }{
		{"nothing", record("A u8"), record("A u8"), ""},
		{"a comment", record("A u8"), "\n\n" + record("// A.\nA u8"), ""},
		{"a new record", record("A u8"), record("A u8") + "// Q.\nrecord Q {\nA u8\n}\n", ""},
		{"a record that is gone", record("A u8"), "// Q.\nrecord Q {\nA u8\n}\n", "1:1: record R is gone, which the lock file has"},
		{"a record that is a key", record("A u8"), "// R.\nkey R {\nA u8\n}\n", "1:1: record R is gone, which the lock file has"},
		{"a field that is gone", record("A u8\nB u8"), record("A u8"), "3:8: the field B of R is gone"},
		{"a field in front", record("A u8"), record("B u8\nA u8"), "4:1: the field B is new in R, before A"},
		{"a field behind", record("A u8"), record("A u8\nB u8"), "5:1: the field B is new in R"},
		{"another order", record("A u8\nB u8"), record("B u8\nA u8"), "4:1: the fields of R are in another order: B stands where A did"},
		{"another type", record("A u8"), record("A i8"), "4:1: R.A has type=i8, but had type=u8"},
		{"another byte order", record("A u16"), record("A u16le"), "4:1: R.A has type=u16le, but had type=u16be"},
		{"another width", record("A bytes[2]"), record("A bytes[3]"), "4:1: R.A has width=3, but had width=2"},
		{"another kind", record("A bytes[2]"), record("A bytes until 0"), "4:1: R.A has kind=bytes-until, but had kind=bytes"},
		{"another constant", record("A u8 = 1"), record("A u8 = 2"), "4:1: R.A has value=2, but had value=1"},
		{"a new constant", record("A u8"), record("A u8 = 2"), "4:1: R.A has value=2, but had none"},
		{"no constant", record("A u8 = 1"), record("A u8"), "4:1: R.A has no value, but had value=1"},
		{"a constant as written", record("A u8 = 16"), record("A u8 = 0x10"), ""},
		{"other bytes", record("A bytes = \"a\""), record("A bytes = \"b\""), "4:1: R.A has is=62, but had is=61"},
		{"wider limits", record("A u8 min 3 max 5"), record("A u8 min 2 max 6"), ""},
		{"no limits", record("A u8 min 3 max 5"), record("A u8"), ""},
		{"a higher minimum", record("A u8 min 3"), record("A u8 min 4"), "4:1: R.A has a tighter min than before"},
		{"a lower maximum", record("A u8 max 3"), record("A u8 max 2"), "4:1: R.A has a tighter max than before"},
		{"a new maximum", record("A u8"), record("A u8 max 2"), "4:1: R.A has a tighter max than before"},
		{"a new value", record("A u8 { V = 1 }"), record("A u8 { V = 1, W = 2 }"), ""},
		{"any value", record("A u8 { V = 1 }"), record("A u8"), ""},
		{"a value less", record("A u8 { V = 1, W = 2 }"), record("A u8 { V = 1 }"), "4:1: the value W:2 of R.A is gone"},
		{"only named values", record("A u8"), record("A u8 { V = 1 }"), "4:1: R.A has named values only, but had any"},
		{"valid text", record("A text[2]"), record("A text[2] utf8"), "4:1: R.A must be valid UTF-8, but could be other"},
		{"any text", record("A text[2] utf8"), record("A text[2]"), ""},
		{"another condition", record("A u8\nB u8 if A & 1"), record("A u8\nB u8 if A & 2"), "5:1: R.B has if=A&2!=0, but had if=A&1!=0"},
		{"another checksum", record("A u8\nS checksum u32 crc32 over A"), record("A u8\nS checksum u32 crc32c over A"),
			"5:1: R.S has sum=crc32c, but had sum=crc32"},
		{"less covered", record("A u8\nB u8\nS checksum u32 crc32 over A..B"), record("A u8\nB u8\nS checksum u32 crc32 over A"),
			"6:1: R.S has over=A, but had over=A..B"},
		{"a lazy checksum", record("A u8\nS checksum u32 crc32 over A"), record("A u8\nS checksum u32 crc32 over A lazy"), ""},
		{"a late field", record("A u8"), record("A u8 late"), ""},
		{"a new value of an enum", kind + record("A K"), "// K.\nenum K u8 { A = 1, B = 2, C = 3 }\n" + record("A K"), ""},
		{"an enum value less", kind + record("A K"), "// K.\nenum K u8 { A = 1 }\n" + record("A K"), "3:6: the value B of K is gone"},
		{"another enum value", kind + record("A K"), "// K.\nenum K u8 { A = 1, B = 3 }\n" + record("A K"),
			"3:20: K.B has value=3, but had value=2"},
		{"another enum type", kind + record("A K"), "// K.\nenum K u16 { A = 1, B = 2 }\n" + record("A K"),
			"3:6: K has type=u16be, but had type=u8"},
		{"an open enum", kind + record("A K"), "// K.\nenum K u8 open { A = 1, B = 2 }\n" + record("A K"), ""},
		{"a closed enum", "// K.\nenum K u8 open { A = 1 }\n", "// K.\nenum K u8 { A = 1 }\n", "3:6: K is closed, but was open"},
		{"an open enum for an integer", record("A u8"), "// K.\nenum K u8 open { A = 1 }\n" + record("A K"), ""},
		{"open flags for an integer", record("A u8\nB u8 if A & 1"), "// K.\nflags K u8 open { C = 1 }\n" + record("A K\nB u8 if A & C"), ""},
		{"a closed enum for an integer", record("A u8"), kind + record("A K"), "6:1: R.A has enum=K, but had none"},
		{"another open enum", "// K.\nenum K u8 open { A = 1 }\n" + record("A K"),
			"// K.\nenum K u8 open { A = 1 }\n// L.\nenum L u8 open { A = 1 }\n" + record("A L"), "8:1: R.A has enum=L, but had enum=K"},
		{"an open enum of another width", record("A u8"), "// K.\nenum K u16 open { A = 1 }\n" + record("A K"),
			"6:1: R.A has type=u16be, but had type=u8"},
		{"another name within a mask", attr, "// F.\nflags F u8 { X = 1, M = 6 { Q = 2 } }\n", "3:7: the value M.P of F is gone"},
		{"another page", record("A u8"+sum) + page, record("A u8"+sum) + "// P.\npage P size 128 slots 2 of R by A\n",
			"8:6: P has size=128, but had size=64"},
		{"a version from now on", record("A u8"), record("V version u8 = 1\nA u8"), "4:1: the field V is new in R, before A"},
		{"a field since the next version", record("V version u8 = 1\nA u8"),
			record("V version u8 = 2 from 1\nA u8\nB u8 since 2"), ""},
		{"a field until the last version", record("V version u8 = 1\nA u8"),
			record("V version u8 = 2 from 1\nA u8 until 1\nB u16 since 2"), ""},
		{"a next version for everybody", record("V version u8 = 1\nA u8"),
			record("V version u8 = 2 from 1\nA u8\nB u8"), "6:1: the field B is new in version 1 of R"},
		{"a next version and no other", record("V version u8 = 1\nA u8"), record("V version u8 = 2\nB u16"),
			"3:8: R can be read from version 2 on, but could from version 1 on"},
		{"a next version without the oldest", record("V version u8 = 2 from 1\nA u8"), record("V version u8 = 3 from 2\nA u8"),
			"3:8: R can be read from version 2 on, but could from version 1 on"},
		{"an eager checksum", record("A u8\nS checksum u32 crc32 over A lazy"), record("A u8\nS checksum u32 crc32 over A"),
			"5:1: R.S is checked when it is read, but was not"},
		{"the first names within a mask", "// F.\nflags F u8 { X = 1, M = 6 }\n", "// F.\nflags F u8 { X = 1, M = 6 { Q = 2 } }\n",
			"3:29: F.M has named values only, but had any"},
		{"the last version again", record("V version u8 = 2\nA u8"), record("V version u8 = 1\nA u8"),
			"3:8: R is of version 1, but was of version 2"},
		{"older versions no more", record("V version u8 = 2 from 1\nA u8"), record("V version u8 = 2\nA u8"),
			"3:8: R can be read from version 2 on, but could from version 1 on"},
	} {
		t.Run(c.name, func(t *testing.T) {
			parse := func(src string) []*File {
				f, err := Parse("x.layout", "package p\n"+src)
				if err != nil {
					t.Fatalf("%v\n%s", err, src)
				}
				return []*File{f}
			}
			err := CheckLock(parse(c.now), LockText(parse(c.old)))
			got := ""
			if err != nil {
				got = strings.TrimSuffix(strings.TrimPrefix(err.Error(), "x.layout:"), accept)
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestLockRandom: every schema follows itself.
func TestLockRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 300 {
		m := schemaMaker{Rand: r, name: "R"}
		src := "package p\n" + m.schema()
		if f, err := Parse("x.layout", src); err == nil {
			if err := CheckLock([]*File{f}, LockText([]*File{f})); err != nil {
				t.Fatalf("%v\n%s", err, src)
			}
		}
	}
}

// TestCodecLock: the lock file of codec is what its schemas say.
func TestCodecLock(t *testing.T) {
	files, err := ParsePackage(readSchemas(t, "../codec/*.layout"), "codec")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../codec/layouts.lock")
	if err != nil || string(got) != LockText(files) {
		t.Errorf("../codec/layouts.lock differs from the schemas: run go generate (%v)", err)
	}
}
