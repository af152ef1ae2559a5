package commitlog

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/clock"
	"github.com/stratalog/stratalog/internal/vfs"
)

// slowRig is a log on a manual clock whose syncs can hang.
func slowRig(t *testing.T, path WritePath) (*rig, *vfs.Fault, *vfs.Sim, *clock.Manual) {
	sim := vfs.NewSim()
	fault := vfs.NewFault(sim)
	opt := smallOptions(fault, "/store")
	opt.WritePath = path
	opt.MaxUnsynced = 1 << 20
	clk := clock.NewManual(time.UnixMilli(1_700_000_000_000))
	opt.Clock = clk
	return openRig(t, opt), fault, sim, clk
}

type outcome struct {
	r   contract.Receipt
	err error
}

// await advances the clock until an outcome comes.
func await(t *testing.T, ctx context.Context, clk *clock.Manual, step time.Duration, got <-chan outcome) outcome {
	t.Helper()
	for {
		select {
		case o := <-got:
			return o
		case <-ctx.Done():
			t.Fatal("no answer")
		default:
			clk.Advance(step)
			runtime.Gosched()
		}
	}
}

// TestSyncTimeout lets a sync hang: its appends are answered FlushDiskTimeout
// after SyncTimeout, Memory appends go on meanwhile, across a roll, and in the
// end every record is there once and durable.
func TestSyncTimeout(t *testing.T) {
	for _, path := range []WritePath{WritePwrite, WriteMmap} {
		ctx := testContext(t)
		r, fault, _, clk := slowRig(t, path)
		entered, release := hangSyncs(fault)
		got := make(chan outcome, 10)
		complete := func(r contract.Receipt, err error) { got <- outcome{r, err} }
		if err := r.log.Submit(ctx, message("T", 1), contract.DurabilitySync, complete); err != nil {
			t.Fatal(err)
		}
		<-entered
		// This one is placed behind the sync that hangs.
		if err := r.log.Submit(ctx, message("T", 2), contract.DurabilitySync, complete); err != nil {
			t.Fatal(err)
		}
		n := 2
		for r.log.Stats().Rolls < 2 {
			n++
			rec, err := r.log.Append(ctx, message("T", n), contract.DurabilityMemory)
			if err != nil || rec.Reached() != contract.ReachedMemory {
				t.Fatalf("append while a sync hangs: %v, %v", rec.Reached(), err)
			}
		}
		var ranges []contract.Range
		for range 2 {
			o := await(t, ctx, clk, time.Second, got)
			var e *contract.Error
			rng, ok := o.r.Range()
			if !errors.As(o.err, &e) || e.Kind != contract.KindTimeout || o.r.Status() != contract.StatusFlushDiskTimeout ||
				!ok || o.r.Reached() != contract.ReachedMemory || !o.r.FailedWaits().Has(contract.WaitDisk) {
				t.Fatalf("%v: status %v, range %v, reached %v, %v", path, o.r.Status(), ok, o.r.Reached(), o.err)
			}
			ranges = append(ranges, rng)
		}
		if ranges[0].End > ranges[1].Start {
			t.Fatalf("answered out of order: %v", ranges)
		}
		if r.log.Durable() != 0 || r.log.Confirmed() != 0 {
			t.Fatalf("durable %d while the sync hangs", r.log.Durable())
		}
		close(release)
		// The records owe a sync; it comes without anybody asking.
		for r.log.Durable() < r.log.Appended() {
			if ctx.Err() != nil {
				t.Fatal("never durable")
			}
			clk.Advance(time.Second)
			runtime.Gosched()
		}
		records := 0
		if err := r.log.Walk(0, r.log.Appended(), func(*codec.MessageView) { records++ }); err != nil || records != n {
			t.Fatalf("%d records, want %d; %v", records, n, err)
		}
		r.close(true)
	}
}

