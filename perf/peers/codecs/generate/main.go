// Command generate writes the code of every codec of package codecs from its
// schema, by the released generators that go.mod names; flatc, which is no Go
// program, is that of the Debian package flatbuffers-compiler.
//
//	go run ./generate -out .     from the folder of package codecs
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	out := flag.String("out", ".", "the folder that gets the folders of the codecs")
	flag.Parse()
	if err := generate(*out); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// generate reads the schemas below the working directory and writes below out.
func generate(out string) error {
	for _, dir := range []string{"plain", "vt", "mp", "fb"} {
		if err := os.MkdirAll(filepath.Join(out, dir), 0o755); err != nil {
			return err
		}
	}
	if err := tool("go", "run", "github.com/stratalog/stratalog/gen/cmd/layoutgen",
		"-in", "plain/record.layout", "-out", filepath.Join(out, "plain"), "-package", "plain"); err != nil {
		return err
	}
	if err := protobuf("vt/record.proto", out); err != nil {
		return err
	}
	if err := tool("go", "tool", "msgp", "-io=false", "-tests=false",
		"-file", "mp/record.go", "-o", filepath.Join(out, "mp", "record_gen.go")); err != nil {
		return err
	}
	return tool("flatc", "--go", "-o", out, "fb/record.fbs")
}

// tool runs a program and shows what it printed only if it fails.
func tool(name string, args ...string) error {
	said, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said)
	}
	return nil
}
