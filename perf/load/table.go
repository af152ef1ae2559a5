package load

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"text/tabwriter"
)

// WrongError says that what was read back is not what was written.
type WrongError struct {
	// Missing counts the messages that were acknowledged and not found, Wrong
	// those that are not as written, or were found where they do not belong.
	Missing int64
	Wrong   int64
	// First describes the first of them.
	First string
}

// Error names both counts and the first case.
func (e *WrongError) Error() string {
	return fmt.Sprintf("%d missing, %d wrong; first: %s", e.Missing, e.Wrong, e.First)
}

// Err returns a *WrongError if anything was missing or wrong.
func (r *Run) Err() error {
	if v := r.Verified; v.Missing != 0 || v.Wrong != 0 {
		return &WrongError{Missing: v.Missing, Wrong: v.Wrong, First: v.First}
	}
	return nil
}

// Param returns the value of a parameter; empty if there is none.
func (r *Run) Param(name string) string {
	for _, p := range r.Config {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

// Table writes the run for people.
func (r *Run) Table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, name+"\t"+format+"\n", args...) }
	if r.Interrupted {
		row("interrupted", "the run ended early: what follows was measured until then, and not all of it read back")
	}
	row("workload", "%s on %s, seed %d", r.Workload, r.Engine, r.Seed)
	var config []string
	for _, p := range r.Config {
		config = append(config, p.Name+" "+p.Value)
	}
	row("parameters", "%s", strings.Join(config, ", "))
	row("promise", "%s", r.Promise)
	row("machine", "%s, %d cores, %s, %s, %s", r.Env.CPU, r.Env.Cores, r.Env.Kernel, r.Env.FileSystem, r.Env.Go)
	for i := range r.Ops {
		r.Ops[i].rows(row)
	}
	r.rows(row)
	for _, note := range r.Notes {
		row("note", "%s", note)
	}
	return t.Flush()
}

func (o *Op) rows(row func(name, format string, args ...any)) {
	asked := ""
	if o.Rate > 0 {
		asked = fmt.Sprintf(" (asked: %g, %s)", o.Rate, o.Arrivals)
	}
	if o.Records == 0 {
		row(o.Name+", us", "%s", o.Latency)
		return
	}
	row(o.Name, "%d records in %.3f s: %.0f records/s%s, %.1f MB/s", o.Records, o.Seconds, o.RecordsPerSec, asked, o.MBPerSec)
	if o.Unsent > 0 {
		row("  UNSENT", "%d messages were due and not sent: the producers were too far behind; in the latencies each is as late as it was when they gave up", o.Unsent)
	}
	from := ""
	if o.Service != nil {
		from = ", from the intended start"
	}
	row("  latency us"+from, "%s", o.Latency)
	if o.Service != nil {
		row("  from when it was sent", "%s", *o.Service)
	}
	if o.WakeUp != nil {
		row("  generator woke late by", "%s", *o.WakeUp)
	}
}

// few is below how many samples the upper quantiles are all the maximum.
const few = 10

// String writes the usual quantiles.
func (l Latency) String() string {
	if l.Count < few {
		return fmt.Sprintf("p50 %.1f  max %.1f  mean %.1f  (%d)", l.P50, l.Max, l.Mean, l.Count)
	}
	return fmt.Sprintf("p50 %.1f  p90 %.1f  p99 %.1f  p99.9 %.1f  p99.99 %.1f  max %.1f  mean %.1f  (%d)",
		l.P50, l.P90, l.P99, l.P999, l.P9999, l.Max, l.Mean, l.Count)
}

func (r *Run) rows(row func(name, format string, args ...any)) {
	if l := r.Log; l != nil {
		row("log", "%d syncs (%.1f records each), %d commits, %d writes, %d rolls, grew %d bytes",
			l.Syncs, l.RecordsPerSync, l.Commits, l.Writes, l.Rolls, l.Bytes)
		if len(l.Calls) > 0 {
			var kinds []string
			for kind, n := range l.Calls {
				kinds = append(kinds, fmt.Sprintf("%s %d", kind, n))
			}
			sort.Strings(kinds)
			row("file system calls", "%.3f a record, %.3f bytes written a payload byte: %s", l.CallsPerRecord, l.BytesPerPayload, strings.Join(kinds, ", "))
		}
	}
	if l := r.Lag; l != nil {
		row("lag at the end", "%d bytes, gone after %.3f s", l.Bytes, l.Seconds)
	}
	u := r.Usage
	row("process", "CPU %.2f s user, %.2f s system in %.2f s; peak memory %.1f MiB; %d context switches; faults %d minor, %d major",
		u.UserCPU, u.SystemCPU, u.Seconds, float64(u.PeakRSS)/(1<<20), u.Switches, u.MinorFault, u.MajorFault)
	if len(r.Ops) > 0 && r.Ops[0].Records > 0 {
		row("  by record", "%.3f allocations, %.3f write calls, %.3f bytes to disk a payload byte", u.AllocsPerRecord, u.WriteCallsPerRecord, u.DiskBytesPerPayload)
	}
	v := r.Verified
	state := "yes"
	switch {
	case v.Missing != 0 || v.Wrong != 0:
		state = "NO: " + v.First
	case !v.OK:
		state = "not wholly"
	}
	row("verified", "%s: %d right, %d missing, %d wrong, %d retired before; %s, %.3f s", state, v.Records, v.Missing, v.Wrong, v.Retired, v.How, v.Seconds)
}
