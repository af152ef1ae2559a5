package stratalog

import (
	"context"
	"errors"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// batchesOf makes a closed store with n records of three messages each, and
// returns the path of their queue's file.
func batchesOf(t *testing.T, n int) (*vfs.Sim, Options, string) {
	t.Helper()
	sim := vfs.NewSim()
	opt := testOptions(sim, "/store")
	s := start(t, opt)
	for i := range n {
		mustAppend(t, s, inner("b", 3, body(i)), Memory)
	}
	closeClean(t, s)
	const dir = "/store/batchconsumequeue/b/0/"
	list, err := sim.ReadDir(dir)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	return sim, opt, dir + list[0].Name
}

// TestBatchUnitDamage flips bits of a unit, and follows Next through the queue: the
// loop ends at the queue's end, no record comes twice, and whoever misses one was
// told of damage, also who looks for a tag.
func TestBatchUnitDamage(t *testing.T) {
	ctx := context.Background()
	const records = 20
	for _, c := range []struct {
		field string
		at    int64
		mask  byte
	}{{"physical offset", 7, 1}, {"physical offset below 0", 0, 0x80}, {"size", 11, 4}, {"first number low", 35, 8}, {"first number below 0", 28, 0x80},
		{"first number high", 30, 1}, {"first number near the top", 28, 0x7F}, {"count", 37, 0x10}, {"count below 0", 36, 0x80}} {
		for unit := int64(1); unit < records-1; unit += 1 + unit%5 {
			sim, opt, file := batchesOf(t, records)
			b := readFile(t, sim, file)
			at := unit*codec.BatchUnitSize + c.at
			writeFile(t, sim, file, at, []byte{b[at] ^ c.mask}, false)
			r, err := OpenReader(ctx, opt, ReaderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			_, end := r.QueueRange("b", 0)
			for _, tag := range []string{"", "odd", "even"} {
				var out Records
				got, told, next := 0, 0, int64(0)
				for next < end {
					err := r.Get(ctx, Request{Topic: "b", Offset: next, Tag: tag, MaxCount: 7}, &out)
					if err != nil && !errors.Is(err, contract.ErrCorrupt) {
						t.Fatalf("%s of unit %d, tag %q at %d: %v", c.field, unit, tag, next, err)
					}
					if out.Next <= next || out.Next > end {
						t.Fatalf("%s of unit %d, tag %q at %d: next is %d, %v", c.field, unit, tag, next, out.Next, err)
					}
					if err != nil {
						told++
					}
					got, next = got+out.Len(), out.Next
				}
				out.Release()
				want := records
				if tag == "even" {
					want = 0
				}
				// If the search for the queue's end met the unit, the queue ends
				// there, until its owner opens it and counts.
				if got > want || got < want && told == 0 && end == records*3 {
					t.Errorf("%s of unit %d, tag %q: %d records of %d, told of damage %d times", c.field, unit, tag, got, want, told)
				}
			}
			faults := 0
			if _, err := r.Verify(ctx, func(f Finding) {
				if f.Severity == Fault {
					faults++
				}
			}); err != nil || faults == 0 {
				t.Errorf("%s of unit %d: %d faults, %v", c.field, unit, faults, err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestBatchVerifyEnds: numbers that lead back do not lead the check round in a
// circle.
func TestBatchVerifyEnds(t *testing.T) {
	ctx := context.Background()
	sim, opt, file := batchesOf(t, 200)
	for unit := range int64(200) {
		at := unit*codec.BatchUnitSize + 28
		writeFile(t, sim, file, at, make([]byte, 8), false)
	}
	r, err := OpenReader(ctx, opt, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wrong := map[string]bool{}
	report, err := r.Verify(within(t), func(f Finding) {
		if f.Kind == "wrong-unit" && f.Offset%codec.BatchUnitSize == 0 && f.File == file {
			wrong[f.Text] = true
		}
	})
	if err = errors.Join(err, r.Close()); err != nil || report.Units != 200 || len(wrong) == 0 {
		t.Fatalf("%+v, %d, %v", report, len(wrong), err)
	}
}
