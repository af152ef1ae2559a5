// Package sample makes runs and histories that look like real ones, for tests of
// what reports on them and for trying a report out. The same seed gives the same
// runs.
package sample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/stratalog/stratalog/perf/load"
	"github.com/stratalog/stratalog/perf/report"
)

// Maker makes runs out of a seed.
type Maker struct {
	r     *rand.Rand
	clock time.Time
}

// New returns a maker.
func New(seed uint64) *Maker {
	return &Maker{rand.New(rand.NewPCG(seed, 1)), time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC)}
}

// Shape says what a run is to look like.
type Shape struct {
	Engine, Workload string
	Producers, Size  int
	// Rate is about how many records a second are answered; Offered, if not 0,
	// what an open loop asks for.
	Rate, Offered float64
	// Median is the usual latency in microseconds; the tail follows from it.
	Median float64
	// Seconds is how long the run is.
	Seconds int
	// Commit is that of the program.
	Commit string
	Config []load.Param
}

// Env is the machine of all samples.
func Env(commit string) load.Env {
	return load.Env{CPU: "AMD EPYC 7B13", Cores: 2, GOMAXPROCS: 2, Memory: 25276510208, Kernel: "6.1.0-31-amd64",
		FileSystem: "ext4 rw,relatime,data=ordered", Go: "go1.26.8", Arch: "linux/amd64", Commit: commit, Version: "0.4.0"}
}

func (m *Maker) about(f, spread float64) float64 { return f * math.Exp(m.r.NormFloat64()*spread) }

// Run makes a run that was verified.
func (m *Maker) Run(s Shape) load.Run {
	rate := m.about(s.Rate, 0.04)
	if s.Offered > 0 {
		rate = min(rate, s.Offered)
	}
	records := int64(rate * float64(s.Seconds))
	bodies := records * int64(s.Size)
	run := load.Run{Schema: load.Schema, Engine: s.Engine, Workload: s.Workload, Started: m.clock,
		Promise: "an answer means that a successful sync covers the bytes", Env: Env(s.Commit), Seed: m.r.Uint64(),
		Config: append([]load.Param{{Name: "producers", Value: fmt.Sprint(s.Producers)}, {Name: "size", Value: fmt.Sprintf("%dB", s.Size)},
			{Name: "durability", Value: "sync"}}, s.Config...)}
	m.clock = m.clock.Add(time.Duration(s.Seconds+7) * time.Second)
	op := load.Op{Name: "append", Arrivals: "closed", Count: records, Records: records, Bytes: bodies, Seconds: float64(s.Seconds),
		RecordsPerSec: rate, MBPerSec: rate * float64(s.Size) / 1e6, Latency: m.latency(records, s.Median)}
	if s.Offered > 0 {
		service := m.latency(records, s.Median*0.7)
		op.Arrivals, op.Rate, op.Service = "random", s.Offered, &service
	}
	for i := 1; i <= s.Seconds; i++ {
		p99 := m.about(op.Latency.P99, 0.15)
		op.Series = append(op.Series, load.Point{Seconds: float64(i), RecordsPerSec: m.about(rate, 0.05), P50: m.about(op.Latency.P50, 0.03),
			P99: p99, Max: p99 * (2 + m.r.ExpFloat64()*3)})
	}
	run.Ops = []load.Op{op}
	syncs := max(records/int64(max(s.Producers*7/10, 1)), 1)
	run.Log = &load.LogCounts{Syncs: syncs, Commits: syncs, Writes: syncs, Rolls: bodies >> 30, Bytes: bodies + records*120,
		Calls: map[string]int64{"write": syncs, "fdatasync": syncs}, RecordsPerSync: float64(records) / float64(syncs),
		CallsPerRecord: 2 * float64(syncs) / float64(records), BytesPerPayload: 1 + 120/float64(s.Size)}
	cpu := float64(s.Seconds) * m.about(0.8, 0.1)
	run.Usage = load.Usage{Seconds: float64(s.Seconds), UserCPU: cpu * 0.6, SystemCPU: cpu * 0.4, PeakRSS: 180 << 20, MinorFault: 40_000,
		Switches: syncs * 4, ReadCalls: 120, WriteCalls: syncs, DiskWriteBytes: bodies * 5 / 4, Allocs: uint64(records * 2), AllocBytes: uint64(bodies),
		GCs: 14, AllocsPerRecord: m.about(2, 0.02), WriteCallsPerRecord: float64(syncs) / float64(records), DiskBytesPerPayload: m.about(1.25, 0.01)}
	run.Lag = &load.Lag{Bytes: 81920, Seconds: 0.003}
	run.Verified = load.Verify{OK: true, Records: records, Seconds: 2.4, How: "every body, byte by byte, through its queue"}
	run.Notes = []string{"producers slept on timers of the runtime"}
	return run
}

