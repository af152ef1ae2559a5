package lint

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// Every package says what it owns, once.
func TestPackageComments(t *testing.T) {
	m := load(t)
	for _, dir := range m.dirs() {
		found := ""
		library := false
		for _, f := range m.packages[dir].files {
			if f.test {
				continue
			}
			library = true
			if f.ast.Doc == nil {
				continue
			}
			text := f.ast.Doc.Text()
			want := "Package " + f.ast.Name.Name + " "
			if f.ast.Name.Name == "main" {
				want = "Command "
			}
			if !strings.HasPrefix(text, want) {
				t.Errorf("%s: the package comment does not begin with %q", f.path, want)
			}
			if found != "" {
				t.Errorf("%s and %s both have a package comment", found, f.path)
			}
			found = f.path
		}
		if library && found == "" {
			t.Errorf("%s: no package comment", dir)
		}
	}
}

// Everything that is exported has a comment.
func TestExportedIsDocumented(t *testing.T) {
	m := load(t)
	for _, dir := range m.dirs() {
		for _, f := range m.packages[dir].files {
			if f.test || f.ast.Name.Name == "main" {
				continue
			}
			for _, decl := range f.ast.Decls {
				for _, name := range undocumented(decl) {
					t.Errorf("%s: %s has no comment", m.at(decl), name)
				}
			}
		}
	}
}

// undocumented returns the exported names of decl without a comment. A comment
// on a group serves all of it.
func undocumented(decl ast.Decl) []string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() || d.Doc.Text() != "" {
			return nil
		}
		if d.Recv != nil && !ast.IsExported(receiver(d)) {
			return nil
		}
		return []string{d.Name.Name}
	case *ast.GenDecl:
		if d.Doc.Text() != "" && !isType(d) {
			return nil
		}
		var names []string
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && s.Doc.Text() == "" && (d.Lparen.IsValid() || d.Doc.Text() == "") {
					names = append(names, s.Name.Name)
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() && s.Doc.Text() == "" && s.Comment.Text() == "" {
						names = append(names, name.Name)
					}
				}
			}
		}
		return names
	}
	return nil
}

func isType(d *ast.GenDecl) bool {
	for _, spec := range d.Specs {
		if _, ok := spec.(*ast.TypeSpec); ok {
			return true
		}
	}
	return false
}

// receiver returns the name of the type that d is a method of.
func receiver(d *ast.FuncDecl) string {
	e := d.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

var generatedHeader = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// A generated file says so, and only those do.
func TestGeneratedHeader(t *testing.T) {
	m := load(t)
	count := 0
	for _, dir := range m.dirs() {
		for _, f := range m.packages[dir].files {
			named := strings.HasSuffix(f.name, "_gen.go") || strings.HasSuffix(f.name, "_gen_test.go")
			head, _, _ := strings.Cut(string(f.text), "\npackage ")
			marked := generatedHeader.MatchString(head)
			if named != marked {
				t.Errorf("%s: named as generated %v, marked as generated %v", f.path, named, marked)
			}
			if named {
				count++
			}
		}
	}
	if count == 0 {
		t.Error("no generated file was found")
	}
}
