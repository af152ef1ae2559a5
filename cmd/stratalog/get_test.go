package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/contract"
)

func TestGet(t *testing.T) {
	dir := t.TempDir()
	fine(t, "0\n1\n2\n", "append", "--dir", dir, "--topic", "t", "--tag", "odd", "--segment-size", "1MiB")
	fine(t, "3\n4\n", "append", "--dir", dir, "--topic", "t", "--tag", "even", "--key", "k")
	for args, want := range map[string]string{
		"":                              "0\n1\n2\n3\n4\n",
		"--offset 2":                    "2\n3\n4\n",
		"--offset 2 --count 2":          "2\n3\n",
		"--count 100":                   "0\n1\n2\n3\n4\n",
		"--offset 5":                    "",
		"--tag even":                    "3\n4\n",
		"--tag even --count 1":          "3\n",
		"--tag none":                    "",
		"--time 2001-01-01T00:00:00Z":   "0\n1\n2\n3\n4\n",
		"--time 2999-01-01T00:00:00Z":   "",
		"--appended":                    "0\n1\n2\n3\n4\n",
		"--follow --count 5":            "0\n1\n2\n3\n4\n",
		"--follow --tag even --count 2": "3\n4\n",
	} {
		if out := fine(t, "", append([]string{"get", "--dir", dir, "--topic", "t"}, strings.Fields(args)...)...); out != want {
			t.Errorf("get %s: %q, want %q", args, out, want)
		}
	}
}

// TestGetTimeRefused checks what is no time, or one too many.
func TestGetTimeRefused(t *testing.T) {
	for _, args := range []string{"--time yesterday", "--time 2001-01-01T00:00:00Z --offset 0"} {
		a := cli(t, "", append([]string{"get", "--dir", t.TempDir(), "--topic", "t"}, strings.Fields(args)...)...)
		if a.code != exitFailed || !strings.Contains(a.errOut, "--time") {
			t.Errorf("%s: %+v", args, a)
		}
	}
}

// TestGetOffsetOutside checks the words about an offset that is not in the queue.
func TestGetOffsetOutside(t *testing.T) {
	dir := t.TempDir()
	fine(t, "0\n1\n", "append", "--dir", dir, "--topic", "t", "--segment-size", "1MiB")
	a := cli(t, "", "get", "--dir", dir, "--topic", "t", "--offset", "500")
	if a.code != exitFine || a.out != "" || a.errOut != "stratalog: offset 500 is beyond the end 2 of t/0\n" {
		t.Errorf("%+v", a)
	}
	if a := cli(t, "", "get", "--dir", dir, "--topic", "a\x1bb"); a.code != exitFailed || !strings.Contains(a.errOut, `no queue "a\x1bb"/0`) {
		t.Errorf("%+v", a)
	}
	var errOut bytes.Buffer
	c := &getCommand{app: &app{errOut: &errOut}, topic: "t", offset: 3, offsetGiven: true, follow: true}
	out := &stratalog.Records{Status: contract.GetOffsetTooSmall, Min: 7, Max: 9}
	c.tellOffset(out)
	c.tellOffset(out) // once
	if errOut.String() != "stratalog: offset 3 is below the first live offset 7 of t/0\n" {
		t.Errorf("%q", errOut.String())
	}
}

func TestGetManyBatches(t *testing.T) {
	dir := t.TempDir()
	in := strings.Repeat("line\n", 1000)
	fine(t, in, "append", "--dir", dir, "--topic", "t", "--segment-size", "64KiB", "--max-message-size", "1KiB")
	if out := fine(t, "", "get", "--dir", dir, "--topic", "t"); out != in {
		t.Errorf("%d bytes, want %d", len(out), len(in))
	}
}

