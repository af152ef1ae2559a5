package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
	floor                  sizeFlag

	bar *progress // with --files
}

func newAppend(a *app) *cobra.Command {
	c := &appendCommand{app: a, durability: newDurability(stratalog.Sync), maxMessage: commitlog.DefaultMaxMessageSize, floor: newDiskFloor()}
	cmd := &cobra.Command{
		Use:   "append --dir DIR (--topic T [FILE|-] | --files DIR)",
		Short: "Append messages: lines of a file or of standard input, or whole files",
		Long: `Append takes each line of FILE, or of standard input, as a message. A line ends
with a line feed, which is left out; a carriage return before it is kept. With
--files each file below a directory is one: its topic is the first element of its
path made legal ("root" for files at the top), its key the path, its body the
content. All are checked before the first is appended.

The store is made if DIR holds none; its log files take 1GiB each at once, unless
--segment-size says otherwise. Many messages are on their way at a time; append
ends when all have the durability that was asked for. If it fails it says how
many messages were appended: they are the first ones, in order.`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	f.StringVar(&c.topic, "topic", "", "topic")
	f.Int32Var(&c.queue, "queue", 0, "queue of the topic")
	f.StringVar(&c.key, "key", "", "key of every message")
	f.StringVar(&c.tag, "tag", "", "tag of every message")
	f.StringVar(&c.files, "files", "", "append the files below this directory")
	f.Var(c.durability, "durability", "what to wait for")
	addSegment(f, &c.segment)
	f.Var(&c.maxMessage, "max-message-size", "longest body (0: 4MiB)")
	f.Var(&c.floor, "disk-floor", floorHelp)
	return cmd
}

// source is where messages come from: next fills m, or returns io.EOF; name is
// what people call the n-th, counted from 0.
type source interface {
	next(ctx context.Context, m *stratalog.Message) error
	name(n int64) string
}

func (c *appendCommand) run(ctx context.Context, args []string) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	src, closeInput, err := c.source(args)
	if err != nil {
		return err
	}
	defer closeInput()
	store, err := c.openStore(ctx, stratalog.Options{SegmentSize: int64(c.segment), MaxMessageSize: int(c.maxMessage),
		Durability: c.durability.value, AdmissionWait: closeTimeout, SyncTimeout: closeTimeout,
		DiskFloor: diskFloor(c.floor)})
	if err != nil {
		return err
	}
	p := newPipeline(store, c.durability.value)
	err = errors.Join(p.pump(ctx, src), p.wait())
	if c.bar != nil {
		c.bar.end()
	}
	if err = errors.Join(err, closeStore(store)); err != nil {
		return p.counted(err)
	}
	return c.report(&p.sum)
}

// check judges the flags, before a store is made.
func (c *appendCommand) check() error {
	if err := c.needDir(); err != nil {
		return err
	}
	if c.queue < 0 {
		return usage("--queue %d is negative", c.queue)
	}
	if err := checkSegmentSize(int64(c.segment)); err != nil {
		return err
	}
	if c.maxMessage == 0 {
		c.maxMessage = commitlog.DefaultMaxMessageSize
	}
	if c.maxMessage > commitlog.MaxSegmentSize/2 {
		return usage("--max-message-size %s is more than %s", &c.maxMessage, formatSize(commitlog.MaxSegmentSize/2))
	}
	for flag, value := range map[string]string{"--key": c.key, "--tag": c.tag} {
		if err := checkValue(value); err != nil {
			return usage("%s %q %v", flag, value, err)
		}
	}
	if err := codec.CheckProperties(c.properties(nil)); err != nil {
		return usage("--key and --tag: %v", err)
	}
	return nil
}

