package vfs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// durable makes a file with content, all of it durable.
func durable(t testing.TB, s *Sim, name, content string) File {
	t.Helper()
	f := create(t, s, name, content)
	check(t, f.Sync())
	check(t, s.SyncDir(path.Dir(name)))
	return f
}

// states builds every crash of s, old or new for each item, and counts what
// see makes of them.
func states(t testing.TB, s *Sim, see func(c *Sim) string) map[string]int {
	t.Helper()
	n := s.PendingCount()
	if n > 12 {
		t.Fatalf("%d items pending: %v", n, s.Pending())
	}
	seen := map[string]int{}
	for mask := range uint64(1) << n {
		seen[see(s.Crash(Mask(mask)))]++
	}
	return seen
}

// names lists the files of dir with their contents.
func names(t testing.TB, c *Sim, dir string) string {
	t.Helper()
	list, err := c.ReadDir(dir)
	check(t, err)
	var out []string
	for _, e := range list {
		if e.IsDir {
			out = append(out, e.Name+"/")
		} else {
			out = append(out, e.Name+"="+content(t, c, path.Join(dir, e.Name)))
		}
	}
	return strings.Join(out, " ")
}

func wantStates(t testing.TB, got map[string]int, want ...string) {
	t.Helper()
	ok := len(got) == len(want)
	for _, w := range want {
		ok = ok && got[w] > 0
	}
	if !ok {
		t.Errorf("states %v, want %q", got, want)
	}
}

func TestSimTornSectors(t *testing.T) {
	s := NewSim()
	f := durable(t, s, "/a", strings.Repeat("o", 3*sectorSize))
	_, err := f.WriteAt(bytes.Repeat([]byte("n"), 2*sectorSize), 256)
	check(t, err)
	see := func(c *Sim) string {
		b := content(t, c, "/a")
		return fmt.Sprint(b[255:257], b[511:513], b[1023:1025], b[1279:1281])
	}
	got := states(t, s, see)
	if len(got) != 8 || got["onnnnnno"] != 1 || got["oooooooo"] != 1 || got["onnoonno"] != 1 {
		t.Errorf("states %v", got)
	}
	if got := content(t, s.Crash(MaskGarbage(0)), "/a"); strings.Contains(got[:512], "oooo") {
		t.Error("no garbage in a torn sector")
	}
}

func TestSimVersionsInBetween(t *testing.T) {
	s := NewSim()
	f := durable(t, s, "/a", "0")
	for i := 1; i <= 9; i++ {
		_, err := f.WriteAt([]byte{byte('0' + i)}, 0)
		check(t, err)
	}
	items := s.Pending()
	if len(items) != 1 || items[0].Versions != maxVersions {
		t.Fatalf("pending: %v", items)
	}
	seen := map[string]bool{}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		seen[content(t, s.Crash(Random(rng, 0.7)), "/a")] = true
	}
	for _, want := range []string{"0", "7", "8", "9"} {
		if !seen[want] {
			t.Errorf("version %s was never kept, of %v", want, seen)
		}
	}
	if len(seen) != maxVersions {
		t.Errorf("versions %v", seen)
	}
}

func TestSimSizeBeforeData(t *testing.T) {
	s := NewSim()
	f := durable(t, s, "/a", "old")
	_, err := f.WriteAt([]byte("grown"), 3)
	check(t, err)
	see := func(c *Sim) string { return content(t, c, "/a") }
	wantStates(t, states(t, s, see), "old", "old\x00\x00\x00\x00\x00", "oldgrown")
	check(t, f.Datasync())
	wantStates(t, states(t, s, see), "oldgrown")
	// What a crash cut off does not come back when the file grows again.
	_, err = f.WriteAt([]byte("!"), 8)
	check(t, err)
	c := s.Crash(func(_, _ int, it Item) int {
		if it.Kind == ItemSize {
			return 0
		}
		return it.Versions - 1
	})
	g := open(t, c, "/a", ReadWrite)
	check(t, g.Truncate(10))
	if got := see(c); got != "oldgrown\x00\x00" {
		t.Errorf("content %q", got)
	}
}

