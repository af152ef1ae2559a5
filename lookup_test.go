package stratalog

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/clock"
	"github.com/stratalog/stratalog/internal/vfs"
)

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
