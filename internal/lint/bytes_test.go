package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// byHand are the files, and folders, that turn numbers into bytes themselves. All else goes
// through what the schemas give.
var byHand = map[string]string{
	"codec/hand_test.go":        "the codec written by hand that the generated ones are measured against",
	"gen/number.go":             "the generator reads the bytes of literals and examples without what it generates",
	"gen/kaitai_random_test.go": "an encoder that shares nothing with the generated ones, to hold them to",
	"gen/kaitai_help_test.go":   "as before",
	"internal/vfs/sim_crash.go": "garbage is cut from random words",
	"perf/limit/limit.go":       "the log that ours is measured against shares nothing with it",
	"perf/limit/open.go":        "as before",
	"perf/limit/limit_test.go":  "as before",
	"perf/load/bodies.go":       "bodies are random words; nothing on disk is laid out so",
	"perf/peers/":               "the keys and formats of other engines, beside which ours is measured",
}

// TestBytesComeFromSchemas: no file but generated ones, and those of byHand, puts
// numbers into bytes or takes them out, with encoding/binary or with shifts,
// and none spells a magic.
func TestBytesComeFromSchemas(t *testing.T) {
	m := load(t)
	magics := m.magics(t)
	seen := map[string]bool{}
	everyFile(t, m, func(path string, file *ast.File) {
		if ast.IsGenerated(file) {
			return
		}
		found := handWritten(file)
		if !strings.HasSuffix(path, "_test.go") { // tests hold the codecs to bytes that they spell
			found = append(found, spelled(file, magics)...)
		}
		for _, name := range []string{path, path[:strings.LastIndex(path, "/")+1]} {
			if byHand[name] != "" {
				seen[name] = seen[name] || len(found) > 0
				return
			}
		}
		for _, x := range found {
			t.Errorf("%s:%d: %s: a layout in codec/*.layout should give this", path, m.fset.Position(x.at).Line, x.what)
		}
	})
	for path := range byHand {
		if !seen[path] {
			t.Errorf("the exception of %s is not needed any more", path)
		}
	}
}

// everyFile calls visit with each Go file of this module, and of those below it.
func everyFile(t *testing.T, m *module, visit func(path string, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(m.root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != m.root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(p, ".go"):
			return nil
		}
		file, err := parser.ParseFile(m.fset, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(m.root, p)
		visit(filepath.ToSlash(rel), file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// handmade is one place where bytes are made by hand.
type handmade struct {
	at   token.Pos
	what string
}

// handWritten finds the import of encoding/binary, and shifts of bytes.
func handWritten(file *ast.File) (found []handmade) {
	for _, spec := range file.Imports {
		if spec.Path.Value == `"encoding/binary"` {
			found = append(found, handmade{spec.Pos(), "imports encoding/binary"})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if isWholeBytes(n) && isByteOf(n.X) {
				found = append(found, handmade{n.Pos(), "a byte is shifted into a number"})
			}
			if left, ok := ast.Unparen(n.X).(*ast.BinaryExpr); ok && n.Op == token.OR && isByOne(left) && isConversion(n.Y) != nil {
				found = append(found, handmade{n.Pos(), "a number is put together from bytes"})
			}
		case *ast.CallExpr:
			if arg := isConversion(n); arg != nil && isByteType(n.Fun) {
				if x, ok := ast.Unparen(arg).(*ast.BinaryExpr); ok && x.Op == token.SHR {
					found = append(found, handmade{n.Pos(), "a number is cut into bytes"})
				}
			}
		}
		return true
	})
	return found
}

// isWholeBytes says whether x shifts to the left by a number of whole bytes.
func isWholeBytes(x *ast.BinaryExpr) bool {
	by, ok := x.Y.(*ast.BasicLit)
	if x.Op != token.SHL {
		return false
	}
	if !ok {
		return true // by a variable
	}
	n, err := strconv.Atoi(by.Value)
	return err == nil && n >= 8 && n%8 == 0
}

// isByOne says whether x shifts to the left by one byte.
func isByOne(x *ast.BinaryExpr) bool {
	by, ok := x.Y.(*ast.BasicLit)
	return x.Op == token.SHL && ok && by.Value == "8"
}

// isByteOf says whether x converts an element of something.
func isByteOf(x ast.Expr) bool {
	arg := isConversion(x)
	if arg == nil {
		return false
	}
	_, ok := ast.Unparen(arg).(*ast.IndexExpr)
	return ok
}

// isConversion returns what x converts to a basic type, nil if it does not.
func isConversion(x ast.Expr) ast.Expr {
	call, ok := ast.Unparen(x).(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return nil
	}
	name, ok := call.Fun.(*ast.Ident)
	if !ok {
		return nil
	}
	switch name.Name {
	case "byte", "int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64":
		return call.Args[0]
	}
	return nil
}

func isByteType(x ast.Expr) bool {
	name, ok := x.(*ast.Ident)
	return ok && (name.Name == "byte" || name.Name == "uint8")
}

// magics returns the magics of the generated codecs.
func (m *module) magics(t *testing.T) map[uint64]bool {
	t.Helper()
	found := map[uint64]bool{}
	for _, f := range m.packages["codec"].files {
		if f.test || !strings.HasSuffix(f.name, "_gen.go") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 || !strings.Contains(spec.Names[0].Name, "Magic") {
				return true
			}
			if x, ok := number(spec.Values[0]); ok && x > 0xFFFFFF {
				found[x] = true
			}
			return true
		})
	}
	if len(found) < 5 {
		t.Fatalf("the codecs have %d magics", len(found))
	}
	return found
}

// spelled finds magics, as numbers and as bytes.
func spelled(file *ast.File, magics map[uint64]bool) (found []handmade) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if x, ok := number(n); ok && magics[x] {
				found = append(found, handmade{n.Pos(), "a magic is spelled"})
			}
		case *ast.CompositeLit:
			if len(n.Elts) < 3 {
				return true
			}
			front := uint64(0)
			for _, e := range n.Elts[:3] {
				x, ok := number(e)
				if !ok || x > 0xFF {
					return true
				}
				front = front*256 + x
			}
			for magic := range magics {
				if magic/256 == front {
					found = append(found, handmade{n.Pos(), "the bytes of a magic are spelled"})
					break
				}
			}
		}
		return true
	})
	return found
}