// checkValue refuses bytes that the format keeps for itself.
func checkValue(value string) error {
	if i := strings.IndexAny(value, string([]byte{codec.PropertyNameEnd, codec.PropertyEnd})); i >= 0 {
		return fmt.Errorf("holds the byte %#02x, which the format keeps for itself", value[i])
	}
	return nil
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
		return nil, nil, usage("--topic: %s", detail(err))
	}
	in, file := c.in, "standard input"
	if len(args) == 1 && args[0] != "-" {
		f, err := os.Open(args[0])
		if err != nil {
			return nil, nil, err
		}
		if info, err := f.Stat(); err != nil || info.IsDir() {
			f.Close()
			if err == nil {
				err = usage("%s is a directory: --files appends what is below one", plain(args[0]))
			}
			return nil, nil, err
		}
		in, nothing, file = f, func() { f.Close() }, plain(args[0])
	}
	m := stratalog.Message{Topic: c.topic, QueueID: c.queue, Properties: c.properties(nil)}
	return newLineSource(in, file, m, int(c.maxMessage)), nothing, nil
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

// fileSource lists the files. One that cannot be appended is refused before
// anything is.
func (c *appendCommand) fileSource() (*fileSource, error) {
	files, others, err := perf.Files(c.files)
	if err != nil {
		return nil, err
	}
	segment, err := c.segmentSize()
	if err != nil {
		return nil, err
	}
	s := &fileSource{c: c, files: files}
	for n, f := range files {
		if err := c.checkFile(f, segment); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name(int64(n)), err)
		}
	}
	if others > 0 {
		fmt.Fprintf(c.errOut, "stratalog: %d entries that are no regular files are left out\n", others)
	}
	c.bar = newProgress(c.errOut)
	return s, nil
}

// checkFile judges everything about a file that can be judged before its turn.
func (c *appendCommand) checkFile(f perf.File, segment int64) error {
	if f.Size > int64(c.maxMessage) {
		return usage("it has %d bytes: raise --max-message-size (%s)", f.Size, &c.maxMessage)
	}
	if err := commitlog.CheckTopic(f.Topic); err != nil {
		return usage("%s", detail(err))
	}
	if err := checkValue(f.Path); err != nil {
		return usage("the path, which becomes the key, %v", err)
	}
	props := c.properties(codec.AppendProperty(nil, perf.KeyProperty, f.Path))
	if err := codec.CheckProperties(props); err != nil {
		return usage("the path, which becomes the key: %v", err)
	}
	m := codec.Message{Topic: []byte(f.Topic), Properties: props, PropertiesReserve: codec.ChecksumTrailerSize}
	if size := int64(m.Size()) + f.Size; size > segment-segmentEnd {
		return usage("its record takes %d bytes and does not fit into a log file of %s (--segment-size, for a store that is made)",
			size, formatSize(segment))
	}
	file, err := os.Open(filepath.Join(c.files, filepath.FromSlash(f.Path)))
	if err != nil {
		return errors.Unwrap(err) // the caller names the file
	}
	return file.Close()
}

// segmentEnd is what a log file holds behind its last record.
const segmentEnd = 8

// segmentSize is the length of the log files that the store has, or will have.
func (c *appendCommand) segmentSize() (int64, error) {
	segments, err := os.ReadDir(filepath.Join(c.dir, "commitlog"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	for _, s := range segments {
		if info, err := s.Info(); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			return info.Size(), nil
		}
	}
	if c.segment != 0 {
		return int64(c.segment), nil
	}
	return commitlog.DefaultSegmentSize, nil
}

// name is the path of a file.
func (s *fileSource) name(n int64) string {
	return plain(filepath.Join(s.c.files, filepath.FromSlash(s.files[n].Path)))
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
	file    string
	message stratalog.Message
	lines   chan line
}

// name is the number of a line and its file.
func (s *lineSource) name(n int64) string { return fmt.Sprintf("line %d of %s", n+1, s.file) }

// line is a line, or the error that ended them.
type line struct {
	text []byte
	err  error
}

func newLineSource(in io.Reader, file string, m stratalog.Message, limit int) *lineSource {
	s := &lineSource{file: file, message: m, lines: make(chan line, 64)}
	go func() {
		r := bufio.NewReaderSize(in, 64<<10)
		for n := int64(0); ; n++ {
			l := line{}
			if l.text, l.err = readLine(r, limit); l.err == nil || !errors.Is(l.err, io.EOF) {
				if l.err != nil {
					l.err = fmt.Errorf("%s: %w", s.name(n), l.err)
				}
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
			err = usage("it is longer than --max-message-size, %s", formatSize(int64(limit)))
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
