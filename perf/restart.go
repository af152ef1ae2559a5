package perf

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/perf/load"
)

// RestartConfig describes how long it takes to open a store again.
type RestartConfig struct {
	// Dir is where the stores are, each in a folder of its own.
	Dir string
	// Size is the length of each body.
	Size int
	// SegmentSize and DiskFloor are as in stratalog.Options.
	SegmentSize int64
	DiskFloor   int64
	// Seed makes the bodies.
	Seed uint64
	// Progress, if not nil, is told how far the run is.
	Progress load.Progress
	// LogSizes are the lengths of the log in bytes, each a store of its own
	// below Dir.
	LogSizes []int64
	// Rounds is how often each is opened.
	Rounds int
	// Child makes the command that runs RunRestartChild with the configuration
	// given as JSON on its standard input: a process of its own, to be killed.
	Child func(ctx context.Context) *exec.Cmd
}

// Validate checks the numbers.
func (c *RestartConfig) Validate() error {
	if len(c.LogSizes) == 0 || c.Rounds < 1 || c.Rounds > 1000 {
		return fmt.Errorf("log sizes, rounds: %v and %d: none, or not in 1..1000", c.LogSizes, c.Rounds)
	}
	for _, size := range c.LogSizes {
		if size < 1<<20 {
			return fmt.Errorf("log size: %d is below 1 MiB", size)
		}
	}
	if c.Size < 0 || c.Size > load.MaxBody {
		return fmt.Errorf("size: %d is not in 0..%d", c.Size, load.MaxBody)
	}
	if c.Child == nil {
		return errors.New("no command for the process that is killed")
	}
	return nil
}

// ChildConfig is what the process that fills a store is told.
type ChildConfig struct {
	Dir         string
	Seed        uint64
	Size        int
	SegmentSize int64
	DiskFloor   int64
	// Until is the length of the log at which the child says that it is ready.
	Until int64
	// Kill makes it go on appending then until it is killed; else it closes
	// the store and ends.
	Kill bool
}

// ready is what the child says, on a line, when the log is as long as wanted, and,
// if it is to be killed, after every further batch that was acknowledged.
type ready struct {
	Acked int64 `json:"acked"`
}

// RunRestartChild fills a store as the ChildConfig on in says, and then says so
// on out.
func RunRestartChild(ctx context.Context, in io.Reader, out io.Writer) error {
	var c ChildConfig
	if err := json.NewDecoder(in).Decode(&c); err != nil {
		return err
	}
	store, err := openStarted(ctx, stratalog.Options{Dir: c.Dir, SegmentSize: c.SegmentSize, DiskFloor: c.DiskFloor,
		MaxMessageSize: max(c.Size, 4<<20), AdmissionWait: admissionWait}, nil)
	if err != nil {
		return err
	}
	bodies := load.NewBodies(c.Seed, load.FixedSize(c.Size))
	_, seq := store.QueueRange(restartTopic, 0)
	for said := false; ; {
		if !said && int64(store.Health().Watermarks.Appended) >= c.Until {
			if err := store.WaitVisible(ctx, store.Health().Watermarks.Appended); err != nil {
				return errors.Join(err, closeStore(store))
			}
			if !c.Kill {
				err := closeStore(store)
				return errors.Join(err, json.NewEncoder(out).Encode(ready{seq}))
			}
			if err := json.NewEncoder(out).Encode(ready{seq}); err != nil {
				return errors.Join(err, closeStore(store))
			}
			said = true
		}
		if seq, err = appendSome(ctx, store, bodies, seq); err != nil {
			return errors.Join(err, closeStore(store))
		}
		if said {
			if err := json.NewEncoder(out).Encode(ready{seq}); err != nil {
				return errors.Join(err, closeStore(store))
			}
		}
	}
}

// restartTopic is the topic of the stores that are opened again.
const restartTopic = "restart"

// childBatch is how many messages the child has on their way.
const childBatch = 256

// appendSome appends messages from seq on and waits until the last is durable.
func appendSome(ctx context.Context, store *stratalog.Store, bodies *load.Bodies, seq int64) (int64, error) {
	answers := make(chan error, childBatch)
	var body []byte
	sent := 0
	var err error
	for range childBatch {
		body = bodies.Make(body, seq)
		m := stratalog.Message{Topic: restartTopic, Body: body, Flag: int32(seq)}
		err = store.Submit(ctx, &m, stratalog.Sync, func(_ stratalog.Receipt, err error) { answers <- err })
		if err != nil {
			break
		}
		sent++
		seq++
	}
	for range sent {
		err = errors.Join(err, <-answers)
	}
	return seq, err
}

// RunRestart fills stores, stops them well or kills their process, and measures
// how long it takes until they are open and the first append is acknowledged,
// with the files in the page cache and without. All is read back at the end.
func RunRestart(ctx context.Context, cfg RestartConfig) (run *load.Run, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	run = &load.Run{Schema: load.Schema, Engine: "stratalog", Workload: "restart", Started: time.Now().UTC(), Seed: cfg.Seed,
		Promise: promise(stratalog.Sync), Env: load.Environment(cfg.Dir),
		Config: []load.Param{{Name: "bodies", Value: fmt.Sprint(cfg.Size)}, {Name: "rounds", Value: fmt.Sprint(cfg.Rounds)}},
		Notes: []string{"\"to open\" is until Open has returned, recovery and queues included; \"to append\" until an append was acknowledged as durable",
			"cold means that the system was asked to forget the files; the kernel's own metadata stays"}}
	meter := load.StartMeter()
	for _, size := range cfg.LogSizes {
		dir := filepath.Join(cfg.Dir, fmt.Sprintf("restart-%d", size))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		for _, kill := range []bool{false, true} {
			for _, cold := range []bool{false, true} {
				ops, err := cfg.opens(ctx, run, dir, size, kill, cold)
				if err != nil {
					return interrupted(run, err)
				}
				run.Ops = append(run.Ops, ops...)
			}
		}
	}
	run.Usage = meter.Stop(0, 0)
	run.Verified.How = "after every opening: the queue reaches as far as what was acknowledged by the process before its end, and by us; after the last of each kind every message of the queue, its place and its body"
	run.Verified.OK = run.Verified.Missing == 0 && run.Verified.Wrong == 0
	return run, nil
}

