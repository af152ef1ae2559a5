package gate

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/internal/clock"
)

// bodySize is the length of a message body, recordSize no less than what its
// record takes in the log.
const (
	bodySize   = 1024
	recordSize = 1280
)

// rig is a store on a real disk whose clock stands still: nothing happens but
// what a benchmark asks for, so its counters are exact.
type rig struct {
	b     *testing.B
	fs    *counting
	opt   stratalog.Options
	store *stratalog.Store
	msg   stratalog.Message
	from  counts
}

// newRig opens a store for a number of records.
func newRig(b *testing.B, records int, opt stratalog.Options) *rig {
	b.Helper()
	b.ReportAllocs()
	r := &rig{b: b, fs: newCounting(), opt: opt, msg: stratalog.Message{Topic: "gate", Body: make([]byte, bodySize),
		Properties: []byte("TAGS\x01red\x02KEYS\x01key\x02")}}
	r.opt.Dir, r.opt.FS, r.opt.DiskFloor = folder(b), r.fs, -1
	if r.opt.Clock == nil {
		r.opt.Clock = clock.NewManual(noon)
	}
	if r.opt.SegmentSize == 0 {
		r.opt.SegmentSize = segmentSize(records)
	}
	if r.opt.QueueFileSize == 0 {
		r.opt.QueueFileSize = 20 * int64(records+1)
	}
	r.open()
	b.Cleanup(r.close)
	return r
}

// folder makes a folder whose path is of the same length in each run, unlike that
// of b.TempDir: paths are allocated too.
func folder(b *testing.B) string {
	dir := fmt.Sprintf("%s/store%010d", cmp.Or(os.Getenv("GOTMPDIR"), os.TempDir()), rand.Uint32())
	if err := os.Mkdir(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			b.Error(err)
		}
	})
	return dir
}

func (r *rig) open() {
	ctx := context.Background()
	store, err := stratalog.Open(ctx, r.opt)
	if err != nil {
		r.b.Fatal(err)
	}
	if err := store.Start(ctx); err != nil {
		r.b.Fatal(err)
	}
	r.store = store
}

func (r *rig) close() {
	if report, err := r.store.Close(context.Background()); err != nil || !report.Clean {
		r.b.Errorf("close: clean %v, %v", report.Clean, err)
	}
}

// noon is what a clock that stands still says.
var noon = time.Unix(1_700_000_000, 0)

// ticking is a clock that a microsecond passes on for each look at it. Its
// timers never fire.
type ticking struct {
	*clock.Manual
	looks atomic.Int64
}

func (t *ticking) Mono() time.Duration { return time.Duration(t.looks.Add(1)) * time.Microsecond }

// segmentSize returns a segment that holds the records in its first eighth: the
// next one is begun when an eighth is used.
func segmentSize(records int) int64 {
	return (int64(records)*recordSize*8 + 4<<20) &^ 4095
}

// append appends a message and waits until it can be read through its queue.
func (r *rig) append(d stratalog.Durability) {
	receipt, err := r.store.Append(context.Background(), &r.msg, d)
	if err != nil {
		r.b.Fatal(err)
	}
	if d == stratalog.Sync {
		r.visible(receipt)
	}
}

func (r *rig) visible(receipt stratalog.Receipt) {
	place, _ := receipt.Range()
	if err := r.store.WaitVisible(context.Background(), place.End); err != nil {
		r.b.Fatal(err)
	}
}

// begin starts the clock of the benchmark and the counters.
func (r *rig) begin() {
	r.from = r.fs.now()
	r.b.ResetTimer()
}

// end reports what b.N operations, of so many payload bytes each, took.
func (r *rig) end(payload int) {
	r.b.StopTimer()
	took, n := r.fs.since(r.from), float64(r.b.N)
	r.b.ReportMetric(float64(took.syncs)/n, "syncs/op")
	r.b.ReportMetric(float64(took.calls)/n, "syscalls/op")
	if payload > 0 {
		r.b.ReportMetric(float64(took.written)/n/float64(payload), "written-B/payload-B")
	}
}
