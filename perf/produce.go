package perf

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/stratalog/stratalog"
)

// progressStep is how many messages a producer appends between two notes of
// its progress, so that the counter is not what is measured.
const progressStep = 64

// message makes m message seq; its body is of the configured length. The
// sequence number goes along in Flag, which the store keeps as it is.
func (r *appendRun) message(m *stratalog.Message, seq int64) {
	queue := r.queueOf(seq)
	m.Topic, m.QueueID, m.Flag = r.topics[queue/r.cfg.Queues], int32(queue%r.cfg.Queues), int32(seq)
	r.bodies.Fill(m.Body, seq)
}

// noteEnd remembers the highest end of a record.
func (r *appendRun) noteEnd(receipt stratalog.Receipt) {
	place, _ := receipt.Range()
	for end := int64(place.End); ; {
		now := r.end.Load()
		if end <= now || r.end.CompareAndSwap(now, end) {
			return
		}
	}
}

// produce appends messages [from, to), waiting for each.
func (r *appendRun) produce(ctx context.Context, from, to int64, h *hdrhistogram.Histogram) error {
	m := stratalog.Message{Body: make([]byte, r.cfg.Size)}
	var last stratalog.Receipt
	for seq := from; seq < to && !r.stop.Load(); seq++ {
		r.message(&m, seq)
		start := time.Now()
		receipt, err := r.store.Append(ctx, &m, r.cfg.Durability)
		if err != nil {
			return err
		}
		record(h, time.Since(start))
		last = receipt
		if (seq-from)%progressStep == progressStep-1 {
			r.appended.Add(progressStep)
		}
	}
	r.appended.Add((to - from) % progressStep)
	r.noteEnd(last)
	return nil
}

// slot is one message on its way.
type slot struct {
	start time.Time
	done  stratalog.Completion
}

// produceAsync submits messages [from, to) with up to Async on their way. The
// latency of each runs from its submit to its completion. Completions run one
// at a time, so they share the histogram.
func (r *appendRun) produceAsync(ctx context.Context, from, to int64, h *hdrhistogram.Histogram) error {
	m := stratalog.Message{Body: make([]byte, r.cfg.Size)}
	free := make(chan *slot, r.cfg.Async)
	var failed atomic.Pointer[error]
	for range r.cfg.Async {
		s := new(slot)
		s.done = func(receipt stratalog.Receipt, err error) {
			if err != nil {
				first := err // err itself would be on the heap for every answer
				failed.CompareAndSwap(nil, &first)
				r.stop.Store(true)
			} else {
				record(h, time.Since(s.start))
				r.noteEnd(receipt)
			}
			free <- s // has room for every slot, so it does not block
		}
		free <- s
	}
	var err error
	for seq := from; seq < to && !r.stop.Load(); seq++ {
		s := <-free
		r.message(&m, seq)
		s.start = time.Now()
		if err = r.store.Submit(ctx, &m, r.cfg.Durability, s.done); err != nil {
			free <- s
			break
		}
		if (seq-from)%progressStep == progressStep-1 {
			r.appended.Add(progressStep)
		}
	}
	for range r.cfg.Async {
		<-free
	}
	r.appended.Add((to - from) % progressStep)
	if first := failed.Load(); first != nil {
		return *first
	}
	return err
}
