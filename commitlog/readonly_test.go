package commitlog

import (
	"context"
	"errors"
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// TestReadOnlyBesideShaping opens and refreshes again and again while the owner
// rolls, cuts and retires segments: none of it looks like a missing segment.
func TestReadOnlyBesideShaping(t *testing.T) {
	everyPath(t, func(t *testing.T, opt Options) {
		if _, sim := opt.FS.(*vfs.Sim); sim && raceEnabled {
			t.Skip("two processes race for the bytes behind the bound, by design")
		}
		opt.AdmissionWait, opt.Gather = -1, -1
		log, err := openStill(opt, nil)
		if err != nil {
			t.Fatal(err)
		}
		stillAppend(t, log, message("T", 0))
		stop, done := make(chan struct{}), make(chan error, 1)
		go func() {
			var err error
			for n := 0; err == nil; n++ {
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
				var ro *ReadOnly
				if ro, err = OpenReadOnly(opt, n%2 == 0); err == nil {
					err = errors.Join(ro.Refresh(), ro.Close())
				}
			}
			done <- err
		}()
		rounds := 20
		if testing.Short() {
			rounds = 5
		}
		for range rounds {
			var cut contract.Range
			for i := range 120 {
				r := stillAppend(t, log, message("T", i))
				if i == 40 {
					cut, _ = r.Range()
				}
			}
			if _, err := log.Retire(cut.Start); err != nil {
				t.Fatal(err)
			}
			if err := log.TruncateTo(context.Background(), cut.Start, nil); err != nil {
				t.Fatal(err)
			}
		}
		close(stop)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := log.Close(true); err != nil {
			t.Error(err)
		}
	})
}

// TestReadOnlyGaps: with segments missing between, what is there is found.
func TestReadOnlyGaps(t *testing.T) {
	sim := vfs.NewSim()
	opt := simOptions(sim)
	receipts := stillLog(t, opt, 400)
	size := contract.Offset(16 << 10)
	ro, err := OpenReadOnly(opt, false)
	if err != nil {
		t.Fatal(err)
	}
	files := ro.Segments()
	if err := ro.Close(); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{1, 2} {
		if err := sim.Remove(files[i].Path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := OpenReadOnly(opt, false); !errors.Is(err, contract.ErrCorrupt) {
		t.Fatalf("%v", err)
	}
	if ro, err = OpenSalvage(opt, true); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ro.Close() }()
	faults := ro.Faults()
	if len(faults) != 1 || !faults[0].Missing || faults[0].Damage.Lost != (contract.Range{Start: size, End: 3 * size}) || faults[0].Damage.File != files[1].Path {
		t.Fatalf("%+v", faults)
	}
	var rec Record
	defer rec.Release()
	for _, r := range receipts {
		rng, _ := r.Range()
		gone := rng.Start >= size && rng.Start < 3*size
		if found, err := ro.Read(rng.Start, &rec); err != nil || found == gone {
			t.Fatalf("at %d: %v, %v", rng.Start, found, err)
		}
	}
}
