package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// followPoll is how often a following reader looks whether the queue has come to an
// offset beyond its end.
const followPoll = 50 * time.Millisecond

// getCommand is the get command.
type getCommand struct {
	*app
	topic, tag, from string
	queue            int32
	offset, count    int64
	follow, appended bool

	// offsetGiven tells that --offset was set: then it is worth a word if no
	// message is there.
	offsetGiven bool

	w    *bufio.Writer
	enc  *json.Encoder
	left int64 // how many records to print still; negative: all
}

func newGet(a *app) *cobra.Command {
	c := &getCommand{app: a}
	cmd := &cobra.Command{
		Use:   "get --dir DIR --topic T",
		Short: "Print messages of a queue",
		Long: `Get prints the bodies of a queue's messages, each with a line end behind it; with
--json one object per message and line ("body", or "body_base64" if the body is
not UTF-8 text; "light_offset" is the number in a light queue, whose messages are of
other topics). It ends at the end of the queue, or, with --follow, goes on with
what a live store publishes until --count is reached or it is interrupted. If
--offset lies beyond the end, or below the first message that is still there, it
says so on stderr; that is no failure. Times are RFC 3339 (2026-11-30T08:30:00Z) or
milliseconds since 1970. Of a batch queue --count counts records, each of which
stands for several messages.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.offsetGiven = cmd.Flags().Changed("offset")
			return c.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.topic, "topic", "", "topic")
	f.Int32Var(&c.queue, "queue", 0, "queue of the topic")
	f.Int64Var(&c.offset, "offset", 0, "queue offset of the first message")
	f.StringVar(&c.from, "time", "", "start with the first message that was not stored before this time")
	f.Int64Var(&c.count, "count", 0, "how many messages to print (0: all)")
	f.StringVar(&c.tag, "tag", "", "print only messages with this tag")
	f.BoolVar(&c.follow, "follow", false, "wait for more at the end")
	f.BoolVar(&c.appended, "appended", false, "go on beyond the published bound to the last valid record")
	return cmd
}

func (c *getCommand) run(ctx context.Context) (err error) {
	switch {
	case c.topic == "":
		return usage("--topic is missing")
	case c.offset < 0 || c.count < 0 || c.queue < 0:
		return usage("--offset, --count and --queue must not be negative")
	case c.from != "" && c.offsetGiven:
		return usage("--offset and --time exclude each other")
	}
	var from time.Time
	if c.from != "" {
		if from, err = instant("time", c.from); err != nil {
			return err
		}
	}
	r, err := c.openReader(ctx, stratalog.ReaderOptions{Appended: c.appended})
	if err != nil {
		return err
	}
	c.w = bufio.NewWriter(c.out)
	c.enc = json.NewEncoder(c.w)
	c.enc.SetEscapeHTML(false)
	if c.left = c.count; c.count == 0 {
		c.left = -1
	}
	defer func() { err = errors.Join(err, c.w.Flush(), r.Close()) }()
	if c.from != "" {
		if c.offset, err = r.OffsetByTime(ctx, c.topic, c.queue, from, stratalog.LowerBound); err != nil {
			return err
		}
	}
	return c.loop(ctx, r)
}

// loop prints until the queue's end, and again after each refresh if it
// follows.
func (c *getCommand) loop(ctx context.Context, r *stratalog.Reader) error {
	var out stratalog.Records
	defer out.Release()
	req := stratalog.Request{Topic: c.topic, QueueID: c.queue, Offset: c.offset, Tag: c.tag}
	for {
		status, err := c.drain(ctx, r, &req, &out)
		switch {
		case ctx.Err() != nil:
			if c.follow {
				return nil // the way to end it
			}
			return ctx.Err()
		case err != nil:
			return err
		case c.left == 0:
			return nil
		case !c.follow && status == contract.GetNoMatchedLogicQueue:
			return contract.NewError(contract.KindNotFound, contract.OpRead, contract.ComponentQueue,
				"no queue "+queueName(c.topic, c.queue), nil)
		case !c.follow:
			return nil
		}
		if err := c.w.Flush(); err != nil {
			return err
		}
		if err := c.wait(ctx, r, req, status, &out); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// wait waits until there may be more to get than status told.
func (c *getCommand) wait(ctx context.Context, r *stratalog.Reader, req stratalog.Request, status contract.GetStatus, out *stratalog.Records) error {
	if status != contract.GetOffsetOverflowBadly {
		return r.Follow(ctx, req, out)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(followPoll):
		return r.Refresh(ctx)
	}
}

// drain prints up to the queue's end and moves req on. It returns the status at
// which it ended.
func (c *getCommand) drain(ctx context.Context, r *stratalog.Reader, req *stratalog.Request, out *stratalog.Records) (contract.GetStatus, error) {
	for c.left != 0 {
		req.MaxCount = stratalog.DefaultMaxCount
		if c.left > 0 {
			req.MaxCount = int(min(c.left, stratalog.DefaultMaxCount))
		}
		if err := r.Get(ctx, *req, out); err != nil {
			return 0, err
		}
		c.tellOffset(out)
		switch out.Status {
		case contract.GetOffsetOverflowOne, contract.GetOffsetOverflowBadly, contract.GetNoMatchedLogicQueue, contract.GetNoMessageInQueue:
			return out.Status, nil
		}
		for i := range out.Len() {
			if err := c.print(out.At(i), out.QueueOffset(i)); err != nil {
				return 0, err
			}
		}
		if c.left > 0 {
			c.left -= int64(out.Len())
		}
		req.Offset, req.Epoch = out.Next, out.Epoch
	}
	return contract.GetFound, nil
}

// tellOffset says, once, that --offset lies outside of the queue. Exactly at the
// end there is nothing yet, which is what who reads on from there expects.
func (c *getCommand) tellOffset(out *stratalog.Records) {
	if !c.offsetGiven {
		return
	}
	c.offsetGiven = false
	switch name := queueName(c.topic, c.queue); {
	case out.Status == contract.GetNoMatchedLogicQueue:
	case c.offset > out.Max && !c.follow:
		fmt.Fprintf(c.errOut, "stratalog: offset %d is beyond the end %d of %s\n", c.offset, out.Max, name)
	case c.offset < out.Min:
		fmt.Fprintf(c.errOut, "stratalog: offset %d is below the first live offset %d of %s\n", c.offset, out.Min, name)
	}
}

// message is a record as --json prints it.
type message struct {
	Topic          string            `json:"topic"`
	Queue          int32             `json:"queue"`
	Offset         int64             `json:"offset"`
	LightOffset    *int64            `json:"light_offset,omitempty"`
	PhysicalOffset int64             `json:"physical_offset"`
	Size           int32             `json:"size"`
	StoreTime      int64             `json:"store_time"`
	BornTime       int64             `json:"born_time"`
	Flag           int32             `json:"flag"`
	SysFlag        codec.SysFlag     `json:"sys_flag"`
	Properties     map[string]string `json:"properties,omitempty"`
	Body           *string           `json:"body,omitempty"`
	BodyBase64     []byte            `json:"body_base64,omitempty"`
}

// print prints r, which has number at in the queue that was read.
func (c *getCommand) print(r *stratalog.Record, at int64) error {
	if !c.json {
		if _, err := c.w.Write(r.Body()); err != nil {
			return err
		}
		return c.w.WriteByte('\n')
	}
	m := message{Topic: string(r.Topic()), Queue: r.QueueID(), Offset: r.QueueOffset(), PhysicalOffset: r.PhysicalOffset(),
		Size: r.TotalSize(), StoreTime: r.StoreTimestamp(), BornTime: r.BornTimestamp(), Flag: r.Flag(),
		SysFlag: r.SysFlag()}
	if c.topic != "" && c.topic != m.Topic {
		m.LightOffset = &at
	}
	codec.WalkProperties(r.Properties(), func(name, value []byte) bool {
		if m.Properties == nil {
			m.Properties = map[string]string{}
		}
		m.Properties[string(name)] = string(value)
		return true
	})
	if utf8.Valid(r.Body()) {
		body := string(r.Body())
		m.Body = &body
	} else {
		m.BodyBase64 = r.Body()
	}
	return c.enc.Encode(m)
}
