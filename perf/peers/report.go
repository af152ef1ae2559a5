package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stratalog/stratalog/perf/load"
)

// tables makes all tables of the runs that are there.
func tables(runs []load.Run) []*table {
	var all []*table
	add := func(t *table) {
		if len(t.rows) > 0 {
			all = append(all, t)
		}
	}
	add(promiseTable(runs))
	for _, size := range values(runs, "durable append", "size") {
		for _, n := range values(runs, "durable append", "producers") {
			add(durableTable(runs, size, n))
		}
	}
	for _, size := range values(runs, "append without sync", "size") {
		add(memoryTable(runs, size))
	}
	add(readTable(runs))
	add(reopenTable(runs))
	return all
}

// values lists the numbers that a parameter has in a workload.
func values(runs []load.Run, workload, name string) []int {
	var all []int
	for i := range runs {
		if runs[i].Workload == workload {
			all = append(all, numeric(&runs[i], name))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// cellsOf returns the condition for runs of a workload.
func cellsOf(workload string, size, producers int) func(*load.Run) bool {
	return func(r *load.Run) bool {
		return r.Workload == workload && numeric(r, "size") == size && numeric(r, "producers") == producers
	}
}

// durableTable compares durable appends.
func durableTable(runs []load.Run, size, producers int) *table {
	all := lines(runs, cellsOf("durable append", size, producers))
	t := &table{title: fmt.Sprintf("Durable append, %d B, %s", size, count(producers, "producer")),
		notes: []string{"Medians of the rounds (least–greatest). The whole process counts for allocations and CPU, load generator included. disk B/B: bytes written to disk over bytes of bodies."},
		head:  []string{"engine", "msgs/s", "p50 us", "p99", "p99.9", "msgs/sync", "allocs/msg", "CPU us/msg", "disk B/B", "ours : theirs", "of the limit"}}
	for _, l := range all {
		// Only rows with as many messages in flight are alike.
		us, top := labelled(all, ours), labelled(all, yardstick)
		if l.async != "" {
			us, top = labelled(all, ours+inFlight(l.async)), labelled(all, yardstick+inFlight(l.async))
		}
		t.rows = append(t.rows, []string{l.label, l.each(rate).full(), l.each(p50).short(), l.each(p99).short(), l.each(p999).short(),
			l.each(perSync).short(), l.each(allocs).short(), l.each(cpu).short(), l.each(diskBytes).short(), ratio(us, l, rate),
			percent(l.over(top, rate))})
	}
	return t
}

// ratio writes how many times as fast we are as others are.
func ratio(us, l *line, of func(*load.Run) (float64, bool)) string {
	if us == nil || us.engine == l.engine {
		return "-"
	}
	return us.over(l, of).full()
}

// memoryTable compares appends without sync; engines that keep what they
// answered in a buffer of the process promise less and are listed apart.
func memoryTable(runs []load.Run, size int) *table {
	all := lines(runs, cellsOf("append without sync", size, 1))
	t := &table{title: fmt.Sprintf("Append without sync, %d B, 1 producer, 1 message a call", size),
		notes: []string{"An answer means that the message outlives a kill of the process. Rows in brackets do not promise that and have no ratio.",
			"The last row is the load generator alone, which keeps nothing: its time is part of every rate. ns/msg is the median without it."},
		head: []string{"engine", "msgs/s", "ns/msg", "p50 us", "p99", "p99.9", "allocs/msg", "CPU us/msg", "disk B/B", "ours : theirs", "of the limit"}}
	us, top := labelled(all, ours), labelled(all, yardstick)
	var apart [][]string
	alone := 0.0
	if l := labelled(all, nothingEngine.name); l != nil {
		alone = l.each(perMessage).median()
	}
	for _, l := range all {
		own := spread{max(0, l.each(perMessage).median()-alone)}
		if l.engine == nothingEngine.name {
			own[0] = alone
		}
		row := []string{l.label, l.each(rate).full(), own.short(), l.each(p50).short(), l.each(p99).short(), l.each(p999).short(),
			l.each(allocs).short(), l.each(cpu).short(), l.each(diskBytes).short(), ratio(us, l, rate), percent(l.over(top, rate))}
		if e, err := engineNamed(l.engine); err == nil && !e.memory.process {
			row[0], row[len(row)-2], row[len(row)-1] = "("+row[0]+")", "-", "-"
			apart = append(apart, row)
			continue
		}
		t.rows = append(t.rows, row)
	}
	t.rows = append(t.rows, apart...)
	return t
}

// perMessage is the time of one message of one producer, in nanoseconds.
func perMessage(r *load.Run) (float64, bool) {
	x, ok := rate(r)
	return 1e9 / max(x, 1), ok
}

// readTable compares scans and random reads.
func readTable(runs []load.Run) *table {
	all := lines(runs, func(r *load.Run) bool { return r.Workload == "read" })
	t := &table{head: []string{"engine", "scan msgs/s", "ours : theirs", "of the limit", "random p50 us", "p99", "p99.9", "reads/s",
		"ours : theirs", "of the limit", "checks on a read"}}
	us, top := labelled(all, ours), labelled(all, yardstick)
	random := func(get func(*load.Op) float64) func(*load.Run) (float64, bool) {
		return func(r *load.Run) (float64, bool) {
			op := opOf(r, "random read")
			if op == nil {
				return 0, false
			}
			return get(op), true
		}
	}
	reads := random(func(o *load.Op) float64 { return o.RecordsPerSec })
	for _, l := range all {
		e, err := engineNamed(l.engine)
		if err != nil {
			continue
		}
		if r := l.rounds[0]; t.title == "" && r != nil {
			t.title = fmt.Sprintf("Reading %d messages of %s B, in the page cache", opOf(r, "scan").Records, r.Param("size"))
		}
		row := []string{l.label, l.each(rate).full(), ratio(us, l, rate), percent(l.over(top, rate)),
			l.each(random(func(o *load.Op) float64 { return o.Latency.P50 })).short(),
			l.each(random(func(o *load.Op) float64 { return o.Latency.P99 })).short(),
			l.each(random(func(o *load.Op) float64 { return o.Latency.P999 })).short(),
			l.each(reads).full(), ratio(us, l, reads), percent(l.over(top, reads)), e.checks}
		t.rows = append(t.rows, row)
	}
	return t
}

// reopenTable compares how long it takes to go on.
func reopenTable(runs []load.Run) *table {
	t := &table{head: []string{"engine", "clean: open ms", "and one append", "killed: open ms", "and one append", "disk B/B"},
		notes: []string{"Until the log takes appends, and until one durable append was answered; files in the page cache. All of it had been appended with sync; every message was found. Space that is preallocated counts as disk."}}
	state := func(s string) []*line {
		return lines(runs, func(r *load.Run) bool { return r.Workload == "reopen" && r.Param("state") == s })
	}
	clean, killed := state("clean"), state("killed")
	built := lines(runs, func(r *load.Run) bool { return r.Workload == "build" })
	ms := func(l *line, op string) string {
		if l == nil {
			return "-"
		}
		return l.each(func(r *load.Run) (float64, bool) { o := opOf(r, op); return o.Latency.P50 / 1e3, true }).full()
	}
	for _, l := range clean {
		k := labelled(killed, l.label)
		size := "-"
		if b := labelled(built, l.label); b != nil {
			size = b.each(func(r *load.Run) (float64, bool) { return r.Log.BytesPerPayload, true }).short()
		}
		if b := l.rounds[0]; t.title == "" && b != nil {
			t.title = fmt.Sprintf("Opening a log of %d messages of %s B", b.Verified.Records-1, b.Param("size"))
		}
		t.rows = append(t.rows, []string{l.label, ms(l, "open"), ms(l, "open and append"), ms(k, "open"), ms(k, "open and append"), size})
	}
	return t
}

// promiseTable says what an answer means and what was found when it was
// checked.
func promiseTable(runs []load.Run) *table {
	t := &table{title: "What an answer means, and what was found",
		notes: []string{"Below strace, with 1 and with 64 producers: a sync (fsync, fdatasync, msync, or a write that is one) of the file that a message went to had begun behind its bytes, and ended before its answer. Syncs were counted in other runs.",
			"Kills came at a random moment of appending; every answered message was then looked for."},
		head: []string{"engine", "with sync", "answers behind their sync", "syncs/msg at 1 producer", "msgs/sync at 64", "killed", "without sync", "killed", "set up"}}
	of := func(e *engine, workload string, m mode) []*load.Run {
		var found []*load.Run
		for i := range runs {
			if r := &runs[i]; r.Workload == workload && r.Engine == e.name && r.Param("mode") == string(m) {
				found = append(found, r)
			}
		}
		return found
	}
	for _, e := range engines {
		counts, kills := of(e, "sync count", modeSync), of(e, "kill", modeSync)
		if len(counts)+len(kills) == 0 {
			continue
		}
		one, many := "not counted", []string{}
		for _, r := range counts {
			if r.Param("producers") == "1" {
				one = digits(float64(r.Log.Syncs) / float64(r.Ops[0].Records))
				continue
			}
			text := digits(r.Log.RecordsPerSync)
			if len(e.many) > 1 {
				text += " " + r.Param("way")
			}
			many = append(many, text)
		}
		name := e.name
		if v := append(counts, kills...)[0].Param("version"); v != "" {
			name += " " + v
		}
		without := e.memory.text
		if without == "" {
			without = "has none"
		}
		t.rows = append(t.rows, []string{name, e.sync.text, inOrderOf(of(e, orderWorkload, modeSync)), one, strings.Join(many, ", "), survived(kills), without,
			survived(of(e, "kill", modeMemory)), e.settings})
	}
	return t
}

// inOrderOf tells how many answers were behind their syncs.
func inOrderOf(runs []*load.Run) string {
	var good, all int64
	for _, r := range runs {
		good, all = good+r.Ops[0].Records, all+r.Verified.Records
	}
	switch {
	case all == 0:
		return "not looked at"
	case good < all:
		return fmt.Sprintf("%d of %d NOT", all-good, all)
	}
	return fmt.Sprintf("all %d", all)
}

// survived tells what kills left.
func survived(kills []*load.Run) string {
	if len(kills) == 0 {
		return "-"
	}
	var acked, missing, wrong int64
	for _, r := range kills {
		acked, missing, wrong = acked+r.Ops[0].Records, missing+r.Verified.Missing, wrong+r.Verified.Wrong
		if lost := opOf(r, lostOp); lost != nil {
			missing += lost.Count
		}
	}
	switch {
	case wrong > 0:
		return fmt.Sprintf("%d of %d LOST, %d wrong", missing, acked, wrong)
	case missing > 0:
		return fmt.Sprintf("%d of %d LOST", missing, acked)
	}
	return fmt.Sprintf("all %d there", acked)
}

// count writes n things.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
