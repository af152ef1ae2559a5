package main

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stratalog/stratalog/perf"
	"github.com/stratalog/stratalog/perf/load"
	"github.com/stratalog/stratalog/perf/omb"
)

// tailFlags are the flags of followers.
func tailFlags(f *pflag.FlagSet, cfg *perf.TailConfig) {
	f.IntVar(&cfg.Followers, "followers", 1, "how many readers follow; each reads and checks every message")
	f.IntVar(&cfg.Batch, "batch", 32, "how many records each get of a follower asks for")
}

func newBenchTail(a *app) *cobra.Command {
	var flags *loadFlags
	var cfg perf.TailConfig
	var workload string
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Append with followers behind; how long each message is under way",
		Long: `Tail appends while followers read, check and wait at the end. Its "tail" latency
runs from when a message was due until a follower had it, its checksum checked. At
the end the store is opened again, and all is read back.

--workload takes a workload file of the OpenMessaging Benchmark: topics,
partitions, sizes, producers, consumers, rate and durations come from it; a flag
that is given stands before the file.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			changed, notes := cmd.Flags().Changed, []string(nil)
			if workload != "" {
				w, err := omb.Read(workload)
				if err != nil {
					return usage("%v", err)
				}
				if changed, notes, err = applyWorkload(w, flags, &cfg, changed); err != nil {
					return err
				}
			}
			base, err := flags.config(a, changed)
			if err != nil {
				return err
			}
			cfg.Config = base
			if err := cfg.Validate(); err != nil {
				return usage("%v", err)
			}
			return a.bench(func(dir string, progress load.Progress) (*load.Run, error) {
				cfg.Dir, cfg.Load.Progress = dir, progress
				run, err := perf.RunTail(cmd.Context(), cfg)
				if run != nil {
					run.Notes = append(run.Notes, notes...)
				}
				return run, err
			})
		},
	}
	flags = newLoadFlags(cmd.Flags(), 0, 10*time.Second)
	tailFlags(cmd.Flags(), &cfg)
	cmd.Flags().StringVar(&workload, "workload", "", "a workload file of the OpenMessaging Benchmark")
	return cmd
}

func newBenchMixed(a *app) *cobra.Command {
	var flags *loadFlags
	var cfg perf.MixedConfig
	keep, scan := sizeFlag(256<<20), sizeFlag(256<<20)
	cmd := &cobra.Command{
		Use:   "mixed",
		Short: "Append, follow, scan the past with a cold cache, and retire it, all at once",
		Long: `Mixed first appends a backlog and opens the store again, with the system asked to
forget what it caches of it. Then it appends, with followers at the tail, while one
reader scans everything from the start over and over, and retention removes the
oldest segments. At the end the store is opened again, and what is left of it read
back; what retention took before anybody had read it is counted as retired.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			base, err := flags.config(a, cmd.Flags().Changed)
			if err != nil {
				return err
			}
			cfg.Config, cfg.Keep, cfg.ScanRate = base, int64(keep), int64(scan)
			if err := cfg.Validate(); err != nil {
				return usage("%v", err)
			}
			return a.bench(func(dir string, progress load.Progress) (*load.Run, error) {
				cfg.Dir, cfg.Load.Progress = dir, progress
				return perf.RunMixed(cmd.Context(), cfg)
			})
		},
	}
	flags = newLoadFlags(cmd.Flags(), 0, 10*time.Second)
	flags.segment = 64 << 20
	cmd.Flags().Lookup("segment-size").DefValue = formatSize(64 << 20)
	tailFlags(cmd.Flags(), &cfg.TailConfig)
	cmd.Flags().Int64Var(&cfg.Backlog, "backlog", 200_000, "how many messages are there before")
	cmd.Flags().Var(&scan, "scan-rate", "how much of bodies the scan reads in a second (0: as much as it can, which takes a core)")
	cmd.Flags().Var(&keep, "keep", "how much of the log retention leaves (0: all)")
	return cmd
}
