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
	// retired counts the places that retention took before they were read.
	retired int64
	first   string
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
	c.wrong++
	topic, id := c.s.queue(queue)
	c.note(fmt.Sprintf("%s/%d at %d: %s", topic, id, offset, fault))
}

// note keeps the first fault.
func (c *checker) note(fault string) {
	if c.first == "" {
		c.first = fault
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

// readBefore takes the measured messages that retention took, and that another
// had read and found right before, as read.
func (c *checker) readBefore(other *checker) {
	producers := int64(c.s.cfg.Load.Producers)
	for p := range producers {
		for i := c.s.warm[p]; i < c.s.gen.Acked(int(p)); i++ {
			if seq := i*producers + p; c.retired > 0 && !c.has(seq) && other.has(seq) {
				c.mark(seq)
				c.right, c.retired = c.right+1, c.retired-1
			}
		}
	}
}

// missing counts the acknowledged messages that were not seen, and names the
// first of them if nothing else was wrong. Messages that were sent and not
// acknowledged may be there or not.
func (c *checker) missing() int64 {
	producers, n := int64(c.s.cfg.Load.Producers), int64(0)
	for p := range producers {
		for i := range c.s.gen.Acked(int(p)) {
			if seq := i*producers + p; !c.has(seq) {
				n++
				c.note(fmt.Sprintf("message %d, acknowledged, is in no queue", seq))
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
				n++
				c.note(fmt.Sprintf("message %d was never sent", seq))
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

// readBack reads all queues from their starts of before the run, or from where
// retention left them, into c.
func (s *session) readBack(ctx context.Context, c *checker, starts []int64, progress func(done int64)) error {
	var out stratalog.Records
	read := int64(0)
	for queue, next := range starts {
		topic, id := s.queue(queue)
		if first, _ := s.store.QueueRange(topic, id); first > next {
			c.retired, next = c.retired+first-next, first
		}
		err := readQueue(ctx, s.store, topic, id, next, &out, func(rec *stratalog.Record) error {
			c.record(rec, queue, next)
			next++
			if read++; read%4096 == 0 {
				progress(read)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s/%d at %d: %w", topic, id, next, err)
		}
	}
	c.wrong += c.unsent()
	for _, name := range s.strangers() {
		c.wrong++
		c.note(name + " holds more than before the run, which sent nothing there")
	}
	return nil
}

// others returns the ends of the queues that the run does not send to.
func (s *session) others() map[string]int64 {
	ours, ends := map[string]bool{}, map[string]int64{}
	for i := range s.queues() {
		topic, id := s.queue(i)
		ours[fmt.Sprintf("%s/%d", topic, id)] = true
	}
	for _, topic := range s.store.Topics() {
		for _, id := range s.store.Queues(topic) {
			if name := fmt.Sprintf("%s/%d", topic, id); !ours[name] {
				_, ends[name] = s.store.QueueRange(topic, id)
			}
		}
	}
	return ends
}

// strangers names the queues that grew without being sent to.
func (s *session) strangers() (names []string) {
	for name, end := range s.others() {
		if end > s.before[name] {
			names = append(names, name)
		}
	}
	return names
}
