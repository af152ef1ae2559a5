// Command layoutgen makes Go codecs from the layout schemas of a package.
//
// Usage:
//
//	layoutgen -in '*.layout' -out . -package codec -lock layouts.lock [-accept]
//	layoutgen -in '*.layout' [-docs folder] [-ksy folder]
//
// For X.layout it writes X_gen.go, X_text_gen.go and X_gen_test.go into the
// -out folder, and for all schemas layout_gen.go and layout_gen_test.go, which
// they share: so one run must see all schemas of a package. It leaves files
// alone whose bytes would not change. A mistake in a schema is printed as
// file:line:col and ends it with status 1.
//
// With -lock it first checks that what it generated before can still be read: the
// lock file, which is committed, has one line for each field. A change that
// breaks readers is refused; -accept takes it, and writes the lock file anew.
//
// With -docs or -ksy it writes no Go, but a page X.md, or a Kaitai Struct file
// X_records.ksy, for each X.layout.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stratalog/stratalog/gen"
)

func main() {
	in := flag.String("in", "", "the schemas to read, a pattern like *.layout (required)")
	out := flag.String("out", ".", "the folder to write to")
	pkg := flag.String("package", "", "the package that the schemas must name (default: any)")
	lock := flag.String("lock", "", "the lock file to check against and to keep up to date (default: none)")
	accept := flag.Bool("accept", false, "accept changes that the lock file does not allow")
	flag.Parse()
	if *in == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*in, *out, *pkg, *lock, *accept); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in, out, pkg, lock string, accept bool) error {
	if *docs != "" || *ksy != "" {
		return describe(in)
	}
	schemas, err := read(in)
	if err != nil {
		return err
	}
	parsed, err := gen.ParsePackage(schemas, pkg)
	if err != nil {
		return err
	}
	if lock != "" {
		if err := check(parsed, lock, accept); err != nil {
			return err
		}
	}
	files, err := gen.GenerateFiles(parsed)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := write(filepath.Join(out, f.Name), f.Source); err != nil {
			return err
		}
	}
	if lock != "" {
		return write(lock, []byte(gen.LockText(parsed))) // last: it must not be ahead of the code
	}
	return nil
}

// check checks the schemas against the lock file, unless a break is accepted or
// there is none yet.
func check(files []*gen.File, lock string, accept bool) error {
	old, err := os.ReadFile(lock)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && !accept {
		err := gen.CheckLock(files, string(old))
		var place *gen.Error
		if errors.As(err, &place) && place.File == "" {
			place.File = lock
		}
		return err
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
