package commitlog

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// The tests of this file stand for changes to the log that no other test
// noticed.

// A log that is marked as closed well while its bound is not on disk looks,
// after a power cut, as if another program had written to it since.
func TestCloseSyncsTheBoundFirst(t *testing.T) {
	sim := vfs.NewSim()
	opt := simOptions(sim)
	log, err := openStill(opt, nil)
	if err != nil {
		t.Fatal(err)
	}
	var receipts []contract.Receipt
	for i := range 20 {
		receipts = append(receipts, stillAppend(t, log, message("T", i)))
	}
	end := log.Durable()
	images := 0
	check := func(when string) {
		for _, choose := range []vfs.Chooser{vfs.AllOld(), vfs.AllNew()} {
			images++
			o := opt
			o.FS = sim.Crash(choose)
			again, err := openStill(o, nil)
			if err != nil {
				t.Errorf("%s: %v", when, err)
				continue
			}
			if r := again.Report(); r.Foreign || r.NewEpoch || r.End != end {
				t.Errorf("%s: %+v, want the end %d", when, r, end)
			}
			readBack(t, again, receipts[19], message("T", 19))
			_ = again.Close(false)
		}
	}
	sim.OnOp(func(op vfs.Op) { check("power cut before " + op.Kind.String() + " of " + op.Path) })
	if err := log.Close(true); err != nil {
		t.Fatal(err)
	}
	sim.OnOp(nil)
	check("power cut after the close")
	if images < 8 {
		t.Fatalf("only %d images", images)
	}
}

// A Memory append was placed, then the log was fenced and recovered, and
// another record took the place, all before the append looked: it is not to be
// taken for written because the log has grown beyond it.
func TestMemoryAppendOverFenceAndRecover(t *testing.T) {
	ctx := testContext(t)
	log, err := openStill(simOptions(vfs.NewSim()), nil)
	if err != nil {
		t.Fatal(err)
	}
	stillAppend(t, log, message("T", 1))
	end := int64(log.Durable())
	type answered struct {
		r   contract.Receipt
		err error
	}
	got := make(chan answered, 1)
	log.shapeMu.Lock()
	log.commitMu.Lock()
	log.writeMu.Lock()
	go func() {
		r, err := log.Append(context.Background(), message("T", 2), contract.DurabilityMemory)
		got <- answered{r, err}
	}()
	for placed := false; !placed; {
		if ctx.Err() != nil {
			t.Fatal("never placed")
		}
		runtime.Gosched()
		log.mu.Lock()
		placed = log.tail > end
		log.mu.Unlock()
	}
	log.raiseFence(errors.New("the disk is gone"), nil)
	// What Recover does in the end, under the same locks.
	if err := log.resume(ctx, end, nil); err != nil {
		t.Fatal(err)
	}
	other := message("T", 20)
	buf, err := log.encode(nil, other, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := prepared{topic: other.Topic, queueID: other.QueueID, inQueue: true, records: 1, buf: buf}
	at, err := log.admit(ctx, &p, 1, contract.DurabilityMemory, nil)
	if err == nil {
		err = log.flushLocked()
	}
	if err != nil || at.start != end {
		t.Fatalf("the other record at %d, %v", at.start, err)
	}
	log.writeMu.Unlock()
	log.commitMu.Unlock()
	log.shapeMu.Unlock()
	a := <-got
	if _, in := a.r.Range(); !errors.Is(a.err, contract.ErrOutcomeUnknown) || in {
		t.Errorf("acknowledged at %v, where another record lies: %v", placeOf(a.r), a.err)
	}
	if err := background(log); err != nil {
		t.Fatal(err)
	}
	var rec Record
	if found, err := log.Read(contract.Offset(end), &rec); err != nil || !found || string(rec.Body()) != string(other.Body) {
		t.Errorf("the other record is not there: %v, %v", found, err)
	}
	rec.Release()
	_ = log.Close(false)
}

// A fence came up while the batch of a Sync append was being written: the
// append then waited for a sync that nobody would do.
func TestFenceWhileBatchIsWritten(t *testing.T) {
	ctx := testContext(t)
	r, fault, _, _ := slowRig(t, WritePwrite) // its clock never moves: nothing expires
	mustAppend(t, r.log, message("T", 0), contract.DurabilitySync)
	tail := int64(r.log.Appended())
	writing, release := make(chan struct{}), make(chan struct{})
	fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpWrite), Path: "commitlog/*", Only: func(op vfs.Op) bool { return op.Offset == tail },
		Hook: func(vfs.Op) { close(writing) }, Block: release})
	got := make(chan outcome, 1)
	if err := r.log.Submit(ctx, message("T", 1), contract.DurabilitySync, func(r contract.Receipt, err error) { got <- outcome{r, err} }); err != nil {
		t.Fatal(err)
	}
	<-writing
	cause := errors.New("the host says so")
	r.log.Fail(cause)
	close(release)
	select {
	case o := <-got:
		if !errors.Is(o.err, contract.ErrFenced) || !errors.Is(o.err, cause) || o.r.Reached() == contract.ReachedLocal {
			t.Errorf("answered %v, reached %v, %v", o.r.Status(), o.r.Reached(), o.err)
		}
	case <-ctx.Done():
		t.Error("never answered")
	}
	if _, err := r.log.Recover(ctx, nil); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, r.log, message("T", 2), contract.DurabilitySync)
	r.close(true)
}
