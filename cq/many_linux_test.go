package cq

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/internal/vfs"
)

var manyQueues = flag.Int("cq.queues", 10_000, "queues of TestManyQueues, without -short")

// heap returns the bytes of live objects.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(list)
}

// TestManyQueues: a queue of one record costs little memory, one block and two
// directories on the disk, and no handle beyond MaxHandles, however many there
// are; opening them all reads little. -v prints the figures.
func TestManyQueues(t *testing.T) {
	n, handles := *manyQueues, 256
	if testing.Short() {
		n = 2000
	}
	root := t.TempDir()
	dir := filepath.Join(root, "consumequeue")
	opts := Options{MaxHandles: handles}
	before, files := heap(), openFiles(t)
	s, err := Open(vfs.OS(), dir, opts)
	must(t, err)
	name := func(i int) string { return fmt.Sprintf("topic%04d", i/100) }
	most := 0
	for i := range n {
		e := entry{topic: name(i), queue: int32(i % 100), phy: int64(i) * 1000}
		must(t, e.apply(t, s))
		if i%64 == 63 {
			must(t, s.Commit())
		}
		if i%5000 == 4999 {
			most = max(most, openFiles(t)-files)
		}
	}
	must(t, s.Commit())
	grown := heap() - before
	runtime.KeepAlive(s)
	if most = max(most, openFiles(t)-files); most > handles+8 {
		t.Errorf("%d files are open, at most %d were to be kept", most, handles)
	}
	blocks := int64(0)
	must(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			blocks += info.Sys().(*syscall.Stat_t).Blocks
		}
		return err
	}))
	must(t, s.Close())

	before = heap()
	s, err = Open(vfs.OS(), dir, opts)
	must(t, err)
	reopened := heap() - before
	if got := s.LoadReport().Queues; got != n {
		t.Fatalf("%d queues, want %d", got, n)
	}
	var unit [1]codec.QueueUnit
	for i := 0; i < n; i += 97 {
		if m, err := s.Units(name(i), int32(i%100), 0, unit[:]); m != 1 || err != nil || unit[0].PhysicalOffset != int64(i)*1000 {
			t.Fatalf("queue %d: %d, %v, %+v", i, m, err, unit)
		}
	}
	if got := openFiles(t) - files; got > handles+8 {
		t.Errorf("%d files are open after the reads", got)
	}
	must(t, s.Close())
	q := int64(n)
	t.Logf("%d queues: %d B of memory each when made, %d B when opened; %d B on the disk each, of files of %d B; at most %d files open",
		n, grown/q, reopened/q, blocks*512/q, int64(DefaultFileSize), most)
	if grown/q > 2000 || reopened/q > 2000 {
		t.Errorf("a queue takes %d and %d bytes of memory", grown/q, reopened/q)
	}
	if blocks*512/q > 64<<10 {
		t.Errorf("a queue takes %d bytes on the disk", blocks*512/q)
	}
}
