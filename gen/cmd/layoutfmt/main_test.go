package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	name := filepath.Join(t.TempDir(), "note.layout")
	const ugly = "package p\n\n\n// Note.\nrecord Note {\n\n  A   u8 // a byte\n\n}"
	const nice = "package p\n\n// Note.\nrecord Note {\n\tA u8 // a byte\n}\n"
	if err := os.WriteFile(name, []byte(ugly), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		names       []string
		list, write bool
		want        string
	}{
		{nil, false, false, nice},
		{[]string{name}, false, false, nice},
		{[]string{name}, true, true, name + "\n"},
		{[]string{name}, true, true, ""},
	} {
		var out strings.Builder
		if err := run(c.names, c.list, c.write, strings.NewReader(ugly), &out); err != nil || out.String() != c.want {
			t.Errorf("%v -l=%t -w=%t: %v\n%s", c.names, c.list, c.write, err, out.String())
		}
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != nice {
		t.Errorf("written: %v\n%s", err, got)
	}
	if err := run(nil, true, false, strings.NewReader(""), os.Stdout); err == nil {
		t.Error("-l without files is accepted")
	}
	if err := run(nil, false, false, strings.NewReader("record"), os.Stdout); err == nil ||
		!strings.HasPrefix(err.Error(), "standard input:1:1: ") {
		t.Errorf("no schema: %v", err)
	}
}

// TestGoesOn: a file that cannot be read or is no schema does not keep the others
// from being looked at, and each is named at the end.
func TestGoesOn(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const ugly = "package p\n\n\n// Note.\nrecord Note {\nA u8\n}\n"
	missing, broken := filepath.Join(dir, "missing.layout"), file("broken.layout", "package p\nrecord\nkey\n")
	one, two := file("one.layout", ugly), file("two.layout", ugly)
	for _, write := range []bool{false, true} {
		var out strings.Builder
		err := run([]string{missing, one, broken, dir, two}, true, write, strings.NewReader(""), &out)
		if out.String() != one+"\n"+two+"\n" {
			t.Errorf("-w=%t: listed %q", write, out.String())
		}
		var lines []string
		if err != nil {
			lines = strings.Split(err.Error(), "\n")
		}
		if len(lines) != 4 || !strings.Contains(lines[0], missing) || !strings.HasPrefix(lines[1], broken+":2:7: ") ||
			!strings.HasPrefix(lines[2], broken+":3:4: ") || !strings.Contains(lines[3], dir) {
			t.Errorf("-w=%t: %v", write, err)
		}
	}
	if text, err := os.ReadFile(two); err != nil || string(text) == ugly {
		t.Errorf("a file behind a bad one is not written: %v", err)
	}
}
