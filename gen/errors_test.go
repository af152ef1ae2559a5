package gen

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what is got into testdata instead of comparing it")

// TestErrors: a mistake in a schema is told with its place and with what was
// expected there. The cases are in testdata/errors.txt.
func TestErrors(t *testing.T) {
	const path = "testdata/errors.txt"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "\n=== ")
	out := parts[0]
	names := map[string]bool{}
	for _, part := range parts[1:] {
		head, rest, _ := strings.Cut(part, "\n")
		src, want, ok := strings.Cut("\n"+rest, "\n----\n")
		src = strings.TrimPrefix(src, "\n")
		if !ok || names[head] {
			t.Fatalf("case %q has no ---- or is not the only one of its name", head)
		}
		names[head] = true
		got := ""
		t.Run(head, func(t *testing.T) {
			got = schemaError(t, head, src)
			if want = strings.TrimSpace(want); got != want && !*rewrite {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
		out += "\n=== " + head + "\n" + src
		if src != "" {
			out += "\n"
		}
		out += "----\n" + got + "\n"
	}
	if *rewrite {
		if err := os.WriteFile(path, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// schemaError returns the error of one case.
func schemaError(t *testing.T, head, src string) string {
	t.Helper()
	src += "\n"
	if !strings.HasSuffix(head, "(file)") {
		src = "package p\n// R is a record.\nrecord R {\n" + src + "}\n"
	} else if src == "\n" {
		src = ""
	}
	_, err := Parse("x.layout", src)
	var e *Error
	if !errors.As(err, &e) {
		t.Errorf("no error with a place: %v", err)
		return "none"
	}
	return err.Error()
}
