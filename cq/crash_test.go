package cq

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

var (
	crashRuns = flag.Int("cq.runs", 300, "runs of the crash tests")
	crashSeed = flag.Uint64("cq.seed", 0, "run only this seed of the crash tests")
)

// life is a store over a Sim, with the log that feeds it and the lane's cursor.
type life struct {
	t      *testing.T
	rng    *rand.Rand
	sim    *vfs.Sim
	s      *Store
	h      *history
	opts   Options
	cursor int64 // Everything below is flushed.
	logMin int64
	synced int64 // The log's durable end: what a crash does not take.
}

func (l *life) step() {
	for range 1 + l.rng.IntN(12) {
		e := l.h.grow(l.t)
		must(l.t, e.apply(l.t, l.s))
	}
	must(l.t, l.s.Commit())
	switch l.rng.IntN(6) {
	case 0, 1:
		l.flush()
	case 2:
		l.retire()
	}
}

func (l *life) flush() {
	must(l.t, l.s.Flush())
	l.cursor, l.synced = l.h.phy, l.h.phy
}

// retire moves the log's start, never above what is flushed.
func (l *life) retire() {
	e := l.h.entries[l.rng.IntN(len(l.h.entries))]
	if e.phy <= l.logMin || e.phy > l.cursor || l.rng.IntN(3) > 0 {
		return
	}
	l.logMin = e.phy
	_, err := l.s.DeleteExpired(contract.Offset(l.logMin))
	must(l.t, err)
}

func (l *life) lower(replay contract.Offset) error {
	l.cursor = min(l.cursor, int64(replay))
	return nil
}

// recover opens what is left and does what the owner and the lane do.
func (l *life) recover(sim *vfs.Sim) TruncateReport {
	l.sim = sim
	l.opts.ExtWrite = l.opts.ExtWrite != (l.rng.IntN(8) == 0)
	s, err := Open(sim, "/store/consumequeue", l.opts)
	must(l.t, err)
	l.s = s
	report, err := s.TruncateAbove(contract.Offset(l.cursor), l.h.check(s), l.lower)
	must(l.t, err)
	must(l.t, s.CorrectMin(contract.Offset(l.logMin)))
	from := max(int64(report.Replay), l.logMin)
	for i := range l.h.entries {
		if e := l.h.entries[i]; e.phy >= from {
			must(l.t, e.apply(l.t, s))
			if l.rng.IntN(8) == 0 {
				must(l.t, s.Commit())
			}
		}
	}
	must(l.t, s.Commit())
	must(l.t, s.CorrectMin(contract.Offset(l.logMin)))
	return report
}

// loseLog drops records above what is durable, as a log does that showed what was
// only in memory.
func (l *life) loseLog() {
	n := len(l.h.entries)
	for n > 0 && l.h.entries[n-1].phy >= l.synced && l.rng.IntN(10) > 0 {
		n--
	}
	for _, e := range l.h.entries[n:] {
		l.h.next[e.key()] = min(l.h.next[e.key()], e.at)
	}
	l.h.entries = l.h.entries[:n]
	l.h.phy = l.synced
	if n > 0 {
		l.h.phy = max(l.synced, l.h.entries[n-1].end())
	}
}

// TestCrashThenReplayEqualsRebuild is the promise of this package: whatever a
// power cut leaves, cut and replay give what a rebuild gives.
func TestCrashThenReplayEqualsRebuild(t *testing.T) {
	for run := range *crashRuns {
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
	l := &life{t: t, rng: rng, sim: newSim(t)}
	l.h = newHistory(rng, starts[rng.IntN(len(starts))], rng.IntN(2) == 0)
	l.cursor, l.logMin, l.synced = l.h.phy, l.h.phy, l.h.phy
	l.opts = Options{FileSize: int64(20 * (1 + rng.IntN(90))), MaxHandles: 1 + rng.IntN(4), MaxGapFiles: 200,
		ExtWrite: rng.IntN(3) == 0, ExtFileSize: int64(28 + rng.IntN(400))}
	s, err := Open(l.sim, "/store/consumequeue", l.opts)
	must(t, err)
	l.s = s
	for range 1 + rng.IntN(4) {
		for range rng.IntN(12) {
			l.step()
		}
		l.h.verify(t, l.s, l.logMin)
		must(t, l.s.Close())
		next := l.sim.Kill()
		if rng.IntN(4) > 0 {
			next = l.sim.Crash(chooser(rng))
			if rng.IntN(2) == 0 {
				l.loseLog()
			}
		}
		l.recover(next)
		l.h.verify(t, l.s, l.logMin)
		if rng.IntN(2) == 0 {
			l.flush()
		}
	}
	must(t, l.s.Close())
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
