package stratalog

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// BenchmarkAppend measures closed-loop producers through the whole store, queue
// lane included, on a real disk.
func BenchmarkAppend(b *testing.B) {
	for _, d := range []Durability{Sync, Memory} {
		for _, producers := range []int{1, 16, 64, 256} {
			b.Run(fmt.Sprintf("%v/producers=%d", d, producers), func(b *testing.B) { benchAppend(b, d, producers, 1024) })
		}
	}
}

func benchAppend(b *testing.B, d Durability, producers, size int) {
	ctx := context.Background()
	s := start(b, Options{Dir: b.TempDir(), Durability: d})
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for p := range producers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			m := Message{Topic: "bench", QueueID: int32(p % 8), Body: make([]byte, size)}
			for left.Add(-1) >= 0 {
				if _, err := s.Append(ctx, &m, d); err != nil {
					b.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/float64(max(s.Health().Stats.Syncs, 1)), "rec/sync")
	closeClean(b, s)
}
