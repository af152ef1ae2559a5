package lint

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// typedFiles are the files of one package, for whatever system each of them is,
// with the types of what they say. A type that cannot be told, since a module is
// not there or since two files for two systems declare one name, is unknown: it
// does not end the check.
type typedFiles struct {
	files map[string]*ast.File // by path
	info  *types.Info
}

// checkTypes finds the types of what files say.
func checkTypes(fset *token.FileSet, imp types.Importer, dir string, files map[string]*ast.File) *typedFiles {
	out := &typedFiles{files: files, info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}}
	config := types.Config{Importer: imp, Error: func(error) {}, FakeImportC: true}
	_, _ = config.Check(dir, fset, sorted(files), out.info)
	return out
}

// sorted returns the files by their paths: which of two declarations of a name
// counts must not change from run to run.
func sorted(files map[string]*ast.File) []*ast.File {
	var list []*ast.File
	for _, name := range slices.Sorted(maps.Keys(files)) {
		list = append(list, files[name])
	}
	return list
}

// everyPackage calls visit with the packages of this module and of those below
// it, those of tests outside a package among them.
func everyPackage(t *testing.T, m *module, visit func(*typedFiles)) {
	t.Helper()
	packages := map[string]map[string]*ast.File{} // by folder and name
	everyFile(t, m, func(name string, file *ast.File) {
		key := path.Dir(name) + " " + file.Name.Name
		if packages[key] == nil {
			packages[key] = map[string]*ast.File{}
		}
		packages[key][name] = file
	})
	imp := newImporter(t, m, packages)
	for key, files := range packages {
		visit(checkTypes(m.fset, imp, key, files))
	}
}

// moduleImporter imports the packages of this module from their source, all
// others from what the go command has compiled.
type moduleImporter struct {
	fset     *token.FileSet
	files    map[string][]*ast.File // by folder, without those of tests
	compiled types.Importer
	done     map[string]*types.Package
}

func newImporter(t *testing.T, m *module, packages map[string]map[string]*ast.File) *moduleImporter {
	t.Helper()
	paths, sources := map[string]bool{}, map[string][]*ast.File{}
	for _, files := range packages {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			file := files[name]
			if dir := path.Dir(name); !strings.HasSuffix(name, "_test.go") {
				sources[dir] = append(sources[dir], file)
			}
			for _, spec := range file.Imports {
				p := strings.Trim(spec.Path.Value, "\"`")
				if _, own := ownDir(p); !own && p != "unsafe" && p != "C" {
					paths[p] = true
				}
			}
		}
	}
	args := []string{"list", "-e", "-export", "-f", "{{if .Export}}{{.ImportPath}} {{.Export}}{{end}}"}
	for p := range paths {
		args = append(args, p)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = m.root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -export: %v", err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if p, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			exports[p] = file
		}
	}
	if exports["os"] == "" {
		t.Fatalf("go list -export knows no package os: %s", out)
	}
	open := func(p string) (io.ReadCloser, error) {
		if exports[p] == "" {
			return nil, fmt.Errorf("%s was not compiled", p)
		}
		return os.Open(exports[p])
	}
	return &moduleImporter{fset: m.fset, files: sources, compiled: importer.ForCompiler(token.NewFileSet(), "gc", open),
		done: map[string]*types.Package{}}
}

// Import returns the package with that path.
func (i *moduleImporter) Import(p string) (*types.Package, error) {
	dir, own := ownDir(p)
	switch {
	case p == "unsafe":
		return types.Unsafe, nil
	case !own || i.files[dir] == nil:
		return i.compiled.Import(p)
	case i.done[p] != nil:
		return i.done[p], nil
	}
	config := types.Config{Importer: i, Error: func(error) {}, IgnoreFuncBodies: true}
	i.done[p], _ = config.Check(p, i.fset, i.files[dir], nil)
	return i.done[p], nil
}
