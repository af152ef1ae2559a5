package stratalog

import (
	"context"
	"path"
	"slices"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/internal/vfs"
)

// foreignRecord puts a record as Java brokers write them, without a checksum over
// all of it, behind the end of the log, and returns where it ends.
func foreignRecord(t *testing.T, sim *vfs.Sim, opt Options, end Offset, at int64) Offset {
	t.Helper()
	m := codec.Message{Magic: codec.MessageMagicV1, QueueOffset: at, PhysicalOffset: int64(end), StoreTimestamp: 1_800_000_000_000,
		BornHost: make([]byte, 8), StoreHost: make([]byte, 8), Topic: []byte("t"), Body: []byte("java")}
	b := make([]byte, m.Size())
	if _, err := m.Encode(b); err != nil {
		t.Fatal(err)
	}
	writeFile(t, sim, segment(opt, int64(end)/opt.SegmentSize), int64(end)%opt.SegmentSize, b, false)
	return end + Offset(len(b))
}

// brokerRan does what a broker does that starts, is killed or stops, and, with
// appended, takes one append: the word in the lock file, durable before anything
// else; abort with its bare process id.
func brokerRan(t *testing.T, sim *vfs.Sim, opt Options, end Offset, stopped, appended bool) {
	t.Helper()
	writeFile(t, sim, path.Join(opt.Dir, lockName), 0, []byte("lock"), false)
	writeFile(t, sim, path.Join(opt.Dir, abortName), 0, []byte("4711"), true)
	if appended {
		foreignRecord(t, sim, opt, end, 60)
	}
	if stopped {
		if err := sim.Remove(path.Join(opt.Dir, abortName)); err != nil {
			t.Fatal(err)
		}
	}
}

