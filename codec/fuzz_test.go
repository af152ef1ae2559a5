package codec

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
)

// TestEveryRecordIsFuzzed: Parse of each record has a fuzz target, and its golden
// bytes are among the seeds: they lead past what a magic or a checksum refuses.
func TestEveryRecordIsFuzzed(t *testing.T) {
	seeds := map[string][]string{} // by target: the functions that are called in f.Add
	names, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				seeds[f.Name.Name] = calls(f)
			}
		}
	}
	for _, r := range Records() {
		target := "Fuzz" + r.Name + "Parse"
		if called, ok := seeds[target]; !ok || !slices.Contains(called, "readGolden") || !slices.Contains(called, "hold"+r.Name) {
			t.Errorf("%s: %s is there: %v; it calls %v", r.Name, target, ok, called)
		}
	}
}

// calls returns the names of the functions that f calls.
func calls(f *ast.FuncDecl) (names []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if id, ok := call.Fun.(*ast.Ident); ok {
				names = append(names, id.Name)
			}
		}
		return true
	})
	return names
}
