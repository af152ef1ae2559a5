package gen

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocsAreUpToDate: the pages and the Kaitai files that are checked in are
// what the schemas give, no page is left over, and README.md leads to each.
func TestDocsAreUpToDate(t *testing.T) {
	readme, err := os.ReadFile("../docs/format/README.md")
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]bool{"README.md": true, "java.md": true} // of no schema
	for _, f := range parseSchemas(t, "../codec/*.layout") {
		page, err := Docs(f, goldenIn("../codec/testdata"))
		if err != nil {
			t.Fatal(err)
		}
		ksy, err := Kaitai(f)
		if err != nil {
			t.Fatal(err)
		}
		// Both begin with the comment above the package line.
		if opening := strings.Join(f.Doc, "\n"); opening == "" || !bytes.Contains(page.Source, []byte("# "+f.Source+"\n\n"+opening+"\n")) {
			t.Errorf("%s does not open with the text of its schema, %q", page.Name, opening)
		}
		for _, out := range []struct {
			dir string
			Output
		}{{"../docs/format", page}, {ksyFolder, ksy}} {
			made[out.Name] = true
			have, err := os.ReadFile(filepath.Join(out.dir, out.Name))
			if err != nil || !bytes.Equal(have, out.Source) {
				t.Errorf("%s differs from its schema: run go generate (%v)", out.Name, err)
			}
		}
		if !bytes.Contains(readme, []byte("("+page.Name+")")) {
			t.Errorf("README.md does not lead to %s", page.Name)
		}
	}
	for _, pattern := range []string{"../docs/format/*.md", ksyFolder + "/*_records.ksy"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !made[filepath.Base(name)] {
				t.Errorf("no schema makes %s", name)
			}
		}
	}
}

// TestDocsOfEveryWord: every word of the language can be told in a page.
func TestDocsOfEveryWord(t *testing.T) {
	for _, f := range parseSchemas(t, "testdata/*.layout") {
		if _, err := Docs(f, goldenIn("testdata")); err != nil {
			t.Error(err)
		}
	}
}

// TestCutAgreesWithCodecs: the worked examples cut the bytes where the codecs
// see the fields, and give them the same values.
func TestCutAgreesWithCodecs(t *testing.T) {
	files := parseSchemas(t, "../codec/*.layout")
	vectorsOf(t, files, "../codec/testdata", func(_ *File, r *Record, v *Vector, b []byte) {
		pieces, n, err := r.Cut(b)
		if err != nil || n != len(b) {
			t.Fatalf("%s: %d of %d bytes, %v", v.Name, n, len(b), err)
		}
		want, infos, _ := describeCodec(t, r.Name, b)
		sameFields(t, v.Name, flatten("", pieces), want)
		at, i := 0, 0
		for _, p := range pieces {
			for infos[i].Name != p.Field.Name {
				i++ // entries of a group
			}
			if p.At != at || p.At != infos[i].Offset || p.End-p.At != infos[i].Size {
				t.Errorf("%s: %s at %d to %d, the codec has it at %d with %d bytes", v.Name, p.Field.Name, p.At, p.End,
					infos[i].Offset, infos[i].Size)
			}
			at, i = p.End, i+1
		}
		if at != len(b) {
			t.Errorf("%s: the fields end at %d of %d bytes", v.Name, at, len(b))
		}
		for n := range b {
			_, _, _ = r.Cut(b[:n]) // does not panic
		}
	})
}
