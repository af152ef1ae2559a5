package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
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

// op returns an operation of a run.
func op(t *testing.T, run map[string]any, i int) map[string]any {
	t.Helper()
	ops, _ := run["ops"].([]any)
	if len(ops) <= i {
		t.Fatalf("operations: %v", run["ops"])
	}
	return ops[i].(map[string]any)
}

// verified returns how many messages a run found right; -1 if not all was.
func verified(run map[string]any) float64 {
	v, _ := run["verified"].(map[string]any)
	if n, ok := v["records"].(float64); ok && v["ok"] == true && v["missing"] == 0.0 && v["wrong"] == 0.0 {
		return n
	}
	return -1
}

func TestBenchAppendAndGet(t *testing.T) {
	dir := t.TempDir()
	for _, args := range []string{"--durability sync --producers 4", "--durability memory --write-path pwrite --async 8",
		"--durability memory --topics 2 --queues 3", "--rate 5000 --random-arrivals"} {
		m := object(t, append(strings.Fields("bench append --records 200 --warmup 0 --size 100B --seed 7 --segment-size 1MiB --dir "+dir), strings.Fields(args)...)...)
		need(t, m, "schema", "engine", "workload", "started", "promise", "env", "config", "seed", "usage", "log", "lag")
		append := op(t, m, 0)
		need(t, append, "records", "seconds", "records_per_s", "mb_per_s", "series")
		if latency, ok := append["latency_us"].(map[string]any); !ok {
			t.Errorf("latency_us is %v", append["latency_us"])
		} else {
			need(t, latency, "p50", "p99", "p999", "p9999", "max", "curve")
		}
		if verified(m) != 200.0 || append["records"] != 200.0 || m["seed"] != 7.0 {
			t.Errorf("%s: %v", args, m)
		}
	}
	for _, args := range []string{"--random", "--sequential --batch 32", "--random --readers 3"} {
		m := object(t, append(strings.Fields("bench get --count 300 --body-seed 7 --size 100B --dir "+dir), strings.Fields(args)...)...)
		if verified(m) != 300.0 {
			t.Errorf("%s: %v", args, m)
		}
	}
	a := cli(t, "", strings.Fields("bench get --count 300 --body-seed 8 --size 100B --dir "+dir)...)
	if a.code != exitFinding || !strings.Contains(a.errOut, "300 wrong") {
		t.Errorf("another seed: %+v", a)
	}
	for _, args := range []string{"bench append --records 100 --size 0 --dir ", "bench get --count 100 --dir ", "bench get --duration 10ms --dir "} {
		if out := fine(t, "", strings.Fields(args+dir)...); !strings.Contains(out, "verified") {
			t.Errorf("%s: %q", args, out)
		}
	}
	fine(t, "", "verify", "--dir", dir)
}

func TestBenchWorkloads(t *testing.T) {
	for _, args := range []string{
		"tail --rate 2000 --duration 200ms --producers 2 --followers 2",
		"tail --records 300 --followers 0",
		"mixed --records 500 --backlog 300 --segment-size 64KiB --keep 256KiB --size uniform:0-500",
		"roll --records 300 --segment-size 64KiB --producers 2",
	} {
		m := object(t, append(strings.Fields("bench "+args), "--segment-size", "64KiB")...)
		if verified(m) < 300 || op(t, m, 0)["name"] != "append" {
			t.Errorf("%s: %v", args, m)
		}
	}
	// The process that is killed needs the command itself.
	run := start(t, "bench", "restart", "--log-size", "1MiB", "--rounds", "1", "--segment-size", "512KiB", "--json")
	out, err := io.ReadAll(run.out)
	if err != nil {
		t.Fatal(err)
	}
	if code := run.end(); code != exitFine {
		t.Fatalf("code %d, stderr %q", code, run.errOut.String())
	}
	var m map[string]any
	if err := json.Unmarshal(out, &m); err != nil || verified(m) < 4*1000 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestBenchWorkloadFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "load.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	common := "name: small\ntopics: 2\npartitionsPerTopic: 3\nmessageSize: 64\nuseRandomizedPayloads: true\nrandomBytesRatio: 0.5\n" +
		"randomizedPayloadPoolSize: 10\nsubscriptionsPerTopic: 2\nproducersPerTopic: 2\nconsumerPerSubscription: 1\nproducerRate: 2000\n"
	write(common + "testDurationMinutes: 0.003\nwarmupDurationMinutes: 0.001\n")
	m := object(t, "bench", "tail", "--workload", file, "--segment-size", "1MiB", "--dir", filepath.Join(dir, "store"))
	if n := op(t, m, 0)["records"]; n != 360.0 || verified(m) != 360+120 || op(t, m, 0)["rate"] != 2000.0 {
		t.Errorf("%v records: %v", n, m)
	}
	config := fmt.Sprint(m["config"])
	for _, want := range []string{"name:producers value:4", "name:topics value:2", "name:queues value:3", "name:followers value:2", "zero from byte 32"} {
		if !strings.Contains(config, want) {
			t.Errorf("no %q in %s", want, config)
		}
	}
	m = object(t, "bench", "tail", "--workload", file, "--records", "50", "--warmup", "0", "--rate", "0", "--size", "10B", "--segment-size", "1MiB")
	if verified(m) != 50 || op(t, m, 0)["bytes"] != 500.0 {
		t.Errorf("%v", m)
	}
	for text, want := range map[string]string{
		common + "testDurationMinutes: 0\n":                                  "no end",
		common + "testDurationMinutes: 1\nkeyDistributor: KEY_ROUND_ROBIN\n": "keyDistributor",
		common + "testDurationMinutes: 1\nproducerRat: 3\n":                  "load.yaml:13",
	} {
		write(text)
		if a := cli(t, "", "bench", "tail", "--workload", file); a.code != exitFailed || !strings.Contains(a.errOut, want) {
			t.Errorf("want %q: %+v", want, a)
		}
	}
}

func TestBenchRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"append --records 5 --duration 1s":       "exclude",
		"append --random-arrivals":               "needs --rate",
		"append --size zipf:3":                   "--size",
		"append --rate -1":                       "rate",
		"append --warmup 1 --warmup-duration 1s": "exclude",
		"append --producers 0":                   "producers",
		"roll --async 5":                         "wait for each",
		"tail --batch 0":                         "batch",
		"mixed --keep x":                         "size",
		"restart --log-size 5":                   "below 1 MiB",
		"restart --rounds 0":                     "rounds",
		"get":                                    "--dir is missing",
		"append --segment-size 5":                "--segment-size",
		"tail --workload /none/such.yaml":        "such.yaml",
	} {
		if a := cli(t, "", strings.Fields("bench "+args)...); a.code != exitFailed || !strings.Contains(a.errOut, want) || a.out != "" {
			t.Errorf("%s: want %q: %+v", args, want, a)
		}
	}
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
	if n, ok := op(t, m, 0)["records"].(float64); !ok || n < 1 || op(t, m, 0)["records_per_s"] == 0.0 || verified(m) >= 0 {
		t.Errorf("%v", m)
	}
	fine(t, "", "verify", "--dir", dir)
	began := time.Now()
	m = interrupt(func() bool { return time.Since(began) > 500*time.Millisecond }, "bench", "get", "--count", "1000000000000")
	need(t, op(t, m, 0), "records", "records_per_s")
}
