package stratalog

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/clock"
	"github.com/stratalog/stratalog/internal/vfs"
)

// followed is what a Follow gave.
type followed struct {
	status contract.GetStatus
	next   int64
	bodies []string
	err    error
}

// following starts a Follow and returns where its answer comes.
func following(ctx context.Context, s *Store, req Request) chan followed {
	c := make(chan followed, 1)
	go func() {
		var out Records
		defer out.Release()
		err := s.Follow(ctx, req, &out)
		f := followed{status: out.Status, next: out.Next, err: err}
		for i := range out.Len() {
			f.bodies = append(f.bodies, string(out.At(i).Body()))
		}
		c <- f
	}()
	return c
}

func answer(t *testing.T, c chan followed) followed {
	t.Helper()
	select {
	case f := <-c:
		return f
	case <-within(t).Done():
		t.Fatal("Follow never came back")
		return followed{}
	}
}

// TestFollow: it waits at the end of a queue, and for a queue that is not there
// yet, passes over other tags, and tells of a cut and of the store's end.
func TestFollow(t *testing.T) {
	opt := testOptions(vfs.NewSim(), "/store")
	s := start(t, opt)
	ctx := within(t)
	put := func(topic string, i int, tag string) Receipt {
		return mustAppend(t, s, &Message{Topic: topic, Body: body(i), Properties: tags(tag)}, Sync)
	}
	c := following(ctx, s, Request{Topic: "t"})
	put("other", 0, "x")
	put("t", 1, "x")
	if f := answer(t, c); f.err != nil || f.status != contract.GetFound || len(f.bodies) != 1 || f.bodies[0] != string(body(1)) || f.next != 1 {
		t.Fatalf("%+v", f)
	}
	c = following(ctx, s, Request{Topic: "t", Offset: 1, Tag: "y"})
	for i := range 70 {
		put("t", 2+i, "x")
	}
	last := put("t", 100, "y")
	if f := answer(t, c); f.err != nil || len(f.bodies) != 1 || f.bodies[0] != string(body(100)) || f.next != 72 {
		t.Fatalf("%+v", f)
	}
	if f := answer(t, following(ctx, s, Request{Topic: "t", Offset: 99})); f.status != contract.GetOffsetOverflowBadly || f.next != 72 {
		t.Fatalf("%+v", f)
	}
	short, cancel := context.WithCancel(ctx)
	c = following(short, s, Request{Topic: "t", Offset: 72})
	cancel()
	if f := answer(t, c); !errors.Is(f.err, context.Canceled) || f.next != 72 {
		t.Fatalf("%+v", f)
	}
	c = following(ctx, s, Request{Topic: "t", Offset: 72})
	until(t, "somebody waits", func() bool { return s.dispatcher.Waiting() > 0 }, nil)
	place, _ := last.Range()
	if err := s.TruncateTo(ctx, place.Start); err != nil {
		t.Fatal(err)
	}
	if f := answer(t, c); f.err != nil || f.status != contract.GetOffsetReset || f.next != 71 {
		t.Fatalf("%+v", f)
	}
	c = following(ctx, s, Request{Topic: "t", Offset: 71})
	until(t, "somebody waits", func() bool { return s.dispatcher.Waiting() > 0 }, nil)
	closeClean(t, s)
	if f := answer(t, c); !errors.Is(f.err, contract.ErrClosed) || !strings.HasPrefix(f.err.Error(), "store: read: ") {
		t.Fatalf("%+v", f)
	}
}

// TestLookups: by time and by id, through a Store and a Reader.
func TestLookups(t *testing.T) {
	opt := testOptions(vfs.NewSim(), "/store")
	now := clock.NewManual(time.UnixMilli(1_700_000_000_000))
	opt.Clock = now
	s := start(t, opt)
	var receipts []Receipt
	for i := range 30 {
		receipts = append(receipts, mustAppend(t, s, &Message{Topic: "t", Body: body(i)}, Sync))
		if i%3 == 2 {
			now.Advance(10 * time.Millisecond)
		}
	}
	waitVisible(t, s, endOf(receipts[29]))
	ctx := context.Background()
	var out Records
	defer out.Release()
	for i, r := range receipts {
		at := time.UnixMilli(r.StoreTime())
		if err := s.GetByTime(ctx, Request{Topic: "t", MaxCount: 1}, at, LowerBound, &out); err != nil || out.QueueOffset(0) != int64(i/3*3) {
			t.Fatalf("record %d: %v, %+v", i, err, out.Status)
		}
		if off, err := s.OffsetByTime(ctx, "t", 0, at, UpperBound); err != nil || off != int64(i/3*3+2) {
			t.Fatalf("record %d: upper %d, %v", i, off, err)
		}
		place, _ := r.Range()
		var rec Record
		if _, err := s.GetAt(ctx, place.Start, &rec); err != nil {
			t.Fatal(err)
		}
		id := codec.MessageID(rec.StoreHost(), int64(place.Start))
		if found, err := s.GetByID(ctx, id, &rec); err != nil || !found || rec.QueueOffset() != int64(i) {
			t.Fatalf("%s: %v, %v", id, found, err)
		}
		rec.Release()
	}
	var rec Record
	for _, id := range []string{"", "0A00000200002A9F00000000000010", "0A00000200002A9F000000000000100G", "0A00000200002A9FF000000000001000"} {
		if _, err := s.GetByID(ctx, id, &rec); !errors.Is(err, contract.ErrInvalid) || rec.Held() {
			t.Errorf("%q: %v", id, err)
		}
	}
	if off, err := s.OffsetByTime(ctx, "none", 0, now.Now(), UpperBound); off != 0 || err != nil {
		t.Errorf("%d, %v", off, err)
	}
	if _, err := s.OffsetByTime(ctx, "t", 0, now.Now(), 2); !errors.Is(err, contract.ErrInvalid) {
		t.Errorf("%v", err)
	}
	if _, err := s.OffsetByTime(ended(), "t", 0, now.Now(), LowerBound); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	closeClean(t, s)
	r, err := OpenReader(ctx, opt, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if off, err := r.OffsetByTime(ctx, "t", 0, time.UnixMilli(receipts[20].StoreTime()), LowerBound); off != 18 || err != nil {
		t.Errorf("%d, %v", off, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.OffsetByTime(ctx, "t", 0, now.Now(), LowerBound); !errors.Is(err, contract.ErrClosed) {
		t.Errorf("%v", err)
	}
}
