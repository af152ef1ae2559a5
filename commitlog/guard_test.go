package commitlog

import (
	"context"
	"errors"
	"io/fs"
	"math/bits"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/clock"
	"github.com/stratalog/stratalog/internal/vfs"
)

// guardNames returns the paths of the guards below a store's root.
func guardNames(t testing.TB, fsys vfs.FS, root string) []string {
	t.Helper()
	dir := path.Join(root, SidecarDir, "spare")
	entries, err := fsys.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name, guardSuffix) {
			names = append(names, path.Join(dir, e.Name))
		}
	}
	return names
}

// still is a log without tasks, whose segments have guards.
type still struct {
	t    *testing.T
	sim  *vfs.Sim
	log  *Log
	sent []contract.Receipt
}

func openStillSim(t *testing.T, sim *vfs.Sim, change func(*Options)) *still {
	t.Helper()
	opt := smallOptions(sim, "/store")
	opt.AdmissionWait = -1
	if change != nil {
		change(&opt)
	}
	log, err := openStill(opt, nil)
	if err != nil {
		t.Fatal(err)
	}
	pump(log)
	return &still{t: t, sim: sim, log: log}
}

// fill appends until the log has so many segments, the last of them in use.
func (s *still) fill(segments int) {
	s.t.Helper()
	for len(s.log.segs.Load().segs) < segments {
		s.append()
	}
	s.append()
}

func (s *still) append() {
	s.t.Helper()
	m := message("T", len(s.sent))
	r, err := s.log.Append(context.Background(), m, contract.DurabilitySync)
	if errors.Is(err, contract.ErrBusy) {
		pump(s.log) // the next segment has to be made
		r, err = s.log.Append(context.Background(), m, contract.DurabilitySync)
	}
	if err != nil {
		s.t.Fatalf("append: %v", err)
	}
	s.sent = append(s.sent, r)
	pump(s.log)
}

// lose deletes the name of the segment so many from the last.
func (s *still) lose(back int) string {
	s.t.Helper()
	segs := s.log.segs.Load().segs
	name := segs[len(segs)-1-back].file.Path()
	if err := s.sim.Remove(name); err != nil {
		s.t.Fatal(err)
	}
	return name
}

// holds checks that every record is in the log.
func (s *still) holds(log *Log) {
	s.t.Helper()
	for i, r := range s.sent {
		readBack(s.t, log, r, message("T", i))
	}
}

func (s *still) reopen(sim *vfs.Sim, change func(*Options)) *still {
	s.t.Helper()
	again := openStillSim(s.t, sim, change)
	again.sent = s.sent
	s.t.Cleanup(func() {
		if err := again.log.Close(false); err != nil {
			s.t.Error(err)
		}
	})
	return again
}

// A segment that another program deletes while the log has it open gets its name
// back: when the next one is made, at a close, and at the next open after a kill
// or a power cut.
func TestDeletedSegmentComesBack(t *testing.T) {
	for _, mapped := range []WritePath{WritePwrite, WriteMmap} {
		path := func(o *Options) { o.WritePath = mapped }
		for back := range 2 {
			s := openStillSim(t, vfs.NewSim(), path)
			s.fill(3)
			then := len(s.sent)
			name := s.lose(back)
			killed, cut := s.sim.Kill(), s.sim.Crash(vfs.AllNew())
			old := s.sim.Crash(vfs.AllOld())
			s.fill(5)
			if _, err := s.sim.Stat(name); err != nil || s.log.Stats().Restored != 1 {
				t.Fatalf("%v, %d restored", err, s.log.Stats().Restored)
			}
			s.lose(back)
			if err := s.log.Close(true); err != nil {
				t.Fatal(err)
			}
			if left := guardNames(t, s.sim, "/store"); len(left) > 0 {
				t.Fatalf("a closed log has guards: %v", left)
			}
			whole := s.reopen(s.sim, path)
			whole.holds(whole.log)
			s.sent = s.sent[:then]
			for i, sim := range []*vfs.Sim{killed, cut, old} {
				again := s.reopen(sim, path)
				again.holds(again.log)
				if got := again.log.Report().Restored; i < 2 && len(got) != 1 {
					t.Fatalf("restored %v", got)
				}
				if left := guardNames(t, sim, "/store"); len(left) > 1 {
					t.Fatalf("the guards of the last owner are there: %v", left)
				}
				again.fill(5)
				again.holds(again.log)
			}
		}
	}
}

