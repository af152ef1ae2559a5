package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/commitlog"
	"github.com/stratalog/stratalog/perf"
	"github.com/stratalog/stratalog/perf/load"
)

func newBench(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a store; everything that is measured is also checked",
		Long: `Bench offers load to a store and measures what it does with it. All that was
acknowledged is read back and compared; a run in which a byte is wrong or missing
ends with 1, as does one that meets damage. A run that is interrupted, or cannot go on,
prints what was measured until then, marked as interrupted, and ends with 2.

In a closed loop (no --rate) each producer waits for its answer before it goes on.
In an open loop (--rate) each message is due at a time of its own, and its latency
runs from there, so that a stall of the store is not hidden.

Without --dir a temporary directory is used, and removed. With --json each command
prints one object, which "bench report" turns into a page; docs/BENCH.md says what its
fields mean. A temporary directory may be in memory: for the speed of a disk, name one.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchAppend(a), newBenchTail(a), newBenchMixed(a), newBenchRoll(a), newBenchRestart(a), newBenchGet(a), newBenchReport(a))
	return cmd
}

// result is what a run returns.
type result interface {
	Table(w io.Writer) error
	Err() error
}

// report prints a result and returns what it found wrong.
func (a *app) report(r result) error {
	var err error
	if a.json {
		err = a.writeJSON(r)
	} else {
		err = r.Table(a.out)
	}
	return errors.Join(err, r.Err())
}

// autoWarmup stands for a tenth of the records, at most 10,000; autoAsync for 0
// in a closed loop and many in an open one.
const (
	autoWarmup = -1
	autoAsync  = -1
	openAsync  = 1024
)

// newSeed returns a random seed that survives a JSON reader whose numbers are
// floating point.
func newSeed() uint64 { return 1 + rand.Uint64N(1<<53-1) }

// loadFlags are the flags of the workloads that append.
type loadFlags struct {
	cfg        perf.Config
	size       string
	random     bool
	bodies     func(seed uint64) *load.Bodies // of a workload file; nil else
	segment    sizeFlag
	floor      sizeFlag
	durability *choice[stratalog.Durability]
	path       *choice[commitlog.WritePath]
}

// newLoadFlags adds them to f. records is how many messages there are unless a
// flag says otherwise; if it is 0, duration is how long.
func newLoadFlags(f *pflag.FlagSet, records int64, duration time.Duration) *loadFlags {
	l := &loadFlags{floor: newDiskFloor(), durability: newDurability(stratalog.Sync), path: newWritePath()}
	s := &l.cfg.Load
	f.Int64Var(&s.Records, "records", records, "how many messages to measure (--duration instead: how long)")
	f.DurationVar(&s.Duration, "duration", duration, "how long to measure")
	f.Int64Var(&s.Warmup, "warmup", autoWarmup, "how many messages come first, unmeasured (-1: a tenth of --records, at most 10000; 1000 with --duration)")
	f.DurationVar(&s.WarmupDuration, "warmup-duration", 0, "how long the same load runs before, unmeasured, instead of --warmup")
	f.StringVar(&l.size, "size", "1KiB", "length of a body: 1KiB, uniform:100-4KiB, lognormal:1KiB,0.8,64KiB (median, sigma, most), 128*70,64KiB*30")
	f.StringVar(&l.cfg.Corpus, "corpus", "", "take the files below this directory as bodies, instead of --size: those of at most 4 MiB, up to 1 GiB in all")
	f.IntVar(&s.Producers, "producers", 1, "how many goroutines append")
	f.IntVar(&s.Async, "async", autoAsync, "messages on their way per producer; 0 waits for each (-1: 0 in a closed loop, 1024 in an open one)")
	f.Float64Var(&s.Rate, "rate", 0, "messages a second of all producers together (0: closed loop)")
	f.BoolVar(&l.random, "random-arrivals", false, "with --rate: arrivals as of independent clients (Poisson) instead of even ones")
	f.IntVar(&l.cfg.Topics, "topics", 1, "how many topics")
	f.IntVar(&l.cfg.Queues, "queues", 1, "how many queues each topic has")
	f.Var(l.durability, "durability", "what to wait for")
	f.Var(l.path, "write-path", "how bytes get into the page cache")
	addSegment(f, &l.segment)
	f.Var(&l.floor, "disk-floor", floorHelp)
	f.Uint64Var(&s.Seed, "seed", 0, "seed of the bodies (0: a random one, printed)")
	return l
}

// config returns what the flags say; changed tells which were given.
func (l *loadFlags) config(a *app, changed func(string) bool) (perf.Config, error) {
	c := l.cfg
	c.Dir, c.SegmentSize, c.DiskFloor, c.Opened = a.dir, int64(l.segment), diskFloor(l.floor), a.opened
	c.Durability, c.WritePath = l.durability.value, l.path.value
	s := &c.Load
	switch {
	case changed("duration") && changed("records"):
		return c, usage("--duration and --records exclude each other")
	case changed("duration"):
		s.Records = 0
	case changed("records"):
		s.Duration = 0
	}
	if changed("corpus") && (changed("size") || l.cfg.Corpus == "") {
		return c, usage("--corpus: it takes the place of --size, and needs a directory")
	}
	if s.Rate != 0 {
		s.Arrivals = load.Fixed
		if l.random {
			s.Arrivals = load.Random
		}
	} else if l.random {
		return c, usage("--random-arrivals needs --rate")
	}
	if s.Async == autoAsync {
		if s.Async = 0; s.Arrivals != load.Closed {
			s.Async = openAsync
		}
	}
	switch {
	case changed("warmup") && changed("warmup-duration"):
		return c, usage("--warmup and --warmup-duration exclude each other")
	case changed("warmup-duration"):
		s.Warmup = 0
	case s.Warmup == autoWarmup:
		if s.Warmup = min(s.Records/10, 10_000); s.Records == 0 {
			s.Warmup = 1000
		}
	}
	if s.Seed == 0 {
		s.Seed = newSeed()
	}
	var err error
	if c.Sizes, err = load.ParseSizes(l.size, parseSize); err != nil {
		return c, usage("--size: %v", err)
	}
	if l.bodies != nil {
		c.Load.Bodies = l.bodies(s.Seed)
	}
	if err := c.Validate(); err != nil {
		return c, usage("%v", err)
	}
	return c, checkSegmentSize(c.SegmentSize)
}

// inDir calls run with the directory of --dir, or a temporary one.
func (a *app) inDir(run func(dir string) error) error {
	if a.dir != "" {
		return run(a.dir)
	}
	dir, err := os.MkdirTemp("", "stratalog-bench-")
	if err != nil {
		return err
	}
	return errors.Join(run(dir), os.RemoveAll(dir))
}

// bench runs a workload and prints what it gave: both a run and an error if it
// was interrupted.
func (a *app) bench(do func(dir string, progress load.Progress) (*load.Run, error)) error {
	return a.inDir(func(dir string) error {
		bar := newProgress(a.errOut)
		run, err := do(dir, bar.tell)
		bar.end()
		if errors.Is(err, context.Canceled) && exitCode(err) == exitFailed {
			err = context.Canceled // which call it ended does not matter
		}
		if run == nil {
			return err
		}
		return errors.Join(err, a.report(run))
	})
}

func newBenchAppend(a *app) *cobra.Command {
	var flags *loadFlags
	cmd := &cobra.Command{
		Use:   "append",
		Short: "Append, read all back, compare every body",
		Long: `Append measures appends in a closed or an open loop, opens the store again, reads
all back and compares every body. If it is interrupted it prints what was measured until then,
marked as interrupted, and ends with 2; with --dir the messages stay in the store.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := flags.config(a, cmd.Flags().Changed)
			if err != nil {
				return err
			}
			return a.bench(func(dir string, progress load.Progress) (*load.Run, error) {
				cfg.Dir, cfg.Load.Progress = dir, progress
				return perf.RunAppend(cmd.Context(), cfg)
			})
		},
	}
	flags = newLoadFlags(cmd.Flags(), 100_000, 0)
	return cmd
}

