package report

import (
	"fmt"
	"math"

	"github.com/stratalog/stratalog/perf/load"
)

// mostPossible is more than any figure can be: microseconds of 30 years, or a
// million billion records a second.
const mostPossible = 1e15

// slack is by how much percentiles may seem to fall: histograms round.
const slack = 2e-3

// possible returns an error that names the first field of a run whose number
// cannot be. A percentile of 0 was not told, and is below any other.
func possible(r *load.Run) error {
	var c checks
	for i := range r.Ops {
		o, at := &r.Ops[i], fmt.Sprintf("ops[%d].", i)
		c.figures(at, amount{"rate", o.Rate}, amount{"count", float64(o.Count)}, amount{"unsent", float64(o.Unsent)},
			amount{"records", float64(o.Records)}, amount{"seconds", o.Seconds}, amount{"records_per_s", o.RecordsPerSec}, amount{"mb_per_s", o.MBPerSec})
		c.counts(at, amount{"bytes", float64(o.Bytes)})
		c.latency(at+"latency_us.", &o.Latency)
		if o.Service != nil {
			c.latency(at+"service_us.", o.Service)
		}
		if o.WakeUp != nil {
			c.latency(at+"wakeup_us.", o.WakeUp)
		}
		for j, p := range o.Series {
			at := fmt.Sprintf("%sseries[%d].", at, j)
			c.figures(at, amount{"s", p.Seconds}, amount{"records_per_s", p.RecordsPerSec})
			c.rising(at, amount{"p50_us", p.P50}, amount{"p99_us", p.P99}, amount{"max_us", p.Max})
		}
	}
	v, u := &r.Verified, &r.Usage
	c.counts("verified.", amount{"records", float64(v.Records)}, amount{"retired", float64(v.Retired)}, amount{"missing", float64(v.Missing)},
		amount{"wrong", float64(v.Wrong)}, amount{"seconds", v.Seconds})
	c.figures("usage.", amount{"seconds", u.Seconds}, amount{"user_cpu_s", u.UserCPU}, amount{"system_cpu_s", u.SystemCPU},
		amount{"allocs_per_record", u.AllocsPerRecord}, amount{"write_calls_per_record", u.WriteCallsPerRecord},
		amount{"disk_bytes_per_payload_byte", u.DiskBytesPerPayload})
	c.counts("usage.", amount{"peak_rss_bytes", float64(u.PeakRSS)}, amount{"context_switches", float64(u.Switches)},
		amount{"read_calls", float64(u.ReadCalls)}, amount{"write_calls", float64(u.WriteCalls)},
		amount{"disk_read_bytes", float64(u.DiskReadBytes)}, amount{"disk_write_bytes", float64(u.DiskWriteBytes)})
	if l := r.Log; l != nil {
		c.counts("log.", amount{"syncs", float64(l.Syncs)}, amount{"commits", float64(l.Commits)}, amount{"writes", float64(l.Writes)})
		c.figures("log.", amount{"records_per_sync", l.RecordsPerSync}, amount{"bytes_per_payload_byte", l.BytesPerPayload})
	}
	if r.Lag != nil {
		c.figures("lag.", amount{"seconds", r.Lag.Seconds})
	}
	return c.err
}

// amount is a field and what it holds.
type amount struct {
	name  string
	value float64
}

// checks keeps the first error.
type checks struct{ err error }

func (c *checks) fail(at string, n amount, why string) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s%s is %g%s", ErrImpossible, at, n.name, n.value, why)
	}
}

// counts are not negative.
func (c *checks) counts(at string, list ...amount) {
	for _, n := range list {
		if n.value < 0 {
			c.fail(at, n, "")
		}
	}
}

// figures are neither negative nor beyond all measure.
func (c *checks) figures(at string, list ...amount) {
	c.counts(at, list...)
	for _, n := range list {
		if n.value > mostPossible || math.IsNaN(n.value) {
			c.fail(at, n, "")
		}
	}
}

// rising are figures none of which is below one before it, but for those that
// are 0.
func (c *checks) rising(at string, list ...amount) {
	c.figures(at, list...)
	before := amount{}
	for _, n := range list {
		if n.value == 0 {
			continue
		}
		if n.value < before.value*(1-slack) {
			c.fail(at, n, fmt.Sprintf(", below %s, %g", before.name, before.value))
		}
		before = n
	}
}

func (c *checks) latency(at string, l *load.Latency) {
	c.counts(at, amount{"count", float64(l.Count)})
	c.figures(at, amount{"mean", l.Mean})
	c.rising(at, amount{"min", l.Min}, amount{"p50", l.P50}, amount{"p90", l.P90}, amount{"p99", l.P99}, amount{"p999", l.P999},
		amount{"p9999", l.P9999}, amount{"max", l.Max})
	before := load.Quantile{}
	for i, q := range l.Curve {
		at := fmt.Sprintf("%scurve[%d].", at, i)
		c.figures(at, amount{"us", q.Us}, amount{"q", q.Q})
		switch {
		case q.Q > 100:
			c.fail(at, amount{"q", q.Q}, "")
		case q.Q < before.Q:
			c.fail(at, amount{"q", q.Q}, fmt.Sprintf(", below the one before it, %g", before.Q))
		case q.Us < before.Us*(1-slack):
			c.fail(at, amount{"us", q.Us}, fmt.Sprintf(", below the one before it, %g", before.Us))
		}
		before = q
	}
}