// number returns the value of a literal integer.
func number(x ast.Expr) (uint64, bool) {
	lit, ok := x.(*ast.BasicLit)
	if !ok || lit.Kind != token.INT {
		return 0, false
	}
	n, err := strconv.ParseUint(lit.Value, 0, 64)
	return n, err == nil
}

// TestHandWrittenIsFound: the shapes in which bytes are made by hand.
func TestHandWrittenIsFound(t *testing.T) {
	const head = "package p\nvar b []byte\nvar x uint32\n"
	for _, c := range []struct {
		text string
		want int
	}{
		{`import "encoding/binary"`, 1},
		{head + "var _ = uint32(b[0])<<24", 1},
		{head + "var _ = uint16(b[0])<<8 | uint16(b[1])", 2},
		{head + "var _ = x<<8 | uint32(b[0])", 1},
		{head + "var _ = uint64(b[1]) << n", 1},
		{head + "var _ = []byte{byte(x >> 24), byte(x >> 16), byte(x >> 8), byte(x)}", 3},
		{head + "var _ = byte((x) >> n)", 1},
		{head + "var _ = 1 << 16 | 1<<8", 0},
		{head + "var _ = uint64(x)<<32 | uint64(y)", 0},
		{head + "var _ = uint32(b[0]) << 1", 0},
		{head + "var _ = f(x >> 8)", 0},
		{head + "var _ = x == 0xDAA320A7", 1},
		{head + "var _ = []byte{0xDA, 0xA3, 0x20}", 1},
		{head + "var _ = []byte{0xCB, 0xD4, 0x31, 0x94}", 1},
		{head + "var _ = []byte{1, 2, 3}", 0},
	} {
		text := c.text
		if !strings.HasPrefix(text, "package") {
			text = "package p\n" + text
		}
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", text, 0)
		if err != nil {
			t.Fatal(err)
		}
		found := append(handWritten(file), spelled(file, map[uint64]bool{0xDAA320A7: true, 0xCBD43194: true})...)
		if len(found) != c.want {
			t.Errorf("%s: found %v, want %d", text, found, c.want)
		}
	}
}