func TestSimDatasyncLeavesShrinkingPending(t *testing.T) {
	s := NewSim()
	f := durable(t, s, "/a", strings.Repeat("x", pageSize+10))
	check(t, f.Truncate(5))
	check(t, f.Datasync())
	see := func(c *Sim) string {
		p := content(t, c, "/a")
		return fmt.Sprint(len(p), p[len(p)-1])
	}
	wantStates(t, states(t, s, see), "4106 120", "4106 0", "5 120")
	check(t, f.Sync())
	wantStates(t, states(t, s, see), "5 120")
}

func TestSimSizesInBetween(t *testing.T) {
	s := NewSim()
	f := durable(t, s, "/a", "")
	for size := int64(1); size <= 9; size++ {
		check(t, f.Truncate(size))
	}
	seen := map[int]bool{}
	for v := range maxVersions {
		seen[len(content(t, s.Crash(func(int, int, Item) int { return v }), "/a"))] = true
	}
	for _, want := range []int{0, 7, 8, 9} {
		if !seen[want] {
			t.Errorf("size %d was never kept, of %v", want, seen)
		}
	}
}

func TestSimAllocateIsPending(t *testing.T) {
	s := NewSim()
	f := durable(t, s, "/a", "")
	check(t, f.Allocate(0, 10_000))
	size := func(c *Sim) string { return fmt.Sprint(len(content(t, c, "/a")), c.Used()) }
	wantStates(t, states(t, s, size), "0 0", "10000 12288")
	check(t, f.Datasync())
	wantStates(t, states(t, s, size), "10000 12288")
}

func TestSimMappedWritesArePending(t *testing.T) {
	s := NewSim()
	f := durable(t, s, "/a", strings.Repeat("o", 1024))
	m, err := f.Map(1024, true)
	check(t, err)
	m.WriteAt([]byte("nn"), 511)
	see := func(c *Sim) string { return content(t, c, "/a")[510:514] }
	wantStates(t, states(t, s, see), "oooo", "onoo", "oono", "onno")
	check(t, f.Datasync())
	wantStates(t, states(t, s, see), "onno")
	wantErr(t, f.Truncate(100), syscall.EBUSY)
	check(t, m.Unmap())
	check(t, f.Truncate(100))
}

func TestSimMappedWriteIntoAHolePanics(t *testing.T) {
	s := NewSim()
	f := durable(t, s, "/a", "")
	check(t, f.Truncate(8192))
	m, err := f.Map(8192, true)
	check(t, err)
	mustPanic(t, func() { m.WriteAt([]byte("x"), 0) })
	check(t, f.Allocate(0, 4096))
	m.WriteAt([]byte("x"), 0)
	mustPanic(t, func() { m.WriteAt([]byte("xx"), 4095) })
	check(t, m.Unmap())
}

func TestSimFailedSyncLosesData(t *testing.T) {
	s := NewSim()
	f := durable(t, s, "/log", "....")
	m, err := f.Map(4, false)
	check(t, err)
	defer m.Unmap()
	_, err = f.WriteAt([]byte("lost"), 0)
	check(t, err)
	s.FailSync("log", 1, syscall.EIO, true)
	wantErr(t, f.Sync(), syscall.EIO)
	check(t, f.Sync()) // As if all were well.
	if got := content(t, s, "/log"); got != "lost" {
		t.Errorf("the process sees %q", got)
	}
	see := func(c *Sim) string { return content(t, c, "/log") }
	wantStates(t, states(t, s, see), "....", "lost")
	k := s.Kill()
	k.DropCaches()
	if got := see(k); got != "...." {
		t.Errorf("the disk holds %q", got)
	}
	s.DropCaches()
	if got := content(t, s, "/log") + string(m.Bytes()); got != "........" {
		t.Errorf("after dropping the cache the process sees %q", got)
	}
	// Writing again makes it pending again.
	_, err = f.WriteAt([]byte("kept"), 0)
	check(t, err)
	check(t, f.Sync())
	wantStates(t, states(t, s, see), "kept")
}

func TestSimFailedSyncSparesRewrittenSectors(t *testing.T) {
	s := NewSim()
	f := durable(t, s, "/log", strings.Repeat(".", 1024))
	write := func(p string, off int64) {
		_, err := f.WriteAt([]byte(p), off)
		check(t, err)
	}
	write("a", 0)
	write("b", 600)
	s.FailSync("/log", 1, syscall.ENOSPC, true)
	wantErr(t, f.Datasync(), syscall.ENOSPC)
	write("c", 0)
	check(t, f.Datasync())
	c := content(t, s.Crash(AllOld()), "/log")
	if c[0] != 'c' || c[600] != '.' {
		t.Errorf("kept %q and %q", c[0], c[600])
	}
	s.DropCaches()
	if c := content(t, s, "/log"); c[0] != 'c' || c[600] != '.' {
		t.Errorf("the process sees %q and %q", c[0], c[600])
	}
}