// TestSecondBatchIsNotSavedByLaterSync: a sync fails while appends wait behind
// it. None of them is acknowledged, although their own sync would succeed.
func TestSecondBatchIsNotSavedByLaterSync(t *testing.T) {
	for _, path := range []WritePath{WritePwrite, WriteMmap} {
		ctx := testContext(t)
		r, fault, sim, _ := slowRig(t, path)
		acked := mustAppend(t, r.log, message("T", 0), contract.DurabilitySync)
		entered, release := hangSyncs(fault)
		sim.FailSync("commitlog/*", 1, syscall.EIO, true)
		got := make(chan outcome, 10)
		complete := func(r contract.Receipt, err error) { got <- outcome{r, err} }
		if err := r.log.Submit(ctx, message("T", 1), contract.DurabilitySync, complete); err != nil {
			t.Fatal(err)
		}
		<-entered
		for i := 2; i < 6; i++ {
			if err := r.log.Submit(ctx, message("T", i), contract.DurabilitySync, complete); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.log.Append(ctx, message("T", 6), contract.DurabilityMemory); err != nil {
			t.Fatal(err)
		}
		close(release)
		for range 5 {
			o := <-got
			if o.err == nil || !errors.Is(o.err, contract.ErrFenced) || !errors.Is(o.err, syscall.EIO) || o.r.Reached() == contract.ReachedLocal {
				t.Fatalf("%v: answered %v, reached %v, %v", path, o.r.Status(), o.r.Reached(), o.err)
			}
		}
		readBack(t, r.log, acked, message("T", 0))
		report, err := r.log.Recover(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if report.End != r.log.Appended() || r.log.Durable() != r.log.Appended() || report.CutCause == nil {
			t.Fatalf("%+v", report)
		}
		more := mustAppend(t, r.log, message("T", 7), contract.DurabilitySync)
		opt := simOptions(sim.Crash(vfs.AllOld()))
		again, err := openStill(opt, nil)
		if err != nil {
			t.Fatal(err)
		}
		readBack(t, again, acked, message("T", 0))
		readBack(t, again, more, message("T", 7))
		_ = again.Close(false)
		r.close(true)
	}
}

// TestBackgroundSync: Memory and Interval records become durable and visible by
// themselves, within their time.
func TestBackgroundSync(t *testing.T) {
	for d, within := range map[contract.Durability]time.Duration{
		contract.DurabilityMemory: DefaultSyncInterval, contract.DurabilityInterval: DefaultInterval} {
		ctx := testContext(t)
		r, _, _, clk := slowRig(t, WritePwrite)
		rec := mustAppend(t, r.log, message("T", 1), d)
		rng, _ := rec.Range()
		due := clk.Mono() + within
		// The commit loop must have taken up the time before it is moved.
		for {
			r.log.mu.Lock()
			at := r.log.dueAt
			r.log.mu.Unlock()
			if at != 0 && !r.log.kicked.Load() {
				break
			}
			runtime.Gosched()
		}
		for r.log.Durable() < rng.End {
			if clk.Mono() > due+time.Millisecond && ctx.Err() != nil {
				t.Fatalf("%v: not durable at %v", d, clk.Mono())
			}
			if clk.Mono() <= due {
				clk.Advance(within / 4)
			} else {
				clk.Advance(0)
			}
			runtime.Gosched()
		}
		if err := r.log.WaitConfirmed(ctx, rng.Start); err != nil {
			t.Fatal(err)
		}
		r.close(true)
	}
}

// TestFullWindowSyncs: a full window of unsynced bytes makes a sync come at
// once, not at the next interval.
func TestFullWindowSyncs(t *testing.T) {
	ctx := testContext(t)
	sim := vfs.NewSim()
	opt := smallOptions(sim, "/store")
	opt.Clock = clock.NewManual(time.UnixMilli(1_700_000_000_000)) // it never moves
	r := openRig(t, opt)
	for i := range 200 {
		if _, err := r.log.Append(ctx, message("T", i), contract.DurabilityMemory); err != nil {
			t.Fatal(err)
		}
	}
	r.close(true)
}

// TestReadersBesideWriter reads the tail and old records while others append,
// roll and retire.
func TestReadersBesideWriter(t *testing.T) {
	everyPath(t, func(t *testing.T, opt Options) {
		ctx := testContext(t)
		r := openRig(t, opt)
		stop, cancel := context.WithCancel(ctx)
		var writers, readers sync.WaitGroup
		for g := range 2 {
			readers.Go(func() {
				var rec Record
				defer rec.Release()
				at := contract.Offset(0)
				for {
					sel, err := r.log.ReadFrom(at, 2000)
					if err != nil {
						t.Errorf("reader %d at %d: %v", g, at, err)
						return
					}
					if sel == nil {
						if at < r.log.MinOffset() {
							at = r.log.MinOffset()
							continue
						}
						if r.log.WaitConfirmed(stop, at) != nil {
							return
						}
						continue
					}
					b := sel.Bytes()
					for len(b) > 0 {
						size, magic, _ := codec.PeekMessage(b)
						if magic == codec.BlankMagic {
							at = (at/16384 + 1) * 16384
							break
						}
						found, err := r.log.ReadSized(at, size, &rec)
						if err != nil || !found && at >= r.log.MinOffset() {
							t.Errorf("reader %d at %d: %v, %v", g, at, found, err)
						}
						at += contract.Offset(size)
						b = b[size:]
					}
					sel.Release()
				}
			})
		}
		for g := range 2 {
			writers.Go(func() {
				for i := range 200 {
					if _, err := r.log.Append(ctx, message("T", g*1000+i), anyDurability[i%3]); err != nil {
						t.Errorf("append: %v", err)
					}
					if i%40 == 39 {
						if _, err := r.log.Retire(r.log.Durable() - 20<<10); err != nil {
							t.Errorf("retire: %v", err)
						}
					}
				}
			})
		}
		writers.Wait()
		if err := r.log.Drain(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
		readers.Wait()
		r.close(true)
	})
}
