package gen

import (
	"os"
	"strings"
	"testing"
)

// TestReadmeSchemas: every schema that README.md shows is one, and is formatted.
func TestReadmeSchemas(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(readme), "```\n")
	shown := 0
	for _, b := range blocks {
		if !strings.HasPrefix(b, "package ") && !strings.HasPrefix(b, "// ") {
			continue
		}
		shown++
		if strings.HasPrefix(b, "// ") {
			b = "package p\n\n" + b
		}
		if _, err := Parse("README.md", b); err != nil {
			t.Errorf("%v in\n%s", err, b)
		}
		if got, err := Format("README.md", b); err != nil || got != b {
			t.Errorf("%v; formatted it is\n%s", err, got)
		}
	}
	if shown < 5 {
		t.Errorf("README.md shows %d schemas", shown)
	}
}
