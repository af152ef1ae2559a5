// Command peersjava measures the store beside the Java store that it shares its
// files with, in one interleaved run, at equal promises: sync acks after a sync
// that covers the record, async acks from the page cache. Both put the checksum
// over the whole record, both feed their queues, and both read back through the
// queues and compare every byte.
//
// Ours is the load generator of package perf, which stratalog bench runs; theirs
// is a closed loop of the driver in tools/conformance. Results are load.Run.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/conformance/javapeer"
	"github.com/stratalog/stratalog/perf"
	"github.com/stratalog/stratalog/perf/load"
)

// cell is what is measured on both sides.
type cell struct {
	Mode      string // sync or async
	Producers int
	Size      int
}

// plan is what the flags say.
type plan struct {
	version  string
	root     string
	dir      string
	rounds   int
	duration time.Duration
	warmup   time.Duration
	queues   int
	segment  int64
	cells    []cell
	asJSON   bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p, err := parse(os.Args[1:])
	if err == nil {
		err = p.run(ctx, os.Stdout)
	}
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peersjava:", err)
		os.Exit(2)
	}
}

func parse(args []string) (*plan, error) {
	p := &plan{}
	f := flag.NewFlagSet("peersjava", flag.ContinueOnError)
	f.StringVar(&p.version, "version", javapeer.Versions[0], "of rocketmq-store")
	f.StringVar(&p.root, "root", ".", "the module's directory, below which the driver was built")
	f.StringVar(&p.dir, "dir", "", "directory on the disk to measure (default: a temporary one)")
	f.IntVar(&p.rounds, "rounds", 3, "interleaved rounds of each side")
	f.DurationVar(&p.duration, "duration", 2*time.Second, "length of one cell")
	f.DurationVar(&p.warmup, "warmup", time.Second, "the same load before, unmeasured")
	f.IntVar(&p.queues, "queues", 8, "queues of the one topic")
	f.Int64Var(&p.segment, "segment-size", 256<<20, "bytes of a log file")
	modes := f.String("modes", "sync,async", "what an ack means")
	producers := f.String("producers", "16", "closed-loop producers, comma-separated")
	sizes := f.String("sizes", "128,1024,4096", "body sizes in bytes, comma-separated")
	f.BoolVar(&p.asJSON, "json", false, "print every run as one JSON object per line, and nothing else")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	for mode := range strings.SplitSeq(*modes, ",") {
		if mode != "sync" && mode != "async" {
			return nil, fmt.Errorf("-modes: %q is neither sync nor async", mode)
		}
		for n := range strings.SplitSeq(*producers, ",") {
			for size := range strings.SplitSeq(*sizes, ",") {
				c := cell{Mode: mode}
				var err1, err2 error
				c.Producers, err1 = strconv.Atoi(n)
				c.Size, err2 = strconv.Atoi(size)
				if err := errors.Join(err1, err2); err != nil || c.Producers < 1 || c.Size < 8 {
					return nil, fmt.Errorf("-producers %s, -sizes %s: at least 1, and 8 bytes: %w", n, size, err)
				}
				p.cells = append(p.cells, c)
			}
		}
	}
	return p, nil
}

// run measures both sides in turn, round by round, and prints.
func (p *plan) run(ctx context.Context, out io.Writer) error {
	base, err := os.MkdirTemp(p.dir, "peersjava-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(base)
	scratch := base + "/peer"
	if err := os.Mkdir(scratch, 0o700); err != nil {
		return err
	}
	// One process for all: its code is compiled when the measuring begins.
	java, err := javapeer.Start(ctx, p.root, p.version, scratch, "-Xms1g", "-Xmx1g", "-XX:MaxDirectMemorySize=512m", "-XX:-UsePerfData")
	if err != nil {
		return err
	}
	defer java.Close()
	sides := []func(dir string, c cell) (*load.Run, error){
		func(dir string, c cell) (*load.Run, error) { return p.ours(ctx, dir, c) },
		func(dir string, c cell) (*load.Run, error) { return p.theirs(ctx, java, dir, c) },
	}
	if !p.asJSON {
		fmt.Fprintf(out, "appends in a closed loop, %d queues, %d rounds of %v, medians (records/s, latency in us)\n", p.queues, p.rounds, p.duration)
		fmt.Fprintf(out, "%-6s %9s %6s %-22s %10s %8s %8s %9s %12s\n", "acks", "producers", "body", "engine", "rec/s", "p50", "p99", "max", "ours/theirs")
	}
	for _, c := range p.cells {
		runs := [2][]*load.Run{}
		for round := range p.rounds {
			for i := range sides {
				side := (i + round) % 2
				dir := fmt.Sprintf("%s/%s-%d-%d-%d-%d", base, c.Mode, c.Producers, c.Size, round, side)
				r, err := sides[side](dir, c)
				if err == nil {
					err = r.Err()
				}
				if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
					return fmt.Errorf("%s, %d producers, %d bytes: %w", c.Mode, c.Producers, c.Size, err)
				}
				runs[side] = append(runs[side], r)
				if p.asJSON {
					if err := json.NewEncoder(out).Encode(r); err != nil {
						return err
					}
				}
			}
		}
		if !p.asJSON {
			c.print(out, runs)
		}
	}
	return nil
}

