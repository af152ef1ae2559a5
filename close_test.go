package stratalog

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/dispatch"
	"github.com/stratalog/stratalog/internal/vfs"
)

// hangs makes one kind of operation hang and closes the store meanwhile.
func hangs(t *testing.T, rule vfs.Rule, prepare func(s *Store)) {
	fault := vfs.NewFault(vfs.NewSim())
	opt := testOptions(fault, "/store")
	opt.Clock = manual()
	s := start(t, opt)
	var sent [][]byte
	for i := range 10 {
		mustAppend(t, s, &Message{Topic: "t", Body: body(i)}, Sync)
		sent = append(sent, body(i))
	}
	hold := make(chan struct{})
	reached := make(chan struct{}, 100)
	rule.Block = hold
	rule.Hook = func(vfs.Op) {
		select {
		case reached <- struct{}{}:
		default:
		}
	}
	fault.Add(rule)
	prepare(s)
	ctx, cancel := context.WithCancel(context.Background())
	var report CloseReport
	var err error
	closed := make(chan struct{})
	go func() {
		report, err = s.Close(ctx)
		close(closed)
	}()
	select { // the deadline comes while it hangs
	case <-reached:
	case <-closed:
		t.Fatalf("nothing hangs: %+v, %v", report, err)
	}
	cancel()
	select {
	case <-closed:
	case <-within(t).Done():
		t.Error("Close outlives its deadline")
		close(hold)
		<-closed
		return
	}
	if err == nil || report.Clean || len(report.Running) == 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("report %+v, %v", report, err)
	}
	if report.Watermarks.Durable == 0 || report.Watermarks != s.closedReport.Watermarks {
		t.Errorf("watermarks %+v", report.Watermarks)
	}
	if _, err := fault.Stat("/store/" + abortName); err != nil {
		t.Errorf("the abort file: %v", err)
	}
	again, err := s.Close(context.Background())
	if err != nil || again.Clean || !slices.Equal(again.Running, report.Running) {
		t.Errorf("a second Close: %+v, %v", again, err)
	}
	// While it hangs, what hangs may still write: nobody else gets the lock.
	wantLocked(t, opt)
	close(hold)
	waitUnlocked(t, s)
	fault.Clear()
	s = start(t, opt)
	if !s.Report().Unclean {
		t.Error("the next open takes it for closed well")
	}
	_, end := s.QueueRange("t", 0)
	if end < 10 {
		t.Fatalf("%d of 10 durable records", end)
	}
	for i := 10; i < int(end); i++ {
		sent = append(sent, body(i))
	}
	expect(t, s, "t", 0, sent)
	closeClean(t, s)
}

func TestCloseDeadline(t *testing.T) {
	submit := func(s *Store, from, n int, d Durability) {
		for i := range n {
			m := Message{Topic: "t", Body: body(from + i)}
			if err := s.Submit(context.Background(), &m, d, func(Receipt, error) {}); err != nil {
				t.Error(err)
			}
		}
	}
	logSync := vfs.Rule{Kinds: vfs.KindsOf(vfs.OpDatasync), Path: "commitlog/*", Sticky: true}
	t.Run("a sync that runs already", func(t *testing.T) {
		hangs(t, logSync, func(s *Store) { submit(s, 10, 5, Sync) })
	})
	t.Run("the sync of the drain", func(t *testing.T) {
		hangs(t, logSync, func(s *Store) { submit(s, 10, 5, Memory) })
	})
	t.Run("the sync of a queue", func(t *testing.T) {
		hangs(t, vfs.Rule{Kinds: vfs.SyncOps, Path: "consumequeue/t/0/*", Sticky: true}, func(*Store) {})
	})
	t.Run("the sync of the cursors", func(t *testing.T) {
		hangs(t, vfs.Rule{Kinds: vfs.SyncOps, Path: "stratalog/cursors*", Sticky: true}, func(*Store) {})
	})
	t.Run("the sync of the state", func(t *testing.T) {
		hangs(t, vfs.Rule{Kinds: vfs.SyncOps, Path: "stratalog/state*", Sticky: true}, func(*Store) {})
	})
	t.Run("the checkpoint", func(t *testing.T) {
		hangs(t, vfs.Rule{Kinds: vfs.SyncOps, Path: checkpointName, Sticky: true}, func(*Store) {})
	})
}

// A recovery or truncation that hangs does not hold Close up either.
func TestCloseBesideTruncate(t *testing.T) {
	fault := vfs.NewFault(vfs.NewSim())
	opt := testOptions(fault, "/store")
	s := start(t, opt)
	mustAppend(t, s, &Message{Topic: "t", Body: body(0)}, Sync)
	r := mustAppend(t, s, &Message{Topic: "t", Body: body(1)}, Sync)
	hold, reached := make(chan struct{}), make(chan struct{}, 100)
	fault.Add(vfs.Rule{Kinds: vfs.SyncOps, Path: "stratalog/state*", Block: hold, Hook: func(vfs.Op) { reached <- struct{}{} }})
	place, _ := r.Range()
	cut := make(chan error)
	go func() { cut <- s.TruncateTo(context.Background(), place.Start) }()
	<-reached
	report, err := s.Close(ended())
	if err == nil || report.Clean || len(report.Running) == 0 {
		t.Errorf("report %+v, %v", report, err)
	}
	if _, err := s.Recover(ended()); !errors.Is(err, context.Canceled) {
		t.Errorf("recover: %v", err)
	}
	close(hold)
	if err := <-cut; err != nil {
		t.Fatal(err)
	}
	closeClean(t, s)
}

