package cq

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// filled returns a store with n records of one queue, 100 bytes apart, flushed.
func filled(t *testing.T, n int64, opts Options) (*Store, func(int64) entry) {
	s := mustOpen(t, newSim(t), opts)
	at := func(i int64) entry { return entry{topic: "t", at: i, phy: i * 200} }
	for i := range n {
		mustApply(t, s, at(i))
	}
	must(t, s.Flush())
	return s, at
}

// TestModel runs random batches, jumps and repeats against a map.
func TestModel(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 2))
		s := mustOpen(t, newSim(t), Options{FileSize: int64(20 * (1 + rng.IntN(60))), MaxHandles: 2, MaxGapFiles: 200})
		h := newHistory(rng, 0, true)
		for range 100 {
			for range rng.IntN(10) {
				e := h.grow(t)
				must(t, e.apply(t, s))
			}
			if rng.IntN(4) == 0 && len(h.entries) > 0 {
				// A lane that goes back repeats a stretch in order.
				must(t, s.Commit())
				from := rng.IntN(len(h.entries))
				for i := from; i < min(from+20, len(h.entries)); i++ {
					e := h.entries[i]
					must(t, e.apply(t, s))
				}
			}
			must(t, s.Commit())
			if rng.IntN(5) == 0 {
				must(t, s.Flush())
			}
		}
		h.verify(t, s, 0)
		if got := s.MaxPhysical(); int64(got) != h.phy {
			t.Fatalf("max physical %d, want %d", got, h.phy)
		}
		if st := s.Stats(); st.Replaced != 0 {
			t.Fatalf("%+v", st)
		}
	}
}

func TestCommitIsWhatReadersSee(t *testing.T) {
	s := mustOpen(t, newSim(t), Options{})
	e := entry{topic: "t", at: 0, phy: 0}
	must(t, e.apply(t, s))
	if s.Exists("t", 0) || s.Max("t", 0) != 0 {
		t.Fatal("seen before Commit")
	}
	must(t, s.Commit())
	if !s.Exists("t", 0) || s.Max("t", 0) != 1 {
		t.Fatal("not seen after Commit")
	}
	if got := s.Topics(); !slices.Equal(got, []string{"t"}) {
		t.Fatalf("%v", got)
	}
	if got := s.Queues("t"); !slices.Equal(got, []int32{0}) {
		t.Fatalf("%v", got)
	}
	if s.Lane() != contract.LaneQueue {
		t.Fatal(s.Lane())
	}
}

func TestUnitsOutsideAreNotThere(t *testing.T) {
	s, _ := filled(t, 12, Options{FileSize: 100})
	_, err := s.DeleteExpired(contract.Offset(7 * 200))
	must(t, err)
	dst := make([]codec.QueueUnit, 100)
	for _, tc := range []struct {
		topic string
		queue int32
		from  int64
		want  int
	}{
		{"t", 0, -1, 0}, {"t", 0, 12, 0}, {"t", 0, 100, 0}, {"t", 0, 4, 0}, {"x", 0, 0, 0}, {"t", 1, 0, 0},
		{"t", 0, 5, 7}, {"t", 0, 11, 1},
	} {
		n, err := s.Units(tc.topic, tc.queue, tc.from, dst)
		if err != nil || n != tc.want {
			t.Errorf("%+v: %d %v", tc, n, err)
		}
	}
	if n, err := s.Units("t", 0, 5, nil); n != 0 || err != nil {
		t.Fatal(n, err)
	}
}

func TestReplayOfSameAndOtherUnits(t *testing.T) {
	s, at := filled(t, 10, Options{FileSize: 100})
	for i := range int64(10) {
		mustApply(t, s, at(i))
	}
	if st := s.Stats(); st.Same != 10 || st.Replaced != 0 || st.Written != 10 {
		t.Fatalf("%+v", st)
	}
	mustApply(t, s, entry{topic: "t", at: 4, phy: 850})
	if st := s.Stats(); st.Replaced != 1 {
		t.Fatalf("%+v", st)
	}
	if s.Max("t", 0) != 10 {
		t.Fatal(s.Max("t", 0))
	}
}

