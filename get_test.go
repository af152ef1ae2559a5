package stratalog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/commitlog"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// jump makes the queue offsets of a topic go on at next, as a log has it in
// which another program left numbers out.
type jump struct {
	topic string
	next  int64
}

func (j jump) QueueOffsets(_ *commitlog.Log, _ contract.Offset, set func(string, int32, int64)) error {
	set(j.topic, 0, j.next)
	return nil
}

// TestGetStatuses reaches all ten, each with its next offset.
func TestGetStatuses(t *testing.T) {
	opt := testOptions(vfs.NewSim(), "/store")
	opt.SegmentSize = 16 << 10
	s := start(t, opt)
	defer closeClean(t, s)
	ctx := context.Background()
	reached := map[contract.GetStatus]bool{}
	var out Records
	defer out.Release()
	get := func(req Request, status contract.GetStatus, next int64) {
		t.Helper()
		if err := s.Get(ctx, req, &out); err != nil {
			t.Fatalf("%+v: %v", req, err)
		}
		if out.Status != status || out.Next != next || (status == contract.GetFound) != (out.Len() > 0) {
			t.Fatalf("%+v: %v, next %d, %d records; want %v, next %d", req, out.Status, out.Next, out.Len(), status, next)
		}
		reached[status] = true
	}
	var places []Offset
	put := func(topic string, n int) {
		t.Helper()
		var last Receipt
		for range n {
			last = mustAppend(t, s, &Message{Topic: topic, Body: body(len(places)), Properties: tags("Aa")}, Sync)
			place, _ := last.Range()
			places = append(places, place.Start)
		}
		waitVisible(t, s, endOf(last))
	}

	get(Request{Topic: "t"}, contract.GetNoMatchedLogicQueue, 0)
	get(Request{Topic: "t", Offset: 7}, contract.GetNoMatchedLogicQueue, 0)
	put("t", 100)
	get(Request{Topic: "t", QueueID: 1}, contract.GetNoMatchedLogicQueue, 0)
	get(Request{Topic: "t", MaxCount: 10}, contract.GetFound, 10)
	get(Request{Topic: "t"}, contract.GetFound, DefaultMaxCount)
	get(Request{Topic: "t", MaxCount: 1 << 20}, contract.GetFound, 100)
	get(Request{Topic: "t", Offset: 98}, contract.GetFound, 100)
	get(Request{Topic: "t", MaxBytes: 1}, contract.GetFound, 1)
	get(Request{Topic: "t", Offset: 100}, contract.GetOffsetOverflowOne, 100)
	get(Request{Topic: "t", Offset: 101}, contract.GetOffsetOverflowBadly, 100)
	get(Request{Topic: "t", Offset: 1 << 60}, contract.GetOffsetOverflowBadly, 100)
	get(Request{Topic: "t", Offset: 10, MaxCount: 20, Tag: "no"}, contract.GetNoMatchedMessage, 30)
	get(Request{Topic: "t", Offset: 10, MaxCount: 20, Tag: "BB"}, contract.GetNoMatchedMessage, 30) // the same hash
	get(Request{Topic: "t", Offset: 10, MaxCount: 20, Tag: "Aa"}, contract.GetFound, 30)

	// Retention takes the first segment; the queue learns of it by the read.
	first, err := s.log.Retire(Offset(opt.SegmentSize))
	if err != nil || first != Offset(opt.SegmentSize) {
		t.Fatalf("retired up to %d: %v", first, err)
	}
	live := int64(slices.IndexFunc(places, func(p Offset) bool { return p >= first }))
	get(Request{Topic: "t", Offset: 3}, contract.GetMessageWasRemoving, live)
	get(Request{Topic: "t", Offset: 3}, contract.GetOffsetTooSmall, live)
	get(Request{Topic: "t", Offset: live}, contract.GetFound, min(100, live+DefaultMaxCount))
	if out.Min != live || out.Max != 100 {
		t.Errorf("the queue is [%d,%d)", out.Min, out.Max)
	}

	// A cut resets those who come from before.
	old := out.Epoch
	if err := s.TruncateTo(ctx, places[90]); err != nil {
		t.Fatal(err)
	}
	places = places[:90]
	put("t", 3)
	get(Request{Topic: "t", Offset: 95, Epoch: old}, contract.GetOffsetReset, 90)
	get(Request{Topic: "t", Offset: 92, Epoch: old}, contract.GetOffsetReset, 90)
	get(Request{Topic: "t", Offset: 90, Epoch: old}, contract.GetFound, 93)
	get(Request{Topic: "t", Offset: 92, Epoch: out.Epoch}, contract.GetFound, 93)
	get(Request{Topic: "t", Offset: 92}, contract.GetFound, 93)

	// Numbers that another program left out.
	if err := s.log.LoadQueueOffsets(jump{"gap", 5}); err != nil {
		t.Fatal(err)
	}
	put("gap", 2)
	if err := s.log.LoadQueueOffsets(jump{"gap", 10}); err != nil {
		t.Fatal(err)
	}
	put("gap", 2)
	get(Request{Topic: "gap", Offset: 5}, contract.GetFound, 7)
	get(Request{Topic: "gap", Offset: 7}, contract.GetOffsetFoundNull, 10)
	get(Request{Topic: "gap", Offset: 9}, contract.GetOffsetFoundNull, 10)
	get(Request{Topic: "gap", Offset: 7, MaxCount: 2}, contract.GetOffsetFoundNull, 9)
	get(Request{Topic: "gap", Offset: 10}, contract.GetFound, 12)

	// Everything of a queue is retired: it is empty, and its numbers go on.
	put("fill", 150)
	if _, err := s.log.Retire(places[len(places)-1]); err != nil {
		t.Fatal(err)
	}
	get(Request{Topic: "gap", Offset: 10}, contract.GetMessageWasRemoving, 12)
	get(Request{Topic: "gap", Offset: 10}, contract.GetNoMessageInQueue, 12)
	put("gap", 1)
	get(Request{Topic: "gap", Offset: 12}, contract.GetFound, 13)

	for _, status := range contract.GetStatuses() {
		if !reached[status] {
			t.Errorf("%v was not reached", status)
		}
	}
}