func TestGetJSON(t *testing.T) {
	dir := t.TempDir()
	fine(t, "text <&>\n\xff\xfe\n\n", "append", "--dir", dir, "--topic", "t", "--key", "k", "--segment-size", "1MiB")
	out := fine(t, "", "get", "--dir", dir, "--topic", "t", "--json")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines: %q", len(lines), out)
	}
	for i, line := range lines {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		for _, key := range []string{"topic", "queue", "offset", "physical_offset", "size", "store_time", "born_time", "properties"} {
			if _, ok := m[key]; !ok {
				t.Errorf("line %d has no %q", i, key)
			}
		}
		want := []struct {
			key string
			val any
		}{{"body", "text <&>"}, {"body_base64", "//4="}, {"body", ""}}[i]
		if m[want.key] != want.val || m["offset"] != float64(i) {
			t.Errorf("line %q: %q is not %q", line, want.key, want.val)
		}
	}
}

// TestFollow checks that a following reader sees what a live writer appends.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	w := start(t, "append", "--dir", dir, "--topic", "t", "--segment-size", "1MiB")
	say := func(text string) {
		t.Helper()
		if _, err := w.in.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	say("one\n")
	eventually(t, "the store is there", func() bool { return cli(t, "", "get", "--dir", dir, "--topic", "t").out == "one\n" })

	counted := start(t, "get", "--dir", dir, "--topic", "t", "--follow", "--count", "3")
	open := start(t, "get", "--dir", dir, "--topic", "t", "--follow", "--json")
	lines := bufio.NewScanner(open.out)
	expect := func(want string) {
		t.Helper()
		var m message
		if !lines.Scan() {
			t.Fatalf("no line: %v, stderr %q", lines.Err(), open.errOut.String())
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil || m.Body == nil || *m.Body != want {
			t.Fatalf("line %q, want body %q (%v)", lines.Text(), want, err)
		}
	}
	expect("one")
	say("two\n")
	expect("two")
	say("three\nfour\n")
	expect("three")
	expect("four")

	var got []string
	for s := bufio.NewScanner(counted.out); s.Scan(); {
		got = append(got, s.Text())
	}
	if code := counted.end(); code != exitFine || strings.Join(got, ",") != "one,two,three" {
		t.Errorf("--count 3: code %d, %q, stderr %q", code, got, counted.errOut.String())
	}
	if err := open.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if lines.Scan() {
		t.Errorf("one more line: %q", lines.Text())
	}
	if code := open.end(); code != exitFine {
		t.Errorf("after SIGINT: code %d, stderr %q", code, open.errOut.String())
	}
	w.in.Close()
	if code := w.end(); code != exitFine {
		t.Errorf("writer: code %d, stderr %q", code, w.errOut.String())
	}
}

// TestReadersChangeNothing runs every reading command and compares the tree.
func TestReadersChangeNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	fine(t, "a\nb\nc\n", "append", "--dir", dir, "--topic", "t", "--segment-size", "1MiB")
	before := snapshot(t, dir)
	for _, args := range []string{"get --topic t", "get --topic t --appended", "inspect", "inspect --appended --json",
		"verify", "verify --appended", "bench get --count 10", "bench get --count 10 --random"} {
		fine(t, "", append(strings.Fields(args), "--dir", dir)...)
		if after := snapshot(t, dir); !maps.Equal(before, after) {
			t.Errorf("%s changed the store", args)
		}
	}
}

// TestGetLight: a message of a light queue is one of another topic's; where to go on
// in the queue that was asked for is told, too.
func TestGetLight(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s, err := stratalog.Open(t.Context(), stratalog.Options{Dir: dir, SegmentSize: 1 << 20, LightQueues: true})
	if err == nil {
		err = s.Start(t.Context())
	}
	for i := 0; i < 3 && err == nil; i++ {
		m := stratalog.Message{Topic: "t", Body: []byte("x")}
		if i > 0 {
			m.Properties = []byte("INNER_MULTI_DISPATCH\x01%LMQ%a\x02")
		}
		_, err = s.Append(t.Context(), &m, stratalog.Memory)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{"%LMQ%a --offset 1": `"offset":2,"light_offset":1,`, "t --offset 2": `"offset":2,"physical_offset":`} {
		out := fine(t, "", append([]string{"get", "--dir", dir, "--json", "--topic"}, strings.Fields(args)...)...)
		if !strings.Contains(out, want) || strings.Count(out, "\n") != 1 {
			t.Errorf("get %s: %s", args, out)
		}
	}
}
