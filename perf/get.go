package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/contract"
)

// GetConfig describes a read run over an existing store. It is read without its
// lock, so the owner may be at work.
type GetConfig struct {
	Dir string
	// Topic restricts the run to one topic, if not empty.
	Topic string
	// Count is how many records are read; a sequential run starts over at the
	// end.
	Count int64
	// Random reads at random places, else every queue is read from its start.
	Random bool
	// Batch is how many records each Get asks for.
	Batch int
	// Seed chooses the random places.
	Seed uint64
	// BodySeed, if not 0, is the seed of the append run that wrote the
	// records: each body is compared with it.
	BodySeed uint64
	// NoVerifyReads skips the checksum of each record, to see what it costs.
	NoVerifyReads bool
}

// Validate checks the numbers.
func (c GetConfig) Validate() error {
	switch {
	case c.Count < 1:
		return fmt.Errorf("count: %d is not positive", c.Count)
	case c.Batch < 1 || c.Batch > stratalog.MaxCount:
		return fmt.Errorf("batch: %d is not in 1..%d", c.Batch, stratalog.MaxCount)
	}
	return nil
}

// GetResult is what a read run did and how fast. An operation is one Get.
type GetResult struct {
	Order    string `json:"order"`
	Batch    int    `json:"batch"`
	Seed     uint64 `json:"seed"`
	Checksum bool   `json:"verified_reads"`
	Queues   int    `json:"queues"`

	Gets    int64 `json:"gets"`
	Records int64 `json:"records"`
	// Interrupted tells that the run ended before all records were read.
	Interrupted   bool    `json:"interrupted,omitempty"`
	Seconds       float64 `json:"seconds"`
	RecordsPerSec float64 `json:"records_per_s"`
	// MBPerSec counts bodies only, in 10^6 bytes.
	MBPerSec    float64 `json:"mb_per_s"`
	NsPerOp     float64 `json:"ns_per_op"`
	NsPerRecord float64 `json:"ns_per_record"`
	AllocsPerOp float64 `json:"allocs_per_op"`
	Latency     Latency `json:"latency_us"`
	// Verified counts the records that were found right: by their checksum,
	// their place and, with a body seed, their content.
	Verified   int64  `json:"verified"`
	Wrong      int64  `json:"wrong"`
	FirstWrong string `json:"first_wrong,omitempty"`
}

// Err returns a *WrongError if any record was wrong.
func (r *GetResult) Err() error {
	if r.Wrong == 0 {
		return nil
	}
	return &WrongError{Wrong: r.Wrong, First: r.FirstWrong}
}

