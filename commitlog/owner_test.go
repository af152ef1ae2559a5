package commitlog

import (
	"context"
	"errors"
	"path"
	"runtime"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// A completion that panics fences the log: everybody hears of it, nobody hangs,
// and Recover goes on.
func TestCompletionPanics(t *testing.T) {
	for _, d := range []contract.Durability{contract.DurabilityMemory, contract.DurabilitySync} {
		t.Run(d.String(), func(t *testing.T) {
			r := openRig(t, smallOptions(vfs.NewSim(), "/store"))
			first := mustAppend(t, r.log, message("T", 1), contract.DurabilitySync)
			answered := make(chan error, 1)
			if err := r.log.Submit(context.Background(), message("T", 2), d, func(contract.Receipt, error) { panic("the host's fault") }); err != nil {
				t.Fatal(err)
			}
			if err := r.log.Submit(context.Background(), message("T", 3), d, func(_ contract.Receipt, err error) { answered <- err }); err == nil {
				<-answered
			} else if !errors.Is(err, contract.ErrFenced) {
				t.Fatal(err)
			}
			for r.log.Fenced() == nil {
				runtime.Gosched()
			}
			_, err := r.log.Append(context.Background(), message("T", 4), contract.DurabilitySync)
			if !errors.Is(err, contract.ErrFenced) || !strings.Contains(err.Error(), "the host's fault") {
				t.Fatalf("append after the panic: %v", err)
			}
			readBack(t, r.log, first, message("T", 1))
			if _, err := r.log.Recover(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
			mustAppend(t, r.log, message("T", 5), contract.DurabilitySync)
			r.close(true)
		})
	}
}

// A context that has ended admits nothing.
func TestEndedContextAdmitsNothing(t *testing.T) {
	r := openRig(t, smallOptions(vfs.NewSim(), "/store"))
	defer r.close(true)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, d := range []contract.Durability{contract.DurabilityMemory, contract.DurabilitySync} {
		got, err := r.log.Append(ctx, message("T", 1), d)
		if !errors.Is(err, context.Canceled) || errors.Is(err, contract.ErrOutcomeUnknown) || got.Accepted() {
			t.Errorf("append: %+v, %v", got, err)
		}
		err = r.log.Submit(ctx, message("T", 1), d, func(contract.Receipt, error) { t.Error("answered") })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("submit: %v", err)
		}
	}
	if n := r.log.Stats().Records; n != 0 {
		t.Errorf("%d records were placed", n)
	}
}

// The maker of a spare waits for the log to come on; nobody who cuts or retires
// has to wait for it.
func TestSpareInTheMakingHoldsNobodyUp(t *testing.T) {
	opt := smallOptions(vfs.OS(), t.TempDir())
	opt.SegmentSize, opt.MaxUnsynced, opt.firstZeroed = 16<<20, 8<<20, 4096
	r := openRig(t, opt)
	defer r.close(true)
	first := mustAppend(t, r.log, message("T", 20), contract.DurabilityMemory)
	for r.log.Appended() < contract.Offset(opt.SegmentSize/nextAt+4096) {
		mustAppend(t, r.log, message("T", 24), contract.DurabilityMemory)
	}
	for building := false; !building; runtime.Gosched() {
		entries, err := opt.FS.ReadDir(path.Join(opt.Dir, SidecarDir, "spare"))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			building = building || strings.HasSuffix(e.Name, ".building")
		}
	}
	rng, _ := first.Range()
	if err := r.log.TruncateTo(context.Background(), rng.End, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := r.log.Retire(0); err != nil {
		t.Fatal(err)
	}
	readBack(t, r.log, first, message("T", 20))
}

// After a close each sidecar file holds the same in both slots: damage to one of
// them costs nothing.
func TestOneSlotIsEnoughAfterClose(t *testing.T) {
	for name, size := range map[string]int64{boundName: codec.BoundFileSlotSize, stateName: codec.StateFileSlotSize, cursorsName: codec.StateFileSlotSize} {
		for slot := range int64(2) {
			sim := vfs.NewSim()
			opt := smallOptions(sim, "/store")
			r := openRig(t, opt)
			var last contract.Receipt
			for i := range 30 {
				last = mustAppend(t, r.log, message("T", i), contract.DurabilitySync)
			}
			cursor := contract.Cursor{Lane: contract.LaneQueue, Epoch: 1, Next: last.Durable()}
			if err := r.log.SaveCursor(cursor, 30); err != nil {
				t.Fatal(err)
			}
			r.close(true)
			f, err := sim.Open(path.Join("/store", SidecarDir, name), vfs.ReadWrite)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte{0xA5}, slot*size+20); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(f.Sync(), f.Close()); err != nil {
				t.Fatal(err)
			}
			opt.Unclean = false
			r = openRig(t, opt)
			rep := r.log.Report()
			got, found, err := r.log.LoadCursor(contract.LaneQueue)
			if rep.Start != "closed well" || rep.NewEpoch || rep.Foreign || err != nil || !found || got != cursor ||
				r.log.CursorTally(contract.LaneQueue) != 30 {
				t.Errorf("%s, slot %d: %+v; cursor %+v %v %v", name, slot, rep, got, found, err)
			}
			r.close(true)
		}
	}
}

// A refusal because segments are gone names the first of them and exactly what
// was lost.
func TestMissingSegmentsAreNamed(t *testing.T) {
	sim := vfs.NewSim()
	opt := smallOptions(sim, "/store")
	r := openRig(t, opt)
	for i := 0; r.log.Durable() < contract.Offset(2*opt.SegmentSize+100); i++ {
		mustAppend(t, r.log, message("T", i), contract.DurabilitySync)
	}
	end := r.log.Durable()
	r.close(true)
	gone := path.Join("/store/commitlog", segmentName(contract.Offset(2*opt.SegmentSize)))
	if err := sim.Remove(gone); err != nil {
		t.Fatal(err)
	}
	_, err := Open(context.Background(), opt)
	var damage *contract.CorruptionError
	want := contract.Range{Start: contract.Offset(2 * opt.SegmentSize), End: end}
	if !errors.As(err, &damage) || damage.File != gone || damage.Lost != want {
		t.Fatalf("%v, want the loss of %v in %s", err, want, gone)
	}
}