// print prints medians, and the median of the ratios of each round.
func (c cell) print(out io.Writer, runs [2][]*load.Run) {
	for side, all := range runs {
		median := func(of func(i int, r *load.Run) float64) float64 {
			xs := make([]float64, len(all))
			for i, r := range all {
				xs[i] = of(i, r)
			}
			slices.Sort(xs)
			return xs[len(xs)/2]
		}
		ratio := ""
		if side == 0 {
			ratio = fmt.Sprintf("%.2f", median(func(i int, r *load.Run) float64 {
				return r.Ops[0].RecordsPerSec / runs[1][i].Ops[0].RecordsPerSec
			}))
		}
		fmt.Fprintf(out, "%-6s %9d %6d %-22s %10.0f %8.0f %8.0f %9.0f %12s\n", c.Mode, c.Producers, c.Size, all[0].Engine,
			median(func(_ int, r *load.Run) float64 { return r.Ops[0].RecordsPerSec }),
			median(func(_ int, r *load.Run) float64 { return r.Ops[0].Latency.P50 }),
			median(func(_ int, r *load.Run) float64 { return r.Ops[0].Latency.P99 }),
			median(func(_ int, r *load.Run) float64 { return r.Ops[0].Latency.Max }), ratio)
	}
}

// ours runs our own load generator.
func (p *plan) ours(ctx context.Context, dir string, c cell) (*load.Run, error) {
	cfg := perf.Config{Dir: dir, Topics: 1, Queues: p.queues, SegmentSize: p.segment, Sizes: load.FixedSize(c.Size), Durability: stratalog.Sync,
		Load: load.Spec{Producers: c.Producers, Duration: p.duration, WarmupDuration: p.warmup, Seed: 1}}
	if c.Mode == "async" {
		cfg.Durability = stratalog.Memory
	}
	return perf.RunAppend(ctx, cfg)
}

// theirs runs Java's.
func (p *plan) theirs(ctx context.Context, java *javapeer.Process, dir string, c cell) (*load.Run, error) {
	flush := map[string]string{"sync": "SYNC_FLUSH", "async": "ASYNC_FLUSH"}[c.Mode]
	run := &load.Run{Schema: load.Schema, Engine: "rocketmq-store " + p.version, Workload: "append", Started: time.Now(),
		Promise: map[string]string{
			"sync":  "sync: on the disk when acknowledged (SYNC_FLUSH, group commit)",
			"async": "async: in the page cache when acknowledged; at most 500 ms, or less than 4 dirty pages, lost in a power cut",
		}[c.Mode],
		Env: load.Environment(p.dir), Seed: 1,
		Config: []load.Param{
			{Name: "producers", Value: fmt.Sprint(c.Producers)}, {Name: "arrivals", Value: "closed loop"},
			{Name: "bodies", Value: fmt.Sprint(c.Size)}, {Name: "topics", Value: "1"}, {Name: "queues", Value: fmt.Sprint(p.queues)},
			{Name: "durability", Value: c.Mode}, {Name: "segment size", Value: fmt.Sprint(p.segment)}, {Name: "duration", Value: p.duration.String()},
			{Name: "enabledAppendPropCRC", Value: "true"}, {Name: "messageIndexEnable", Value: "false"},
		},
		Notes: []string{"usage is not measured: the process is Java's, and serves all rounds"},
	}
	var out struct {
		Count         int64     `json:"count"`
		Acked         int64     `json:"acked"`
		Seconds       float64   `json:"seconds"`
		Mean          float64   `json:"mean"`
		Min           float64   `json:"min"`
		Max           float64   `json:"max"`
		Quantiles     []float64 `json:"quantiles"`
		LagBytes      int64     `json:"lagBytes"`
		LagSeconds    float64   `json:"lagSeconds"`
		Verified      int64     `json:"verified"`
		Wrong         int64     `json:"wrong"`
		VerifySeconds float64   `json:"verifySeconds"`
	}
	err := java.Call(ctx, "bench", map[string]any{
		"dir": dir, "threads": c.Producers, "size": c.Size, "queues": p.queues, "warmupMs": p.warmup.Milliseconds(), "ms": p.duration.Milliseconds(),
		"config": javapeer.Config{"flushDiskType": flush, "mappedFileSizeCommitLog": p.segment, "enabledAppendPropCRC": true, "messageIndexEnable": false},
	}, &out)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, java.Log())
	}
	took := time.Duration(out.Seconds * float64(time.Second))
	op := load.Op{Name: "append", Arrivals: "closed", Count: out.Count, Records: out.Count, Bytes: out.Count * int64(c.Size),
		Seconds: out.Seconds, RecordsPerSec: load.Rate(float64(out.Count), took), MBPerSec: load.Rate(float64(out.Count*int64(c.Size))/1e6, took),
		Latency: load.Latency{Count: out.Count, Mean: out.Mean, Min: out.Min, Max: out.Max}}
	if q := out.Quantiles; len(q) == 5 {
		l := &op.Latency
		l.P50, l.P90, l.P99, l.P999, l.P9999 = q[0], q[1], q[2], q[3], q[4]
	}
	run.Ops = []load.Op{op}
	run.Lag = &load.Lag{Bytes: out.LagBytes, Seconds: out.LagSeconds}
	run.Verified = load.Verify{Records: out.Verified, Wrong: out.Wrong, Missing: max(0, out.Acked-out.Verified), Seconds: out.VerifySeconds,
		How: "read back through the queues: every byte of the body"}
	run.Verified.OK = run.Verified.Missing == 0 && out.Wrong == 0
	return run, nil
}