func TestWildJumpIsRefused(t *testing.T) {
	s, _ := filled(t, 3, Options{FileSize: 100, MaxGapFiles: 2})
	e := entry{topic: "t", at: 1 << 40, phy: 10_000}
	must(t, e.apply(t, s))
	var gap *GapError
	if err := s.Commit(); !errors.As(err, &gap) || gap.End != 3 || !errors.Is(err, contract.ErrInvalid) {
		t.Fatalf("%v", err)
	}
	mustApply(t, s, entry{topic: "t", at: 3, phy: 10_000})
	if s.Max("t", 0) != 4 {
		t.Fatal(s.Max("t", 0))
	}
}

// TestJumpOverRetiredRecords starts the queue anew instead of filling whole
// files with blank units.
func TestJumpOverRetiredRecords(t *testing.T) {
	s, _ := filled(t, 3, Options{FileSize: 100, MaxGapFiles: 2})
	must(t, s.CorrectMin(10_000))
	mustApply(t, s, entry{topic: "t", at: 1_000_003, phy: 10_000})
	if lo, hi := s.Min("t", 0), s.Max("t", 0); lo != 1_000_003 || hi != 1_000_004 {
		t.Fatalf("[%d,%d)", lo, hi)
	}
	must(t, s.Flush())
	entries, err := s.fs.ReadDir(testRoot + "/t/0")
	must(t, err)
	if len(entries) != 1 || entries[0].Name != fileName(1_000_000*20) {
		t.Fatalf("%v", entries)
	}
}

func TestCorrectMin(t *testing.T) {
	s := mustOpen(t, newSim(t), Options{FileSize: 2000})
	for i := range int64(500) {
		mustApply(t, s, entry{topic: "t", at: i, phy: i * 100})
	}
	for _, tc := range []struct{ logMin, want int64 }{
		{0, 0}, {1, 1}, {2000, 20}, {2001, 21}, {9999, 100}, {49_900, 499}, {1_000_000, 500},
	} {
		must(t, s.CorrectMin(contract.Offset(tc.logMin)))
		if got := s.Min("t", 0); got != tc.want {
			t.Errorf("log min %d: min %d, want %d", tc.logMin, got, tc.want)
		}
	}
	if s.Max("t", 0) != 500 {
		t.Fatal("the numbering was lost")
	}
}

// TestBlankPrefixNeverCounts: with a log that starts at 0, Java takes blank
// units for live ones.
func TestBlankPrefixNeverCounts(t *testing.T) {
	sim := newSim(t)
	for range 3 {
		s := mustOpen(t, sim, Options{FileSize: 8000})
		_, err := s.TruncateAbove(1<<40, nil, nil)
		must(t, err)
		must(t, s.CorrectMin(0))
		if !s.Exists("t", 0) {
			mustApply(t, s, entry{topic: "t", at: 350, phy: 0}, entry{topic: "t", at: 351, phy: 200})
			must(t, s.Flush())
		}
		if lo, hi := s.Min("t", 0), s.Max("t", 0); lo != 350 || hi != 352 {
			t.Fatalf("[%d,%d)", lo, hi)
		}
	}
}

// TestBlankQueueKeepsItsNumbers: a queue that Java initialised at an offset
// holds blank units only. Its first record goes there, and its size is not
// taken for a record's.
func TestBlankQueueKeepsItsNumbers(t *testing.T) {
	sim := newSim(t)
	must(t, sim.MkdirAll(testRoot+"/t/0"))
	name := testRoot + "/t/0/" + fileName(0)
	setLength(t, sim, name, 4000)
	overwrite(t, sim, name, 0, blankUnits(100))
	s := mustOpen(t, sim, Options{FileSize: 4000})
	_, err := s.TruncateAbove(1<<40, nil, nil)
	must(t, err)
	must(t, s.CorrectMin(1))
	if lo, hi, phy := s.Min("t", 0), s.Max("t", 0), s.MaxPhysical(); lo != 100 || hi != 100 || phy != 0 {
		t.Fatalf("[%d,%d) %d", lo, hi, phy)
	}
	mustApply(t, s, entry{topic: "t", at: 100, phy: 50})
	if lo, hi := s.Min("t", 0), s.Max("t", 0); lo != 100 || hi != 101 {
		t.Fatalf("[%d,%d)", lo, hi)
	}
}