func TestGetInvalid(t *testing.T) {
	s := start(t, testOptions(vfs.NewSim(), "/store"))
	defer closeClean(t, s)
	var out Records
	for _, req := range []Request{{Topic: "t", Offset: -1}, {Topic: "t", MaxCount: -1}, {Topic: "t", MaxBytes: -1}} {
		if err := s.Get(context.Background(), req, &out); !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("%+v: %v", req, err)
		}
	}
	if err := s.Get(ended(), Request{Topic: "t"}, &out); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// model is what a store must answer, as a list.
type model struct {
	all []modelRecord // every record of one queue, by number
}

type modelRecord struct {
	body, tag string
	start     Offset
}

// TestGetModel holds random reads against a list, over appends, retention and
// cuts: a loop that only follows Next ends and sees every live record once.
func TestGetModel(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	loops := 0
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 7))
		opt := testOptions(vfs.NewSim(), "/store")
		opt.SegmentSize, opt.QueueFileSize, opt.MaxMessageSize = 8<<10, 200, 2<<10
		s := start(t, opt)
		queues := [2]model{}
		names := []string{"Aa", "BB", "C", ""} // the first two have one hash
		for range 60 {
			switch rng.IntN(10) {
			case 0: // retention
				if _, err := s.log.Retire(s.log.MinOffset() + Offset(rng.IntN(3)*int(opt.SegmentSize))); err != nil {
					t.Fatal(err)
				}
				if rng.IntN(2) == 0 {
					if err := s.queues.CorrectMin(s.log.MinOffset()); err != nil {
						t.Fatal(err)
					}
					if _, err := s.queues.DeleteExpired(s.log.MinOffset()); err != nil {
						t.Fatal(err)
					}
				}
			case 1: // a cut
				q := &queues[rng.IntN(2)]
				if n := len(q.all); n > 0 && q.all[n-1].start >= s.log.MinOffset() {
					at := q.all[max(0, n-1-rng.IntN(4))].start
					if at < s.log.MinOffset() {
						at = q.all[n-1].start
					}
					if err := s.TruncateTo(context.Background(), at); err != nil {
						t.Fatal(err)
					}
					for i := range queues {
						queues[i].all = slices.DeleteFunc(queues[i].all, func(r modelRecord) bool { return r.start >= at })
					}
				}
			default:
				id := rng.IntN(2)
				q := &queues[id]
				var r Receipt
				for range 1 + rng.IntN(5) {
					m := modelRecord{body: fmt.Sprintf("%d-%0*d", len(q.all), rng.IntN(900), 0), tag: names[rng.IntN(4)]}
					msg := Message{Topic: "t", QueueID: int32(id), Body: []byte(m.body)}
					if m.tag != "" {
						msg.Properties = tags(m.tag)
					}
					r = mustAppend(t, s, &msg, Sync)
					if r.QueueOffset() != int64(len(q.all)) {
						t.Fatalf("seed %d: queue offset %d, want %d", seed, r.QueueOffset(), len(q.all))
					}
					place, _ := r.Range()
					m.start = place.Start
					q.all = append(q.all, m)
				}
				waitVisible(t, s, endOf(r))
			}
			id := rng.IntN(2)
			req := Request{Topic: "t", QueueID: int32(id), MaxCount: rng.IntN(6), MaxBytes: rng.IntN(3) * 400, Tag: names[rng.IntN(4)]}
			got, out, err := follow(s, req)
			if err != nil {
				t.Fatalf("seed %d, %+v: %v", seed, req, err)
			}
			want := queues[id].live(s.log.MinOffset(), req.Tag)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, %+v: %d records, want %d (%v)\n%v\n%v", seed, req, len(got), len(want), out.Status, got, want)
			}
			loops++
		}
		want := mustAnswers(t, s)
		closeClean(t, s)
		if err := sameAnswers(opt.FS.(*vfs.Sim), opt, want, "after a close"); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	t.Logf("%d loops", loops)
}

