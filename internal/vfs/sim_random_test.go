package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// randomOps does the same operations for the same seed on any file system, and
// returns the outcome of each.
func randomOps(fsys FS, root string, seed uint64, n int, after func(i int)) []string {
	rng := rand.New(rand.NewPCG(seed, 7))
	dirs := []string{root, path.Join(root, "d"), path.Join(root, "e")}
	var out []string
	for _, d := range dirs {
		// After a crash, a file may have taken the name.
		out = append(out, fmt.Sprintf("mkdir: %v", errno(fsys.MkdirAll(d))))
	}
	name := func() string { return path.Join(dirs[rng.IntN(3)], string(rune('a'+rng.IntN(4)))) }
	files := map[int]File{}
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	for i := range n {
		kind, slot := rng.IntN(16), rng.IntN(5)
		off, l := int64(rng.IntN(20_000)), int64(1+rng.IntN(3000))
		a, b := name(), name()
		fill := byte(rng.IntN(256))
		var err error
		switch f := files[slot]; {
		case kind == 0:
			if err = fsys.Rename(a, b); l%2 == 0 {
				err = fsys.Link(a, b)
			}
		case kind == 1:
			err = fsys.Remove(a)
		case kind == 2:
			err = fsys.SyncDir(path.Dir(a))
		case kind <= 5 || f == nil:
			if f != nil {
				f.Close()
				delete(files, slot)
			}
			if f, err = fsys.Open(a, ReadWrite|Create); err == nil {
				files[slot] = f
			}
		case kind <= 9:
			p := make([]byte, l)
			for k := range p {
				p[k] = fill
			}
			_, err = f.WriteAt(p, off)
		case kind == 10:
			err = f.Truncate(off)
		case kind == 11:
			err = f.Allocate(off, l)
		case kind == 12:
			err = f.PunchHole(off, l*3)
		case kind == 13:
			err = f.Sync()
		case kind == 14:
			err = f.Datasync()
		default:
			var m Mapping
			if err = f.Allocate(0, off+l); err != nil {
				break
			}
			if m, err = f.Map(off+l, true); err != nil {
				break
			}
			p := make([]byte, l)
			p[0] = fill
			m.WriteAt(p, off)
			if m.Bytes()[off] != fill {
				err = errors.New("mapping does not show the write")
			}
			err = errors.Join(err, m.Unmap())
		}
		out = append(out, fmt.Sprintf("%d kind %d: %v", i, kind, errno(err)))
		if after != nil {
			after(i)
		}
	}
	return out
}

func errno(err error) error {
	var e syscall.Errno
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, fs.ErrNotExist):
		return fs.ErrNotExist
	}
	return err
}

func TestSimDoesWhatTheSystemDoes(t *testing.T) {
	for seed := range uint64(60) {
		root := filepath.ToSlash(t.TempDir())
		sim := NewSim()
		a := randomOps(OS(), root, seed, 200, nil)
		b := randomOps(sim, "/", seed, 200, nil)
		if !slices.Equal(a, b) {
			for i := range a {
				if a[i] != b[i] {
					t.Fatalf("seed %d: system %s, simulation %s", seed, a[i], b[i])
				}
			}
		}
		x, err := Dump(OS(), root)
		check(t, err)
		y, err := Dump(sim, "/")
		check(t, err)
		if x != y {
			t.Fatalf("seed %d: system\n%s, simulation\n%s", seed, x, y)
		}
	}
}

// consistent checks what must hold of a Sim at any time.
func consistent(t *testing.T, s *Sim) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	used := int64(0)
	drefs, links := map[uint64]int{rootID: 1}, map[uint64]int{rootID: 1}
	for _, n := range s.nodes {
		if n.links > 0 || n.refs > 0 {
			used += n.blocks.n
		}
		bits := int64(0)
		for i := range int64(len(n.blocks.bits)) * 64 {
			if n.blocks.has(i) {
				bits++
			}
		}
		if bits != n.blocks.n {
			t.Fatalf("%s: %d blocks, counted %d", n.path, bits, n.blocks.n)
		}
		for i, p := range n.cur.pages {
			if n.dirty[int64(i)] == nil && p.orZero().data != n.disk.get(int64(i)).orZero().data {
				t.Fatalf("%s: clean page %d differs from the disk", n.path, i)
			}
			if p.orZero().data != zeroPage.data && !n.blocks.has(int64(i)) {
				t.Fatalf("%s: page %d without a block", n.path, i)
			}
		}
		for _, id := range n.names.m {
			links[id]++
		}
		for _, id := range n.durable.m {
			drefs[id]++
		}
		for _, op := range n.ops {
			drefs[op.id]++
		}
	}
	for id, n := range s.nodes {
		if n.links != links[id] || n.drefs != drefs[id] {
			t.Fatalf("%s: links %d, %d; drefs %d, %d", n.path, n.links, links[id], n.drefs, drefs[id])
		}
	}
	if used != s.used {
		t.Fatalf("used %d blocks, counted %d", s.used, used)
	}
}

func sum(t *testing.T, s *Sim) string {
	t.Helper()
	h, err := Hash(s, "/")
	check(t, err)
	return h
}

func TestSimRandomCrashes(t *testing.T) {
	for seed := range uint64(40) {
		s := NewSimOptions(SimOptions{JournaledRename: seed%2 == 0})
		rng := rand.New(rand.NewPCG(seed, 3))
		randomOps(s, "/", seed, 150, func(i int) {
			consistent(t, s)
			if i%5 != 0 {
				return
			}
			now := sum(t, s)
			if c := s.Crash(AllNew()); sum(t, c) != now {
				t.Fatalf("seed %d op %d: keeping everything does not keep everything", seed, i)
			}
			k := s.Kill()
			if sum(t, k) != now || k.PendingCount() != s.PendingCount() {
				t.Fatalf("seed %d op %d: a kill changed something", seed, i)
			}
			consistent(t, k)
			old := sum(t, s.Crash(AllOld()))
			if sum(t, k.Crash(AllOld())) != old {
				t.Fatalf("seed %d op %d: a power cut after a kill differs from one without", seed, i)
			}
			c := s.Crash(RandomGarbage(rng, 0.5, 0.2))
			consistent(t, c)
			before := sum(t, c)
			if c.PendingCount() != 0 || sum(t, c.Crash(AllOld())) != before {
				t.Fatalf("seed %d op %d: a crash is not durable", seed, i)
			}
			randomOps(c, "/", seed+100, 20, func(int) { consistent(t, c) })
			if sum(t, s) != now || sum(t, s.Crash(AllOld())) != old {
				t.Fatalf("seed %d op %d: a crash touched its origin", seed, i)
			}
		})
		syncAll(t, s, "/")
		if s.PendingCount() != 0 || sum(t, s.Crash(AllOld())) != sum(t, s) {
			t.Fatalf("seed %d: pending after syncing everything: %v", seed, s.Pending())
		}
	}
}

// syncAll makes everything below dir durable.
func syncAll(t *testing.T, s *Sim, dir string) {
	t.Helper()
	list, err := s.ReadDir(dir)
	check(t, err)
	for _, e := range list {
		p := path.Join(dir, e.Name)
		if e.IsDir {
			syncAll(t, s, p)
			continue
		}
		f, err := s.Open(p, ReadOnly)
		check(t, err)
		check(t, f.Sync())
		check(t, f.Close())
	}
	check(t, s.SyncDir(dir))
}
