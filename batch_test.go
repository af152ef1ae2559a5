package stratalog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// inner is a record that stands for n messages.
func inner(topic string, n int, body []byte) *Message {
	return &Message{Topic: topic, Body: body, SysFlag: int32(codec.SysFlagInnerBatch),
		Properties: codec.AppendProperty(tags([]string{"even", "odd"}[n%2]), codec.PropertyInnerNumber, fmt.Sprint(n))}
}

// grouped is a record of the model.
type grouped struct {
	base, n, time int64
	start         Offset
	size          int
	body          string
}

// batchModel are the records of one batch queue.
type batchModel []grouped

// check asks for every number, with every cap, by tag, and for every time.
func (m batchModel) check(t *testing.T, s interface {
	reading
	OffsetByTime(context.Context, string, int32, time.Time, TimeBound) (int64, error)
}) {
	t.Helper()
	ctx := context.Background()
	end := int64(0)
	if len(m) > 0 {
		end = m[len(m)-1].base + m[len(m)-1].n
	}
	if first, to := s.QueueRange("b", 0); first != 0 || to != end {
		t.Fatalf("[%d,%d), want [0,%d)", first, to, end)
	}
	var out Records
	defer out.Release()
	for i, g := range m {
		for at := g.base; at < g.base+g.n; at++ {
			for _, count := range []int{1, 5, 12} {
				want, next := 0, int64(0)
				for k := i; k < len(m) && (k == i || int(m[k].base+m[k].n-g.base) <= count); k++ {
					want, next = want+1, m[k].base+m[k].n
				}
				err := s.Get(ctx, Request{Topic: "b", Offset: at, MaxCount: count}, &out)
				if err != nil || out.Status != contract.GetFound || out.Len() != want || out.Next != next || out.QueueOffset(0) != g.base ||
					string(out.At(0).Body()) != g.body {
					t.Fatalf("at %d, count %d: %v, %v, %d records, next %d; want %d, next %d", at, count, err, out.Status, out.Len(), out.Next, want, next)
				}
			}
			err := s.Get(ctx, Request{Topic: "b", Offset: at, MaxCount: 100, MaxBytes: g.size}, &out)
			if err != nil || out.Len() != 1 {
				t.Fatalf("at %d, %d bytes: %v, %d records", at, g.size, err, out.Len())
			}
		}
		lower, upper := g.base, g.base
		for _, o := range m {
			if o.time == g.time {
				lower, upper = min(lower, o.base), max(upper, o.base)
			}
		}
		for bound, want := range map[TimeBound]int64{LowerBound: lower, UpperBound: upper} {
			if got, err := s.OffsetByTime(ctx, "b", 0, time.UnixMilli(g.time), bound); err != nil || got != want {
				t.Fatalf("%v of record %d: %d, %v, want %d", bound, i, got, err, want)
			}
		}
	}
	for at, want := range map[int64]contract.GetStatus{end: contract.GetOffsetOverflowOne, end + 1: contract.GetOffsetOverflowBadly} {
		if err := s.Get(ctx, Request{Topic: "b", Offset: at}, &out); len(m) > 0 && (err != nil || out.Status != want || out.Next != end) {
			t.Fatalf("at %d: %v, %v", at, err, out.Status)
		}
	}
	odd := 0
	for _, g := range m {
		odd += int(g.n % 2)
	}
	got := 0
	for at := int64(0); at < end; at = out.Next {
		if err := s.Get(ctx, Request{Topic: "b", Offset: at, Tag: "odd"}, &out); err != nil || out.Next <= at {
			t.Fatalf("by tag at %d: %v, next %d", at, err, out.Next)
		}
		got += out.Len()
	}
	if got != odd {
		t.Fatalf("by tag: %d records, want %d", got, odd)
	}
}

