package perf

import (
	"context"
	"fmt"
	"sort"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/contract"
)

// getter is what reading needs: a Store or a Reader.
type getter interface {
	Get(ctx context.Context, req stratalog.Request, out *stratalog.Records) error
	QueueRange(topic string, queueID int32) (first, end int64)
	Topics() []string
	Queues(topic string) []int32
}

// readBatch is how many records one Get of a full read asks for.
const readBatch = 256

// readQueue calls each for every record of a queue from an offset on, in order.
func readQueue(ctx context.Context, g getter, topic string, queue int32, from int64, out *stratalog.Records,
	each func(*stratalog.Record) error) error {
	defer out.Release()
	for next := from; ; next = out.Next {
		err := g.Get(ctx, stratalog.Request{Topic: topic, QueueID: queue, Offset: next, MaxCount: readBatch}, out)
		if err != nil {
			return err
		}
		switch out.Status {
		case contract.GetOffsetOverflowOne, contract.GetOffsetOverflowBadly, contract.GetNoMatchedLogicQueue, contract.GetNoMessageInQueue:
			return nil
		}
		for i := range out.Len() {
			if err := each(out.At(i)); err != nil {
				return err
			}
		}
	}
}

// readBack reads what a run appended, through the queues, and compares.
type readBack struct {
	run *appendRun
	// starts are the ends of the queues before the run.
	starts []int64
	seen   []uint64 // a bit for each sequence number
	found  int64    // the bits set
	// last is, for each producer, the sequence number seen last in the queue
	// being read: a producer's messages keep their order.
	last []int64

	verified int64
	wrong    int64
	first    string
	read     int64
}

func newReadBack(run *appendRun, starts []int64) *readBack {
	return &readBack{run: run, starts: starts, seen: make([]uint64, (run.cfg.Records+63)/64),
		last: make([]int64, run.cfg.Producers)}
}

// all reads every queue and names the first message that is in none.
func (b *readBack) all(ctx context.Context) error {
	var out stratalog.Records
	for queue := range b.starts {
		if err := b.queue(ctx, queue, &out); err != nil {
			return err
		}
	}
	b.run.progress.tell("read back", b.read, b.run.cfg.Records)
	for seq := int64(0); b.found < b.run.cfg.Records && b.first == ""; seq++ {
		if b.seen[seq/64]>>(seq%64)&1 == 0 {
			b.first = fmt.Sprintf("message %d, acknowledged, is in no queue", seq)
		}
	}
	return nil
}

func (b *readBack) queue(ctx context.Context, queue int, out *stratalog.Records) error {
	for i := range b.last {
		b.last[i] = -1
	}
	topic, id := b.run.topics[queue/b.run.cfg.Queues], int32(queue%b.run.cfg.Queues)
	next := b.starts[queue]
	return readQueue(ctx, b.run.store, topic, id, next, out, func(rec *stratalog.Record) error {
		if fault := b.check(rec, queue, next); fault == "" {
			b.verified++
		} else if b.wrong++; b.first == "" {
			b.first = fmt.Sprintf("%s/%d at %d: %s", topic, id, next, fault)
		}
		next++
		if b.read++; b.read%4096 == 0 {
			b.run.progress.tell("read back", b.read, b.run.cfg.Records)
		}
		return nil
	})
}

// check returns what is wrong with the record found at an offset of a queue.
func (b *readBack) check(rec *stratalog.Record, queue int, offset int64) string {
	cfg, seq := b.run.cfg, int64(rec.Flag())
	if seq < 0 || seq >= cfg.Records {
		return fmt.Sprintf("message %d was never appended", seq)
	}
	if b.seen[seq/64]>>(seq%64)&1 != 0 {
		return fmt.Sprintf("message %d is there twice", seq)
	}
	b.seen[seq/64] |= 1 << (seq % 64)
	b.found++
	switch {
	case rec.QueueOffset() != offset:
		return fmt.Sprintf("the record's queue offset is %d", rec.QueueOffset())
	case b.run.queueOf(seq) != queue:
		return fmt.Sprintf("message %d belongs to another queue", seq)
	case len(rec.Body()) != cfg.Size:
		return fmt.Sprintf("message %d has %d bytes, not %d", seq, len(rec.Body()), cfg.Size)
	case !b.run.bodies.Check(rec.Body(), seq):
		return fmt.Sprintf("the body of message %d is not what was appended", seq)
	}
	p := producerOf(cfg.Records, cfg.Producers, seq)
	if seq <= b.last[p] {
		return fmt.Sprintf("message %d of producer %d comes behind %d", seq, p, b.last[p])
	}
	b.last[p] = seq
	return ""
}

// producerOf is the inverse of share.
func producerOf(records int64, producers int, seq int64) int {
	return sort.Search(producers-1, func(p int) bool {
		_, to := share(records, producers, p)
		return seq < to
	})
}
