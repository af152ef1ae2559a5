// Command layoutfmt writes layout schemas in their standard form.
//
// Usage:
//
//	layoutfmt [-l] [-w] [file ...]
//
// Without files it reads the standard input. It prints the result; with -l it
// prints the names of files that are not in their standard form, with -w it
// writes them. Mistakes in schemas are printed as file:line:col. A file that is no
// schema or cannot be read does not keep it from the others; the status is then 1.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/stratalog/stratalog/gen"
)

func main() {
	list := flag.Bool("l", false, "print the names of files that would change")
	write := flag.Bool("w", false, "write files that would change")
	flag.Parse()
	if err := run(flag.Args(), *list, *write, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(names []string, list, write bool, in io.Reader, out io.Writer) error {
	if len(names) == 0 {
		if list || write {
			return errors.New("layoutfmt: -l and -w need files")
		}
		src, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		text, err := gen.Format("standard input", string(src))
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, text)
		return err
	}
	var wrong []error
	for _, name := range names {
		if err := format(name, list, write, out); err != nil {
			wrong = append(wrong, err)
		}
	}
	return errors.Join(wrong...)
}

func format(name string, list, write bool, out io.Writer) error {
	src, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text, err := gen.Format(name, string(src))
	if err != nil {
		return err
	}
	if list && text != string(src) {
		fmt.Fprintln(out, name)
	}
	switch {
	case write && text != string(src):
		return os.WriteFile(name, []byte(text), 0o644)
	case !list && !write:
		_, err = io.WriteString(out, text)
	}
	return err
}
