package dispatch

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

const (
	queueLane = contract.LaneQueue
	indexLane = contract.LaneIndex
)

var errTest = errors.New("test")

func TestCatchUpAppliesAllAcrossSegments(t *testing.T) {
	r := newRig(t)
	r.log.put(t, 200, true)
	s := newFakeSink(queueLane)
	if got := r.add(s, LaneOptions{Required: true}); got.Reason != StartMissing || got.Start.Epoch != 1 {
		t.Fatalf("%+v", got)
	}
	reports := r.catchUp()
	if got := reports[0]; got.Records != 200 || got.To != r.log.Confirmed() || got.From != 0 {
		t.Fatalf("%+v", got)
	}
	s.holds(t, r.log, 0, r.log.Confirmed())
	if r.d.Frontier() != r.log.Confirmed() {
		t.Fatalf("frontier %d", r.d.Frontier())
	}
	if again := r.catchUp()[0]; again.Records != 0 {
		t.Fatalf("%+v", again)
	}
}

func TestSteadyFeedAndFrontier(t *testing.T) {
	r := newRig(t)
	q, x := newFakeSink(queueLane), newFakeSink(indexLane)
	r.add(q, LaneOptions{Required: true})
	r.add(x, LaneOptions{})
	r.start()
	for range 30 {
		r.log.put(t, 7, true)
		if err := r.d.WaitFrontier(within(t), r.log.Confirmed()); err != nil {
			t.Fatal(err)
		}
		q.holds(t, r.log, 0, r.log.Confirmed())
	}
	if err := r.d.Pause(queueLane); err != nil {
		t.Fatal(err)
	}
	at := r.d.Frontier()
	r.log.put(t, 10, true)
	r.until("index lane goes on", func() bool {
		return r.status(indexLane).Applied.Next == r.log.Confirmed()
	})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.d.WaitFrontier(ctx, r.log.Confirmed()); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	if st := r.status(queueLane); r.d.Frontier() != at || st.State != LanePaused || st.LagBytes == 0 {
		t.Fatalf("frontier %d, %+v", r.d.Frontier(), st)
	}
	if err := r.d.Resume(queueLane); err != nil {
		t.Fatal(err)
	}
	if err := r.d.WaitFrontier(within(t), r.log.Confirmed()); err != nil {
		t.Fatal(err)
	}
	report, err := r.d.Close(within(t))
	if err != nil || len(report.Behind()) != 0 {
		t.Fatalf("%+v %v", report, err)
	}
	if c := r.cursors.get(indexLane); c.Next != r.log.Confirmed() {
		t.Fatalf("saved %+v", c)
	}
}

// patch returns a copy of a record whose physical offset is moved by delta.
func patch(b []byte, delta int) []byte {
	c := append([]byte(nil), b...)
	var v codec.MessageView
	if v.Parse(c) != nil {
		return c
	}
	codec.PatchMessagePhysicalOffset(c, v.PhysicalOffset()+int64(delta))
	return c
}

// TestFrontierIsTheMinimum: of two lanes that are required the one that is behind
// decides, whichever it is; one that is not required never does.
func TestFrontierIsTheMinimum(t *testing.T) {
	r := newRig(t)
	const otherLane = contract.LaneTiered
	r.add(newFakeSink(queueLane), LaneOptions{Required: true})
	r.add(newFakeSink(indexLane), LaneOptions{})
	r.add(newFakeSink(otherLane), LaneOptions{Required: true})
	r.start()
	all := []contract.Lane{queueLane, indexLane, otherLane}
	for _, held := range all {
		before := r.log.Confirmed()
		if err := r.d.WaitFrontier(within(t), before); err != nil {
			t.Fatal(err)
		}
		if err := r.d.Pause(held); err != nil {
			t.Fatal(err)
		}
		r.log.put(t, 10, true)
		end := r.log.Confirmed()
		want := before
		if held == indexLane {
			want = end
		}
		for _, lane := range all {
			if lane != held {
				r.until("the others go on", func() bool { return r.status(lane).Applied.Next == end })
			}
		}
		if got := r.d.Frontier(); got != want {
			t.Errorf("lane %v is held at %d, the log ends at %d: the frontier is %d", held, before, end, got)
		}
		if err := r.d.Resume(held); err != nil {
			t.Fatal(err)
		}
		r.until("it follows", func() bool { return r.status(held).Applied.Next == end })
	}
	if _, err := r.d.Close(within(t)); err != nil {
		t.Fatal(err)
	}
}

