package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// coalescer is the group commit that a user would write over an engine that has
// a batch call and none of its own: one goroutine hands the engine all that has
// come while the last batch was on its way. It is the same for every engine, and
// it is a good one: before it takes a batch it waits up to 40 us for as many
// producers as the last one woke or found waiting, never for a lone one. Without
// that wait, producers that come back at once settle into two halves that wait for
// each other's sync.
type coalescer struct {
	log      batcher
	noGather bool

	mu       sync.Mutex
	work     sync.Cond
	filling  *batch
	closed   bool
	expected int64
	failed   error

	staged  atomic.Int64 // len(filling.bodies)
	batches atomic.Int64
	done    chan struct{}
}

// batch is the messages of one call, and what their producers wait for.
type batch struct {
	bodies [][]byte
	done   []func(error) // of the messages that nobody waits for
	result sync.WaitGroup
	err    error
	left   atomic.Int64 // producers that have not seen err, and run
}

var batchPool = sync.Pool{New: func() any { return new(batch) }}

func newBatch() *batch {
	b := batchPool.Get().(*batch)
	b.bodies, b.done, b.err = b.bodies[:0], b.done[:0], nil
	b.result.Add(1)
	return b
}

const (
	gatherWait = 40 * time.Microsecond
	// maxBatch bounds the messages of a batch.
	maxBatch = 4096
)

// newCoalescer starts one, which Close ends.
func newCoalescer(log batcher, noGather bool) *coalescer {
	c := &coalescer{log: log, noGather: noGather, filling: newBatch(), done: make(chan struct{})}
	c.work.L = &c.mu
	go c.run()
	return c
}

// Append returns when the batch that holds body was taken. A batch that failed
// fails all that come behind it too, since nobody knows what the log holds.
func (c *coalescer) Append(_ int, body []byte) error {
	b, err := c.stage(body, nil)
	if err != nil {
		return err
	}
	b.result.Wait()
	err = b.err
	b.release()
	return err
}

// Slot returns an Append that does not wait. It keeps the body, which the producer
// uses again.
func (c *coalescer) Slot(_ int, done func(error)) func(body []byte) error {
	var kept []byte
	return func(body []byte) error {
		kept = append(kept[:0], body...)
		_, err := c.stage(kept, done)
		return err
	}
}

// stage puts body into the next batch. With a done the batch is not the caller's:
// without one it is until the caller releases it.
func (c *coalescer) stage(body []byte, done func(error)) (*batch, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil {
		return nil, c.failed
	}
	b := c.filling
	b.bodies = append(b.bodies, body)
	if done != nil {
		b.done = append(b.done, done)
	}
	c.staged.Store(int64(len(b.bodies)))
	if len(b.bodies) == 1 {
		c.work.Signal()
	}
	return b, nil
}

// release gives b back when nobody needs it any more.
func (b *batch) release() {
	if b.left.Add(-1) == 0 {
		batchPool.Put(b)
	}
}

// run takes batches until the coalescer is closed.
func (c *coalescer) run() {
	defer close(c.done)
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for len(c.filling.bodies) == 0 && !c.closed {
			c.work.Wait()
		}
		c.mu.Unlock()
		c.gather()
		c.mu.Lock()
		if len(c.filling.bodies) == 0 {
			return
		}
		b, err := c.filling, c.failed
		c.filling = newBatch()
		c.staged.Store(0)
		c.mu.Unlock()
		for at := 0; at < len(b.bodies) && err == nil; at += maxBatch {
			c.batches.Add(1)
			err = c.log.AppendBatch(b.bodies[at:min(at+maxBatch, len(b.bodies))])
		}
		c.mu.Lock()
		if err != nil {
			c.failed = err
		}
		c.expected = int64(len(b.bodies) + len(c.filling.bodies))
		b.err = err
		b.left.Store(int64(len(b.bodies)-len(b.done)) + 1)
		b.result.Done()
		if len(b.done) > 0 {
			c.mu.Unlock()
			for _, done := range b.done {
				done(err)
			}
			c.mu.Lock()
		}
		b.release()
	}
}

// gather waits for the producers that are on their way.
func (c *coalescer) gather() {
	if c.expected <= 1 || c.noGather {
		return
	}
	for start := time.Now(); c.staged.Load() < c.expected && time.Since(start) < gatherWait; {
		runtime.Gosched()
	}
}

// Close waits for what is on its way; nobody may append any more.
func (c *coalescer) Close() {
	c.mu.Lock()
	c.closed = true
	c.work.Signal()
	c.mu.Unlock()
	<-c.done
}

// mutexed is one message a call, one caller at a time.
type mutexed struct {
	log  batcher
	mu   sync.Mutex
	one  [1][]byte
	done atomic.Int64
}

// Append waits for its turn.
func (m *mutexed) Append(_ int, body []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.one[0] = body
	m.done.Add(1)
	return m.log.AppendBatch(m.one[:])
}
