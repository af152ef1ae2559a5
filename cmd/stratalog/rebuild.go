package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stratalog/stratalog"
)

func newRebuild(a *app) *cobra.Command {
	var strata []string
	var levels string
	var opt stratalog.Options
	names := strings.Join(stratalog.Strata(), ", ")
	cmd := &cobra.Command{
		Use:   "rebuild --dir DIR --stratum NAME",
		Short: "Make the consume queues, or the key index, anew from the log",
		Long: `Rebuild removes the files of one stratum and makes them anew from the log; with
--stratum given more than once, of each. The strata are ` + names + `. The store must
not be open elsewhere, and is not to be read while its queues are made. If it is
interrupted, the next command that writes goes on where it came to.

What is not in the log comes from flags: whether tags go into the key index,
whether queue entries are extended (without the bit maps of a broker's filters,
which stand nowhere else), and the delays of delayed messages. If a queue has no
message left in the log, its files alone know its next number: the queues are
then left as they are.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if levels != "" {
				if opt.DelayLevels, err = stratalog.ParseDelayLevels(levels); err != nil {
					return usage("--delay-levels: %s", detail(err))
				}
			}
			return a.rebuild(cmd.Context(), opt, strata)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&strata, "stratum", nil, "what to make anew: "+names+" (may be given again)")
	f.BoolVar(&opt.IndexTags, "index-tags", false, "put tags into the key index")
	f.BoolVar(&opt.ExtendedQueues, "extended-queues", false, "give queue entries extended ones")
	f.StringVar(&levels, "delay-levels", "", "the delays, as a broker's messageDelayLevel lists them (default: its own)")
	return cmd
}

// rebuilt is what rebuild prints for a stratum.
type rebuilt struct {
	Stratum string           `json:"stratum"`
	From    stratalog.Offset `json:"from"`
	To      stratalog.Offset `json:"to"`
	Records uint64           `json:"records"`
}

func (a *app) rebuild(ctx context.Context, opt stratalog.Options, strata []string) (err error) {
	if err := a.needDir(); err != nil {
		return err
	}
	if len(strata) == 0 {
		return usage("--stratum is missing: it is one of %s", strings.Join(stratalog.Strata(), ", "))
	}
	for i, name := range strata {
		if !slices.Contains(stratalog.Strata(), name) {
			return usage("--stratum: %q is none of %s", name, strings.Join(stratalog.Strata(), ", "))
		}
		if slices.Contains(strata[:i], name) {
			return usage("--stratum %s is given twice", name)
		}
	}
	if err := a.needStore(); err != nil {
		return err
	}
	opt.Dir = a.dir
	store, err := stratalog.Open(ctx, opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore(store)) }()
	a.opened(store.Report())
	done := []rebuilt{}
	for _, name := range strata {
		bar := newProgress(a.errOut)
		r, err := store.Rebuild(ctx, name, func(done, total int64) { bar.tell(name, done, total) })
		bar.end()
		if err != nil {
			return err
		}
		done = append(done, rebuilt{name, r.From, r.To, r.Records})
		if a.json {
			continue
		}
		if _, err := fmt.Fprintf(a.out, "%s: made anew from %d records in [%d,%d)\n", name, r.Records, r.From, r.To); err != nil {
			return err
		}
	}
	if a.json {
		return a.writeJSON(map[string][]rebuilt{"rebuilt": done})
	}
	return nil
}