// However many of the young segments are gone, all come back.
func TestManyDeletedComeBack(t *testing.T) {
	for mask := range 1 << 5 {
		s := openStillSim(t, vfs.NewSim(), nil)
		s.fill(4)
		for s.log.next == nil {
			s.append()
		}
		for i := range 5 {
			if mask>>i&1 != 0 {
				if err := s.sim.Remove("/store/commitlog/" + segmentName(contract.Offset(int64(i)*s.log.size))); err != nil {
					t.Fatal(err)
				}
			}
		}
		again := s.reopen(s.sim.Kill(), nil)
		again.holds(again.log)
		if got, want := len(again.log.Report().Restored), bits.OnesCount(uint(mask)); got != want && got != want-1 {
			t.Fatalf("%05b: restored %v", mask, again.log.Report().Restored)
		}
		if err := s.log.Close(true); err != nil {
			t.Fatal(err)
		}
		again = s.reopen(s.sim, nil)
		again.holds(again.log)
	}
}

// The next segment, deleted before it is used, is used all the same; and one that
// is not used any more becomes a spare.
func TestDeletedNextComesBack(t *testing.T) {
	s := openStillSim(t, vfs.NewSim(), nil)
	for s.log.next == nil {
		s.append()
	}
	id, err := s.log.next.file.Handle().Stat()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.sim.Remove(s.log.next.file.Path()); err != nil {
		t.Fatal(err)
	}
	s.fill(2)
	now, err := s.sim.Stat(s.log.active.file.Path())
	if err != nil || now.ID != id.ID {
		t.Fatalf("%v: the segment in use is %v, the one made ready was %v", err, now.ID, id.ID)
	}
	for s.log.next == nil {
		s.append()
	}
	next := s.log.next.file.Path()
	if err := s.sim.Remove(next); err != nil {
		t.Fatal(err)
	}
	if err := s.log.Close(true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.sim.Stat(next); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the unused segment is still there: %v", err)
	}
	again := s.reopen(s.sim, nil)
	again.holds(again.log)
	if name, err := again.log.spares.Ready(); name == "" || err != nil {
		t.Fatalf("no spare: %v", err)
	}
}

