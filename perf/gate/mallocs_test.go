package gate

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// What mallocs counts: rounds of so many operations each.
const (
	mallocRounds = 11
	mallocOps    = 2
	// extraOps is how many operations a benchmark needs room for, beside the b.N
	// that it measures.
	extraOps = mallocRounds * mallocOps
)

// mallocs runs more operations and reports what they allocate, as mallocs/op and
// malloced-B/op. The testing package divides what all b.N allocate by b.N and
// rounds down. Where b.N is small, what a wakeup that comes early or late
// allocates, a timer or the descriptor of a waiting goroutine, makes allocs/op
// differ from run to run; where it is large, nine tenths of an allocation are
// none. Here each round is counted by itself, and what most of them agree on is
// the value: strays are left out, and one more allocation in every other
// operation is seen.
func (r *rig) mallocs(op func()) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector empties pools
	counts, bytes := make([]uint64, mallocRounds), make([]uint64, mallocRounds)
	var from, to runtime.MemStats
	for i := range counts {
		runtime.ReadMemStats(&from)
		for range mallocOps {
			op()
		}
		runtime.ReadMemStats(&to)
		counts[i], bytes[i] = to.Mallocs-from.Mallocs, to.TotalAlloc-from.TotalAlloc
	}
	r.b.ReportMetric(float64(mode(counts))/mallocOps, "mallocs/op")
	r.b.ReportMetric(float64(mode(bytes))/mallocOps, "malloced-B/op")
}

// mode returns the value that occurs most often, of several such the least.
func mode(xs []uint64) uint64 {
	times, best := map[uint64]int{}, xs[0]
	for _, x := range xs {
		times[x]++
	}
	for x, n := range times {
		if n > times[best] || n == times[best] && x < best {
			best = x
		}
	}
	return best
}

func TestMode(t *testing.T) {
	for _, c := range []struct {
		xs   []uint64
		want uint64
	}{{[]uint64{3}, 3}, {[]uint64{4, 3, 4}, 4}, {[]uint64{4, 3, 3, 4, 9}, 3}, {[]uint64{9, 8, 7}, 7}} {
		if got := mode(c.xs); got != c.want {
			t.Errorf("mode(%v) = %d, want %d", c.xs, got, c.want)
		}
	}
}

// kept holds what TestMallocsAreSeen allocates.
var kept []byte

// TestMallocsAreSeen: an allocation in every other operation is seen, and one
// that comes now and then is left out.
func TestMallocsAreSeen(t *testing.T) {
	for _, c := range []struct {
		what  string
		every int
		want  float64
	}{{"none", 0, 0}, {"each", 1, 1}, {"every other", 2, 0.5}, {"now and then", 9, 0}} {
		result := testing.Benchmark(func(b *testing.B) {
			i := 0
			(&rig{b: b}).mallocs(func() {
				if i++; c.every > 0 && i%c.every == 0 {
					kept = make([]byte, 64)
				}
			})
		})
		if got, bytes := result.Extra["mallocs/op"], result.Extra["malloced-B/op"]; got != c.want || bytes != 64*c.want {
			t.Errorf("%s: %v allocations of %v bytes an operation, want %v", c.what, got, bytes, c.want)
		}
	}
}
