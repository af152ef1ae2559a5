package main

import (
	"context"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stratalog/stratalog/perf"
	"github.com/stratalog/stratalog/perf/load"
)

func newBenchRestart(a *app) *cobra.Command {
	var cfg perf.RestartConfig
	var child bool
	var logs string
	size, segment, floor := sizeFlag(1<<10), sizeFlag(64<<20), newDiskFloor()
	cmd := &cobra.Command{
		Use:   "restart",
		Short: "How long opening takes, after a clean stop and after a kill, by log size",
		Long: `Restart fills a store from a process of its own, which then ends well or is killed
in the midst of its appends, opens it, and appends a message; with the files in the
page cache, and with the system asked to forget them. At the end all is read back.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if child {
				return perf.RunRestartChild(cmd.Context(), a.in, a.out)
			}
			cfg.Size, cfg.SegmentSize, cfg.DiskFloor = int(size), int64(segment), diskFloor(floor)
			if cfg.Seed == 0 {
				cfg.Seed = newSeed()
			}
			cfg.LogSizes = nil
			for text := range strings.SplitSeq(logs, ",") {
				n, err := parseSize(strings.TrimSpace(text))
				if err != nil {
					return usage("--log-size: %v", err)
				}
				cfg.LogSizes = append(cfg.LogSizes, n)
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			cfg.Child = func(ctx context.Context) *exec.Cmd {
				return exec.CommandContext(ctx, self, "bench", "restart", "--child")
			}
			if err := cfg.Validate(); err != nil {
				return usage("%v", err)
			}
			if err := checkSegmentSize(cfg.SegmentSize); err != nil {
				return err
			}
			return a.bench(func(dir string, progress load.Progress) (*load.Run, error) {
				cfg.Dir, cfg.Progress = dir, progress
				return perf.RunRestart(cmd.Context(), cfg)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&logs, "log-size", "64MiB,256MiB", "lengths of the logs, with commas between")
	f.IntVar(&cfg.Rounds, "rounds", 5, "how often each is opened")
	f.Var(&size, "size", "length of a body")
	addSegment(f, &segment)
	f.Var(&floor, "disk-floor", floorHelp)
	f.Uint64Var(&cfg.Seed, "seed", 0, "seed of the bodies (0: a random one, printed)")
	f.BoolVar(&child, "child", false, "be the process that fills the store")
	_ = f.MarkHidden("child")
	return cmd
}
