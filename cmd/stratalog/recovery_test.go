package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/commitlog"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/cq"
	"github.com/stratalog/stratalog/dispatch"
)

// killed makes a store whose owner was killed behind three messages.
func killed(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	p := start(t, "append", "--dir", dir, "--topic", "t", "--segment-size", "1MiB")
	if _, err := p.in.Write([]byte("one\ntwo\nthree\n")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all can be read", func() bool { return cli(t, "", "get", "--dir", dir, "--topic", "t").out == "one\ntwo\nthree\n" })
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.end()
	return dir
}

// TestRecoveryTold checks what each command that writes says about what it
// found, and that it says nothing the next time.
func TestRecoveryTold(t *testing.T) {
	src := tree(t, sample)
	for name, args := range map[string]string{
		"append":  "append --topic u",
		"rebuild": "rebuild --stratum index",
		"bench":   "bench append --records 10",
		"demo":    "demo --segment-size 1MiB --source " + src,
	} {
		t.Run(name, func(t *testing.T) {
			dir := killed(t)
			call := append(strings.Fields(args), "--dir", dir)
			a := cli(t, "x\n", call...)
			if a.code != exitFine || !strings.HasPrefix(a.errOut, "stratalog: recovery: the store was not closed: ") {
				t.Errorf("%+v", a)
			}
			fine(t, "x\n", call...)
		})
	}
}

func TestRecoveryToldAsJSON(t *testing.T) {
	dir := killed(t)
	file := filepath.Join(dir, "commitlog", "00000000000000000000")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	end := len(bytes.TrimRight(b, "\x00"))
	copy(b[end+50:], "garbage")
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	a := cli(t, "x\n", "append", "--dir", dir, "--topic", "t", "--json")
	var told struct{ Recovery map[string]any }
	if err := json.Unmarshal([]byte(a.errOut), &told); a.code != exitFine || err != nil || strings.Count(a.errOut, "\n") != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	need(t, told.Recovery, "unclean", "foreign", "start", "tail", "scanned_from", "end", "records", "epoch", "new_epoch", "queues", "lanes", "cut")
	if told.Recovery["unclean"] != true || told.Recovery["new_epoch"] != true {
		t.Errorf("%v", told.Recovery)
	}
	if out := fine(t, "y\n", "append", "--dir", dir, "--topic", "t", "--json"); !strings.Contains(out, `"first_offset":4`) {
		t.Errorf("%q", out)
	}
}

// TestRecoverySidecarGone checks the words about a store without our files.
func TestRecoverySidecarGone(t *testing.T) {
	dir := t.TempDir()
	fine(t, "a\n", "append", "--dir", dir, "--topic", "t", "--segment-size", "1MiB")
	if err := os.RemoveAll(filepath.Join(dir, "stratalog")); err != nil {
		t.Fatal(err)
	}
	a := cli(t, "b\n", "append", "--dir", dir, "--topic", "t")
	if a.code != exitFine || !strings.Contains(a.errOut, "recovery: no sidecar: 1 records") || !strings.Contains(a.errOut, "consumequeue: 1 records") {
		t.Errorf("%+v", a)
	}
}

// TestRecoveryQueuesGone checks what README says about rebuilding the queues.
func TestRecoveryQueuesGone(t *testing.T) {
	dir := t.TempDir()
	fine(t, "a\nb\n", "append", "--dir", dir, "--topic", "t", "--segment-size", "1MiB")
	if err := os.RemoveAll(filepath.Join(dir, "consumequeue")); err != nil {
		t.Fatal(err)
	}
	a := cli(t, "c\n", "append", "--dir", dir, "--topic", "t")
	if a.code != exitFine || !strings.Contains(a.errOut, "made anew from the log") {
		t.Errorf("%+v", a)
	}
	if out := fine(t, "", "get", "--dir", dir, "--topic", "t"); out != "a\nb\nc\n" {
		t.Errorf("%q", out)
	}
	fine(t, "", "verify", "--dir", dir)
}

// TestRecoveryLines checks a line for each thing that recovery may do.
func TestRecoveryLines(t *testing.T) {
	quiet := stratalog.LoadReport{Log: commitlog.RecoveryReport{Start: "closed well", ScannedFrom: 9, End: 9},
		Lanes:    []dispatch.OpenReport{{Lane: contract.LaneQueue, Reason: dispatch.StartResumed}},
		Replayed: []dispatch.CatchUpReport{{Lane: contract.LaneQueue, From: 9, To: 9}}}
	if lines := newRecovery(quiet).lines(); len(lines) != 0 {
		t.Errorf("%q", lines)
	}
	for want, change := range map[string]func(*stratalog.LoadReport){
		"not closed":                        func(r *stratalog.LoadReport) { r.Unclean = true },
		"another program wrote":             func(r *stratalog.LoadReport) { r.Log.Foreign = true },
		"cannot be relied on: state is bad": func(r *stratalog.LoadReport) { r.Log.SidecarReason = "state is bad" },
		"the tail [9,12) was cut: torn": func(r *stratalog.LoadReport) {
			r.Log.Cut, r.Log.CutCause = contract.Range{Start: 9, End: 12}, errors.New("torn")
		},
		"epoch 3 begins at 9": func(r *stratalog.LoadReport) {
			r.Log.SetAside, r.Log.Epoch, r.Log.NewEpoch = []string{"f"}, 3, true
		},
		"set aside in stratalog/cut: f":      func(r *stratalog.LoadReport) { r.Log.SetAside = []string{"f"} },
		"made anew from the log: too few":    func(r *stratalog.LoadReport) { r.QueueTally = "too few" },
		"4 entries were cut from 2 queues":   func(r *stratalog.LoadReport) { r.QueueCut = cq.TruncateReport{Queues: 2, Units: 4} },
		"consumequeue: 5 records in [1,9)":   func(r *stratalog.LoadReport) { r.Replayed[0].From, r.Replayed[0].Records = 1, 5 },
		"consumequeue stopped at 9: no room": func(r *stratalog.LoadReport) { r.Replayed[0].Err = errors.New("no room") },
	} {
		r := quiet
		r.Replayed = append([]dispatch.CatchUpReport(nil), quiet.Replayed...)
		change(&r)
		if lines := newRecovery(r).lines(); !strings.Contains(strings.Join(lines, "\n"), want) {
			t.Errorf("%q has no %q", lines, want)
		}
	}
}
