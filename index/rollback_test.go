package index

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// A roll-back below and above what was flushed, whose own sync fails, or the one
// behind it, is tried again as a lane does; then the index is that of the records
// that are left.
func TestRollBackFaults(t *testing.T) {
	for _, flushed := range []int{0, 20, 60} {
		for keep := 5; keep < 100; keep += 15 {
			for _, failing := range []string{"none", "roll-back", "flush"} {
				t.Run(fmt.Sprintf("%d of %d, %s", keep, flushed, failing), func(t *testing.T) {
					rollBackFault(t, flushed, keep, failing)
				})
			}
		}
	}
}

func rollBackFault(t *testing.T, flushed, keep int, failing string) {
	sim := newSim(t)
	l := newLog(rand.New(rand.NewPCG(7, 7)), 0)
	opts := small()
	opts.StoreTime = l.storeTime
	s := mustOpen(t, sim, opts)
	for i := range 100 {
		if i == flushed {
			must(t, s.Flush())
		}
		mustApply(t, s, l.grow())
	}
	safe := int64(0) // The lane's last saved cursor.
	if flushed > 0 {
		safe = l.records[flushed].phy
	}
	to := l.records[keep].phy
	l.records, l.phy = l.records[:keep], to
	if failing == "roll-back" {
		sim.FailSync(dir+"/*", 1, syscall.EIO, true)
	}
	for tries := 0; ; tries++ {
		err := s.RollBack(contract.Offset(to))
		if err == nil {
			break
		}
		if tries > 2 {
			t.Fatal(err)
		}
	}
	work := to
	safe = min(safe, to)
	if failing == "flush" {
		sim.FailSync(dir+"/*", 1, syscall.EIO, true)
	}
	for range 40 {
		l.grow()
	}
	for tries := 0; ; tries++ {
		for _, r := range l.records {
			if r.phy >= work {
				must(t, r.apply(t, s))
			}
		}
		must(t, s.Commit())
		err := s.Flush()
		if err == nil {
			break
		}
		if work = safe; tries > 2 {
			t.Fatal(err)
		}
	}
	l.verify(t, s, 0, l.phy)
	sameContents(t, contents(t, sim.Crash(vfs.AllOld())), l.rebuild(t, opts, 0, l.phy))
}
