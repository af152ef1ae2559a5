package commitlog

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
	"github.com/stratalog/stratalog/mmap"
)

// bodies returns the bodies of all records.
func bodies(t testing.TB, log *Log) [][]byte {
	t.Helper()
	var out [][]byte
	if err := log.Walk(log.MinOffset(), log.Appended(), func(v *codec.MessageView) { out = append(out, bytes.Clone(v.Body())) }); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestTruncate cuts a log at every record and at every segment, dies at once,
// and appends shorter records: no old one comes back, whether the process dies
// or the power goes.
func TestTruncate(t *testing.T) {
	for _, path := range []WritePath{WritePwrite, WriteMmap} {
		ctx := testContext(t)
		whole := vfs.NewSim()
		opt := simOptions(whole)
		opt.WritePath = path
		opt.SegmentSize = 4096
		opt.MaxMessageSize = 1024
		receipts := stillLog(t, opt, 24)
		var at []contract.Offset
		for _, r := range receipts {
			rng, _ := r.Range()
			at = append(at, rng.Start)
			if base := rng.Start / 4096 * 4096; base != rng.Start && (len(at) < 2 || at[len(at)-2] < base) {
				at = append(at, base)
			}
		}
		for _, off := range at {
			keep := 0
			for keep < len(receipts) {
				if rng, _ := receipts[keep].Range(); rng.Start >= off {
					break
				}
				keep++
			}
			sim := whole.Kill()
			opt.FS = sim
			log, err := openStill(opt, nil)
			if err != nil {
				t.Fatal(err)
			}
			epoch := log.Epoch()
			if err := log.TruncateTo(ctx, off, nil); err != nil {
				t.Fatalf("cut at %d: %v", off, err)
			}
			if log.Appended() != off || log.Durable() != off || log.Confirmed() != off || log.Epoch() != epoch+1 {
				t.Fatalf("cut at %d: %+v, epoch %d", off, log.Watermarks(), log.Epoch())
			}
			var rec Record
			if found, err := log.Read(off, &rec); found || err != nil {
				t.Fatalf("read of what was cut: %v, %v", found, err)
			}
			for name, after := range map[string]*vfs.Sim{"kill": sim.Kill(), "old": sim.Crash(vfs.AllOld()), "new": sim.Crash(vfs.AllNew())} {
				o := opt
				o.FS = after
				again, err := openStill(o, nil)
				if err != nil {
					t.Fatalf("cut at %d, %s: %v", off, name, err)
				}
				if got := bodies(t, again); len(got) != keep || again.Appended() != off {
					t.Fatalf("cut at %d, %s: %d records, want %d", off, name, len(got), keep)
				}
				for i := range 7 {
					stillAppend(t, again, &contract.Message{Topic: "N", Body: bytes.Repeat([]byte{'n'}, 10*i)})
				}
				o.FS = after.Crash(vfs.AllOld())
				if again, err = openStill(o, nil); err != nil {
					t.Fatalf("cut at %d, %s: %v", off, name, err)
				}
				got := bodies(t, again)
				if len(got) != keep+7 {
					t.Fatalf("cut at %d, %s: %d records, want %d", off, name, len(got), keep+7)
				}
				for i, b := range got[keep:] {
					if len(b) != 10*i || len(b) > 0 && b[0] != 'n' {
						t.Fatalf("cut at %d, %s: an old record at %d", off, name, keep+i)
					}
				}
				_ = again.Close(false)
			}
			_ = log.Close(false)
		}
	}
}

// TestTruncateRefuses cuts where no record starts.
func TestTruncateRefuses(t *testing.T) {
	opt := simOptions(vfs.NewSim())
	stillLog(t, opt, 5)
	log, err := openStill(opt, nil)
	if err != nil {
		t.Fatal(err)
	}
	end := log.Appended()
	for _, off := range []contract.Offset{-1, 1, end - 1, end + 1, 1 << 40} {
		if err := log.TruncateTo(context.Background(), off, nil); !errors.Is(err, contract.ErrInvalid) {
			t.Fatalf("cut at %d: %v", off, err)
		}
	}
	if err := log.TruncateTo(context.Background(), end, nil); err != nil || log.Epoch() != 1 {
		t.Fatalf("cut at the end: %v, epoch %d", err, log.Epoch())
	}
	stillAppend(t, log, message("T", 1))
	if err := log.Close(true); err != nil {
		t.Fatal(err)
	}
}

// TestTruncateUnderLoad cuts while others append and retire: what is left is a
// log without a hole.
func TestTruncateUnderLoad(t *testing.T) {
	everyPath(t, func(t *testing.T, opt Options) {
		ctx := testContext(t)
		r := openRig(t, opt)
		var wg sync.WaitGroup
		for g := range 3 {
			wg.Go(func() {
				for i := range 150 {
					// A cut may take it away, and with it the answer.
					_, err := r.log.Append(ctx, message("T", g*1000+i), anyDurability[i%3])
					if err != nil && !errors.Is(err, contract.ErrOutcomeUnknown) {
						t.Errorf("append: %v", err)
					}
				}
			})
		}
		wg.Go(func() {
			for range 12 {
				var last contract.Offset
				s := r.log.scanFrom(r.log.segs.Load().last().startOffset(), r.log.Durable())
				for s.Next() {
					last = contract.Offset(s.Offset())
				}
				if last == 0 {
					continue
				}
				if err := r.log.TruncateTo(ctx, last, nil); err != nil && !errors.Is(err, contract.ErrInvalid) {
					t.Errorf("truncate: %v", err)
				}
				if _, err := r.log.Retire(last / 2); err != nil {
					t.Errorf("retire: %v", err)
				}
			}
		})
		wg.Wait()
		if err := r.log.Drain(ctx); err != nil {
			t.Fatal(err)
		}
		v, err := r.log.Verify(0, r.log.Appended(), func(err error) bool { t.Error(err); return true })
		if err != nil || v.Records == 0 {
			t.Fatalf("%+v, %v", v, err)
		}
		r.close(true)
	})
}

func (s *segment) startOffset() contract.Offset { return contract.Offset(s.base) }

// TestRetire removes segments under a lease: the bytes stay until it ends.
func TestRetire(t *testing.T) {
	for _, mapped := range []WritePath{WritePwrite, WriteMmap} {
		sim := vfs.NewSim()
		opt := simOptions(sim)
		opt.WritePath = mapped
		receipts := stillLog(t, opt, 80)
		log, err := openStill(opt, nil)
		if err != nil {
			t.Fatal(err)
		}
		var rec Record
		if found, err := log.Read(0, &rec); !found || err != nil {
			t.Fatal(found, err)
		}
		before := bytes.Clone(rec.Bytes())
		first := log.segs.Load().segs[0].file
		if first.Leases() != 1 {
			t.Fatalf("%d leases", first.Leases())
		}
		// Nothing below the first segment's end: nothing to do.
		if at, err := log.Retire(100); at != 0 || err != nil {
			t.Fatal(at, err)
		}
		at, err := log.Retire(2*16<<10 + 5)
		if err != nil || at != 2*16<<10 {
			t.Fatal(at, err)
		}
		if !bytes.Equal(before, rec.Bytes()) || first.State() != mmap.Closing {
			t.Fatalf("bytes changed under a lease; %v", first.State())
		}
		if _, err := sim.Stat(first.Path()); err == nil {
			t.Fatal("the name is still there")
		}
		var other Record
		if found, err := log.Read(0, &other); found || err != nil {
			t.Fatalf("read of a retired record: %v, %v", found, err)
		}
		rec.Release()
		<-first.Detached()
		if err := first.DetachErr(); err != nil {
			t.Fatal(err)
		}
		// All but the active one.
		if at, err = log.Retire(1 << 40); err != nil || at != log.segs.Load().last().startOffset() {
			t.Fatal(at, err)
		}
		_ = log.Close(false)
		for _, choose := range []vfs.Chooser{vfs.AllOld(), vfs.AllNew()} {
			o := opt
			o.FS = sim.Crash(choose)
			again, err := openStill(o, nil)
			if err != nil {
				t.Fatal(err)
			}
			last := receipts[len(receipts)-1]
			readBack(t, again, last, message("T", len(receipts)-1))
			_ = again.Close(false)
		}
	}
}

// TestReadOnlyBesideWriter follows a log that grows, is cut and retired.
func TestReadOnlyBesideWriter(t *testing.T) {
	everyPath(t, func(t *testing.T, opt Options) {
		opt.AdmissionWait, opt.Gather = -1, -1
		log, err := openStill(opt, nil)
		if err != nil {
			t.Fatal(err)
		}
		first := stillAppend(t, log, message("T", 1))
		ro, err := OpenReadOnly(opt, false)
		if err != nil {
			t.Fatal(err)
		}
		more, err := OpenReadOnly(opt, true)
		if err != nil {
			t.Fatal(err)
		}
		readBack(t, ro, first, message("T", 1))
		if !ro.Bounded() || ro.ID() != log.ID() || ro.Epoch() != log.Epoch() || ro.SegmentSize() != log.SegmentSize() {
			t.Fatalf("%v: other facts", ro.Sidecar())
		}
		memory, err := log.Append(context.Background(), message("T", 2), contract.DurabilityMemory)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*ReadOnly{ro, more} {
			if err := r.Refresh(); err != nil {
				t.Fatal(err)
			}
		}
		if ro.Confirmed() != log.Durable() || more.Confirmed() != log.Appended() {
			t.Fatalf("bounded to %d of %d, appended to %d of %d", ro.Confirmed(), log.Durable(), more.Confirmed(), log.Appended())
		}
		readBack(t, more, memory, message("T", 2))
		var receipts []contract.Receipt
		for i := range 100 {
			receipts = append(receipts, stillAppend(t, log, message("T", i)))
			if i%7 == 0 {
				if err := ro.Refresh(); err != nil {
					t.Fatal(err)
				}
				readBack(t, ro, receipts[i], message("T", i))
			}
		}
		if _, err := log.Retire(20 << 10); err != nil {
			t.Fatal(err)
		}
		// Cut a few segments back, and go on with others.
		cut, _ := receipts[50].Range()
		if err := log.TruncateTo(context.Background(), cut.Start, nil); err != nil {
			t.Fatal(err)
		}
		for i := 50; i < 100; i++ {
			receipts[i] = stillAppend(t, log, message("U", i+1))
		}
		for _, r := range []*ReadOnly{ro, more} {
			if err := r.Refresh(); err != nil {
				t.Fatal(err)
			}
			if r.MinOffset() != log.MinOffset() || r.Confirmed() != log.Appended() {
				t.Fatalf("from %d to %d, want %d to %d", r.MinOffset(), r.Confirmed(), log.MinOffset(), log.Appended())
			}
			for i, rec := range receipts {
				rng, _ := rec.Range()
				if rng.Start < log.MinOffset() {
					continue
				}
				if i < 50 {
					readBack(t, r, rec, message("T", i))
				} else {
					readBack(t, r, rec, message("U", i+1))
				}
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := log.Close(true); err != nil {
			t.Fatal(err)
		}
	})
}
