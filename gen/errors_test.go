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

// TestLineEnds: a byte order mark and the line ends of Windows mean nothing;
// those of old Macs are refused where the first one is.
func TestLineEnds(t *testing.T) {
	const schema = "// P is a package.\npackage p\n\n// R is a record.\nrecord R {\n\tA u8 // A is a byte.\n\tB bytes[2]\n}\n"
	windows := strings.ReplaceAll(schema, "\n", "\r\n")
	for _, text := range []string{schema, byteOrderMark + schema, windows, byteOrderMark + windows} {
		f, err := Parse("x.layout", text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if r := f.Records[0]; r.Doc[0] != "R is a record." || r.Fields[0].Doc[0] != "A is a byte." || r.Size != 3 {
			t.Errorf("%q: %+v", text, r)
		}
		if got, err := Format("x.layout", text); err != nil || got != schema {
			t.Errorf("%q becomes %q, %v", text, got, err)
		}
	}
	const told = ": expected a line feed behind the carriage return: a line ends with LF or CR LF"
	for text, want := range map[string]string{
		strings.ReplaceAll(schema, "\n", "\r"):                 "x.layout:1:19" + told,
		"package p\r":                                          "x.layout:1:10" + told,
		"package p\n// R is\ra record.\nrecord R {\n\tA u8\n}": "x.layout:2:8" + told,
		"package p\r\r\n":                                      "x.layout:1:10" + told,
		"package p\n" + byteOrderMark:                          `x.layout:2:1: unexpected character '\ufeff'`,
		"package p\nrecord \u00e9 {\n}\n":                      `x.layout:2:8: unexpected character 'é'`,
	} {
		if _, err := Parse("x.layout", text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestErrorsUnwrap: a caller finds each mistake, and where there is one alone it
// is the error.
func TestErrorsUnwrap(t *testing.T) {
	one, two := Schema{"a.layout", "package p\nrecord"}, Schema{"b.layout", "package p\nkey"}
	_, err := ParsePackage([]Schema{one, two}, "")
	var all Errors
	if !errors.As(err, &all) || len(all) != 2 || all[0].File != "a.layout" || all[1].File != "b.layout" || !errors.Is(err, all[1]) {
		t.Errorf("%v", err)
	}
	_, err = ParsePackage([]Schema{one}, "")
	if e, ok := err.(*Error); !ok || e.Line != 2 || e.Col != 7 {
		t.Errorf("%v", err)
	}
}

// TestDamagedSchemas: whatever is missing from a schema, its mistakes are told in
// order, each once.
func TestDamagedSchemas(t *testing.T) {
	text, err := os.ReadFile("testdata/more.layout")
	if err != nil {
		t.Fatal(err)
	}
	src := string(text)
	var variants []string
	lines := strings.SplitAfter(src, "\n")
	for i := range lines {
		variants = append(variants, strings.Join(lines[:i], "")+strings.Join(lines[i+1:], ""))
	}
	for i := 0; i < len(src); i += 3 {
		variants = append(variants, src[:i], src[:i]+src[i+1:], src[:i]+"?"+src[i:], src[:i]+"{\n"+src[i:])
	}
	wrong, several := 0, 0
	for _, text := range variants {
		_, err := Parse("x.layout", text)
		list := appendError(nil, err)
		if err != nil {
			wrong++
		}
		if len(list) > 1 {
			several++
		}
		for i, e := range list {
			if i > 0 && (e.Line < list[i-1].Line || e.Line == list[i-1].Line && e.Col < list[i-1].Col || *e == *list[i-1]) || e.Line < 1 || e.Col < 1 {
				t.Fatalf("%s\n%v", text, err)
			}
		}
	}
	if wrong < len(variants)/2 || several == 0 {
		t.Errorf("%d of %d are wrong, %d in several places", wrong, len(variants), several)
	}
	t.Logf("%d of %d are wrong, %d in several places", wrong, len(variants), several)
}
