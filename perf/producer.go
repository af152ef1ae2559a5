package perf

import (
	"context"
	"time"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/perf/load"
)

// producer is a load.AsyncProducer over a store. The number of a message goes
// along in Flag, which the store keeps as it is.
type producer struct {
	s *session
	p int
	m stratalog.Message

	// roll, if not nil, takes the latencies of the messages that were the
	// producer's first in their segment.
	roll    *load.Histogram
	segment int64
}

var _ load.AsyncProducer = (*producer)(nil)

func (p *producer) message(seq int64, body []byte) {
	queue := p.s.queueOf(seq)
	p.m.Topic, p.m.QueueID = p.s.queue(queue)
	p.m.Flag, p.m.Body = int32(seq), body
}

// Append is load.Producer's.
func (p *producer) Append(ctx context.Context, seq int64, body []byte) error {
	p.message(seq, body)
	receipt, err := p.s.store.Append(ctx, &p.m, p.s.cfg.Durability)
	if p.roll != nil && err == nil {
		p.noteRoll(receipt, seq)
	}
	return err
}

// noteRoll looks whether message seq is the producer's first in its segment.
func (p *producer) noteRoll(receipt stratalog.Receipt, seq int64) {
	place, _ := receipt.Range()
	segment := int64(place.Start) / p.s.cfg.SegmentSize
	if p.segment != segment {
		p.roll.Record(p.s.cfg.Load.Starts.Since(seq, time.Now()))
	}
	p.segment = segment
}

// Slot is load.AsyncProducer's.
func (p *producer) Slot(done func(error)) func(context.Context, int64, []byte) error {
	answer := func(_ stratalog.Receipt, err error) { done(err) }
	return func(ctx context.Context, seq int64, body []byte) error {
		p.message(seq, body)
		return p.s.store.Submit(ctx, &p.m, p.s.cfg.Durability, answer)
	}
}
