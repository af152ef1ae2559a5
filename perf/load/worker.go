package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// progressStep is how many messages a producer sends between two notes of its
// progress, so that the counter is not what is measured.
const progressStep = 64

// worker is one producer during one phase.
type worker struct {
	g        *Generator
	p        int
	start    time.Time
	limit    int64         // messages to send
	until    time.Duration // if not 0, messages due later are not sent
	schedule *Schedule
	async    int
	sent     time.Duration // when the last message was handed over

	mu      sync.Mutex // async answers come from any goroutine
	all     *Recorder
	service Histogram
	wake    Histogram
	bytes   atomic.Int64
	unsent  int64
}

// due waits until the next message is due and returns when that is, since the
// start; false if there is none. A producer that is late does not wait.
func (w *worker) due(ctx context.Context, n int64) (time.Duration, bool) {
	if n >= w.limit || w.g.stop.Load() {
		return 0, false
	}
	if w.schedule == nil {
		return 0, w.until == 0 || w.sent < w.until
	}
	at := w.schedule.Next()
	if w.until != 0 && at >= w.until {
		return 0, false
	}
	wait := at - time.Since(w.start)
	if w.until != 0 && -wait > w.until+patience {
		w.giveUp(at)
		return 0, false
	}
	if wait > 0 {
		if !sleep(ctx, wait) || w.g.stop.Load() {
			return 0, false
		}
		w.wake.Record(time.Since(w.start) - at)
	}
	return at, true
}

// giveUp counts the messages from the one due at at on, which will not be sent.
// Each is already late by what is recorded for it: without that, a stall at the
// end of a run would take its victims out of the distribution.
func (w *worker) giveUp(at time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for now := time.Since(w.start); at < w.until; at = w.schedule.Next() {
		w.unsent++
		w.all.Late(now - at)
	}
}

// longSleep is from which on a sleep can be interrupted.
const longSleep = 50 * time.Millisecond

// sleep returns false if ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	if d < longSleep {
		time.Sleep(d)
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// answered notes the answer to a message that was due and sent at these times.
func (w *worker) answered(due, sent time.Duration, size int) {
	end := time.Now()
	at := end.Sub(w.start)
	w.all.Add(at-due, 1, end)
	if w.schedule != nil {
		w.service.Record(at - sent)
	}
	w.bytes.Add(int64(size))
	w.g.acked[w.p].n.Add(1)
}

func (w *worker) run(ctx context.Context) error {
	if w.async > 0 {
		return w.runAsync(ctx)
	}
	producer := w.g.producers[w.p]
	var body []byte
	for n := int64(0); ; n++ {
		due, ok := w.due(ctx, n)
		if !ok {
			w.g.done.Add(n % progressStep)
			return nil
		}
		seq := w.g.next(w.p)
		body = w.g.spec.Bodies.Make(body, seq)
		w.sent = time.Since(w.start)
		if w.schedule == nil {
			due = w.sent // making the body is the generator's own time
		}
		w.g.spec.Starts.note(seq, w.start.Add(due))
		if err := producer.Append(ctx, seq, body); err != nil {
			return err
		}
		w.answered(due, w.sent, len(body))
		if n%progressStep == progressStep-1 {
			w.g.done.Add(progressStep)
		}
	}
}

// next counts a message of a producer and returns its number.
func (g *Generator) next(p int) int64 {
	seq := g.sent[p]*int64(g.spec.Producers) + int64(p)
	g.sent[p]++
	return seq
}

// pending is a message on its way.
type pending struct {
	due, sent time.Duration
	size      int
	submit    func(ctx context.Context, seq int64, body []byte) error
}

func (w *worker) runAsync(ctx context.Context) error {
	producer := w.g.producers[w.p].(AsyncProducer)
	async := w.async
	free := make(chan *pending, async)
	var failed atomic.Pointer[error]
	made, body := 0, []byte(nil)
	var err error
	for n := int64(0); ; n++ {
		due, ok := w.due(ctx, n)
		if !ok {
			w.g.done.Add(n % progressStep)
			break
		}
		var m *pending
		select {
		case m = <-free:
		default:
			if made == async {
				m = <-free
				break
			}
			made++
			m = w.newPending(producer, free, &failed)
		}
		seq := w.g.next(w.p)
		body = w.g.spec.Bodies.Make(body, seq)
		w.sent = time.Since(w.start)
		m.sent, m.size = w.sent, len(body)
		if m.due = due; w.schedule == nil {
			m.due = m.sent
		}
		w.g.spec.Starts.note(seq, w.start.Add(m.due))
		if err = m.submit(ctx, seq, body); err != nil {
			made--
			break
		}
		if n%progressStep == progressStep-1 {
			w.g.done.Add(progressStep)
		}
	}
	for range made {
		<-free
	}
	if first := failed.Load(); first != nil {
		return *first
	}
	return err
}

// newPending returns a message that notes its answer and goes back to free,
// which has room for it.
func (w *worker) newPending(producer AsyncProducer, free chan *pending, failed *atomic.Pointer[error]) *pending {
	m := new(pending)
	m.submit = producer.Slot(func(err error) {
		if err != nil {
			first := err // err itself would be on the heap for every answer
			failed.CompareAndSwap(nil, &first)
			w.g.Stop()
		} else {
			w.mu.Lock()
			w.answered(m.due, m.sent, m.size)
			w.mu.Unlock()
		}
		free <- m
	})
	return m
}
