package dispatch

import (
	"context"
	"testing"

	"github.com/stratalog/stratalog/internal/clock"
)

// BenchmarkCatchUp measures what the dispatcher adds to the log and the sink:
// parsing, checks, cursors.
func BenchmarkCatchUp(b *testing.B) {
	const records = 50_000
	f := newFakeLog()
	f.put(b, records, true)
	b.ReportAllocs()
	for b.Loop() {
		d := New(f, newMemCursors(), clock.Real(), Options{})
		if _, err := d.Add(&countSink{}, LaneOptions{Required: true}); err != nil {
			b.Fatal(err)
		}
		if _, err := d.CatchUp(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(records*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
