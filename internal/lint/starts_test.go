package lint

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// probe is a program that imports packages and says what runs and what is open
// when main begins.
const probe = `package main

import (
	"fmt"
	"os"
	"runtime"

%s)

func main() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("goroutines", runtime.NumGoroutine())
	for _, e := range entries {
		to, _ := os.Readlink("/proc/self/fd/" + e.Name())
		fmt.Println("open", e.Name(), to)
	}
}
`

// runProbe builds and runs the probe in a process of its own. It stands, for
// the compiler alone, inside the module, so that it may import internal/.
func runProbe(t *testing.T, m *module, dirs []string) string {
	t.Helper()
	var imports strings.Builder
	for _, dir := range dirs {
		fmt.Fprintf(&imports, "\t_ %q\n", importPath(dir))
	}
	tmp := t.TempDir()
	source := filepath.Join(tmp, "main.go")
	if err := os.WriteFile(source, fmt.Appendf(nil, probe, imports.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(m.root, "internal", "lint", "probe", "main.go"): source}})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile, bin := filepath.Join(tmp, "overlay.json"), filepath.Join(tmp, "probe")
	if err := os.WriteFile(overlayFile, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", overlayFile, "-o", bin, "./internal/lint/probe")
	build.Dir = m.root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	run := exec.Command(bin)
	run.Dir = tmp
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("run: %v\n%s", err, out)
	}
	// Pipes have other numbers in each run.
	lines := strings.Split(string(out), "\n")
	for i, line := range lines {
		if at := strings.Index(line, "pipe:["); at >= 0 {
			lines[i] = line[:at] + "pipe"
		}
		if at := strings.Index(line, "/proc/"); at >= 0 {
			lines[i] = line[:at] + "/proc"
		}
	}
	return strings.Join(lines, "\n")
}

// Importing a package selects and starts nothing: a program that imports all of
// them has as many goroutines and open files as one that imports none. What is
// true of all together is true of each alone.
func TestImportingStartsNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc/self/fd")
	}
	m := load(t)
	var dirs []string
	for _, dir := range m.dirs() {
		if name := m.packages[dir].name; name != "" && name != "main" {
			dirs = append(dirs, dir)
		}
	}
	want := runProbe(t, m, nil)
	if !strings.HasPrefix(want, "goroutines 1\nopen 0 ") {
		t.Fatalf("the probe alone: %s", want)
	}
	if got := runProbe(t, m, dirs); got != want {
		t.Errorf("with all packages imported:\n%swith none:\n%s", got, want)
		for _, dir := range dirs {
			if got := runProbe(t, m, []string{dir}); got != want {
				t.Errorf("%s alone:\n%s", dir, got)
			}
		}
	}
}

// A second look, which also finds what opens a file and closes it again: no
// init functions, and nothing but plain construction in package variables.
func TestPackagesHaveNoInit(t *testing.T) {
	m := load(t)
	for _, dir := range m.dirs() {
		for _, f := range m.packages[dir].files {
			if f.test || f.ast.Name.Name == "main" {
				continue
			}
			for _, decl := range f.ast.Decls {
				switch d := decl.(type) {
				case *ast.FuncDecl:
					if d.Name.Name == "init" && d.Recv == nil {
						t.Errorf("%s: init function; let the owner call it", m.at(d))
					}
				case *ast.GenDecl:
					checkVariables(t, m, d)
				}
			}
		}
	}
}

// computed are the files whose package variables are filled by a function: they
// hold tables that are computed and touch nothing.
var computed = map[string]bool{"codec/seal.go": true}

// checkVariables looks for calls in package variables that could start or open
// something. The body of a function that is only stored does not run.
func checkVariables(t *testing.T, m *module, d *ast.GenDecl) {
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if _, ok := n.Fun.(*ast.FuncLit); ok && !computed[m.fset.Position(n.Pos()).Filename] {
				t.Errorf("%s: a function runs when the package is imported", m.at(n))
			}
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok {
				id, _ := sel.X.(*ast.Ident)
				if id != nil && slices.Contains([]string{"os", "vfs", "exec", "net", "task", "unix"}, id.Name) {
					t.Errorf("%s: %s.%s runs when the package is imported", m.at(n), id.Name, sel.Sel.Name)
				}
			}
		case *ast.FuncLit:
			return false
		}
		return true
	})
}
