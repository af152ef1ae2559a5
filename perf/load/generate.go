package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Producer appends the messages of one producer. Its calls come from one
// goroutine.
type Producer interface {
	// Append appends body, message seq of the run, and returns when it is
	// acknowledged. body is valid until it returns.
	Append(ctx context.Context, seq int64, body []byte) error
}

// AsyncProducer can have many messages on their way.
type AsyncProducer interface {
	Producer
	// Slot returns a function that submits a message: it copies body and
	// returns, and done is called once, from any goroutine, when the message
	// is acknowledged or failed; not if the function fails. It is not called
	// again before done was.
	Slot(done func(error)) func(ctx context.Context, seq int64, body []byte) error
}

// Spec is a load.
type Spec struct {
	// Producers is how many goroutines send.
	Producers int
	// Async, if not 0, is how many messages of a producer may be on their way
	// at a time; their producers must be AsyncProducers.
	Async int
	// Arrivals and Rate (messages a second, all producers together, not for
	// Closed) say when.
	Arrivals Arrivals
	Rate     float64
	// Records, if not 0, is how many messages are measured; else Duration is
	// how long. In an open loop of some duration every message that is due in
	// it is sent, also late, but not later than as long again plus patience.
	Records  int64
	Duration time.Duration
	// Warmup is how many messages come first, unmeasured, in a closed loop with
	// WarmupAsync (0: Async) of each producer on their way; or WarmupDuration how
	// long the same load runs first.
	Warmup         int64
	WarmupAsync    int
	WarmupDuration time.Duration
	// Bodies makes message seq.
	Bodies *Bodies
	// Seed makes random arrivals.
	Seed uint64
	// Starts, if not nil, takes the time at which each message was due.
	Starts   *Starts
	Progress Progress
	// Begin and End, if not nil, are called when the clock of the measured
	// messages starts, once all is ready, and when the last was answered, before
	// anything is summed up.
	Begin, End func()
}

// Progress, if not nil, is called from time to time with how much of a phase is
// done; of a phase without a known end, total is 0. Calls come from one
// goroutine at a time.
type Progress func(phase string, done, total int64)

// Tell calls p unless it is nil.
func (p Progress) Tell(phase string, done, total int64) {
	if p != nil {
		p(phase, done, total)
	}
}

// patience is how much longer than it was to take an open loop may take.
const patience = 10 * time.Second

// maxSeq bounds the numbers of messages, which go into 31 bits.
const maxSeq = math.MaxInt32

// Validate checks the numbers.
func (s *Spec) Validate() error {
	switch {
	case s.Producers < 1 || s.Producers > 1<<16:
		return fmt.Errorf("producers: %d is not in 1..%d", s.Producers, 1<<16)
	case s.Async < 0 || s.Async > 1<<20 || s.WarmupAsync < 0 || s.WarmupAsync > 1<<20:
		return fmt.Errorf("async: %d, or %d in the warm-up, is not in 0..%d", s.Async, s.WarmupAsync, 1<<20)
	case s.Arrivals != Closed && !(s.Rate > 0 && s.Rate <= 1e9):
		return fmt.Errorf("rate: %v is not in 0..1e9 messages a second", s.Rate)
	case s.Arrivals == Closed && s.Rate != 0:
		return errors.New("rate: a closed loop has none")
	case s.Records < 0 || s.Records > maxSeq:
		return fmt.Errorf("records: %d is not in 0..%d", s.Records, int64(maxSeq))
	case s.Warmup < 0 || s.Warmup > maxSeq:
		return fmt.Errorf("warmup: %d is not in 0..%d", s.Warmup, int64(maxSeq))
	case s.Records+s.Warmup > maxSeq:
		return fmt.Errorf("records and warmup: %d together are more than %d", s.Records+s.Warmup, int64(maxSeq))
	case s.Warmup != 0 && s.WarmupDuration != 0, s.WarmupDuration < 0:
		return errors.New("a number of messages and a duration of the warm-up exclude each other, and neither is negative")
	case s.Duration < 0:
		return fmt.Errorf("duration: %v is negative", s.Duration)
	case s.Records == 0 && s.Duration == 0:
		return errors.New("neither a number of records nor a duration is given")
	case s.Records != 0 && s.Duration != 0:
		return errors.New("a number of records and a duration exclude each other")
	case s.Duration > 24*time.Hour || s.WarmupDuration > 24*time.Hour:
		return errors.New("duration: more than a day")
	}
	return nil
}

// Generator sends the messages of a load. Message seq is number seq/Producers
// of producer seq%Producers.
type Generator struct {
	spec      Spec
	producers []Producer

	// sent and acked count each producer's messages, warm-up included.
	sent  []int64
	acked []counter

	stop atomic.Bool
	done atomic.Int64 // in steps, for the progress
}

// counter has a cache line of its own.
type counter struct {
	n atomic.Int64
	_ [56]byte
}

// NewGenerator returns the generator of a valid load; producers has
// spec.Producers of them.
func NewGenerator(spec Spec, producers []Producer) (*Generator, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if len(producers) != spec.Producers {
		return nil, fmt.Errorf("%d producers given, %d wanted", len(producers), spec.Producers)
	}
	if max(spec.Async, spec.WarmupAsync) > 0 {
		for _, p := range producers {
			if _, ok := p.(AsyncProducer); !ok {
				return nil, errors.New("async: this engine answers one message of a producer at a time")
			}
		}
	}
	return &Generator{spec: spec, producers: producers, sent: make([]int64, spec.Producers), acked: make([]counter, spec.Producers)}, nil
}

