package index

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/clock"
	"github.com/stratalog/stratalog/internal/vfs"
)

// TestModel holds queries over many random logs against the model.
func TestModel(t *testing.T) {
	logs := 10_000
	if testing.Short() {
		logs = 300
	}
	for seed := range logs {
		rng := rand.New(rand.NewPCG(uint64(seed), 2))
		opts := small()
		opts.Slots, opts.Entries, opts.Tags = 1+rng.IntN(40), 2+rng.IntN(40), seed%2 == 0
		l := newLog(rng, rng.Int64N(1<<40))
		start := l.phy
		s, err := Open(newSim(t), dir, opts)
		must(t, err)
		for range rng.IntN(60) {
			mustApply(t, s, l.grow())
			if rng.IntN(20) == 0 {
				must(t, s.Flush())
			}
		}
		for range 6 {
			q := Query{Topic: l.pick(topics), Key: l.pick(words)}
			if opts.Tags && rng.IntN(4) == 0 {
				q.Tag, q.Key = true, "t1"
			}
			if rng.IntN(2) == 0 {
				q.From = 1_700_000_000_000 + rng.Int64N(max(l.time-1_700_000_000_000, 1)+2000)
				q.To = q.From + rng.Int64N(3000)
			}
			l.check(t, s, q, start, l.phy)
		}
		must(t, s.Close())
	}
}

// The edges of a window, to the millisecond, though an entry has seconds only:
// at, before and behind every record, over files.
func TestWindowEdges(t *testing.T) {
	l := newLog(rand.New(rand.NewPCG(1, 1)), 0)
	opts := small()
	s := mustOpen(t, newSim(t), opts)
	var times []int64
	for i := range 60 {
		l.time += []int64{0, 1, 998, 999, 1000, 1001, 70_000}[i%7]
		r := &record{topic: "T", keys: "k1", phy: l.phy, time: l.time}
		l.phy += 200
		l.records = append(l.records, r)
		mustApply(t, s, r)
		times = append(times, l.time)
	}
	if n := len(s.Files()); n < 4 {
		t.Fatalf("%d files", n)
	}
	for _, a := range times {
		for d := int64(-1); d <= 1; d++ {
			l.check(t, s, Query{Topic: "T", Key: "k1", From: a + d}, 0, l.phy)
			l.check(t, s, Query{Topic: "T", Key: "k1", To: a + d}, 0, l.phy)
			for _, b := range []int64{a + d, a + 1000, a + 999, times[len(times)-1]} {
				l.check(t, s, Query{Topic: "T", Key: "k1", From: a + d, To: b}, 0, l.phy)
			}
		}
	}
}

func hashOf(topic, key string) int32 {
	hash, _ := keyHash(nil, topic, key, false)
	return hash
}

// Keys of one hash, of one topic and across topics, are told apart by the
// record, and each is found.
func TestHashCollisions(t *testing.T) {
	if hashOf("T", "Aa") != hashOf("T", "BB") || hashOf("Aa", "k1") != hashOf("BB", "k1") {
		t.Fatal("these do not collide")
	}
	l := newLog(rand.New(rand.NewPCG(1, 1)), 0)
	s := mustOpen(t, newSim(t), small())
	for i := range 40 {
		r := &record{topic: []string{"T", "Aa", "BB"}[i%3], keys: []string{"Aa", "BB", "k1"}[i/3%3], phy: l.phy, time: l.time + int64(i)}
		l.phy += 200
		l.records = append(l.records, r)
		mustApply(t, s, r)
	}
	l.verify(t, s, 0, l.phy)
	r := &reader{t: t, l: l, q: Query{Topic: "T", Key: "BB"}, most: 100}
	_, done, err := s.Search(t.Context(), r.q, Position{}, r)
	if must(t, err); !done || len(r.out) != 5 || r.misses == 0 {
		t.Errorf("found %v beside %d others, done %v", r.out, r.misses, done)
	}
}

// The hash that has no positive counterpart is 0, as in Java.
func TestPolygenelubricants(t *testing.T) {
	if got := positive(codec.JavaHashString("polygenelubricants")); got != 0 {
		t.Errorf("%d", got)
	}
	if got := hashOf("T", "k1"); got != 2539445 {
		t.Errorf("%d", got)
	}
	if got := hashOf("TopicTest", "MessageKey"); got != 638347386 {
		t.Errorf("%d", got)
	}
}

