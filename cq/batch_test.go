package cq

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

const batchRoot = "/store/batchconsumequeue"

// group is a record that stands for n messages from base on.
type group struct {
	topic   string
	queue   int32
	base    int64
	n       int64
	phy     int64
	size    int32
	plain   bool
	rawView codec.MessageView
}

func (g *group) encode(t testing.TB) {
	t.Helper()
	m := codec.Message{Magic: codec.MessageMagicV1, QueueID: g.queue, QueueOffset: g.base, PhysicalOffset: g.phy, StoreTimestamp: storeTimeOf(g.phy),
		BornHost: make([]byte, 8), StoreHost: make([]byte, 8), Topic: []byte(g.topic), Properties: codec.AppendProperty(nil, "TAGS", "TagA")}
	if !g.plain {
		m.SysFlag = codec.SysFlagInnerBatch
		m.Properties = codec.AppendProperty(m.Properties, codec.PropertyInnerNumber, strconv.FormatInt(g.n, 10))
		m.Properties = codec.AppendProperty(m.Properties, codec.PropertyInnerBase, strconv.FormatInt(g.base, 10))
	}
	b, err := m.Append(nil)
	must(t, err)
	must(t, g.rawView.Parse(b))
	g.size = int32(len(b))
}

func (g *group) apply(t testing.TB, s *Store) {
	t.Helper()
	must(t, s.Apply(contract.RecordID{Epoch: 1, Offset: contract.Offset(g.phy), Length: int64(g.size)}, &g.rawView))
}

func (g *group) end() int64 { return g.phy + int64(g.size) }

func (g *group) unit() codec.BatchUnit {
	return codec.BatchUnit{PhysicalOffset: g.phy, Size: g.size, TagsCode: 2598919, StoreTime: storeTimeOf(g.phy), BaseOffset: g.base,
		BatchSize: int16(g.n), CompactedOffset: -1}
}

// TestBatchGoldenBytes compares a file with bytes written down by hand.
func TestBatchGoldenBytes(t *testing.T) {
	sim := newSim(t)
	s := mustOpen(t, sim, Options{FileSize: 100, BatchFileSize: 92})
	for _, g := range []group{{topic: "T", base: 0, n: 5, phy: 7}, {topic: "T", base: 5, n: 3, phy: 500}, {topic: "T", base: 8, n: 1, phy: 900}} {
		g.encode(t)
		g.apply(t, s)
		g.apply(t, s) // Again: it changes nothing.
	}
	must(t, s.Commit())
	must(t, s.Flush())
	g := group{topic: "T", base: 0, n: 5, phy: 7}
	g.encode(t)
	want, err := hex.DecodeString("0000000000000007" + fmt.Sprintf("%08x", g.size) + "000000000027a807" + "0000000000000008" + "0000000000000000" + "0005" + "ffffffff" + "00000000")
	must(t, err)
	got := readAll(t, sim, batchRoot+"/T/0/00000000000000000000")
	if !bytes.Equal(got[:46], want) || len(got) != 92 || bytes.Equal(got[46:], make([]byte, 46)) {
		t.Errorf("got\n%x\nwant\n%x", got, want)
	}
	if n := len(readAll(t, sim, batchRoot+"/T/0/00000000000000000092")); n != 92 {
		t.Errorf("the second file has %d bytes", n)
	}
	if fmt.Sprint(s.Topics(), s.Queues("T"), s.Min("T", 0), s.Max("T", 0), s.Tally()) != "[T] [0] 0 9 9" {
		t.Error(s.Topics(), s.Queues("T"), s.Min("T", 0), s.Max("T", 0), s.Tally())
	}
	if list, err := sim.ReadDir("/store/consumequeue"); err == nil && len(list) > 0 {
		t.Errorf("there are plain queues: %v", list)
	}
}

