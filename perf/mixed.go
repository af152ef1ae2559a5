package perf

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/perf/load"
)

// MixedConfig describes everything at once.
type MixedConfig struct {
	TailConfig
	// Backlog is how many messages are appended first, for the scan to read;
	// the page cache is asked to forget them.
	Backlog int64
	// ScanRate bounds the scan in bytes of bodies a second; 0 does not.
	ScanRate int64
	// Keep is how many bytes of log retention leaves; 0 keeps all. It looks
	// every RetainEvery, 0 for a second.
	Keep        int64
	RetainEvery time.Duration
}

// Validate checks the numbers.
func (c *MixedConfig) Validate() error {
	switch {
	case c.Keep < 0 || c.Backlog < 0 || c.ScanRate < 0:
		return fmt.Errorf("keep, backlog, scan rate: %d, %d and %d must not be negative", c.Keep, c.Backlog, c.ScanRate)
	case c.Followers < 1:
		return errors.New("followers: at least one has to see every message, since retention takes them")
	case c.Load.WarmupDuration != 0:
		return errors.New("warm-up: the backlog is this workload's, and it is a number of messages")
	}
	return c.TailConfig.Validate()
}

// backlogAsync is how many messages of the backlog each producer has on its way.
const backlogAsync = 64

// RunMixed appends, with followers at the tail, while one reader scans all
// queues from their start over and over, with a cold cache at first, and
// retention takes the oldest segments. See RunAppend for what it returns.
func RunMixed(ctx context.Context, cfg MixedConfig) (run *load.Run, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Load.Starts = load.NewStarts()
	cfg.Load.Warmup += cfg.Backlog
	cfg.Load.WarmupAsync = max(cfg.Load.Async, backlogAsync)
	s, err := open(ctx, &cfg.Config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	run = s.newRun("mixed", load.Param{Name: "followers", Value: fmt.Sprint(cfg.Followers)}, load.Param{Name: "batch", Value: fmt.Sprint(cfg.Batch)},
		load.Param{Name: "backlog", Value: fmt.Sprint(cfg.Backlog)}, load.Param{Name: "keep", Value: fmt.Sprint(cfg.Keep)},
		load.Param{Name: "scan rate", Value: fmt.Sprint(cfg.ScanRate)})

	starts := s.ends()
	if err := s.warmup(ctx); err != nil {
		return nil, err
	}
	// Opened anew: what is mapped stays cached.
	if err := s.reopen(ctx, true); err != nil {
		return nil, err
	}
	m := s.begin(run)
	tail := s.follow(ctx, s.ends(), cfg.Followers, cfg.Batch)
	side, stop := context.WithCancel(ctx)
	defer stop()
	scan, keep := newScanner(s, starts, cfg.ScanRate), &retention{s: s, keep: cfg.Keep, every: cfg.RetainEvery}
	var wg sync.WaitGroup
	wg.Go(func() { scan.run(side) })
	wg.Go(func() { keep.run(side) })
	op, err := s.gen.Run(ctx, "mixed")
	stop()
	wg.Wait()
	run.Ops = append(run.Ops, op)
	run.Ops[0].Name = "append"
	m.end()
	if err == nil {
		err = m.settle(ctx)
	}
	ops, checks, tailErr := tail.finish(err == nil)
	run.Ops = append(append(run.Ops, ops...), scan.op())
	if err = errors.Join(err, tailErr, scan.err, keep.err); err != nil && !isDamage(err) {
		return interrupted(run, err)
	}
	run.Notes = append(run.Notes,
		fmt.Sprintf("retention ran %d times and removed %d bytes of log and %d queue files", keep.runs, keep.bytes, keep.queueFiles),
		fmt.Sprintf("the scan checked %d records, and came to the end of the queues %d times", scan.right+scan.wrong, scan.rounds))
	for _, f := range checks {
		// They began behind the backlog, so they do not miss it. It is a number
		// of messages of each producer.
		for p := range int64(s.cfg.Load.Producers) {
			for i := range s.warm[p] {
				f.check.mark(i*int64(s.cfg.Load.Producers) + p)
			}
		}
	}
	run, err = s.verify(ctx, run, starts, checks, err)
	v := &run.Verified
	v.How = "by the scan; " + v.How
	v.Wrong += scan.wrong
	if fault := keep.fault(); fault != "" {
		v.Wrong++
		scan.note(fault)
	}
	if v.First == "" {
		v.First = scan.first
	}
	v.OK = v.OK && v.Wrong == 0
	return run, err
}

// scanner reads all queues from their start, again and again.
type scanner struct {
	s      *session
	starts []int64
	rate   int64
	start  time.Time
	all    *load.Recorder
	line   *load.Timeline

	rounds         int
	records, bytes int64
	right, wrong   int64
	first          string
	ended          time.Time
	err            error
	out            stratalog.Records
}

func newScanner(s *session, starts []int64, rate int64) *scanner {
	c := &scanner{s: s, starts: starts, rate: rate, start: time.Now()}
	c.line = load.NewTimeline(c.start, load.Interval)
	c.all = load.NewRecorder(c.line)
	return c
}

func (c *scanner) run(ctx context.Context) {
	defer c.out.Release()
	for ctx.Err() == nil && c.err == nil {
		before := c.records
		for queue, from := range c.starts {
			if c.err = c.queue(ctx, queue, from); c.err != nil {
				break
			}
		}
		if ctx.Err() == nil {
			c.rounds++
		}
		if c.records == before && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond) // nothing there yet
		}
	}
	c.ended = time.Now()
	if ctx.Err() != nil {
		c.err = nil
	}
}

