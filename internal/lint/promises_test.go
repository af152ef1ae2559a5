package lint

import (
	"flag"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/gen"
)

var update = flag.Bool("update", false, "write the example into README.md")

// finding returns why the test that ref names cannot be relied on; "" if it
// can. ref is folder.TestName or folder.TestName/sub/test; the root's folder is
// written stratalog.
func (m *module) finding(ref string) string {
	dir, name, ok := cutTestName(ref)
	if !ok {
		return "not of the form folder.TestName"
	}
	pkg := m.packages[dir]
	if pkg == nil {
		return "there is no package " + dir
	}
	name, sub, _ := strings.Cut(name, "/")
	decl, _ := pkg.testFunc(name)
	if decl == nil {
		return "there is no such test"
	}
	if skipsAlways(decl) {
		return "the test is always skipped"
	}
	if sub != "" && !m.namesSubtest(pkg, sub) {
		return "no string in the package's tests names the subtest"
	}
	return ""
}

var testRef = regexp.MustCompile(`^([a-z0-9/]+)\.((?:Test|Fuzz|Benchmark|Example)[A-Za-z0-9_]*(?:/[\w/.-]+)?)$`)

func cutTestName(ref string) (dir, name string, ok bool) {
	match := testRef.FindStringSubmatch(ref)
	if match == nil {
		return "", "", false
	}
	if dir = match[1]; dir == "stratalog" {
		dir = "."
	}
	return dir, match[2], true
}

func (p *sourcePackage) testFunc(name string) (*ast.FuncDecl, *sourceFile) {
	for _, f := range p.files {
		if !f.test {
			continue
		}
		for _, decl := range f.ast.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == name {
				return d, f
			}
		}
	}
	return nil, nil
}

// skipsAlways reports whether a statement of the body itself skips.
func skipsAlways(d *ast.FuncDecl) bool {
	for _, stmt := range d.Body.List {
		expr, ok := stmt.(*ast.ExprStmt)
		if !ok {
			continue
		}
		call, ok := expr.X.(*ast.CallExpr)
		if !ok {
			continue
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
			switch sel.Sel.Name {
			case "Skip", "Skipf", "SkipNow":
				return true
			}
		}
	}
	return false
}

// namesSubtest reports whether the strings of pkg's tests, and the words of
// contract, hold sub, whole or each of its parts. That is not proof: .ci/run
// also looks for its result in what the tests print.
func (m *module) namesSubtest(pkg *sourcePackage, sub string) bool {
	missing := map[string]bool{}
	for part := range strings.SplitSeq(sub, "/") {
		missing[part] = true
	}
	whole := false
	for _, f := range append(pkg.files[:len(pkg.files):len(pkg.files)], m.packages["contract"].files...) {
		if !f.test && pkg.dir != "contract" && !strings.HasPrefix(f.path, "contract/") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok {
				return true
			}
			s, err := strconv.Unquote(lit.Value)
			if err != nil {
				return true
			}
			whole = whole || s == sub
			for part := range strings.SplitSeq(s, "/") {
				delete(missing, part)
			}
			return true
		})
	}
	return whole || len(missing) == 0
}

// tableRows returns the cells of the rows of every table in text, headers and
// separators left out.
func tableRows(text string) [][]string {
	var rows [][]string
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|-") {
			continue
		}
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|-") {
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		rows = append(rows, cells)
	}
	return rows
}

var quoted = regexp.MustCompile("`([^`]+)`")