// TestBatchKinds: the kind of a topic is that of its directory, or of its first
// record; what is of the other kind has no queue of its own.
func TestBatchKinds(t *testing.T) {
	sim := newSim(t)
	opts := Options{FileSize: 100, BatchFileSize: 92}
	s := mustOpen(t, sim, opts)
	put := func(topic string, base, phy int64, plain bool) {
		g := group{topic: topic, base: base, n: 2, phy: phy, plain: plain}
		g.encode(t)
		g.apply(t, s)
		must(t, s.Commit())
	}
	put("b", 0, 0, false)
	put("b", 2, 1000, true)
	put("p", 0, 2000, true)
	put("p", 1, 3000, false)
	must(t, s.Flush())
	if got := fmt.Sprint(s.Max("b", 0), s.Max("p", 0), s.IsBatch("b"), s.IsBatch("p"), s.BatchTopics()); got != "2 2 true false [b]" {
		t.Error(got)
	}
	// A rebuild keeps the kind, also if a record of the other kind comes first.
	must(t, s.DropAll())
	s = mustOpen(t, sim, opts)
	put("b", 0, 4000, true)
	put("b", 0, 5000, false)
	if got := fmt.Sprint(s.Max("b", 0), s.IsBatch("b"), s.Topics()); got != "2 true [b]" {
		t.Error(got)
	}
	// What is no number of messages is no batch.
	for _, g := range []group{{topic: "x", n: 0}, {topic: "x", n: 40000}, {topic: "x", n: -1}} {
		g.encode(t)
		if _, _, ok := BatchOf(&g.rawView); ok {
			t.Errorf("%d messages", g.n)
		}
	}
}

// batchLife is the log and its lane over crashes.
type batchLife struct {
	t      *testing.T
	rng    *rand.Rand
	opts   Options
	s      *Store
	log    []*group
	next   map[int32]int64
	phy    int64
	cursor int64
	min    int64
}

func (l *batchLife) open(sim *vfs.Sim) {
	s, err := Open(sim, "/store/consumequeue", l.opts)
	must(l.t, err)
	l.s = s
	check := func(string, int32, int64, codec.QueueUnit) (bool, error) { return true, nil }
	s.CheckBatches(func(topic string, queue int32, u codec.BatchUnit) (bool, error) {
		for _, g := range l.log {
			if g.phy == u.PhysicalOffset {
				u.CompactedOffset, u.Reserved = -1, 0 // Nobody looks at these.
				return g.unit() == u && s.BatchLeads(u, &g.rawView, topic, queue), nil
			}
		}
		return false, nil
	})
	report, err := s.TruncateAbove(contract.Offset(l.cursor), check, func(to contract.Offset) error {
		l.cursor = min(l.cursor, int64(to))
		return nil
	})
	must(l.t, err)
	must(l.t, s.CorrectMin(contract.Offset(l.min)))
	for _, g := range l.log {
		if g.phy >= max(int64(report.Replay), l.min) {
			g.apply(l.t, s)
			if l.rng.IntN(8) == 0 {
				must(l.t, s.Commit())
			}
		}
	}
	must(l.t, s.Commit())
	must(l.t, s.CorrectMin(contract.Offset(l.min)))
}

func (l *batchLife) step() {
	for range 1 + l.rng.IntN(9) {
		g := &group{topic: "T", queue: l.rng.Int32N(2), n: 1 + l.rng.Int64N(9), phy: l.phy + l.rng.Int64N(2)*100}
		g.base = l.next[g.queue]
		g.encode(l.t)
		l.next[g.queue] += g.n
		l.phy = g.end()
		l.log = append(l.log, g)
		g.apply(l.t, l.s)
	}
	must(l.t, l.s.Commit())
	switch l.rng.IntN(5) {
	case 0, 1:
		must(l.t, l.s.Flush())
		l.cursor = l.phy
	case 2:
		if g := l.log[l.rng.IntN(len(l.log))]; g.phy <= l.cursor && g.phy > l.min {
			l.min = g.phy
			_, err := l.s.DeleteExpired(contract.Offset(l.min))
			must(l.t, err)
		}
	}
}

