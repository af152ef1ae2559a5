package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDescribe: with -docs and -ksy only these are written, and nothing for a
// folder that is not given.
func TestDescribe(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"note.layout":          "package p\n// Note is a note.\nrecord Note {\n\tA u16\n}\nvector note Note {\n\tA = 7\n}\n",
		"testdata/note.golden": "0007",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { *docs, *ksy = "", "" }()
	for _, step := range []struct{ docs, ksy, name, want string }{
		{"pages", "", "pages/note.md", "0000  00 07  A = 7"},
		{"", "parsers", "parsers/note_records.ksy", "id: note_records"},
	} {
		*docs, *ksy = "", ""
		if step.docs != "" {
			*docs = filepath.Join(dir, step.docs)
		} else {
			*ksy = filepath.Join(dir, step.ksy)
		}
		if err := run(filepath.Join(dir, "*.layout"), dir, "", "", false); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, step.name))
		if err != nil || !strings.Contains(string(text), step.want) {
			t.Errorf("%s: %v\n%s", step.name, err, text)
		}
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) > 0 {
		t.Errorf("Go was written, too: %v, %v", names, err)
	}
}