func TestWrongRecordsFailTheLane(t *testing.T) {
	tests := []struct {
		name string
		edit func(b []byte) []byte
		want error
	}{
		{"gap", func(b []byte) []byte { return patch(b, 8) }, contract.ErrCursorGap},
		{"overlap", func(b []byte) []byte { return patch(b, -8) }, contract.ErrCursorOverlap},
		{"far below", func(b []byte) []byte { return patch(b, -200) }, ErrMisplaced},
		{"part", func(b []byte) []byte { return b[:5] }, ErrPartRecord},
		{"cut short", func(b []byte) []byte { return b[:60] }, nil},
		{"no record", func(b []byte) []byte { return make([]byte, 100) }, nil},
		{"bytes behind the mark", func([]byte) []byte {
			b := make([]byte, 20)
			m := codec.Blank{Size: 100}
			if _, err := m.Encode(b); err != nil {
				panic(err)
			}
			return b
		}, ErrBlank},
		{"mark without size", func([]byte) []byte {
			return []byte{0, 0, 0, 0, 0xCB, 0xD4, 0x31, 0x94}
		}, nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			s := newFakeSink(queueLane)
			r.add(s, LaneOptions{Required: true})
			r.log.put(t, 5, true)
			r.catchUp()
			at := r.log.Confirmed()
			r.log.put(t, 3, true)
			r.log.onRead = func(_ contract.Offset, b []byte) ([]byte, error) { return tc.edit(b), nil }
			_, err := r.d.CatchUp(context.Background())
			var lane *LaneError
			if !errors.As(err, &lane) || (tc.want != nil && !errors.Is(err, tc.want)) {
				t.Fatalf("%v", err)
			}
			st := r.status(queueLane)
			if st.Applied.Next != at || st.Failures != 1 || st.Err == nil {
				t.Fatalf("%+v", st)
			}
			r.log.onRead = nil
			r.catchUp()
			s.holds(t, r.log, 0, r.log.Confirmed())
		})
	}
}

func TestReadErrorIsNotTheEnd(t *testing.T) {
	r := newRig(t)
	r.add(newFakeSink(queueLane), LaneOptions{Required: true})
	r.log.put(t, 3, true)
	r.log.onRead = func(contract.Offset, []byte) ([]byte, error) { return nil, errTest }
	if _, err := r.d.CatchUp(context.Background()); !errors.Is(err, errTest) {
		t.Fatal(err)
	}
	r.log.onRead = func(contract.Offset, []byte) ([]byte, error) { return nil, nil }
	if _, err := r.d.CatchUp(context.Background()); !errors.Is(err, ErrBehind) {
		t.Fatal(err)
	}
}

func TestCutBelowTheCursorRollsBack(t *testing.T) {
	r := newRig(t)
	s := newFakeSink(queueLane)
	r.add(s, LaneOptions{Required: true})
	r.log.put(t, 20, true)
	r.catchUp()
	to := r.log.cut(6)
	r.log.put(t, 9, true)
	r.catchUp()
	s.holds(t, r.log, 0, r.log.Confirmed())
	st := r.status(queueLane)
	if st.RollBacks != 1 || len(s.backs) == 0 || s.backs[len(s.backs)-1] != to || st.Applied.Epoch != 2 {
		t.Fatalf("%+v %v", st, s.backs)
	}
}

