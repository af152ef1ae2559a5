package main

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stratalog/stratalog"
)

func TestAppendLines(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want string
	}{
		"lines":          {"one\ntwo\n", "one\ntwo\n"},
		"no end":         {"one\ntwo", "one\ntwo\n"},
		"empty lines":    {"\n\nx\n\n", "\n\nx\n\n"},
		"carriage":       {"one\r\ntwo\r\n", "one\r\ntwo\r\n"},
		"nothing":        {"", ""},
		"longer than io": {strings.Repeat("x", 200_000) + "\ny\n", strings.Repeat("x", 200_000) + "\ny\n"},
	} {
		for _, durability := range []string{"memory", "interval", "sync"} {
			t.Run(name+" "+durability, func(t *testing.T) {
				dir := t.TempDir()
				out := fine(t, c.in, "append", "--dir", dir, "--topic", "t", "--queue", "3",
					"--durability", durability, "--segment-size", "1MiB", "--json")
				var sum appendSummary
				if err := json.Unmarshal([]byte(out), &sum); err != nil {
					t.Fatalf("%q: %v", out, err)
				}
				if n := int64(strings.Count(c.want, "\n")); sum.Messages != n || sum.Durability != durability ||
					sum.Topic != "t" || *sum.Queue != 3 {
					t.Errorf("summary %q, want %d messages", out, n)
				}
				a := cli(t, "", "get", "--dir", dir, "--topic", "t", "--queue", "3")
				if a.out != c.want {
					t.Errorf("read back %.80q, want %.80q", a.out, c.want)
				}
			})
		}
	}
}

