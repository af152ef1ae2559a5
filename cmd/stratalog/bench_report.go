package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/stratalog/stratalog/perf/report"
)

// reportConfig is what bench report is asked for.
type reportConfig struct {
	out, history string
	title, base  string
}

// reported says what a report holds.
type reported struct {
	Out       string `json:"report"`
	Runs      int    `json:"runs"`
	Unsound   int    `json:"unsound"`
	Behind    int    `json:"behind_their_rate"`
	Unread    int    `json:"not_read_back"`
	Again     int    `json:"given_again"`
	Baselines int    `json:"baselines"`
}

// Err says nothing: what is wrong with a run was a finding of its bench.
func (r *reported) Err() error { return nil }

// Table writes the line for people.
func (r *reported) Table(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s: %d runs, %d baselines\n", plain(r.Out), r.Runs, r.Baselines)
	return err
}

func newBenchReport(a *app) *cobra.Command {
	cfg := reportConfig{}
	cmd := &cobra.Command{
		Use:   "report [RUN.json...]",
		Short: "Make one HTML page of runs, and of the history of baselines",
		Long: `Report draws what the other bench commands printed with --json, and what perf/peers
prints: one page that needs no network, with latency curves, rates over time,
comparisons, the environments and all numbers. A file may hold many runs; "-" is
the standard input.

Runs of one engine and workload under one configuration, on one machine and one
program, are repeats: their medians are shown. Others are compared with the first
run under the same load whose answers promise the same, or with those of the engine
that --base names. A run that is given twice counts once.

With --history a page shows the accepted baselines of the gate (docs/GATE.md),
with runs or without. Runs that were not found right, were interrupted, or did not
get the load that was asked for are told on stderr, and stand out on the page.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && cfg.history == "" {
				return usage("neither a file of runs nor --history is given; see %s --help", cmd.CommandPath())
			}
			return a.benchReport(cfg, args)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&cfg.out, "out", "o", "report.html", "where the page goes (-: standard output)")
	f.StringVar(&cfg.history, "history", "", "file of accepted baselines, one JSON object a line")
	f.StringVar(&cfg.title, "title", "", "headline of the page")
	f.StringVar(&cfg.base, "base", "", "engine that others are compared with (default: that of the first run)")
	return cmd
}

func (a *app) benchReport(cfg reportConfig, files []string) error {
	if cfg.out == "" {
		return usage("--out is empty")
	}
	in := report.Input{Title: cfg.title, Base: cfg.base}
	for _, name := range files {
		err := a.readInput(name, func(r io.Reader) error {
			runs, err := report.ReadRuns(name, r)
			in.Sources = append(in.Sources, runs...)
			return err
		})
		if err != nil {
			return err
		}
	}
	in.Sources, in.Again = report.Distinct(in.Sources)
	if cfg.history != "" {
		err := a.readInput(cfg.history, func(r io.Reader) (err error) {
			in.History, err = report.ReadHistory(cfg.history, r)
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := a.writeReport(cfg.out, in); err != nil {
		if errors.Is(err, report.ErrNoBase) {
			return usage("--base: %v", err)
		}
		return err
	}
	if in.Again > 0 {
		fmt.Fprintf(a.errOut, "stratalog: %d runs were given more than once and count once\n", in.Again)
	}
	if n := in.Behind(); n > 0 {
		fmt.Fprintf(a.errOut, "stratalog: %d of %d runs did not get the load that was asked for\n", n, len(in.Sources))
	}
	if n := in.Unsound(); n > 0 {
		fmt.Fprintf(a.errOut, "stratalog: %d of %d runs cannot be relied on; the page says why\n", n, len(in.Sources))
	}
	if cfg.out == "-" {
		return nil
	}
	return a.report(&reported{cfg.out, len(in.Sources), in.Unsound(), in.Behind(), in.Unread(), in.Again, len(in.History)})
}

// readInput hands the file of that name, or the standard input, to read.
func (a *app) readInput(name string, read func(io.Reader) error) error {
	if name == "-" {
		return read(a.in)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(read(f), f.Close())
}

// writeReport writes the page to a file or the standard output, whole or not at
// all.
func (a *app) writeReport(name string, in report.Input) error {
	if name != "-" {
		return report.WriteFile(name, in)
	}
	var page bytes.Buffer
	if err := report.Write(&page, in); err != nil {
		return err
	}
	_, err := a.out.Write(page.Bytes())
	return err
}
