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
