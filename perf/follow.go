package perf

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/perf/load"
)

// TailConfig describes producers with followers behind them.
type TailConfig struct {
	Config
	// Followers is how many readers there are. Each reads every queue from
	// where it ended before the run, checks every record, and waits when there
	// is no more.
	Followers int
	// Batch is how many records a follower's Get asks for.
	Batch int
}

// Validate checks the numbers.
func (c *TailConfig) Validate() error {
	switch {
	case c.Followers < 0 || c.Followers > 1<<12:
		return fmt.Errorf("followers: %d is not in 0..%d", c.Followers, 1<<12)
	case c.Batch < 1 || c.Batch > stratalog.MaxCount:
		return fmt.Errorf("batch: %d is not in 1..%d", c.Batch, stratalog.MaxCount)
	}
	return c.Config.Validate()
}

// RunTail appends while followers read, and measures how long each message was
// under way: from when it was due to when a follower had it, checksum checked.
// See RunAppend for what it returns.
func RunTail(ctx context.Context, cfg TailConfig) (run *load.Run, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Load.Starts = load.NewStarts()
	s, err := open(ctx, &cfg.Config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	run = s.newRun("tail", load.Param{Name: "followers", Value: fmt.Sprint(cfg.Followers)}, load.Param{Name: "batch", Value: fmt.Sprint(cfg.Batch)})

	starts := s.ends()
	if err := s.warmup(ctx); err != nil {
		return nil, err
	}
	m := s.begin(run)
	tail := s.follow(ctx, starts, cfg.Followers, cfg.Batch)
	op, err := s.gen.Run(ctx, "tail")
	run.Ops = append(run.Ops, op)
	run.Ops[0].Name = "append"
	m.end()
	if err == nil {
		err = m.settle(ctx)
	}
	ops, checks, tailErr := tail.finish(err == nil)
	run.Ops = append(run.Ops, ops...)
	if err = errors.Join(err, tailErr); err != nil && !isDamage(err) {
		return interrupted(run, err)
	}
	return s.verify(ctx, run, starts, checks, err)
}

// tally sums up what the followers missed, or found wrong.
func tally(checks []*follower) (v load.Verify) {
	for _, f := range checks {
		c := f.check
		c.wrong += c.unsent()
		// Retention took so many before they were read; no more can be excused.
		missing := c.missing()
		retired := min(missing, f.skipped)
		missing, v.Retired = missing-retired, v.Retired+retired
		v.Wrong, v.Missing = v.Wrong+c.wrong, v.Missing+missing
		if v.First == "" && (c.wrong > 0 || missing > 0) {
			v.First = c.first
		}
	}
	v.OK = v.Wrong == 0 && v.Missing == 0
	return v
}

// tailing is the followers of a run.
type tailing struct {
	s         *session
	followers []*follower
	line      *load.Timeline
	start     time.Time
	wg        sync.WaitGroup
	// goal is the end of the log when the producers were done.
	goal atomic.Int64
	wait context.Context // ends when goal is set
	done context.CancelFunc
	stop context.CancelFunc
}

// follow starts followers that read every queue, from starts on. Messages that
// are there already are checked and not timed.
func (s *session) follow(ctx context.Context, starts []int64, n, batch int) *tailing {
	t := &tailing{s: s, start: time.Now()}
	t.line = load.NewTimeline(t.start, load.Interval)
	t.goal.Store(math.MaxInt64)
	ctx, t.stop = context.WithCancel(ctx)
	t.wait, t.done = context.WithCancel(ctx)
	warm := s.ends()
	for range n {
		f := &follower{t: t, batch: batch, next: append([]int64(nil), starts...), timed: warm, check: newChecker(s), all: load.NewRecorder(t.line)}
		t.followers = append(t.followers, f)
		t.wg.Go(func() { f.err = f.run(ctx) })
	}
	return t
}

// finish lets the followers read to the end, or stops them, and returns what
// they measured.
func (t *tailing) finish(toTheEnd bool) ([]load.Op, []*follower, error) {
	t.goal.Store(int64(t.s.store.Health().Watermarks.Appended))
	if !toTheEnd {
		t.stop()
	}
	t.done()
	t.wg.Wait()
	t.stop()
	if len(t.followers) == 0 {
		return nil, nil, nil
	}
	end := time.Now()
	op := load.Op{Name: "tail"}
	var all []load.Histogram
	var err error
	for _, f := range t.followers {
		f.all.Flush()
		all = append(all, f.all.Histogram)
		op.Records, op.Bytes = op.Records+f.all.Count(), op.Bytes+f.bytes
		if toTheEnd {
			err = errors.Join(err, f.err)
		}
	}
	took := end.Sub(t.start)
	op.Count, op.Seconds, op.Latency, op.Series = op.Records, took.Seconds(), load.Summary(all...), t.line.Points(end)
	op.RecordsPerSec, op.MBPerSec = load.Rate(float64(op.Records), took), load.Rate(float64(op.Bytes)/1e6, took)
	return []load.Op{op}, t.followers, err
}

// follower reads all queues.
type follower struct {
	t     *tailing
	batch int
	next  []int64
	timed []int64 // from which offset on, of each queue
	check *checker
	all   *load.Recorder
	bytes int64
	// skipped counts offsets that retention took before they were read.
	skipped int64
	err     error
}

func (f *follower) run(ctx context.Context) error {
	var out stratalog.Records
	defer out.Release()
	seen := stratalog.Offset(0)
	for {
		// Asked before the queues are looked at: what is there now will be found.
		last := int64(f.t.s.store.Health().Frontier) >= f.t.goal.Load()
		found, end, err := f.pass(ctx, &out)
		if err != nil {
			return err
		}
		seen = max(seen, end)
		if found {
			continue
		}
		if last {
			return nil
		}
		// What came while the queues were looked at ends above seen.
		if err := f.t.s.store.WaitVisible(f.t.wait, seen+1); err != nil {
			if ctx.Err() != nil || f.t.wait.Err() == nil {
				return err
			}
			continue // the producers are done
		}
		if found, end, err = f.pass(ctx, &out); err != nil {
			return err
		} else if seen = max(seen, end); !found {
			seen = max(seen, f.t.s.store.Health().Frontier) // the end of a segment
		}
	}
}

// pass reads from each queue once, and returns whether it found anything, and
// the highest end of what it found.
func (f *follower) pass(ctx context.Context, out *stratalog.Records) (found bool, end stratalog.Offset, err error) {
	s := f.t.s
	for queue := range f.next {
		topic, id := s.queue(queue)
		err := s.store.Get(ctx, stratalog.Request{Topic: topic, QueueID: id, Offset: f.next[queue], MaxCount: f.batch}, out)
		if err != nil {
			return found, end, err
		}
		if out.Status == contract.GetOffsetTooSmall {
			f.skipped += out.Next - f.next[queue]
			f.next[queue], found = out.Next, true
			continue
		}
		if atEnd(out.Status) || out.Len() == 0 {
			continue
		}
		found = true
		now := time.Now()
		for i := range out.Len() {
			rec, offset := out.At(i), f.next[queue]+int64(i)
			f.check.record(rec, queue, offset)
			end = max(end, stratalog.Offset(rec.PhysicalOffset())+stratalog.Offset(rec.TotalSize()))
			if offset >= f.timed[queue] {
				f.all.Add(s.cfg.Load.Starts.Since(int64(rec.Flag()), now), 1, now)
				f.bytes += int64(len(rec.Body()))
			}
		}
		f.next[queue] = out.Next
	}
	return found, end, nil
}
