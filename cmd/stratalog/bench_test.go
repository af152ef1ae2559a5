package main

import (
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// object runs a command with --json and returns its one object.
func object(t *testing.T, args ...string) map[string]any {
	t.Helper()
	out := fine(t, "", append(args, "--json")...)
	if strings.Count(out, "\n") != 1 {
		t.Fatalf("not one line: %q", out)
	}
	var m map[string]any
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return m
}

func need(t *testing.T, m map[string]any, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if _, ok := m[key]; !ok {
			t.Errorf("no %q", key)
		}
	}
}

func TestBenchAppendAndGet(t *testing.T) {
	dir := t.TempDir()
	for _, args := range []string{"--durability sync --producers 4", "--durability memory --write-path pwrite --async 8",
		"--durability memory --topics 2 --queues 3"} {
		m := object(t, append(strings.Fields("bench append --records 200 --size 100B --seed 7 --segment-size 1MiB --dir "+dir), strings.Fields(args)...)...)
		need(t, m, "records", "seconds", "records_per_s", "latency_us", "syncs", "allocs_per_record", "disk_bytes_per_record",
			"verified", "write_path", "durability", "producers", "size", "seed", "mb_per_s", "commits", "writes")
		if latency, ok := m["latency_us"].(map[string]any); !ok {
			t.Errorf("latency_us is %v", m["latency_us"])
		} else {
			need(t, latency, "p50", "p99", "p999", "max")
		}
		if m["verified"] != 200.0 || m["records"] != 200.0 || m["seed"] != 7.0 || m["missing"] != 0.0 {
			t.Errorf("%s: %v", args, m)
		}
	}
	for _, args := range []string{"--random", "--sequential --batch 32"} {
		m := object(t, append(strings.Fields("bench get --count 300 --body-seed 7 --dir "+dir), strings.Fields(args)...)...)
		need(t, m, "records", "records_per_s", "ns_per_op", "allocs_per_op", "latency_us")
		if m["verified"] != 300.0 {
			t.Errorf("%s: %v", args, m)
		}
	}
	a := cli(t, "", strings.Fields("bench get --count 300 --body-seed 8 --dir "+dir)...)
	if a.code != exitFinding || !strings.Contains(a.errOut, "300 wrong") {
		t.Errorf("another seed: %+v", a)
	}
	for _, args := range []string{"bench append --records 100 --size 0 --dir ", "bench get --count 100 --dir "} {
		if out := fine(t, "", strings.Fields(args+dir)...); !strings.Contains(out, "verified") {
			t.Errorf("%s: %q", args, out)
		}
	}
	fine(t, "", "verify", "--dir", dir)
}

func TestDemo(t *testing.T) {
	src := tree(t, sample)
	m := object(t, "demo", "--source", src, "--segment-size", "1MiB")
	need(t, m, "records", "records_per_s", "syncs", "read_records_per_s", "allocs_per_record", "read_allocs_per_record")
	if m["records"] != 5.0 || m["verified"] != 5.0 || m["empty"] != 1.0 {
		t.Errorf("%v", m)
	}
	dir := t.TempDir()
	for range 2 { // the second run reads only its own messages
		out := fine(t, "", "demo", "--source", src, "--segment-size", "1MiB", "--dir", dir)
		if !strings.Contains(out, "5 equal to their file, 0 missing, 0 wrong") {
			t.Errorf("%s", out)
		}
	}
	fine(t, "", "verify", "--dir", dir)
}

// TestDemoNamesNoDeletedPath checks that the temporary store is not named.
func TestDemoNamesNoDeletedPath(t *testing.T) {
	src := tree(t, sample)
	if out := fine(t, "", "demo", "--source", src, "--segment-size", "1MiB"); strings.Contains(out, "stratalog-demo-") {
		t.Error(out)
	}
	if m := object(t, "demo", "--source", src, "--segment-size", "1MiB"); m["dir"] != nil {
		t.Error(m["dir"])
	}
}

// TestBenchInterrupted checks that what was measured is printed, and marked.
func TestBenchInterrupted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	interrupt := func(ready func() bool, args ...string) map[string]any {
		t.Helper()
		p := start(t, append(args, "--dir", dir, "--json")...)
		eventually(t, "it is under way", ready)
		if err := p.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		out, err := io.ReadAll(p.out)
		if err != nil {
			t.Fatal(err)
		}
		if code := p.end(); code != exitFailed || !strings.Contains(p.errOut.String(), "interrupted") {
			t.Errorf("code %d, stderr %q", code, p.errOut.String())
		}
		var m map[string]any
		if err := json.Unmarshal(out, &m); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		if m["interrupted"] != true {
			t.Errorf("%v", m)
		}
		return m
	}
	m := interrupt(func() bool {
		return cli(t, "", "get", "--dir", dir, "--topic", "bench0", "--count", "1").code == exitFine
	},
		"bench", "append", "--warmup", "0", "--records", "1000000000", "--segment-size", "1MiB")
	if n, ok := m["records"].(float64); !ok || n < 1 || m["records_per_s"] == 0.0 || m["missing"] != 0.0 {
		t.Errorf("%v", m)
	}
	fine(t, "", "verify", "--dir", dir)
	began := time.Now()
	m = interrupt(func() bool { return time.Since(began) > 500*time.Millisecond }, "bench", "get", "--count", "1000000000000")
	need(t, m, "records", "records_per_s")
}