func TestCutAboveTheCursorKeepsIt(t *testing.T) {
	r := newRig(t)
	s := newFakeSink(queueLane)
	r.add(s, LaneOptions{Required: true})
	r.log.put(t, 20, true)
	r.catchUp()
	if err := r.d.Pause(queueLane); err != nil {
		t.Fatal(err)
	}
	r.log.put(t, 8, true)
	r.log.cut(4)
	if err := r.d.Resume(queueLane); err != nil {
		t.Fatal(err)
	}
	r.catchUp()
	s.holds(t, r.log, 0, r.log.Confirmed())
	if st := r.status(queueLane); st.RollBacks != 0 || st.Applied.Epoch != 2 || st.Duplicates != 0 {
		t.Fatalf("%+v", st)
	}
}

// TestCutUnderARead cuts the log between the read and the look at the epoch:
// the bytes are of another epoch than the cursor.
func TestCutUnderARead(t *testing.T) {
	r := newRig(t)
	s := newFakeSink(queueLane)
	r.add(s, LaneOptions{Required: true})
	r.log.put(t, 10, true)
	r.log.onRead = func(_ contract.Offset, b []byte) ([]byte, error) {
		r.log.onRead = nil
		b = append([]byte(nil), b...)
		r.log.cut(10)
		return b, nil
	}
	if _, err := r.d.CatchUp(context.Background()); !errors.Is(err, contract.ErrCursorEpoch) {
		t.Fatal(err)
	}
	r.log.put(t, 4, true)
	r.catchUp()
	s.holds(t, r.log, 0, r.log.Confirmed())
}

