package gen

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestErrors: a mistake in a schema is told with its place and with what was
// expected there.
func TestErrors(t *testing.T) {
	// record wraps field lines; the first of them is line 4.
	record := func(fields string) string {
		return "package p\n// R is a record.\nrecord R {\n" + fields + "\n}\n"
	}
	for _, c := range []struct{ name, src, want string }{
		{"empty", "", `x.layout:1:1: expected "package", found the end of the file`},
		{"no package", "record R {\n}\n", `x.layout:1:1: expected "package", found "record"`},
		{"two packages", "package p\npackage q\n",
			`x.layout:2:1: expected a record or a vector, found a second package line`},
		{"stray word", "package p\nfield\n", `x.layout:2:1: expected "record" or "vector", found "field"`},
		{"bad character", "package p\n  ?\n", `x.layout:2:3: unexpected character '?'`},
		{"no record name", "package p\nrecord {\n", `x.layout:2:8: expected a record name, found "{"`},
		{"no brace", "package p\nrecord R\n", `x.layout:2:9: expected "{" after the record name, found the end of the line`},
		{"no end", "package p\n// R.\nrecord R {\n",
			`x.layout:4:1: expected a field name or "}", found the end of the file`},
		{"no comment", "package p\nrecord R {\n A u8\n}\n", `x.layout:2:8: record "R" needs a comment above it`},
		{"no fields", record(""), `x.layout:3:8: record "R" has no fields`},
		{"record twice", record("A u8") + record("A u8")[len("package p\n"):],
			`x.layout:7:8: record "R" is declared twice`},
		{"no type", record("A"),
			`x.layout:4:2: expected a type (i8 to i64, u8 to u64, bytes) or a role (total, magic, version, checksum), found the end of the line`},
		{"bad type", record("A i24"),
			`x.layout:4:3: expected a type (i8 to i64, u8 to u64, bytes) or a role (total, magic, version, checksum), found "i24"`},
		{"lower case", record("a u8"),
			`x.layout:4:1: expected a field name that starts with an upper-case letter, found "a"`},
		{"taken name", record("Bytes u8"),
			`x.layout:4:1: a field must not be called Bytes, since every view has that method`},
		{"field twice", record("A u8\nA u8"), `x.layout:5:1: field "A" is declared twice`},
		{"rest of line", record("A u8 B"), `x.layout:4:6: expected the end of the line, found "B"`},
		{"bare bytes", record("A bytes"),
			`x.layout:4:8: expected "[" with a width or "len" with a length type, found the end of the line`},
		{"zero width", record("A bytes[0]"), `x.layout:4:9: expected a width from 1 to 4096, found 0`},
		{"open width", record("A bytes[8"), `x.layout:4:10: expected "]" after the width, found the end of the line`},
		{"no if", record("F u8\nA bytes[8 | 20]"), `x.layout:5:15: expected "if", found "]"`},
		{"widths in order", record("F u8\nA bytes[20 | 8 if F & 1]"),
			`x.layout:5:9: expected two widths from 1 to 4096, the smaller one first`},
		{"no such flag", record("A bytes[8 | 20 if F & 1]"),
			`x.layout:4:19: expected an integer field at a fixed place before this one, found "F"`},
		{"wide length", record("A bytes len i64"), `x.layout:4:13: expected a length type of at most 32 bits, found "i64"`},
		{"narrower length", record("M magic u32 { V = 1 }\nA bytes len u16 | u8 if M V"),
			`x.layout:5:19: expected a length type at least as wide as u16, found "u8"`},
		{"length without magic", record("A bytes len u8 | u16 if M V"),
			`x.layout:4:25: expected the magic field of this record, found "M"`},
		{"no such value", record("M magic u32 { V = 1 }\nA bytes len u8 | u16 if M W"),
			`x.layout:5:27: expected a value of M, found "W"`},
		{"no total", record("A bytes len u8"), `x.layout:3:8: record "R" has no fixed size, so it needs a total field`},
		{"two totals", record("T total i32\nU total i32"), `x.layout:5:3: a record has one total field at most`},
		{"narrow total", record("T total u8"), `x.layout:4:9: expected i32 or u32, found "u8"`},
		{"total of bytes", record("T total bytes"), `x.layout:4:9: expected an integer type, found "bytes"`},
		{"late total", record("A bytes len u8\nT total i32"),
			`x.layout:5:3: expected the total field before the first field without a fixed width`},
		{"field called Size", record("T total i32\nSize u8\nA bytes len u8"),
			`x.layout:3:8: a field of a record without a fixed size must not be called Size`},
		{"signed magic", record("M magic i32 = 1"), `x.layout:4:9: expected u32, found "i32"`},
		{"bare magic", record("M magic u32"),
			`x.layout:4:1: a magic field needs "=" and a value or named values in braces`},
		{"zero magic", record("M magic u32 = 0"),
			`x.layout:4:15: zero is no magic, since empty space must not look like a record`},
		{"zero magic value", record("M magic u32 { A = 1, B = 0 }"),
			`x.layout:4:26: zero is no magic, since empty space must not look like a record`},
		{"value twice", record("A u8 { B = 1, B = 2 }"), `x.layout:4:15: value "B" is declared twice`},
		{"constant called Size", record("Size u8 = 3"),
			`x.layout:4:1: a field with a value must not be called Size, since its constant would clash`},
		{"word of Go", "package p\n// R.\nrecord type {\n A u8\n}\n",
			`x.layout:3:8: expected a record name that is no word of Go, found "type"`},
		{"no comma", record("M magic u32 { A = 1 B = 2 }"), `x.layout:4:21: expected "," or "}", found "B"`},
		{"bare version", record("V version u16"),
			`x.layout:4:1: a version field needs "=" and a value of at least 1`},
		{"algorithm", record("S checksum u32 md5 over preceding"),
			`x.layout:4:16: expected a checksum algorithm (crc32, crc32c), found "md5"`},
		{"over", record("S checksum u32 crc32 preceding"), `x.layout:4:22: expected "over", found "preceding"`},
		{"covers nothing", record("S checksum u32 crc32 over A"),
			`x.layout:4:27: expected a field of this record, found "A"`},
		{"covers itself", record("A u8\nS checksum u32 crc32 over A..B\nB u8"),
			`x.layout:5:27: a checksum cannot cover itself`},
		{"covers backwards", record("A u8\nB u8\nS checksum u32 crc32 over B..A"),
			`x.layout:6:27: expected a range from an earlier to a later field`},
		{"too large", record("A u8 max 256"), `x.layout:4:10: 256 does not fit into u8`},
		{"no number", record("A u8 max x"), `x.layout:4:10: expected a maximum, found "x"`},
		{"long number", record("A u64 = 0x1ffffffffffffffff"),
			`x.layout:4:9: expected an integer of at most 64 bits, found "0x1ffffffffffffffff"`},
		{"late bytes", record("A bytes[4] late"), `x.layout:4:1: only integers can be late`},
		{"late behind bytes", record("T total i32\nA bytes len u8\nB u8 late"),
			`x.layout:6:1: a late field must stand before the first bytes with a length`},
		{"reserve of an integer", record("A u8 reserve B"), `x.layout:4:14: only bytes with a length take a reserve`},
		{"limits of fixed bytes", record("A bytes[4] max 3"),
			`x.layout:4:1: only integers and bytes with a length take min and max`},
		{"value of bytes", record("A bytes[4] = 3"), `x.layout:4:14: only integers, a magic and a version take a value`},
		{"vector of nothing", record("A u8") + "vector v Q {\n}\n",
			`x.layout:6:10: expected a record of this file, found "Q"`},
		{"vector twice", record("A u8") + "vector v R {\n}\nvector v R {\n}\n",
			`x.layout:8:8: vector "v" is declared twice`},
		{"vector field", record("A u8") + "vector v R {\nB = 1\n}\n",
			`x.layout:7:1: expected a field of record "R" that can be set, found "B"`},
		{"vector value", record("A u8") + "vector v R {\nA = \"x\"\n}\n",
			`x.layout:7:5: this value does not fit field "A"`},
		{"vector hex", record("A bytes[1]") + "vector v R {\nA = hex \"0g\"\n}\n",
			`x.layout:7:9: expected a string of hex digits, found string "0g"`},
		{"open string", record("A bytes[1]") + "vector v R {\nA = \"x\n}\n",
			`x.layout:7:5: expected a string in double quotes that ends on its line`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Generate("x.layout", c.src, "")
			var e *Error
			if !errors.As(err, &e) || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	if _, err := Generate("x.layout", record("A u8"), "q"); err == nil {
		t.Error("another package is accepted")
	}
}

// TestCodecIsUpToDate: what is checked in is what the schemas give.
func TestCodecIsUpToDate(t *testing.T) {
	schemas, err := filepath.Glob("../codec/*.layout")
	if err != nil || len(schemas) == 0 {
		t.Fatalf("no schemas: %v", err)
	}
	for _, schema := range schemas {
		src, err := os.ReadFile(schema)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			files, err := Generate(schema, string(src), "codec")
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				have, err := os.ReadFile(filepath.Join("../codec", f.Name))
				if err != nil || !bytes.Equal(have, f.Source) {
					t.Errorf("%s differs from its schema: run go generate (%v)", f.Name, err)
				}
			}
		}
	}
}

