package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/stratalog/stratalog"
)

func newInspect(a *app) *cobra.Command {
	var appended bool
	cmd := &cobra.Command{
		Use:   "inspect --dir DIR",
		Short: "Show segments, queues, key index, ends, epochs and cursors",
		Args:  atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.inspect(cmd.Context(), appended)
		},
	}
	cmd.Flags().BoolVar(&appended, "appended", false, "go on beyond the published bound to the last valid record")
	return cmd
}

func (a *app) inspect(ctx context.Context, appended bool) (err error) {
	r, err := a.openReader(ctx, stratalog.ReaderOptions{Appended: appended, Salvage: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	in := r.Inspect()
	if a.json {
		return a.writeJSON(in)
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", args...) }
	line("directory", "%s", in.Dir)
	line("log id", "%s", in.LogID)
	line("sidecar", "%s", in.Sidecar)
	line("abort file", "%v", in.Unclean)
	line("a Java broker started since", "%v", in.Stranger)
	bound := "last valid record"
	if in.Bounded {
		bound = "published bound"
	}
	line("log", "[%d,%d), end is the %s", in.MinOffset, in.End, bound)
	line("segments", "%d of %s", len(in.Segments), formatSize(in.SegmentSize))
	for _, s := range in.Segments {
		line("", "%s", s.Path)
	}
	for _, e := range in.Epochs {
		line("epoch", "%d from %d", e.Epoch, e.Start)
	}
	for _, c := range in.Checksummed {
		if c.End < 0 {
			line("checksummed", "[%d,...", c.Start)
			continue
		}
		line("checksummed", "[%d,%d)", c.Start, c.End)
	}
	for _, c := range in.Cursors {
		if c.Error != "" {
			line("cursor", "%s: %s", c.Lane, c.Error)
			continue
		}
		line("cursor", "%s at %d (epoch %d)", c.Lane, c.Next, c.Epoch)
	}
	for _, q := range in.Queues {
		line("queue", "%s [%d,%d)", queueName(q.Topic, q.Queue), q.Min, q.Max)
	}
	if in.IndexError != "" {
		line("key index", "%s", in.IndexError)
	}
	for _, f := range in.IndexFiles {
		line("key index", "%s: %d entries of [%d,%d]", f.Path, f.Entries, f.Begin, f.End)
	}
	return w.Flush()
}
