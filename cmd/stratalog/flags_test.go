package main

import (
	"math"
	"strings"
	"testing"

	"github.com/stratalog/stratalog"
)

func TestParseSize(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64
		ok   bool
	}{
		{"0", 0, true}, {"1", 1, true}, {"100B", 100, true}, {"8KiB", 8 << 10, true}, {"8MiB", 8 << 20, true},
		{"1GiB", 1 << 30, true}, {"9223372036854775807", math.MaxInt64, true}, {"8589934591GiB", 8589934591 << 30, true},
		{"", 0, false}, {"MiB", 0, false}, {"-1", 0, false}, {"+1", 0, false}, {"1.5MiB", 0, false}, {"8MB", 0, false},
		{"8mib", 0, false}, {"8 MiB", 0, false}, {"0x10", 0, false}, {"9223372036854775808", 0, false}, {"8589934592GiB", 0, false},
	} {
		got, err := parseSize(c.text)
		if got != c.want && c.ok || (err == nil) != c.ok {
			t.Errorf("parseSize(%q) = %d, %v", c.text, got, err)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1: "1", 1000: "1000", 1024: "1KiB", 1536: "1536", 3 << 20: "3MiB", 1 << 30: "1GiB"} {
		if got := formatSize(n); got != want {
			t.Errorf("formatSize(%d) = %q, want %q", n, got, want)
		}
		if back, err := parseSize(formatSize(n)); back != n || err != nil {
			t.Errorf("%d comes back as %d, %v", n, back, err)
		}
	}
}

func TestChoice(t *testing.T) {
	d := newDurability(stratalog.Sync)
	if d.String() != "sync" || d.Type() != "memory|interval|sync" {
		t.Errorf("durability flag: %q of %q", d, d.Type())
	}
	for word, ok := range map[string]bool{"memory": true, "interval": true, "sync": true, "default": false, "": false, "Sync": false} {
		if err := d.Set(word); (err == nil) != ok || ok && d.String() != word {
			t.Errorf("durability %q: %v, %v", word, d, err)
		}
	}
	w := newWritePath()
	for word, ok := range map[string]bool{"auto": true, "mmap": true, "pwrite": true, "uring": false} {
		if err := w.Set(word); (err == nil) != ok {
			t.Errorf("write path %q: %v", word, err)
		}
	}
}

// TestNumberFlags: a number that is none is told in words, as with the other
// flags.
func TestNumberFlags(t *testing.T) {
	for args, want := range map[string]string{
		"dump --count x f":                     `invalid argument "x" for "--count" flag: "x" is not a whole number; see stratalog dump --help`,
		"dump --slots 99999999999999999999 f":  `invalid argument "99999999999999999999" for "--slots" flag: "99999999999999999999" is too large; see stratalog dump --help`,
		"dump --count -99999999999999999999 f": `invalid argument "-99999999999999999999" for "--count" flag: "-99999999999999999999" is too small; see stratalog dump --help`,
		"get --count=":                         `invalid argument "" for "--count" flag: "" is not a whole number; see stratalog get --help`,
		"query --count 1.5":                    `invalid argument "1.5" for "--count" flag: "1.5" is not a whole number; see stratalog query --help`,
		"bench append --seed -1":               `invalid argument "-1" for "--seed" flag: "-1" is not a whole number of at least 0; see stratalog bench append --help`,
		"bench append --rate fast":             `invalid argument "fast" for "--rate" flag: "fast" is not a number; see stratalog bench append --help`,
		"dump --json=maybe f":                  `invalid argument "maybe" for "--json" flag: "maybe" is not true or false; see stratalog dump --help`,
		"dump --from x f":                      `invalid argument "x" for "--from" flag: size "x" is not a whole number, alone or with B, KiB, MiB or GiB; see stratalog dump --help`,
		"dump --nothing f":                     `unknown flag: --nothing; see stratalog dump --help`,
	} {
		if a := cli(t, "", strings.Fields(args)...); a.code != exitFailed || a.errOut != "stratalog: "+want+"\n" {
			t.Errorf("%s: code %d, %q", args, a.code, a.errOut)
		}
	}
}