// TestGeneratedTestsPass generates from a schema with every word of the
// language into a module of its own, and runs the tests that come out.
func TestGeneratedTestsPass(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a module")
	}
	dir := t.TempDir()
	src, err := os.ReadFile("testdata/all.layout")
	if err != nil {
		t.Fatal(err)
	}
	files, err := Generate("all.layout", string(src), "sample")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, content []byte) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		write(f.Name, f.Source)
	}
	write("go.mod", []byte("module sample\n\ngo 1.26\n"))
	for _, name := range []string{"fielderror.go", "golden_test.go"} {
		support, err := os.ReadFile(filepath.Join("../codec", name))
		if err != nil {
			t.Fatal(err)
		}
		write(name, bytes.Replace(support, []byte("package codec"), []byte("package sample"), 1))
	}
	goldens, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(goldens) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, g := range goldens {
		content, err := os.ReadFile(g)
		if err != nil {
			t.Fatal(err)
		}
		write(filepath.Join("testdata", filepath.Base(g)), content)
	}
	for _, args := range [][]string{{"vet", "."}, {"test", "-count=1", "."}} {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func FuzzParse(f *testing.F) {
	src, err := os.ReadFile("testdata/all.layout")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(src))
	f.Add("package p\n// R.\nrecord R {\nA u8\n}\n")
	f.Fuzz(func(t *testing.T, src string) {
		_, err := Parse("x.layout", src)
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("error without a place: %v", err)
		}
	})
}
