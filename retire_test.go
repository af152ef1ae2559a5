package stratalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// TestRetire removes the past bit by bit while a record of it is held, and checks
// what is left against what was appended, also after closing, a kill and a power
// cut.
func TestRetire(t *testing.T) {
	ctx, sim := context.Background(), vfs.NewSim()
	opt := Options{Dir: "/store", FS: sim, SegmentSize: 8 << 10, QueueFileSize: 400, DiskFloor: -1}
	s := start(t, opt)
	const records = 400
	var starts []Offset
	for i := range records {
		r := mustAppend(t, s, &Message{Topic: "t", Body: fmt.Appendf(nil, "body %d", i)}, Sync)
		place, _ := r.Range()
		starts = append(starts, place.Start)
	}
	if err := s.WaitVisible(ctx, s.Health().Watermarks.Appended); err != nil {
		t.Fatal(err)
	}
	var held Record
	if ok, err := s.GetAt(ctx, starts[0], &held); err != nil || !ok {
		t.Fatal(ok, err)
	}
	min := Offset(0)
	for _, upTo := range []int{0, 50, 50, 200, records} {
		off := s.Health().Watermarks.Appended
		if upTo < records {
			off = starts[upTo]
		}
		r, err := s.Retire(ctx, off)
		if err != nil {
			t.Fatal(err)
		}
		if r.MinOffset < min || r.MinOffset > off || r.MinOffset != s.Health().MinOffset {
			t.Errorf("up to %d: %+v, before %d", off, r, min)
		}
		min = r.MinOffset
		checkFrom(t, s, starts, min)
	}
	if min == 0 || min%8192 != 0 || min < starts[100] {
		t.Errorf("the log begins at %d", min)
	}
	if !bytes.Equal(held.Body(), []byte("body 0")) {
		t.Errorf("a record that is held reads %q", held.Body())
	}
	held.Release()
	closeClean(t, s)
	for _, image := range []*vfs.Sim{sim, sim.Kill(), sim.Crash(vfs.AllOld())} {
		opt.FS = image
		s := start(t, opt)
		checkFrom(t, s, starts, min)
		closeClean(t, s)
	}
	if _, err := s.Retire(ctx, 0); !errors.Is(err, contract.ErrClosed) {
		t.Errorf("after closing: %v", err)
	}
}

// checkFrom checks that exactly the records at and behind min are found.
func checkFrom(t *testing.T, s *Store, starts []Offset, min Offset) {
	t.Helper()
	var out Records
	defer out.Release()
	next := int64(0)
	for steps := 0; ; steps++ {
		if err := s.Get(context.Background(), Request{Topic: "t", Offset: next, MaxCount: 32}, &out); err != nil {
			t.Fatal(err)
		}
		if out.Status == contract.GetOffsetOverflowOne {
			break
		}
		if out.Status == contract.GetOffsetTooSmall {
			if steps > 0 || starts[out.Next] < min || out.Next > 0 && starts[out.Next-1] >= min {
				t.Fatalf("at %d: next is %d, at %d, and the log begins at %d", next, out.Next, starts[out.Next], min)
			}
		}
		for i := range out.Len() {
			if want := fmt.Sprintf("body %d", next+int64(i)); string(out.At(i).Body()) != want {
				t.Fatalf("at %d: %q", next+int64(i), out.At(i).Body())
			}
		}
		next = out.Next
	}
	if next != int64(len(starts)) {
		t.Errorf("read up to %d of %d", next, len(starts))
	}
}
