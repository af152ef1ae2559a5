package gen

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// TestCommittedSchemasAreFormatted: layoutfmt changes none of them.
func TestCommittedSchemasAreFormatted(t *testing.T) {
	for _, s := range append(readSchemas(t, "../codec/*.layout"), readSchemas(t, "testdata/*.layout")...) {
		got, err := Format(s.File, s.Text)
		if err != nil {
			t.Fatal(err)
		}
		if got != s.Text {
			t.Errorf("%s is not formatted: go run ./gen/cmd/layoutfmt -w %s", s.File, s.File)
			if *rewrite {
				os.WriteFile(s.File, []byte(got), 0o644)
			}
		}
	}
}

// TestFormat: blanks and empty lines are put in order, and nothing else.
func TestFormat(t *testing.T) {
	const src = "\n\n// Schema.\npackage   p\n\n\n\n// K.\nenum  K  u8{A=1,B = 2}\n" +
		"// R.\nrecord R {\n\n      Kind K\n\n\n\tBig u16 { // trailing\n  One = 0x01 // one\nThirteen = 13\n\n}\n" +
		"B bytes [ 1|3 if Kind==A ]\nS checksum u32 crc32 over Kind .. B\n}\nvector v R {\nKind = A\nBig = One\n}\n"
	const want = "// Schema.\npackage p\n\n// K.\nenum K u8 { A = 1, B = 2 }\n" +
		"// R.\nrecord R {\n\tKind K\n\n\tBig u16 { // trailing\n\t\tOne      = 0x01 // one\n\t\tThirteen = 13\n\t}\n" +
		"\tB bytes[1 | 3 if Kind == A]\n\tS checksum u32 crc32 over Kind..B\n}\nvector v R {\n\tKind = A\n\tBig  = One\n}\n"
	got, err := Format("x.layout", src)
	if err != nil || got != want {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, got, want)
	}
	if _, err := Format("x.layout", "package p\nrecord\n"); err == nil {
		t.Error("no schema is formatted")
	}
}

// TestFormatRandom: formatting again changes nothing, and the layout stays.
func TestFormatRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		m := schemaMaker{Rand: r, name: "R"}
		src := "package p\n" + m.schema()
		before, err := Parse("x.layout", src)
		if err != nil {
			continue
		}
		once, err := Format("x.layout", strings.ReplaceAll(src, " ", "   "))
		if err != nil {
			t.Fatalf("%v\n%s", err, src)
		}
		twice, err := Format("x.layout", once)
		if err != nil || once != twice {
			t.Fatalf("%v\nonce\n%s\ntwice\n%s", err, once, twice)
		}
		after, err := Parse("x.layout", once)
		if err != nil || LockText([]*File{before}) != LockText([]*File{after}) {
			t.Fatalf("%v\nbefore\n%s\nafter\n%s", err, src, once)
		}
	}
}
