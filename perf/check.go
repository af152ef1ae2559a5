package perf

import (
	"context"
	"fmt"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/contract"
)

// checker compares the records of the queues with what the generator sent: each
// message once, in its queue, with its body, and each producer's in order. It
// is one reader's own.
type checker struct {
	s *session
	// seen has a bit for each message.
	seen []uint64
	// last is, for each queue and producer, the message seen last.
	last []int64

	right int64
	wrong int64
	first string
}

func newChecker(s *session) *checker {
	c := &checker{s: s, last: make([]int64, s.queues()*s.cfg.Load.Producers)}
	for i := range c.last {
		c.last[i] = -1
	}
	return c
}

// record checks the record found at an offset of a queue.
func (c *checker) record(rec *stratalog.Record, queue int, offset int64) {
	fault := c.fault(rec, queue, offset)
	if fault == "" {
		c.right++
		return
	}
	if c.wrong++; c.first == "" {
		topic, id := c.s.queue(queue)
		c.first = fmt.Sprintf("%s/%d at %d: %s", topic, id, offset, fault)
	}
}

// has tells whether a message was seen.
func (c *checker) has(seq int64) bool {
	return seq/64 < int64(len(c.seen)) && c.seen[seq/64]>>(seq%64)&1 != 0
}

func (c *checker) fault(rec *stratalog.Record, queue int, offset int64) string {
	seq, producers := int64(rec.Flag()), int64(c.s.cfg.Load.Producers)
	switch {
	case seq < 0:
		return fmt.Sprintf("message %d was never sent", seq)
	case c.has(seq):
		return fmt.Sprintf("message %d is there twice", seq)
	case rec.QueueOffset() != offset:
		return fmt.Sprintf("the record's queue offset is %d", rec.QueueOffset())
	case c.s.queueOf(seq) != queue:
		return fmt.Sprintf("message %d belongs to another queue", seq)
	case !c.s.cfg.Load.Bodies.Check(rec.Body(), seq):
		return fmt.Sprintf("the body of message %d is not what was sent", seq)
	}
	last := &c.last[int64(queue)*producers+seq%producers]
	if seq <= *last {
		return fmt.Sprintf("message %d of producer %d comes behind %d", seq, seq%producers, *last)
	}
	*last = seq
	c.mark(seq)
	return ""
}

// mark notes that a message was seen.
func (c *checker) mark(seq int64) {
	for int64(len(c.seen)) <= seq/64 {
		c.seen = append(c.seen, 0)
	}
	c.seen[seq/64] |= 1 << (seq % 64)
}

// missing counts the acknowledged messages that were not seen, and names the
// first of them if nothing else was wrong. Messages that were sent and not
// acknowledged may be there or not.
func (c *checker) missing() int64 {
	producers, n := int64(c.s.cfg.Load.Producers), int64(0)
	for p := range producers {
		for i := range c.s.gen.Acked(int(p)) {
			if seq := i*producers + p; !c.has(seq) {
				if n++; c.first == "" {
					c.first = fmt.Sprintf("message %d, acknowledged, is in no queue", seq)
				}
			}
		}
	}
	return n
}

// unsent counts the messages seen that the generator never sent. It must not be
// called while producers run.
func (c *checker) unsent() int64 {
	producers, n := int64(c.s.cfg.Load.Producers), int64(0)
	for p := range producers {
		for seq := c.s.gen.Sent(int(p))*producers + p; seq < int64(len(c.seen))*64; seq += producers {
			if c.has(seq) {
				if n++; c.first == "" {
					c.first = fmt.Sprintf("message %d was never sent", seq)
				}
			}
		}
	}
	return n
}

// getter is what reading needs: a Store or a Reader.
type getter interface {
	Get(ctx context.Context, req stratalog.Request, out *stratalog.Records) error
	QueueRange(topic string, queueID int32) (first, end int64)
	Topics() []string
	Queues(topic string) []int32
}

// readBatch is how many records one Get of a full read asks for.
const readBatch = 256

// atEnd tells whether a status means that a queue has no more.
func atEnd(status contract.GetStatus) bool {
	switch status {
	case contract.GetOffsetOverflowOne, contract.GetOffsetOverflowBadly, contract.GetNoMatchedLogicQueue, contract.GetNoMessageInQueue:
		return true
	}
	return false
}

// readQueue calls each for every record of a queue from an offset on, in order.
func readQueue(ctx context.Context, g getter, topic string, queue int32, from int64, out *stratalog.Records,
	each func(*stratalog.Record) error) error {
	defer out.Release()
	for next := from; ; next = out.Next {
		err := g.Get(ctx, stratalog.Request{Topic: topic, QueueID: queue, Offset: next, MaxCount: readBatch}, out)
		if err != nil {
			return err
		}
		if atEnd(out.Status) {
			return nil
		}
		for i := range out.Len() {
			if err := each(out.At(i)); err != nil {
				return err
			}
		}
	}
}

// readBack reads all queues from their starts of before the run.
func (s *session) readBack(ctx context.Context, starts []int64, progress func(done int64)) (*checker, error) {
	c := newChecker(s)
	var out stratalog.Records
	read := int64(0)
	for queue, next := range starts {
		topic, id := s.queue(queue)
		err := readQueue(ctx, s.store, topic, id, next, &out, func(rec *stratalog.Record) error {
			c.record(rec, queue, next)
			next++
			if read++; read%4096 == 0 {
				progress(read)
			}
			return nil
		})
		if err != nil {
			return c, err
		}
	}
	c.wrong += c.unsent()
	return c, nil
}
