package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// dumped is a line of dump --json.
type dumped struct {
	Kind, Record, Field, File, Reason, Hex string
	Offset, End, Size, FieldOffset         int64
	Value                                  map[string]any
	Decoded                                map[string]any
	Fields                                 []struct {
		Name         string
		Offset, Size int64
	}
}

// dumpLines runs dump --json and returns its lines.
func dumpLines(t *testing.T, code int, args ...string) []dumped {
	t.Helper()
	a := cli(t, "", append([]string{"dump", "--json"}, args...)...)
	if a.code != code || a.errOut != "" {
		t.Fatalf("dump %v: code %d, stderr %q", args, a.code, a.errOut)
	}
	var list []dumped
	for s := bufio.NewScanner(strings.NewReader(a.out)); s.Scan(); {
		var d dumped
		if err := json.Unmarshal(s.Bytes(), &d); err != nil {
			t.Fatalf("%q: %v", s.Text(), err)
		}
		list = append(list, d)
	}
	return list
}

// TestDump dumps a log in both forms, whole and damaged.
func TestDump(t *testing.T) {
	dir, file := flipped(t)
	at := second(t)
	list := dumpLines(t, exitFinding, file)
	if len(list) != 4 || list[0].Kind != "record" || list[0].Decoded["Body"] != "first" || list[2].Offset <= at || list[3].Kind != "zeros" {
		t.Fatalf("%+v", list)
	}
	if f := list[1]; f.Kind != "finding" || f.Offset != at || f.End != list[2].Offset || f.Record != "Message" || f.Field == "" ||
		f.File != filepath.ToSlash(file) || f.Reason == "" || f.Value["Topic"] == nil {
		t.Errorf("%+v", f)
	}
	a := cli(t, "", "dump", file)
	for _, want := range []string{fmt.Sprintf("%d: FINDING, ", at), "Body = \"third\"", "Topic = \"t\"", ": zeros from ", "\n2 records, 1 findings\n", file} {
		if !strings.Contains(a.out, want) {
			t.Errorf("%q is not in\n%s", want, a.out)
		}
	}
	if a.code != exitFinding || a.errOut != "" {
		t.Errorf("code %d, stderr %q", a.code, a.errOut)
	}
	// Part of it: what lies elsewhere is not looked at.
	list = dumpLines(t, exitFine, "--dir", dir, "commitlog/"+filepath.Base(file), "--from", fmt.Sprint(at+1), "--count", "1", "--fields", "--hex")
	if len(list) != 2 || list[0].Kind != "bytes" || list[1].Decoded["Body"] != "third" {
		t.Fatalf("%+v", list)
	}
	if f := list[1].Fields; len(f) != 17 || f[1].Name != "Magic" || f[1].Offset != list[1].Offset+4 || f[1].Size != 4 || int64(len(list[1].Hex)) != 2*list[1].Size {
		t.Errorf("%+v", list[1])
	}
	// Away from its store, and under another name.
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lone := filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(lone, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if list := dumpLines(t, exitFinding, lone); len(list) != 4 {
		t.Errorf("%+v", list)
	}
	if list := dumpLines(t, exitFine, lone, "--record", "Message", "--count", "1"); len(list) != 1 {
		t.Errorf("%+v", list)
	}
}

// TestDumpWholeStore dumps each file of a store; none changes by it.
func TestDumpWholeStore(t *testing.T) {
	dir := t.TempDir()
	fine(t, "a\nb\n", "append", "--dir", dir, "--topic", "t", "--segment-size", "1MiB")
	before := contents(t, dir)
	for file := range before {
		fine(t, "", "dump", file)
		dumpLines(t, exitFine, file)
	}
	after := contents(t, dir)
	if len(before) != len(after) || len(before) < 6 {
		t.Errorf("%d files, %d before", len(after), len(before))
	}
	for file, was := range before {
		if after[file] != was {
			t.Errorf("%s has changed", file)
		}
	}
}

// contents is what the files below dir hold, and when they were changed.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		files[name] = fmt.Sprint(info.ModTime(), string(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestDumpLive dumps the files of a store that another process writes: nothing
// that it is in the middle of is a finding.
func TestDumpLive(t *testing.T) {
	dir := t.TempDir()
	w := start(t, "append", "--dir", dir, "--topic", "t", "--segment-size", "64KiB", "--durability", "memory")
	written := make(chan error, 1)
	go func() {
		defer w.in.Close()
		for i := range 3000 {
			if _, err := fmt.Fprintln(w.in, i, strings.Repeat("x", i%700)); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	eventually(t, "the store is there", func() bool {
		_, err := os.Stat(filepath.Join(dir, "commitlog", strings.Repeat("0", 20)))
		return err == nil
	})
	records := 0
	for round := 0; ; round++ {
		for _, pattern := range []string{"commitlog/*", "consumequeue/t/0/*", "stratalog/*", "checkpoint", "abort", "lock"} {
			files, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				if info, err := os.Stat(file); err != nil || info.IsDir() {
					continue
				}
				a := cli(t, "", "dump", file, "--json")
				if a.code == exitFinding {
					t.Errorf("%s: %.2000s", file, a.out[max(0, strings.Index(a.out, `{"kind":"finding"`)):])
				}
				records += strings.Count(a.out, `"kind":"record"`)
			}
		}
		select {
		case err := <-written:
			if err != nil {
				t.Fatal(err)
			}
			if code := w.end(); code != exitFine || records == 0 {
				t.Errorf("writer: code %d, stderr %q; %d records", code, w.errOut.String(), records)
			}
			return
		default:
		}
	}
}

// TestDumpHelp checks what a user has to find when nothing tells what a file is.
func TestDumpHelp(t *testing.T) {
	lone := filepath.Join(t.TempDir(), "lone")
	if err := os.WriteFile(lone, []byte("who knows"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, says := range map[string]string{
		"dump":                                  "FILE is missing",
		"dump a b":                              `unexpected argument "b"`,
		"dump " + lone:                          "--record: one of Checkpoint, ",
		"dump " + lone + " --record Nobody":     `no record is named "Nobody"; there are Checkpoint, `,
		"dump " + lone + "x":                    "no such file",
		"dump " + filepath.Dir(lone):            "is a directory",
		"dump --count -1 " + lone:               "negative",
		"dump --fields " + lone:                 "--json",
		"dump --from 10 --record Bound " + lone: "has 9 bytes",
		"dump --from x " + lone:                 "--from",
	} {
		a := cli(t, "", strings.Fields(args)...)
		if a.code != exitFailed || !strings.Contains(a.errOut, says) || strings.Count(a.errOut, "\n") != 1 {
			t.Errorf("%s: code %d, %q", args, a.code, a.errOut)
		}
	}
	if a := cli(t, "", "dump", lone, "--record", "QueueUnit"); a.code != exitFinding || !strings.Contains(a.out, "needs 20 bytes, 9 are left") {
		t.Errorf("%+v", a)
	}
}
