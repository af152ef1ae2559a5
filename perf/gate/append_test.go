package gate

import (
	"context"
	"testing"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/internal/clock"
)

// BenchmarkAppendSync: one producer; an operation is one durable message that
// can be read.
func BenchmarkAppendSync(b *testing.B) {
	r := newRig(b, b.N+extraOps+1, stratalog.Options{})
	r.append(stratalog.Sync)
	r.begin()
	for range b.N {
		r.append(stratalog.Sync)
	}
	r.end(bodySize)
	r.mallocs(func() { r.append(stratalog.Sync) })
}

// BenchmarkAppendMemory: one producer that waits for no sync, on both write
// paths.
func BenchmarkAppendMemory(b *testing.B) {
	for _, path := range []stratalog.WritePath{stratalog.WriteMmap, stratalog.WritePwrite} {
		b.Run(path.String(), func(b *testing.B) { appendMemory(b, path) })
	}
}

func appendMemory(b *testing.B, path stratalog.WritePath) {
	r := newRig(b, b.N+extraOps+1, stratalog.Options{WritePath: path, MaxUnsynced: 1 << 30})
	r.append(stratalog.Sync)
	r.begin()
	for range b.N {
		r.append(stratalog.Memory)
	}
	r.end(bodySize)
	r.mallocs(func() { r.append(stratalog.Memory) })
}

// batch is how many messages come together.
const batch = 64

// BenchmarkAppendBatch: an operation is one batch of durable messages.
func BenchmarkAppendBatch(b *testing.B) {
	r := newRig(b, batch*(b.N+extraOps+1), stratalog.Options{})
	msgs := make([]stratalog.Message, batch)
	for i := range msgs {
		msgs[i] = r.msg
	}
	var receipts []stratalog.Receipt
	op := func() {
		var err error
		if receipts, err = r.store.AppendBatch(context.Background(), msgs, stratalog.Sync, receipts[:0]); err != nil {
			b.Fatal(err)
		}
		r.visible(receipts[batch-1])
	}
	op()
	r.begin()
	for range b.N {
		op()
	}
	r.end(batch * bodySize)
	r.mallocs(op)
}

// BenchmarkGroupCommit: an operation is a round of messages from producers that
// do not wait for one another. The first is alone and starts a commit; the
// others come while its sync runs, and share the next one. So a round takes two
// syncs, however the goroutines are scheduled.
func BenchmarkGroupCommit(b *testing.B) {
	// A commit waits a moment for more, so time has to pass.
	r := newRig(b, batch*(b.N+extraOps+1), stratalog.Options{Clock: &ticking{Manual: clock.NewManual(noon)}})
	ctx := context.Background()
	syncing, others := make(chan struct{}), make(chan struct{})
	hold := true // handed over by the channels
	r.fs.onSync = func() {
		if hold {
			hold = false
			syncing <- struct{}{}
			<-others
		}
	}
	answers := make(chan error, batch)
	var last stratalog.Receipt
	done := func(receipt stratalog.Receipt, err error) {
		last = receipt
		answers <- err
	}
	submit := func() {
		if err := r.store.Submit(ctx, &r.msg, stratalog.Sync, done); err != nil {
			b.Fatal(err)
		}
	}
	op := func() {
		submit()
		<-syncing
		for range batch - 1 {
			submit()
		}
		others <- struct{}{}
		for range batch {
			if err := <-answers; err != nil {
				b.Fatal(err)
			}
		}
		r.visible(last)
		hold = true
	}
	op()
	r.begin()
	for range b.N {
		op()
	}
	r.end(batch * bodySize)
	r.mallocs(op)
	hold = false
}
