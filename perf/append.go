package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/codec"
)

// AppendConfig describes an append run.
type AppendConfig struct {
	// Dir is the store, made if it is not there.
	Dir string
	// Records is how many messages are appended and measured, at most
	// 2^31-1. Warmup more come first, unmeasured.
	Records int64
	Warmup  int64
	// Size is the length of each body.
	Size int
	// Producers is how many goroutines append.
	Producers int
	// Async, if not 0, makes each producer go on while up to so many of its
	// messages wait for their answer. 0 waits for each.
	Async int
	// Topics and Queues spread the messages; each topic has Queues queues.
	Topics int
	Queues int
	// Durability, WritePath and SegmentSize are as in stratalog.Options.
	Durability  stratalog.Durability
	WritePath   stratalog.WritePath
	SegmentSize int64
	// DiskFloor is as in stratalog.Options.
	DiskFloor int64
	// Seed makes the bodies.
	Seed uint64
	// Opened, if not nil, is called with what opening the store found and did.
	Opened func(stratalog.LoadReport)
}

// Validate checks the numbers.
func (c AppendConfig) Validate() error {
	switch {
	case c.Records < 1 || c.Records > math.MaxInt32:
		return fmt.Errorf("records: %d is not in 1..%d", c.Records, math.MaxInt32)
	case c.Warmup < 0 || c.Warmup > math.MaxInt32:
		return fmt.Errorf("warmup: %d is not in 0..%d", c.Warmup, math.MaxInt32)
	case c.Size < 0 || c.Size > 1<<29:
		return fmt.Errorf("size: %d is not in 0..%d", c.Size, 1<<29)
	case c.Producers < 1 || c.Producers > 1<<16:
		return fmt.Errorf("producers: %d is not in 1..%d", c.Producers, 1<<16)
	case c.Async < 0 || c.Async > 1<<20:
		return fmt.Errorf("async: %d is not in 0..%d", c.Async, 1<<20)
	case c.Topics < 1 || c.Queues < 1 || int64(c.Topics)*int64(c.Queues) > 1<<20:
		return fmt.Errorf("topics, queues: %d x %d is not in 1..%d queues", c.Topics, c.Queues, 1<<20)
	}
	return nil
}

// AppendResult is what an append run did and how fast.
type AppendResult struct {
	Durability string `json:"durability"`
	WritePath  string `json:"write_path"`
	Producers  int    `json:"producers"`
	Async      int    `json:"async"`
	Topics     int    `json:"topics"`
	Queues     int    `json:"queues"`
	Size       int    `json:"size"`
	Seed       uint64 `json:"seed"`

	// Interrupted tells that the run ended early: Records is what was appended
	// by then, and it was not, or not wholly, read back.
	Interrupted   bool    `json:"interrupted,omitempty"`
	Records       int64   `json:"records"`
	Seconds       float64 `json:"seconds"`
	RecordsPerSec float64 `json:"records_per_s"`
	// MBPerSec counts bodies only, in 10^6 bytes.
	MBPerSec float64 `json:"mb_per_s"`
	// VisibleSeconds is Seconds plus the wait until every message was durable
	// and could be found through its queue.
	VisibleSeconds float64 `json:"visible_seconds"`
	Latency        Latency `json:"latency_us"`

	// Syncs, Commits, Writes and Rolls are those of the log during Seconds.
	Syncs   int64 `json:"syncs"`
	Commits int64 `json:"commits"`
	Writes  int64 `json:"writes"`
	Rolls   int64 `json:"rolls"`
	// AllocsPerRecord counts the whole process, generator and lanes too.
	AllocsPerRecord float64 `json:"allocs_per_record"`
	// DiskBytesPerRecord is what a message takes of the log, with its share of
	// unused segment ends, and of its queue.
	DiskBytesPerRecord float64 `json:"disk_bytes_per_record"`

	// Verified is how many messages were read back through their queues and
	// found right; ReadSeconds how long that took.
	Verified    int64   `json:"verified"`
	ReadSeconds float64 `json:"read_seconds"`
	Missing     int64   `json:"missing"`
	Wrong       int64   `json:"wrong"`
	FirstWrong  string  `json:"first_wrong,omitempty"`
}

// Err returns a *WrongError if anything was missing or wrong.
func (r *AppendResult) Err() error {
	if r.Missing == 0 && r.Wrong == 0 {
		return nil
	}
	return &WrongError{Missing: r.Missing, Wrong: r.Wrong, First: r.FirstWrong}
}

