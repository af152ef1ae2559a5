package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/contract"
)

// TestExitCodes runs every way to call the program that a script meets.
func TestExitCodes(t *testing.T) {
	tmp := t.TempDir()
	good := filepath.Join(tmp, "good")
	fine(t, "a\nb\n", "append", "--dir", good, "--topic", "t", "--segment-size", "1MiB")
	file := filepath.Join(tmp, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	none, made := filepath.Join(tmp, "none"), filepath.Join(tmp, "made")
	for _, c := range []struct {
		args string
		code int
		says string // in the error line
	}{
		{"", exitFine, ""},
		{"--help", exitFine, ""},
		{"version", exitFine, ""},
		{"version --json", exitFine, ""},
		{"append --help", exitFine, ""},
		{"bench", exitFine, ""},
		{"bench append --help", exitFine, ""},
		{"get --dir " + good + " --topic t", exitFine, ""},
		{"get --dir " + good + " --topic t --appended", exitFine, ""},
		{"inspect --dir " + good, exitFine, ""},
		{"verify --dir " + good, exitFine, ""},
		{"verify --dir " + good + " --appended", exitFine, ""},
		{"dump --dir " + good + " checkpoint", exitFine, ""},
		{"dump --dir " + good + " stratalog/bound --json", exitFine, ""},
		{"dump --record QueueUnit " + file, exitFine, ""},

		{"nonsense", exitFailed, "nonsense"},
		{"verify extra --dir " + good, exitFailed, `unexpected argument "extra"; see stratalog verify --help`},
		{"bench nonsense", exitFailed, `unexpected command "nonsense"; see stratalog bench --help`},
		{"append --dir " + made + " --topic t --disk-floor 7000000GiB", exitFailed, "--disk-floor"},
		{"bench append --dir " + made + " --disk-floor 7000000GiB", exitFailed, "--disk-floor"},
		{"bench append --dir " + none + " --segment-size 5000", exitFailed, "--segment-size 5000"},
		{"demo --source " + tmp + " --disk-floor 7000000GiB", exitFailed, "--disk-floor"},
		{"demo --source " + file, exitFailed, "not a directory"},
		{"verify --nonsense", exitFailed, "see stratalog verify --help"},
		{"dump", exitFailed, "FILE is missing"},
		{"dump " + file, exitFailed, "--record"},
		{"dump --dir " + good + " none", exitFailed, "no such file"},
		{"verify", exitFailed, "--dir is missing"},
		{"inspect", exitFailed, "--dir is missing"},
		{"append --topic t", exitFailed, "--dir is missing"},
		{"get --topic t", exitFailed, "--dir is missing"},
		{"bench get", exitFailed, "--dir is missing"},
		{"demo", exitFailed, "--source is missing"},
		{"append --dir " + good, exitFailed, "--topic is missing"},
		{"append --dir " + good + " --topic a/b", exitFailed, "separator"},
		{"append --dir " + good + " --topic t --durability none", exitFailed, "none of memory, interval, sync"},
		{"append --dir " + good + " --topic t --segment-size 3MB", exitFailed, "3MB"},
		{"append --dir " + good + " --topic t --segment-size 2MiB", exitFailed, "SegmentSize"},
		{"append --dir " + good + " --topic t --files " + tmp, exitFailed, "--files"},
		{"append --dir " + good + " --topic t " + none, exitFailed, "no such file"},
		{"append --dir " + good + " --files " + none, exitFailed, "no such file"},
		{"append --dir " + file + " --topic t", exitFailed, "not a directory"},
		{"get --dir " + good, exitFailed, "--topic is missing"},
		{"get --dir " + good + " --topic t --offset -1", exitFailed, "negative"},
		{"get --dir " + good + " --topic other", exitFailed, "no queue other/0"},
		{"get --dir " + good + " --topic t --queue 1", exitFailed, "no queue t/1"},
		{"get --dir " + none + " --topic t", exitFailed, "no store in"},
		{"inspect --dir " + none, exitFailed, "no store in"},
		{"verify --dir " + none, exitFailed, "no store in"},
		{"verify --dir " + tmp, exitFailed, "no store in"},
		{"bench get --dir " + none, exitFailed, "no store in"},
		{"bench get --dir " + good + " --topic other", exitFailed, "no queue"},
		{"bench get --dir " + good + " --batch 0", exitFailed, "batch"},
		{"bench get --dir " + good + " --random --sequential", exitFailed, "random"},
		{"bench append --dir " + good + " --records 0", exitFailed, "records"},
		{"bench append --dir " + good + " --producers 0", exitFailed, "producers"},
		{"bench append --dir " + good + " --write-path uring", exitFailed, "auto, mmap, pwrite"},
	} {
		t.Run(strings.ReplaceAll(c.args, tmp, ""), func(t *testing.T) {
			a := cli(t, "", strings.Fields(c.args)...)
			if a.code != c.code {
				t.Errorf("code %d, want %d; stderr %q", a.code, c.code, a.errOut)
			}
			if c.code == exitFine {
				if a.errOut != "" {
					t.Errorf("stderr %q", a.errOut)
				}
				return
			}
			if strings.Count(a.errOut, "\n") != 1 || !strings.HasPrefix(a.errOut, "stratalog: ") || !strings.Contains(a.errOut, c.says) {
				t.Errorf("stderr %q is not one line with %q", a.errOut, c.says)
			}
		})
	}
}

// TestExitCodeOfProcess checks that the code is the process' own.
func TestExitCodeOfProcess(t *testing.T) {
	for args, want := range map[string]int{"version": exitFine, "verify --dir " + t.TempDir(): exitFailed} {
		p := start(t, strings.Fields(args)...)
		if got := p.end(); got != want {
			t.Errorf("%s: code %d, want %d", args, got, want)
		}
	}
}

// TestLocked checks that a second writer is refused and readers are not.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	w := start(t, "append", "--dir", dir, "--topic", "t", "--segment-size", "1MiB")
	if _, err := w.in.Write([]byte("one\n")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the message can be read", func() bool {
		a := cli(t, "", "get", "--dir", dir, "--topic", "t")
		return a.code == exitFine && a.out == "one\n"
	})
	a := cli(t, "two\n", "append", "--dir", dir, "--topic", "t")
	if a.code != exitFailed || !strings.Contains(a.errOut, "STORE_LOCKED") {
		t.Errorf("second writer: code %d, stderr %q", a.code, a.errOut)
	}
	w.in.Close()
	if code := w.end(); code != exitFine {
		t.Errorf("writer: code %d, stderr %q", code, w.errOut.String())
	}
}

