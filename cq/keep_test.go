package cq

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// row returns n records of queue 0 of a topic, one behind the other.
func row(t *testing.T, topic string, n int) []entry {
	var all []entry
	for i, phy := 0, int64(1000); i < n; i++ {
		e := entry{topic: topic, at: int64(i), phy: phy}
		e.encode(t)
		all, phy = append(all, e), e.end()
	}
	return all
}

// shows fails unless queue 0 of a topic reads as the records say.
func shows(t *testing.T, s *Store, topic string, all []entry) {
	t.Helper()
	units := make([]codec.QueueUnit, len(all)+1)
	n, err := s.Units(topic, 0, 0, units)
	if err != nil || n != len(all) {
		t.Fatalf("%d units of %d, %v", n, len(all), err)
	}
	for i := range all {
		if units[i] != all[i].unit() {
			t.Fatalf("unit %d is %+v, want %+v", i, units[i], all[i].unit())
		}
	}
}

// Files that another program deletes are there again behind the next Flush, durable
// and whole, also those that nobody writes to any more, and if the directory went with
// them.
func TestDeletedFilesAreWrittenAnew(t *testing.T) {
	for _, dir := range []bool{false, true} {
		sim := newSim(t)
		s := mustOpen(t, sim, Options{FileSize: 400})
		all := row(t, "t", 70)
		for i := 0; i < 60; i += 20 {
			mustApply(t, s, all[i:i+20]...)
			must(t, s.Flush())
		}
		for i := range 3 {
			must(t, sim.Remove("/store/consumequeue/t/0/"+fileName(int64(i)*400)))
		}
		if dir {
			must(t, sim.Remove("/store/consumequeue/t/0"))
			must(t, sim.Remove("/store/consumequeue/t"))
			must(t, sim.SyncDir("/store/consumequeue"))
			must(t, sim.MkdirAll("/store/consumequeue/t/0")) // the next file needs it
		}
		mustApply(t, s, all[60:]...)
		must(t, s.Flush())
		if got := s.Stats().Restored; got != 3 {
			t.Errorf("%d files were written anew, want 3", got)
		}
		shows(t, s, "t", all)
		after := mustOpen(t, sim.Crash(vfs.AllOld()), Options{FileSize: 400})
		if suspects := after.LoadReport().Suspects; len(suspects) > 0 {
			t.Errorf("%+v", suspects)
		}
		shows(t, after, "t", all)
	}
}

// A file that cannot be written anew has no name, and not that of half a file: then,
// and if it is not open any more, the tally is one that the files never have.
func TestDeletedFileIsNotForgotten(t *testing.T) {
	for at := 0; ; at++ {
		sim := newSim(t)
		fault := vfs.NewFault(sim)
		s := mustOpen(t, fault, Options{FileSize: 400})
		all := row(t, "t", 25)
		mustApply(t, s, all[:20]...)
		must(t, s.Flush())
		must(t, sim.Remove("/store/consumequeue/t/0/"+fileName(0)))
		mustApply(t, s, all[20:]...)
		rule := fault.Add(vfs.Rule{Kinds: vfs.MutatingOps | vfs.SyncOps, At: at, Err: syscall.EIO})
		err := s.Flush()
		if rule.Fired() == 0 {
			break
		}
		fault.Clear()
		if _, gone := sim.Stat("/store/consumequeue/t/0/" + fileName(0)); err != nil && gone == nil {
			// Only the syncs behind it failed.
			if dead, err := Open(sim.Kill(), "/store/consumequeue", Options{FileSize: 400}); err != nil || dead.lookup("t", 0).first.Load() != 0 {
				t.Errorf("op %d: %v", at, err)
			} else {
				must(t, dead.Close())
			}
		}
		must(t, s.files.forget(s.lookup("t", 0), 0))
		for range 3 {
			// What a failed sync took back comes again.
			if mustApply(t, s, all[20:]...); s.Flush() == nil {
				break
			}
		}
		must(t, s.Flush())
		first, _ := sim.Stat("/store/consumequeue/t/0/" + fileName(0))
		if tally := s.TallyFor(1 << 40); (first.Size == 400) != (tally == 25) {
			t.Errorf("op %d: tally %d, the file %+v", at, tally, first)
		}
	}
}

// A directory that is gone fails no Flush for ever, if nothing is to be written there.
func TestIdleTopicGone(t *testing.T) {
	sim := newSim(t)
	s, err := Open(sim, "/store/consumequeue", Options{FileSize: 400})
	must(t, err)
	idle, busy := row(t, "idle", 5), row(t, "busy", 5)
	mustApply(t, s, idle...)
	mustApply(t, s, busy[:3]...)
	must(t, s.Flush())
	must(t, s.Close())
	s = mustOpen(t, sim, Options{FileSize: 400})
	all := func(string, int32, int64, codec.QueueUnit) (bool, error) { return true, nil }
	_, err = s.TruncateAbove(contract.Offset(idle[4].end()), all, nil)
	must(t, err)
	for _, name := range []string{"/0/" + fileName(0), "/0", ""} {
		must(t, sim.Remove("/store/consumequeue/idle"+name))
	}
	mustApply(t, s, busy...)
	must(t, s.Flush())
	if got := s.TallyFor(1 << 40); got != 11 {
		t.Errorf("tally %d, want that of 10 units and one more", got)
	}
}

// What is left of a file that was being written anew goes at the next Open.
func TestAnewIsDropped(t *testing.T) {
	sim := newSim(t)
	for _, dir := range []string{"/store/consumequeue", "/store/batchconsumequeue"} {
		must(t, sim.MkdirAll(dir))
		f, err := sim.Open(dir+"/"+anewName, vfs.ReadWrite|vfs.Create)
		must(t, err)
		must(t, f.Close())
	}
	mustOpen(t, sim, Options{ReadOnly: true})
	if _, err := sim.Stat("/store/consumequeue/" + anewName); err != nil {
		t.Error(err)
	}
	mustOpen(t, sim, Options{})
	for _, dir := range []string{"/store/consumequeue", "/store/batchconsumequeue"} {
		if list, err := sim.ReadDir(dir); err != nil || len(list) > 0 {
			t.Error(fmt.Sprint(list), err)
		}
	}
}

// TestBatchDirectoryGone is TestDeletedFilesAreWrittenAnew for a batch queue.
func TestBatchDirectoryGone(t *testing.T) {
	sim := newSim(t)
	s := mustOpen(t, sim, Options{FileSize: 400, BatchFileSize: 92})
	phy := int64(1000)
	for i := range int64(7) {
		g := &group{topic: "b", base: i, n: 1, phy: phy}
		g.encode(t)
		g.apply(t, s)
		phy = g.end()
	}
	must(t, s.Commit())
	for i := range 4 {
		must(t, sim.Remove("/store/batchconsumequeue/b/0/"+fileName(int64(i)*92)))
	}
	must(t, sim.Remove("/store/batchconsumequeue/b/0"))
	must(t, sim.Remove("/store/batchconsumequeue/b"))
	must(t, s.Flush())
	after := mustOpen(t, sim.Crash(vfs.AllOld()), Options{FileSize: 400, BatchFileSize: 92})
	if from, to := after.Batch("b", 0).Range(); from != 0 || to != 7 {
		t.Errorf("from %d to %d", from, to)
	}
}
