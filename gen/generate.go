package gen

import (
	"path/filepath"
	"strings"
)

// Output is one generated file.
type Output struct {
	// Name is the file name without a folder.
	Name string
	// Source is formatted Go.
	Source []byte
}

// Parse reads and checks a schema. The error is an *Error that names file,
// line and column.
func Parse(file, src string) (*File, error) {
	tree, err := parseFile(file, src)
	if err != nil {
		return nil, err
	}
	return checkFile(file, tree)
}

// Generate makes the Go files for a schema: X_gen.go with the codecs and
// X_gen_test.go with their tests, for a schema called X.layout. The same
// schema gives the same bytes. If pkg is not empty, the schema must be of
// that package.
func Generate(file, src, pkg string) ([]Output, error) {
	f, err := Parse(file, src)
	if err != nil {
		return nil, err
	}
	if pkg != "" && pkg != f.Package {
		return nil, &Error{File: file, Line: 1, Col: 1, Msg: "the schema is of package " + f.Package + ", not " + pkg}
	}
	f.Source = filepath.Base(file)
	base := strings.TrimSuffix(f.Source, filepath.Ext(f.Source))
	code, err := emitCode(f)
	if err != nil {
		return nil, err
	}
	tests, err := emitTests(f)
	if err != nil {
		return nil, err
	}
	return []Output{{base + "_gen.go", code}, {base + "_gen_test.go", tests}}, nil
}
