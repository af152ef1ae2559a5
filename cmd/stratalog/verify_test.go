package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stratalog/stratalog"
)

// flipped makes a store of three messages and flips a bit in the second's
// body. It returns the directory and the file.
func flipped(t *testing.T) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	fine(t, "first\nsecond\nthird\n", "append", "--dir", dir, "--topic", "t", "--segment-size", "1MiB")
	file = filepath.Join(dir, "commitlog", "00000000000000000000")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.Index(b, []byte("second"))] ^= 4
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, file
}

// second returns the physical offset of the second message.
func second(t *testing.T) int64 {
	t.Helper()
	dir := t.TempDir()
	fine(t, "first\nsecond\nthird\n", "append", "--dir", dir, "--topic", "t", "--segment-size", "1MiB")
	var m message
	if err := json.Unmarshal([]byte(fine(t, "", "get", "--dir", dir, "--topic", "t", "--offset", "1", "--count", "1", "--json")), &m); err != nil {
		t.Fatal(err)
	}
	return m.PhysicalOffset
}

func TestVerifyGood(t *testing.T) {
	dir := t.TempDir()
	fine(t, "a\nb\n", "append", "--dir", dir, "--topic", "t", "--segment-size", "1MiB")
	out := fine(t, "", "verify", "--dir", dir)
	if !strings.HasPrefix(out, "checked 2 records (") || !strings.HasSuffix(out, ": 0 faults, 0 notes\n") {
		t.Errorf("%q", out)
	}
	var res verifyResult
	if err := json.Unmarshal([]byte(fine(t, "", "verify", "--dir", dir, "--json")), &res); err != nil {
		t.Fatal(err)
	}
	if !res.OK || res.Records != 2 || res.Units != 2 || res.Faults != 0 {
		t.Errorf("%+v", res)
	}
}

func TestVerifyDamage(t *testing.T) {
	dir, file := flipped(t)
	at := second(t)
	a := cli(t, "", "verify", "--dir", dir)
	if a.code != exitFinding || a.errOut != "" {
		t.Errorf("code %d, stderr %q", a.code, a.errOut)
	}
	if want := "fault: damage: " + file + " at " + strconv.FormatInt(at, 10) + ": "; !strings.Contains(a.out, want) {
		t.Errorf("%q is not in %q", want, a.out)
	}
	a = cli(t, "", "verify", "--dir", dir, "--json")
	var res verifyResult
	if err := json.Unmarshal([]byte(a.out), &res); err != nil {
		t.Fatalf("%q: %v", a.out, err)
	}
	if a.code != exitFinding || res.OK || res.Faults == 0 || res.Records != 2 || len(res.Findings) == 0 {
		t.Fatalf("code %d, %+v", a.code, res)
	}
	f := res.Findings[0]
	if f.Kind != "damage" || f.Severity != stratalog.Fault || f.File != file || f.Offset != at || f.Lost == nil || int64(f.Lost.Start) != at {
		t.Errorf("%+v", f)
	}
}

// TestGetDamage checks that a read of damage is a finding as well, behind what
// is whole.
func TestGetDamage(t *testing.T) {
	dir, file := flipped(t)
	a := cli(t, "", "get", "--dir", dir, "--topic", "t")
	if a.code != exitFinding || a.out != "first\n" || !strings.Contains(a.errOut, file) {
		t.Errorf("%+v", a)
	}
	if a := cli(t, "", "bench", "get", "--dir", dir, "--count", "3"); a.code != exitFinding {
		t.Errorf("bench get: %+v", a)
	}
	if out := fine(t, "", "get", "--dir", dir, "--topic", "t", "--offset", "2"); out != "third\n" {
		t.Errorf("behind the damage: %q", out)
	}
}

func TestInspect(t *testing.T) {
	dir := t.TempDir()
	fine(t, "a\nb\n", "append", "--dir", dir, "--topic", "t", "--queue", "2", "--segment-size", "1MiB")
	out := fine(t, "", "inspect", "--dir", dir)
	for _, want := range []string{"1 of 1MiB", "t/2 [0,2)", "00000000000000000000", "consumequeue at "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	var m map[string]any
	if err := json.Unmarshal([]byte(fine(t, "", "inspect", "--dir", dir, "--json")), &m); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"dir", "log_id", "segments", "segment_size", "end", "epochs", "cursors", "queues"} {
		if _, ok := m[key]; !ok {
			t.Errorf("no %q", key)
		}
	}
}

func TestVersion(t *testing.T) {
	var v versionInfo
	if err := json.Unmarshal([]byte(fine(t, "", "version", "--json")), &v); err != nil || v.Version == "" || v.Go == "" || len(v.Strata) == 0 {
		t.Errorf("%+v, %v", v, err)
	}
	if out := fine(t, "", "version"); !strings.HasPrefix(out, "stratalog ") {
		t.Errorf("%q", out)
	}
}

// TestVerifyNamesTheFileOnce checks the line of a finding.
func TestVerifyNamesTheFileOnce(t *testing.T) {
	dir, file := flipped(t)
	line, _, _ := strings.Cut(cli(t, "", "verify", "--dir", dir).out, "\n")
	if n := strings.Count(line, file); n != 1 {
		t.Errorf("%q names the file %d times", line, n)
	}
}

// TestVerifyManyFindings checks that a flood of findings is cut, and counted.
func TestVerifyManyFindings(t *testing.T) {
	dir := t.TempDir()
	fine(t, strings.Repeat("x\n", 450), "append", "--dir", dir, "--topic", "t", "--segment-size", "1MiB")
	file := filepath.Join(dir, "consumequeue", "t", "0", "00000000000000000000")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 150 {
		b[60*i+19] ^= 1 // the tags code of each third, so that no two make a run
	}
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	a := cli(t, "", "verify", "--dir", dir)
	if n := strings.Count(a.out, "fault: wrong-unit"); a.code != exitFinding || n != 100 || !strings.Contains(a.out, "... and 50 more of wrong-unit") ||
		!strings.Contains(a.out, "150 faults") {
		t.Errorf("%d lines, code %d: %.300q", n, a.code, a.out)
	}
	a = cli(t, "", "verify", "--dir", dir, "--all")
	if n := strings.Count(a.out, "fault: wrong-unit"); a.code != exitFinding || n != 150 || strings.Contains(a.out, "more of") {
		t.Errorf("--all: %d lines, code %d", n, a.code)
	}
	for flag, want := range map[string]int{"--json": 100, "--json --all": 150} {
		var res verifyResult
		out := cli(t, "", append([]string{"verify", "--dir", dir}, strings.Fields(flag)...)...).out
		if err := json.Unmarshal([]byte(out), &res); err != nil {
			t.Fatal(err)
		}
		if len(res.Findings) != want || res.Faults != 150 || res.Omitted["wrong-unit"] != int64(150-want) {
			t.Errorf("%s: %d findings of %d, omitted %v", flag, len(res.Findings), res.Faults, res.Omitted)
		}
	}
}