// A guard that outlives a cut, a retirement, a close in order or another owner
// brings nothing back.
func TestGuardOutlived(t *testing.T) {
	before := func(t *testing.T) *still {
		s := openStillSim(t, vfs.NewSim(), nil)
		s.fill(4)
		return s
	}
	check := func(t *testing.T, s *still, sim *vfs.Sim, change func(*Options), from, end contract.Offset) {
		t.Helper()
		again := s.reopen(sim, change)
		if again.log.MinOffset() != from || again.log.Appended() != end || len(again.log.Report().Restored) > 0 {
			t.Fatalf("log [%d,%d), restored %v; want [%d,%d)", again.log.MinOffset(), again.log.Appended(), again.log.Report().Restored, from, end)
		}
	}
	t.Run("cut", func(t *testing.T) {
		s := before(t)
		rng, _ := s.sent[3].Range()
		if err := s.log.TruncateTo(context.Background(), rng.Start, nil); err != nil {
			t.Fatal(err)
		}
		for _, choose := range []vfs.Chooser{vfs.AllOld(), vfs.AllNew(), nil} {
			sim := s.sim.Kill()
			if choose != nil {
				sim = s.sim.Crash(choose)
			}
			check(t, s, sim, nil, 0, rng.Start)
		}
	})
	t.Run("retired", func(t *testing.T) {
		s := before(t)
		start, err := s.log.Retire(contract.Offset(2 * s.log.size))
		if err != nil || start != contract.Offset(2*s.log.size) {
			t.Fatal(start, err)
		}
		if left := guardNames(t, s.sim, "/store"); len(left) == 0 || strings.Contains(left[0], segmentName(contract.Offset(s.log.size))) {
			t.Fatalf("guards %v", left)
		}
		check(t, s, s.sim.Crash(vfs.AllOld()), nil, start, s.log.Appended())
		check(t, s, s.sim.Kill(), nil, start, s.log.Appended())
	})
	t.Run("retired, and all the rest deleted", func(t *testing.T) {
		s := before(t)
		if _, err := s.log.Retire(contract.Offset(2 * s.log.size)); err != nil {
			t.Fatal(err)
		}
		sim := s.sim.Kill()
		for i := int64(2); i < 4; i++ {
			if err := sim.Remove("/store/commitlog/" + segmentName(contract.Offset(i*s.log.size))); err != nil {
				t.Fatal(err)
			}
		}
		again := s.reopen(sim, nil)
		if again.log.MinOffset() != contract.Offset(2*s.log.size) || again.log.Appended() != s.log.Appended() {
			t.Fatalf("log [%d,%d)", again.log.MinOffset(), again.log.Appended())
		}
	})
	t.Run("closed in order", func(t *testing.T) {
		s := before(t)
		end := s.log.Appended()
		if err := s.log.Close(true); err != nil {
			t.Fatal(err)
		}
		sim := s.sim.Crash(vfs.AllOld())
		opt := smallOptions(sim, "/store")
		name := "/store/commitlog/" + segmentName(contract.Offset(3*s.log.size))
		check(t, s, sim, nil, 0, end)
		sim = s.sim.Kill()
		if err := sim.Link(name, "/store/stratalog/spare/"+path.Base(name)+guardSuffix); err != nil {
			t.Fatal(err)
		}
		if err := sim.Remove(name); err != nil {
			t.Fatal(err)
		}
		opt.FS = sim
		if _, err := Open(context.Background(), opt); err == nil || !strings.Contains(err.Error(), "missing") {
			t.Fatalf("a guard vouched for a log that was closed: %v", err)
		}
	})
	t.Run("another owner", func(t *testing.T) {
		s := before(t)
		sim := s.sim.Kill()
		name := "/store/commitlog/" + segmentName(contract.Offset(3*s.log.size))
		if err := sim.Remove(name); err != nil {
			t.Fatal(err)
		}
		opt := smallOptions(sim, "/store")
		opt.Stranger = true
		log, err := Open(context.Background(), opt)
		if err == nil {
			if len(log.Report().Restored) > 0 || log.Appended() > contract.Offset(3*s.log.size) {
				t.Fatalf("%+v", log.Report())
			}
			_ = log.Close(false)
		}
	})
}

// Guards go when they are old, but those of the last two.
func TestGuardsGo(t *testing.T) {
	clk := clock.NewManual(time.Unix(1_700_000_000, 0))
	s := openStillSim(t, vfs.NewSim(), func(o *Options) { o.Clock = clk })
	s.fill(5)
	if n := len(guardNames(t, s.sim, "/store")); n < 4 {
		t.Fatalf("%d guards", n)
	}
	s.fill(guardMost + 7)
	if n := len(guardNames(t, s.sim, "/store")); n > guardMost+1 || n < guardMost {
		t.Fatalf("%d guards", n)
	}
	clk.Advance(guardTime + time.Second)
	s.fill(guardMost + 8)
	for s.log.next == nil {
		s.append()
	}
	if n := len(guardNames(t, s.sim, "/store")); n != 2 || n != len(s.log.guards) {
		t.Fatalf("%d guards, %v", n, s.log.guards)
	}
	if err := s.log.Close(true); err != nil {
		t.Fatal(err)
	}
}

// Where the file system has no links, a deleted segment fences the log as soon as
// it is seen.
func TestNoLinks(t *testing.T) {
	s := openStillSim(t, vfs.NewSimOptions(vfs.SimOptions{NoLinks: true}), nil)
	s.fill(2)
	if left := guardNames(t, s.sim, "/store"); len(left) > 0 {
		t.Fatalf("guards %v", left)
	}
	s.lose(0)
	var err error
	for i := 0; err == nil; i++ {
		_, err = s.log.Append(context.Background(), message("T", i), contract.DurabilitySync)
		pump(s.log)
	}
	if !errors.Is(err, contract.ErrFenced) {
		t.Fatal(err)
	}
	if err := s.log.Close(false); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, contract.ErrFenced) {
		t.Fatal(err)
	}
}