// queue reads one queue up to its end.
func (c *scanner) queue(ctx context.Context, queue int, next int64) error {
	topic, id := c.s.queue(queue)
	for ctx.Err() == nil {
		begin := time.Now()
		if err := c.s.store.Get(ctx, stratalog.Request{Topic: topic, QueueID: id, Offset: next, MaxCount: readBatch}, &c.out); err != nil {
			return err
		}
		end := time.Now()
		if c.out.Status == contract.GetOffsetTooSmall {
			next = c.out.Next
			continue
		}
		if atEnd(c.out.Status) {
			return nil
		}
		c.all.Add(end.Sub(begin), int64(c.out.Len()), end)
		for i := range c.out.Len() {
			c.check(c.out.At(i), queue, next+int64(i))
		}
		next = c.out.Next
		c.pace()
	}
	return nil
}

// pace sleeps if the scan is ahead of its rate.
func (c *scanner) pace() {
	if c.rate > 0 {
		time.Sleep(time.Duration(float64(c.bytes)/float64(c.rate)*1e9) - time.Since(c.start))
	}
}

// check looks at one record by itself: the scan sees each many times.
func (c *scanner) check(rec *stratalog.Record, queue int, offset int64) {
	seq := int64(rec.Flag())
	c.records, c.bytes = c.records+1, c.bytes+int64(len(rec.Body()))
	if rec.QueueOffset() == offset && seq >= 0 && c.s.queueOf(seq) == queue && c.s.cfg.Load.Bodies.Check(rec.Body(), seq) {
		c.right++
		return
	}
	c.wrong++
	topic, id := c.s.queue(queue)
	c.note(fmt.Sprintf("scan: %s/%d at %d: not what was sent", topic, id, offset))
}

// note keeps the first fault.
func (c *scanner) note(fault string) {
	if c.first == "" {
		c.first = fault
	}
}

// op is the scan as an operation: each Get of a batch is one.
func (c *scanner) op() load.Op {
	c.all.Flush()
	took := c.ended.Sub(c.start)
	return load.Op{Name: "scan", Arrivals: load.Closed.String(), Count: c.all.Count(), Records: c.records, Bytes: c.bytes, Seconds: took.Seconds(),
		RecordsPerSec: load.Rate(float64(c.records), took), MBPerSec: load.Rate(float64(c.bytes)/1e6, took),
		Latency: load.Summary(c.all.Histogram), Series: c.line.Points(c.ended)}
}

// retention removes the oldest segments.
type retention struct {
	s          *session
	keep       int64
	every      time.Duration
	runs       int
	bytes      int64
	queueFiles int
	least      int64 // bytes of log that a call left, if one took any
	err        error
}

// fault says what retention did that it should not.
func (r *retention) fault() string {
	if r.bytes > 0 && r.least < r.keep {
		return fmt.Sprintf("retention left %d bytes of log and should keep %d", r.least, r.keep)
	}
	return ""
}

func (r *retention) run(ctx context.Context) {
	if r.keep == 0 {
		return
	}
	if r.every == 0 {
		r.every = time.Second
	}
	tick := time.NewTicker(r.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		h := r.s.store.Health()
		gone, err := r.s.store.Retire(ctx, h.Watermarks.Appended-stratalog.Offset(r.keep))
		if err != nil {
			if ctx.Err() == nil {
				r.err = err
			}
			return
		}
		if left := int64(h.Watermarks.Appended - gone.MinOffset); gone.MinOffset > h.MinOffset && (r.bytes == 0 || left < r.least) {
			r.least = left
		}
		r.runs++
		r.bytes, r.queueFiles = r.bytes+int64(gone.MinOffset-h.MinOffset), r.queueFiles+gone.QueueFiles
	}
}
