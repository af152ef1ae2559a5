package perf

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/perf/load"
)

// GetConfig describes a read run over an existing store. It is read without its
// lock, so the owner may be at work.
type GetConfig struct {
	Dir string
	// Topic restricts the run to one topic, if not empty.
	Topic string
	// Count is how many records are read, 0 to read for Duration; a
	// sequential run starts over at the end.
	Count    int64
	Duration time.Duration
	// Random reads at random places, else every queue is read from its start,
	// by several readers each a part of the queues.
	Random bool
	// Batch is how many records each Get asks for.
	Batch int
	// Readers is how many goroutines read.
	Readers int
	// Seed chooses the random places.
	Seed uint64
	// BodySeed, if not 0, is the seed of the append run that wrote the
	// records, and Sizes its sizes: each body is compared.
	BodySeed uint64
	Sizes    load.Sizes
	// NoVerifyReads skips the checksum of each record, to see what it costs.
	NoVerifyReads bool
	// Progress, if not nil, is told how far the run is.
	Progress load.Progress
}

// Validate checks the numbers.
func (c *GetConfig) Validate() error {
	switch {
	case c.Count < 0 || c.Duration < 0:
		return fmt.Errorf("count, duration: %d and %v must not be negative", c.Count, c.Duration)
	case c.Count == 0 && c.Duration == 0:
		return errors.New("neither a count nor a duration is given")
	case c.Count > 0 && c.Duration != 0:
		return errors.New("a count and a duration exclude each other")
	case c.Batch < 1 || c.Batch > stratalog.MaxCount:
		return fmt.Errorf("batch: %d is not in 1..%d", c.Batch, stratalog.MaxCount)
	case c.Readers < 1 || c.Readers > 1<<10:
		return fmt.Errorf("readers: %d is not in 1..%d", c.Readers, 1<<10)
	}
	return nil
}

// queueSpan is a queue with its live offsets.
type queueSpan struct {
	topic      string
	queue      int32
	first, end int64
}

// spans returns the queues that hold anything.
func spans(g getter, topic string) []queueSpan {
	topics := g.Topics()
	if topic != "" {
		topics = []string{topic}
	}
	var all []queueSpan
	for _, t := range topics {
		for _, q := range g.Queues(t) {
			if first, end := g.QueueRange(t, q); end > first {
				all = append(all, queueSpan{t, q, first, end})
			}
		}
	}
	return all
}