func TestSimDropCachesShowsNothingBehindTheEnd(t *testing.T) {
	s := NewSim()
	f := durable(t, s, "/a", strings.Repeat("x", 1024))
	_, err := f.WriteAt(make([]byte, 512), 512)
	check(t, err)
	s.FailSync("a", 1, syscall.EIO, true)
	wantErr(t, f.Sync(), syscall.EIO)
	check(t, f.Truncate(512))
	s.DropCaches()
	check(t, f.Truncate(1024))
	if got := content(t, s, "/a"); got[511] != 'x' || got[512] != 0 {
		t.Errorf("content %q", got[511:513])
	}
}

func TestSimFailSyncWithoutDropping(t *testing.T) {
	s := NewSim()
	f := create(t, s, "/log", "x")
	s.FailSync("*", 2, syscall.EIO, false)
	check(t, f.Sync())
	wantErr(t, s.SyncDir("/"), syscall.EIO)
	check(t, s.SyncDir("/"))
	if got := names(t, s.Crash(AllOld()), "/"); got != "log=x" {
		t.Errorf("found %q", got)
	}
}

func TestSimKill(t *testing.T) {
	s := NewSim()
	f := create(t, s, "/a", "x")
	l, err := s.Lock("/lock")
	check(t, err)
	defer l.Close()
	gone := create(t, s, "/gone", strings.Repeat("g", 5000))
	check(t, s.Remove("/gone"))
	k := s.Kill()
	l2, err := k.Lock("/lock")
	check(t, err)
	check(t, l2.Close())
	if got := names(t, k, "/"); got != "a=x lock=" {
		t.Errorf("found %q", got)
	}
	if k.Used() != pageSize || s.Used() != 3*pageSize {
		t.Errorf("used %d, %d", k.Used(), s.Used())
	}
	if got := names(t, k.Crash(AllOld()), "/"); got != "" {
		t.Errorf("a power cut after the kill left %q", got)
	}
	_, err = f.WriteAt([]byte("yy"), 0)
	check(t, err)
	if got := content(t, k, "/a"); got != "x" {
		t.Errorf("the killed one sees %q", got)
	}
	check(t, gone.Close())
	if s.Used() != pageSize {
		t.Errorf("used %d after the last close", s.Used())
	}
}

