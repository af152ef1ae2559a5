package gen

import (
	goparser "go/parser"
	gotoken "go/token"
	"os"
	"path"
	"strings"
	"testing"
)

// Names that no rule of the language knows of, since they come from what is
// generated, are refused with their place all the same.
func TestGoNames(t *testing.T) {
	record := func(names ...string) string {
		text := "package p\n"
		for _, name := range names {
			text += "// " + name + ".\nrecord " + name + " {\n\tA u8\n}\n"
		}
		return text
	}
	for _, c := range []struct {
		schemas []Schema
		want    string
	}{
		{[]Schema{{"x.layout", record("View")}}, "x.layout:3:8: the Go name viewOf"},
		{[]Schema{{"x.layout", record("Int")}}, "x.layout:3:8: the Go name randomInt"},
		{[]Schema{{"x.layout", record("Bytes")}}, "x.layout:3:8: the Go name randomBytes"},
		{[]Schema{{"x.layout", record("One", "m")}}, "x.layout:7:8: expected a name that no variable in the generated code has, found \"m\""},
		{[]Schema{{"x.layout", record("dst")}}, "x.layout:3:8: expected a name that no variable"},
		{[]Schema{{"x.layout", record("got")}}, "x.layout:3:8: expected a name that no variable"},
		{[]Schema{{"x.layout", record("some", "other")}}, ""},
		{[]Schema{{"layout.layout", record("Some")}}, "layout.layout:1:1: the Go files of layout.layout would have the names of those of what all schemas share"},
		{[]Schema{{"x.layout", record("One")}, {"x_text.layout", record("Two")}}, "x_text.layout:1:1: the Go files"},
		{[]Schema{{"x.layout", record("One")}, {"X.layout", record("Two")}}, "X.layout:1:1: the Go files"},
		{[]Schema{{".layout", record("One")}}, ".layout:1:1: expected the name of a schema file"},
		{[]Schema{{"-in.layout", record("One")}}, "-in.layout:1:1: expected the name of a schema file"},
		{[]Schema{{"x.layout", record("Record", "Order")}, {"y.layout", record("Layout")}}, ""},
	} {
		_, err := GeneratePackage(c.schemas, "")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%v: %v, want %q", c.schemas[0].File, err, c.want)
		}
	}
}

// A schema must not hide a package that generated code imports, whichever that is.
func TestImportsAreKnown(t *testing.T) {
	for _, name := range []string{"testdata/all.layout", "testdata/more.layout"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out, err := Generate(name, string(text), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range out {
			file, err := goparser.ParseFile(gotoken.NewFileSet(), o.Name, o.Source, goparser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range file.Imports {
				name := path.Base(strings.Trim(spec.Path.Value, `"`))
				if name == "v2" {
					name = "rand"
				}
				if hides(name) == "" {
					t.Errorf("%s imports %s, which a record may be called", o.Name, spec.Path.Value)
				}
			}
		}
	}
}

// A file that is no whole lock file checks nothing, so it is refused.
func TestNoLockFile(t *testing.T) {
	file, err := ParsePackage([]Schema{{"x.layout", "package p\n// R.\nrecord R {\n\tA u8\n}\n"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	good := LockText(file)
	for text, want := range map[string]string{
		"":         ":1:1: expected the heading",
		"\x00\x01": ":1:1: expected the heading",
		good + good[strings.Index(good, "\nrecord"):]:            ": R is there twice",
		strings.Replace(good, "record", "<<<<<<< a\nrecord", 1):  "found \"<<<<<<< a\"",
		strings.Replace(good, "record R", "\tX u8\nrecord R", 1): "found \"X u8\"",
		good: "",
	} {
		err := CheckLock(file, text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
