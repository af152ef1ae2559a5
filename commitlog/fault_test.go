package commitlog

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"syscall"
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// dropPagesOracle is the oracle for a failed sync that drops the pages: what
// waited is not acknowledged, nothing is until Recover, and then everything
// acknowledged survives a power cut.
func dropPagesOracle(broken breakage) error {
	for _, path := range []WritePath{WritePwrite, WriteMmap} {
		if err := dropPagesOn(path, broken); err != nil {
			return fmt.Errorf("%v: %w", path, err)
		}
	}
	return nil
}

func dropPagesOn(path WritePath, broken breakage) error {
	ctx := context.Background()
	sim := vfs.NewSim()
	opt := simOptions(sim)
	opt.WritePath, opt.broken = path, broken
	log, err := openStill(opt, nil)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close(false) }()
	h := &history{}
	send := func(i int) error {
		m := message("T", i)
		h.sent = append(h.sent, sent{topic: m.Topic, queue: m.QueueID, body: m.Body, start: -1})
		_, err := log.Append(ctx, m, contract.DurabilitySync)
		if err == nil {
			h.sync = len(h.sent)
		}
		return err
	}
	crash := func() error {
		for _, choose := range []vfs.Chooser{vfs.AllOld(), vfs.AllNew()} {
			o := opt
			o.FS, o.broken = sim.Crash(choose), brokenNone
			again, err := openStill(o, nil)
			if err != nil {
				return err
			}
			_, err = h.check(again, h.sync)
			if err = errors.Join(err, again.Close(false)); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range 5 {
		if err := send(i); err != nil {
			return err
		}
	}
	sim.FailSync("commitlog/*", 1, syscall.EIO, true)
	failed := send(5)
	if err := crash(); err != nil {
		return fmt.Errorf("after the failed sync: %w", err)
	}
	if failed == nil {
		return errors.New("the append whose sync failed was acknowledged")
	}
	if log.Fenced() == nil || !errors.Is(failed, contract.ErrFenced) || !errors.Is(failed, syscall.EIO) {
		return fmt.Errorf("not fenced: %w", failed)
	}
	// A second one, whose sync would succeed, is refused.
	if _, err := log.Append(ctx, message("T", 6), contract.DurabilitySync); !errors.Is(err, contract.ErrFenced) {
		return fmt.Errorf("an append to a fenced log: %w", err)
	}
	if _, err := log.Recover(ctx, nil); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	if n := log.Appended(); n != log.Durable() {
		return fmt.Errorf("after Recover: appended %d, durable %d", n, log.Durable())
	}
	n, err := h.check(log, h.sync)
	if err != nil {
		return fmt.Errorf("after Recover: %w", err)
	}
	h.sent = h.sent[:n]
	h.sync = n // Recover made them durable
	for i := 6; i < 10; i++ {
		if err := send(i); err != nil {
			return fmt.Errorf("append after Recover: %w", err)
		}
	}
	return crash()
}

func TestSyncFailsAndDropsPages(t *testing.T) {
	if err := dropPagesOracle(brokenNone); err != nil {
		t.Fatal(err)
	}
}

var faultSeed = flag.Uint64("fault.seed", 2, "first seed of the fault tests")

// faultKind is one way for an operation to fail.
type faultKind struct {
	name   string
	kinds  vfs.Kinds
	err    error
	short  int
	sticky bool
}

func faultKinds() []faultKind {
	one := func(name string, err error, kinds ...vfs.OpKind) []faultKind {
		set := vfs.KindsOf(kinds...)
		return []faultKind{{name, set, err, 0, false}, {name + ", sticky", set, err, 0, true}}
	}
	var all []faultKind
	add := func(f []faultKind) { all = append(all, f...) }
	add(one("open EMFILE", syscall.EMFILE, vfs.OpOpen, vfs.OpCreate))
	add(one("write EIO", syscall.EIO, vfs.OpWrite))
	add(one("write ENOSPC", syscall.ENOSPC, vfs.OpWrite))
	all = append(all, faultKind{"short write", vfs.KindsOf(vfs.OpWrite), syscall.ENOSPC, 7, false})
	add(one("sync EIO", syscall.EIO, vfs.OpSync))
	add(one("datasync EIO", syscall.EIO, vfs.OpDatasync))
	add(one("datasync ENOSPC", syscall.ENOSPC, vfs.OpDatasync))
	add(one("syncdir EIO", syscall.EIO, vfs.OpSyncDir))
	add(one("rename EIO", syscall.EIO, vfs.OpRename))
	add(one("allocate ENOSPC", syscall.ENOSPC, vfs.OpAllocate))
	add(one("remove EIO", syscall.EIO, vfs.OpRemove))
	add(one("mkdir ENOSPC", syscall.ENOSPC, vfs.OpMkdir))
	add(one("map ENOMEM", syscall.ENOMEM, vfs.OpMap))
	add(one("read EIO", syscall.EIO, vfs.OpRead))
	add(one("populate EIO", syscall.EIO, vfs.OpPopulate))
	add(one("readdir and stat EIO", syscall.EIO, vfs.OpReadDir, vfs.OpStat))
	return all
}

// TestEveryFault makes the k-th operation of each kind fail, for every k that
// a workload reaches.
func TestEveryFault(t *testing.T) {
	for _, f := range faultKinds() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			runs, fenced := 0, 0
			seeds, stride := uint64(10), 1
			if testing.Short() {
				seeds, stride = 4, 11
			}
			for seed := *faultSeed; seed < *faultSeed+seeds; seed++ {
				for k := 0; ; k += stride {
					r := faultRun{faultKind: f, k: k}
					if err := r.run(seed); err != nil {
						t.Fatalf("seed %d, operation %d: %v", seed, k, err)
					}
					if !r.fired {
						break
					}
					runs++
					fenced += r.fenced
				}
			}
			t.Logf("%d runs, %d fences", runs, fenced)
			if runs == 0 {
				t.Fatal("no run had a fault")
			}
		})
	}
}