func TestAppendFile(t *testing.T) {
	tmp := t.TempDir()
	path := filepath.Join(tmp, "lines")
	if err := os.WriteFile(path, []byte("a\nb\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(tmp, "store")
	fine(t, "", "append", "--dir", dir, "--topic", "t", "--segment-size", "1MiB", path)
	out := fine(t, "c\n", "append", "--dir", dir, "--topic", "t", "-")
	if want := "appended 1 messages, 1 bytes, sync, to t/0 at 2..2\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
	if out := fine(t, "", "get", "--dir", dir, "--topic", "t"); out != "a\nb\nc\n" {
		t.Errorf("read back %q", out)
	}
}

func TestAppendTooLong(t *testing.T) {
	dir := t.TempDir()
	a := cli(t, "ok\n"+strings.Repeat("x", 100_001)+"\n", "append", "--dir", dir, "--topic", "t", "--segment-size", "1MiB", "--max-message-size", "100000")
	if a.code != exitFailed || !strings.Contains(a.errOut, "line 2 of standard input: it is longer than --max-message-size") ||
		!strings.Contains(a.errOut, "1 messages were appended") {
		t.Errorf("code %d, stderr %q", a.code, a.errOut)
	}
	if out := fine(t, "", "get", "--dir", dir, "--topic", "t"); out != "ok\n" {
		t.Errorf("read back %q", out)
	}
}

// tree makes a directory of files.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var sample = map[string]string{"top.txt": "at the top", "a b.c/one": "1", "a b.c/deep/er/two": "", "net/http": "\xff\x00binary\n", "net/x/y": "z"}

func TestAppendFiles(t *testing.T) {
	src, dir := tree(t, sample), t.TempDir()
	if err := os.Symlink("top.txt", filepath.Join(src, "link")); err != nil {
		t.Fatal(err)
	}
	a := cli(t, "", "append", "--dir", dir, "--files", src, "--tag", "g", "--segment-size", "1MiB")
	if a.code != exitFine || !strings.Contains(a.out, "appended 5 messages, 21 bytes, sync, to 3 topics") || !strings.Contains(a.errOut, "1 entries") {
		t.Fatalf("%+v", a)
	}
	found := map[string]string{}
	for _, topic := range []string{"root", "a_b_c", "net"} {
		out := fine(t, "", "get", "--dir", dir, "--topic", topic, "--json")
		for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
			var m message
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			body := string(m.BodyBase64)
			if m.Body != nil {
				body = *m.Body
			}
			found[m.Properties["KEYS"]] = body
			if m.Topic != topic || m.Properties["TAGS"] != "g" {
				t.Errorf("%q", line)
			}
		}
	}
	for name, body := range sample {
		if got, ok := found[name]; !ok || got != body {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
	if len(found) != len(sample) {
		t.Errorf("%d messages, want %d", len(found), len(sample))
	}
}

func TestAppendFilesTooLarge(t *testing.T) {
	src, dir := tree(t, map[string]string{"a": "ok", "b": "too large"}), t.TempDir()
	a := cli(t, "", "append", "--dir", dir, "--files", src, "--segment-size", "1MiB", "--max-message-size", "5")
	if a.code != exitFailed || !strings.Contains(a.errOut, filepath.Join(src, "b")+": it has 9 bytes") {
		t.Errorf("%+v", a)
	}
	if _, err := os.Stat(filepath.Join(dir, "commitlog")); err == nil {
		t.Error("a store was made")
	}
}

// TestAppendRefusedFirst checks that what can be refused is refused before a
// store is made, and that the error names what is wrong.
func TestAppendRefusedFirst(t *testing.T) {
	tmp := t.TempDir()
	odd := tree(t, map[string]string{"a": "ok", "z/c\x01d": "x"})
	large := tree(t, map[string]string{"a": "ok", "large": strings.Repeat("x", 5000)})
	file := filepath.Join(large, "a")
	none := filepath.Join(tmp, "store")
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"control byte in a path":   {[]string{"--files", odd}, `c\x01d": the path, which becomes the key, holds the byte 0x01`},
		"no room in a segment":     {[]string{"--files", large, "--segment-size", "4KiB"}, "large: its record takes"},
		"--files on a file":        {[]string{"--files", file}, file + ": not a directory"},
		"FILE is a directory":      {[]string{"--topic", "t", large}, large + " is a directory"},
		"topic":                    {[]string{"--topic", "a/b"}, "--topic: topic"},
		"queue":                    {[]string{"--topic", "t", "--queue", "-1"}, "--queue -1 is negative"},
		"control byte in the tag":  {[]string{"--topic", "t", "--tag", "a\x02"}, "--tag"},
		"control byte in the key":  {[]string{"--files", odd, "--tag", "a\x01"}, "--tag"},
		"long tag":                 {[]string{"--topic", "t", "--tag", strings.Repeat("x", 40_000)}, "--key and --tag"},
		"segment size":             {[]string{"--topic", "t", "--segment-size", "5000"}, "--segment-size 5000"},
		"max message size":         {[]string{"--topic", "t", "--max-message-size", "2GiB"}, "--max-message-size 2GiB"},
		"two files":                {[]string{"--topic", "t", file, file}, "unexpected argument"},
		"unknown flag":             {[]string{"--nonsense"}, "see stratalog append --help"},
		"a flag without its value": {[]string{"--topic"}, "see stratalog append --help"},
	} {
		t.Run(name, func(t *testing.T) {
			a := cli(t, "", append([]string{"append", "--dir", none}, c.args...)...)
			if a.code != exitFailed || !strings.Contains(a.errOut, c.says) || strings.Contains(a.errOut, "config: admin") {
				t.Errorf("%+v, want %q", a, c.says)
			}
			if _, err := os.Stat(none); err == nil {
				t.Error("a store was made")
			}
		})
	}
}

// TestAppendDefaultSizes checks that 0 stands for the default.
func TestAppendDefaultSizes(t *testing.T) {
	dir := t.TempDir()
	fine(t, strings.Repeat("x", 100_000), "append", "--dir", dir, "--topic", "t", "--segment-size", "1MiB", "--max-message-size", "0")
}

// TestAppendFilesVanishing checks the error for a file that fails when its turn
// comes, and that the messages before it are counted.
func TestAppendFilesVanishing(t *testing.T) {
	src, dir := tree(t, map[string]string{"a": "1", "b": "2"}), t.TempDir()
	c := &appendCommand{app: &app{dir: dir, out: io.Discard, errOut: io.Discard}, files: src, maxMessage: 10, segment: 1 << 20}
	s, err := c.fileSource()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(src, "b")); err != nil {
		t.Fatal(err)
	}
	store, err := c.openStore(t.Context(), stratalog.Options{SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	p := newPipeline(store, stratalog.Sync)
	err = p.counted(errors.Join(p.pump(t.Context(), s), p.wait(), closeStore(store)))
	if !strings.Contains(err.Error(), filepath.Join(src, "b")) || !strings.Contains(err.Error(), "(1 messages were appended)") {
		t.Error(err)
	}
}

// TestAppendNames checks that a message that the store refuses is named.
func TestAppendNames(t *testing.T) {
	dir := t.TempDir()
	a := cli(t, "ok\n"+strings.Repeat("x", 8000)+"\n", "append", "--dir", dir, "--topic", "t", "--segment-size", "4KiB")
	if a.code != exitFailed || !strings.Contains(a.errOut, "line 2 of standard input: ") || !strings.Contains(a.errOut, "(1 messages were appended)") {
		t.Errorf("%+v", a)
	}
}

// TestAppendCloseFails checks that the messages are counted as well if only the
// close fails.
func TestAppendCloseFails(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "append", "--dir", dir, "--topic", "t", "--segment-size", "1MiB")
	if _, err := p.in.Write([]byte("one\ntwo\n")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both can be read", func() bool { return cli(t, "", "get", "--dir", dir, "--topic", "t").out == "one\ntwo\n" })
	if err := os.Mkdir(filepath.Join(dir, "checkpoint"), 0o755); err != nil { // in the way of a file
		t.Fatal(err)
	}
	p.in.Close()
	if code := p.end(); code != exitFailed || !strings.Contains(p.errOut.String(), "2 messages were appended") {
		t.Errorf("code %d, stderr %q", code, p.errOut.String())
	}
}

// TestAppendInterrupted checks that SIGINT closes the store cleanly.
func TestAppendInterrupted(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "append", "--dir", dir, "--topic", "t", "--segment-size", "1MiB")
	if _, err := p.in.Write([]byte("one\ntwo\n")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both can be read", func() bool { return cli(t, "", "get", "--dir", dir, "--topic", "t").out == "one\ntwo\n" })
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.end(); code != exitFailed || !strings.Contains(p.errOut.String(), "interrupted") ||
		!strings.Contains(p.errOut.String(), "2 messages were appended") {
		t.Errorf("code %d, stderr %q", code, p.errOut.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "abort")); !os.IsNotExist(err) {
		t.Errorf("not closed cleanly: %v", err)
	}
	fine(t, "", "verify", "--dir", dir)
}

// snapshot returns what a directory tree holds, with the times of change.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all[path] = info.ModTime().String() + info.Mode().String()
		if !d.IsDir() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			all[path] += string(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
