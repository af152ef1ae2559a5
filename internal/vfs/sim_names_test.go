package vfs

import (
	"io/fs"
	"testing"
)

func TestSimUnsyncedNameIsLost(t *testing.T) {
	s := NewSim()
	f := create(t, s, "/a", "x")
	check(t, f.Sync())
	wantStates(t, states(t, s, func(c *Sim) string { return names(t, c, "/") }), "", "a=x")
	check(t, s.SyncDir("/"))
	if s.PendingCount() != 0 {
		t.Errorf("pending: %v", s.Pending())
	}
	wantStates(t, states(t, s, func(c *Sim) string { return names(t, c, "/") }), "a=x")
}

func TestSimDirectoryTakesItsFilesAlong(t *testing.T) {
	s := NewSim()
	check(t, s.MkdirAll("/d/e"))
	durable(t, s, "/d/e/a", "x")
	check(t, s.SyncDir("/d"))
	wantStates(t, states(t, s, func(c *Sim) string { return names(t, c, "/") }), "", "d/")
	check(t, s.SyncDir("/"))
	if got := names(t, s.Crash(AllOld()), "/d/e"); got != "a=x" {
		t.Errorf("found %q", got)
	}
}

func TestSimRenameWithinADirectoryIsAtomic(t *testing.T) {
	s := NewSim()
	durable(t, s, "/state", "old")
	durable(t, s, "/state.tmp", "new")
	check(t, s.Rename("/state.tmp", "/state"))
	see := func(c *Sim) string { return names(t, c, "/") }
	wantStates(t, states(t, s, see), "state=old state.tmp=new", "state=new")
	check(t, s.SyncDir("/"))
	wantStates(t, states(t, s, see), "state=new")
}

func TestSimRenameOfAnUnsyncedFileMayComeEmpty(t *testing.T) {
	s := NewSim()
	durable(t, s, "/state", "old")
	create(t, s, "/state.tmp", "new")
	check(t, s.Rename("/state.tmp", "/state"))
	see := func(c *Sim) string { return content(t, c, "/state") }
	wantStates(t, states(t, s, see), "old", "new", "", "\x00\x00\x00")
}

func TestSimChainedRenamesNeverLoseTheFile(t *testing.T) {
	s := NewSim()
	durable(t, s, "/a", "x")
	check(t, s.Rename("/a", "/b"))
	check(t, s.Rename("/b", "/c"))
	see := func(c *Sim) string { return names(t, c, "/") }
	wantStates(t, states(t, s, see), "a=x", "b=x", "c=x")
}

func TestSimRenameBetweenDirectories(t *testing.T) {
	build := func(opt SimOptions) *Sim {
		s := NewSimOptions(opt)
		check(t, s.MkdirAll("/p"))
		check(t, s.MkdirAll("/q"))
		check(t, s.SyncDir("/"))
		durable(t, s, "/p/a", "x")
		check(t, s.Rename("/p/a", "/q/b"))
		return s
	}
	see := func(c *Sim) string { return names(t, c, "/p") + "|" + names(t, c, "/q") }
	s := build(SimOptions{})
	wantStates(t, states(t, s, see), "a=x|", "a=x|b=x", "|b=x", "|")
	c := s.Crash(Mask(2)) // Both names.
	a, err := c.Stat("/p/a")
	check(t, err)
	b, err := c.Stat("/q/b")
	check(t, err)
	if a.ID != b.ID {
		t.Error("two names, two files")
	}
	check(t, c.Remove("/p/a"))
	check(t, c.SyncDir("/p"))
	if got := see(c.Crash(AllOld())); got != "|b=x" {
		t.Errorf("after removing one name of two: %q", got)
	}
	check(t, s.SyncDir("/q"))
	wantStates(t, states(t, s, see), "a=x|b=x", "|b=x")
	check(t, s.SyncDir("/p"))
	wantStates(t, states(t, s, see), "|b=x")

	s = build(SimOptions{JournaledRename: true})
	wantStates(t, states(t, s, see), "a=x|", "|b=x")
	wantStates(t, states(t, s.Kill(), see), "a=x|", "|b=x")
	check(t, s.SyncDir("/q"))
	wantStates(t, states(t, s, see), "|b=x")
}

func TestSimLink(t *testing.T) {
	s := NewSim()
	check(t, s.MkdirAll("/q"))
	check(t, s.SyncDir("/"))
	f := create(t, s, "/a", "x")
	check(t, f.Sync())
	check(t, f.Close())
	check(t, s.SyncDir("/"))
	check(t, s.Link("/a", "/q/b"))
	see := func(c *Sim) string { return names(t, c, "/q") }
	wantStates(t, states(t, s, see), "", "b=x")
	wantStates(t, states(t, s.Kill(), see), "", "b=x")
	check(t, s.SyncDir("/q"))
	check(t, s.Remove("/a"))
	wantStates(t, states(t, s, see), "b=x")
	used := s.Used()
	check(t, s.Remove("/q/b"))
	if s.Used() >= used {
		t.Error("the blocks of the last name are not free")
	}
	s = NewSimOptions(SimOptions{NoLinks: true})
	durable(t, s, "/a", "x")
	wantErr(t, s.Link("/a", "/b"), fs.ErrPermission)
}

func TestSimRemovedFileMayComeBack(t *testing.T) {
	s := NewSim()
	durable(t, s, "/a", "x")
	check(t, s.Remove("/a"))
	create(t, s, "/a", "y")
	see := func(c *Sim) string { return names(t, c, "/") }
	got := states(t, s, see)
	wantStates(t, got, "a=x", "", "a=y", "a=", "a=\x00")
	check(t, s.SyncDir("/"))
	if got := states(t, s, see); got["a=x"] != 0 || got[""] != 0 {
		t.Errorf("states after the sync: %v", got)
	}
}
