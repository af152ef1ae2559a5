package codec

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// readGolden returns the bytes of testdata/name.golden: hex digits, with
// spaces and line ends anywhere and comments behind '#'.
func readGolden(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".golden"))
	if err != nil {
		t.Fatal(err)
	}
	var digits strings.Builder
	for _, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatalf("testdata/%s.golden: %v", name, err)
	}
	return b
}

// requireFieldError fails the test unless err is a complete *FieldError.
func requireFieldError(t testing.TB, err error, record string) *FieldError {
	t.Helper()
	var e *FieldError
	if !errors.As(err, &e) {
		t.Fatalf("error %v (%T) is no *FieldError", err, err)
	}
	if e.Record != record || e.Field == "" || e.Offset < 0 || e.Reason == "" {
		t.Fatalf("error %#v does not say what is wrong with a %s", e, record)
	}
	return e
}

// requireNoAllocs fails the test if f allocates.
func requireNoAllocs(t testing.TB, f func()) {
	t.Helper()
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
