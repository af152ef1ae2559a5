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

// TestCodecIsUpToDate: what is checked in is what the schemas give.
func TestCodecIsUpToDate(t *testing.T) {
	schemas := readSchemas(t, "../codec/*.layout")
	for range 2 {
		files, err := GeneratePackage(schemas, "codec")
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

// readSchemas reads the schemas that a pattern names.
func readSchemas(t testing.TB, pattern string) []Schema {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no schemas: %v", err)
	}
	var out []Schema
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, Schema{name, string(src)})
	}
	return out
}

// TestGeneratedTestsPass generates from a schema with every word of the
// language into a module of its own, and runs the tests that come out.
func TestGeneratedTestsPass(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a module")
	}
	dir := t.TempDir()
	files, err := GeneratePackage(readSchemas(t, "testdata/*.layout"), "sample")
	if err != nil {
		t.Fatal(err)
	}
	writeModule(t, dir, "sample", files)
	goldens, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(goldens) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, g := range goldens {
		content, err := os.ReadFile(g)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, "testdata", filepath.Base(g)), content)
	}
	runGo(t, dir, "vet", ".")
	runGo(t, dir, "test", "-count=1", ".")
}

func writeFile(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// writeModule writes generated files as a module of one package.
func writeModule(t testing.TB, dir, name string, files []Output) {
	t.Helper()
	writeFile(t, filepath.Join(dir, "go.mod"), []byte("module "+name+"\n\ngo 1.26\n"))
	for _, f := range files {
		writeFile(t, filepath.Join(dir, f.Name), f.Source)
	}
}

// runGo runs the go command in a module of its own.
func runGo(t testing.TB, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// FuzzParse: no text makes the generator panic, an error has a place, and what
// is a schema can be formatted and generated from.
func FuzzParse(f *testing.F) {
	for _, s := range readSchemas(f, "testdata/*.layout") {
		f.Add(s.Text)
	}
	f.Add("package p\n// R.\nrecord R {\nA u8\n}\n")
	f.Fuzz(func(t *testing.T, src string) {
		parsed, err := Parse("x.layout", src)
		var e *Error
		if err != nil {
			if !errors.As(err, &e) {
				t.Fatalf("error without a place: %v", err)
			}
			return
		}
		once, err := Format("x.layout", src)
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := Format("x.layout", once); err != nil || once != twice {
			t.Fatalf("%v; formatted\n%s\nand again\n%s", err, once, twice)
		}
		if err := CheckLock([]*File{parsed}, LockText([]*File{parsed})); err != nil {
			t.Fatal(err)
		}
	})
}
