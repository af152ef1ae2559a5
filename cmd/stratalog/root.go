package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/contract"
)

// app is what all commands share: the streams and the common flags.
type app struct {
	in          io.Reader
	out, errOut io.Writer

	dir  string
	json bool
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "stratalog",
		Short: "A message store: append, get, query, inspect, dump, verify, rebuild, measure",
		Long: `Stratalog writes, reads, inspects, checks and measures message stores.

Exit codes: 0 all is well; 1 damage or a difference was found; 2 the command
could not run to its end. If the reader of the output goes away (a pipe into
head), the program ends by SIGPIPE, as others do.

Sizes are written 8MiB (B, KiB, MiB, GiB, or plain bytes). The files of a log
are 1GiB each unless --segment-size said otherwise when the store was made, and
a file takes its whole room on the disk at once.

Commands that read (get, query, inspect, dump, verify, bench get) take no lock and
change nothing: they work beside a live store and on a read-only mount. Commands that
write (append, rebuild, bench append, demo) say on stderr what recovery found and did, if
it was more than to open what was closed well: one line for each thing, or, with
--json, one line with the object {"recovery": ...}.`,
		Args:          atMost(0),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%s; see %s --help", flagText(err), cmd.CommandPath())
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.PersistentFlags().StringVar(&a.dir, "dir", "", "directory of the store")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON")
	root.AddCommand(newAppend(a), newGet(a), newQuery(a), newInspect(a), newDump(a), newVerify(a), newRebuild(a), newBench(a), newDemo(a), newVersion(a))
	return root
}

// writeJSON writes v as one line.
func (a *app) writeJSON(v any) error { return json.NewEncoder(a.out).Encode(v) }

// needDir checks that --dir was given.
func (a *app) needDir() error {
	if a.dir == "" {
		return usage("--dir is missing")
	}
	return nil
}

// openReader opens the store for reading. A directory without a log is refused:
// the name is then more likely wrong than the store empty.
func (a *app) openReader(ctx context.Context, ro stratalog.ReaderOptions) (*stratalog.Reader, error) {
	if err := a.needDir(); err != nil {
		return nil, err
	}
	if err := a.needStore(); err != nil {
		return nil, err
	}
	return stratalog.OpenReader(ctx, stratalog.Options{Dir: a.dir}, ro)
}

// needStore checks that there is a store in the directory.
func (a *app) needStore() error {
	_, err := os.Stat(filepath.Join(a.dir, "commitlog"))
	if err == nil {
		return nil
	}
	kind := contract.KindIO
	if errors.Is(err, fs.ErrNotExist) {
		kind = contract.KindNotFound
	}
	return contract.NewError(kind, contract.OpOpen, contract.ComponentStore, "no store in "+a.dir, err)
}

// openStore opens the store for writing and starts it.
func (a *app) openStore(ctx context.Context, opt stratalog.Options) (*stratalog.Store, error) {
	if err := a.needDir(); err != nil {
		return nil, err
	}
	opt.Dir = a.dir
	store, err := stratalog.Open(ctx, opt)
	if err != nil {
		return nil, err
	}
	a.opened(store.Report())
	if err := store.Start(ctx); err != nil {
		return nil, errors.Join(err, closeStore(store))
	}
	return store, nil
}

// closeTimeout is how long a clean close may take.
const closeTimeout = time.Minute

// closeStore closes cleanly, also after the command was interrupted.
func closeStore(store *stratalog.Store) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_, err := store.Close(ctx)
	return err
}