func (m *model) live(first Offset, tag string) []seen {
	var out []seen
	for i, r := range m.all {
		if r.start >= first && (tag == "" || tag == r.tag) {
			out = append(out, seen{int64(i), int64(r.start), r.body})
		}
	}
	return out
}

// A reader with an epoch of before a cut is never given a record that stands
// where another one stood.
func TestGetResetOverCuts(t *testing.T) {
	opt := testOptions(vfs.NewSim(), "/store")
	s := start(t, opt)
	defer closeClean(t, s)
	ctx := context.Background()
	var starts []Offset
	put := func(n int, gen string) {
		var r Receipt
		for range n {
			r = mustAppend(t, s, &Message{Topic: "t", Body: fmt.Appendf(nil, "%s-%d", gen, len(starts))}, Sync)
			place, _ := r.Range()
			starts = append(starts, place.Start)
		}
		waitVisible(t, s, endOf(r))
	}
	put(20, "a")
	epochs := []contract.Epoch{s.Health().Epoch}
	for i, cut := range []int{15, 10, 12} {
		if err := s.TruncateTo(ctx, starts[cut]); err != nil {
			t.Fatal(err)
		}
		starts = starts[:cut]
		put(10, string(rune('b'+i)))
		epochs = append(epochs, s.Health().Epoch)
	}
	// The lowest cut since the epoch decides.
	lowest := []int64{10, 10, 12, -1}
	var out Records
	defer out.Release()
	for i, epoch := range epochs {
		for off := range int64(22) {
			if err := s.Get(ctx, Request{Topic: "t", Offset: off, Epoch: epoch}, &out); err != nil {
				t.Fatal(err)
			}
			want, next := contract.GetFound, int64(22)
			if lowest[i] >= 0 && off > lowest[i] {
				want, next = contract.GetOffsetReset, lowest[i]
			}
			if out.Status != want || out.Next != next {
				t.Errorf("epoch %d at %d: %v, next %d; want %v, %d", epoch, off, out.Status, out.Next, want, next)
			}
		}
	}
}

