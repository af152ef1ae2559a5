package commitlog

import (
	"errors"
	"math/rand/v2"
	"path"
	"syscall"
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// TestSidecarAlwaysWhole kills a log at each step of its sidecar's updates,
// opens it, and cuts the power at each step of that: there is always a whole
// state, bound and cursors file, and no epoch is forgotten.
func TestSidecarAlwaysWhole(t *testing.T) {
	sim := vfs.NewSim()
	opt := simOptions(sim)
	receipts := stillLog(t, opt, 12)
	log, err := openStill(opt, nil)
	if err != nil {
		t.Fatal(err)
	}
	states, epoch := 0, log.Epoch()
	rng := rand.New(rand.NewPCG(8, 8))
	look := func(image *vfs.Sim, at string) {
		states++
		side, found, err := loadSidecar(image, "/store", vfs.ReadOnly)
		if err != nil || found.state != sideOK || found.bound != sideOK || side.cursorsFound != sideOK {
			t.Fatalf("%s: state %v, bound %v, cursors %v, %v", at, found.state, found.bound, side.cursorsFound, err)
		}
		if side.epoch() < epoch {
			t.Fatalf("%s: epoch %d, was %d", at, side.epoch(), epoch)
		}
		if err := side.close(); err != nil {
			t.Fatal(err)
		}
	}
	sim.OnOp(func(op vfs.Op) {
		killed := sim.Kill()
		killed.OnOp(func(in vfs.Op) {
			at := "killed before " + op.Kind.String() + " of " + path.Base(op.Path) + ", cut before " + in.Kind.String() + " of " + path.Base(in.Path)
			for _, choose := range []vfs.Chooser{vfs.AllOld(), vfs.AllNew(), vfs.Random(rng, 0.5),
				vfs.RandomGarbage(rng, 0.5, 0.5), vfs.RandomGarbage(rng, 0.9, 1)} {
				look(killed.Crash(choose), at)
			}
		})
		o := opt
		o.FS = killed
		again, err := openStill(o, &history{})
		if err != nil {
			t.Fatal(err)
		}
		_ = again.Close(false)
	})
	for i := 11; i > 6; i-- {
		rng, _ := receipts[i].Range()
		if err := log.TruncateTo(t.Context(), rng.Start, nil); err != nil {
			t.Fatal(err)
		}
		epoch = log.Epoch()
		if err := log.SaveCursor(contract.Cursor{Lane: contract.LaneQueue, Epoch: epoch, Next: rng.Start}, -1); err != nil {
			t.Fatal(err)
		}
	}
	sim.OnOp(nil)
	if err := log.Close(true); err != nil {
		t.Fatal(err)
	}
	if states < 2000 {
		t.Fatalf("only %d states", states)
	}
	t.Logf("%d states", states)
}

// TestRetirePowerCut cuts the power in the middle of the retirement of several
// segments: no gap is left, and nothing that stays is lost.
func TestRetirePowerCut(t *testing.T) {
	for _, synced := range []bool{true, false} {
		sim := vfs.NewSim()
		opt := simOptions(sim)
		opt.SegmentSize, opt.MaxMessageSize = 4096, 1024
		log, err := openStill(opt, nil)
		if err != nil {
			t.Fatal(err)
		}
		var receipts []contract.Receipt
		for i := range 40 {
			receipts = append(receipts, stillAppend(t, log, message("T", i)))
		}
		if synced {
			// Else the bound on disk is still that of the open.
			if err := log.syncBound(); err != nil {
				t.Fatal(err)
			}
		}
		last := len(receipts) - 1
		states := 0
		sim.OnOp(func(op vfs.Op) {
			for mask := range uint64(1) << min(sim.PendingCount(), 8) {
				states++
				o := opt
				o.FS = sim.Crash(vfs.Mask(mask))
				again, err := openStill(o, &history{})
				if err != nil {
					t.Fatalf("before %v of %s, mask %b: %v", op.Kind, op.Path, mask, err)
				}
				readBack(t, again, receipts[last], message("T", last))
				_ = again.Close(false)
			}
		})
		if at, err := log.Retire(1 << 40); err != nil || at < 3*4096 {
			t.Fatal(at, err)
		}
		sim.OnOp(nil)
		_ = log.Close(false)
		if states < 8 {
			t.Fatalf("only %d states", states)
		}
	}
}

// TestCrashInFirstOpen opens a log that has no sidecar and whose first segments
// are long gone, and cuts the power at each step of that.
func TestCrashInFirstOpen(t *testing.T) {
	sim := vfs.NewSim()
	opt := simOptions(sim)
	receipts := stillLog(t, opt, 80)
	log, err := openStill(opt, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Retire(1 << 40); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(true); err != nil {
		t.Fatal(err)
	}
	for _, name := range sideNames {
		if err := errors.Join(sim.Remove(path.Join(sideDir, name)), sim.SyncDir(sideDir)); err != nil {
			t.Fatal(err)
		}
	}
	last := len(receipts) - 1
	states := 0
	image := sim.Kill()
	rng := rand.New(rand.NewPCG(9, 9))
	image.OnOp(func(op vfs.Op) {
		for _, choose := range []vfs.Chooser{vfs.AllOld(), vfs.AllNew(), vfs.Random(rng, 0.5), nil} {
			states++
			o := opt
			if choose == nil {
				o.FS = image.Kill()
			} else {
				o.FS = image.Crash(choose)
			}
			again, err := openStill(o, nil)
			if err != nil {
				t.Fatalf("before %v of %s: %v", op.Kind, op.Path, err)
			}
			readBack(t, again, receipts[last], message("T", last))
			stillAppend(t, again, message("T", 1))
			_ = again.Close(false)
		}
	})
	opt.FS = image
	if log, err = openStill(opt, nil); err != nil {
		t.Fatal(err)
	}
	_ = log.Close(false)
	if states < 100 {
		t.Fatalf("only %d states", states)
	}
}

// TestSyncFailsInSecondSegment: appends of a segment whose sync succeeded are
// acknowledged, although that of the next one fails.
func TestSyncFailsInSecondSegment(t *testing.T) {
	ctx := testContext(t)
	sim := vfs.NewSim()
	opt := simOptions(sim)
	opt.MaxUnsynced = 1 << 20
	log, err := openStill(opt, nil)
	if err != nil {
		t.Fatal(err)
	}
	type answered struct {
		r   contract.Receipt
		err error
	}
	var got []answered
	for i := 0; log.Stats().Rolls < 1 || i%3 != 0; i++ {
		pump(log)
		if err := log.Submit(ctx, message("T", i+5), contract.DurabilitySync, func(r contract.Receipt, err error) {
			got = append(got, answered{r, err})
		}); err != nil {
			t.Fatal(err)
		}
	}
	sim.FailSync("commitlog/*", 2, syscall.EIO, true)
	if err := background(log); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	durable, failed := 0, 0
	for i, a := range got {
		rng, ok := a.r.Range()
		switch {
		case !ok:
			t.Fatalf("append %d: no range, %v", i, a.err)
		case rng.End <= 16<<10 && (a.err != nil || a.r.Status() != contract.StatusPutOk || a.r.Reached() != contract.ReachedLocal):
			t.Fatalf("append %d at %v: %v, %v", i, rng, a.r.Status(), a.err)
		case rng.Start >= 16<<10 && (!errors.Is(a.err, contract.ErrFenced) || a.r.Status() != contract.StatusFlushDiskTimeout || a.r.Reached() != contract.ReachedMemory):
			t.Fatalf("append %d at %v: %v, %v", i, rng, a.r.Status(), a.err)
		case a.err == nil:
			durable++
		default:
			failed++
		}
	}
	if durable == 0 || failed == 0 {
		t.Fatalf("%d durable, %d failed", durable, failed)
	}
	if log.Durable() != 16<<10 {
		t.Fatalf("durable %d", log.Durable())
	}
	if report, err := log.Recover(ctx, nil); err != nil || int(report.Records) != failed {
		t.Fatalf("%+v, %v", report, err)
	}
	_ = log.Close(false)
}

// TestCompletionOfTruncate: an append that is admitted while TruncateTo begins
// is answered, and its completion may append.
func TestCompletionOfTruncate(t *testing.T) {
	ctx := testContext(t)
	fault := vfs.NewFault(vfs.NewSim())
	opt := simOptions(fault)
	opt.MaxUnsynced = 1 << 20
	log, err := openStill(opt, nil)
	if err != nil {
		t.Fatal(err)
	}
	stillAppend(t, log, message("T", 1))
	if _, err := log.Append(ctx, message("T", 2), contract.DurabilityMemory); err != nil {
		t.Fatal(err)
	}
	var outer, inner int
	fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpDatasync), Path: "commitlog/*", After: true, Hook: func(vfs.Op) {
		if err := log.Submit(ctx, message("T", 3), contract.DurabilitySync, func(_ contract.Receipt, err error) {
			outer++
			if err == nil {
				err = log.Submit(ctx, message("T", 4), contract.DurabilityMemory, func(_ contract.Receipt, err error) {
					if inner++; err != nil {
						t.Error(err)
					}
				})
			}
			if err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Error(err)
		}
	}})
	if err := log.TruncateTo(ctx, 0, nil); err != nil {
		t.Fatal(err)
	}
	if outer != 1 || inner != 1 {
		t.Fatalf("answered %d and %d times", outer, inner)
	}
	if got := bodies(t, log); len(got) != 1 || string(got[0]) != string(message("T", 4).Body) {
		t.Fatalf("%d records", len(got))
	}
	_ = log.Close(false)
}
