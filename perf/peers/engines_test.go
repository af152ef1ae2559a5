package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stratalog/stratalog/perf/load"
)

// TestMain runs a cell if this program was started for one, as main does.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "-cell" {
		if err := runCell(os.Args[2]); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n") // nowhere else to tell it
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Each engine takes messages in each way and mode, and gives them back.
func TestEngines(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			for producers, ways := range map[int][]way{1: {e.alone}, 6: e.many} {
				for _, w := range ways {
					tiny(t, e, w, modeSync, producers, 0)
				}
			}
			for _, w := range e.async {
				tiny(t, e, w, modeSync, 2, 5)
			}
			if _, ok := e.promiseOf(modeMemory); ok {
				tiny(t, e, e.alone, modeMemory, 1, 0)
			}
		})
	}
}

func tiny(t *testing.T, e *engine, w way, m mode, producers, async int) {
	t.Helper()
	c := cell{Kind: "append", Workload: "tiny", Engine: e.name, Way: w, Mode: m, Producers: producers, Async: async, Size: 200, Seed: 7,
		Records: 150, Dir: t.TempDir()}
	r, err := c.run()
	if err != nil {
		t.Fatal(err)
	}
	if !r.Verified.OK || r.Verified.Records != c.Records || r.Ops[0].Records != c.Records {
		t.Errorf("%s: appended %d, verified %+v", c.title(), r.Ops[0].Records, r.Verified)
	}
	if n, counted := perSync(&r); m == modeSync && counted && (n <= 0 || n > float64(producers*max(async, 1))) {
		t.Errorf("%s: %v messages a sync", c.title(), n)
	}
}

// A log that was built is read, opened again and appended to; and one byte that
// was changed in its files is found.
func TestReadsAndDamage(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			p := &plan{logSize: 400 << 10, logBody: 200, seed: 3, duration: 20 * time.Millisecond}
			c := p.built(e, t.TempDir(), false)
			do := func(kind string) load.Run {
				t.Helper()
				c.Kind, c.Duration = kind, p.duration
				r, err := c.run()
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			do("build")
			c.Acked = c.built(e)
			r := do("read")
			if !r.Verified.OK || r.Verified.Records != c.Records || r.Ops[0].Records != c.Records {
				t.Errorf("read: %+v", r.Verified)
			}
			if len(r.Ops) > 1 && r.Ops[1].Count == 0 {
				t.Error("no random read")
			}
			c.Acked[builders] = 1
			if r = do("reopen"); !r.Verified.OK || r.Verified.Records != c.Records+1 {
				t.Errorf("reopen: %+v", r.Verified)
			}
			damage(t, c.Dir, c.bodies().Make(nil, c.Acked[0]/2*(builders+1)))
			c.Kind = "verify"
			if r, err := c.run(); err == nil && r.Verified.OK {
				t.Error("a byte was changed, and nobody noticed")
			}
		})
	}
}

// damage changes one byte of body wherever it stands in files below dir.
func damage(t *testing.T, dir string, body []byte) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		changed := false
		for at := 0; ; {
			i := bytes.Index(data[at:], body[32:96])
			if i < 0 {
				break
			}
			data[at+i+32] ^= 4
			at += i + 64
			found++
			changed = true
		}
		if !changed {
			return nil
		}
		return os.WriteFile(path, data, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Fatal("the body stands in no file")
	}
}

// testBench is a bench of the whole program, in processes of their own.
func testBench(t *testing.T) *bench {
	t.Helper()
	var talk bytes.Buffer
	b, end, err := newBench(t.TempDir(), &talk)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return b
}

// Behind each answer with sync there is a sync, counted by the system; see
// syncs.
func TestSyncs(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is missing: install it with tools/setup.sh. Nothing here says now that any engine syncs")
	}
	b := testBench(t)
	for _, e := range engines {
		if err := b.syncs(e); err != nil {
			t.Fatal(err)
		}
	}
	for _, what := range b.broken {
		t.Error(what)
	}
	t.Log(tableText(t, b.runs))
}

// What was answered is there when the process was killed.
func TestKills(t *testing.T) {
	b := testBench(t)
	for _, e := range engines {
		if err := b.kill(e); err != nil {
			t.Fatal(err)
		}
	}
	for _, what := range b.broken {
		t.Error(what)
	}
	t.Log(tableText(t, b.runs))
}

func tableText(t *testing.T, runs []load.Run) string {
	t.Helper()
	var text strings.Builder
	for _, table := range tables(runs) {
		if err := table.writeText(&text); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}
