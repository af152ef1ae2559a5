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
// the generated helpers, too, which no schema knows of. And it looks for those
// that variables within the generated functions hide.
func checkGoNames(out []Output, files []*File) error {
	taken, local := map[string]string{}, map[string]bool{}
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
		if !strings.HasPrefix(o.Name, "layout_gen") { // what is shared knows no record
			localNames(file, local)
		}
	}
	for _, f := range files {
		for _, d := range f.declarations() {
			if local[d.name] {
				return &Error{f.Path, d.at.Line, d.at.Col, fmt.Sprintf("expected a name that no variable in the generated code has, found %q", d.name)}
			}
		}
	}
	return nil
}

// localNames adds the names of parameters and variables in functions.
func localNames(file *ast.File, names map[string]bool) {
	add := func(x ast.Expr) {
		if id, ok := x.(*ast.Ident); ok {
			names[id.Name] = true
		}
	}
	addAll := func(list *ast.FieldList) {
		if list == nil {
			return
		}
		for _, field := range list.List {
			for _, name := range field.Names {
				add(name)
			}
		}
	}
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		addAll(fn.Recv)
		ast.Inspect(fn, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncType:
				addAll(n.Params)
				addAll(n.Results)
			case *ast.AssignStmt:
				if n.Tok == gotoken.DEFINE {
					for _, x := range n.Lhs {
						add(x)
					}
				}
			case *ast.RangeStmt:
				if n.Tok == gotoken.DEFINE {
					add(n.Key)
					add(n.Value)
				}
			case *ast.ValueSpec:
				for _, name := range n.Names {
					add(name)
				}
			}
			return true
		})
	}
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