// latency is a distribution with a tail.
func (m *Maker) latency(count int64, median float64) load.Latency {
	tail := m.about(1, 0.15)
	at := func(q float64) float64 { // q of 1
		nines := -math.Log10(1 - q)
		return math.Round(1000*median*(0.55+0.45*math.Min(nines/0.3, 1)+tail*math.Pow(math.Max(nines-0.3, 0), 2.1))) / 1000
	}
	l := load.Latency{Count: count, Mean: median * 1.2, Min: at(0), P50: at(0.5), P90: at(0.9), P99: at(0.99), P999: at(0.999), P9999: at(0.9999)}
	l.Curve = []load.Quantile{{Q: 0, Us: l.Min}}
	last := math.Log10(float64(count))
	for step := 1; float64(step)/10 < last; step++ {
		q := 1 - math.Pow(10, -float64(step)/10)
		l.Curve = append(l.Curve, load.Quantile{Q: math.Round(q*1e8) / 1e6, Us: at(q)})
	}
	l.Max = math.Ceil(max(at(1-1/float64(count)), l.P9999) * 1.3)
	l.Curve = append(l.Curve, load.Quantile{Q: 100, Us: l.Max})
	return l
}

// Peers makes a comparison of three engines under four loads, some rounds of
// each, one of the runs found wrong and one interrupted.
func (m *Maker) Peers(rounds int) []load.Run {
	var runs []load.Run
	for range rounds {
		for _, producers := range []int{1, 16, 64, 256} {
			for i, engine := range []string{"stratalog", "pebble-record", "badger"} {
				slow := []float64{1, 0.86, 0.41}[i]
				rate := 9000 * math.Pow(float64(producers), 0.72) * slow
				runs = append(runs, m.Run(Shape{Engine: engine, Workload: "durable append", Producers: producers, Size: 1024, Rate: rate,
					Median: float64(producers) / rate * 1e6, Seconds: 12, Commit: "4c2a815d3f6b7e90a1b2c3d4e5f60718293a4b5c"}))
			}
		}
	}
	bad := &runs[len(runs)-1]
	bad.Verified = load.Verify{Records: bad.Ops[0].Records - 3, Missing: 2, Wrong: 1, First: "message 81123: checksum of the body differs", How: bad.Verified.How}
	cut := &runs[len(runs)-5]
	cut.Interrupted, cut.Verified = true, load.Verify{How: "nothing, the run was interrupted"}
	return runs
}

// Loads makes runs of one engine under n loads, at a rate that is asked for.
func (m *Maker) Loads(n int) []load.Run {
	var runs []load.Run
	for i := range n {
		offered := 2000 * math.Pow(1.5, float64(i))
		run := m.Run(Shape{Engine: "stratalog", Workload: "open loop", Producers: 16, Size: 512, Rate: 90_000, Offered: offered,
			Median: 240 * math.Pow(1.25, float64(i)), Seconds: 30, Commit: "4c2a815d3f6b7e90a1b2c3d4e5f60718293a4b5c",
			Config: []load.Param{{Name: "rate", Value: fmt.Sprintf("%.0f/s", offered)}, {Name: "arrivals", Value: "random"}}})
		tail := run.Ops[0]
		tail.Name, tail.Service, tail.Latency = "tail", nil, m.latency(tail.Records, 900)
		run.Ops = append(run.Ops, tail)
		runs = append(runs, run)
	}
	return runs
}