// Java's own test: of 100 slots and 400 entries a file takes 399.
func TestRolls(t *testing.T) {
	opts := small()
	opts.Slots, opts.Entries = 100, 400
	s := mustOpen(t, newSim(t), opts)
	for i := range 400 {
		mustApply(t, s, &record{topic: "T", keys: fmt.Sprint(i), phy: int64(i) * 100, time: int64(1000 * (i + 1))})
		want := 1
		if i == 399 {
			want = 2
		}
		if got := len(s.Files()); got != want {
			t.Fatalf("%d files after %d records", got, i+1)
		}
	}
	if got := s.FullUntil(); got != 0 {
		t.Errorf("full until %d before a flush", got)
	}
	must(t, s.Flush())
	if got := s.FullUntil(); got != 399_000 {
		t.Errorf("full until %d", got)
	}
	files := s.Files()
	if f := files[0]; !f.Full || f.Entries != 399 || f.Begin != 0 || f.End != 39800 || f.BeginTime != 1000 || f.EndTime != 399_000 {
		t.Errorf("%+v", f)
	}
	if f := files[1]; f.Full || f.Entries != 1 || f.Begin != 39900 || f.BeginTime != 400_000 {
		t.Errorf("%+v", f)
	}
}

// The bytes of the worked example, and of the odd entries: one timed from the end
// of the file before, one clamped at 0, an old slot that leads too far.
func TestGoldenBytes(t *testing.T) {
	sim := newSim(t)
	opts := small()
	opts.Slots, opts.Entries = 3, 3
	s := mustOpen(t, sim, opts)
	mustApply(t, s, &record{topic: "T", keys: "k1", phy: 4096, time: 1_700_000_000_123})
	mustApply(t, s, &record{topic: "T", keys: "k1", phy: 4211, time: 1_700_000_001_123})
	mustApply(t, s, &record{topic: "T", keys: "k1", phy: 4300, time: 1_700_000_004_122})
	mustApply(t, s, &record{topic: "T", keys: "k2", phy: 4400, time: 1_700_000_000_000})
	must(t, s.Flush())
	k1, k2 := int32(2539445), int32(2539446)
	want := func(h codec.IndexHeader, slots [3]int32, entries ...codec.IndexEntry) []byte {
		b, err := h.Append(nil)
		must(t, err)
		for _, e := range slots {
			slot := codec.IndexSlot{Entry: e}
			b, err = slot.Append(b)
			must(t, err)
		}
		b = append(b, make([]byte, 20)...)
		for _, e := range entries {
			b, err = e.Append(b)
			must(t, err)
		}
		return b
	}
	var slots [3]int32
	slots[k1%3] = 2
	first := want(codec.IndexHeader{BeginTime: 1_700_000_000_123, EndTime: 1_700_000_001_123, BeginPhysicalOffset: 4096,
		EndPhysicalOffset: 4211, UsedSlots: 1, Count: 3}, slots,
		codec.IndexEntry{KeyHash: k1, PhysicalOffset: 4096},
		codec.IndexEntry{KeyHash: k1, PhysicalOffset: 4211, TimeDiff: 1, Previous: 1})
	slots = [3]int32{}
	slots[k1%3], slots[k2%3] = 1, 2
	second := want(codec.IndexHeader{BeginTime: 1_700_000_004_122, EndTime: 1_700_000_000_000, BeginPhysicalOffset: 4300,
		EndPhysicalOffset: 4400, UsedSlots: 2, Count: 3}, slots,
		codec.IndexEntry{KeyHash: k1, PhysicalOffset: 4300, TimeDiff: 2},
		codec.IndexEntry{KeyHash: k2, PhysicalOffset: 4400})
	sameContents(t, contents(t, sim), [][]byte{first, second})
}

