package commitlog

import (
	"context"
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// TestReadOnlyBesideCut: a reader that looks when the epoch of a cut is noted, and
// the bound is not yet taken back, sees the log up to the cut; and up to the end
// again behind it, though the owner wrote as many bytes.
func TestReadOnlyBesideCut(t *testing.T) {
	everyPath(t, func(t *testing.T, opt Options) {
		opt.AdmissionWait, opt.Gather = -1, -1
		disk := opt.FS
		fault := vfs.NewFault(disk)
		opt.FS = fault
		log, err := openStill(opt, nil)
		if err != nil {
			t.Fatal(err)
		}
		var receipts []contract.Receipt
		for i := range 10 {
			receipts = append(receipts, stillAppend(t, log, message("T", i)))
		}
		ropt := opt
		ropt.FS = disk
		ro, err := OpenReadOnly(ropt, false)
		if err != nil {
			t.Fatal(err)
		}
		cut, _ := receipts[6].Range()
		looked := 0
		rule := fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpDatasync), Path: SidecarDir + "/" + stateName + "*", Sticky: true, After: true, Hook: func(vfs.Op) {
			if err := ro.Refresh(); err != nil {
				t.Error(err)
			}
			if ro.Confirmed() != cut.Start || ro.Epoch() != 2 {
				t.Errorf("the log ends at %d in epoch %d, it was cut at %d", ro.Confirmed(), ro.Epoch(), cut.Start)
			}
			looked++
		}})
		if err := log.TruncateTo(context.Background(), cut.Start, nil); err != nil {
			t.Fatal(err)
		}
		rule.Remove()
		for i := 6; i < 10; i++ {
			receipts[i] = stillAppend(t, log, message("U", i))
		}
		if err := ro.Refresh(); err != nil || looked == 0 || ro.Confirmed() != log.Durable() || len(ro.Epochs()) != 2 {
			t.Fatalf("%v: looked %d times, to %d of %d, epochs %v", err, looked, ro.Confirmed(), log.Durable(), ro.Epochs())
		}
		readBack(t, ro, receipts[9], message("U", 9))
		if err := ro.Close(); err != nil {
			t.Fatal(err)
		}
		if err := log.Close(true); err != nil {
			t.Fatal(err)
		}
	})
}