// RunGet reads, with verified reads, and reports the rate. If ctx ends while it
// measures, both are returned: what was measured by then, and the error.
func RunGet(ctx context.Context, cfg GetConfig) (run *load.Run, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r, err := stratalog.OpenReader(ctx, stratalog.Options{Dir: cfg.Dir, NoVerifyReads: cfg.NoVerifyReads}, stratalog.ReaderOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	all := spans(r, cfg.Topic)
	if len(all) == 0 {
		return nil, contract.NewError(contract.KindNotFound, contract.OpRead, contract.ComponentStore, "no queue holds a record", nil)
	}
	g := &getRun{cfg: cfg, store: r, spans: all}
	for _, s := range all {
		g.total += s.end - s.first
	}
	if cfg.BodySeed != 0 {
		g.bodies = load.NewBodies(cfg.BodySeed, cfg.Sizes)
	}
	return g.measure(ctx)
}

// getRun is one run over an open reader.
type getRun struct {
	cfg    GetConfig
	store  getter
	spans  []queueSpan
	total  int64
	bodies *load.Bodies

	began time.Time
	read  atomic.Int64 // for the progress
}

// newRun returns a run that says how it was configured.
func (g *getRun) newRun() *load.Run {
	c, order := g.cfg, "sequential"
	if c.Random {
		order = "random"
	}
	how := "checksum and place of every record"
	if c.NoVerifyReads {
		how = "place of every record"
	}
	if g.bodies != nil {
		how += ", every byte of the body"
	}
	return &load.Run{Schema: load.Schema, Engine: "stratalog", Workload: "get", Started: time.Now().UTC(), Env: load.Environment(c.Dir), Seed: c.Seed,
		Promise: "reads only what is durable", Verified: load.Verify{How: how},
		Config: []load.Param{{Name: "order", Value: order}, {Name: "readers", Value: strconv.Itoa(c.Readers)}, {Name: "batch", Value: strconv.Itoa(c.Batch)},
			{Name: "checksums", Value: strconv.FormatBool(!c.NoVerifyReads)}, {Name: "queues", Value: strconv.Itoa(len(g.spans))},
			{Name: "records in the store", Value: strconv.FormatInt(g.total, 10)}}}
}

func (g *getRun) measure(ctx context.Context) (*load.Run, error) {
	run := g.newRun()
	warm := &getWorker{g: g, rng: rand.New(rand.NewPCG(g.cfg.Seed, 0)), all: load.NewRecorder(nil), step: 1}
	for warm.read < min(1000, g.total) {
		if _, err := warm.get(ctx, g.cfg.Batch); err != nil {
			return damaged(run, err)
		}
	}
	warm.out.Release()

	meter := load.StartMeter()
	g.began = time.Now()
	line := load.NewTimeline(g.began, load.Interval)
	stop := load.Telling(g.cfg.Progress, "get", &g.read, g.cfg.Count)
	workers := make([]*getWorker, min(g.cfg.Readers, len(g.spans)))
	if g.cfg.Random {
		workers = make([]*getWorker, g.cfg.Readers)
	}
	errs := make([]error, len(workers))
	var wg sync.WaitGroup
	for i := range workers {
		w := &getWorker{g: g, rng: rand.New(rand.NewPCG(g.cfg.Seed, uint64(i)+1)), all: load.NewRecorder(line), at: i, step: len(workers),
			limit: g.cfg.Count*int64(i+1)/int64(len(workers)) - g.cfg.Count*int64(i)/int64(len(workers))}
		workers[i] = w
		wg.Go(func() { errs[i] = w.run(ctx) })
	}
	wg.Wait()
	took, end := time.Since(g.began), time.Now()
	stop()

	op := load.Op{Name: "get", Arrivals: load.Closed.String(), Seconds: took.Seconds()}
	var all []load.Histogram
	for _, w := range workers {
		w.all.Flush()
		all = append(all, w.all.Histogram)
		op.Count, op.Records, op.Bytes = op.Count+w.all.Count(), op.Records+w.read, op.Bytes+w.bytes
		run.Verified.Records, run.Verified.Wrong = run.Verified.Records+w.right, run.Verified.Wrong+w.wrong
		if run.Verified.First == "" {
			run.Verified.First = w.first
		}
	}
	op.Latency, op.Series = load.Summary(all...), line.Points(end)
	op.RecordsPerSec, op.MBPerSec = load.Rate(float64(op.Records), took), load.Rate(float64(op.Bytes)/1e6, took)
	run.Ops, run.Usage = []load.Op{op}, meter.Stop(op.Records, op.Bytes)
	err := errors.Join(errs...)
	if err != nil && ctx.Err() == nil {
		return damaged(run, err)
	}
	run.Interrupted, run.Verified.OK = err != nil, err == nil && run.Verified.Wrong == 0
	return run, err
}

// damaged ends a run with an error: if that is damage, it is the run's outcome.
func damaged(run *load.Run, err error) (*load.Run, error) {
	if !isDamage(err) {
		return nil, err
	}
	run.Verified.Wrong++
	run.Verified.First = err.Error()
	return run, nil
}

// getWorker is one reader.
type getWorker struct {
	g   *getRun
	rng *rand.Rand
	out stratalog.Records
	all *load.Recorder

	// at and next are where a sequential run goes on: a span, every step-th of
	// which is this reader's, and an offset in it.
	at, step int
	next     int64

	limit        int64 // of records to read, if the run has one
	read, bytes  int64
	right, wrong int64
	first        string
}

func (w *getWorker) run(ctx context.Context) error {
	defer w.out.Release()
	for ctx.Err() == nil {
		batch := w.g.cfg.Batch
		if w.g.cfg.Count > 0 {
			batch = int(min(int64(batch), w.limit-w.read))
		} else if time.Since(w.g.began) >= w.g.cfg.Duration {
			batch = 0
		}
		if batch == 0 {
			return nil
		}
		n, err := w.get(ctx, batch)
		if err != nil {
			return err
		}
		w.g.read.Add(int64(n))
	}
	return ctx.Err()
}

// place returns where the next Get reads.
func (w *getWorker) place() (queueSpan, int64) {
	spans := w.g.spans
	if w.g.cfg.Random {
		n := w.rng.Int64N(w.g.total)
		for _, s := range spans {
			if n < s.end-s.first {
				return s, s.first + n
			}
			n -= s.end - s.first
		}
	}
	if w.next >= spans[w.at].end {
		if w.at += w.step; w.at >= len(spans) {
			w.at %= w.step
		}
		w.next = 0
	}
	s := spans[w.at]
	return s, max(w.next, s.first)
}

// get does one Get of up to count records and checks them.
func (w *getWorker) get(ctx context.Context, count int) (int, error) {
	s, at := w.place()
	start := time.Now()
	err := w.g.store.Get(ctx, stratalog.Request{Topic: s.topic, QueueID: s.queue, Offset: at, MaxCount: count}, &w.out)
	end := time.Now()
	if err != nil {
		return 0, err
	}
	w.all.Add(end.Sub(start), int64(w.out.Len()), end)
	if w.out.Next != at+int64(w.out.Len()) || w.out.Len() == 0 {
		return 0, contract.NewError(contract.KindUnavailable, contract.OpRead, contract.ComponentStore,
			fmt.Sprintf("%s/%d at %d: %v", s.topic, s.queue, at, w.out.Status), nil)
	}
	w.next = w.out.Next
	for i := range w.out.Len() {
		rec := w.out.At(i)
		w.bytes += int64(len(rec.Body()))
		switch {
		case rec.QueueOffset() != at+int64(i):
			w.fault("%s/%d at %d: the record says %d", s.topic, s.queue, at+int64(i), rec.QueueOffset())
		case w.g.bodies != nil && !w.g.bodies.Check(rec.Body(), int64(rec.Flag())):
			w.fault("%s/%d at %d: the body is not that of message %d", s.topic, s.queue, at+int64(i), rec.Flag())
		default:
			w.right++
		}
	}
	w.read += int64(w.out.Len())
	return w.out.Len(), nil
}

func (w *getWorker) fault(format string, args ...any) {
	if w.wrong++; w.first == "" {
		w.first = fmt.Sprintf(format, args...)
	}
}
