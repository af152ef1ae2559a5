package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/perf/load"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values spread
		median float64
		full   string
	}{
		{nil, 0, "-"}, {spread{7}, 7, "7.0"}, {spread{3, 1}, 2, "2.0 (1.0–3.0)"}, {spread{5, 1, 3}, 3, "3.0 (1.0–5.0)"},
		{spread{4, 1, 2, 3}, 2.5, "2.5 (1.0–4.0)"},
	} {
		if m, full := c.values.median(), c.values.full(); m != c.median || full != c.full {
			t.Errorf("%v: median %v, %q; want %v, %q", c.values, m, full, c.median, c.full)
		}
	}
}

func TestDigits(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.123: "0.12", 0.996: "1.0", 9.94: "9.9", 9.96: "10", 123.4: "123", 1234: "1 230",
		12345: "12 300", 987654: "988 000", 1234567: "1 230 000", 999999: "1 000 000"} {
		if got := digits(x); got != want {
			t.Errorf("digits(%v) = %q, want %q", x, got, want)
		}
	}
}

// run returns a run of durable appends at some rate.
func run(engine string, w way, round int, rate float64) load.Run {
	return load.Run{Engine: engine, Workload: "durable append", Config: []load.Param{{Name: "way", Value: string(w)},
		{Name: "producers", Value: "16"}, {Name: "size", Value: "1024"}, {Name: "round", Value: strconv.Itoa(round)}},
		Ops: []load.Op{{Name: "append", Records: 100, RecordsPerSec: rate}}}
}

// Ratios go by pairs of the same round, whatever order the runs came in.
func TestRatios(t *testing.T) {
	runs := []load.Run{
		run("raft-wal", wayBatch, 1, 100), run(ours, wayNative, 0, 100), run("raft-wal", wayBatch, 0, 50),
		run(ours, wayNative, 1, 400), run(yardstick, wayNative, 0, 200), run(yardstick, wayNative, 1, 500),
		run(ours, wayNative, 2, 1000), // without a pair
	}
	all := tables(runs)
	if len(all) != 1 {
		t.Fatalf("%d tables, want 1", len(all))
	}
	rows := map[string][]string{}
	for _, row := range all[0].rows {
		rows[row[0]] = row
	}
	ratio, share := len(all[0].head)-2, len(all[0].head)-1
	for label, want := range map[string][2]string{
		ours: {"-", "65 %"}, yardstick: {"0.65 (0.50–0.80)", "100 %"}, "raft-wal, batch": {"3.0 (2.0–4.0)", "22 %"},
	} {
		row := rows[label]
		if row == nil || row[ratio] != want[0] || row[share] != want[1] {
			t.Errorf("%s: %q, want %q", label, row, want)
		}
	}
	if all[0].rows[0][0] != ours || all[0].rows[1][0] != yardstick {
		t.Errorf("the order of rows: %q, %q", all[0].rows[0][0], all[0].rows[1][0])
	}
	var text strings.Builder
	if err := all[0].writeMarkdown(&text); err != nil {
		t.Fatal(err)
	}
	rowsSeen := 0
	for row := range strings.Lines(text.String()) {
		if !strings.HasPrefix(row, "|") {
			continue
		}
		if rowsSeen++; strings.Count(row, "|") != len(all[0].head)+1 {
			t.Errorf("a row of another width: %s", row)
		}
	}
	if rowsSeen != 2+len(all[0].rows) {
		t.Errorf("%d rows of Markdown for %d", rowsSeen, len(all[0].rows))
	}
}

// What has many messages in flight is compared with what has as many, and with
// nothing else.
func TestAsyncRatios(t *testing.T) {
	inFlight := func(r load.Run) load.Run {
		r.Config = append(r.Config, load.Param{Name: "async", Value: "64"})
		return r
	}
	runs := []load.Run{
		run(ours, wayNative, 0, 100), run(yardstick, wayNative, 0, 200), run("raft-wal", wayBatch, 0, 50),
		inFlight(run(ours, wayNative, 0, 1000)), inFlight(run("raft-wal", wayBatch, 0, 250)),
	}
	for _, limit := range []bool{false, true} {
		want := map[string][2]string{ours: {"-", "50 %"}, "raft-wal, batch": {"2.0", "25 %"},
			ours + ", 64 in flight": {"-", "-"}, "raft-wal, batch, 64 in flight": {"4.0", "-"}}
		if limit {
			runs = append(runs, inFlight(run(yardstick, wayNative, 0, 500)))
			want[ours+", 64 in flight"], want["raft-wal, batch, 64 in flight"] = [2]string{"-", "200 %"}, [2]string{"4.0", "50 %"}
		}
		for _, row := range tables(runs)[0].rows {
			n := len(row)
			if w, ok := want[row[0]]; ok && (row[n-2] != w[0] || row[n-1] != w[1]) {
				t.Errorf("%q, want %q", row, w)
			}
			delete(want, row[0])
		}
		if len(want) > 0 {
			t.Errorf("no rows for %v", want)
		}
	}
}

func TestRotate(t *testing.T) {
	if got := rotate([]int{1, 2, 3}, 4); got[0] != 2 || got[2] != 1 {
		t.Errorf("rotate = %v", got)
	}
	if got := rotate([]int{}, 4); len(got) != 0 {
		t.Errorf("rotate of nothing = %v", got)
	}
}

// A message that is missing, wrong, twice or out of order is found.
func TestChecker(t *testing.T) {
	bodies := load.NewBodies(1, load.FixedSize(64))
	messages := func(seqs ...int64) fixed {
		var f fixed
		for _, seq := range seqs {
			f = append(f, bodies.Make(nil, seq))
		}
		return f
	}
	acked := []int64{2, 2}
	bad := messages(0, 1, 2, 3)
	bad[2][40]++
	for name, c := range map[string]struct {
		log fixed
		ok  bool
	}{
		"all": {messages(0, 2, 1, 3), true}, "one that was not answered": {messages(0, 1, 2, 3, 5), true},
		"missing": {messages(0, 1, 2), false}, "twice": {messages(0, 1, 1, 2, 3), false}, "swapped": {messages(2, 0, 1, 3), false},
		"never sent": {messages(0, 1, 2, 3, 5, 7), false}, "a wrong byte": {bad, false}, "short": {append(messages(0, 1, 2, 3), []byte{1}), false},
		"empty": {nil, false},
	} {
		v := verify(c.log, bodies, acked, []int64{2, 3})
		if v.OK != c.ok || !v.OK && v.First == "" {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// fixed is a log of these messages.
type fixed [][]byte

func (f fixed) Scan(visit func([]byte) error) error {
	for _, body := range f {
		if err := visit(body); err != nil {
			return err
		}
	}
	return nil
}

func (f fixed) Close() error { return nil }