// Table writes the result for people.
func (r *AppendResult) Table(w io.Writer) error {
	return writeTable(w, append(interrupted(r.Interrupted), []row{
		{"durability", r.Durability}, {"write path", r.WritePath},
		{"producers", fmt.Sprintf("%d (async %d)", r.Producers, r.Async)},
		{"queues", fmt.Sprintf("%d topics x %d", r.Topics, r.Queues)},
		{"body", fmt.Sprintf("%d bytes, seed %d", r.Size, r.Seed)},
		{"records", r.Records},
		{"rate", fmt.Sprintf("%.0f records/s, %.1f MB/s, %.3f s (%.3f s until all visible)",
			r.RecordsPerSec, r.MBPerSec, r.Seconds, r.VisibleSeconds)},
		{"latency us", fmt.Sprintf("p50 %.1f  p99 %.1f  p99.9 %.1f  max %.1f  mean %.1f",
			r.Latency.P50, r.Latency.P99, r.Latency.P999, r.Latency.Max, r.Latency.Mean)},
		{"log", fmt.Sprintf("%d syncs, %d commits, %d writes, %d rolls", r.Syncs, r.Commits, r.Writes, r.Rolls)},
		{"allocations", fmt.Sprintf("%.3f per record", r.AllocsPerRecord)},
		{"disk", fmt.Sprintf("%.1f bytes per record", r.DiskBytesPerRecord)},
		{"verified", fmt.Sprintf("%d of %d read back and compared in %.3f s (%d missing, %d wrong)",
			r.Verified, r.Records, r.ReadSeconds, r.Missing, r.Wrong)},
	}...))
}

// admissionWait is how long a generator waits for room: its own load is what
// fills the store, so a wait is no failure.
const admissionWait = time.Minute

// RunAppend opens the store, appends, reads everything back, compares it, and
// closes the store. The error says that the run could not be done; see
// AppendResult.Err for what was found wrong. If ctx ends once the store is open,
// both are returned: what was measured by then, marked as interrupted, and the
// error.
func RunAppend(ctx context.Context, cfg AppendConfig, progress Progress) (res *AppendResult, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	store, err := openStarted(ctx, stratalog.Options{Dir: cfg.Dir, SegmentSize: cfg.SegmentSize, Durability: cfg.Durability,
		WritePath: cfg.WritePath, MaxMessageSize: max(cfg.Size, 4<<20), AdmissionWait: admissionWait, SyncTimeout: admissionWait,
		DiskFloor: cfg.DiskFloor}, cfg.Opened)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeStore(store)) }()

	run := newAppendRun(store, cfg, progress)
	if cfg.Warmup > 0 {
		if err := run.append(ctx, "warm-up", cfg.Warmup, nil); err != nil {
			if ctx.Err() == nil {
				return nil, err
			}
			res := run.result() // nothing was measured yet
			res.Interrupted = true
			return res, err
		}
	}
	return run.measure(ctx)
}

func openStarted(ctx context.Context, opt stratalog.Options, opened func(stratalog.LoadReport)) (*stratalog.Store, error) {
	store, err := stratalog.Open(ctx, opt)
	if err != nil {
		return nil, err
	}
	if opened != nil {
		opened(store.Report())
	}
	if err := store.Start(ctx); err != nil {
		return nil, errors.Join(err, closeStore(store))
	}
	return store, nil
}

// closeStore closes within a minute, also after the run was interrupted.
func closeStore(store *stratalog.Store) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := store.Close(ctx)
	return err
}

// appendRun is one run over an open store.
type appendRun struct {
	store    *stratalog.Store
	cfg      AppendConfig
	bodies   *Bodies
	topics   []string
	progress Progress

	// stop makes producers end: the run was interrupted or an append failed.
	stop atomic.Bool
	// appended counts, in steps, for the progress; end is the highest end of a
	// record.
	appended atomic.Int64
	end      atomic.Int64
}

func newAppendRun(store *stratalog.Store, cfg AppendConfig, progress Progress) *appendRun {
	r := &appendRun{store: store, cfg: cfg, bodies: NewBodies(cfg.Seed, cfg.Size), progress: progress}
	for i := range cfg.Topics {
		r.topics = append(r.topics, fmt.Sprintf("bench%d", i))
	}
	return r
}

// result returns a result that says how the run was configured.
func (r *appendRun) result() *AppendResult {
	c := r.cfg
	return &AppendResult{Durability: c.Durability.String(), WritePath: r.store.Health().WritePath.String(), Producers: c.Producers,
		Async: c.Async, Topics: c.Topics, Queues: c.Queues, Size: c.Size, Seed: c.Seed}
}