// TestBatchQueues runs appends, cuts, closes and crashes.
func TestBatchQueues(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	for round := range rounds {
		rng := rand.New(rand.NewPCG(uint64(round), 9))
		sim := vfs.NewSim()
		opt := testOptions(sim, "/store")
		now := manual()
		opt.Clock, opt.NoRecordChecksum = now, round%2 == 0
		s := start(t, opt)
		var m batchModel
		for step := range 25 {
			switch {
			case rng.IntN(9) == 0 && len(m) > 0:
				cut := rng.IntN(len(m))
				if err := s.TruncateTo(context.Background(), m[cut].start); err != nil {
					t.Fatal(err)
				}
				m = m[:cut]
			case rng.IntN(9) == 0:
				closeClean(t, s)
				s = start(t, opt)
			case rng.IntN(9) == 0:
				sim = sim.Crash(vfs.Random(rng, 0.5))
				abandon(t, s)
				opt.FS = sim
				s = start(t, opt)
			case rng.IntN(3) == 0:
				now.Advance(time.Duration(rng.IntN(3)) * time.Millisecond)
				mustAppend(t, s, &Message{Topic: "plain", Body: body(step)}, Sync)
			default:
				n := 1 + rng.IntN(6)
				r := mustAppend(t, s, inner("b", n, body(step)), Sync)
				place, _ := r.Range()
				m = append(m, grouped{base: r.QueueOffset(), n: int64(n), time: r.StoreTime(), start: place.Start, size: int(place.Len()), body: string(body(step))})
				if k := len(m) - 1; k > 0 && m[k].base != m[k-1].base+m[k-1].n || k == 0 && m[0].base != 0 {
					t.Fatalf("numbers: %+v", m)
				}
			}
			waitVisible(t, s, s.Health().Watermarks.Confirmed)
			m.check(t, s)
		}
		closeClean(t, s)
		verifyClean(t, opt)
		r, err := OpenReader(context.Background(), opt, ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m.check(t, r)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if list, err := sim.ReadDir("/store/consumequeue/b"); err == nil {
			t.Fatalf("a batch topic has plain queues: %v", list)
		}
	}
}

// TestBatchRefused: what does not fit its topic, or itself, is refused, and no
// number is lost with it.
func TestBatchRefused(t *testing.T) {
	opt := testOptions(vfs.NewSim(), "/store")
	for range 2 {
		s := start(t, opt)
		_, at := s.QueueRange("b", 0)
		r := mustAppend(t, s, inner("b", 3, nil), Sync)
		mustAppend(t, s, &Message{Topic: "plain"}, Sync)
		wrong := func(n string, flag int32, topic string) *Message {
			return &Message{Topic: topic, SysFlag: flag, Properties: codec.AppendProperty(nil, codec.PropertyInnerNumber, n)}
		}
		for i, m := range []*Message{
			{Topic: "b"}, inner("plain", 3, nil), {Topic: "b", SysFlag: int32(codec.SysFlagInnerBatch)}, wrong("3", 0, "b"),
			wrong("0", int32(codec.SysFlagInnerBatch), "b"), wrong("32768", int32(codec.SysFlagInnerBatch), "b"), wrong("x", int32(codec.SysFlagInnerBatch), "b"),
			wrong("3", int32(codec.SysFlagInnerBatch|codec.SysFlagTransactionPrepared), "b"),
		} {
			if _, err := s.Append(context.Background(), m, Sync); !errors.Is(err, contract.ErrInvalid) {
				t.Errorf("message %d: %v", i, err)
			}
		}
		if _, err := s.AppendBatch(context.Background(), []Message{*inner("b", 2, nil)}, Sync, nil); !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("in a batch: %v", err)
		}
		forged := inner("b", 2, nil)
		forged.Properties = codec.AppendProperty(forged.Properties, codec.PropertyInnerBase, "99")
		last := mustAppend(t, s, forged, Sync)
		waitVisible(t, s, endOf(last))
		if r.QueueOffset() != at || last.QueueOffset() != at+3 {
			t.Errorf("numbers %d and %d, want %d and %d", r.QueueOffset(), last.QueueOffset(), at, at+3)
		}
		var out Records
		if err := s.Get(context.Background(), Request{Topic: "b", Offset: at + 4}, &out); err != nil || out.Len() != 1 || out.QueueOffset(0) != at+3 {
			t.Errorf("%v, %+v", err, out.Status)
		}
		out.Release()
		closeClean(t, s)
	}
	verifyClean(t, opt)
}

