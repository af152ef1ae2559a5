package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const modulePath = "github.com/stratalog/stratalog"

// sourceFile is one Go file of the module, whatever system it is for.
type sourceFile struct {
	name string // base name
	path string // below the module's root, with slashes
	text []byte
	ast  *ast.File
	test bool
}

// imports returns the paths that f imports.
func (f *sourceFile) imports() []string {
	var paths []string
	for _, spec := range f.ast.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

// sourcePackage is a directory with Go files.
type sourcePackage struct {
	dir   string // below the module's root, "." for the root
	name  string
	files []*sourceFile
}

// module is the source of the whole module.
type module struct {
	root     string
	fset     *token.FileSet
	packages map[string]*sourcePackage // by dir
}

var loadOnce = sync.OnceValues(loadModule)

// load returns the module's source, parsed once.
func load(t *testing.T) *module {
	t.Helper()
	m, err := loadOnce()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func loadModule() (*module, error) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return nil, err
	}
	m := &module{root: root, fset: token.NewFileSet(), packages: map[string]*sourcePackage{}}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return m.enter(p, d.Name(), rel)
		}
		if !strings.HasSuffix(d.Name(), ".go") {
			return nil
		}
		return m.add(p, filepath.ToSlash(rel))
	})
	return m, err
}

// enter skips what is not part of the module: other modules, data, and folders
// that the go command leaves out too.
func (m *module) enter(p, name, rel string) error {
	if rel == "." {
		return nil
	}
	if name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

func (m *module) add(p, rel string) error {
	text, err := os.ReadFile(p)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(m.fset, rel, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir := filepath.ToSlash(filepath.Dir(rel))
	pkg := m.packages[dir]
	if pkg == nil {
		pkg = &sourcePackage{dir: dir}
		m.packages[dir] = pkg
	}
	f := &sourceFile{name: filepath.Base(rel), path: rel, text: text, ast: file, test: strings.HasSuffix(rel, "_test.go")}
	if !f.test {
		pkg.name = file.Name.Name
	}
	pkg.files = append(pkg.files, f)
	return nil
}

// dirs returns the directories of all packages, sorted.
func (m *module) dirs() []string {
	var dirs []string
	for dir := range m.packages {
		dirs = append(dirs, dir)
	}
	sort.Strings(dirs)
	return dirs
}

// at returns the place of a node as file:line.
func (m *module) at(n ast.Node) string {
	p := m.fset.Position(n.Pos())
	return p.Filename + ":" + strconv.Itoa(p.Line)
}

// read returns a text file of the module.
func (m *module) read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(m.root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// importPath returns the import path of the package in dir.
func importPath(dir string) string {
	if dir == "." {
		return modulePath
	}
	return modulePath + "/" + dir
}

// ownDir returns the directory of an import path of this module; false for any
// other path.
func ownDir(path string) (string, bool) {
	if path == modulePath {
		return ".", true
	}
	return strings.CutPrefix(path, modulePath+"/")
}

// standard reports whether path is of the standard library.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") && path != "C"
}

// matches reports whether path is pattern, or below it if pattern ends in
// "/...".
func matches(pattern, path string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == base || strings.HasPrefix(path, base+"/")
	}
	return path == pattern
}

func matchesAny(patterns []string, path string) bool {
	for _, pattern := range patterns {
		if matches(pattern, path) {
			return true
		}
	}
	return false
}
