package report

import "github.com/stratalog/stratalog/perf/load"

// figure takes one number out of a run; false if the run does not have it.
type figure func(*run) (float64, bool)

// column is a figure in a table.
type column struct {
	name, note string
	// better is 1 if more is better, -1 if less is, 0 if neither.
	better int
	of     figure
	write  func(float64) string
	// relative makes a column of ratios follow.
	relative bool
}

// ofOp makes a figure of an operation.
func ofOp(op string, of func(*load.Op) float64) figure {
	return func(r *run) (float64, bool) {
		if o := r.op(op); o != nil {
			return of(o), true
		}
		return 0, false
	}
}

// nonzero takes 0 for not measured.
func nonzero(of figure) figure {
	return func(r *run) (float64, bool) {
		x, ok := of(r)
		return x, ok && x != 0
	}
}

// ofLatency makes a figure of the latency of an operation, which needs as many
// samples: of fewer than 1000 there is no p99.9, only the longest.
func ofLatency(op string, samples int64, of func(*load.Latency) float64) figure {
	return func(r *run) (float64, bool) {
		if o := r.op(op); o != nil && o.Latency.Count >= samples {
			return of(&o.Latency), true
		}
		return 0, false
	}
}

// opColumns are those of an operation.
func opColumns(op string) []column {
	return []column{
		{name: "records/s", better: 1, of: rateOf(op), write: digits, relative: true},
		{name: "MB/s", note: "bodies only, 10^6 bytes", better: 1, write: digits,
			of: nonzero(ofOp(op, func(o *load.Op) float64 { return o.MBPerSec }))},
		{name: "unsent", note: "due and never sent: the rate was more than the engine could do", write: count,
			of: nonzero(ofOp(op, func(o *load.Op) float64 { return float64(o.Unsent) }))},
		{name: "p50", better: -1, write: duration, of: ofLatency(op, 1, func(l *load.Latency) float64 { return l.P50 })},
		{name: "p99", better: -1, write: duration, of: p99Of(op), relative: true},
		{name: "p99.9", better: -1, write: duration, of: ofLatency(op, 1000, func(l *load.Latency) float64 { return l.P999 })},
		{name: "p99.99", better: -1, write: duration, of: ofLatency(op, 10_000, func(l *load.Latency) float64 { return l.P9999 })},
		{name: "max", better: -1, write: duration, of: ofLatency(op, 1, func(l *load.Latency) float64 { return l.Max })},
	}
}

func rateOf(op string) figure {
	return nonzero(ofOp(op, func(o *load.Op) float64 { return o.RecordsPerSec }))
}

func p50Of(op string) figure {
	return ofLatency(op, 1, func(l *load.Latency) float64 { return l.P50 })
}

func p99Of(op string) figure {
	return ofLatency(op, 100, func(l *load.Latency) float64 { return l.P99 })
}

// costColumns are those of a run as a whole.
func costColumns() []column {
	return []column{
		{name: "rec/sync", note: "records that one sync covers", write: digits, of: func(r *run) (float64, bool) {
			if r.Log == nil {
				return 0, false
			}
			return r.Log.RecordsPerSync, r.Log.RecordsPerSync != 0
		}},
		{name: "CPU/rec", note: "user and system time of the whole process, generator included", better: -1, write: duration,
			of: perRecord(func(u *load.Usage) float64 { return (u.UserCPU + u.SystemCPU) * 1e6 })},
		{name: "allocs/rec", note: "of the whole process, generator included", better: -1, write: digits,
			of: func(r *run) (float64, bool) { return r.Usage.AllocsPerRecord, r.Usage.Seconds > 0 }},
		{name: "disk/payload", note: "bytes sent to the disk for a byte of bodies", better: -1, write: digits,
			of: func(r *run) (float64, bool) { return r.Usage.DiskBytesPerPayload, r.Usage.DiskWriteBytes != 0 }},
	}
}

// verifyColumns are what reading back found.
func verifyColumns() []column {
	return []column{
		{name: "read back", note: "records found right", write: count, of: nonzero(func(r *run) (float64, bool) { return float64(r.Verified.Records), true })},
		{name: "missing", write: count, of: func(r *run) (float64, bool) { return float64(r.Verified.Missing), r.outcome() != unread }},
		{name: "wrong", write: count, of: func(r *run) (float64, bool) { return float64(r.Verified.Wrong), r.outcome() != unread }},
	}
}

// resourceColumns are what else a run took.
func resourceColumns() []column {
	used := func(of func(*load.Usage) float64) figure {
		return func(r *run) (float64, bool) { return of(&r.Usage), r.Usage.Seconds > 0 }
	}
	ofLog := func(of func(*load.LogCounts) float64) figure {
		return func(r *run) (float64, bool) {
			if r.Log == nil {
				return 0, false
			}
			return of(r.Log), true
		}
	}
	return []column{
		{name: "seconds", write: digits, of: used(func(u *load.Usage) float64 { return u.Seconds })},
		{name: "user CPU s", write: digits, of: used(func(u *load.Usage) float64 { return u.UserCPU })},
		{name: "system CPU s", write: digits, of: used(func(u *load.Usage) float64 { return u.SystemCPU })},
		{name: "peak memory", write: bytesOf, of: used(func(u *load.Usage) float64 { return float64(u.PeakRSS) })},
		{name: "switches/rec", note: "context switches of both kinds", write: digits,
			of: perRecord(func(u *load.Usage) float64 { return float64(u.Switches) })},
		{name: "write calls/rec", note: "system calls that write; syncs and mappings are not among them", write: digits,
			of: used(func(u *load.Usage) float64 { return u.WriteCallsPerRecord })},
		{name: "major faults", write: count, of: used(func(u *load.Usage) float64 { return float64(u.MajorFault) })},
		{name: "disk read", write: bytesOf, of: used(func(u *load.Usage) float64 { return float64(u.DiskReadBytes) })},
		{name: "disk written", write: bytesOf, of: used(func(u *load.Usage) float64 { return float64(u.DiskWriteBytes) })},
		{name: "alloc B/rec", write: digits, of: perRecord(func(u *load.Usage) float64 { return float64(u.AllocBytes) })},
		{name: "GCs", write: count, of: used(func(u *load.Usage) float64 { return float64(u.GCs) })},
		{name: "syncs", note: "as the engine counts them", write: count, of: ofLog(func(l *load.LogCounts) float64 { return float64(l.Syncs) })},
		{name: "commits", note: "as the engine counts them", write: count, of: ofLog(func(l *load.LogCounts) float64 { return float64(l.Commits) })},
		{name: "log/payload", note: "bytes written by calls and mappings for a byte of bodies", write: digits,
			of: ofLog(func(l *load.LogCounts) float64 { return l.BytesPerPayload })},
		{name: "lag", note: "until derived state had caught up after the last answer", write: func(s float64) string { return duration(s * 1e6) },
			of: func(r *run) (float64, bool) {
				if r.Lag == nil {
					return 0, false
				}
				return r.Lag.Seconds, true
			}},
	}
}

// perRecord divides what was used by the records of the main operation.
func perRecord(of func(*load.Usage) float64) figure {
	return func(r *run) (float64, bool) {
		if len(r.Ops) == 0 || r.Ops[0].Records <= 0 || r.Usage.Seconds <= 0 {
			return 0, false
		}
		return of(&r.Usage) / float64(r.Ops[0].Records), true
	}
}
