package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRebuild: each stratum, both, and what is refused.
func TestRebuild(t *testing.T) {
	dir := t.TempDir()
	fine(t, strings.Repeat("m\n", 50), "append", "--dir", dir, "--topic", "t", "--key", "k", "--tag", "g", "--segment-size", "1MiB")
	answers := func() string {
		return fine(t, "", "get", "--dir", dir, "--topic", "t", "--json") + fine(t, "", "query", "--dir", dir, "--topic", "t", "--key", "k") +
			fine(t, "", "query", "--dir", dir, "--topic", "t", "--key", "g", "--tag")
	}
	before := answers()
	wrong := func(pattern string, at int64) {
		t.Helper()
		list, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		f, err := os.OpenFile(list[0], os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte{1}, at); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, name := range map[string]string{"consumequeue/t/0/*": "consumequeue", "index/*": "index"} {
		at := int64(27)
		if name == "index" {
			at = 40 + 5_000_000*4 + 24
		}
		wrong(pattern, at)
		if a := cli(t, "", "verify", "--dir", dir); a.code != exitFinding {
			t.Fatalf("%s: %+v", name, a)
		}
		out := fine(t, "", "rebuild", "--dir", dir, "--stratum", name)
		if !strings.HasPrefix(out, name+": made anew from 50 records in [0,") || strings.Count(out, "\n") != 1 {
			t.Errorf("%q", out)
		}
		fine(t, "", "verify", "--dir", dir)
		if after := answers(); after != before {
			t.Errorf("%s: it answers\n%s\nbefore\n%s", name, after, before)
		}
	}
	var both struct{ Rebuilt []rebuilt }
	out := fine(t, "", "rebuild", "--dir", dir, "--stratum", "index", "--stratum", "consumequeue", "--index-tags", "--extended-queues",
		"--delay-levels", "1s 5s", "--json")
	if err := json.Unmarshal([]byte(out), &both); err != nil || len(both.Rebuilt) != 2 || both.Rebuilt[0].Stratum != "index" ||
		both.Rebuilt[1].Stratum != "consumequeue" || both.Rebuilt[1].Records != 50 || both.Rebuilt[0].To != both.Rebuilt[1].To {
		t.Errorf("%v, %s", err, out)
	}
	if out := fine(t, "", "query", "--dir", dir, "--topic", "t", "--key", "g", "--tag"); len(out) != 2*50 {
		t.Errorf("by tag: %d bytes", len(out))
	}
	if list, err := filepath.Glob(filepath.Join(dir, "consumequeue_ext/t/0/*")); err != nil || len(list) != 1 {
		t.Errorf("extended: %v, %v", list, err)
	}
	fine(t, "", "verify", "--dir", dir)

	nowhere := filepath.Join(dir, "nowhere")
	for args, want := range map[string]string{
		"--dir " + dir:                                        "--stratum is missing: it is one of consumequeue, index",
		"--dir " + dir + " --stratum queues":                  `"queues" is none of consumequeue, index`,
		"--dir " + dir + " --stratum index --stratum index":   "--stratum index is given twice",
		"--dir " + dir + " --stratum index more":              "more",
		"--dir " + dir + " --stratum index --delay-levels 5x": `--delay-levels: delay "5x"`,
		"--dir " + nowhere + " --stratum index":               "no store in " + nowhere,
		"--stratum index":                                     "--dir is missing",
		"--dir " + dir + " --stratum":                         "stratum",
	} {
		a := cli(t, "", append([]string{"rebuild"}, strings.Fields(args)...)...)
		if a.code != exitFailed || !strings.Contains(a.errOut, want) || a.out != "" {
			t.Errorf("rebuild %s: %+v", args, a)
		}
	}
	if _, err := os.Stat(nowhere); !os.IsNotExist(err) {
		t.Errorf("a store was made: %v", err)
	}
	w := start(t, "append", "--dir", dir, "--topic", "t")
	if _, err := w.in.Write([]byte("last\n")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the store is open", func() bool {
		return strings.HasSuffix(cli(t, "", "get", "--dir", dir, "--topic", "t").out, "last\n")
	})
	if a := cli(t, "", "rebuild", "--dir", dir, "--stratum", "index"); a.code != exitFailed || !strings.Contains(a.errOut, "LOCKED") {
		t.Errorf("beside an owner: %+v", a)
	}
	if err := w.in.Close(); err != nil {
		t.Fatal(err)
	}
	w.end()
}