// faultRun is one workload with one fault.
type faultRun struct {
	faultKind
	k      int
	n      int
	off    bool
	fired  bool
	fenced int
}

func (r *faultRun) only(op vfs.Op) bool {
	if r.off {
		return false
	}
	r.n++
	hit := r.n-1 == r.k || r.sticky && r.n-1 > r.k
	r.fired = r.fired || hit
	return hit
}

func (r *faultRun) run(seed uint64) error {
	w := newWorkload(seed, brokenNone)
	w.rules = []vfs.Rule{{Kinds: r.kinds, Only: r.only, Sticky: true, Err: r.err, Short: r.short}}
	if err := w.open(); err != nil {
		if err := checkTyped(err); err != nil {
			return fmt.Errorf("open: %w", err)
		}
		r.off = true
		if err := w.open(); err != nil {
			return fmt.Errorf("open after the fault: %w", err)
		}
	}
	bad := 0
	for i := range 45 {
		err := w.step()
		pump(w.log)
		if err == nil {
			continue
		}
		if !r.fired {
			return fmt.Errorf("step %d fails without a fault: %w", i, err)
		}
		if bad++; r.sticky && bad < 3 && !w.log.closed {
			if w.log.Fenced() != nil {
				if _, err := w.log.Recover(context.Background(), &w.history); err == nil {
					// The fault is of a kind that Recover does not need.
					if err := r.settle(w); err != nil {
						return fmt.Errorf("step %d: %w", i, err)
					}
				}
			}
			continue // it stays broken for a while
		}
		r.off = true
		if err := r.heal(w, err); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	// It heals by itself: appends go on.
	r.off = true
	var err error
	for try := 0; try == 0 || err != nil && try < 5; try++ {
		m := w.message()
		if err = w.append(m, contract.DurabilitySync); err != nil {
			if err := r.heal(w, err); err != nil {
				return fmt.Errorf("append after the fault: %w", err)
			}
		}
		pump(w.log)
	}
	if err != nil {
		return fmt.Errorf("no append after the fault: %w", err)
	}
	// The end: the process dies, or the power goes.
	if _, err := w.checkImage(w.sim.Kill(), w.any); err != nil {
		return fmt.Errorf("after a kill: %w", err)
	}
	for _, choose := range []vfs.Chooser{vfs.AllOld(), vfs.AllNew()} {
		if _, err := w.checkImage(w.sim.Crash(choose), w.sync); err != nil {
			return fmt.Errorf("after a power cut: %w", err)
		}
	}
	return nil
}

// checkTyped demands an error that a program can branch on, and that an
// operation that failed is not taken for damage.
func checkTyped(err error) error {
	var e *contract.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("not typed: %w", err)
	}
	if errors.Is(err, contract.ErrCorrupt) {
		return fmt.Errorf("taken for damage: %w", err)
	}
	return nil
}

// heal brings the log back after a step that failed with err.
func (r *faultRun) heal(w *workload, err error) error {
	if err := checkTyped(err); err != nil {
		return err
	}
	if w.log.closed {
		// Drain or Close failed: the log takes no more.
		_ = w.log.Close(false)
		if err := w.open(); err != nil {
			return fmt.Errorf("reopen: %w", err)
		}
		return r.settle(w)
	}
	if w.log.Fenced() == nil {
		return nil
	}
	r.fenced++
	// Reads go on.
	for i, s := range w.sent {
		if s.start < int64(w.log.MinOffset()) || s.start < 0 || s.start >= int64(w.log.Confirmed()) {
			continue
		}
		var rec Record
		found, err := w.log.Read(contract.Offset(s.start), &rec)
		if err != nil || !found || string(rec.Body()) != string(s.body) {
			return fmt.Errorf("read of record %d at %d behind the fence: %v, %w", i, s.start, found, err)
		}
		rec.Release()
	}
	if _, err := w.log.Append(context.Background(), message("T", 1), contract.DurabilityMemory); !errors.Is(err, contract.ErrFenced) {
		return fmt.Errorf("append to a fenced log: %w", err)
	}
	if _, err := w.log.Recover(context.Background(), &w.history); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	if err := w.log.Fenced(); err != nil {
		return fmt.Errorf("still fenced: %w", err)
	}
	return r.settle(w)
}

// settle takes up what is in the log after a recovery: everything acknowledged
// and a prefix of the rest, all of it durable now.
func (r *faultRun) settle(w *workload) error {
	n, err := w.check(w.log, w.any)
	if err != nil {
		return fmt.Errorf("after recovery: %w", err)
	}
	w.sent = w.sent[:n]
	w.sync, w.any = n, n
	return nil
}
