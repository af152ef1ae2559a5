// Command layoutgen makes Go codecs from the layout schemas of a package.
//
// Usage:
//
//	layoutgen -in '*.layout' -out . -package codec
//
// For X.layout it writes X_gen.go, X_text_gen.go and X_gen_test.go into the
// -out folder, and for all schemas layout_gen.go and layout_gen_test.go, which
// they share: so one run must see all schemas of a package. It leaves files
// alone whose bytes would not change. A mistake in a schema is printed as
// file:line:col and ends it with status 1.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stratalog/stratalog/gen"
)

func main() {
	in := flag.String("in", "", "the schemas to read, a pattern like *.layout (required)")
	out := flag.String("out", ".", "the folder to write to")
	pkg := flag.String("package", "", "the package that the schemas must name (default: any)")
	flag.Parse()
	if *in == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*in, *out, *pkg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in, out, pkg string) error {
	schemas, err := read(in)
	if err != nil {
		return err
	}
	files, err := gen.GeneratePackage(schemas, pkg)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := write(filepath.Join(out, f.Name), f.Source); err != nil {
			return err
		}
	}
	return nil
}

// read reads the schemas that a pattern names, in the order of their names.
func read(pattern string) ([]gen.Schema, error) {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("layoutgen: no file matches %s", pattern)
	}
	var schemas []gen.Schema
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		schemas = append(schemas, gen.Schema{File: name, Text: string(src)})
	}
	return schemas, nil
}

// write writes a file unless it has these bytes already.
func write(path string, content []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return nil
	}
	return os.WriteFile(path, content, 0o644)
}