// measure appends the records, waits until they are visible, and reads them
// back.
func (r *appendRun) measure(ctx context.Context) (*AppendResult, error) {
	if err := r.waitVisible(ctx); err != nil {
		return nil, err
	}
	starts := r.queueEnds()
	before, objects := r.store.Health(), mallocs()
	histograms := make([]*hdrhistogram.Histogram, r.cfg.Producers)
	for i := range histograms {
		histograms[i] = newHistogram()
	}
	start := time.Now()
	err := r.append(ctx, "append", r.cfg.Records, histograms)
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	took := time.Since(start)
	after, allocated := r.store.Health(), mallocs()-objects
	if err == nil {
		if err = r.waitVisible(ctx); err != nil && ctx.Err() == nil {
			return nil, err
		}
	}
	visible := time.Since(start)

	records := int64(0) // fewer than were asked for if interrupted
	for _, h := range histograms {
		records += h.TotalCount()
	}
	c, n := r.cfg, float64(records)
	res := r.result()
	res.Interrupted, res.Records = err != nil, records
	res.Seconds, res.VisibleSeconds = took.Seconds(), visible.Seconds()
	res.RecordsPerSec, res.MBPerSec, res.Latency = rate(n, took), rate(n*float64(c.Size)/1e6, took), summary(histograms)
	res.Syncs, res.Commits = after.Stats.Syncs-before.Stats.Syncs, after.Stats.Commits-before.Stats.Commits
	res.Writes, res.Rolls = after.Stats.Writes-before.Stats.Writes, after.Stats.Rolls-before.Stats.Rolls
	res.AllocsPerRecord = per(float64(allocated), records)
	grown := float64(after.Watermarks.Appended - before.Watermarks.Appended)
	res.DiskBytesPerRecord = per(grown, records) + codec.QueueUnitSize
	if err != nil {
		return res, err
	}

	start = time.Now()
	check := newReadBack(r, starts)
	if err = check.all(ctx); err != nil && ctx.Err() == nil {
		return nil, err
	}
	res.ReadSeconds, res.Interrupted = time.Since(start).Seconds(), err != nil
	res.Verified, res.Wrong, res.FirstWrong = check.verified, check.wrong, check.first
	if err == nil {
		res.Missing = c.Records - check.found
	}
	return res, err
}

// waitVisible waits until all that was appended can be read.
func (r *appendRun) waitVisible(ctx context.Context) error {
	if end := r.end.Load(); end > 0 {
		return r.store.WaitVisible(ctx, stratalog.Offset(end-1))
	}
	return nil
}

// queueEnds returns the end of each queue, in the order of queueOf.
func (r *appendRun) queueEnds() []int64 {
	ends := make([]int64, 0, len(r.topics)*r.cfg.Queues)
	for _, topic := range r.topics {
		for q := range r.cfg.Queues {
			_, end := r.store.QueueRange(topic, int32(q))
			ends = append(ends, end)
		}
	}
	return ends
}

// share returns the sequence numbers [from, to) of a producer.
func share(records int64, producers, p int) (from, to int64) {
	return records * int64(p) / int64(producers), records * int64(p+1) / int64(producers)
}

// queueOf returns the queue of message seq, as an index.
func (r *appendRun) queueOf(seq int64) int {
	return int(seq % int64(len(r.topics)*r.cfg.Queues))
}

// append runs the producers over records messages. Latencies go to histograms,
// one a producer, unless nil.
func (r *appendRun) append(ctx context.Context, phase string, records int64, histograms []*hdrhistogram.Histogram) error {
	r.appended.Store(0)
	defer context.AfterFunc(ctx, func() { r.stop.Store(true) })()
	stopTelling := r.tellProgress(phase, records)
	defer stopTelling()

	errs := make([]error, r.cfg.Producers)
	var wg sync.WaitGroup
	for p := range r.cfg.Producers {
		from, to := share(records, r.cfg.Producers, p)
		h := newHistogram()
		if histograms != nil {
			h = histograms[p]
		}
		wg.Go(func() {
			if r.cfg.Async > 0 {
				errs[p] = r.produceAsync(ctx, from, to, h)
			} else {
				errs[p] = r.produce(ctx, from, to, h)
			}
			if errs[p] != nil {
				r.stop.Store(true)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// tellProgress reports every 100 ms until the function it returns is called.
func (r *appendRun) tellProgress(phase string, total int64) (end func()) {
	if r.progress == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				r.progress.tell(phase, r.appended.Load(), total)
			}
		}
	}()
	return func() {
		close(done)
		<-ended
		r.progress.tell(phase, r.appended.Load(), total)
	}
}
