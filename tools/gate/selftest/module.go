package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed module.txt
var source string

// variants are the modules that the gate is tried on: each is the base with
// texts replaced by others, in turn.
var variants = map[string][]string{
	"base":    nil,
	"same":    {"package selftest\n", "package selftest\n\n// Nothing but this line is new.\n"},
	"alloc":   {"extraAllocs  = 0", "extraAllocs  = 1"},
	"sync":    {"extraSyncs   = 0", "extraSyncs   = 1"},
	"calls":   {"extraCalls   = 0", "extraCalls   = 1"},
	"cpu":     {"encodeRounds = 100", "encodeRounds = 130"},
	"missing": {"func BenchmarkCopy", "func oldCopy"},
	"renamed": {"func BenchmarkCopy", "func BenchmarkClone"},
	"panics":  {"	record := make([]byte, 256)\n", "	record := make([]byte, 256)\n	_ = record[b.N+300]\n"},
	"fails":   {"	record := make([]byte, 256)\n", "	record := make([]byte, 256)\n	b.Fatal(\"on purpose\")\n"},
	"skips":   {"	record := make([]byte, 256)\n", "	record := make([]byte, 256)\n	b.Skip(\"on purpose\")\n"},
	"nan":     {"	record := make([]byte, 256)\n", "	record := make([]byte, 256)\n	if b.N > 1 {\n		b.Skip(\"on purpose\")\n	}\n"},
	"silent":  {"\"syscalls/op\"", "\"other/op\""},
	"broken":  {"	record := make([]byte, 256)\n", "	record := nothing\n"},
	"added":   {"// counted is", "func BenchmarkNew(b *testing.B) {\n	for range b.N {\n		sum++\n	}\n}\n\n// counted is"},
}

// write makes a variant of the module in dir.
func write(dir, variant string) error {
	edits, ok := variants[variant]
	if !ok {
		return fmt.Errorf("there is no variant %s", variant)
	}
	text := source
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			return fmt.Errorf("variant %s: %q is not in the source", variant, edits[i])
		}
		text = strings.Replace(text, edits[i], edits[i+1], 1)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module selftest\n\ngo 1.24\n"), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "bench_test.go"), []byte(text), 0o644)
}

// build writes and compiles a variant.
func (t *tester) build(ctx context.Context, variant string) error {
	dir := filepath.Join(t.work, "source", variant)
	if err := write(dir, variant); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, t.gate, "build", "-dir", dir, "-out", t.built(variant), "-commit", variant).CombinedOutput()
	if err != nil {
		return fmt.Errorf("building %s: %w\n%s", variant, err, out)
	}
	return nil
}

func (t *tester) built(variant string) string { return filepath.Join(t.work, "built", variant) }
