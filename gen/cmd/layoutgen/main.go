// Command layoutgen makes Go codecs from a layout schema.
//
// Usage:
//
//	layoutgen -in message.layout -out . -package codec
//
// It writes message_gen.go and message_gen_test.go into the -out folder, and
// leaves files alone whose bytes would not change. A mistake in the schema is
// printed as file:line:col and ends it with status 1.
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
	in := flag.String("in", "", "the schema to read (required)")
	out := flag.String("out", ".", "the folder to write to")
	pkg := flag.String("package", "", "the package that the schema must name (default: any)")
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
	src, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	files, err := gen.Generate(in, string(src), pkg)
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(out, f.Name)
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, f.Source) {
			continue
		}
		if err := os.WriteFile(path, f.Source, 0o644); err != nil {
			return err
		}
	}
	return nil
}
