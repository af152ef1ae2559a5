package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"testing"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "/any/thing", true},
		{"*", "/any/thing", true},
		{"*.log", "/d/a.log", true},
		{"*.log", "a.log", true},
		{"*.log", "/a.log/b", false},
		{"spare/*", "/store/spare/x", true},
		{"spare/*", "spare/x", true},
		{"spare/*", "/store/spares/x", false},
		{"spare/*", "x", false},
		{"/store/*", "/store/x", true},
		{"/store/*", "/root/store/x", false},
		{"*", "/", true},
		{"[", "[", false},
	} {
		if got := Match(c.pattern, c.name); got != c.want {
			t.Errorf("Match(%q, %q) is %v", c.pattern, c.name, got)
		}
	}
}

// save replaces a file in the way that survives everything.
func save(fsys FS, content string) error {
	f, err := fsys.Open("/tmp", ReadWrite|Create)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(0); err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte(content), 0); err != nil {
		return err
	}
	if err := f.Datasync(); err != nil {
		return err
	}
	if err := fsys.Rename("/tmp", "/file"); err != nil {
		return err
	}
	return fsys.SyncDir("/")
}

func TestFaultAtEachOperation(t *testing.T) {
	runs := 0
	for k := 0; ; k++ {
		sim := NewSim()
		check(t, save(sim, "old"))
		fault := NewFault(sim)
		rule := fault.Add(Rule{Kinds: MutatingOps | SyncOps, At: k, Err: syscall.EIO})
		err := save(fault, "new")
		if rule.Fired() == 0 {
			check(t, err)
			break
		}
		runs++
		wantErr(t, err, syscall.EIO)
		for mask := range uint64(1) << sim.PendingCount() {
			got := content(t, sim.Crash(Mask(mask)), "/file")
			if got != "old" && got != "new" {
				t.Errorf("fault %d, crash %b: the file holds %q", k, mask, got)
			}
		}
	}
	if runs != 6 {
		t.Errorf("%d faults, want 6", runs)
	}
}

func TestFaultRules(t *testing.T) {
	sim := NewSim()
	f := NewFault(sim)
	a := create(t, f, "/a", "0123456789")
	b := create(t, f, "/b", "0123456789")

	once := f.Add(Rule{Kinds: KindsOf(OpSync), Path: "a", At: 1, Err: syscall.EIO})
	check(t, b.Sync())
	check(t, a.Sync())
	wantErr(t, a.Sync(), syscall.EIO)
	check(t, a.Sync())
	if once.Matched() != 3 || once.Fired() != 1 {
		t.Errorf("matched %d, fired %d", once.Matched(), once.Fired())
	}

	sticky := f.Add(Rule{Kinds: KindsOf(OpWrite), Sticky: true, Err: syscall.ENOSPC, Short: 3})
	for range 2 {
		n, err := a.WriteAt([]byte("abcdef"), 0)
		wantErr(t, err, syscall.ENOSPC)
		if n != 3 {
			t.Errorf("wrote %d bytes", n)
		}
	}
	if got := content(t, sim, "/a"); got != "abc3456789" {
		t.Errorf("content %q", got)
	}
	sticky.Remove()
	_, err := a.WriteAt([]byte("abcdef"), 0)
	check(t, err)

	f.Add(Rule{Kinds: KindsOf(OpRead), Path: "/a", Err: syscall.EIO, Short: 2})
	buf := make([]byte, 4)
	n, err := a.ReadAt(buf, 0)
	wantErr(t, err, syscall.EIO)
	if n != 2 {
		t.Errorf("read %d bytes", n)
	}
	f.Add(Rule{Kinds: KindsOf(OpRead), Corrupt: func(p []byte, off int64) { p[0] ^= 1 }})
	_, err = a.ReadAt(buf, 0)
	check(t, err)
	if string(buf) != "`bcd" {
		t.Errorf("read %q", buf)
	}

	f.Add(Rule{Kinds: KindsOf(OpRename), Path: "z", Err: syscall.EXDEV})
	wantErr(t, f.Rename("/a", "/z"), syscall.EXDEV)
	f.Add(Rule{Only: func(op Op) bool { return op.Kind == OpClose }, Err: syscall.EIO})
	wantErr(t, b.Close(), syscall.EIO)
	wantErr(t, b.Close(), fs.ErrClosed)
	f.Add(Rule{Err: syscall.EMFILE, Sticky: true})
	_, err = f.Open("/a", ReadOnly)
	wantErr(t, err, syscall.EMFILE)
	_, err = f.Lock("/lock")
	wantErr(t, err, syscall.EMFILE)
	_, err = f.Stat("/a")
	wantErr(t, err, syscall.EMFILE)
	f.Clear()
	check(t, a.Sync())
}

