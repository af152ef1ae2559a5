package dispatch

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stratalog/stratalog/contract"
)

func TestAddJudgesTheCursor(t *testing.T) {
	cursor := func(epoch contract.Epoch, next contract.Offset) *contract.Cursor {
		return &contract.Cursor{Lane: queueLane, Epoch: epoch, Next: next}
	}
	// The log of each case: 20 records in epoch 1, cut to 10, 10 more.
	var mid, end contract.Offset
	probe := newFakeLog()
	probe.put(t, 20, true)
	mid = probe.cut(10)
	probe.put(t, 10, true)
	end = probe.Confirmed()
	at := func(i int) contract.Offset { return contract.Offset(probe.starts[i]) }

	tests := []struct {
		name   string
		saved  *contract.Cursor
		broken error
		min    contract.Offset
		opts   LaneOptions
		start  contract.Offset
		reason StartReason
		back   contract.Offset // -1: RollBack is not called.
		fails  bool
	}{
		{name: "resumed", saved: cursor(2, end), start: end, reason: StartResumed, back: -1},
		{name: "old epoch below the cut", saved: cursor(1, at(4)), start: at(4), reason: StartResumed, back: -1},
		{name: "old epoch at the cut", saved: cursor(1, mid), start: mid, reason: StartResumed, back: -1},
		{name: "old epoch above the cut", saved: cursor(1, mid+50), start: mid, reason: StartRolledBack, back: mid},
		{name: "missing", reason: StartMissing, back: end},
		{name: "missing, log retired", min: at(3), start: at(3), reason: StartMissing, back: end},
		{name: "damaged", broken: errTest, saved: cursor(2, end), reason: StartDamaged, back: end},
		{name: "ahead", saved: cursor(2, end+1), reason: StartAhead, back: end},
		{name: "newer epoch", saved: cursor(3, at(4)), reason: StartForeign, back: end},
		{name: "no epoch", saved: cursor(0, at(4)), reason: StartForeign, back: end},
		{name: "other lane", saved: &contract.Cursor{Lane: indexLane, Epoch: 2}, reason: StartForeign, back: end},
		{name: "behind retention", saved: cursor(2, at(2)), min: at(5), fails: true, back: -1},
		{name: "behind retention, skip", saved: cursor(2, at(2)), min: at(5),
			opts: LaneOptions{OnRetired: RetiredSkip}, start: at(5), reason: StartRetired, back: -1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			r.log.put(t, 20, true)
			r.log.cut(10)
			r.log.put(t, 10, true)
			r.log.min = tc.min
			if tc.saved != nil {
				r.cursors.table[queueLane] = *tc.saved
			}
			r.cursors.broken = tc.broken
			s := newFakeSink(queueLane)
			report, err := r.d.Add(s, tc.opts)
			if tc.fails {
				var retired *RetiredError
				if !errors.As(err, &retired) || retired.Min != tc.min || len(r.d.Lanes()) != 0 {
					t.Fatalf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if report.Reason != tc.reason || report.Start.Next != tc.start || report.Start.Epoch != 2 {
				t.Fatalf("%+v: %v", report, report.Reason)
			}
			if tc.back < 0 && len(s.backs) != 0 || tc.back >= 0 && (len(s.backs) != 1 || s.backs[0] != tc.back) {
				t.Fatalf("roll back to %v, want %d", s.backs, tc.back)
			}
			r.catchUp()
			s.holds(t, r.log, tc.start, end)
		})
	}
}

func TestAddRefusesTwiceAndLate(t *testing.T) {
	r := newRig(t)
	r.add(newFakeSink(queueLane), LaneOptions{})
	if _, err := r.d.Add(newFakeSink(queueLane), LaneOptions{}); !errors.Is(err, contract.ErrInvalid) {
		t.Fatal(err)
	}
	r.start()
	if _, err := r.d.Add(newFakeSink(indexLane), LaneOptions{}); !errors.Is(err, contract.ErrInvalid) {
		t.Fatal(err)
	}
	if err := r.d.Start(r.group); !errors.Is(err, contract.ErrInvalid) {
		t.Fatal(err)
	}
	if _, err := r.d.CatchUp(context.Background()); !errors.Is(err, contract.ErrInvalid) {
		t.Fatal(err)
	}
}

func TestLogRetiredUnderALane(t *testing.T) {
	for _, policy := range []RetiredPolicy{RetiredFail, RetiredSkip} {
		r := newRig(t)
		s := newFakeSink(queueLane)
		r.add(s, LaneOptions{Required: true, OnRetired: policy})
		r.log.put(t, 30, true)
		r.log.min = contract.Offset(r.log.starts[12])
		_, err := r.d.CatchUp(context.Background())
		var retired *RetiredError
		if policy == RetiredFail {
			if !errors.As(err, &retired) || retired.Min != r.log.min {
				t.Fatal(err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		s.holds(t, r.log, r.log.min, r.log.Confirmed())
		if st := r.status(queueLane); st.SkippedBytes != int64(r.log.min) {
			t.Fatalf("%+v", st)
		}
	}
}

func TestCloseDrainsAndReports(t *testing.T) {
	r := newRig(t)
	q, x, k := newFakeSink(queueLane), newFakeSink(indexLane), newFakeSink(contract.LaneTiered)
	x.onApply = func(contract.RecordID) error { return errTest }
	r.add(q, LaneOptions{Required: true})
	r.add(x, LaneOptions{})
	r.add(k, LaneOptions{Required: true})
	if err := r.d.Pause(contract.LaneTiered); err != nil {
		t.Fatal(err)
	}
	r.start()
	r.log.put(t, 50, true)
	report, err := r.d.Close(within(t))
	if !errors.Is(err, ErrPaused) || !errors.Is(err, ErrBehind) || errors.Is(err, errTest) {
		t.Fatalf("%v", err)
	}
	if got := report.Lanes[0]; !got.Saved || got.BehindBytes != 0 || got.Err != nil {
		t.Fatalf("%+v", got)
	}
	if got := report.Lanes[1]; got.BehindBytes == 0 || !errors.Is(got.Err, errTest) {
		t.Fatalf("%+v", got)
	}
	if behind := report.Behind(); len(behind) != 2 || behind[1].Lane != contract.LaneTiered {
		t.Fatalf("%+v", behind)
	}
	q.holds(t, r.log, 0, r.log.Confirmed())
	if c := r.cursors.get(queueLane); c.Next != r.log.Confirmed() {
		t.Fatalf("%+v", c)
	}
	if again, err := r.d.Close(within(t)); err != nil || len(again.Lanes) != 0 {
		t.Fatalf("%+v %v", again, err)
	}
	if err := r.d.WaitFrontier(within(t), r.log.Confirmed()+1); !errors.Is(err, contract.ErrClosed) {
		t.Fatal(err)
	}
}

func TestCloseNamesAStuckLane(t *testing.T) {
	r := newRig(t)
	s := newFakeSink(queueLane)
	inside, release := make(chan struct{}), make(chan struct{})
	s.onApply = func(contract.RecordID) error {
		select {
		case inside <- struct{}{}:
		default:
		}
		<-release
		return nil
	}
	r.add(s, LaneOptions{Required: true})
	r.start()
	r.log.put(t, 1, true)
	<-inside
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	report, err := r.d.Close(ctx)
	if !errors.Is(err, ErrStuck) || report.Lanes[0].BehindBytes == 0 || report.Lanes[0].Saved {
		t.Fatalf("%+v %v", report, err)
	}
	close(release)
	r.stop()
}

func TestCloseWithoutStart(t *testing.T) {
	r := newRig(t)
	s := newFakeSink(queueLane)
	r.add(s, LaneOptions{Required: true})
	r.log.put(t, 5, true)
	if _, err := r.d.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	s.holds(t, r.log, 0, r.log.Confirmed())
	if _, err := r.d.CatchUp(context.Background()); !errors.Is(err, contract.ErrClosed) {
		t.Fatal(err)
	}
	if err := r.d.Start(nil); !errors.Is(err, contract.ErrClosed) {
		t.Fatal(err)
	}
}

func TestLogClosesUnderTheWatcher(t *testing.T) {
	r := newRig(t)
	s := newFakeSink(queueLane)
	r.add(s, LaneOptions{Required: true})
	r.start()
	r.log.put(t, 5, true)
	r.log.close()
	if _, err := r.d.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	s.holds(t, r.log, 0, r.log.Confirmed())
}

// A lane with a bound on its lag is left behind by an open and a close that would
// have to do more, is told so, and goes on when it runs.
func TestLagMax(t *testing.T) {
	r := newRig(t)
	s := newFakeSink(contract.LaneIndex)
	r.log.put(t, 50, true)
	half := r.log.Confirmed()
	r.add(s, LaneOptions{LagMax: int64(half) - 1, OnRetired: RetiredSkip})
	report := r.catchUp()
	if len(report) != 1 || !errors.Is(report[0].Err, ErrBehind) || report[0].Records != 0 {
		t.Fatalf("%+v", report)
	}
	end, err := r.d.Close(within(t))
	if err != nil || len(end.Behind()) != 1 || end.Lanes[0].BehindBytes != int64(half) || !errors.Is(end.Lanes[0].Err, ErrBehind) {
		t.Fatalf("%+v, %v", end, err)
	}
	if _, err := r.d.Fill(within(t), contract.LaneIndex, nil); !errors.Is(err, contract.ErrClosed) {
		t.Fatal(err)
	}
	// Who asks for it gets it all, and the cursor saved.
	r.renew()
	r.add(s, LaneOptions{LagMax: int64(half) - 1, OnRetired: RetiredSkip})
	told := contract.Offset(0)
	filled, err := r.d.Fill(within(t), contract.LaneIndex, func(at contract.Offset) { told = at })
	if at := r.status(contract.LaneIndex).Persisted.Next; err != nil || filled.To != half || told != half || at != half {
		t.Fatalf("%+v, %v, told of %d, saved at %d", filled, err, told, at)
	}
	if _, err := r.d.Fill(within(t), contract.LaneQueue, nil); !errors.Is(err, contract.ErrNotFound) {
		t.Fatal(err)
	}
	r.renew()
	r.add(s, LaneOptions{LagMax: int64(half)})
	if report := r.catchUp(); report[0].Err != nil || report[0].To != half {
		t.Fatalf("%+v", report)
	}
	r.start()
	if _, err := r.d.Fill(within(t), contract.LaneIndex, nil); !errors.Is(err, contract.ErrInvalid) {
		t.Fatal(err)
	}
	r.log.put(t, 500, true)
	r.until("the lane follows", func() bool { return r.status(contract.LaneIndex).LagBytes == 0 })
	if end, err := r.d.Close(within(t)); err != nil || len(end.Behind()) != 0 {
		t.Fatalf("%+v, %v", end, err)
	}
}