// TestHint checks what a newer sidecar's error says can be done.
func TestHint(t *testing.T) {
	var errOut bytes.Buffer
	a := &app{dir: "store", errOut: &errOut}
	err := contract.NewError(contract.KindNewerFormat, contract.OpOpen, contract.ComponentSidecar, "state: version 9", nil)
	side := filepath.Join("store", "stratalog")
	if code := a.finish(err); code != exitFailed || !strings.Contains(errOut.String(), "state: version 9") ||
		!strings.Contains(errOut.String(), "move "+side+" aside") || !strings.Contains(errOut.String(), "docs/DURABILITY.md") {
		t.Errorf("code %d, %q", code, errOut.String())
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{"a b\u00fc": "a b\u00fc", "a\nb": "a; b", "a\x1b[3": `a\x1b[3`, "\x01": `\x01`, "": "", "it's": "it's"} {
		if got := oneLine(in); got != want {
			t.Errorf("oneLine(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestHelpLists checks what a new user has to find in the help.
func TestHelpLists(t *testing.T) {
	for args, words := range map[string][]string{
		"--help":                 {"demo", "SIGPIPE", "1GiB", "recovery"},
		"append --help":          {"carriage return", "1GiB", "--disk-floor", "64MiB"},
		"bench append --help":    {"--disk-floor", "interrupted"},
		"demo --help":            {"--disk-floor", "temporary"},
		"verify --help":          {"--all"},
		"dump --help":            {"--record", "QueueUnit", "--from", "--count", "finding"},
		"get --help":             {"stderr"},
		"bench get --help":       {"interrupted"},
		"version --help --json":  {"version"},
		"inspect --help --dir d": {"--appended"},
	} {
		out := fine(t, "", strings.Fields(args)...)
		for _, word := range words {
			if !strings.Contains(out, word) {
				t.Errorf("%s: no %q in\n%s", args, word, out)
			}
		}
	}
}
