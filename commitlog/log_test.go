package commitlog

import (
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// everyPath runs f for each write path over both file systems.
func everyPath(t *testing.T, f func(t *testing.T, opt Options)) {
	for _, path := range []WritePath{WritePwrite, WriteMmap} {
		t.Run(path.String()+"/os", func(t *testing.T) {
			opt := smallOptions(vfs.OS(), t.TempDir())
			opt.WritePath = path
			f(t, opt)
		})
		t.Run(path.String()+"/sim", func(t *testing.T) {
			opt := smallOptions(vfs.NewSim(), "/store")
			opt.WritePath = path
			f(t, opt)
		})
	}
}

func TestAppendReadReopen(t *testing.T) {
	everyPath(t, func(t *testing.T, opt Options) {
		durabilities := []contract.Durability{contract.DurabilitySync, contract.DurabilityMemory, contract.DurabilityInterval}
		var receipts []contract.Receipt
		total := 0
		for round := range 3 {
			r := openRig(t, opt)
			for i, was := range receipts {
				readBack(t, r.log, was, message("T", i))
			}
			for range 60 {
				m := message("T", total)
				got := mustAppend(t, r.log, m, durabilities[total%3])
				if want := int64(total / 3); got.QueueOffset() != want {
					t.Fatalf("record %d: queue offset %d, want %d", total, got.QueueOffset(), want)
				}
				if n := len(receipts); n > 0 {
					before, _ := receipts[n-1].Range()
					if rng, _ := got.Range(); rng.Start < before.End {
						t.Fatalf("record %d at %v overlaps %v", total, rng, before)
					}
				}
				receipts = append(receipts, got)
				total++
			}
			r.close(true)
			if opt.Unclean = round == 1; opt.Unclean {
				continue
			}
		}
		r := openRig(t, opt)
		defer r.close(true)
		for i, was := range receipts {
			readBack(t, r.log, was, message("T", i))
		}
		if got := r.log.Report(); got.NewEpoch || !got.Cut.Empty() || got.Foreign {
			t.Fatalf("report of a clean log: %+v", got)
		}
	})
}
