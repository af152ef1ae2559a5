package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stratalog/stratalog/internal/dump"
	"github.com/stratalog/stratalog/internal/vfs"
)

// What is waited for a live writer to finish a record: a store may be open, and
// the bytes at a place are not what they should be.
const (
	settlePause = 20 * time.Millisecond
	settleTries = 10
	settleTotal = 100 // tries of one dump
)

// dumpCommand is the dump command.
type dumpCommand struct {
	*app
	record      string
	from        sizeFlag
	count       int64
	slots       int64
	all, fields bool
}

func newDump(a *app) *cobra.Command {
	c := &dumpCommand{app: a}
	cmd := &cobra.Command{
		Use:   "dump FILE",
		Short: "Print any file of a store record by record",
		Long: `Dump prints the records of one file: for each a heading with its place in the
file, then the bytes of each field in hex, with the field's name and value. With
--json it prints one object per line: "kind" is record, finding, zeros, bytes or
text. FILE is relative to --dir, if that is given.

What a file is follows from where it stands in a store; of a lone one from its
name, its size and its first bytes. If these do not tell, --record names the
layout of its records. Where damage is met, its place, the field and the cause are
printed as a finding, and the dump goes on behind it: in a log at the next record
that stands where it says it does, elsewhere at the next unit. A record of more
than 64MiB is a finding, too.

It reads nothing but the file and, for a file of a log, the sidecar, which tells
where every record carries a checksum over all its bytes. If the store seems to be
open it looks again, for a moment, before it calls the work of a live writer a
finding.`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("FILE is missing; see %s --help", cmd.CommandPath())
			}
			return c.run(cmd.Context(), args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.record, "record", "", "layout of the file's records: "+strings.Join(dump.Names(), ", "))
	f.Var(&c.from, "from", "byte in the file at or behind which the first record starts")
	f.Int64Var(&c.count, "count", 0, "how many records to print (0: all)")
	f.Int64Var(&c.slots, "slots", 0, "hash slots of an index file (0: find out)")
	f.BoolVar(&c.all, "hex", false, "print all bytes of long fields; with --json, add the bytes of each record")
	f.BoolVar(&c.fields, "fields", false, "with --json, add the place and size of each field")
	return cmd
}

func (c *dumpCommand) run(ctx context.Context, name string) (err error) {
	switch {
	case c.count < 0 || c.slots < 0:
		return usage("--count and --slots must not be negative")
	case c.fields && !c.json:
		return usage("--fields goes with --json")
	}
	if c.dir != "" && !filepath.IsAbs(name) {
		name = filepath.Join(c.dir, name)
	}
	name = filepath.ToSlash(name)
	file, err := vfs.OS().Open(name, vfs.ReadOnly)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	kind, size, err := c.kind(file)
	if err != nil {
		return err
	}
	opt := dump.Options{From: int64(c.from), Count: c.count, Slots: c.slots}
	if kind.Root != "" {
		opt.Ours = dump.Ours(vfs.OS(), kind.Root)
		opt.Settle = settle(ctx, kind.Root)
	}
	var sink interface {
		dump.Sink
		Flush() error
	}
	if c.json {
		j := dump.NewJSON(c.out)
		j.Fields, j.Hex = c.fields, c.all
		sink = j
	} else {
		t := dump.NewText(c.out, size)
		t.All = c.all
		if err := t.Heading(fmt.Sprintf("%s: %s, %d bytes\n", plain(name), kind.Name, size)); err != nil {
			return err
		}
		sink = t
	}
	sum, err := dump.File(file, kind, opt, watched{sink, ctx})
	if t, ok := sink.(*dump.Text); ok && err == nil {
		err = t.Heading(fmt.Sprintf("%d records, %d findings", sum.Records, sum.Findings))
	}
	if err = errors.Join(err, sink.Flush()); err == nil && sum.Findings > 0 {
		err = errFinding
	}
	return err
}

// kind tells what the file is.
func (c *dumpCommand) kind(file vfs.File) (dump.Kind, int64, error) {
	info, err := file.Stat()
	if err != nil {
		return dump.Kind{}, 0, err
	}
	name, err := filepath.Abs(filepath.FromSlash(file.Name()))
	if err != nil {
		return dump.Kind{}, 0, err
	}
	name = filepath.ToSlash(name)
	if c.record != "" {
		kind, err := dump.KindOf(c.record, name)
		if err != nil {
			err = usage("--record: %v", err)
		}
		return kind, info.Size, err
	}
	kind, err := dump.Identify(file, name)
	if err != nil {
		err = usage("%v", err)
	}
	return kind, info.Size, err
}

// settle waits a moment for the owner of the store in root, if there seems to be
// one.
func settle(ctx context.Context, root string) func(int) bool {
	if _, err := vfs.OS().Stat(root + "/abort"); err != nil {
		return nil
	}
	total := 0
	return func(tries int) bool {
		if total++; tries > settleTries || total > settleTotal {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(settlePause):
			return true
		}
	}
}

// watched is a Sink that ends when its context does.
type watched struct {
	dump.Sink
	ctx context.Context
}

// Record hands on a record.
func (w watched) Record(r *dump.Record) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	return w.Sink.Record(r)
}

// Finding hands on a finding.
func (w watched) Finding(f *dump.Finding) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	return w.Sink.Finding(f)
}