// verify holds every number's lookup against the log.
func (l *batchLife) verify() {
	for queue := range int32(2) {
		var live []*group
		for _, g := range l.log {
			if g.queue == queue && g.phy >= l.min {
				live = append(live, g)
			}
		}
		lo, hi := l.s.Min("T", queue), l.s.Max("T", queue)
		if len(live) == 0 {
			if lo != hi {
				l.t.Fatalf("queue %d is [%d,%d), want none", queue, lo, hi)
			}
			continue
		}
		if last := live[len(live)-1]; lo != live[0].base || hi != last.base+last.n {
			l.t.Fatalf("queue %d is [%d,%d), want [%d,%d)", queue, lo, hi, live[0].base, last.base+last.n)
		}
		q := l.s.Batch("T", queue)
		units := make([]codec.BatchUnit, len(live)+1)
		i := 0
		for at := lo; at < hi; at++ {
			if at >= live[i].base+live[i].n {
				i++
			}
			n, err := q.Units(at, units)
			if err != nil || n != len(live)-i || units[0] != live[i].unit() || units[n-1] != live[len(live)-1].unit() {
				l.t.Fatalf("queue %d at %d: %d units, %v, the first %+v, want %+v", queue, at, n, err, units[0], live[i].unit())
			}
		}
	}
}

// TestBatchCrashes is TestCrashThenReplayEqualsRebuild for batch queues.
func TestBatchCrashes(t *testing.T) {
	for run := range max(1, *crashRuns/3) {
		seed := uint64(run) + 1
		if *crashSeed != 0 && seed != *crashSeed {
			continue
		}
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			sim := newSim(t)
			l := &batchLife{t: t, rng: rand.New(rand.NewPCG(seed, 5)), next: map[int32]int64{}}
			l.opts = Options{FileSize: 100, BatchFileSize: int64(46 * (1 + l.rng.IntN(30))), MaxHandles: 1 + l.rng.IntN(3)}
			l.open(sim)
			for range 1 + l.rng.IntN(4) {
				for range l.rng.IntN(10) {
					l.step()
				}
				l.verify()
				must(t, l.s.Close())
				if l.rng.IntN(4) == 0 {
					sim = sim.Kill()
				} else {
					sim = sim.Crash(chooser(l.rng))
				}
				l.open(sim)
				l.verify()
			}
			must(t, l.s.Close())
		})
	}
}

// TestBatchReadersBesideCuts: a file that a cut takes away is no error for who
// reads.
func TestBatchReadersBesideCuts(t *testing.T) {
	s := mustOpen(t, newSim(t), Options{FileSize: 100, BatchFileSize: 92})
	var all []*group
	phy := int64(0)
	for i := range int64(40) {
		g := &group{topic: "b", base: i * 3, n: 3, phy: phy}
		g.encode(t)
		phy = g.end()
		all = append(all, g)
		g.apply(t, s)
	}
	must(t, s.Commit())
	q := s.Batch("b", 0)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for k := range int64(3) {
		readers.Go(func() {
			var units [9]codec.BatchUnit
			for at := k; ; at = (at + 17) % 120 {
				select {
				case <-stop:
					return
				default:
				}
				_, err := q.Units(at, units[:])
				_, _, _, last := q.InFront(at)
				_, _, first := q.First(func(u codec.BatchUnit) bool { return u.BaseOffset < at })
				if err = errors.Join(err, last, first); err != nil {
					t.Errorf("at %d: %v", at, err)
					return
				}
			}
		})
	}
	for i := range 300 {
		keep := 1 + i*7%39
		must(t, s.RollBack(contract.Offset(all[keep].phy)))
		for _, g := range all[keep:] {
			g.apply(t, s)
		}
		must(t, s.Commit())
	}
	close(stop)
	readers.Wait()
}

// TestBatchLastBeforeAGap: the last unit in front of a gap in the numbers is found,
// and not the one behind.
func TestBatchLastBeforeAGap(t *testing.T) {
	s := mustOpen(t, newSim(t), Options{FileSize: 100, BatchFileSize: 92})
	phy := int64(0)
	for _, base := range []int64{0, 3, 50, 53} {
		g := &group{topic: "b", base: base, n: 3, phy: phy}
		g.encode(t)
		g.apply(t, s)
		phy = g.end()
	}
	must(t, s.Commit())
	for at, want := range map[int64]int64{0: -1, 2: -1, 3: 0, 6: 3, 49: 3, 50: 3, 53: 50, 60: 53} {
		u, _, ok, err := s.Batch("b", 0).InFront(at)
		if !ok {
			u.BaseOffset = -1
		}
		if err != nil || u.BaseOffset != want {
			t.Errorf("in front of %d: %d, %v, want %d", at, u.BaseOffset, err, want)
		}
	}
}
