package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/commitlog"
	"github.com/stratalog/stratalog/perf"
)

// appendCommand is the append command.
type appendCommand struct {
	*app
	topic, key, tag, files string
	queue                  int32
	durability             *choice[stratalog.Durability]
	segment, maxMessage    sizeFlag

	bar *progress // with --files
}

func newAppend(a *app) *cobra.Command {
	c := &appendCommand{app: a, durability: newDurability(stratalog.Sync), maxMessage: commitlog.DefaultMaxMessageSize}
	cmd := &cobra.Command{
		Use:   "append --dir DIR (--topic T [FILE|-] | --files DIR)",
		Short: "Append messages: lines of a file or of standard input, or whole files",
		Long: `Append takes each line of FILE, or of standard input, as a message. With --files
each file below a directory is one: its topic is the first element of its path
made legal ("root" for files at the top), its key the path, its body the content.

The store is made if DIR holds none. Many messages are on their way at a time;
append ends when all have the durability that was asked for.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	f.StringVar(&c.topic, "topic", "", "topic")
	f.Int32Var(&c.queue, "queue", 0, "queue of the topic")
	f.StringVar(&c.key, "key", "", "key of every message")
	f.StringVar(&c.tag, "tag", "", "tag of every message")
	f.StringVar(&c.files, "files", "", "append the files below this directory")
	f.Var(c.durability, "durability", "what to wait for")
	f.Var(&c.segment, "segment-size", "length of a log file, for a store that is made (default 1GiB)")
	f.Var(&c.maxMessage, "max-message-size", "longest body")
	return cmd
}

// source is where messages come from: next fills m, or returns io.EOF.
type source interface {
	next(ctx context.Context, m *stratalog.Message) error
}

func (c *appendCommand) run(ctx context.Context, args []string) (err error) {
	if err := c.needDir(); err != nil {
		return err
	}
	src, closeInput, err := c.source(args)
	if err != nil {
		return err
	}
	defer closeInput()
	store, err := c.openStore(ctx, stratalog.Options{SegmentSize: int64(c.segment), MaxMessageSize: int(c.maxMessage),
		Durability: c.durability.value, AdmissionWait: closeTimeout, SyncTimeout: closeTimeout})
	if err != nil {
		return err
	}
	p := newPipeline(store, c.durability.value)
	err = errors.Join(p.pump(ctx, src), p.wait())
	if c.bar != nil {
		c.bar.end()
	}
	if err != nil {
		err = fmt.Errorf("%w (%d messages were appended)", err, p.sum.Messages)
	}
	if err = errors.Join(err, closeStore(store)); err != nil {
		return err
	}
	return c.report(&p.sum)
}

// source opens what is to be appended.
func (c *appendCommand) source(args []string) (source, func(), error) {
	nothing := func() {}
	if c.files != "" {
		if c.topic != "" || c.key != "" || len(args) > 0 {
			return nil, nil, usage("--files gives topic, key and body: --topic, --key and FILE do not go with it")
		}
		src, err := c.fileSource()
		return src, nothing, err
	}
	if c.topic == "" {
		return nil, nil, usage("--topic is missing")
	}
	if err := commitlog.CheckTopic(c.topic); err != nil {
		return nil, nil, err
	}
	in := c.in
	if len(args) == 1 && args[0] != "-" {
		f, err := os.Open(args[0])
		if err != nil {
			return nil, nil, err
		}
		in, nothing = f, func() { f.Close() }
	}
	m := stratalog.Message{Topic: c.topic, QueueID: c.queue, Properties: c.properties(nil)}
	return newLineSource(in, m, int(c.maxMessage)), nothing, nil
}

// properties appends --key and --tag to props.
func (c *appendCommand) properties(props []byte) []byte {
	if c.key != "" {
		props = codec.AppendProperty(props, perf.KeyProperty, c.key)
	}
	if c.tag != "" {
		props = codec.AppendProperty(props, perf.TagProperty, c.tag)
	}
	return props
}

// fileSource gives the files below a directory.
type fileSource struct {
	c     *appendCommand
	files []perf.File
	at    int
}

// fileSource lists the files. One that is too large is refused before anything
// is appended.
func (c *appendCommand) fileSource() (*fileSource, error) {
	files, others, err := perf.Files(c.files)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.Size > int64(c.maxMessage) {
			return nil, usage("%s has %d bytes: raise --max-message-size (%s)", f.Path, f.Size, &c.maxMessage)
		}
	}
	if others > 0 {
		fmt.Fprintf(c.errOut, "stratalog: %d entries that are no regular files are left out\n", others)
	}
	c.bar = newProgress(c.errOut)
	return &fileSource{c: c, files: files}, nil
}

func (s *fileSource) next(_ context.Context, m *stratalog.Message) error {
	if s.at == len(s.files) {
		return io.EOF
	}
	f := s.files[s.at]
	s.at++
	if s.at%64 == 0 {
		s.c.bar.tell("append", int64(s.at), int64(len(s.files)))
	}
	m.QueueID = s.c.queue
	if err := f.Message(s.c.files, m); err != nil {
		return err
	}
	m.Properties = s.c.properties(m.Properties)
	return nil
}

// lineSource gives the lines of a stream. They are read by a goroutine of its
// own, since a read from a terminal or pipe cannot be interrupted.
type lineSource struct {
	message stratalog.Message
	lines   chan line
}

// line is a line, or the error that ended them.
type line struct {
	text []byte
	err  error
}

func newLineSource(in io.Reader, m stratalog.Message, limit int) *lineSource {
	s := &lineSource{message: m, lines: make(chan line, 64)}
	go func() {
		r := bufio.NewReaderSize(in, 64<<10)
		for {
			l := line{}
			if l.text, l.err = readLine(r, limit); l.err == nil || !errors.Is(l.err, io.EOF) {
				s.lines <- l
			}
			if l.err != nil {
				close(s.lines)
				return
			}
		}
	}()
	return s
}

// readLine returns the next line without its end; io.EOF behind the last one. A
// last line without an end counts, if it is not empty.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var text []byte
	for {
		piece, err := r.ReadSlice('\n')
		text = append(text, piece...)
		switch {
		case err == nil:
			text = text[:len(text)-1]
		case err == io.EOF && len(text) > 0:
			err = nil
		case errors.Is(err, bufio.ErrBufferFull) && len(text) <= limit:
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			err = nil
		}
		if err == nil && len(text) > limit {
			err = usage("a line is longer than --max-message-size, %s", formatSize(int64(limit)))
		}
		return text, err
	}
}

func (s *lineSource) next(ctx context.Context, m *stratalog.Message) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case l, ok := <-s.lines:
		if !ok {
			return io.EOF
		}
		*m = s.message
		m.Body = l.text
		return l.err
	}
}

// report prints what was done.
func (c *appendCommand) report(sum *appendSummary) error {
	if c.files == "" {
		sum.Topic, sum.Queue = c.topic, &c.queue
	} else {
		sum.FirstOffset, sum.LastOffset = nil, nil
	}
	if c.json {
		return c.writeJSON(sum)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "appended %d messages, %d bytes, %s", sum.Messages, sum.Bytes, sum.Durability)
	if sum.FirstOffset != nil {
		fmt.Fprintf(&b, ", to %s/%d at %d..%d", sum.Topic, c.queue, *sum.FirstOffset, *sum.LastOffset)
	} else if c.files != "" {
		fmt.Fprintf(&b, ", to %d topics", sum.Topics)
	}
	_, err := fmt.Fprintln(c.out, b.String())
	return err
}