// section returns the part of text under the heading title, up to the next one
// of the same depth.
func section(t *testing.T, text, title string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n## "+title+"\n")
	if !ok {
		t.Fatalf("no section %q", title)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	return rest
}

// features is how many rows the scoreboard has.
const features = 98

func TestScoreboard(t *testing.T) {
	m := load(t)
	rows := tableRows(section(t, m.read(t, "docs/SCOREBOARD.md"), "Features"))
	if len(rows) != features {
		t.Errorf("%d rows, want %d", len(rows), features)
	}
	counts := map[string]int{}
	for i, row := range rows {
		where := fmt.Sprintf("row %d", i+1)
		if len(row) != 5 {
			t.Errorf("%s: %d cells, want number, feature, state, tests, what is missing", where, len(row))
			continue
		}
		if row[0] != strconv.Itoa(i+1) || row[1] == "" {
			t.Errorf("%s: numbered %q, feature %q", where, row[0], row[1])
		}
		refs := quoted.FindAllStringSubmatch(row[3], -1)
		counts[row[2]]++
		switch row[2] {
		case "works":
			if len(refs) == 0 {
				t.Errorf("%s works, and no test shows it", where)
			}
		case "partly":
			if len(refs) == 0 || row[4] == "" {
				t.Errorf("%s works partly: name a test, and what is missing", where)
			}
		case "not yet":
			if len(refs) != 0 || row[4] == "" {
				t.Errorf("%s is not there yet: name no test, and what brings it", where)
			}
		default:
			t.Errorf("%s: state %q is none of works, partly, not yet", where, row[2])
		}
		for _, ref := range refs {
			if why := m.finding(ref[1]); why != "" {
				t.Errorf("%s names %s: %s", where, ref[1], why)
			}
		}
	}
	t.Logf("works %d, partly %d, not yet %d", counts["works"], counts["partly"], counts["not yet"])
}

// Every append and get status stands in its table, with the test that reaches
// it or what will bring it.
func TestScoreboardStatuses(t *testing.T) {
	m := load(t)
	text := m.read(t, "docs/SCOREBOARD.md")
	for title, prefix := range map[string]string{"Append statuses": "Status", "Get statuses": "Get"} {
		listed := map[string]bool{}
		for _, row := range tableRows(section(t, text, title)) {
			if len(row) != 3 {
				t.Errorf("%s: %v has %d cells, want status, tests, what brings it", title, row, len(row))
				continue
			}
			name := strings.Trim(row[0], "`")
			listed[name] = true
			refs := quoted.FindAllStringSubmatch(row[1], -1)
			if len(refs) == 0 && row[2] == "" {
				t.Errorf("%s: %s has neither a test nor what brings it", title, name)
			}
			for _, ref := range refs {
				if why := m.finding(ref[1]); why != "" {
					t.Errorf("%s: %s names %s: %s", title, name, ref[1], why)
				}
			}
		}
		for _, name := range m.statuses(t, prefix) {
			if !listed[name] {
				t.Errorf("%s: %s is missing", title, name)
			}
			delete(listed, name)
		}
		for name := range listed {
			t.Errorf("%s: there is no %s", title, name)
		}
	}
}

// statuses returns the constants of contract/status.go that begin with prefix.
func (m *module) statuses(t *testing.T, prefix string) []string {
	t.Helper()
	var names []string
	for _, f := range m.packages["contract"].files {
		if f.name != "status.go" {
			continue
		}
		for _, decl := range f.ast.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range d.Specs {
				s, ok := spec.(*ast.ValueSpec)
				if !ok {
					continue
				}
				for _, name := range s.Names {
					if name.IsExported() && strings.HasPrefix(name.Name, prefix) {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	if len(names) == 0 {
		t.Fatalf("no statuses %s...", prefix)
	}
	return names
}

// Each cell of README's durability table names a test that exists.
func TestDurabilityCells(t *testing.T) {
	m := load(t)
	rows := tableRows(section(t, m.read(t, "README.md"), "What an answer means"))
	if len(rows) != 3 {
		t.Fatalf("%d rows, want memory, interval, sync", len(rows))
	}
	for _, row := range rows {
		if len(row) != 5 {
			t.Errorf("%q: %d cells, want 5", row[0], len(row))
			continue
		}
		for i, cell := range row[1:] {
			refs := quoted.FindAllStringSubmatch(cell, -1)
			if len(refs) == 0 {
				t.Errorf("%q, column %d names no test", row[0], i+1)
			}
			for _, ref := range refs {
				name := ref[1]
				if !strings.Contains(name, ".") {
					name = "stratalog.TestDurabilityTable/" + name
				}
				if why := m.finding(name); why != "" {
					t.Errorf("%q, column %d names %s: %s", row[0], i+1, name, why)
				}
			}
		}
	}
}

// The tests that the documents name exist.
func TestDocumentsNameTests(t *testing.T) {
	m := load(t)
	var names []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(m.root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range quoted.FindAllStringSubmatch(string(b), -1) {
			if _, _, ok := cutTestName(ref[1]); !ok {
				continue
			}
			if why := m.finding(ref[1]); why != "" {
				t.Errorf("%s names %s: %s", filepath.Base(name), ref[1], why)
			}
		}
	}
}

// What README shows is what example_test.go runs.
func TestReadmeExample(t *testing.T) {
	m := load(t)
	decl, f := m.packages["."].testFunc("Example")
	if decl == nil {
		t.Fatal("example_test.go has no Example")
	}
	from, to := m.fset.Position(decl.Body.Lbrace).Offset+1, m.fset.Position(decl.Body.Rbrace).Offset
	body := string(f.text[from:to])
	body, _, _ = strings.Cut(body, "\t// Output:")
	var want strings.Builder
	for line := range strings.Lines(strings.TrimSpace(body) + "\n") {
		want.WriteString(strings.TrimPrefix(line, "\t"))
	}
	const open, end = "<!-- example -->\n```go\n", "```\n<!-- /example -->"
	readme := m.read(t, "README.md")
	before, rest, ok := strings.Cut(readme, open)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("README.md has no example between its marks")
	}
	if got == want.String() {
		return
	}
	if *update {
		if err := os.WriteFile(filepath.Join(m.root, "README.md"), []byte(before+open+want.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("README.md shows other code than the body of Example; run go test ./internal/lint -run TestReadmeExample -update\ngot:\n%s\nwant:\n%s", got, want.String())
}

// The schema that gen/README.md shows is one.
func TestGenReadmeSchema(t *testing.T) {
	_, rest, ok := strings.Cut(load(t).read(t, "gen/README.md"), "```\npackage sample\n")
	schema, _, ok2 := strings.Cut(rest, "```\n")
	if !ok || !ok2 {
		t.Fatal("gen/README.md shows no schema")
	}
	if _, err := gen.Generate("sample.layout", "package sample\n"+schema, "sample"); err != nil {
		t.Error(err)
	}
}

// Links between the documents lead somewhere.
func TestDocumentLinks(t *testing.T) {
	m := load(t)
	link := regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	for _, pattern := range []string{"*.md", "*/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(m.root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range link.FindAllStringSubmatch(string(b), -1) {
				if strings.Contains(match[1], "://") {
					continue
				}
				if _, err := os.Stat(filepath.Join(filepath.Dir(name), match[1])); err != nil {
					t.Errorf("%s links to %s, which is not there", filepath.Base(name), match[1])
				}
			}
		}
	}
}