// Table writes the result for people.
func (r *GetResult) Table(w io.Writer) error {
	return writeTable(w, append(interrupted(r.Interrupted), []row{
		{"order", fmt.Sprintf("%s over %d queues, %d records a get", r.Order, r.Queues, r.Batch)},
		{"records", fmt.Sprintf("%d in %d gets", r.Records, r.Gets)},
		{"rate", fmt.Sprintf("%.0f records/s, %.1f MB/s, %.3f s", r.RecordsPerSec, r.MBPerSec, r.Seconds)},
		{"per get", fmt.Sprintf("%.0f ns, %.3f allocations", r.NsPerOp, r.AllocsPerOp)},
		{"latency us", fmt.Sprintf("p50 %.1f  p99 %.1f  p99.9 %.1f  max %.1f  mean %.1f",
			r.Latency.P50, r.Latency.P99, r.Latency.P999, r.Latency.Max, r.Latency.Mean)},
		{"verified", fmt.Sprintf("%d (%d wrong)", r.Verified, r.Wrong)},
	}...))
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
func RunGet(ctx context.Context, cfg GetConfig, progress Progress) (res *GetResult, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	reader, err := stratalog.OpenReader(ctx, stratalog.Options{Dir: cfg.Dir, NoVerifyReads: cfg.NoVerifyReads}, stratalog.ReaderOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	run := &getRun{cfg: cfg, reader: reader, spans: spans(reader, cfg.Topic), progress: progress,
		rng: rand.New(rand.NewPCG(cfg.Seed, cfg.Seed^golden)), histogram: newHistogram()}
	if len(run.spans) == 0 {
		return nil, contract.NewError(contract.KindNotFound, contract.OpRead, contract.ComponentStore, "no queue holds a record", nil)
	}
	for _, s := range run.spans {
		run.total += s.end - s.first
	}
	if cfg.BodySeed != 0 {
		run.bodies = NewBodies(cfg.BodySeed, 64<<10)
	}
	return run.measure(ctx)
}

// getRun is one run over an open reader.
type getRun struct {
	cfg       GetConfig
	reader    getter
	spans     []queueSpan
	total     int64
	bodies    *Bodies
	progress  Progress
	rng       *rand.Rand
	histogram *hdrhistogram.Histogram

	// at is where a sequential run goes on: a span and an offset in it.
	at   int
	next int64

	res   GetResult
	bytes int64
}

// place returns where the next Get reads.
func (r *getRun) place() (queueSpan, int64) {
	if r.cfg.Random {
		n := r.rng.Int64N(r.total)
		for _, s := range r.spans {
			if n < s.end-s.first {
				return s, s.first + n
			}
			n -= s.end - s.first
		}
	}
	if r.next >= r.spans[r.at].end {
		r.at = (r.at + 1) % len(r.spans)
		r.next = 0
	}
	s := r.spans[r.at]
	return s, max(r.next, s.first)
}

func (r *getRun) measure(ctx context.Context) (*GetResult, error) {
	var out stratalog.Records
	defer out.Release()
	warm := min(1000, r.cfg.Count/10)
	for read := int64(0); read < warm; {
		n, err := r.get(ctx, &out, int(min(int64(r.cfg.Batch), warm-read)))
		if err != nil {
			return nil, err
		}
		read += n
	}
	r.at, r.next, r.bytes, r.res = 0, 0, 0, GetResult{}
	r.histogram.Reset()
	objects, start := mallocs(), time.Now()
	var err error
	for r.res.Records < r.cfg.Count {
		if err = ctx.Err(); err == nil {
			_, err = r.get(ctx, &out, int(min(int64(r.cfg.Batch), r.cfg.Count-r.res.Records)))
		}
		if err != nil {
			if ctx.Err() == nil {
				return nil, err
			}
			break
		}
		if r.res.Gets%4096 == 0 {
			r.progress.tell("get", r.res.Records, r.cfg.Count)
		}
	}
	took, allocated := time.Since(start), mallocs()-objects
	r.progress.tell("get", r.res.Records, r.cfg.Count)

	res := r.res
	res.Interrupted = err != nil
	res.Order, res.Batch, res.Seed, res.Checksum, res.Queues = "sequential", r.cfg.Batch, r.cfg.Seed, !r.cfg.NoVerifyReads, len(r.spans)
	if r.cfg.Random {
		res.Order = "random"
	}
	res.Seconds, res.RecordsPerSec, res.MBPerSec = took.Seconds(), rate(float64(res.Records), took), rate(float64(r.bytes)/1e6, took)
	res.NsPerOp, res.NsPerRecord = per(float64(took), res.Gets), per(float64(took), res.Records)
	res.AllocsPerOp, res.Latency = per(float64(allocated), res.Gets), summary([]*hdrhistogram.Histogram{r.histogram})
	return &res, err
}

// get does one Get of up to count records and checks them.
func (r *getRun) get(ctx context.Context, out *stratalog.Records, count int) (int64, error) {
	s, at := r.place()
	start := time.Now()
	err := r.reader.Get(ctx, stratalog.Request{Topic: s.topic, QueueID: s.queue, Offset: at, MaxCount: count}, out)
	record(r.histogram, time.Since(start))
	r.res.Gets++
	if err != nil {
		return 0, err
	}
	if out.Next <= at {
		return 0, contract.NewError(contract.KindUnavailable, contract.OpRead, contract.ComponentStore,
			fmt.Sprintf("%s/%d at %d: %v", s.topic, s.queue, at, out.Status), nil)
	}
	r.next = out.Next
	for i := range out.Len() {
		rec := out.At(i)
		r.bytes += int64(len(rec.Body()))
		if r.bodies != nil && len(rec.Body()) > r.bodies.maxSize {
			r.bodies = NewBodies(r.cfg.BodySeed, 2*len(rec.Body()))
		}
		switch {
		case rec.QueueOffset() != at+int64(i):
			r.wrong("%s/%d at %d: the record says %d", s.topic, s.queue, at+int64(i), rec.QueueOffset())
		case r.bodies != nil && !r.bodies.Check(rec.Body(), int64(rec.Flag())):
			r.wrong("%s/%d at %d: the body is not that of message %d", s.topic, s.queue, at+int64(i), rec.Flag())
		default:
			r.res.Verified++
		}
	}
	r.res.Records += int64(out.Len())
	return int64(out.Len()), nil
}

func (r *getRun) wrong(format string, args ...any) {
	if r.res.Wrong++; r.res.FirstWrong == "" {
		r.res.FirstWrong = fmt.Sprintf(format, args...)
	}
}
