package index

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

var (
	crashRuns = flag.Int("index.runs", 300, "runs of the crash tests")
	crashSeed = flag.Uint64("index.seed", 0, "run only this seed of the crash tests")
)

// life is a store over a Sim, with the log that feeds it and the lane's cursor.
type life struct {
	t     *testing.T
	rng   *rand.Rand
	sim   *vfs.Sim
	s     *Store
	l     *log
	opts  Options
	start int64
	// work is the next record to apply, as in a lane; cursor and tally are
	// what was saved, low what the log was cut to since.
	work, cursor, tally int64
	cut                 bool
	low                 int64
	logMin              int64
	retired             bool
}

func (f *life) step() {
	for range 1 + f.rng.IntN(12) {
		f.l.grow()
	}
	f.apply()
	switch f.rng.IntN(7) {
	case 0, 1:
		f.flush()
	case 2:
		f.retire()
	case 3:
		f.rollBack()
	}
}

// apply brings the index to the log's end, in batches, some of them twice.
func (f *life) apply() {
	for _, r := range f.l.records {
		if r.phy < f.work {
			continue
		}
		must(f.t, r.apply(f.t, f.s))
		if f.rng.IntN(6) == 0 {
			must(f.t, f.s.Commit())
			if f.rng.IntN(4) == 0 {
				must(f.t, r.apply(f.t, f.s))
			}
		}
	}
	must(f.t, f.s.Commit())
	f.work = f.l.phy
}

func (f *life) flush() {
	must(f.t, f.s.Flush())
	if f.rng.IntN(5) == 0 {
		return // The power goes before the cursor is saved.
	}
	f.save(f.work)
}

// save is what the owner's cursor store does.
func (f *life) save(to int64) {
	f.cursor, f.tally, f.cut = to, -1, false
	if int64(f.s.FlushedBelow()) < to {
		f.tally = f.s.Tally()
	}
}

// retire moves the log's start, never above the cursor.
func (f *life) retire() {
	r := f.l.records[f.rng.IntN(len(f.l.records))]
	if r.phy <= f.logMin || r.phy > f.cursor || f.rng.IntN(3) > 0 {
		return
	}
	f.logMin, f.retired = r.phy, true
	_, err := f.s.DeleteExpired(contract.Offset(f.logMin))
	must(f.t, err)
}

// rollBack cuts the log while the store runs.
func (f *life) rollBack() {
	if n := len(f.l.records); n > 1 && f.rng.IntN(3) == 0 {
		r := f.l.records[f.rng.IntN(n)]
		if r.phy < f.logMin {
			return
		}
		f.cutLog(r.phy)
		must(f.t, f.s.RollBack(contract.Offset(r.phy)))
		f.work = min(f.work, r.phy)
	}
}

// cutLog drops the records from phy on; the cursor is then of an older epoch.
func (f *life) cutLog(phy int64) {
	for n := len(f.l.records); n > 0 && f.l.records[n-1].phy >= phy; n-- {
		f.l.records = f.l.records[:n-1]
	}
	f.l.phy = phy
	if phy < f.cursor {
		if !f.cut || phy < f.low {
			f.low = phy
		}
		f.cut = true
	}
}

// recover opens what is left and does what the owner and the lane do.
func (f *life) recover(sim *vfs.Sim, clean bool) {
	f.sim = sim
	s, err := Open(sim, dir, f.opts)
	must(f.t, err)
	f.s = s
	fit := Fit{Limit: contract.Offset(f.cursor), Tally: f.tally, Exact: !f.cut, Clean: clean && !f.cut, LogMin: contract.Offset(f.logMin)}
	if f.cut {
		fit.Limit = contract.Offset(f.low)
	}
	report, err := s.Fit(fit, func(to contract.Offset, tally int64) error {
		f.cursor, f.tally, f.cut = int64(to), tally, false
		return nil
	})
	must(f.t, err)
	f.work = max(int64(report.Replay), f.logMin)
	if f.cut {
		f.cursor, f.tally, f.cut = int64(fit.Limit), -1, false
	}
	f.apply()
}

// TestCrashThenReplayEqualsRebuild is the promise of this package: whatever a
// power cut leaves, cut and replay give what a rebuild gives, byte for byte.
func TestCrashThenReplayEqualsRebuild(t *testing.T) {
	runs := *crashRuns
	if testing.Short() {
		runs /= 5
	}
	for run := range runs {
		seed := uint64(run) + 1
		if *crashSeed != 0 && seed != *crashSeed {
			continue
		}
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { crashLife(t, seed) })
	}
}

func crashLife(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	starts := []int64{0, 1 << 16, 1<<32 - 5000, 1 << 40}
	f := &life{t: t, rng: rng, sim: newSim(t)}
	f.l = newLog(rng, starts[rng.IntN(len(starts))])
	f.cursor, f.logMin, f.work, f.start = f.l.phy, f.l.phy, f.l.phy, f.l.phy
	f.opts = small()
	f.opts.Slots, f.opts.Entries = 1+rng.IntN(2000), 2+rng.IntN(60)
	if rng.IntN(3) == 0 {
		f.opts.Entries = 400
	}
	f.opts.MaxHandles, f.opts.Tags, f.opts.StoreTime = 1+rng.IntN(3), rng.IntN(2) == 0, f.l.storeTime
	s, err := Open(f.sim, dir, f.opts)
	must(t, err)
	f.s = s
	for range 1 + rng.IntN(4) {
		for range rng.IntN(12) {
			f.step()
		}
		f.check()
		clean := rng.IntN(4) == 0
		if clean {
			must(t, f.s.Flush())
			f.save(f.work)
		}
		must(t, f.s.Close())
		next := f.sim.Kill()
		if !clean && rng.IntN(4) > 0 {
			next = f.sim.Crash(chooser(rng))
			if n := len(f.l.records); n > 0 && rng.IntN(3) == 0 {
				f.cutLog(max(f.l.records[n-1-rng.IntN(min(n, 8))].phy, f.logMin)) // The log lost its end.
			}
		}
		f.recover(next, clean)
		f.check()
	}
	must(t, f.s.Close())
}

func (f *life) check() {
	f.t.Helper()
	f.l.verify(f.t, f.s, f.logMin, f.work)
	if !f.retired {
		must(f.t, f.s.Flush())
		f.save(f.work)
		sameContents(f.t, contents(f.t, f.sim), f.l.rebuild(f.t, f.opts, f.start, f.work))
	}
	var faults []Fault
	v := f.s.NewVerifier(contract.Offset(f.logMin), contract.Offset(f.work), func(x Fault) { faults = append(faults, x) })
	must(f.t, f.s.Flush())
	for _, r := range f.l.records {
		if r.phy >= f.logMin {
			must(f.t, v.Record(r.view(f.t)))
		}
	}
	must(f.t, v.Finish())
	if len(faults) > 0 {
		f.t.Fatalf("%d faults: %+v", len(faults), faults[0])
	}
}

func chooser(rng *rand.Rand) vfs.Chooser {
	switch rng.IntN(5) {
	case 0:
		return vfs.AllOld()
	case 1:
		return vfs.AllNew()
	case 2:
		return vfs.Random(rng, 0.9)
	case 3:
		return vfs.RandomGarbage(rng, 0.5, 0.3)
	}
	return vfs.Random(rng, 0.5)
}
