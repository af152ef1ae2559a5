package mmap

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/stratalog/stratalog/internal/vfs"
)

func never(int64) bool { return false }

func mustSpares(t testing.TB, fs vfs.FS, dir string, used ...vfs.FileID) *Spares {
	t.Helper()
	return sparesOf(t, fs, dir, true, used...)
}

func sparesOf(t testing.TB, fs vfs.FS, dir string, cached bool, used ...vfs.FileID) *Spares {
	t.Helper()
	s, err := NewSpares(fs, dir, fileSize, cached, used...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustBuild(t testing.TB, s *Spares) string {
	t.Helper()
	name, err := s.Build(context.Background(), never)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func isZero(t testing.TB, fs vfs.FS, name string) bool {
	t.Helper()
	f, err := fs.Open(name, vfs.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, fileSize)
	_, err = f.ReadAt(b, 0)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(b, make([]byte, fileSize))
}

func TestSpares(t *testing.T) {
	systems(t, func(t *testing.T, fs vfs.FS, root string) {
		for _, cached := range []bool{true, false} {
			testSpares(t, fs, root+"/"+map[bool]string{true: "cached", false: "direct"}[cached], cached)
		}
	})
}

func testSpares(t *testing.T, fs vfs.FS, root string, cached bool) {
	dir := root + "/spare"
	s := sparesOf(t, fs, dir, cached)
	if s.Dir() != dir {
		t.Fatal(s.Dir())
	}
	if name, err := s.Ready(); name != "" || err != nil {
		t.Fatal(name, err)
	}
	first, second := mustBuild(t, s), mustBuild(t, s)
	if first == second || !isZero(t, fs, first) || !isZero(t, fs, second) {
		t.Fatal(first, second)
	}
	// What is ready survives, in order; what is not one is left alone.
	newFile(t, fs, dir+"/README", 10)
	newFile(t, fs, dir+"/00000007.building", fileSize)
	newFile(t, fs, dir+"/00000008.ready", fileSize-1)
	s = mustSpares(t, fs, dir)
	if name, err := s.Ready(); name != first || err != nil {
		t.Fatal(name, err)
	}
	for _, gone := range []string{"/00000007.building", "/00000008.ready"} {
		if _, err := fs.Stat(dir + gone); err == nil {
			t.Fatalf("%s is still there", gone)
		}
	}
	if _, err := fs.Stat(dir + "/README"); err != nil {
		t.Fatal(err)
	}
	// One is used, and comes back.
	if err := fs.Rename(first, root+"/segment"); err != nil {
		t.Fatal(err)
	}
	if name, err := s.Ready(); name != second || err != nil {
		t.Fatal(name, err)
	}
	if err := s.Return(root + "/segment"); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for {
		name, err := s.Ready()
		if err != nil {
			t.Fatal(err)
		}
		if name == "" {
			break
		}
		seen[name] = true
		if err := fs.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 2 {
		t.Fatalf("ready: %v", seen)
	}
	if third := mustBuild(t, s); seen[third] {
		t.Fatalf("the name %s is used again", third)
	}
}

func TestBuildStopsEarly(t *testing.T) {
	fs := vfs.NewSim()
	s := mustSpares(t, fs, "/spare")
	asked := []int64{}
	name, err := s.Build(context.Background(), func(zeroed int64) bool { asked = append(asked, zeroed); return true })
	if err != nil || len(asked) != 1 || asked[0] != 0 || !isZero(t, fs, name) {
		t.Fatal(name, err, asked)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Build(ctx, never); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	entries, err := fs.ReadDir("/spare")
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
}

// TestBuildFails makes every operation of a build fail: nothing is left that
// takes room, and the next build is good.
func TestBuildFails(t *testing.T) {
	for _, cached := range []bool{true, false} {
		buildFails(t, cached)
	}
}

func buildFails(t *testing.T, cached bool) {
	for k := 0; ; k++ {
		sim := vfs.NewSim()
		fault := vfs.NewFault(sim)
		s := sparesOf(t, fault, "/spare", cached)
		used := sim.Used()
		rule := fault.Add(vfs.Rule{At: k, Err: syscall.ENOSPC})
		name, err := s.Build(context.Background(), never)
		if rule.Fired() == 0 {
			if k < 5 {
				t.Fatalf("only %d operations", k)
			}
			return
		}
		rule.Remove()
		if err == nil {
			t.Fatalf("operation %d failed, and %s was built", k, name)
		}
		if !errors.Is(err, syscall.ENOSPC) || sim.Used() != used {
			t.Fatalf("operation %d: %v, %d bytes used", k, err, sim.Used())
		}
		if name = mustBuild(t, s); !isZero(t, sim, name) {
			t.Fatalf("operation %d: the next spare is not zero", k)
		}
	}
}

// TestSparesAfterPowerCut cuts the power before each operation of a build over
// old content, a rename to where it is used, and a return: what is ready
// afterwards has its length and zeros, and no file has two names.
func TestSparesAfterPowerCut(t *testing.T) {
	states := 0
	for _, journaled := range []bool{false, true} {
		sim := vfs.NewSimOptions(vfs.SimOptions{JournaledRename: journaled})
		for _, dir := range []string{"/spare", "/log"} {
			if err := errors.Join(sim.MkdirAll(dir), sim.SyncDir("/")); err != nil {
				t.Fatal(err)
			}
		}
		rng := rand.New(rand.NewPCG(3, 4))
		check := func(image *vfs.Sim, op vfs.Op) {
			states++
			var used []vfs.FileID
			entries, err := image.ReadDir("/log")
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				info, err := image.Stat("/log/" + e.Name)
				if err != nil || info.Size != fileSize {
					t.Fatalf("before %v: /log/%s has %d bytes, %v", op.Kind, e.Name, info.Size, err)
				}
				used = append(used, info.ID)
			}
			s := mustSpares(t, image, "/spare", used...)
			for {
				name, err := s.Ready()
				if err != nil {
					t.Fatal(err)
				}
				if name == "" {
					break
				}
				info, err := image.Stat(name)
				if err != nil || info.Size != fileSize || !isZero(t, image, name) {
					t.Fatalf("before %v of %s: %s has %d bytes, %v", op.Kind, op.Path, name, info.Size, err)
				}
				for _, id := range used {
					if id == info.ID {
						t.Fatalf("before %v of %s: %s is a second name", op.Kind, op.Path, name)
					}
				}
				used = append(used, info.ID)
				if err := image.Rename(name, "/log/"+strings.ReplaceAll(name, "/", "-")); err != nil {
					t.Fatal(err)
				}
			}
		}
		sim.OnOp(func(op vfs.Op) {
			n := sim.PendingCount()
			check(sim.Crash(vfs.AllOld()), op)
			check(sim.Crash(vfs.AllNew()), op)
			for k := range n {
				check(sim.Crash(vfs.Hole(k)), op)
				check(sim.Crash(vfs.Prefix(k)), op)
			}
			for range 20 {
				check(sim.Crash(vfs.Random(rng, 0.5)), op)
				check(sim.Crash(vfs.RandomGarbage(rng, 0.5, 0.3)), op)
			}
			check(sim.Kill(), op)
		})
		s := sparesOf(t, sim, "/spare", journaled)
		for range 2 {
			a := mustBuild(t, s)
			if err := errors.Join(sim.Rename(a, "/log/0"), sim.SyncDir("/log"), sim.SyncDir("/spare")); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(s.Return("/log/0"), sim.SyncDir("/log"), sim.SyncDir("/spare")); err != nil {
				t.Fatal(err)
			}
		}
		sim.OnOp(nil)
	}
	if states < 1000 {
		t.Fatalf("only %d states", states)
	}
	t.Logf("%d states", states)
}

func TestZero(t *testing.T) {
	fs := vfs.NewSim()
	f, err := fs.Open("/a", vfs.ReadWrite|vfs.Create)
	if err != nil {
		t.Fatal(err)
	}
	full := bytes.Repeat([]byte{0xEE}, 3*zeroPiece)
	for _, c := range [][2]int64{{0, 0}, {0, 1}, {5, 10}, {zeroPiece - 1, 2}, {100, 2 * zeroPiece}, {0, 3 * zeroPiece}} {
		if _, err := f.WriteAt(full, 0); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		if err := Zero(context.Background(), f, c[0], c[1]); err != nil {
			t.Fatal(err)
		}
		want := bytes.Clone(full)
		clear(want[c[0] : c[0]+c[1]])
		got := make([]byte, len(full))
		if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("zero %v: %v", c, err)
		}
		if fs.PendingCount() > 1 { // the name
			t.Fatalf("zero %v: %d items are not durable", c, fs.PendingCount())
		}
	}
	_ = f.Close()
}
