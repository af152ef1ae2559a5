package index

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// fullLog puts a log of so many records into an index on fsys, and flushes it.
func fullLog(t *testing.T, fsys vfs.FS, opts Options, records int) (*log, *Store) {
	t.Helper()
	s := mustOpen(t, fsys, opts)
	l := newLog(rand.New(rand.NewPCG(11, 11)), 0)
	for range records {
		mustApply(t, s, l.grow())
	}
	must(t, s.Flush())
	return l, s
}

// A search reads through mappings alone; where there are none it finds the same.
func TestMappedOrRead(t *testing.T) {
	for _, refused := range []error{nil, errors.ErrUnsupported, syscall.ENOMEM} {
		fault := vfs.NewFault(newSim(t))
		if refused != nil {
			fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpMap), Err: refused, Sticky: true})
		}
		l, s := fullLog(t, fault, small(), 60)
		maps := fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpMap), Hook: func(vfs.Op) {}, Sticky: true})
		reads := fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpRead), Hook: func(vfs.Op) {}, Sticky: true})
		l.verifyBelow(t, s, l.phy)
		reader := mustOpen(t, fault, Options{ReadOnly: true})
		before := reads.Fired()
		l.verifyBelow(t, reader, l.phy)
		if refused == nil && (reads.Fired() != before || maps.Fired() == 0) {
			t.Errorf("%d reads, %d mappings", reads.Fired()-before, maps.Fired())
		}
		if refused != nil && reads.Fired() == before {
			t.Errorf("%v: nothing was read", refused)
		}
		lasting := refused == nil || errors.Is(refused, errors.ErrUnsupported)
		if lasting && maps.Fired() > 2*len(s.list) {
			t.Errorf("%v: %d tries to map %d files", refused, maps.Fired(), len(s.list))
		}
	}
}

// No more files stay open, or mapped, than was said, and none behind a close.
func TestMappedBound(t *testing.T) {
	fsys := &counted{FS: newSim(t)}
	opts := small()
	opts.MaxHandles = 3
	l, s := fullLog(t, fsys, opts, 150)
	for range 3 {
		l.verifyBelow(t, s, l.phy)
		if n := fsys.open.Load(); len(s.maps.kept) != 3 || n > 6 {
			t.Errorf("%d mappings, %d open files", len(s.maps.kept), n)
		}
	}
	// One that is asked for all the time stays.
	last := s.list[len(s.list)-1]
	m, err := s.maps.acquire(last)
	must(t, err)
	for _, f := range s.list[:len(s.list)-1] {
		other, err := s.maps.acquire(f)
		must(t, err)
		other.Release()
		again, err := s.maps.acquire(last)
		must(t, err)
		if again != m {
			t.Fatal("mapped anew")
		}
		again.Release()
	}
	m.Release()
	must(t, s.Close())
	if n := fsys.open.Load(); n != 0 {
		t.Errorf("%d files left open", n)
	}
	if m, err := s.maps.acquire(last); m != nil || err != nil {
		t.Error(m, err)
	}
}

// A page that cannot be brought in is an error of that search, and no damage.
func TestMappedReadError(t *testing.T) {
	fault := vfs.NewFault(newSim(t))
	l, _ := fullLog(t, fault, small(), 60)
	s := mustOpen(t, fault, Options{ReadOnly: true})
	rule := fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpPopulate), Err: syscall.EIO, Sticky: true})
	_, err := query(t, s, l, Query{Topic: topics[0], Key: words[0]}, 0, 10)
	if !errors.Is(err, syscall.EIO) || errors.Is(err, contract.ErrCorrupt) {
		t.Errorf("%v", err)
	}
	rule.Remove()
	l.verifyBelow(t, s, l.phy)
	rule = fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpPopulate), Hook: func(vfs.Op) {}, Sticky: true})
	for range warmUses + 1 {
		if _, _, err = s.Search(context.Background(), Query{Topic: topics[0], Key: words[0]}, Position{}, &counter{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := rule.Fired(); n == 0 || n > warmUses/10 {
		t.Errorf("%d pieces brought in again in %d searches of %d files", n, warmUses, len(s.list))
	}
}

// What a search looks at is not cut under it; behind the cut it is mapped again.
func TestMappedCutWaits(t *testing.T) {
	sim := newSim(t)
	opts := small()
	opts.MaxHandles = 2
	l, s := fullLog(t, sim, opts, 60)
	f := s.list[len(s.list)-2]
	m, err := s.maps.acquire(f)
	must(t, err)
	// Two others: the one in use is not kept any more.
	for _, other := range []int{0, 1, 2, 0, 1, 2} {
		o, err := s.maps.acquire(s.list[other])
		must(t, err)
		o.Release()
	}
	done := make(chan error)
	to := f.head.BeginPhysicalOffset + 1
	go func() { done <- s.RollBack(contract.Offset(to)) }()
	select {
	case err := <-done:
		t.Fatal("cut under a lease", err)
	case <-time.After(20 * time.Millisecond):
	}
	m.Release()
	must(t, <-done)
	l.verifyBelow(t, s, to)
	again, err := s.maps.acquire(f)
	must(t, err)
	if again == nil || again == m {
		t.Fatal("not mapped again")
	}
	again.Release()
}

// Where there are no holes to be punched, a cut writes zeros: the file is never
// shorter than its mappings.
func TestCutNeverShortens(t *testing.T) {
	for _, keep := range []int{3, 11, 29, 47} {
		fault := vfs.NewFault(newSim(t))
		opts := small()
		var l *log
		opts.StoreTime = func(off contract.Offset) (int64, bool, error) { return l.storeTime(off) }
		var s *Store
		l, s = fullLog(t, fault, opts, 60)
		fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpPunchHole), Err: errors.ErrUnsupported, Sticky: true})
		fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpTruncate), Sticky: true, Hook: func(op vfs.Op) {
			if op.Length < s.fileSize() {
				t.Errorf("%s shortened to %d", op.Path, op.Length)
			}
		}})
		to := l.records[keep].phy
		must(t, s.RollBack(contract.Offset(to)))
		l.records, l.phy = l.records[:keep], to
		l.verify(t, s, 0, l.phy)
		must(t, s.Flush())
		sameContents(t, contents(t, fault), l.rebuild(t, opts, 0, l.phy))
	}
}
