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