// Sent returns how many messages of a producer were sent, Acked how many of
// them, the first ones, were acknowledged. Sent must not be called during a run.
func (g *Generator) Sent(producer int) int64 { return g.sent[producer] }

// Acked returns how many messages of a producer, from its first, have been
// acknowledged so far.
func (g *Generator) Acked(producer int) int64 { return g.acked[producer].n.Load() }

// Total returns how many messages were acknowledged.
func (g *Generator) Total() int64 {
	sum := int64(0)
	for p := range g.acked {
		sum += g.acked[p].n.Load()
	}
	return sum
}

// Stop makes all producers end as soon as they can.
func (g *Generator) Stop() { g.stop.Store(true) }

// Warmup sends the unmeasured messages.
func (g *Generator) Warmup(ctx context.Context) error {
	if g.spec.Warmup == 0 && g.spec.WarmupDuration == 0 {
		return nil
	}
	arrivals := Closed
	if g.spec.Warmup == 0 {
		arrivals = g.spec.Arrivals
	}
	async := g.spec.Async
	if g.spec.WarmupAsync != 0 {
		async = g.spec.WarmupAsync
	}
	_, err := g.run(ctx, phase{"warm-up", g.spec.Warmup, g.spec.WarmupDuration, arrivals, async, nil, nil})
	return err
}

// Run sends the measured messages and returns what it took. With an error the
// operation tells what was measured until then.
func (g *Generator) Run(ctx context.Context, name string) (Op, error) {
	s := &g.spec
	return g.run(ctx, phase{name, s.Records, s.Duration, s.Arrivals, s.Async, s.Begin, s.End})
}

// phase is the warm-up, or what is measured; its fields are as in Spec.
type phase struct {
	name       string
	records    int64
	duration   time.Duration
	arrivals   Arrivals
	async      int
	begin, end func()
}

func (g *Generator) run(ctx context.Context, ph phase) (Op, error) {
	g.done.Store(0)
	defer context.AfterFunc(ctx, g.Stop)()
	expected := ph.records
	if ph.records == 0 && ph.arrivals != Closed {
		expected = int64(g.spec.Rate * ph.duration.Seconds())
	}
	defer Telling(g.spec.Progress, ph.name, &g.done, expected)()

	workers := make([]*worker, g.spec.Producers)
	errs := make([]error, g.spec.Producers)
	line := NewTimeline(time.Time{}, Interval)
	for p := range workers {
		// A run that lasts long enough ends when its numbers do.
		w := &worker{g: g, p: p, async: ph.async, all: NewRecorder(line), limit: maxSeq/int64(g.spec.Producers) - g.sent[p]}
		if ph.records > 0 {
			w.limit = ph.records*int64(p+1)/int64(g.spec.Producers) - ph.records*int64(p)/int64(g.spec.Producers)
		} else {
			w.until = ph.duration
		}
		if ph.arrivals != Closed {
			w.schedule = NewSchedule(ph.arrivals, g.spec.Rate, g.spec.Producers, p, g.spec.Seed)
			w.service, w.wake = NewHistogram(), NewHistogram()
		}
		workers[p] = w
	}
	// From here on the clock runs: the histograms, 270 KB each, are there.
	if ph.begin != nil {
		ph.begin()
	}
	var wg sync.WaitGroup
	start := time.Now()
	line.start = start
	for p, w := range workers {
		w.start = start
		wg.Go(func() {
			if errs[p] = w.run(ctx); errs[p] != nil {
				g.Stop()
			}
		})
	}
	wg.Wait()
	end := time.Now()
	if ph.end != nil {
		ph.end()
	}
	op := g.op(ph, workers, end.Sub(start))
	op.Series = line.Points(end)
	for _, err := range errs {
		if err != nil {
			return op, err
		}
	}
	return op, ctx.Err()
}

// op sums the workers up.
func (g *Generator) op(ph phase, workers []*worker, took time.Duration) Op {
	op := Op{Name: ph.name, Arrivals: ph.arrivals.String(), Seconds: round(took.Seconds(), 6)}
	var all, service, wake []Histogram
	for _, w := range workers {
		w.all.Flush()
		all, service, wake = append(all, w.all.Histogram), append(service, w.service), append(wake, w.wake)
		op.Count += w.all.Count() - w.unsent
		op.Bytes += w.bytes.Load()
		op.Unsent += w.unsent
	}
	op.Records, op.Latency = op.Count, Summary(all...)
	if ph.arrivals != Closed {
		took = max(took, ph.duration) // the last message was due before the time was over
	}
	op.RecordsPerSec, op.MBPerSec = Rate(float64(op.Records), took), Rate(float64(op.Bytes)/1e6, took)
	if ph.arrivals != Closed {
		s, w := Summary(service...), Summary(wake...)
		op.Rate, op.Service, op.WakeUp = g.spec.Rate, &s, &w
	}
	return op
}

// Telling tells done every 100 ms until the function that it returns is called.
func Telling(progress Progress, phase string, done *atomic.Int64, total int64) (end func()) {
	if progress == nil {
		return func() {}
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				progress(phase, done.Load(), total)
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
		progress(phase, done.Load(), total)
	}
}