// A reader that finds files of a batch queue retired says so, and where to go on.
func TestBatchRetiredBesideReader(t *testing.T) {
	sim := vfs.NewSim()
	opt := testOptions(sim, "/store")
	opt.SegmentSize, opt.BatchQueueFileSize = 16<<10, 46*7
	s := start(t, opt)
	defer closeClean(t, s)
	for i := range 200 {
		mustAppend(t, s, inner("b", 1+i%4, body(i%7)), Sync)
	}
	waitVisible(t, s, s.Health().Watermarks.Durable)
	r, err := OpenReader(context.Background(), opt, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if retired, err := s.Retire(context.Background(), s.Health().Watermarks.Durable/2); err != nil || retired.QueueFiles == 0 {
		t.Fatalf("%+v, %v", retired, err)
	}
	first, _ := s.QueueRange("b", 0)
	var out Records
	defer out.Release()
	for asked := 0; ; asked++ {
		err := r.Get(context.Background(), Request{Topic: "b", Offset: out.Next}, &out)
		if err != nil || asked == 2 {
			t.Fatalf("%v, %v, next %d", out.Status, err, out.Next)
		}
		if out.Status == contract.GetFound {
			break
		}
		if out.Status != contract.GetMessageWasRemoving || out.Next > first || out.Next <= 0 {
			t.Fatalf("%v, next %d; the queue begins at %d", out.Status, out.Next, first)
		}
	}
}

// TestBatchDamagedNumber: whatever bit of a unit's number is flipped, verify names
// the file and the unit, and no other message is hidden from who reads on.
func TestBatchDamagedNumber(t *testing.T) {
	const units = 24
	sim := vfs.NewSim()
	opt := testOptions(sim, "/store")
	opt.BatchQueueFileSize = 46 * 7
	s := start(t, opt)
	var bodies []string
	for i := range units {
		mustAppend(t, s, inner("b", 1+i%5, body(i)), Sync)
		bodies = append(bodies, string(body(i)))
	}
	waitVisible(t, s, s.Health().Watermarks.Confirmed)
	closeClean(t, s)
	for i := range units {
		file, place := fmt.Sprintf("/store/batchconsumequeue/b/0/%020d", i/7*7*46), int64(i%7*46)
		whole := readFile(t, sim, file)
		for bit := range 64 {
			b := whole[int(place)+28+bit/8] ^ 1<<(bit%8)
			writeFile(t, sim, file, place+28+int64(bit/8), []byte{b}, false)
			at := fmt.Sprintf("unit %d, bit %d", i, bit)
			r, err := OpenReader(context.Background(), opt, ReaderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if bit != 7 { // A negative number is no unit: the queue ends, as if it had not been written.
				named := false
				_, err = r.Verify(context.Background(), func(f Finding) {
					named = named || f.Severity == Fault && f.File == file && f.Offset == place
				})
				if err != nil || !named {
					t.Errorf("%s: verify does not name it, %v", at, err)
				}
			}
			if i < units-1 && bit != 7 {
				first, _ := r.QueueRange("b", 0)
				all, met := skipping(t, r, Request{Topic: "b", Offset: first})
				var got []string
				for _, s := range all {
					got = append(got, s.body)
				}
				want := slices.Delete(slices.Clone(bodies), i, i+1)
				// A number that is off by little may be one of a neighbour: it is an error too.
				near := bit >= 56 && len(got) > len(want)-3 && len(met) > len(want)-len(got)
				if !slices.Equal(got, want) && !near || len(met) == 0 {
					t.Errorf("%s: %d records, want %d, and %d errors", at, len(got), len(want), len(met))
				}
				for _, c := range met {
					if c.File != file || c.Offset != place {
						t.Errorf("%s: the error names %s at %d", at, c.File, c.Offset)
					}
				}
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			writeFile(t, sim, file, 0, whole, false)
		}
	}
}