// After a close in order there is nothing to recover.
func TestCloseClean(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"os": vfs.OS(), "sim": vfs.NewSim()} {
		t.Run(name, func(t *testing.T) {
			opt := testOptions(fs, t.TempDir()+"/store")
			var sent [][]byte
			for round := range 3 {
				s := start(t, opt)
				for range 150 {
					mustAppend(t, s, &Message{Topic: "t", Body: body(len(sent))}, Memory)
					sent = append(sent, body(len(sent)))
				}
				closeClean(t, s)
				if _, err := fs.Stat(opt.Dir + "/" + abortName); err == nil {
					t.Fatal("the abort file is still there")
				}
				s = start(t, opt)
				r := s.Report()
				if r.Unclean || r.Log.Start != "closed well" || r.Log.Records != 0 || r.Log.NewEpoch || r.Log.Foreign ||
					r.QueueCut.Units != 0 || r.Replayed[0].Records != 0 || r.Lanes[0].Reason != dispatch.StartResumed {
					t.Fatalf("round %d: something to recover: %+v", round, r)
				}
				expect(t, s, "t", 0, sent)
				closeClean(t, s)
			}
		})
	}
}

// Health moves when something is provoked, and back when it is over.
func TestHealth(t *testing.T) {
	fault := vfs.NewFault(vfs.NewSim())
	clk := manual()
	opt := testOptions(fault, "/store")
	opt.Clock = clk
	s, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	if h := s.Health(); h.Stage != "new" || h.Writable || !errors.Is(h.Reason, contract.ErrNotStarted) {
		t.Errorf("new: %+v", h)
	}
	if _, err := s.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	if h := s.Health(); h.Stage != "loaded" || h.Writable {
		t.Errorf("loaded: %+v", h)
	}
	if err := s.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	if h := s.Health(); h.Stage != "started" || !h.Writable || h.Reason != nil || h.WritePath != WritePwrite {
		t.Errorf("started: %+v", h)
	}

	// A lane that fails stops alone, and catches up when the cause is gone.
	bad := fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpCreate, vfs.OpWrite), Path: "consumequeue/t/0/*", Sticky: true, Err: syscall.EIO})
	r := mustAppend(t, s, &Message{Topic: "t", Body: body(0)}, Sync)
	until(t, "the lane fails", func() bool { return s.Health().Lanes[0].State == dispatch.LaneFailed }, nil)
	h := s.Health()
	if !h.Writable || h.Frontier >= endOf(r) || h.Lanes[0].LagBytes != int64(endOf(r)) || !errors.Is(h.Lanes[0].Err, syscall.EIO) {
		t.Errorf("lane failed: %+v", h)
	}
	var rec Record
	if found, err := s.GetAt(context.Background(), 0, &rec); err != nil || !found {
		t.Errorf("reading while the lane is down: %v, %v", found, err)
	}
	rec.Release()
	bad.Remove()
	until(t, "the lane catches up", func() bool { return s.Health().Frontier == endOf(r) }, func() { clk.Advance(time.Second) })
	until(t, "and is well", func() bool { h := s.Health().Lanes[0]; return h.State == dispatch.LaneRunning && h.Err == nil }, nil)

	// A failed sync fences; Recover lifts it.
	fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpDatasync), Path: "commitlog/*", Err: syscall.EIO})
	if _, err := s.Append(context.Background(), &Message{Topic: "t", Body: body(1)}, Sync); !errors.Is(err, contract.ErrFenced) {
		t.Fatalf("append: %v", err)
	}
	if h := s.Health(); h.Writable || !errors.Is(h.Reason, contract.ErrFenced) || !errors.Is(h.Reason, syscall.EIO) {
		t.Errorf("fenced: %+v", h)
	}
	if _, err := s.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	if h := s.Health(); !h.Writable || h.Reason != nil {
		t.Errorf("recovered: %+v", h)
	}
	mustAppend(t, s, &Message{Topic: "t", Body: body(2)}, Sync)
	closeClean(t, s)
	if h := s.Health(); h.Stage != "closed" || h.Writable || !errors.Is(h.Reason, contract.ErrClosed) {
		t.Errorf("closed: %+v", h)
	}
	s = start(t, opt)
	expect(t, s, "t", 0, [][]byte{body(0), body(1), body(2)})
	closeClean(t, s)
}

// A lane that is behind at the close is named, and abort stays.
func TestCloseLaneBehind(t *testing.T) {
	fault := vfs.NewFault(vfs.NewSim())
	opt := testOptions(fault, "/store")
	s := start(t, opt)
	bad := fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpCreate, vfs.OpWrite), Path: "consumequeue/t/0/*", Sticky: true, Err: syscall.EIO})
	mustAppend(t, s, &Message{Topic: "t", Body: body(0)}, Sync)
	report, err := s.Close(context.Background())
	if err == nil || report.Clean || report.Behind["consumequeue"] == 0 || !errors.Is(err, syscall.EIO) {
		t.Fatalf("%+v, %v", report, err)
	}
	if len(report.Running) != 0 {
		t.Errorf("running: %s", strings.Join(report.Running, ", "))
	}
	bad.Remove()
	s = start(t, opt)
	if !s.Report().Unclean {
		t.Error("taken for closed well")
	}
	expect(t, s, "t", 0, [][]byte{body(0)})
	closeClean(t, s)
}
