package commitlog

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// benchOptions are options for a log on a real disk, of segments that do not
// roll often.
func benchOptions(t testing.TB, path WritePath) Options {
	return Options{FS: vfs.OS(), Dir: t.TempDir(), SegmentSize: 64 << 20, DiskFloor: -1, Unclean: true, WritePath: path}
}

// TestAllocations: an append and a read allocate nothing.
func TestAllocations(t *testing.T) {
	ctx := testContext(t)
	m := &contract.Message{Topic: "T", Body: make([]byte, 512), Properties: []byte("KEYS\x01k\x02")}
	for _, path := range []WritePath{WritePwrite, WriteMmap} {
		r := openRig(t, benchOptions(t, path))
		first := mustAppend(t, r.log, m, contract.DurabilitySync)
		answered := make(chan error, 1)
		done := func(_ contract.Receipt, err error) { answered <- err }
		rng, _ := first.Range()
		var rec Record
		for what, f := range map[string]func() error{
			"Append Memory":   func() error { _, err := r.log.Append(ctx, m, contract.DurabilityMemory); return err },
			"Append Interval": func() error { _, err := r.log.Append(ctx, m, contract.DurabilityInterval); return err },
			"Append Sync":     func() error { _, err := r.log.Append(ctx, m, contract.DurabilitySync); return err },
			"Submit Memory": func() error {
				if err := r.log.Submit(ctx, m, contract.DurabilityMemory, done); err != nil {
					return err
				}
				return <-answered
			},
			"Submit Sync": func() error {
				if err := r.log.Submit(ctx, m, contract.DurabilitySync, done); err != nil {
					return err
				}
				return <-answered
			},
			"Read": func() error {
				found, err := r.log.Read(rng.Start, &rec)
				if err == nil && !found {
					return fmt.Errorf("nothing at %d", rng.Start)
				}
				rec.Release()
				return err
			},
		} {
			n := testing.AllocsPerRun(200, func() {
				if err := f(); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			})
			if n != 0 && !raceEnabled {
				t.Errorf("%v, %s: %v allocations", path, what, n)
			}
		}
		r.close(true)
	}
}

// Few large records and batches among many small records take no memory either:
// a pool that learns which sizes are common must not learn it of all together.
func TestAllocsOfMixedSizes(t *testing.T) {
	r := openRig(t, benchOptions(t, WriteMmap))
	defer r.close(true)
	append1 := func(m *contract.Message) {
		if _, err := r.log.Append(context.Background(), m, contract.DurabilityMemory); err != nil {
			t.Fatal(err)
		}
	}
	sized := func(n int) *contract.Message { return &contract.Message{Topic: "T", Body: make([]byte, n)} }
	small, large := sized(100), sized(64<<10)
	batch := make([]contract.Message, 64)
	for i := range batch {
		batch[i] = *sized(1 << 10)
	}
	receipts := make([]contract.Receipt, 0, len(batch))
	for range 45_000 { // the pool learns at every 42,000th buffer
		append1(small)
	}
	if n := testing.AllocsPerRun(100, func() { append1(large) }); n != 0 && !raceEnabled {
		t.Errorf("a large record among small ones: %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := r.log.AppendBatch(context.Background(), batch, contract.DurabilityMemory, receipts); err != nil {
			t.Fatal(err)
		}
	}); n > 1 && !raceEnabled { // the sizes of its records
		t.Errorf("a batch among single records: %v allocations", n)
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name string
		path WritePath
		d    contract.Durability
	}{
		{"memory-mmap", WriteMmap, contract.DurabilityMemory},
		{"memory-pwrite", WritePwrite, contract.DurabilityMemory},
		{"sync", WritePwrite, contract.DurabilitySync},
	} {
		for _, producers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", c.name, producers), func(b *testing.B) {
				opt := benchOptions(b, c.path)
				opt.MaxUnsynced = 256 << 20
				r := openRig(b, opt)
				m := &contract.Message{Topic: "T", Body: make([]byte, 512)}
				b.SetBytes(512)
				b.ReportAllocs()
				b.ResetTimer()
				var wg sync.WaitGroup
				for p := range producers {
					wg.Go(func() {
						for i := p; i < b.N; i += producers {
							if _, err := r.log.Append(context.Background(), m, c.d); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.StopTimer()
				stats := r.log.Stats()
				b.ReportMetric(float64(stats.Syncs)/float64(b.N), "syncs/op")
				r.close(true)
			})
		}
	}
}

func BenchmarkRead(b *testing.B) {
	r := openRig(b, benchOptions(b, WritePwrite))
	const records = 10_000
	starts := make([]contract.Offset, records)
	for i := range starts {
		rec := mustAppend(b, r.log, &contract.Message{Topic: "T", Body: make([]byte, 512)}, contract.DurabilityMemory)
		rng, _ := rec.Range()
		starts[i] = rng.Start
	}
	mustAppend(b, r.log, &contract.Message{Topic: "T"}, contract.DurabilitySync)
	b.SetBytes(512)
	b.ReportAllocs()
	b.ResetTimer()
	var rec Record
	for i := range b.N {
		if found, err := r.log.Read(starts[i*7919%records], &rec); err != nil || !found {
			b.Fatal(found, err)
		}
	}
	rec.Release()
	b.StopTimer()
	r.close(true)
}