func TestDeleteExpired(t *testing.T) {
	s, at := filled(t, 23, Options{FileSize: 100})
	for _, tc := range []struct {
		logMin  int64
		removed int
		first   int64
		min     int64
	}{
		{0, 0, 0, 0}, {4 * 200, 0, 0, 4}, {5 * 200, 1, 5, 5}, {14*200 + 1, 2, 15, 15}, {1 << 30, 1, 20, 23},
	} {
		n, err := s.DeleteExpired(contract.Offset(tc.logMin))
		must(t, err)
		q := s.lookup("t", 0)
		if n != tc.removed || q.first.Load()/20 != tc.first || s.Min("t", 0) != tc.min || s.Max("t", 0) != 23 {
			t.Fatalf("log min %d: removed %d, first %d, [%d,%d)",
				tc.logMin, n, q.first.Load()/20, s.Min("t", 0), s.Max("t", 0))
		}
	}
	mustApply(t, s, at(23))
	if lo, hi := s.Min("t", 0), s.Max("t", 0); hi != 24 || lo != 23 {
		t.Fatalf("[%d,%d)", lo, hi)
	}
	// A record whose file was removed has no place any more.
	mustApply(t, s, at(3))
	if st := s.Stats(); st.Below != 1 {
		t.Fatalf("%+v", st)
	}
}

// TestExpiryKeepsADurableUnit: the file with the last durable unit stays even if
// there is a newer one, which a power cut may take.
func TestExpiryKeepsADurableUnit(t *testing.T) {
	s, at := filled(t, 5, Options{FileSize: 100})
	mustApply(t, s, at(5))
	if n, err := s.DeleteExpired(1 << 30); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	must(t, s.Flush())
	if n, err := s.DeleteExpired(1 << 30); n != 1 || err != nil {
		t.Fatal(n, err)
	}
}

func TestDropAll(t *testing.T) {
	s, at := filled(t, 23, Options{FileSize: 100})
	mustApply(t, s, entry{topic: "u", queue: 7, at: 3, phy: 9000})
	must(t, s.DropAll())
	if s.Exists("t", 0) || s.MaxPhysical() != 0 || len(s.Topics()) != 0 {
		t.Fatal("something is left")
	}
	entries, err := s.fs.ReadDir(testRoot)
	must(t, err)
	if len(entries) != 0 {
		t.Fatalf("%v", entries)
	}
	mustApply(t, s, at(0), at(1))
	must(t, s.Flush())
	if s.Max("t", 0) != 2 {
		t.Fatal(s.Max("t", 0))
	}
}

func TestReadOnlyChangesNothing(t *testing.T) {
	s, at := filled(t, 12, Options{FileSize: 100})
	r := mustOpen(t, s.fs, Options{FileSize: 100, ReadOnly: true})
	_, err := r.TruncateAbove(contract.Offset(6*200), func(string, int32, int64, codec.QueueUnit) (bool, error) {
		return true, nil
	}, nil)
	must(t, err)
	if r.Max("t", 0) != 6 || s.Max("t", 0) != 12 {
		t.Fatalf("%d %d", r.Max("t", 0), s.Max("t", 0))
	}
	e := at(6)
	if err := e.apply(t, r); !errors.Is(err, contract.ErrUnsupported) {
		t.Fatal(err)
	}
	for _, err := range []error{r.DropAll(), r.Flush()} {
		if !errors.Is(err, contract.ErrUnsupported) {
			t.Fatal(err)
		}
	}
	if _, err := r.DeleteExpired(1); !errors.Is(err, contract.ErrUnsupported) {
		t.Fatal(err)
	}
	again := mustOpen(t, s.fs, Options{FileSize: 100, ReadOnly: true})
	if again.Max("t", 0) != 12 {
		t.Fatal(again.Max("t", 0))
	}
}

func TestRollBackAtRunTime(t *testing.T) {
	s, at := filled(t, 12, Options{FileSize: 100})
	mustApply(t, s, at(12), at(13))
	must(t, s.RollBack(contract.Offset(7*200)))
	if s.Max("t", 0) != 7 || s.MaxPhysical() > 7*200 {
		t.Fatal(s.Max("t", 0), s.MaxPhysical())
	}
	for i := int64(7); i < 9; i++ {
		mustApply(t, s, entry{topic: "t", at: i, phy: i*200 + 10})
	}
	must(t, s.Flush())
	again := mustOpen(t, s.fs, Options{FileSize: 100})
	got := make([]codec.QueueUnit, 20)
	n, err := again.Units("t", 0, 0, got)
	if err != nil || n != 9 || got[8].PhysicalOffset != 1610 {
		t.Fatalf("%d %v %v", n, err, got)
	}
}

