package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"

	"github.com/spf13/cobra"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/perf"
)

func newBench(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a store; everything that is measured is also checked",
		Args:  atMost(0),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchAppend(a), newBenchGet(a))
	return cmd
}

// result is what a run of perf returns.
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

// autoWarmup stands for a tenth of the records, at most 10,000.
const autoWarmup = -1

func newBenchAppend(a *app) *cobra.Command {
	cfg := perf.AppendConfig{}
	size, segment, floor := sizeFlag(1<<10), sizeFlag(0), newDiskFloor()
	durability, path := newDurability(stratalog.Sync), newWritePath()
	cmd := &cobra.Command{
		Use:   "append --dir DIR",
		Short: "Append in a closed loop, read all back, compare every body",
		Long: `Append measures appends, then reads all back and compares every body. If it is
interrupted it prints what was measured until then, marked as interrupted, and
ends with 2; the messages stay in the store.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Dir, cfg.Size, cfg.SegmentSize = a.dir, int(size), int64(segment)
			cfg.Durability, cfg.WritePath, cfg.DiskFloor = durability.value, path.value, diskFloor(floor)
			cfg.Opened = a.opened
			if cfg.Warmup == autoWarmup {
				cfg.Warmup = min(cfg.Records/10, 10_000)
			}
			if cfg.Seed == 0 {
				cfg.Seed = rand.Uint64()
			}
			return a.benchAppend(cmd.Context(), cfg)
		},
	}
	f := cmd.Flags()
	f.Int64Var(&cfg.Records, "records", 100_000, "how many messages to append and measure")
	f.Int64Var(&cfg.Warmup, "warmup", autoWarmup, "how many to append before (-1: a tenth, at most 10000)")
	f.Var(&size, "size", "length of a body")
	f.IntVar(&cfg.Producers, "producers", 1, "how many goroutines append")
	f.IntVar(&cfg.Async, "async", 0, "messages on their way per producer (0: wait for each)")
	f.IntVar(&cfg.Topics, "topics", 1, "how many topics")
	f.IntVar(&cfg.Queues, "queues", 1, "how many queues each topic has")
	f.Var(durability, "durability", "what to wait for")
	f.Var(path, "write-path", "how bytes get into the page cache")
	f.Var(&segment, "segment-size", segmentHelp)
	f.Var(&floor, "disk-floor", floorHelp)
	f.Uint64Var(&cfg.Seed, "seed", 0, "seed of the bodies (0: a random one, printed)")
	return cmd
}

func (a *app) benchAppend(ctx context.Context, cfg perf.AppendConfig) error {
	if err := a.needDir(); err != nil {
		return err
	}
	if err := cfg.Validate(); err != nil {
		return usage("%v", err)
	}
	if err := checkSegmentSize(cfg.SegmentSize); err != nil {
		return err
	}
	bar := newProgress(a.errOut)
	res, err := perf.RunAppend(ctx, cfg, bar.tell)
	bar.end()
	if res == nil {
		return err
	}
	return errors.Join(err, a.report(res)) // both if it was interrupted
}

func newBenchGet(a *app) *cobra.Command {
	cfg := perf.GetConfig{}
	var sequential bool
	cmd := &cobra.Command{
		Use:   "get --dir DIR",
		Short: "Read an existing store at random places or in order",
		Long: `Get reads with verified checksums, without the store's lock. With --body-seed, the
seed that bench append printed, every body is compared as well. If it is
interrupted it prints what was measured until then, and ends with 2.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Dir = a.dir
			if cfg.Seed == 0 {
				cfg.Seed = rand.Uint64()
			}
			return a.benchGet(cmd.Context(), cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Topic, "topic", "", "read only this topic")
	f.Int64Var(&cfg.Count, "count", 100_000, "how many records to read")
	f.BoolVar(&cfg.Random, "random", false, "read at random places")
	f.BoolVar(&sequential, "sequential", false, "read every queue from its start (the default)")
	f.IntVar(&cfg.Batch, "batch", 1, "how many records each get asks for")
	f.Uint64Var(&cfg.Seed, "seed", 0, "seed of the places (0: a random one, printed)")
	f.Uint64Var(&cfg.BodySeed, "body-seed", 0, "compare bodies with those of this seed (0: do not)")
	f.BoolVar(&cfg.NoVerifyReads, "no-checksum", false, "do not verify checksums, to see what they cost")
	cmd.MarkFlagsMutuallyExclusive("random", "sequential")
	return cmd
}

func (a *app) benchGet(ctx context.Context, cfg perf.GetConfig) error {
	if err := cfg.Validate(); err != nil {
		return usage("%v", err)
	}
	r, err := a.openReader(ctx, stratalog.ReaderOptions{}) // is there a store?
	if err != nil {
		return err
	}
	if err := r.Close(); err != nil {
		return err
	}
	bar := newProgress(a.errOut)
	res, err := perf.RunGet(ctx, cfg, bar.tell)
	bar.end()
	if res == nil {
		return err
	}
	return errors.Join(err, a.report(res)) // both if it was interrupted
}
