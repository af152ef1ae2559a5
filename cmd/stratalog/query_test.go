package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestQuery(t *testing.T) {
	dir := t.TempDir()
	fine(t, "0\n1\n", "append", "--dir", dir, "--topic", "t", "--key", "Aa", "--segment-size", "1MiB")
	fine(t, "2\n3\n", "append", "--dir", dir, "--topic", "t", "--key", "BB", "--queue", "1")
	fine(t, "4\n", "append", "--dir", dir, "--topic", "u", "--key", "Aa")
	for args, want := range map[string]string{
		"--topic t --key Aa":                                  "1\n0\n",
		"--topic t --key BB":                                  "3\n2\n",
		"--topic t --key BB --count 1":                        "3\n",
		"--topic u --key Aa":                                  "4\n",
		"--topic u --key BB":                                  "",
		"--topic t --key Aa --from 2001-01-01T00:00:00Z":      "1\n0\n",
		"--topic t --key Aa --from 0 --to 1000":               "",
		"--topic t --key Aa --to 2999-01-01T00:00:00.5+01:00": "1\n0\n",
		"--topic t --key Aa --appended":                       "1\n0\n",
		"--topic t --key x --tag":                             "",
	} {
		if out := fine(t, "", append([]string{"query", "--dir", dir}, strings.Fields(args)...)...); out != want {
			t.Errorf("query %s: %q, want %q", args, out, want)
		}
	}
	out := fine(t, "", "query", "--dir", dir, "--topic", "u", "--key", "Aa", "--json")
	if !strings.Contains(out, `"topic":"u"`) || !strings.Contains(out, `"KEYS":"Aa"`) || !strings.Contains(out, `"body":"4"`) {
		t.Errorf("%s", out)
	}
	for args, want := range map[string]string{
		"--topic t":                     "--key is missing",
		"--key k":                       "--topic is missing",
		"--topic t --key k --count -1":  "--count must not be negative",
		"--topic t --key k --from noon": `"noon" is neither a time`,
		"--topic t --key k more":        "more",
	} {
		a := cli(t, "", append([]string{"query", "--dir", dir}, strings.Fields(args)...)...)
		if a.code != exitFailed || !strings.Contains(a.errOut, want) {
			t.Errorf("query %s: %+v", args, a)
		}
	}
	if out := fine(t, "", "inspect", "--dir", dir); !strings.Contains(out, "key index") || !strings.Contains(out, ": 5 entries of [0,") {
		t.Errorf("%s", out)
	}
	if out := fine(t, "", "verify", "--dir", dir); !strings.Contains(out, "and 5 keys up to") {
		t.Errorf("%s", out)
	}
}

// An index that lies behind, or that is not there, is told.
func TestQueryBehind(t *testing.T) {
	dir := t.TempDir()
	fine(t, strings.Repeat("m\n", 50), "append", "--dir", dir, "--topic", "t", "--key", "k", "--segment-size", "1MiB")
	files, err := filepath.Glob(filepath.Join(dir, "index", "*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	a := cli(t, "", "query", "--dir", dir, "--topic", "t", "--key", "k")
	if a.code != exitFailed || !strings.Contains(a.errOut, "there is no key index") {
		t.Errorf("%+v", a)
	}
	// Nor is it as good as a broker's, of which nobody knows how far it has come.
	other := t.TempDir()
	fine(t, "m\n", "append", "--dir", other, "--topic", "t", "--key", "k", "--segment-size", "1MiB")
	if err := os.RemoveAll(filepath.Join(other, "stratalog")); err != nil {
		t.Fatal(err)
	}
	a = cli(t, "", "query", "--dir", other, "--topic", "t", "--key", "k")
	if a.code != exitFine || a.out != "m\n" || !strings.Contains(a.errOut, "not known how far the key index has come") {
		t.Errorf("%+v", a)
	}
	a = cli(t, "n\n", "append", "--dir", dir, "--topic", "t", "--key", "k")
	if a.code != exitFine || !strings.Contains(a.errOut, "the key index is made anew") {
		t.Errorf("%+v", a)
	}
	if out := fine(t, "", "query", "--dir", dir, "--topic", "t", "--key", "k"); len(out) != 2*51 {
		t.Errorf("%s bytes", strconv.Itoa(len(out)))
	}
}
