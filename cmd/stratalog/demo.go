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
	segment, durability := sizeFlag(64<<20), newDurability(stratalog.Sync)
	cmd := &cobra.Command{
		Use:    "demo --source DIR",
		Short:  "Append the files of a directory, read all back, compare each with its file",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.SegmentSize, cfg.Durability = int64(segment), durability.value
			return a.demo(cmd.Context(), cfg)
		},
	}
	cmd.Flags().StringVar(&cfg.Source, "source", "", "directory whose files are appended")
	cmd.Flags().Var(&segment, "segment-size", "length of a log file")
	cmd.Flags().Var(durability, "durability", "what to wait for")
	return cmd
}

// demo works in a temporary directory if --dir was not given.
func (a *app) demo(ctx context.Context, cfg perf.CorpusConfig) (err error) {
	if cfg.Source == "" {
		return usage("--source is missing")
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
	return a.report(res)
}
