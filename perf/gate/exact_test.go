package gate

import (
	"flag"
	"maps"
	"testing"

	"github.com/stratalog/stratalog"
)

// TestCountersAreExact: what these benchmarks count is the same in each run, and
// is what one append, one batch and one round of 64 producers should cost.
func TestCountersAreExact(t *testing.T) {
	// testing.Benchmark knows no other way to be told a number of operations.
	benchtime := flag.Lookup("test.benchtime")
	before := benchtime.Value.String()
	if err := benchtime.Value.Set("20x"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := benchtime.Value.Set(before); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []struct {
		name         string
		run          func(*testing.B)
		syncs, calls float64
		mallocs      float64
	}{
		{"one durable append: the record, its sync, the bound, the queue", BenchmarkAppendSync, 1, 4, 2},
		{"a batch of 64", BenchmarkAppendBatch, 1, 4, 3},
		{"64 producers: one alone, 63 together", BenchmarkGroupCommit, 2, 8, 3},
		{"memory, mapped", func(b *testing.B) { appendMemory(b, stratalog.WriteMmap) }, 0, 0, 0},
		{"memory, written", func(b *testing.B) { appendMemory(b, stratalog.WritePwrite) }, 0, 1, 0},
		{"get of 32", BenchmarkGet, 0, 1, 0},
		{"read by place", BenchmarkRead, 0, 0, 0},
		{"1000 records into 64 queues", func(b *testing.B) { queueApply(b, 64) }, 0, 64, 0},
	} {
		first, second := testing.Benchmark(c.run), testing.Benchmark(c.run)
		if first.N != 20 || second.N != 20 {
			t.Errorf("%s: it did not run: %+v", c.name, first)
			continue
		}
		// Allocations are exact in nearly all runs, and not under the race detector.
		one, other := first.Extra["mallocs/op"], second.Extra["mallocs/op"]
		if !raceEnabled && (min(one, other) > c.mallocs || max(one, other) < c.mallocs) {
			t.Errorf("%s: %v and %v allocations, want %v", c.name, one, other, c.mallocs)
		}
		for _, unit := range []string{"mallocs/op", "malloced-B/op"} {
			delete(first.Extra, unit)
			delete(second.Extra, unit)
		}
		if !maps.Equal(first.Extra, second.Extra) {
			t.Errorf("%s: %v in one run, %v in the next", c.name, first.Extra, second.Extra)
		}
		if syncs, calls := first.Extra["syncs/op"], first.Extra["syscalls/op"]; syncs != c.syncs || calls != c.calls {
			t.Errorf("%s: %v syncs and %v system calls, want %v and %v", c.name, syncs, calls, c.syncs, c.calls)
		}
	}
}