func TestSimClonesAreIndependent(t *testing.T) {
	s := NewSim()
	f := durable(t, s, "/a", strings.Repeat("0", 10_000))
	_, err := f.WriteAt([]byte("1"), 5000)
	check(t, err)
	want, err := Hash(s.Crash(AllNew()), "/")
	check(t, err)
	clones := []*Sim{s.Crash(AllNew()), s.Crash(AllNew()), s.Kill(), s.Crash(AllNew())}
	kept := s.Crash(AllNew())
	var wg sync.WaitGroup
	for i, c := range append(clones, s) {
		wg.Go(func() {
			g, err := c.Open("/a", ReadWrite)
			if err != nil {
				t.Error(err)
				return
			}
			defer g.Close()
			for k := range 50 {
				if _, err := g.WriteAt([]byte{byte('a' + i)}, int64(k*200)); err != nil {
					t.Error(err)
				}
			}
			if err := g.Sync(); err != nil {
				t.Error(err)
			}
			d := c.Crash(AllOld())
			if err := d.Remove("/a"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, err := Hash(kept, "/"); err != nil || got != want {
		t.Errorf("a clone changed: %v", err)
	}
	for i, c := range clones {
		if got := content(t, c, "/a"); got[200] != byte('a'+i) {
			t.Errorf("clone %d holds %q", i, got[200])
		}
	}
}

func TestSimClonesShareNoTable(t *testing.T) {
	s := NewSim()
	f := durable(t, s, "/a", strings.Repeat("x", 3*pageSize))
	c := s.Crash(AllOld())
	g := open(t, c, "/a", ReadWrite)
	check(t, g.Truncate(pageSize))
	_, err := g.WriteAt([]byte("y"), pageSize)
	check(t, err)
	check(t, g.Sync())
	if got := content(t, s, "/a"); got != strings.Repeat("x", 3*pageSize) {
		t.Error("the origin changed")
	}
	// A page that a crash had to build is as much on disk as any other.
	_, err = f.WriteAt(bytes.Repeat([]byte("z"), 1024), 0)
	check(t, err)
	c = s.Crash(Mask(1))
	want := content(t, c, "/a")
	g = open(t, c, "/a", ReadWrite)
	_, err = g.WriteAt([]byte("w"), 100)
	check(t, err)
	if got := content(t, c.Crash(AllOld()), "/a"); got != want || want[0] != 'z' || want[512] != 'x' {
		t.Error("an unsynced write is on disk")
	}
}

func TestSimHook(t *testing.T) {
	s := NewSim()
	var ops []string
	s.OnOp(func(op Op) {
		ops = append(ops, fmt.Sprint(op.Kind, " ", op.Path, " ", op.Offset, "+", op.Length))
		s.Crash(AllNew())
		s.Kill()
		s.PendingCount()
	})
	check(t, s.MkdirAll("/d"))
	f := create(t, s, "/d/a", "xyz")
	create(t, s, "/d/a", "w")
	check(t, f.Allocate(0, 5000))
	m, err := f.Map(10, true)
	check(t, err)
	m.WriteAt([]byte("q"), 3)
	check(t, m.Unmap())
	check(t, f.Datasync())
	check(t, s.Rename("/d/a", "/d/b"))
	check(t, s.SyncDir("/d"))
	check(t, s.Remove("/d/b"))
	s.OnOp(nil)
	check(t, s.Remove("/d"))
	want := `mkdir /d 0+0, create /d/a 0+0, write /d/a 0+3, write /d/a 0+1, allocate /d/a 0+5000, ` +
		`mapwrite /d/a 3+1, datasync /d/a 0+0, rename /d/a 0+0, syncdir /d 0+0, remove /d/b 0+0`
	if got := strings.Join(ops, ", "); got != want {
		t.Errorf("told\n%s, want\n%s", got, want)
	}
}

func TestSimCapacity(t *testing.T) {
	s := NewSim()
	s.SetCapacity(10 * 4096)
	f := create(t, s, "/a", "x")
	wantErr(t, f.Allocate(0, 11*4096), syscall.ENOSPC)
	check(t, f.Allocate(0, 8*4096))
	n, err := f.WriteAt(make([]byte, 5*4096), 7*4096+100)
	wantErr(t, err, syscall.ENOSPC)
	if n != 3*4096-100 {
		t.Errorf("wrote %d bytes", n)
	}
	if free, _ := s.Free("/"); free != 0 {
		t.Errorf("%d bytes free", free)
	}
	_, err = f.WriteAt(make([]byte, 4096), 0) // There are blocks for this.
	check(t, err)
	check(t, f.PunchHole(0, 4*4096))
	if free, _ := s.Free("/"); free != 4*4096 {
		t.Errorf("%d bytes free after the hole", free)
	}
	check(t, f.Truncate(5*4096))
	if free, _ := s.Free("/"); free != 9*4096 {
		t.Errorf("%d bytes free after truncation", free)
	}
	check(t, s.Remove("/a"))
	check(t, f.Close())
	if s.Used() != 0 {
		t.Errorf("%d bytes used", s.Used())
	}
}

func TestSimReadOnly(t *testing.T) {
	s := NewSim()
	f := durable(t, s, "/a", "x")
	s.SetReadOnly(true)
	_, err := f.WriteAt([]byte("y"), 0)
	wantErr(t, err, syscall.EROFS)
	_, err = s.Open("/b", ReadWrite|Create)
	wantErr(t, err, syscall.EROFS)
	_, err = s.Open("/a", ReadWrite)
	wantErr(t, err, syscall.EROFS)
	wantErr(t, s.Remove("/a"), syscall.EROFS)
	wantErr(t, s.Rename("/a", "/b"), syscall.EROFS)
	wantErr(t, s.MkdirAll("/d"), syscall.EROFS)
	wantErr(t, f.Truncate(0), syscall.EROFS)
	if got := content(t, s, "/a"); got != "x" {
		t.Errorf("content %q", got)
	}
	s.SetReadOnly(false)
	check(t, s.Remove("/a"))
}
