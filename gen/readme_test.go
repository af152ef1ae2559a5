package gen

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadmeSchemas: every schema that README.md shows is one, and is formatted.
func TestReadmeSchemas(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(readme), "```\n")
	shown := 0
	for _, b := range blocks {
		if !strings.HasPrefix(b, "package ") && !strings.HasPrefix(b, "// ") {
			continue
		}
		shown++
		if !strings.Contains("\n"+b, "\npackage ") {
			b = "package p\n\n" + b
		}
		if _, err := Parse("README.md", b); err != nil {
			t.Errorf("%v in\n%s", err, b)
		}
		if got, err := Format("README.md", b); err != nil || got != b {
			t.Errorf("%v; formatted it is\n%s", err, got)
		}
	}
	if shown < 5 {
		t.Errorf("README.md shows %d schemas", shown)
	}
}

// TestReadmeFlags: README.md tells each flag of the two commands, and no others.
func TestReadmeFlags(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`flag\.(?:String|Bool)\("([a-z]+)"`)
	told := regexp.MustCompile("(?m)^\\| `-([a-z]+)[ `]")
	for _, command := range []string{"layoutgen", "layoutfmt"} {
		_, table, ok := strings.Cut(string(readme), "| flag of `"+command+"` |")
		table, _, _ = strings.Cut(table, "\n\n")
		flags := map[string]int{}
		sources, err := filepath.Glob("cmd/" + command + "/*.go")
		if err != nil || !ok {
			t.Fatalf("%s: no table, or %v", command, err)
		}
		for _, name := range sources {
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range declared.FindAllSubmatch(src, -1) {
				flags[string(m[1])]++
			}
		}
		for _, m := range told.FindAllStringSubmatch(table, -1) {
			flags[m[1]] += 2
		}
		for name, is := range flags {
			if is != 3 {
				t.Errorf("%s -%s: is declared %v, is in README.md %v", command, name, is&1 != 0, is&2 != 0)
			}
		}
		if len(flags) < 2 {
			t.Errorf("%s has %d flags", command, len(flags))
		}
	}
}
