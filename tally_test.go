package stratalog

import (
	"context"
	"path"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/internal/vfs"
)

// removeTree removes a directory and what is below it.
func removeTree(t testing.TB, fs vfs.FS, dir string) {
	t.Helper()
	entries, err := fs.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir {
			removeTree(t, fs, path.Join(dir, e.Name))
		} else if err := fs.Remove(path.Join(dir, e.Name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := fs.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := fs.SyncDir(path.Dir(dir)); err != nil {
		t.Fatal(err)
	}
}

// Queues that were deleted or emptied while the store was closed are noticed
// and rebuilt; no queue offset is given out twice.
func TestLostQueuesAreRebuilt(t *testing.T) {
	zero := func(t testing.TB, fs vfs.FS, name string) {
		f, err := fs.Open(name, vfs.ReadWrite)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(make([]byte, info.Size), 0); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, lose := range map[string]func(testing.TB, vfs.FS){
		"all":       func(t testing.TB, fs vfs.FS) { removeTree(t, fs, "/store/consumequeue") },
		"one topic": func(t testing.TB, fs vfs.FS) { removeTree(t, fs, "/store/consumequeue/a") },
		"one queue": func(t testing.TB, fs vfs.FS) { removeTree(t, fs, "/store/consumequeue/b/1") },
		"zeroed":    func(t testing.TB, fs vfs.FS) { zero(t, fs, "/store/consumequeue/a/0/00000000000000000000") },
	} {
		for _, killed := range []bool{false, true} {
			t.Run(name+map[bool]string{false: "/closed", true: "/killed"}[killed], func(t *testing.T) {
				sim := vfs.NewSim()
				s := start(t, testOptions(sim, "/store"))
				want := map[string][][]byte{}
				put := func(s *Store, topic string, q int32, i int) {
					r, err := s.Append(context.Background(), &Message{Topic: topic, QueueID: q, Body: body(i)}, Sync)
					if err != nil {
						t.Fatal(err)
					}
					key := topic + string(rune('0'+q))
					if r.QueueOffset() != int64(len(want[key])) {
						t.Fatalf("%s: offset %d given out, want %d", key, r.QueueOffset(), len(want[key]))
					}
					want[key] = append(want[key], body(i))
				}
				for i := range 60 {
					put(s, "a", 0, i)
					put(s, "b", 1, i)
					put(s, "b", 0, i)
				}
				if err := s.WaitVisible(context.Background(), s.Health().Watermarks.Durable); err != nil {
					t.Fatal(err)
				}
				if killed {
					if err := s.dispatcher.Persist(); err != nil {
						t.Fatal(err)
					}
					dead := sim.Kill()
					closeClean(t, s)
					sim = dead
				} else {
					closeClean(t, s)
				}
				lose(t, sim)
				s = start(t, testOptions(sim, "/store"))
				defer closeClean(t, s)
				if why := s.Report().QueueTally; !strings.Contains(why, "rebuilt") {
					t.Errorf("the report says %q", why)
				}
				put(s, "a", 0, 100)
				put(s, "b", 1, 100)
				if err := s.WaitVisible(context.Background(), s.Health().Watermarks.Durable); err != nil {
					t.Fatal(err)
				}
				expect(t, s, "a", 0, want["a0"])
				expect(t, s, "b", 1, want["b1"])
				expect(t, s, "b", 0, want["b0"])
			})
		}
	}
}