func TestNames(t *testing.T) {
	at := time.Date(2026, 11, 30, 23, 59, 59, 999_999_999, time.Local)
	for _, c := range []struct{ last, want string }{
		{"", "20261130235959999"},
		{"20261130235959998", "20261130235959999"},
		{"20261130235959999", "20261201000000000"},
		{"20280228235959999", "20280229000000000"},
		{"99991231235959999", "99991231235960000"},
		{"99", "990"},
		{"300", "301"},
		{"30", "31"},
		{"20269999999999999", "20270000000000000"},
	} {
		got := nextName(at, c.last)
		if got != c.want || got <= c.last || !isName(got) {
			t.Errorf("behind %q: %q, want %q", c.last, got, c.want)
		}
	}
	for _, name := range []string{"", "a", "1a", "-1", "+1", "1.5", "1234567890123456789", "lock"} {
		if isName(name) {
			t.Errorf("%q is a name", name)
		}
	}
}

// A clock that stands still or runs back gives names that rise.
func TestNamesRise(t *testing.T) {
	opts := small()
	wall := clock.NewManual(time.Now())
	opts.Clock, opts.Entries = wall, 2
	sim := newSim(t)
	s := mustOpen(t, sim, opts)
	for i := range 30 {
		mustApply(t, s, &record{topic: "T", keys: "k", phy: int64(i), time: int64(i)})
		wall.SetWall(time.Now().Add(-time.Duration(i) * time.Hour))
	}
	must(t, s.Flush())
	files := s.Files()
	if len(files) != 30 || !slices.IsSortedFunc(files, func(a, b FileInfo) int { return strings.Compare(a.Path, b.Path) }) {
		t.Errorf("%v", files)
	}
	again := mustOpen(t, sim, opts)
	if got := again.Files(); !slices.Equal(got, files) {
		t.Errorf("%v, want %v", got, files)
	}
}

