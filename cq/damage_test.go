package cq

import (
	"errors"
	"syscall"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// TestDamageIsRebuilt spoils files of a store that was closed in order, whose
// cursor says that all is done, and expects a report, and a replay that gives
// everything back. The log has another queue, so that a replay from the wrong
// place shows.
func TestDamageIsRebuilt(t *testing.T) {
	last := testRoot + "/t/0/" + fileName(200)
	for _, tc := range []struct {
		name   string
		spoil  func(t *testing.T, sim *vfs.Sim)
		reason Reason
		from   int64 // Units of t that are whole.
	}{
		{"last file emptied", func(t *testing.T, sim *vfs.Sim) { setLength(t, sim, last, 0) }, EmptyFile, 10},
		{"last file cut", func(t *testing.T, sim *vfs.Sim) { setLength(t, sim, last, 33) }, ShortFile, 11},
		{"last file cut at a unit", func(t *testing.T, sim *vfs.Sim) { setLength(t, sim, last, 20) }, ShortFile, 11},
		{"middle file gone", func(t *testing.T, sim *vfs.Sim) {
			must(t, sim.Remove(testRoot+"/t/0/"+fileName(100)))
		}, MissingFile, 5},
		{"middle file emptied", func(t *testing.T, sim *vfs.Sim) {
			setLength(t, sim, testRoot+"/t/0/"+fileName(100), 0)
		}, ShortFile, 5},
		{"middle file cut", func(t *testing.T, sim *vfs.Sim) {
			setLength(t, sim, testRoot+"/t/0/"+fileName(100), 50)
		}, ShortFile, 7},
		{"middle file's end zeroed", func(t *testing.T, sim *vfs.Sim) {
			overwrite(t, sim, testRoot+"/t/0/"+fileName(100), 60, make([]byte, 40))
		}, Hole, 8},
		{"all files gone", func(t *testing.T, sim *vfs.Sim) {
			for i := range int64(3) {
				must(t, sim.Remove(testRoot+"/t/0/"+fileName(i*100)))
			}
		}, NoFile, 0},
	} {
		for _, unclean := range []bool{false, true} {
			t.Run(tc.name, func(t *testing.T) {
				sim := newSim(t)
				opts := Options{FileSize: 100}
				h := &history{}
				for i := range int64(26) {
					e := entry{topic: "t", at: i / 2, phy: i * 200}
					if i%2 == 1 {
						e.topic = "u"
					}
					e.encode(t)
					h.entries = append(h.entries, e)
				}
				s := mustOpen(t, sim, opts)
				mustApply(t, s, h.entries...)
				must(t, s.Flush())
				end := contract.Offset(26 * 200)
				tc.spoil(t, sim)

				s = mustOpen(t, sim, opts)
				var check Check
				if unclean {
					check = h.check(s)
				}
				lowered := contract.Offset(-1)
				report, err := s.TruncateAbove(end, check, func(replay contract.Offset) error {
					lowered = replay
					return nil
				})
				must(t, err)
				want := contract.Offset(0)
				if tc.from > 0 {
					want = contract.Offset(h.entries[2*(tc.from-1)].end())
				}
				if report.Replay != want || lowered != want {
					t.Fatalf("replay from %d (saved %d), want %d: %+v", report.Replay, lowered, want, report)
				}
				if len(report.Lost) == 0 || report.Lost[0].Reason != tc.reason || report.Lost[0].Next != tc.from {
					t.Fatalf("%+v", report.Lost)
				}
				for _, e := range h.entries {
					if e.phy >= int64(report.Replay) {
						mustApply(t, s, e)
					}
				}
				for _, topic := range []string{"t", "u"} {
					var want []entry
					for _, e := range h.entries {
						if e.topic == topic {
							want = append(want, e)
						}
					}
					verifyQueue(t, s, key{topic, 0}, want)
				}
				must(t, s.Flush())
				clean := mustOpen(t, sim, opts)
				if r := clean.LoadReport(); len(r.Suspects) != 0 {
					t.Fatalf("%+v", r.Suspects)
				}
			})
		}
	}
}

// TestEmptyNextFileIsNormal: one that was made and not written yet.
func TestEmptyNextFileIsNormal(t *testing.T) {
	s, at := filled(t, 12, Options{FileSize: 100})
	setLength(t, s.fs, testRoot+"/t/0/"+fileName(300), 100)
	again := mustOpen(t, s.fs, Options{FileSize: 100})
	if r := again.LoadReport(); len(r.Suspects) != 0 || again.Max("t", 0) != 12 {
		t.Fatalf("%+v %d", r, again.Max("t", 0))
	}
	for i := int64(12); i < 23; i++ {
		mustApply(t, again, at(i))
	}
	if again.Max("t", 0) != 23 {
		t.Fatal(again.Max("t", 0))
	}
}

func TestFullTailIsListedOnly(t *testing.T) {
	s, _ := filled(t, 10, Options{FileSize: 100})
	again := mustOpen(t, s.fs, Options{FileSize: 100})
	r := again.LoadReport()
	if len(r.Suspects) != 1 || r.Suspects[0].Reason != FullTail || r.Suspects[0].Next != 10 {
		t.Fatalf("%+v", r)
	}
	report, err := again.TruncateAbove(10*200, nil, nil)
	must(t, err)
	if report.Replay != 10*200 || len(report.Lost) != 0 || again.Max("t", 0) != 10 {
		t.Fatalf("%+v", report)
	}
}

// TestTornUnitNeedsTheLog builds the one case in which a unit that lost its
// first sector passes for one of a record below the limit.
func TestTornUnitNeedsTheLog(t *testing.T) {
	sim := newSim(t)
	opts := Options{FileSize: 2000}
	s := mustOpen(t, sim, opts)
	h := &history{}
	for i := range int64(25) {
		e := entry{topic: "t", at: i, phy: i * 200}
		e.encode(t)
		h.entries = append(h.entries, e)
	}
	mustApply(t, s, h.entries...)
	must(t, s.Flush())
	// Unit 25 stands at 500 to 520: its physical offset 2^40 + 5000 wholly, and
	// its size in parts, in the first sector. It is made as if all but the low
	// bytes were lost.
	torn := codec.QueueUnit{PhysicalOffset: 5000, Size: 109}
	b := make([]byte, 20)
	_, err := torn.Encode(b)
	must(t, err)
	overwrite(t, sim, testRoot+"/t/0/"+fileName(0), 500, b)
	limit := contract.Offset(1 << 20)
	s = mustOpen(t, sim, opts)
	if s.Max("t", 0) != 26 {
		t.Fatal(s.Max("t", 0))
	}
	report, err := s.TruncateAbove(limit, h.check(s), nil)
	must(t, err)
	if report.Torn != 1 || report.Units != 1 || report.Queues != 1 || s.Max("t", 0) != 25 || report.Replay != limit {
		t.Fatalf("%+v, max %d", report, s.Max("t", 0))
	}
	s = mustOpen(t, sim, opts)
	if s.Max("t", 0) != 25 {
		t.Fatal("the torn unit came back")
	}
	_, err = s.TruncateAbove(limit, func(string, int32, int64, codec.QueueUnit) (bool, error) {
		return false, errors.New("must not be asked")
	}, nil)
	must(t, err)
}

func TestStaleUnitsBehindTheEndAreZeroed(t *testing.T) {
	s, at := filled(t, 14, Options{FileSize: 200})
	again := mustOpen(t, s.fs, Options{FileSize: 200})
	h := &history{}
	for i := range int64(14) {
		e := at(i)
		e.encode(t)
		h.entries = append(h.entries, e)
	}
	report, err := again.TruncateAbove(4*200, h.check(s), nil)
	must(t, err)
	if report.Units != 10 || report.Files != 1 || again.Max("t", 0) != 4 {
		t.Fatalf("%+v", report)
	}
	for i, c := range readAll(t, s.fs, testRoot+"/t/0/"+fileName(0))[80:] {
		if c != 0 {
			t.Fatalf("byte %d is %#x", 80+i, c)
		}
	}
}

func TestCheckErrorChangesNothing(t *testing.T) {
	s, _ := filled(t, 26, Options{FileSize: 2000})
	again := mustOpen(t, s.fs, Options{FileSize: 2000})
	before := readAll(t, s.fs, testRoot+"/t/0/"+fileName(0))
	_, err := again.TruncateAbove(1<<40, func(string, int32, int64, codec.QueueUnit) (bool, error) {
		return false, errors.New("log broken")
	}, nil)
	if err == nil {
		t.Fatal("no error")
	}
	lowered := errors.New("cursor store broken")
	setLength(t, s.fs, testRoot+"/t/0/"+fileName(0), 333)
	again = mustOpen(t, s.fs, Options{FileSize: 2000})
	if _, err = again.TruncateAbove(1<<40, nil, func(contract.Offset) error { return lowered }); !errors.Is(err, lowered) {
		t.Fatal(err)
	}
	after := readAll(t, s.fs, testRoot+"/t/0/"+fileName(0))
	if len(after) != 333 || string(after) != string(before[:333]) {
		t.Fatal("changed")
	}
}

// TestFailedSyncWritesAgain: the pages of a failed sync are gone though they
// read well. What the lane repeats must be written, not compared away.
func TestFailedSyncWritesAgain(t *testing.T) {
	sim := newSim(t)
	opts := Options{FileSize: 4000}
	s := mustOpen(t, sim, opts)
	at := func(i int64) entry { return entry{topic: "t", at: i, phy: i * 200} }
	mustApply(t, s, at(0), at(1))
	must(t, s.Flush())
	mustApply(t, s, at(2), at(3), at(120))
	sim.FailSync("*"+fileName(0), 1, syscall.EIO, true)
	if err := s.Flush(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if s.Max("t", 0) != 121 {
		t.Fatal("what readers see went back")
	}
	mustApply(t, s, at(2), at(3), at(120))
	must(t, s.Flush())
	cold := mustOpen(t, sim.Crash(vfs.AllOld()), opts)
	got := make([]codec.QueueUnit, 200)
	n, err := cold.Units("t", 0, 0, got)
	if err != nil || n != 121 || got[120].PhysicalOffset != 24_000 || got[3].PhysicalOffset != 600 {
		t.Fatalf("%d %v %v", n, err, got)
	}
	for i, u := range got[4:120] {
		if !IsBlank(u) {
			t.Fatalf("unit %d of the jump is %+v", 4+i, u)
		}
	}
}

// TestFailedCommitIsRepeated: every operation of a batch fails once.
func TestFailedCommitIsRepeated(t *testing.T) {
	for k := 0; ; k++ {
		sim := newSim(t)
		fault := vfs.NewFault(sim)
		s := mustOpen(t, fault, Options{FileSize: 100, MaxHandles: 1})
		h := newHistoryOf(t, 40)
		rule := fault.Add(vfs.Rule{At: k, Err: syscall.ENOSPC, Kinds: ^vfs.KindsOf(vfs.OpClose)})
		for i := 0; i < len(h.entries); i += 8 {
			for {
				var err error
				for _, e := range h.entries[i:min(i+8, len(h.entries))] {
					if err = e.apply(t, s); err != nil {
						break
					}
				}
				if err == nil {
					err = s.Commit()
				}
				if err == nil {
					err = s.Flush()
				}
				if err == nil {
					break
				}
			}
		}
		fault.Clear()
		verifyQueue(t, s, key{"t", 0}, h.entries)
		if rule.Fired() == 0 {
			if k < 10 {
				t.Fatalf("only %d operations could fail", k)
			}
			return
		}
	}
}

func newHistoryOf(t *testing.T, n int64) *history {
	h := &history{}
	for i := range n {
		e := entry{topic: "t", at: 3 + i + i/20*7, phy: i * 200}
		e.encode(t)
		h.entries = append(h.entries, e)
	}
	return h
}
