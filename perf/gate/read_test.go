package gate

import (
	"context"
	"testing"

	"github.com/stratalog/stratalog"
)

// stored is how many messages the benchmarks of reading read from.
const stored = 1024

// newFilled opens a store with messages that can all be read, and returns the
// places of their records.
func newFilled(b *testing.B) (*rig, []stratalog.Offset) {
	b.Helper()
	r := newRig(b, stored+1, stratalog.Options{})
	places := make([]stratalog.Offset, stored)
	for i := range places {
		receipt, err := r.store.Append(context.Background(), &r.msg, stratalog.Memory)
		if err != nil {
			b.Fatal(err)
		}
		place, _ := receipt.Range()
		places[i] = place.Start
	}
	r.append(stratalog.Sync)
	return r, places
}

// BenchmarkGet: an operation is one Get of 32 messages by queue offset.
func BenchmarkGet(b *testing.B) {
	const count = 32
	r, _ := newFilled(b)
	var out stratalog.Records
	op := func(i int) {
		req := stratalog.Request{Topic: r.msg.Topic, Offset: int64(i*count*7) % (stored - count), MaxCount: count}
		if err := r.store.Get(context.Background(), req, &out); err != nil || out.Len() != count {
			b.Fatal(out.Status, out.Len(), err)
		}
	}
	op(0)
	r.begin()
	for i := range b.N {
		op(i)
	}
	r.end(0)
	i := 0
	r.mallocs(func() { op(i); i++ })
	out.Release()
}

// BenchmarkRead: an operation is one read of a record by its place.
func BenchmarkRead(b *testing.B) {
	r, places := newFilled(b)
	var rec stratalog.Record
	op := func(i int) {
		if found, err := r.store.GetAt(context.Background(), places[i*7919%stored], &rec); err != nil || !found {
			b.Fatal(found, err)
		}
	}
	op(0)
	r.begin()
	for i := range b.N {
		op(i)
	}
	r.end(0)
	i := 0
	r.mallocs(func() { op(i); i++ })
	rec.Release()
}