// TestReadersBesideTheLane runs readers and retention beside the lane; what
// they see is whole.
func TestReadersBesideTheLane(t *testing.T) {
	s := mustOpen(t, newSim(t), Options{FileSize: 200, MaxHandles: 2})
	const queues, records = 4, 800
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for k := range 3 {
		wg.Go(func() {
			dst := make([]codec.QueueUnit, 37)
			rng := rand.New(rand.NewPCG(uint64(k), 3))
			for {
				select {
				case <-stop:
					return
				default:
				}
				queue := int32(rng.IntN(queues))
				lo, hi := s.Min("t", queue), s.Max("t", queue)
				from := lo + rng.Int64N(max(hi-lo, 0)+1)
				n, err := s.Units("t", queue, from, dst)
				if err != nil {
					t.Error(err)
					return
				}
				for i, u := range dst[:n] {
					if want := ((from+int64(i))*queues + int64(queue)) * 200; u.PhysicalOffset != want {
						t.Errorf("unit %d is %+v, want %d", from+int64(i), u, want)
						return
					}
				}
				s.MaxPhysical()
				s.Topics()
			}
		})
	}
	for i := range int64(records) {
		queue := int32(i % queues)
		e := entry{topic: "t", queue: queue, at: i / queues, phy: i * 200}
		must(t, e.apply(t, s))
		if i%17 == 0 {
			must(t, s.Commit())
		}
		if i%90 == 0 {
			must(t, s.Flush())
			_, err := s.DeleteExpired(contract.Offset((i - 300) * 200))
			must(t, err)
		}
	}
	must(t, s.Commit())
	close(stop)
	wg.Wait()
	for queue := range int32(queues) {
		if s.Max("t", queue) != records/queues {
			t.Fatal(s.Max("t", queue))
		}
	}
}

func TestManyQueuesWithFewHandles(t *testing.T) {
	s := mustOpen(t, newSim(t), Options{FileSize: 100, MaxHandles: 3})
	for i := range int64(300) {
		e := entry{topic: fmt.Sprintf("t%d", i%50), at: i / 50, phy: i * 200}
		must(t, e.apply(t, s))
		if i%20 == 0 {
			must(t, s.Commit())
		}
	}
	must(t, s.Commit())
	must(t, s.Flush())
	if n := len(s.files.table); n > 3 {
		t.Fatalf("%d handles", n)
	}
	for i := range 50 {
		if got := s.Max(fmt.Sprintf("t%d", i), 0); got != 6 {
			t.Fatalf("queue %d: %d", i, got)
		}
	}
}

// TestDropAllForgetsABatch: what was applied to a batch queue, and not committed, is
// not written once all was dropped.
func TestDropAllForgetsABatch(t *testing.T) {
	s := mustOpen(t, newSim(t), Options{FileSize: 100, BatchFileSize: 460})
	g := &group{topic: "b", n: 3}
	g.encode(t)
	g.apply(t, s)
	must(t, s.DropAll())
	g.apply(t, s)
	must(t, s.Commit())
	var units [2]codec.BatchUnit
	n, err := s.Batch("b", 0).Units(0, units[:])
	if n != 1 || err != nil || units[0] != g.unit() || s.Stats().Written != 1 {
		t.Fatalf("%d units, %v, %d written", n, err, s.Stats().Written)
	}
}

// TestReadersBesideCuts is TestBatchReadersBesideCuts for plain queues.
func TestReadersBesideCuts(t *testing.T) {
	s := mustOpen(t, newSim(t), Options{FileSize: 40, MaxHandles: 1})
	var all []entry
	phy := int64(0)
	for i := range int64(40) {
		e := entry{topic: "t", at: i, phy: phy}
		e.encode(t)
		phy = e.end()
		all = append(all, e)
	}
	mustApply(t, s, all...)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for k := range int64(3) {
		readers.Go(func() {
			var units [9]codec.QueueUnit
			for at := k; ; at = (at + 7) % 40 {
				select {
				case <-stop:
					return
				default:
				}
				n, err := s.Units("t", 0, at, units[:])
				if err != nil {
					t.Errorf("at %d: %v", at, err)
					return
				}
				for i, u := range units[:n] {
					if want := all[at+int64(i)].unit(); u != want && u != (codec.QueueUnit{}) {
						t.Errorf("unit %d is %+v, want %+v", at+int64(i), u, want)
						return
					}
				}
			}
		})
	}
	for i := range 300 {
		keep := 1 + i*7%39
		must(t, s.RollBack(contract.Offset(all[keep].phy)))
		mustApply(t, s, slices.Clone(all[keep:])...)
	}
	close(stop)
	readers.Wait()
}
