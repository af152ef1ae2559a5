package gen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOutside builds the worked example of README.md as another module would:
// layoutgen is run by its import path, and what comes out reads what
// compress/gzip writes.
func TestOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a module")
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, schema, ok := strings.Cut(string(readme), "```\npackage gzip\n")
	schema, _, ok2 := strings.Cut(schema, "```")
	if !ok || !ok2 {
		t.Fatal("README.md has no example")
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
	writeFile(t, filepath.Join(dir, "header.layout"), []byte("package gzip\n"+schema))
	writeFile(t, filepath.Join(dir, "go.sum"), sums)
	writeFile(t, filepath.Join(dir, "go.mod"), []byte("module example.org/gzip\n\ngo 1.26.0\n\n"+
		"require github.com/stratalog/stratalog v0.0.0\n\nreplace github.com/stratalog/stratalog => "+root+"\n"))
	writeFile(t, filepath.Join(dir, "header_test.go"), []byte(outsideTest))
	runGo(t, dir, "run", "github.com/stratalog/stratalog/gen/cmd/layoutgen", "-in", "header.layout", "-out", ".")
	runGo(t, dir, "vet", ".")
	runGo(t, dir, "test", "-count=1", ".")
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
