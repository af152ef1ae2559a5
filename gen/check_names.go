package gen

import (
	goparser "go/parser"
	gotoken "go/token"
	"go/types"
	"path"
	"strconv"
	"strings"
	"sync"
)

// supportNames are the names that support/layout.go.txt declares for users.
var supportNames = []string{"Describer", "ErrNewerVersion", "ErrShortBuffer", "FieldError", "FieldInfo", "RecordInfo", "Records"}

// declare takes a name for something that the schema declares, with its
// comment.
func (c *checker) declare(what string, doc []string, name string, at Where) error {
	a := "a " + what
	if what == "enum" {
		a = "an enum"
	}
	switch hidden := hides(name); {
	case isGoWord(name):
		return c.fail(at, "expected %s name that is no word of Go, found %q", a, name)
	case hidden != "":
		return c.fail(at, "expected %s name that hides nothing, found %q, which is %s", a, name, hidden)
	case c.taken[name] == what:
		return c.fail(at, "%s %q is declared twice", what, name)
	case c.taken[name] != "":
		return c.fail(at, "the name %q is taken by %s", name, c.taken[name])
	case len(doc) == 0:
		c.told.add(c.fail(at, "%s %q needs a comment above it", what, name))
	}
	c.taken[name] = what
	return nil
}

// take takes a Go name that follows from the schema.
func (c *checker) take(at Where, name, what string) error {
	if isGoWord(name) {
		return c.fail(at, "the Go name %s of %s is a word of Go", name, what)
	}
	if hidden := hides(name); hidden != "" {
		return c.fail(at, "the Go name %s of %s hides %s", name, what, hidden)
	}
	if c.taken[name] != "" {
		return c.fail(at, "the Go name %s of %s is taken by %s", name, what, c.taken[name])
	}
	c.taken[name] = what
	return nil
}

// checkPackage refuses the names that no package has.
func (c *checker) checkPackage(name syntaxName) error {
	switch {
	case gotoken.IsKeyword(name.text) || name.text == "_":
		return c.fail(name.at, "expected a package name that is no word of Go, found %q", name.text)
	case strings.HasSuffix(name.text, "_test"):
		return c.fail(name.at, `expected a package name without "_test", which Go has for tests alone, found %q`, name.text)
	case name.text == "documentation":
		return c.fail(name.at, "expected a package name that the go command does not pass over, found %q", name.text)
	}
	return nil
}

// isGoWord says whether nothing that a schema declares can have that name in Go.
func isGoWord(name string) bool {
	return gotoken.IsKeyword(name) || name == "_" || name == "init" || name == "main"
}

// hides says what generated code could not name any more if its package declared
// name; "" is nothing.
func hides(name string) string {
	switch {
	case types.Universe.Lookup(name) != nil:
		return "what Go itself declares"
	case importedNames()[name]:
		return "a package that the generated code imports"
	}
	return ""
}

// importedNames returns the names of the packages that generated code imports.
var importedNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, x := range importWords {
		names[strings.TrimSuffix(x.word, ".")] = true
	}
	for _, text := range [][]byte{supportCode, supportTests} {
		file, err := goparser.ParseFile(gotoken.NewFileSet(), "", text, goparser.ImportsOnly)
		if err != nil {
			panic("gen: support is no Go: " + err.Error())
		}
		for _, spec := range file.Imports {
			p, _ := strconv.Unquote(spec.Path.Value)
			if base := path.Base(p); base != "v2" { // math/rand/v2 is among importWords
				names[base] = true
			}
		}
	}
	return names
})
