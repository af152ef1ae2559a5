package stratalog

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// TestReaderBesideRetire reads, looks up and verifies through Readers while the
// owner removes the front of log and queues: what is gone is no damage.
func TestReaderBesideRetire(t *testing.T) {
	ctx, sim := context.Background(), vfs.NewSim()
	opt := Options{Dir: "/store", FS: sim, SegmentSize: 8 << 10, QueueFileSize: 400, BatchQueueFileSize: 460, DiskFloor: -1}
	s := start(t, opt)
	const records = 400
	var starts []Offset
	for i := range records {
		r := mustAppend(t, s, &Message{Topic: "t", Body: fmt.Appendf(nil, "body %d", i), Properties: keysOf(i)}, Memory)
		place, _ := r.Range()
		starts = append(starts, place.Start)
		mustAppend(t, s, inner("b", 3, body(i)), Sync)
	}
	waitVisible(t, s, s.Health().Watermarks.Appended)
	waitIndexed(t, s)
	if err := s.dispatcher.Persist(); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(ctx, opt, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, topic := range []string{"t", "b"} {
		all.Go(func() {
			var out Records
			defer out.Release()
			_, end := r.QueueRange(topic, 0)
			for at := int64(0); at < end; {
				err := r.Get(ctx, Request{Topic: topic, Offset: at, MaxCount: 5}, &out)
				if err != nil || out.Next < at {
					t.Errorf("%s at %d: %v, next %d", topic, at, err, out.Next)
					return
				}
				at = out.Next
			}
		})
		all.Go(func() {
			for i := range 50 {
				for bound := LowerBound; bound <= UpperBound; bound++ {
					if _, err := r.OffsetByTime(ctx, topic, 0, time.Now().Add(time.Duration(i-25)*time.Hour), bound); err != nil {
						t.Errorf("%s by time: %v", topic, err)
					}
				}
			}
		})
	}
	all.Go(func() {
		if _, err := r.Verify(ctx, func(f Finding) {
			if f.Severity == Fault {
				t.Errorf("%+v", f)
			}
		}); err != nil {
			t.Error(err)
		}
	})
	all.Go(func() {
		for range 30 {
			r, err := OpenReader(ctx, opt, ReaderOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err = r.Verify(ctx, func(f Finding) {
				if f.Severity == Fault {
					t.Errorf("opened anew: %+v", f)
				}
			}); err != nil {
				t.Error(err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	for i := 10; i < records; i += 10 {
		if _, err := s.Retire(ctx, starts[i]); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
	// The front is gone now, and the reader, which was not refreshed, says so.
	var out Records
	for _, topic := range []string{"t", "b"} {
		err := r.Get(ctx, Request{Topic: topic}, &out)
		if err == nil && out.Status == contract.GetNoMatchedMessage {
			err = r.Get(ctx, Request{Topic: topic}, &out)
		}
		if err != nil || out.Len() == 0 && out.Status != contract.GetOffsetTooSmall && out.Status != contract.GetMessageWasRemoving {
			t.Errorf("%s: %v, %v", topic, err, out.Status)
		}
		out.Release()
	}
	if err := r.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{"t", "b"} {
		first, _ := s.QueueRange(topic, 0)
		if err := r.Get(ctx, Request{Topic: topic}, &out); err != nil || out.Status != contract.GetOffsetTooSmall || out.Next != first {
			t.Errorf("%s, refreshed: %v, %v, next %d, want %d", topic, err, out.Status, out.Next, first)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	closeClean(t, s)
}

// TestReaderMissesAFile: a file that is missing behind one that is there is damage
// also for a Reader.
func TestReaderMissesAFile(t *testing.T) {
	ctx, sim := context.Background(), vfs.NewSim()
	opt := testOptions(sim, "/store")
	opt.QueueFileSize = 400
	s := start(t, opt)
	for i := range 100 {
		mustAppend(t, s, &Message{Topic: "t", Body: body(i)}, Memory)
	}
	closeClean(t, s)
	r, err := OpenReader(ctx, opt, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	file, _ := r.queues.Place("t", 0, 40)
	if err := sim.Remove(file); err != nil {
		t.Fatal(err)
	}
	var out Records
	if err := r.Get(ctx, Request{Topic: "t", Offset: 40}, &out); err == nil {
		t.Errorf("%v, %d records", out.Status, out.Len())
	}
	out.Release()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}
