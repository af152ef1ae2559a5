package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/stratalog/stratalog"
)

// queryCommand is the query command.
type queryCommand struct {
	getCommand
	q        stratalog.Query
	from, to string
}

func newQuery(a *app) *cobra.Command {
	c := &queryCommand{getCommand: getCommand{app: a}}
	cmd := &cobra.Command{
		Use:   "query --dir DIR --topic T --key K",
		Short: "Print messages that have a key, newest first",
		Long: `Query prints the bodies of a topic's messages that have a key, of all queues,
newest first, each with a line end behind it; with --json one object per message
and line, as get does. The key is one of the words of KEYS, or UNIQ_KEY; with
--tag it is the message's tag, if the key index holds tags.

Times are RFC 3339 (2026-11-30T08:30:00Z) or milliseconds since 1970, both ends
included. If the key index has not come as far as the log, what is missing may
be found a moment later: it says so on stderr; that is no failure.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&c.q.Topic, "topic", "", "topic")
	f.StringVar(&c.q.Key, "key", "", "key")
	f.BoolVar(&c.q.Tag, "tag", false, "the key is a tag")
	f.StringVar(&c.from, "from", "", "oldest store time")
	f.StringVar(&c.to, "to", "", "newest store time")
	f.Int64Var(&c.count, "count", 0, "how many messages to print (0: all)")
	f.BoolVar(&c.appended, "appended", false, "look beyond the published bound, up to the last valid record")
	return cmd
}

// instant reads a time; empty is the zero time.
func instant(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.UnixMilli(ms), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, usage("--%s: %q is neither a time like 2026-11-30T08:30:00Z nor milliseconds", flag, text)
	}
	return t, nil
}

func (c *queryCommand) run(ctx context.Context) (err error) {
	switch {
	case c.q.Topic == "":
		return usage("--topic is missing")
	case c.q.Key == "":
		return usage("--key is missing")
	case c.count < 0:
		return usage("--count must not be negative")
	}
	if c.q.From, err = instant("from", c.from); err != nil {
		return err
	}
	if c.q.To, err = instant("to", c.to); err != nil {
		return err
	}
	r, err := c.openReader(ctx, stratalog.ReaderOptions{Appended: c.appended})
	if err != nil {
		return err
	}
	c.w = bufio.NewWriter(c.out)
	c.enc = json.NewEncoder(c.w)
	c.enc.SetEscapeHTML(false)
	defer func() { err = errors.Join(err, c.w.Flush(), r.Close()) }()
	return c.loop(ctx, r)
}

func (c *queryCommand) loop(ctx context.Context, r *stratalog.Reader) error {
	var out stratalog.Matches
	defer out.Release()
	left := c.count
	for more := true; more; more = out.More {
		c.q.MaxCount, c.q.After = stratalog.DefaultMaxCount, out.Next
		if c.count > 0 {
			c.q.MaxCount = int(min(left, stratalog.DefaultMaxCount))
		}
		err := r.QueryKey(ctx, c.q, &out)
		for i := range out.Len() {
			if err := c.print(out.At(i), out.At(i).QueueOffset()); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		if left -= int64(out.Len()); c.count > 0 && left <= 0 {
			break
		}
	}
	if end := r.Inspect().End; out.Boundary < end {
		fmt.Fprintf(c.errOut, "stratalog: the key index has come to %d, the log ends at %d: messages in between may be missing\n", out.Boundary, end)
	}
	return nil
}
