package stratalog

import (
	"context"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/contract"
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

// A queue file that another program deletes while the store runs, as a Java broker
// does that is started by mistake, is missed at the next open after a kill, also
// if the cursor that vouched for it had to wait for the log to become durable.
func TestQueueFileDeletedBesideUs(t *testing.T) {
	for before := 30; before < 50; before += 3 {
		for after := 0; after < 45; after += 7 {
			for mode := range 16 {
				sim := vfs.NewSim()
				opt := testOptions(sim, "/store")
				opt.SegmentSize, opt.QueueFileSize, opt.Visibility = 16<<10, 400, contract.VisibilityAppended
				s := start(t, opt)
				put := func(n int) {
					for i := range n {
						mustAppend(t, s, &Message{Topic: "t", QueueID: int32(i % 2), Body: body(i % 7)}, Memory)
					}
					waitVisible(t, s, s.Health().Watermarks.Appended)
				}
				put(2 * before)
				if mode&1 != 0 {
					if err := s.dispatcher.Persist(); err != nil {
						t.Fatal(err)
					}
				}
				_, end := s.QueueRange("t", 1)
				if err := sim.Remove(fmt.Sprintf("/store/consumequeue/t/1/%020d", (end-1)/20*400)); err != nil {
					t.Fatal(err)
				}
				put(2 * after)
				if mode&2 != 0 {
					_ = s.dispatcher.Persist() // the file may be missed already
				}
				if mode&4 != 0 {
					put(9)
					mustAppend(t, s, &Message{Topic: "u", Body: body(1)}, Sync)
					put(3)
					_ = s.dispatcher.Persist()
				}
				if mode&8 != 0 {
					// It takes the abort file for its own when it stops.
					if err := sim.Remove("/store/abort"); err != nil {
						t.Fatal(err)
					}
				}
				if bad := shownAfterKill(t, s, sim.Kill(), opt, 2); bad != "" {
					t.Fatalf("%d before, %d after, mode %d: %s", before, after, mode, bad)
				}
			}
		}
	}
}

// shownAfterKill gives s up, opens the image that its death left, and tells what is
// missing from the queues of topic t.
func shownAfterKill(t *testing.T, s *Store, image *vfs.Sim, opt Options, queues int32) string {
	abandon(t, s)
	opt.FS = image
	s = start(t, opt)
	defer closeClean(t, s)
	waitVisible(t, s, s.Health().Watermarks.Durable)
	var out Records
	defer out.Release()
	for q := range queues {
		_, end := s.QueueRange("t", q)
		n := int64(0)
		for at := int64(0); at < end; at = out.Next {
			if err := s.Get(context.Background(), Request{Topic: "t", QueueID: q, Offset: at, MaxCount: 32}, &out); err != nil {
				t.Fatal(err)
			}
			n += int64(out.Len())
		}
		if n != end {
			return fmt.Sprintf("queue %d shows %d of %d; %+v", q, n, end, s.Report())
		}
	}
	return ""
}

// Where the last files of several queues go, and only some have one behind that
// tells of it, those without are missed as well.
func TestQueueFilesDeletedBesideUs(t *testing.T) {
	for extra := range 20 {
		for after := 0; after < 120; after += 7 {
			sim := vfs.NewSim()
			opt := testOptions(sim, "/store")
			opt.SegmentSize, opt.QueueFileSize = 16<<10, 400
			s := start(t, opt)
			put := func(q int32) {
				mustAppend(t, s, &Message{Topic: "t", QueueID: q, Body: body(1)}, Memory)
			}
			for i := range 3 * extra {
				put(int32(i % 2))
			}
			for i := range 100 {
				put(int32(i % 3))
			}
			shown := func() {
				mustAppend(t, s, &Message{Topic: "u", Body: body(1)}, Sync)
				waitVisible(t, s, s.Health().Watermarks.Durable)
			}
			shown()
			var last []string
			for q := range int32(3) {
				_, end := s.QueueRange("t", q)
				last = append(last, fmt.Sprintf("/store/consumequeue/t/%d/%020d", q, (end-1)/20*400))
			}
			for i := range after {
				put(int32(min(i%5, 2))) // most to one of them
			}
			shown()
			if err := s.dispatcher.Persist(); err != nil {
				t.Fatal(err)
			}
			// Only now: a flush writes anew what is held open.
			image := sim.Kill()
			for _, name := range last {
				if err := image.Remove(name); err != nil {
					t.Fatal(err)
				}
			}
			if bad := shownAfterKill(t, s, image, opt, 3); bad != "" {
				t.Fatalf("%d extra, %d after: %s", extra, after, bad)
			}
		}
	}
}

// The first file of a queue leaves no trace when it goes, as retention takes it, too:
// it is written anew by the store that runs, or rebuilt by the next one.
func TestFirstQueueFileDeletedBesideUs(t *testing.T) {
	for _, batches := range []bool{false, true} {
		for mode := range 16 {
			sim := vfs.NewSim()
			opt := testOptions(sim, "/store")
			opt.SegmentSize, opt.QueueFileSize, opt.BatchQueueFileSize = 16<<10, 400, 460
			dir, name := "consumequeue", "/00000000000000000000"
			if mode&4 != 0 {
				opt.MaxQueueFiles = 1 // it may not be open any more
			}
			s := start(t, opt)
			n := 0
			put := func(k int) {
				for range k {
					m := &Message{Topic: "t", Body: body(1)}
					if batches {
						dir = "batchconsumequeue"
						m = inner("t", 1, body(1))
					}
					mustAppend(t, s, m, Memory)
					n++
					if mode&4 != 0 {
						mustAppend(t, s, &Message{Topic: "u", QueueID: int32(n % 3), Body: body(1)}, Memory)
					}
				}
				mustAppend(t, s, &Message{Topic: "u", Body: body(1)}, Sync)
				waitVisible(t, s, s.Health().Watermarks.Durable)
			}
			persist := func() {
				if err := s.dispatcher.Persist(); err != nil {
					t.Fatal(err)
				}
			}
			switch {
			case mode&4 != 0 && batches:
				put(10) // a whole file, which is not written to any more
			case mode&4 != 0:
				put(20)
			default:
				put(5 + 10*(mode&1))
			}
			if mode&6 != 0 {
				persist()
			}
			if err := sim.Remove("/store/" + dir + "/t/0" + name); err != nil {
				t.Fatal(err)
			}
			put(13)
			persist()
			_, fileErr := sim.Stat("/store/" + dir + "/t/0" + name)
			if mode&4 == 0 && fileErr != nil {
				t.Errorf("batches %v, mode %d: %v", batches, mode, fileErr)
			}
			if mode&8 != 0 {
				closeClean(t, s)
				s = start(t, opt)
				waitVisible(t, s, s.Health().Watermarks.Durable)
			}
			if bad := shownAfterKill(t, s, sim.Kill(), opt, 1); bad != "" {
				t.Errorf("batches %v, mode %d: %s", batches, mode, bad)
			}
		}
	}
}

// An open that is killed while it makes up for lost files loses nothing that the next
// one would have missed.
func TestKilledWhileFilesAreMissed(t *testing.T) {
	sim := vfs.NewSim()
	opt := testOptions(sim, "/store")
	opt.SegmentSize, opt.QueueFileSize = 16<<10, 400
	s := start(t, opt)
	for i := range 80 {
		mustAppend(t, s, &Message{Topic: "t", QueueID: int32(min(i/30, 1)), Body: body(1)}, Sync)
	}
	waitVisible(t, s, s.Health().Watermarks.Durable)
	if err := s.dispatcher.Persist(); err != nil {
		t.Fatal(err)
	}
	image := sim.Kill()
	abandon(t, s)
	// The last one of a queue, and a middle one, which is seen, of one whose records
	// came later.
	for q := range 2 {
		if err := image.Remove(fmt.Sprintf("/store/consumequeue/t/%d/%020d", q, 400)); err != nil {
			t.Fatal(err)
		}
	}
	var images []*vfs.Sim
	image.OnOp(func(vfs.Op) { images = append(images, image.Kill()) })
	opt.FS = image
	s, err := Open(t.Context(), opt)
	if err != nil || s.Report().QueueTally == "" {
		t.Fatalf("%+v, %v", s.Report(), err)
	}
	image.OnOp(nil)
	abandon(t, s)
	for i, image := range images {
		opt.FS = image
		s := start(t, opt)
		for q, want := range []int64{30, 50} {
			if _, end := s.QueueRange("t", int32(q)); end != want {
				t.Errorf("killed before operation %d: queue %d ends at %d", i, q, end)
			}
		}
		if bad := shownAfterKill(t, s, image.Kill(), opt, 2); bad != "" {
			t.Errorf("killed before operation %d: %s", i, bad)
		}
	}
}