// logEnd is where the log of a store ends. The bound may lie below that: while it
// is being synced it stays as it is.
func logEnd(t *testing.T, sim *vfs.Sim, opt Options) Offset {
	t.Helper()
	opt.FS = sim
	r, err := OpenReader(context.Background(), opt, ReaderOptions{Appended: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return r.log.Confirmed()
}

// TestWhoRanLast: we were killed or closed, a Java broker ran after us, took an
// append and was killed or stopped, and the power may have gone before its abort
// file was on the disk. Its record carries no checksum over all of it, which is
// Java's default; where we were killed it was once taken for a torn tail of ours,
// and cut. A crash at any operation of the open that finds it must not make the
// next one forget whose it is.
func TestWhoRanLast(t *testing.T) {
	const known = "closed well"
	for _, c := range []struct {
		name             string
		killed, stopped  bool
		abortLost, torn  bool
		start            string
		foreign, unclean bool
	}{
		{"killed, broker killed", true, false, false, false, "not closed by another program", true, true},
		{"killed, broker killed in an append", true, false, false, true, "not closed by another program", true, true},
		{"killed, broker and power", true, false, true, false, "not closed by another program", true, true},
		{"killed, broker stopped", true, true, false, false, "closed by another program", true, false},
		{"closed, broker killed", false, false, false, false, known, true, true},
		{"closed, broker killed in an append", false, false, false, true, known, true, true},
		{"closed, broker and power", false, false, true, false, known, true, false},
		{"closed, broker stopped", false, true, false, false, known, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			image, opt := smallStore(t, c.killed)
			image = image.Kill()
			end := logEnd(t, image, opt)
			abort := path.Join(opt.Dir, abortName)
			var ours []byte
			if c.killed {
				ours = readFile(t, image, abort)
			}
			brokerRan(t, image, opt, end, c.stopped, true)
			if c.torn {
				next := foreignRecord(t, image, opt, end, 60)
				writeFile(t, image, segment(opt, int64(next)/opt.SegmentSize), int64(next)%opt.SegmentSize, []byte{0, 0, 0, 99, 0xDA}, false)
			}
			if c.abortLost {
				if c.killed {
					writeFile(t, image, abort, 0, ours, true)
				} else if err := image.Remove(abort); err != nil {
					t.Fatal(err)
				}
			}
			readsBroker(t, image, opt, end)
			image = image.Crash(vfs.AllNew()) // what the broker wrote is durable
			images := []*vfs.Sim{image.Kill()}
			image.OnOp(func(op vfs.Op) {
				if vfs.MutatingOps.Has(op.Kind) || vfs.SyncOps.Has(op.Kind) {
					images = append(images, image.Kill(), image.Crash(vfs.AllOld()))
				}
			})
			opt.FS = image
			s := start(t, opt)
			image.OnOp(nil)
			if l := s.Report().Log; l.Start != c.start || l.Foreign != c.foreign || s.Report().Unclean != c.unclean || !s.Report().Stranger {
				t.Errorf("the log was %q, foreign %v, unclean %v, stranger %v", l.Start, l.Foreign, s.Report().Unclean, s.Report().Stranger)
			}
			// From here on it is ours again: after a power cut what we had synced is
			// judged as ours, by the bound.
			mustAppend(t, s, &Message{Topic: "t", Body: body(1)}, Sync)
			after := image.Crash(vfs.AllOld())
			images = append(images, image.Kill(), after)
			abandon(t, s)
			for i, one := range images {
				opt.FS = one
				s, err := Open(context.Background(), opt)
				if err != nil {
					t.Fatalf("image %d: %v", i, err)
				}
				hasBroker(t, s, end)
				want := int64(61)
				if i >= len(images)-2 {
					want = 62
					if l := s.Report().Log; l.Start != "not closed" || l.Foreign || s.Report().Stranger {
						t.Errorf("our own death: the log was %q, foreign %v, stranger %v", l.Start, l.Foreign, s.Report().Stranger)
					}
				}
				if _, got := s.QueueRange("t", 0); got != want {
					t.Errorf("image %d: queue 0 ends at %d, want %d", i, got, want)
				}
				abandon(t, s)
			}
			t.Logf("%d images", len(images))
		})
	}
}

// hasBroker wants the broker's record at end.
func hasBroker(t *testing.T, s interface {
	GetAt(context.Context, Offset, *Record) (bool, error)
}, end Offset) {
	t.Helper()
	var r Record
	found, err := s.GetAt(context.Background(), end, &r)
	if err != nil || !found || string(r.Body()) != "java" {
		t.Errorf("the broker's record is gone: found %v, %v", found, err)
	}
	r.Release()
}

// readsBroker: a reader sees what the broker appended, while it runs and before
// our store has been opened again.
func readsBroker(t *testing.T, sim *vfs.Sim, opt Options, end Offset) {
	t.Helper()
	opt.FS = sim
	r, err := OpenReader(context.Background(), opt, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hasBroker(t, r, end)
	v, err := r.Verify(context.Background(), func(f Finding) {
		if f.Severity == Fault {
			t.Errorf("verify: %+v", f)
		}
	})
	if err != nil || v.Unverified != 1 {
		t.Errorf("verify: %+v, %v", v, err)
	}
	if !r.Inspect().Stranger || r.Inspect().Bounded {
		t.Errorf("inspect: %+v", r.Inspect())
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// A reader that stays open takes up what a broker appends that starts later.
func TestReaderFollowsBroker(t *testing.T) {
	for _, killed := range []bool{false, true} {
		image, opt := smallStore(t, killed)
		r, err := OpenReader(context.Background(), opt, ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		end := logEnd(t, image, opt)
		brokerRan(t, image, opt, end, false, true)
		if err := r.Refresh(context.Background()); err != nil {
			t.Fatal(err)
		}
		hasBroker(t, r, end)
		// And still when our store has taken over.
		opt.FS = image
		s := start(t, opt)
		mustAppend(t, s, &Message{Topic: "t", Body: body(1)}, Sync)
		if err := r.Refresh(context.Background()); err != nil {
			t.Fatal(err)
		}
		hasBroker(t, r, end)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		closeClean(t, s)
	}
}

// Whoever opens a store that no broker has been at pays nothing for it, and an
// open that fails does not make the log forget a broker.
func TestLockFileIsClearedOnce(t *testing.T) {
	sim, opt := smallStore(t, false)
	cleared := 0
	sim.OnOp(func(op vfs.Op) {
		if op.Kind == vfs.OpTruncate && op.Path == path.Join(opt.Dir, lockName) {
			cleared++
		}
	})
	closeClean(t, start(t, opt))
	if cleared != 0 {
		t.Errorf("cleared %d times without need", cleared)
	}
	brokerRan(t, sim, opt, logEnd(t, sim, opt), true, false)
	fault := vfs.NewFault(sim)
	opt.FS = fault
	rule := fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpTruncate), Path: lockName, Sticky: true, Err: errNoSpace})
	if s, err := Open(context.Background(), opt); err == nil {
		abandon(t, s)
		t.Error("opened although the lock file was not cleared")
	}
	rule.Remove()
	s := start(t, opt)
	if !s.Report().Stranger || cleared != 1 {
		t.Errorf("stranger %v, cleared %d times", s.Report().Stranger, cleared)
	}
	closeClean(t, s)
	s = start(t, opt)
	if s.Report().Stranger || cleared != 1 {
		t.Errorf("closed: stranger %v, cleared %d times", s.Report().Stranger, cleared)
	}
	closeClean(t, s)
}

// withoutSidecar takes our own files away, as if a broker alone had written here.
func withoutSidecar(t *testing.T, sim *vfs.Sim, opt Options) {
	t.Helper()
	for _, name := range []string{"state", "bound", "cursors"} {
		if err := sim.Remove(path.Join(opt.Dir, "stratalog", name)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBytesBehindClosedLog: a broker that recovers cuts in memory only, so that a
// directory it closed may have bytes behind the last record. They are let go if the
// last queue entry leads to that record; a record that is damaged has an entry, and
// must not be taken for such bytes.
func TestBytesBehindClosedLog(t *testing.T) {
	stale, opt := smallStore(t, false)
	end := logEnd(t, stale, opt)
	withoutSidecar(t, stale, opt)
	damaged := stale.Kill()
	seg, at := segment(opt, int64(end)/opt.SegmentSize), int64(end)%opt.SegmentSize
	writeFile(t, stale, seg, at, []byte("stale bytes"), false)
	flip(t, damaged, seg, at-100)

	verify := func(sim *vfs.Sim) (kinds []string) {
		opt.FS = sim
		r, err := OpenReader(context.Background(), opt, ReaderOptions{Salvage: true})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := r.Verify(context.Background(), func(f Finding) {
			if f.File == seg {
				kinds = append(kinds, string(f.Severity)+" "+f.Kind)
			}
		}); err != nil {
			t.Fatal(err)
		}
		return kinds
	}
	if got := verify(stale); !slices.Equal(got, []string{"note torn-tail"}) {
		t.Errorf("stale bytes: verify found %q", got)
	}
	if got := verify(damaged); !slices.Equal(got, []string{"fault damage"}) {
		t.Errorf("a damaged last record: verify found %q", got)
	}
	opt.FS = damaged
	if s, err := Open(context.Background(), opt); err == nil {
		abandon(t, s)
		t.Error("opened with a damaged last record")
	}
	opt.FS = stale
	s := start(t, opt)
	if l := s.Report().Log; l.Tail != "bytes behind the last entry of a closed log, no bound" || l.Cut.Start != end {
		t.Errorf("%+v", l)
	}
	closeClean(t, s)
}

// A reader of a log without a bound goes on behind a damaged record: what follows
// is there, and only the record itself is an error.
func TestReaderPassesOverDamage(t *testing.T) {
	sim, opt := smallStore(t, false)
	end := logEnd(t, sim, opt)
	withoutSidecar(t, sim, opt)
	flipRecord(t, sim, opt, 5)
	opt.FS = sim
	r, err := OpenReader(context.Background(), opt, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 2 {
		if got := r.log.Confirmed(); got != end {
			t.Errorf("the log ends at %d, want %d", got, end)
		}
		if _, max := r.QueueRange("t", 0); max != 60 {
			t.Errorf("queue 0 ends at %d, want 60", max)
		}
		if err := r.Refresh(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNextSegmentDeleted: a broker that is started by mistake beside us deletes the
// empty segment that stands ready. The log then makes another one at the roll; it
// once acknowledged records into the file without a name.
func TestNextSegmentDeleted(t *testing.T) {
	for name, closed := range map[string]bool{"killed": false, "closed": true} {
		t.Run(name, func(t *testing.T) {
			sim := vfs.NewSim()
			opt := testOptions(sim, "/root/store")
			opt.SegmentSize, opt.QueueFileSize = 16<<10, 400
			s := start(t, opt)
			acked := 0
			put := func(n int) {
				for range n {
					mustAppend(t, s, &Message{Topic: "t", Body: body(acked)}, Sync)
					acked++
				}
			}
			for range 3 {
				var next string
				until(t, "the next segment is there", func() bool {
					put(1)
					segments := s.log.Segments()
					next = segment(opt, int64(segments[len(segments)-1].Base)/opt.SegmentSize+1)
					_, err := sim.Stat(next)
					return err == nil
				}, nil)
				if err := sim.Remove(next); err != nil {
					t.Fatal(err)
				}
				for before := s.log.Stats().Rolls; s.log.Stats().Rolls == before; {
					put(1)
				}
				put(5)
			}
			image := sim
			if closed {
				closeClean(t, s)
			} else {
				image = sim.Crash(vfs.AllOld())
				defer closeClean(t, s)
			}
			opt.FS = image
			again := start(t, opt)
			if _, end := again.QueueRange("t", 0); end != int64(acked) {
				t.Errorf("%d records, %d were acknowledged", end, acked)
			}
			closeClean(t, again)
		})
	}
}

// A store whose next segment was deleted is closed in order all the same.
func TestCloseNextSegmentDeleted(t *testing.T) {
	sim, opt := smallStore(t, false)
	s := start(t, opt)
	var next string
	until(t, "the next segment is there", func() bool {
		mustAppend(t, s, &Message{Topic: "t", Body: body(1)}, Sync)
		segments := s.log.Segments()
		next = segment(opt, int64(segments[len(segments)-1].Base)/opt.SegmentSize+1)
		_, err := sim.Stat(next)
		return err == nil
	}, nil)
	if err := sim.Remove(next); err != nil {
		t.Fatal(err)
	}
	closeClean(t, s)
}
