package stratalog

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// TestCloseUnderARead closes the store while a read is on its way: that is what the
// read says, and not that something is damaged, or not there.
func TestCloseUnderARead(t *testing.T) {
	ctx := context.Background()
	var out Records
	var found Matches
	for _, c := range []struct {
		name, file string
		read       func(s *Store) error
	}{
		{"by offset", "/store/consumequeue/t/0/*", func(s *Store) error { return s.Get(ctx, Request{Topic: "t"}, &out) }},
		{"of a batch queue", "/store/batchconsumequeue/b/0/*", func(s *Store) error { return s.Get(ctx, Request{Topic: "b"}, &out) }},
		{"lower bound", "/store/consumequeue/t/0/*", func(s *Store) error {
			_, err := s.OffsetByTime(ctx, "t", 0, time.Now(), LowerBound)
			return err
		}},
		{"upper bound", "/store/consumequeue/t/0/*", func(s *Store) error { return s.GetByTime(ctx, Request{Topic: "t"}, time.Now(), UpperBound, &out) }},
		{"by key", "/store/index/*", func(s *Store) error { return s.QueryKey(ctx, Query{Topic: "t", Key: keyOf(0)}, &found) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			fault := vfs.NewFault(vfs.NewSim())
			opt := testOptions(fault, "/store")
			s := start(t, opt)
			for i := range 30 {
				mustAppend(t, s, &Message{Topic: "t", Body: body(i), Properties: keysOf(i)}, Memory)
				mustAppend(t, s, inner("b", 3, body(i)), Memory)
			}
			closeClean(t, s)
			s = start(t, opt)
			var closed error
			met := fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpRead, vfs.OpPopulate), Path: c.file, Hook: func(vfs.Op) { _, closed = s.Close(ctx) }})
			if err := c.read(s); !errors.Is(err, contract.ErrClosed) || out.Len() > 0 || found.Len() > 0 {
				t.Errorf("%v, %v, %d and %d records", err, out.Status, out.Len(), found.Len())
			}
			if met.Fired() != 1 || closed != nil {
				t.Errorf("closed %d times, %v", met.Fired(), closed)
			}
		})
	}
}
