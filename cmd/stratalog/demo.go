package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/perf"
)

func newDemo(a *app) *cobra.Command {
	cfg := perf.CorpusConfig{}
	segment, floor, durability := sizeFlag(64<<20), newDiskFloor(), newDurability(stratalog.Sync)
	cmd := &cobra.Command{
		Use:   "demo --source DIR",
		Short: "Append the files of a directory, read all back, compare each with its file",
		Long: `Demo appends each file below the source directory as a message, as append --files
does, reads all back through the queues, and compares each with its file. Without
--dir the store is a temporary one and removed again. Files that do not fit into
a segment are left out and counted.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.SegmentSize, cfg.Durability = int64(segment), durability.value
			cfg.DiskFloor, cfg.Opened = diskFloor(floor), a.opened
			return a.demo(cmd.Context(), cfg)
		},
	}
	cmd.Flags().StringVar(&cfg.Source, "source", "", "directory whose files are appended")
	cmd.Flags().Var(&segment, "segment-size", "length of a log file, for a store that is made")
	cmd.Flags().Var(&floor, "disk-floor", floorHelp)
	cmd.Flags().Var(durability, "durability", "what to wait for")
	return cmd
}

// demo works in a temporary directory if --dir was not given.
func (a *app) demo(ctx context.Context, cfg perf.CorpusConfig) (err error) {
	if cfg.Source == "" {
		return usage("--source is missing")
	}
	if err := checkSegmentSize(cfg.SegmentSize); err != nil {
		return err
	}
	if cfg.Dir = a.dir; cfg.Dir == "" {
		if cfg.Dir, err = os.MkdirTemp("", "stratalog-demo-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(cfg.Dir)) }()
	}
	bar := newProgress(a.errOut)
	res, err := perf.RunCorpus(ctx, cfg, bar.tell)
	bar.end()
	if err != nil {
		return err
	}
	res.Dir = a.dir // what is removed again is not named
	return a.report(res)
}