func TestFailingLaneStopsAloneAndHeals(t *testing.T) {
	for _, where := range []string{"apply", "commit"} {
		t.Run(where, func(t *testing.T) {
			r := newRig(t)
			q, x := newFakeSink(queueLane), newFakeSink(indexLane)
			r.add(q, LaneOptions{Required: true})
			r.add(x, LaneOptions{})
			broken := true
			n := 0
			fail := func() error {
				if broken && n > 3 {
					return errTest
				}
				n++
				return nil
			}
			if where == "apply" {
				x.onApply = func(contract.RecordID) error { return fail() }
			} else {
				x.onCommit = fail
			}
			r.start()
			for range 20 {
				r.log.put(t, 5, true)
				if err := r.d.WaitFrontier(within(t), r.log.Confirmed()); err != nil {
					t.Fatal(err)
				}
			}
			r.until("index lane fails a few times", func() bool { return r.status(indexLane).Failures > 3 })
			st := r.status(indexLane)
			if !errors.Is(st.Err, errTest) || st.State != LaneFailed || st.Applied.Next == r.log.Confirmed() {
				t.Fatalf("%+v", st)
			}
			q.holds(t, r.log, 0, r.log.Confirmed())
			x.set(func() { broken = false })
			r.until("index lane heals", func() bool {
				return r.status(indexLane).Applied.Next == r.log.Confirmed()
			})
			x.holds(t, r.log, 0, r.log.Confirmed())
			if st := r.status(indexLane); st.Err != nil || st.State != LaneRunning {
				t.Fatalf("%+v", st)
			}
			if _, err := r.d.Close(within(t)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestBackoffFollowsTheClock: without time passing there is no second try,
// however much the log grows; Kick asks for one.
func TestBackoffFollowsTheClock(t *testing.T) {
	r := newRig(t)
	s := newFakeSink(queueLane)
	s.onApply = func(contract.RecordID) error { return errTest }
	r.add(s, LaneOptions{})
	r.start()
	r.log.put(t, 1, true)
	failures := func() uint64 { return r.status(queueLane).Failures }
	wait := func(n uint64) {
		t.Helper()
		for ctx := within(t); failures() < n; time.Sleep(50 * time.Microsecond) {
			if ctx.Err() != nil {
				t.Fatalf("%d failures, want %d", failures(), n)
			}
		}
		if err := r.clock.WaitFor(within(t), 1); err != nil {
			t.Fatal(err)
		}
	}
	wait(1)
	for range 50 {
		r.log.put(t, 1, true)
	}
	r.clock.Advance(9 * time.Millisecond)
	time.Sleep(2 * time.Millisecond)
	if failures() != 1 {
		t.Fatalf("%d failures before the wait was over", failures())
	}
	r.clock.Advance(time.Millisecond)
	wait(2)
	r.d.Kick()
	wait(3)
	if _, err := r.d.Close(within(t)); err != nil {
		t.Fatal(err)
	}
}

func TestPersistedCursorIsNeverBeyondDurable(t *testing.T) {
	r := newRig(t)
	s := newFakeSink(queueLane)
	r.cursors.onSave = func(c contract.Cursor) error {
		if c.Next > r.log.Durable() {
			t.Errorf("saved %d, durable is %d", c.Next, r.log.Durable())
		}
		for at := range s.shown {
			if _, ok := s.durable[at]; !ok && at < int64(c.Next) {
				t.Errorf("saved %d before the record at %d was flushed", c.Next, at)
			}
		}
		return nil
	}
	r.add(s, LaneOptions{Required: true})
	r.start()
	for i := range 20 {
		r.log.put(t, 5, false)
		if err := r.d.WaitFrontier(within(t), r.log.Confirmed()); err != nil {
			t.Fatal(err)
		}
		r.clock.Advance(700 * time.Millisecond)
		if i%4 == 3 {
			r.log.show(0, false)
			end := r.log.Confirmed()
			r.log.put(t, 5, false)
			r.log.show(end, true)
			r.until("a save", func() bool { return r.cursors.get(queueLane).Next > 0 })
		}
	}
	report, err := r.d.Close(within(t))
	if err != nil || report.Lanes[0].Saved || report.Lanes[0].BehindBytes != 0 {
		t.Fatalf("%+v %v", report, err)
	}
	if behind := report.Behind(); len(behind) != 1 {
		t.Fatalf("%+v", behind)
	}
	r.log.show(r.log.Confirmed(), true)
	if err := r.d.Persist(); err != nil {
		t.Fatal(err)
	}
	if c := r.cursors.get(queueLane); c.Next != r.log.Confirmed() {
		t.Fatalf("%+v", c)
	}
}

func TestPersistFollowsTheClock(t *testing.T) {
	r := newRig(t)
	r.add(newFakeSink(queueLane), LaneOptions{Required: true})
	r.start()
	r.log.put(t, 5, true)
	if err := r.d.WaitFrontier(within(t), r.log.Confirmed()); err != nil {
		t.Fatal(err)
	}
	if err := r.clock.WaitFor(within(t), 1); err != nil {
		t.Fatal(err)
	}
	r.clock.Advance(999 * time.Millisecond)
	if r.cursors.get(queueLane).Next != 0 {
		t.Fatal("saved too early")
	}
	r.until("the save", func() bool { return r.cursors.get(queueLane).Next == r.log.Confirmed() })
	if st := r.status(queueLane); !st.HasPersisted || st.Persisted.Next != r.log.Confirmed() {
		t.Fatalf("%+v", st)
	}
}

// A lane may save less often than the others.
func TestPersistEveryOfALane(t *testing.T) {
	r := newRig(t)
	often, seldom := newFakeSink(queueLane), newFakeSink(contract.LaneIndex)
	r.add(often, LaneOptions{Required: true})
	r.add(seldom, LaneOptions{PersistEvery: time.Minute})
	r.start()
	r.log.put(t, 5, true)
	r.until("both follow", func() bool {
		return r.status(queueLane).LagBytes == 0 && r.status(contract.LaneIndex).LagBytes == 0
	})
	for range 10 {
		r.clock.Advance(time.Second)
	}
	r.until("one saves", func() bool { return r.cursors.get(queueLane).Next == r.log.Confirmed() })
	if got := r.cursors.get(contract.LaneIndex); got.Next != 0 {
		t.Errorf("saved at %d", got.Next)
	}
	r.clock.Advance(time.Minute)
	r.until("the other saves", func() bool { return r.cursors.get(contract.LaneIndex).Next == r.log.Confirmed() })
	r.stop()
}

func TestCrashBetweenEffectAndCursor(t *testing.T) {
	r := newRig(t)
	s := newFakeSink(queueLane)
	r.add(s, LaneOptions{Required: true})
	r.log.put(t, 10, true)
	r.catchUp()
	if err := r.d.Persist(); err != nil {
		t.Fatal(err)
	}
	saved := r.cursors.get(queueLane)
	r.log.put(t, 10, true)
	r.catchUp()
	// The effects are durable, the cursor is not saved.
	r.cursors.onSave = func(contract.Cursor) error { return errTest }
	if err := r.d.Persist(); !errors.Is(err, errTest) {
		t.Fatal(err)
	}
	r.cursors.onSave = nil
	s = s.crash()
	s.holds(t, r.log, 0, r.log.Confirmed())
	r.renew()
	if got := r.add(s, LaneOptions{Required: true}); got.Reason != StartResumed || got.Start != saved {
		t.Fatalf("%+v", got)
	}
	if got := r.catchUp()[0]; got.Records != 10 {
		t.Fatalf("%+v", got)
	}
	s.holds(t, r.log, 0, r.log.Confirmed())
}

func TestFailedFlushAppliesAgain(t *testing.T) {
	r := newRig(t)
	s := newFakeSink(queueLane)
	r.add(s, LaneOptions{Required: true})
	r.log.put(t, 10, true)
	r.catchUp()
	if err := r.d.Persist(); err != nil {
		t.Fatal(err)
	}
	r.log.put(t, 10, true)
	r.catchUp()
	s.onFlush = func() error { return errTest }
	if err := r.d.Persist(); !errors.Is(err, errTest) {
		t.Fatal(err)
	}
	end := r.log.Confirmed()
	if st := r.status(queueLane); st.Applied.Next != end || r.d.Frontier() != end {
		t.Fatalf("what readers see went back: %+v", st)
	}
	if err := r.d.Persist(); err != nil {
		t.Fatalf("nothing to flush before the effects are repeated: %v", err)
	}
	s.onFlush = nil
	before := s.applied
	if got := r.catchUp()[0]; got.Records != 10 || s.applied != before+10 {
		t.Fatalf("%+v", got)
	}
	if err := r.d.Persist(); err != nil || r.cursors.get(queueLane).Next != end {
		t.Fatalf("%v %+v", err, r.cursors.get(queueLane))
	}
}

func TestRebuildLowersTheCursorFirst(t *testing.T) {
	r := newRig(t)
	s := newFakeSink(queueLane)
	r.add(s, LaneOptions{Required: true})
	r.log.put(t, 30, true)
	r.catchUp()
	if err := r.d.Persist(); err != nil {
		t.Fatal(err)
	}
	r.log.min = contract.Offset(r.log.starts[7])
	err := r.d.Rebuild(queueLane, 0, func() error {
		if c := r.cursors.get(queueLane); c.Next != r.log.min {
			t.Errorf("reset before the cursor was lowered: %+v", c)
		}
		return s.RollBack(0)
	})
	if err != nil {
		t.Fatal(err)
	}
	r.catchUp()
	s.holds(t, r.log, r.log.min, r.log.Confirmed())
	if err := r.d.Rebuild(queueLane, r.log.Confirmed()+1, nil); !errors.Is(err, contract.ErrInvalid) {
		t.Fatal(err)
	}
	if err := r.d.Rebuild(indexLane, 0, nil); !errors.Is(err, contract.ErrNotFound) {
		t.Fatal(err)
	}
}

func TestStepDoesNotAllocatePerRecord(t *testing.T) {
	r := newRig(t)
	s := &countSink{}
	r.add(s, LaneOptions{})
	r.log.put(t, 20000, true)
	l := r.d.lanes[0]
	l.d.opts.BatchBytes = 1 << 20
	before := s.n
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := l.step(forever); err != nil {
			t.Fatal(err)
		}
	})
	if perBatch := float64(s.n-before) / 101; allocs > 2 || perBatch < 5 {
		t.Fatalf("%.1f allocations for a batch of %.1f records", allocs, perBatch)
	}
}

type countSink struct{ n int }

func (s *countSink) Lane() contract.Lane { return queueLane }
func (s *countSink) Commit() error       { return nil }
func (s *countSink) Flush() error        { return nil }
func (s *countSink) Apply(contract.RecordID, *codec.MessageView) error {
	s.n++
	return nil
}
