package gate

import (
	"fmt"
	"testing"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/cq"
)

// BenchmarkRoll: an operation fills up a segment of 1 MiB and ends with the
// first message of the next one, which is made, zeroed and put under its name
// meanwhile. So its bytes are the whole write amplification: zeros, records,
// padding, queue entries.
func BenchmarkRoll(b *testing.B) {
	const size, perSegment = 64 << 10, 15
	r := newRig(b, 1, stratalog.Options{SegmentSize: 1 << 20, QueueFileSize: 20 << 16})
	r.msg.Body = make([]byte, size)
	op := func() {
		for range perSegment - 1 {
			r.append(stratalog.Memory)
		}
		r.append(stratalog.Sync)
	}
	r.append(stratalog.Sync)
	op()
	r.begin()
	for range b.N {
		op()
	}
	r.end(perSegment * size)
	r.mallocs(op)
}

// BenchmarkOpen: an operation opens a store of 100 messages that was closed
// well, starts it, and closes it.
func BenchmarkOpen(b *testing.B) {
	r := newRig(b, 100, stratalog.Options{})
	for range 100 {
		r.append(stratalog.Sync)
	}
	op := func() {
		r.close()
		r.open()
	}
	op()
	r.begin()
	for range b.N {
		op()
	}
	r.end(0)
	r.mallocs(op)
}

// BenchmarkQueueApply: an operation applies 1000 records, spread over queues, and
// commits them.
func BenchmarkQueueApply(b *testing.B) {
	for _, queues := range []int{1, 64} {
		b.Run(fmt.Sprintf("queues=%d", queues), func(b *testing.B) { queueApply(b, queues) })
	}
}

func queueApply(b *testing.B, queues int) {
	const records = 1000
	b.ReportAllocs()
	r := &rig{b: b, fs: newCounting()}
	store, err := cq.Open(r.fs, b.TempDir()+"/consumequeue", cq.Options{FileSize: int64(20 * records * (b.N + extraOps + 2))})
	if err != nil {
		b.Fatal(err)
	}
	views := make([]codec.MessageView, queues)
	for i := range views {
		views[i] = view(b, fmt.Sprintf("topic%d", i))
	}
	next := int64(0)
	op := func() {
		for range records {
			v := &views[next%int64(queues)]
			codec.PatchMessageQueueOffset(v.Bytes(), next/int64(queues))
			id := contract.RecordID{Epoch: 1, Offset: contract.Offset(next) * recordSize, Length: int64(len(v.Bytes()))}
			if err := store.Apply(id, v); err != nil {
				b.Fatal(err)
			}
			next++
		}
		if err := store.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	op()
	r.begin()
	for range b.N {
		op()
	}
	r.end(0)
	r.mallocs(op)
	if err := store.Close(); err != nil {
		b.Error(err)
	}
}

// view returns a record of topic.
func view(b *testing.B, topic string) codec.MessageView {
	b.Helper()
	m := codec.Message{Magic: codec.MessageMagicV1, Topic: []byte(topic), Body: make([]byte, bodySize),
		BornHost: make([]byte, 8), StoreHost: make([]byte, 8)}
	buf := make([]byte, m.Size())
	if _, err := m.Encode(buf); err != nil {
		b.Fatal(err)
	}
	var v codec.MessageView
	if err := v.Parse(buf); err != nil {
		b.Fatal(err)
	}
	return v
}
