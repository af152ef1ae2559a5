package gen

import (
	"fmt"
	"go/ast"
	goparser "go/parser"
	gotoken "go/token"
	"path/filepath"
	"strings"
	"unicode"
)

// checkFileNames refuses schemas whose files would be one, or none of Go's.
func checkFileNames(files []*File) error {
	seen := map[string]string{"layout": "what all schemas share"}
	for _, f := range files {
		base := strings.TrimSuffix(f.Source, filepath.Ext(f.Source))
		first := []rune(base + " ")[0]
		if !unicode.IsLetter(first) && !unicode.IsDigit(first) {
			return &Error{f.Path, 1, 1, fmt.Sprintf("expected the name of a schema file to begin with a letter or a digit, found %q", f.Source)}
		}
		// The files of x_text.layout and x.layout would meet.
		key := strings.TrimSuffix(strings.ToLower(base), "_text")
		if other := seen[key]; other != "" {
			return &Error{f.Path, 1, 1, fmt.Sprintf("the Go files of %s would have the names of those of %s", f.Source, other)}
		}
		seen[key] = f.Source
	}
	return nil
}

// checkGoNames looks for Go names that two files of a package declare: those of
// the generated helpers, too, which no schema knows of.
func checkGoNames(out []Output, files []*File) error {
	taken := map[string]string{}
	fset := gotoken.NewFileSet()
	for _, o := range out {
		file, err := goparser.ParseFile(fset, o.Name, o.Source, goparser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("gen: %s is no valid Go (a bug of gen): %w", o.Name, err)
		}
		for _, name := range goNames(file) {
			if other := taken[name]; other != "" {
				return nameError(files, name)
			}
			taken[name] = o.Name
		}
	}
	return nil
}

// goNames returns what a file declares: methods with their types.
func goNames(file *ast.File) (names []string) {
	add := func(name string) {
		if name != "_" && name != "init" {
			names = append(names, name)
		}
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch x := spec.(type) {
				case *ast.TypeSpec:
					add(x.Name.Name)
				case *ast.ValueSpec:
					for _, n := range x.Names {
						add(n.Name)
					}
				}
			}
		}
	}
	return names
}

// nameError names the declaration that the Go name most likely comes from.
func nameError(files []*File, name string) error {
	path, at, found := files[0].Path, Where{1, 1}, ""
	for _, f := range files {
		for _, d := range f.declarations() {
			if strings.Contains(strings.ToLower(name), strings.ToLower(d.name)) && len(d.name) > len(found) {
				path, at, found = f.Path, d.at, d.name
			}
		}
	}
	if found == "" {
		return &Error{path, at.Line, at.Col, fmt.Sprintf("the Go name %s would be declared twice", name)}
	}
	return &Error{path, at.Line, at.Col, fmt.Sprintf("the Go name %s, which %s brings, would be declared twice: another name is needed", name, found)}
}