func newBenchRoll(a *app) *cobra.Command {
	var flags *loadFlags
	cmd := &cobra.Command{
		Use:   "roll",
		Short: "Append into small segments; the latency at the roll beside that elsewhere",
		Long: `Roll appends into small segments, and shows the latency of the messages that were
their producer's first in a segment beside that of all. Each producer waits for its
answer, so with --rate a message that is due behind a slow one is late by its own clock.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := flags.config(a, cmd.Flags().Changed)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("async") && cfg.Load.Async != 0 {
				return usage("--async: the producers of this workload wait for each answer")
			}
			cfg.Load.Async = 0
			return a.bench(func(dir string, progress load.Progress) (*load.Run, error) {
				cfg.Dir, cfg.Load.Progress = dir, progress
				return perf.RunRoll(cmd.Context(), cfg)
			})
		},
	}
	flags = newLoadFlags(cmd.Flags(), 100_000, 0)
	flags.segment = 4 << 20
	cmd.Flags().Lookup("segment-size").DefValue = formatSize(4 << 20)
	cmd.Flags().Lookup("async").Hidden = true
	return cmd
}

func newBenchGet(a *app) *cobra.Command {
	cfg := perf.GetConfig{}
	var sequential bool
	var size string
	cmd := &cobra.Command{
		Use:   "get --dir DIR",
		Short: "Read an existing store at random places or in order",
		Long: `Get reads with verified checksums, without the store's lock. With --body-seed, the
seed that bench append printed, and the --size that it was given, every body is
compared as well; that holds for a store that one run has written. If it is interrupted it prints what was measured until then, and
ends with 2.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("duration") && !cmd.Flags().Changed("count") {
				cfg.Count = 0
			}
			if cfg.Seed == 0 {
				cfg.Seed = newSeed()
			}
			var err error
			if cfg.Sizes, err = load.ParseSizes(size, parseSize); err != nil {
				return usage("--size: %v", err)
			}
			if err := cfg.Validate(); err != nil {
				return usage("%v", err)
			}
			return a.benchGet(cmd.Context(), cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Topic, "topic", "", "read only this topic")
	f.Int64Var(&cfg.Count, "count", 100_000, "how many records to read (--duration instead: how long)")
	f.DurationVar(&cfg.Duration, "duration", 0, "how long to read")
	f.BoolVar(&cfg.Random, "random", false, "read at random places")
	f.BoolVar(&sequential, "sequential", false, "read every queue from its start (the default)")
	f.IntVar(&cfg.Batch, "batch", 1, "how many records each get asks for")
	f.IntVar(&cfg.Readers, "readers", 1, "how many goroutines read")
	f.Uint64Var(&cfg.Seed, "seed", 0, "seed of the places (0: a random one, printed)")
	f.Uint64Var(&cfg.BodySeed, "body-seed", 0, "compare bodies with those of this seed (0: do not)")
	f.StringVar(&size, "size", "1KiB", "with --body-seed: the --size that the bodies were made with")
	f.BoolVar(&cfg.NoVerifyReads, "no-checksum", false, "do not verify checksums, to see what they cost")
	cmd.MarkFlagsMutuallyExclusive("random", "sequential")
	return cmd
}

func (a *app) benchGet(ctx context.Context, cfg perf.GetConfig) error {
	r, err := a.openReader(ctx, stratalog.ReaderOptions{}) // is there a store?
	if err != nil {
		return err
	}
	if err := r.Close(); err != nil {
		return err
	}
	return a.bench(func(dir string, progress load.Progress) (*load.Run, error) {
		cfg.Dir, cfg.Progress = dir, progress
		return perf.RunGet(ctx, cfg)
	})
}
