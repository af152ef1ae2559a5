package cq

import (
	"fmt"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// BenchmarkApplyCommit applies records in batches of 1000 over a number of
// queues, on the real file system, without flushes.
func BenchmarkApplyCommit(b *testing.B) {
	for _, queues := range []int{1, 64} {
		b.Run(fmt.Sprintf("queues=%d", queues), func(b *testing.B) {
			s, err := Open(vfs.OS(), b.TempDir()+"/consumequeue", Options{})
			must(b, err)
			recs := make([][]byte, queues)
			views := make([]codec.MessageView, queues)
			for i := range recs {
				e := entry{topic: fmt.Sprintf("topic%d", i), tag: "TagA"}
				recs[i] = e.encode(b)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				k := i % queues
				setOffset(recs[k], int64(i/queues))
				if err := views[k].Parse(recs[k]); err != nil {
					b.Fatal(err)
				}
				id := contract.RecordID{Epoch: 1, Offset: contract.Offset(i) * 200, Length: int64(len(recs[k]))}
				if err := s.Apply(id, &views[k]); err != nil {
					b.Fatal(err)
				}
				if i%1000 == 999 {
					must(b, s.Commit())
				}
			}
			must(b, s.Commit())
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			b.StopTimer()
			must(b, s.Close())
		})
	}
}

// setOffset sets the queue offset of an encoded record.
func setOffset(rec []byte, at int64) { codec.PatchMessageQueueOffset(rec, at) }

// BenchmarkUnits reads 32 units at a time.
func BenchmarkUnits(b *testing.B) {
	s, err := Open(vfs.OS(), b.TempDir()+"/consumequeue", Options{})
	must(b, err)
	const units = 100_000
	e := entry{topic: "t"}
	rec := e.encode(b)
	for i := range int64(units) {
		setOffset(rec, i)
		var v codec.MessageView
		must(b, v.Parse(rec))
		must(b, s.Apply(contract.RecordID{Offset: contract.Offset(i) * 200, Length: 200}, &v))
	}
	must(b, s.Commit())
	dst := make([]codec.QueueUnit, 32)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		n, err := s.Units("t", 0, int64(i*32)%(units-32), dst)
		if err != nil || n != len(dst) {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(b.N)*32/b.Elapsed().Seconds(), "units/s")
	b.StopTimer()
	must(b, s.Close())
}

// TestSteadyStateDoesNotAllocate: per record and per read.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	s, err := Open(vfs.OS(), t.TempDir()+"/consumequeue", Options{})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	e := entry{topic: "t", tag: "TagA"}
	rec := e.encode(t)
	var v codec.MessageView
	at := int64(0)
	batch := func() {
		for range 100 {
			setOffset(rec, at)
			if err := v.Parse(rec); err != nil {
				t.Fatal(err)
			}
			if err := s.Apply(contract.RecordID{Offset: contract.Offset(at) * 200, Length: 200}, &v); err != nil {
				t.Fatal(err)
			}
			at++
		}
		if err := s.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	batch()
	if n := testing.AllocsPerRun(100, batch); n > 1 {
		t.Errorf("%.1f allocations for a batch of 100 records", n)
	}
	dst := make([]codec.QueueUnit, 50)
	if n := testing.AllocsPerRun(100, func() {
		if n, err := s.Units("t", 0, 10, dst); n != len(dst) || err != nil {
			t.Fatal(n, err)
		}
	}); n > 0.5 {
		t.Errorf("%.1f allocations for a read", n)
	}
}
