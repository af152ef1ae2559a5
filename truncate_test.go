package stratalog

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// After a cut the log ends lower than the lanes have seen it end. What is
// appended from there on must wake them all the same, and a power cut then must
// not find a cursor beyond what the queues hold.
func TestTruncateLanes(t *testing.T) {
	for round := range 50 {
		sim := vfs.NewSim()
		opt := testOptions(sim, "/store")
		opt.Clock = manual()
		s := start(t, opt)
		var starts []Offset
		var sent [][]byte
		put := func(n int) {
			var last Receipt
			for range n {
				last = mustAppend(t, s, &Message{Topic: "t", Body: body(len(sent))}, Sync)
				place, _ := last.Range()
				starts, sent = append(starts, place.Start), append(sent, body(len(sent)))
			}
			waitVisible(t, s, endOf(last))
		}
		put(20)
		cut := round % 20
		if err := s.TruncateTo(context.Background(), starts[cut]); err != nil {
			t.Fatal(err)
		}
		starts, sent = starts[:cut], sent[:cut]
		for range 3 {
			put(1)
		}
		expect(t, s, "t", 0, sent)
		opt.FS = sim.Crash(vfs.AllOld())
		closeClean(t, s)
		s = start(t, opt)
		expect(t, s, "t", 0, sent)
		closeClean(t, s)
	}
}

// A record that could not be written is cut by Recover; the queue goes on where
// the log does.
func TestRecoverCuts(t *testing.T) {
	sim := vfs.NewSim()
	fault := vfs.NewFault(sim)
	opt := testOptions(fault, "/store")
	opt.Clock = manual()
	s := start(t, opt)
	last := mustAppend(t, s, &Message{Topic: "t", Body: body(0)}, Sync)
	waitVisible(t, s, endOf(last))
	fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpWrite), Path: "commitlog/*", Err: syscall.EIO, Short: 40})
	r, err := s.Append(context.Background(), &Message{Topic: "t", Body: body(1)}, Sync)
	if !errors.Is(err, contract.ErrFenced) || !errors.Is(err, syscall.EIO) || r.Accepted() {
		t.Fatalf("%+v, %v", r, err)
	}
	report, err := s.Recover(context.Background())
	if err != nil || report.End != endOf(last) || !report.NewEpoch {
		t.Fatalf("%+v, %v", report, err)
	}
	last = mustAppend(t, s, &Message{Topic: "t", Body: body(2)}, Sync)
	if last.QueueOffset() != 1 {
		t.Errorf("queue offset %d", last.QueueOffset())
	}
	waitVisible(t, s, endOf(last))
	expect(t, s, "t", 0, [][]byte{body(0), body(2)})
	opt.FS = sim.Crash(vfs.AllOld())
	closeClean(t, s)
	s = start(t, opt)
	expect(t, s, "t", 0, [][]byte{body(0), body(2)})
	closeClean(t, s)
}