func TestGetAt(t *testing.T) {
	s := start(t, testOptions(vfs.NewSim(), "/store"))
	defer closeClean(t, s)
	r := mustAppend(t, s, &Message{Topic: "t", Body: []byte("hello"), Properties: tags("x")}, Sync)
	place, _ := r.Range()
	var rec Record
	defer rec.Release()
	if found, err := s.GetAt(context.Background(), place.Start, &rec); err != nil || !found || string(rec.Body()) != "hello" ||
		codec.TagsCode(rec.Properties()) != codec.TagsCode(tags("x")) {
		t.Errorf("%v, %v", found, err)
	}
	for _, off := range []Offset{-1, place.Start + 1, place.Start + 8, place.End - 1, place.End, 1 << 40} {
		if found, err := s.GetAt(context.Background(), off, &rec); err != nil || found {
			t.Errorf("at %d: %v, %v", off, found, err)
		}
	}
}

// Reading again and again into the same Records allocates nothing.
func TestGetAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("pools forget under the race detector")
	}
	s := start(t, testOptions(vfs.OS(), t.TempDir()))
	defer closeClean(t, s)
	var last Receipt
	for i := range 64 {
		last = mustAppend(t, s, &Message{Topic: "t", Body: body(i), Properties: tags("x")}, Memory)
	}
	waitVisible(t, s, endOf(last))
	ctx := context.Background()
	var out Records
	defer out.Release()
	for _, req := range []Request{{Topic: "t"}, {Topic: "t", Offset: 20, MaxCount: 16, Tag: "x"}, {Topic: "t", Offset: 64}, {Topic: "none"}} {
		allocs := testing.AllocsPerRun(500, func() {
			if err := s.Get(ctx, req, &out); err != nil {
				t.Fatal(err)
			}
		})
		if allocs != 0 {
			t.Errorf("%+v: %v allocations", req, allocs)
		}
	}
	var rec Record
	defer rec.Release()
	if allocs := testing.AllocsPerRun(500, func() {
		if found, err := s.GetAt(ctx, 0, &rec); err != nil || !found {
			t.Fatal(found, err)
		}
	}); allocs != 0 {
		t.Errorf("GetAt: %v allocations", allocs)
	}
}

// What is under a lease stays valid while its segment is retired, and while the
// store is closed.
func TestGetLeases(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"os": vfs.OS(), "sim": vfs.NewSim()} {
		t.Run(name, func(t *testing.T) {
			opt := testOptions(fs, t.TempDir()+"/store")
			opt.SegmentSize = 16 << 10
			s := start(t, opt)
			var last Receipt
			for i := range 100 {
				last = mustAppend(t, s, &Message{Topic: "t", Body: body(i)}, Sync)
			}
			waitVisible(t, s, endOf(last))
			var out Records
			if err := s.Get(context.Background(), Request{Topic: "t", MaxCount: 20}, &out); err != nil || out.Len() != 20 {
				t.Fatalf("%d records, %v", out.Len(), err)
			}
			held := make([][]byte, 20)
			for i := range held {
				held[i] = out.At(i).Body()
			}
			same := func(when string) {
				t.Helper()
				for i, b := range held {
					if string(b) != string(body(i)) {
						t.Fatalf("%s: the bytes of record %d changed", when, i)
					}
				}
			}
			if first, err := s.log.Retire(1 << 40); err != nil || first == 0 {
				t.Fatal(first, err)
			}
			if _, err := fs.Stat(segment(opt, 0)); err == nil {
				t.Error("the name of a retired segment is still there")
			}
			same("retired")
			for i := range 60 {
				mustAppend(t, s, &Message{Topic: "t", Body: body(i)}, Sync)
			}
			same("written on")
			closeClean(t, s)
			same("closed")
			out.Release()
			if out.Len() != 0 {
				t.Error("released, and still there")
			}
			out.Release()
		})
	}
}
