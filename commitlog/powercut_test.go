package commitlog

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stratalog/stratalog/internal/vfs"
)

var (
	cutSeed   = flag.Uint64("powercut.seed", 1, "first seed of the power-cut tests")
	cutStates = flag.Int64("powercut.states", 600_000, "crash states to check, without -short")
	cutRepro  = flag.String("powercut.repro", "", "seed:point:state of one crash state to check alone")
)

// explorer enumerates crash states of workloads.
type explorer struct {
	steps  int
	deep   int // one state in this many is checked deeply
	sample int // one state in this many is checked at all; 0 for each
	broken breakage
	// killsOnly leaves the power on.
	killsOnly bool
	// states counts what was checked, inside those in the middle of a recovery,
	// kills those after the death of the process alone, points the operations.
	states, inside, kills, points atomic.Int64
	// intruders counts the workloads with another program that deletes segments,
	// intruded the segments that went so.
	intruders, intruded atomic.Int64
	point, state        int // to check alone; -1 for all
}

// explore runs the workload of one seed and checks the crash states before
// each of its operations. The error names the first state that is wrong.
func (e *explorer) explore(seed uint64) error {
	w := newWorkload(seed, e.broken)
	point := -1
	var failed error
	w.hook = func(op vfs.Op) {
		point++
		if failed != nil || e.point >= 0 && point != e.point {
			return
		}
		e.points.Add(1)
		w.safe = w.known(w.sim)
		state := -1
		try := func(choose vfs.Chooser) {
			if state++; failed != nil || e.state >= 0 && state != e.state {
				return
			}
			if e.sample > 0 && e.state < 0 && (point*7+state)%e.sample != 0 {
				return
			}
			if err := e.check(w, point, state, choose); err != nil {
				failed = fmt.Errorf("crash before operation %d (%v of %s): %w\nrepro: go test ./commitlog -run 'TestPowerCut$' -powercut.repro=%d:%d:%d",
					point, op.Kind, op.Path, err, seed, point, state)
			}
		}
		if !e.killsOnly {
			e.choosers(w.sim, rand.New(rand.NewPCG(seed, uint64(point))), try)
		}
		try(nil)
	}
	err := w.run(e.steps)
	e.intruded.Add(int64(w.intruded))
	if w.intruder() {
		e.intruders.Add(1)
	}
	if failed == nil && err != nil && e.broken == brokenNone {
		failed = fmt.Errorf("seed %d, workload: %w", seed, err)
	}
	return failed
}

// choosers gives the choices to try at this moment.
func (e *explorer) choosers(sim *vfs.Sim, rng *rand.Rand, try func(vfs.Chooser)) {
	n := sim.PendingCount()
	try(vfs.AllOld())
	if n == 0 {
		return
	}
	try(vfs.AllNew())
	const subsets = 4
	if n <= subsets {
		for mask := range uint64(1) << n {
			try(vfs.Mask(mask))
			try(vfs.MaskGarbage(mask))
		}
		return
	}
	stride := 1 + n/48
	for k := 0; k < n; k += stride {
		try(vfs.Hole(k))
		try(vfs.Prefix(k + 1))
	}
	for range 2 {
		try(vfs.GarbageHole(rng.IntN(n)))
		for _, p := range []float64{0.2, 0.5, 0.8} {
			try(vfs.Random(rng, p))
			try(vfs.RandomGarbage(rng, p, 0.3))
		}
	}
}

// check checks one state; a nil chooser is the death of the process alone.
func (e *explorer) check(w *workload, point, state int, choose vfs.Chooser) error {
	if choose == nil {
		e.kills.Add(1)
		need := w.any
		_, err := w.checkImage(w.sim.Kill(), need)
		if err == nil && point%5 == 0 {
			// Then, after a few more appends, the power goes too.
			killed := w.sim.Kill()
			var n int
			if n, err = w.checkImage(killed, need); err == nil {
				err = w.checkAppends(killed, n)
			}
		}
		return err
	}
	e.states.Add(1)
	image := w.sim.Crash(sparing(w.safe, choose))
	if e.deep == 0 || (point*31+state)%e.deep != 0 {
		_, err := w.checkImage(image, w.sync)
		return err
	}
	n, err := w.checkDeep(image, w.sync, rand.New(rand.NewPCG(w.seed, uint64(point)<<16|uint64(state))))
	e.inside.Add(int64(n))
	return err
}

// exploreAll explores seeds on two goroutines until enough states were checked.
func (e *explorer) exploreAll(t testing.TB, first uint64, enough int64) {
	var next atomic.Uint64
	next.Store(first)
	var stop atomic.Bool
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		wg.Go(func() {
			for !stop.Load() && e.states.Load()+e.inside.Load() < enough {
				if errs[i] = e.explore(next.Add(1) - 1); errs[i] != nil {
					stop.Store(true)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("seeds %d to %d: %d crash points, %d power cuts, %d more around and in recovery, %d kills",
		first, next.Load()-1, e.points.Load(), e.states.Load(), e.inside.Load(), e.kills.Load())
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got := e.states.Load() + e.inside.Load(); got < enough {
		t.Fatalf("only %d states, want %d", got, enough)
	}
}

func TestPowerCut(t *testing.T) {
	e := &explorer{steps: 40, deep: 60, point: -1, state: -1}
	if *cutRepro != "" {
		var seed uint64
		if _, err := fmt.Sscanf(*cutRepro, "%d:%d:%d", &seed, &e.point, &e.state); err != nil {
			t.Fatal(err)
		}
		if err := e.explore(seed); err != nil {
			t.Fatal(err)
		}
		if e.states.Load()+e.kills.Load() == 0 {
			t.Fatal("there is no such state")
		}
		return
	}
	enough := *cutStates
	if testing.Short() {
		// Fewer states of more workloads.
		enough, e.sample, e.deep = 30_000, 6, 300
	}
	if raceEnabled {
		enough /= 20 // each takes that much longer
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	e.exploreAll(t, *cutSeed, enough)
	if e.intruders.Load() > 0 && e.intruded.Load() == 0 {
		t.Error("the intruders deleted no segment")
	}
}