// opens opens the store in one of the four ways, Rounds times.
func (c *RestartConfig) opens(ctx context.Context, run *load.Run, dir string, size int64, kill, cold bool) ([]load.Op, error) {
	name := fmt.Sprintf("%d MiB", size>>20)
	if kill {
		name += " killed"
	} else {
		name += " closed"
	}
	if cold {
		name += " cold"
	} else {
		name += " warm"
	}
	open, first := load.NewHistogram(), load.NewHistogram()
	acked := int64(0) // by anybody, so far
	for round := range c.Rounds {
		c.Progress.Tell(name, int64(round), int64(c.Rounds))
		said, err := c.fill(ctx, dir, size, kill)
		if err != nil {
			return nil, err
		}
		acked = max(acked, said)
		if cold {
			if err := DropCache(dir); err != nil {
				return nil, err
			}
		}
		end, err := c.openOnce(ctx, dir, open, first)
		if err != nil {
			return nil, err
		}
		if v := &run.Verified; end <= acked { // with the message that was appended now
			v.Missing += acked + 1 - end
			if v.First == "" {
				v.First = fmt.Sprintf("%s, opening %d: %d messages and one more, %d were acknowledged before", name, round+1, end-1, acked)
			}
		}
		acked = max(acked, end)
	}
	if err := c.readBack(ctx, run, dir, acked); err != nil {
		return nil, err
	}
	return []load.Op{{Name: name + ": to open", Count: open.Count(), Latency: load.Summary(open)},
		{Name: name + ": to append", Count: first.Count(), Latency: load.Summary(first)}}, nil
}

// fill runs the child until the log is as long as wanted, and returns how many
// messages it had acknowledged by then.
func (c *RestartConfig) fill(ctx context.Context, dir string, size int64, kill bool) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	cmd := c.Child(ctx)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	err = json.NewEncoder(in).Encode(ChildConfig{Dir: dir, Seed: c.Seed, Size: c.Size, SegmentSize: c.SegmentSize,
		DiskFloor: c.DiskFloor, Until: size, Kill: kill})
	err = errors.Join(err, in.Close())
	var said ready
	lines := bufio.NewReader(out)
	line, readErr := lines.ReadBytes('\n')
	if readErr == nil {
		readErr = json.Unmarshal(line, &said)
	}
	if kill && readErr == nil {
		// Into the midst of its next appends.
		time.AfterFunc(20*time.Millisecond, func() { _ = cmd.Process.Kill() })
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil || json.Unmarshal(line, &said) != nil {
				break // what it was saying when it was killed does not count
			}
		}
	} else if readErr != nil {
		_ = cmd.Process.Kill()
	}
	waitErr := cmd.Wait()
	if kill && readErr == nil {
		waitErr = nil // it was killed, as it should
	}
	if err = errors.Join(err, readErr, waitErr); err != nil {
		return 0, fmt.Errorf("the process that fills the store: %w", err)
	}
	return said.Acked, nil
}

// openOnce opens the store and appends a message; it returns the queue's end
// behind that.
func (c *RestartConfig) openOnce(ctx context.Context, dir string, open, first load.Histogram) (int64, error) {
	bodies := load.NewBodies(c.Seed, load.FixedSize(c.Size))
	start := time.Now()
	store, err := stratalog.Open(ctx, stratalog.Options{Dir: dir, SegmentSize: c.SegmentSize, DiskFloor: c.DiskFloor,
		MaxMessageSize: max(c.Size, 4<<20)})
	if err != nil {
		return 0, err
	}
	open.Record(time.Since(start))
	if err := store.Start(ctx); err != nil {
		return 0, errors.Join(err, closeStore(store))
	}
	_, seq := store.QueueRange(restartTopic, 0)
	body := bodies.Make(nil, seq)
	_, err = store.Append(ctx, &stratalog.Message{Topic: restartTopic, Body: body, Flag: int32(seq)}, stratalog.Sync)
	first.Record(time.Since(start))
	return seq + 1, errors.Join(err, closeStore(store))
}

// readBack compares all messages; acked of them must be there.
func (c *RestartConfig) readBack(ctx context.Context, run *load.Run, dir string, acked int64) error {
	start := time.Now()
	r, err := stratalog.OpenReader(ctx, stratalog.Options{Dir: dir}, stratalog.ReaderOptions{})
	if err != nil {
		return err
	}
	defer r.Close()
	bodies := load.NewBodies(c.Seed, load.FixedSize(c.Size))
	v, next := &run.Verified, int64(0)
	var out stratalog.Records
	err = readQueue(ctx, r, restartTopic, 0, 0, &out, func(rec *stratalog.Record) error {
		if int64(rec.Flag()) == next && rec.QueueOffset() == next && bodies.Check(rec.Body(), next) {
			v.Records++
		} else if v.Wrong++; v.First == "" {
			v.First = fmt.Sprintf("%s at %d: not what was sent", dir, next)
		}
		next++
		return nil
	})
	if err == nil && next < acked {
		v.Missing += acked - next
		if v.First == "" {
			v.First = fmt.Sprintf("%s: %d messages, %d were acknowledged", dir, next, acked)
		}
	}
	v.Seconds += time.Since(start).Seconds()
	return err
}