// Restart makes a run with many operations of few samples each.
func (m *Maker) Restart() load.Run {
	run := m.Run(Shape{Engine: "stratalog", Workload: "restart", Producers: 1, Size: 1024, Rate: 1000, Median: 100, Seconds: 2})
	run.Config, run.Ops = []load.Param{{Name: "bodies", Value: "1024"}, {Name: "rounds", Value: "5"}}, nil
	for _, size := range []string{"64 MiB", "256 MiB"} {
		for _, how := range []string{"closed", "killed"} {
			for _, what := range []string{"to open", "to append"} {
				us := m.about(9000, 0.5)
				run.Ops = append(run.Ops, load.Op{Name: size + " " + how + ": " + what, Count: 5, Latency: load.Latency{Count: 5, Mean: us, Min: us * 0.8,
					P50: us, P90: us * 1.4, P99: us * 1.4, P999: us * 1.4, P9999: us * 1.4, Max: us * 1.4}})
			}
		}
	}
	return run
}

// Extreme makes a run with every number at an end of what is possible or beyond,
// and with texts that a page must not obey.
func (m *Maker) Extreme() load.Run {
	run := m.Run(Shape{Engine: `<script>alert(1)</script>`, Workload: `"><img src=x onerror=alert(2)>`, Producers: 1, Size: 1, Rate: 10, Median: 1, Seconds: 3})
	run.Promise = "</script><script>alert(3)</script>\u2028\u202e"
	run.Config = append(run.Config, load.Param{Name: "a parameter with a very long name that goes on and on", Value: "averylongvaluewithoutanyplacetobreakitatallwhichgoesonandonandon"})
	run.Env.CPU = "--><style>*{display:none}</style>"
	op := &run.Ops[0]
	op.RecordsPerSec, op.MBPerSec, op.Records = 1e308, -1, -5
	op.Latency = load.Latency{Count: math.MaxInt64, Mean: -1, Min: -1e300, P50: 0, P90: 1e-300, P99: 1e300, P999: math.MaxFloat64, P9999: 5, Max: -7,
		Curve: []load.Quantile{{Q: -5, Us: 1}, {Q: 200, Us: 2}, {Q: 50, Us: -1}, {Q: 0, Us: 1e300}, {Q: 99.9, Us: 12}, {Q: 99, Us: 11}}}
	op.Series = []load.Point{{Seconds: -1}, {Seconds: 1e300, RecordsPerSec: 5}, {Seconds: 0}, {Seconds: 2, RecordsPerSec: 1e300, P99: -4, Max: 0}, {Seconds: 1, RecordsPerSec: 4}}
	run.Usage.DiskBytesPerPayload, run.Usage.AllocsPerRecord, run.Usage.UserCPU = math.MaxFloat64, -1, 1e308
	run.Notes = []string{"<b>note</b>"}
	return run
}

// Fewest makes the smallest run there can be.
func Fewest() load.Run {
	return load.Run{Schema: load.Schema, Engine: "nothing", Workload: "empty", Verified: load.Verify{OK: true}}
}

// History makes accepted baselines.
func (m *Maker) History(lines, benchmarks int) []report.Baseline {
	var list []report.Baseline
	values := make([]float64, benchmarks)
	for b := range values {
		values[b] = m.about(400e-9*math.Pow(3, float64(b%7)), 0.4)
	}
	if lines == 0 {
		return nil
	}
	base := fmt.Sprintf("%040x", m.r.Uint64())
	for i := range lines {
		line := report.Baseline{Commit: fmt.Sprintf("%016x%024x", m.r.Uint64(), i), Base: base, Date: m.clock.AddDate(0, 0, 3*i),
			Go: "go1.26." + fmt.Sprint(i/6), CPU: "AMD EPYC 7B13", Kernel: "6.1.0-31-amd64"}
		base = line.Commit
		for b := range values {
			ratio := m.about(1, 0.015)
			if m.r.IntN(12) == 0 {
				ratio *= 0.8
			}
			old := values[b]
			values[b] *= ratio
			name := fmt.Sprintf("commitlog.BenchmarkAppend/size=%d/producers=%d", 64<<(b%5), 1<<(b/5))
			line.Benchmarks = append(line.Benchmarks, report.BaselineResult{Benchmark: name, Unit: "sec/op", Base: old, Head: values[b], Ratio: new(ratio)})
			if b%3 == 0 {
				line.Benchmarks = append(line.Benchmarks, report.BaselineResult{Benchmark: name, Unit: "allocs/op", Base: 2, Head: 2, Ratio: new(1.0)})
			}
		}
		list = append(list, line)
	}
	return list
}