func TestFaultLies(t *testing.T) {
	sim := NewSim()
	f := NewFault(sim)
	a := create(t, f, "/a", "old")
	check(t, a.Allocate(0, 4096))
	check(t, a.Sync())
	check(t, f.SyncDir("/"))
	m, err := a.Map(4096, true)
	check(t, err)
	f.Add(Rule{Kinds: MutatingOps | SyncOps, Sticky: true, Lie: true})
	n, err := a.WriteAt([]byte("new"), 0)
	check(t, err)
	if n != 3 {
		t.Errorf("wrote %d bytes", n)
	}
	m.WriteAt([]byte("new"), 0)
	check(t, a.Sync())
	check(t, f.Remove("/a"))
	check(t, f.SyncDir("/"))
	check(t, m.Unmap())
	if got := content(t, sim, "/a")[:3]; got != "old" || sim.PendingCount() != 0 {
		t.Errorf("content %q, pending %v", got, sim.Pending())
	}
}

func TestFaultBlocks(t *testing.T) {
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprint("after=", after), func(t *testing.T) {
			sim := NewSim()
			f := NewFault(sim)
			a := create(t, f, "/a", "one")
			check(t, f.SyncDir("/"))
			release, reached := make(chan struct{}), make(chan struct{})
			f.Add(Rule{Kinds: KindsOf(OpDatasync), After: after, Block: release,
				Hook: func(Op) { close(reached) }})
			done := make(chan error)
			go func() { done <- a.Datasync() }()
			<-reached
			_, err := a.WriteAt([]byte("two"), 0)
			check(t, err)
			select {
			case <-done:
				t.Error("the sync did not wait")
			default:
			}
			close(release)
			check(t, <-done)
			want := "two"
			if after {
				want = "one" // Written when the sync had done its work.
			}
			if got := content(t, sim.Crash(AllOld()), "/a"); got != want {
				t.Errorf("content %q, want %q", got, want)
			}
		})
	}
}

func TestTrace(t *testing.T) {
	tr := NewTrace(NewSim())
	var told []string
	tr.OnOp(func(op Op, n int, err error) {
		told = append(told, fmt.Sprintf("%d %s %d %v", op.Seq, op.Kind, n, err))
	})
	f := create(t, tr, "/a", "12345")
	check(t, f.Sync())
	check(t, f.Datasync())
	check(t, tr.SyncDir("/"))
	m, err := f.Map(5, true)
	check(t, err)
	m.WriteAt([]byte("abc"), 0)
	check(t, m.Unmap())
	buf := make([]byte, 9)
	if n, err := f.ReadAt(buf, 0); n != 5 || err != io.EOF {
		t.Errorf("read %d, %v", n, err)
	}
	if _, err := tr.Stat("/b"); err == nil {
		t.Error("found what is not there")
	}
	if tr.Syncs() != 2 || tr.DirSyncs() != 1 || tr.Writes() != 2 || tr.BytesWritten() != 8 ||
		tr.BytesRead() != 5 || tr.Failed() != 1 || tr.Count(OpCreate) != 1 || tr.Count() != 10 {
		t.Errorf("counted %d syncs, %d of directories, %d writes of %d bytes, read %d, %d failed of %d",
			tr.Syncs(), tr.DirSyncs(), tr.Writes(), tr.BytesWritten(), tr.BytesRead(), tr.Failed(), tr.Count())
	}
	if len(told) != 10 || told[1] != "2 write 5 <nil>" {
		t.Errorf("told %q", told)
	}
	tr.OnOp(nil)
	tr.Reset()
	if tr.Count() != 0 || tr.BytesWritten() != 0 {
		t.Error("not reset")
	}
}
