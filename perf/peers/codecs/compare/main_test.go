package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stratalog/stratalog/perf/peers/codecs"
)

func TestRunRefuses(t *testing.T) {
	for _, sizes := range []string{"", "128,", "x", "-1"} {
		var b strings.Builder
		if err := run(sizes, 1, time.Microsecond, &b); err == nil {
			t.Errorf("sizes %q are taken", sizes)
		}
	}
}

// TestWrite holds the verdicts: ours and the yardstick have none.
func TestWrite(t *testing.T) {
	var b strings.Builder
	write(&b, "Encode", 2, []codecs.Row{
		{Name: "ours", Times: 1},
		{Name: codecs.Yardstick, Times: 0.5},
		{Name: "slow", Times: 2},
		{Name: "quick", Times: 1.99},
	})
	var got []string
	for line := range strings.SplitSeq(b.String(), "\n") {
		if cells := strings.Split(line, " | "); len(cells) > 3 {
			got = append(got, cells[3])
		}
	}
	if want := "bar of 2,-,-,kept,**missed**"; strings.Join(got, ",") != want {
		t.Errorf("%s, want %s", strings.Join(got, ","), want)
	}
}
