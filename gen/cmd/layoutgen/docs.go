package main

import (
	"flag"
	"os"
	"path/filepath"

	"github.com/stratalog/stratalog/gen"
)

// With -docs or -ksy it writes no Go.
var (
	docs = flag.String("docs", "", "the folder to write a page X.md for each X.layout to, instead of Go")
	ksy  = flag.String("ksy", "", "the folder to write a Kaitai Struct file X_records.ksy for each X.layout to, instead of Go")
)

// describe writes what people and other languages read: the pages of the
// schemas into the folder of -docs, and their Kaitai Struct files into that of
// -ksy. The golden bytes for the examples are in the folder testdata beside the
// schemas.
func describe(in string) error {
	schemas, err := read(in)
	if err != nil {
		return err
	}
	files, err := gen.ParsePackage(schemas, "")
	if err != nil {
		return err
	}
	emit := func(dir string, f *gen.File, of func(*gen.File) (gen.Output, error)) error {
		if dir == "" {
			return nil
		}
		out, err := of(f)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		return write(filepath.Join(dir, out.Name), out.Source)
	}
	golden := func(name string) (string, error) {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(in), "testdata", name+".golden"))
		return string(text), err
	}
	page := func(f *gen.File) (gen.Output, error) { return gen.Docs(f, golden) }
	for _, f := range files {
		if err := emit(*docs, f, page); err != nil {
			return err
		}
		if err := emit(*ksy, f, gen.Kaitai); err != nil {
			return err
		}
	}
	return nil
}
