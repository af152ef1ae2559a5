package gen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOutside builds the worked example of README.md as another module would: its
// three files and its go:generate lines, with layoutgen run by its import path.
// What comes out passes its own tests, and reads what compress/gzip writes.
func TestOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a module")
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, ok := strings.Cut(string(readme), "## For somebody else's format\n")
	example, _, ok2 := strings.Cut(example, "\n## ")
	parts := strings.Split(example, "```") // every second one is a block
	if !ok || !ok2 || len(parts) != 9 {
		t.Fatalf("README.md has no example of four blocks: %d parts", len(parts))
	}
	block := func(i int) []byte {
		_, text, _ := strings.Cut(parts[2*i+1], "\n")
		return []byte(text)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for i, name := range []string{"header.layout", "testdata/notes.golden", "name.go"} {
		if !strings.Contains(parts[2*i], "`"+name+"`") {
			t.Errorf("README.md does not say that block %d is %s", i, name)
		}
		writeFile(t, filepath.Join(dir, name), block(i))
	}
	writeFile(t, filepath.Join(dir, "go.sum"), sums)
	writeFile(t, filepath.Join(dir, "go.mod"), []byte("module example.org/gzip\n\ngo 1.26.0\n\n"+
		"require github.com/stratalog/stratalog v0.0.0\n\nreplace github.com/stratalog/stratalog => "+root+"\n"))
	writeFile(t, filepath.Join(dir, "header_test.go"), []byte(outsideTest))
	runGo(t, dir, "generate")
	runGo(t, dir, "vet", ".")
	runGo(t, dir, "test", "-count=1", ".")
	for _, name := range []string{"layouts.lock", "docs/header.md", "docs/header_records.ksy"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

const outsideTest = `package gzip

import (
	"bytes"
	"compress/gzip"
	"testing"
)

func TestReadsGzip(t *testing.T) {
	var file bytes.Buffer
	w := gzip.NewWriter(&file)
	w.Name, w.Extra = "notes.txt", []byte("xy")
	w.Write([]byte("hello"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var h HeaderView
	if err := h.Parse(file.Bytes()); err != nil {
		t.Fatal(err)
	}
	if string(h.Name()) != "notes.txt" || string(h.Extra()) != "xy" || h.HasComment() || h.Flags().String() != "Extra|Name" {
		t.Errorf("read %s", &h)
	}
	if name, compressed, err := Name(file.Bytes()); err != nil || name != "notes.txt" ||
		!bytes.Equal(compressed, file.Bytes()[len(h.Bytes()):]) {
		t.Errorf("Name = %q, %x, %v", name, compressed, err)
	}
	m := Header{Flags: FlagsExtra | FlagsName, OS: h.OS(), Extra: h.Extra(), Name: h.Name()}
	if again, err := m.Append(nil); err != nil || !bytes.HasPrefix(file.Bytes(), again) {
		t.Errorf("wrote %x, %v", again, err)
	}
	if err := h.Parse([]byte("PK\x03\x04\x0a\x00\x00\x00\x00\x00")); err == nil ||
		err.Error() != "gzip: Header.Magic at byte 0: is 0x4b50, not 0x8b1f" {
		t.Errorf("an error as in README.md: %v", err)
	}
}
`