func TestPutAllocatesNothing(t *testing.T) {
	opts := small()
	opts.Slots, opts.Entries = 10_000, 5_000_000
	opts.Tags = true
	s := mustOpen(t, newSim(t), opts)
	r := record{topic: "Topic", unique: "7F00000100002A9F18B4AAC2", keys: "order-1 order-2", tags: "TagA", time: 1_700_000_000_000}
	v := r.view(t)
	phy := contract.Offset(0)
	put := func() {
		for range 100 {
			phy += 200
			if err := s.Apply(contract.RecordID{Offset: phy, Length: 200}, v); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	put()
	if got := testing.AllocsPerRun(20, put); got != 0 {
		t.Errorf("%v allocations for 400 entries", got)
	}
}

// counter is a Visitor that wants nothing.
type counter struct{ n int }

func (c *counter) Visit(Candidate) (bool, error) {
	c.n++
	return true, nil
}

func TestSearchAllocatesNothing(t *testing.T) {
	s := mustOpen(t, vfs.NewSim(), small())
	for i := range 100 {
		mustApply(t, s, &record{topic: "T", keys: "k" + fmt.Sprint(i%5), phy: int64(i), time: int64(i)})
	}
	must(t, s.Flush())
	c := &counter{}
	ask := func() {
		if _, done, err := s.Search(context.Background(), Query{Topic: "T", Key: "k3"}, Position{}, c); err != nil || !done {
			t.Fatal(done, err)
		}
	}
	ask()
	if got := testing.AllocsPerRun(100, ask); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// A search is bounded, and goes on where it ended.
func TestSearchIsBounded(t *testing.T) {
	opts := small()
	opts.Slots, opts.Entries = 1, 3*searchSteps
	s := mustOpen(t, newSim(t), opts)
	for i := range 2*searchSteps + 10 {
		must(t, (&record{topic: "T", keys: "k", phy: int64(i), time: int64(i)}).apply(t, s))
	}
	must(t, s.Commit())
	c, at := &counter{}, Position{}
	for i := range 3 {
		next, done, err := s.Search(t.Context(), Query{Topic: "T", Key: "other"}, at, c)
		if err != nil || done != (i == 2) || c.n != 0 {
			t.Fatal(i, done, err, c.n)
		}
		at = next
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, done, err := s.Search(ctx, Query{Topic: "T", Key: "k"}, Position{}, c); done || !errors.Is(err, context.Canceled) {
		t.Error(done, err)
	}
}

func TestDeleteExpired(t *testing.T) {
	sim := newSim(t)
	s := mustOpen(t, sim, small())
	l := newLog(rand.New(rand.NewPCG(3, 3)), 0)
	for range 200 {
		mustApply(t, s, l.grow())
	}
	n := len(s.Files())
	if removed, err := s.DeleteExpired(contract.Offset(l.phy)); removed != 0 || err != nil {
		t.Fatalf("%d removed before a flush, %v", removed, err)
	}
	must(t, s.Flush())
	third := s.Files()[2]
	removed, err := s.DeleteExpired(third.End)
	if err != nil || removed != 2 {
		t.Fatalf("%d removed, %v", removed, err)
	}
	l.verify(t, s, int64(third.End), l.phy)
	if removed, err := s.DeleteExpired(contract.Offset(l.phy)); err != nil || removed != n-3 {
		t.Fatalf("%d removed, %v", removed, err)
	}
	if got := contents(t, sim.Crash(vfs.AllOld())); len(got) != 1 {
		t.Errorf("%d files after a power cut", len(got))
	}
	mustApply(t, s, l.grow())
}

func TestDropAll(t *testing.T) {
	sim := newSim(t)
	s := mustOpen(t, sim, small())
	l := newLog(rand.New(rand.NewPCG(3, 3)), 0)
	for range 100 {
		mustApply(t, s, l.grow())
	}
	must(t, s.Flush())
	want := contents(t, sim)
	must(t, s.DropAll())
	if got := contents(t, sim.Crash(vfs.AllOld())); len(got) != 0 || s.Tally() != 0 || s.FlushedBelow() != -1 {
		t.Errorf("%d files, tally %d, %d", len(got), s.Tally(), s.FlushedBelow())
	}
	l.verify(t, s, l.phy, l.phy)
	mustApply(t, s, l.records...)
	must(t, s.Flush())
	sameContents(t, contents(t, sim), want)
}

// A failed sync takes the index back, and what is applied again is written again.
func TestFailedSync(t *testing.T) {
	for _, drop := range []bool{false, true} {
		for files := range 3 {
			sim := newSim(t)
			s := mustOpen(t, sim, small())
			l := newLog(rand.New(rand.NewPCG(uint64(files), 9)), 0)
			for range 30 {
				mustApply(t, s, l.grow())
			}
			must(t, s.Flush())
			safe, tally := len(l.records), s.Tally()
			for range 1 + files*20 {
				mustApply(t, s, l.grow())
			}
			sim.FailSync(dir+"/*", 1, syscall.EIO, drop)
			l.records = append(l.records, &record{topic: "T", keys: "k1", phy: l.phy, time: l.time})
			l.phy += 200
			mustApply(t, s, l.records[len(l.records)-1])
			if err := s.Flush(); !errors.Is(err, syscall.EIO) {
				t.Fatalf("flush: %v", err)
			}
			if s.Tally() != tally {
				t.Error("the tally moved")
			}
			mustApply(t, s, l.records[safe:]...)
			must(t, s.Flush())
			l.verify(t, s, 0, l.phy)
			sameContents(t, contents(t, sim.Crash(vfs.AllOld())), l.rebuild(t, small(), 0, l.phy))
		}
	}
}

// A full disk fails a flush or a commit, and all is well once there is room.
func TestDiskFull(t *testing.T) {
	sim := newSim(t)
	opts := small()
	opts.Slots, opts.Entries = 5000, 400
	s := mustOpen(t, sim, opts)
	l := newLog(rand.New(rand.NewPCG(1, 9)), 0)
	for range 100 {
		mustApply(t, s, l.grow())
	}
	must(t, s.Flush())
	safe := len(l.records)
	sim.SetCapacity(sim.Used())
	var failed error
	for range 2000 {
		r := l.grow()
		must(t, r.apply(t, s))
		if failed = s.Commit(); failed != nil {
			break
		}
	}
	if failed == nil {
		failed = s.Flush()
	}
	if !errors.Is(failed, syscall.ENOSPC) {
		t.Fatalf("%v", failed)
	}
	_ = s.Flush()
	sim.SetCapacity(0)
	mustApply(t, s, l.records[safe:]...)
	must(t, s.Flush())
	l.verify(t, s, 0, l.phy)
	sameContents(t, contents(t, sim), l.rebuild(t, opts, 0, l.phy))
}
