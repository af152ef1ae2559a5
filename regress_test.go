package stratalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// Each test of this file stands for a fault that an attack on the store found,
// or for a change that no other test noticed.

// hasAbort tells whether the abort file is there.
func hasAbort(t testing.TB, image vfs.FS, opt Options) bool {
	t.Helper()
	_, err := image.Stat(path.Join(opt.Dir, abortName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// flip changes one bit of a file.
func flip(t testing.TB, image vfs.FS, name string, off int64) {
	t.Helper()
	b := readFile(t, image, name)
	writeFile(t, image, name, off, []byte{b[off] ^ 1}, false)
}

// keepsQueues opens a store whose log is damaged some times. It is refused each
// time the same way, and its queues stay as they are.
func keepsQueues(t *testing.T, sim *vfs.Sim, opt Options) {
	t.Helper()
	opt.FS = sim
	before := tree(t, sim, path.Join(opt.Dir, queueDirName))
	first := ""
	for try := range 3 {
		_, err := Open(context.Background(), opt)
		var c *contract.CorruptionError
		if !errors.As(err, &c) || path.Dir(c.File) != path.Join(opt.Dir, "commitlog") {
			t.Fatalf("open %d: %v", try, err)
		}
		if first == "" {
			first = err.Error()
		}
		if err.Error() != first {
			t.Errorf("open %d: %v; the first one said %s", try, err, first)
		}
		sameTree(t, fmt.Sprintf("refused Load %d", try), before, tree(t, sim, path.Join(opt.Dir, queueDirName)))
	}
}

// queueFile is the name of file i of queue q of smallStore.
func queueFile(opt Options, q int, i int64) string {
	return path.Join(opt.Dir, queueDirName, "t", fmt.Sprint(q), fmt.Sprintf("%020d", i*opt.QueueFileSize))
}

// flipRecord changes one bit of the record that unit i of queue 0 of smallStore
// leads to.
func flipRecord(t *testing.T, sim *vfs.Sim, opt Options, i int64) {
	t.Helper()
	perFile := opt.QueueFileSize / codec.QueueUnitSize
	var unit codec.QueueUnitView
	if err := unit.Parse(readFile(t, sim, queueFile(opt, 0, i/perFile))[i%perFile*codec.QueueUnitSize:]); err != nil {
		t.Fatal(err)
	}
	at := unit.PhysicalOffset()
	flip(t, sim, segment(opt, at/opt.SegmentSize), at%opt.SegmentSize+100)
}

// A Load that met damage in the log had cut the queues before it refused: what
// could still be read through them was lost, although nothing was repaired.
func TestRefusedLoadKeepsQueues(t *testing.T) {
	t.Run("killed, so that the lane starts over", func(t *testing.T) {
		sim, opt := smallStore(t, true)
		flipRecord(t, sim, opt, 3)
		keepsQueues(t, sim, opt)
	})
	t.Run("closed, cursors gone", func(t *testing.T) {
		sim, opt := smallStore(t, false)
		if err := sim.Remove(path.Join(opt.Dir, "stratalog", "cursors")); err != nil {
			t.Fatal(err)
		}
		flipRecord(t, sim, opt, 3)
		keepsQueues(t, sim, opt)
	})
	t.Run("a damaged unit, so that the lane starts before the damage", func(t *testing.T) {
		sim, opt := smallStore(t, false)
		writeFile(t, sim, path.Join(opt.Dir, abortName), 0, []byte("1"), true)
		flipRecord(t, sim, opt, 45)
		writeFile(t, sim, queueFile(opt, 0, 2), codec.QueueUnitSize, bytes.Repeat([]byte{0xA5}, int(opt.QueueFileSize-codec.QueueUnitSize)), false)
		keepsQueues(t, sim, opt)
	})
	t.Run("the tally does not fit", func(t *testing.T) {
		sim, opt := smallStore(t, false)
		flipRecord(t, sim, opt, 3)
		writeFile(t, sim, queueFile(opt, 1, 2), 0, make([]byte, opt.QueueFileSize), false)
		keepsQueues(t, sim, opt)
	})
}

// A unit whose size was damaged told where the replay was to begin, in the
// middle of a record; that went into the cursor, and from then on no open went
// well, not even with the right queue files.
func TestDamagedUnitDoesNotPoisonTheCursor(t *testing.T) {
	for name, killed := range map[string]bool{"killed": true, "closed, then killed in an open": false} {
		t.Run(name, func(t *testing.T) {
			image, opt := smallStore(t, killed)
			writeFile(t, image, path.Join(opt.Dir, abortName), 0, []byte("1"), true)
			want := rebuiltFrom(t, image.Kill(), opt)
			tried, met := 0, 0
			try := func(what, file string, at int64, b []byte) {
				t.Helper()
				tried++
				damaged, content := image.Kill(), readFile(t, image, file)
				writeFile(t, damaged, file, at, b, false)
				opt.FS = damaged
				for again := range 2 {
					s, err := Open(context.Background(), opt)
					if err != nil {
						t.Fatalf("%s at %d of %s, open %d: %v", what, at, file, again, err)
					}
					got, err := answers(s)
					var c *contract.CorruptionError
					switch {
					case errors.As(err, &c) && strings.HasPrefix(c.File, path.Join(opt.Dir, queueDirName)):
						met++ // it is no end of a queue, so that only who reads it looks
					case err != nil:
						t.Fatalf("%s at %d of %s: %v", what, at, file, err)
					case got != want:
						t.Fatalf("%s at %d of %s: the store says\n%s\na full rebuild\n%s", what, at, file, got, want)
					}
					closeClean(t, s)
				}
				if tried%4 == 0 {
					writeFile(t, damaged, file, 0, content, false)
					if err := sameAnswers(damaged, opt, want, "with the right units back"); err != nil {
						t.Fatalf("%s at %d of %s: %v", what, at, file, err)
					}
				}
			}
			for i := range int64(3) {
				file := queueFile(opt, 0, i)
				content := readFile(t, image, file)
				for _, unit := range []int{0, usedUnits(content) - 2, usedUnits(content) - 1} {
					for in := range codec.QueueUnitSize {
						at := unit*codec.QueueUnitSize + in
						if in%2 == 1 {
							try("zeros to the end", file, int64(at), make([]byte, len(content)-at))
						}
						if in%4 == 3 {
							try("a flipped byte", file, int64(at), []byte{content[at] ^ 1})
						}
					}
				}
			}
			if tried < 100 || met == tried {
				t.Fatalf("%d ways, %d of them met when read", tried, met)
			}
			t.Logf("%d ways, %d of them met when read", tried, met)
		})
	}
}

// usedUnits counts the units of a queue file before the first that is zero.
func usedUnits(content []byte) (n int) {
	for len(content) >= codec.QueueUnitSize && slices.Max(content[:codec.QueueUnitSize]) != 0 {
		n++
		content = content[codec.QueueUnitSize:]
	}
	return n
}

// The last unit of a queue was damaged while the store was closed: the queue
// seemed to be shorter, and its next record got a number that was taken.
func TestDamagedLastUnitKeepsNumbers(t *testing.T) {
	whole, opt := smallStore(t, false)
	try := func(what string, change func(image *vfs.Sim, name string, off int64)) {
		t.Helper()
		for q := range int32(2) {
			name := queueFile(opt, int(q), 59*codec.QueueUnitSize/opt.QueueFileSize)
			content := readFile(t, whole, name)
			image := whole.Kill()
			change(image, name, int64(usedUnits(content)-1)*codec.QueueUnitSize)
			o := opt
			o.FS = image
			s, err := Open(context.Background(), o)
			if err != nil {
				t.Errorf("%s: %v", what, err)
				continue
			}
			if err := s.Start(context.Background()); err != nil {
				t.Fatal(err)
			}
			if r := mustAppend(t, s, &Message{Topic: "t", QueueID: q, Body: body(120)}, Sync); r.QueueOffset() != 60 {
				t.Errorf("%s: the next record of queue %d is number %d: %+v", what, q, r.QueueOffset(), s.Report())
			}
			abandon(t, s)
		}
	}
	try("zeroed", func(image *vfs.Sim, name string, off int64) {
		writeFile(t, image, name, off, make([]byte, codec.QueueUnitSize), false)
	})
	try("zeroed, with the one before", func(image *vfs.Sim, name string, off int64) {
		writeFile(t, image, name, max(0, off-codec.QueueUnitSize), make([]byte, 2*codec.QueueUnitSize), false)
	})
	try("its file gone", func(image *vfs.Sim, name string, _ int64) {
		if err := image.Remove(name); err != nil {
			t.Fatal(err)
		}
	})
	for in := range int64(codec.QueueUnitSize) {
		for _, x := range []byte{0x01, 0x80, 0xFF} {
			try(fmt.Sprintf("byte %d xor %#x", in, x), func(image *vfs.Sim, name string, off int64) {
				writeFile(t, image, name, off+in, []byte{readFile(t, image, name)[off+in] ^ x}, false)
			})
		}
	}
}

// A checkpoint that had no room on a full disk kept the store from being closed
// well, although everything that counts was on disk.
func TestFullDiskWithoutCheckpoint(t *testing.T) {
	sim, opt := smallStore(t, false)
	want := rebuiltFrom(t, sim.Kill(), opt)
	if err := sim.Remove(path.Join(opt.Dir, checkpointName)); err != nil {
		t.Fatal(err)
	}
	s := start(t, opt)
	sim.SetCapacity(sim.Used())
	closeClean(t, s)
	if hasAbort(t, sim, opt) {
		t.Error("the abort file is left")
	}
	if err := sameAnswers(sim, opt, want, "on the full disk"); err != nil {
		t.Error(err)
	}
	sim.SetCapacity(0)
	if err := sameAnswers(sim, opt, want, "when there is room"); err != nil {
		t.Error(err)
	}
	if len(readFile(t, sim, path.Join(opt.Dir, checkpointName))) != codec.CheckpointFileSize {
		t.Error("no checkpoint, although there is room")
	}
}

// A lane that stays behind, because its queue has no room, leaves the store not
// closed well: else the next open would not look for what it lacks.
func TestCloseWithLaneBehind(t *testing.T) {
	sim := vfs.NewSim()
	opt := testOptions(sim, "/store")
	opt.QueueFileSize = 4000
	clk := manual()
	opt.Clock = clk
	s := start(t, opt)
	last := mustAppend(t, s, &Message{Topic: "t", Body: body(0)}, Sync)
	waitVisible(t, s, endOf(last))
	sim.SetCapacity(sim.Used())
	sent := [][]byte{body(0)}
	for i := 1; i <= 10; i++ { // a queue of its own, for which there is no room
		mustAppend(t, s, &Message{Topic: "u", Body: body(i)}, Sync)
		sent = append(sent, body(i))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	report, _ := s.Close(ctx)
	if report.Clean || len(report.Behind) == 0 {
		t.Fatalf("%+v", report)
	}
	if !hasAbort(t, sim, opt) {
		t.Error("the abort file is gone")
	}
	waitUnlocked(t, s)
	sim.SetCapacity(0)
	s = start(t, opt)
	if start := s.Report().Log.Start; start != "not closed" {
		t.Errorf("the log was %q", start)
	}
	expect(t, s, "u", 0, sent[1:])
	closeClean(t, s)
}

// The abort file says that the store is in use: a power cut must find it from
// before the first other change on, and must not find it after a close.
func TestAbortFileIsDurable(t *testing.T) {
	sim, opt := smallStore(t, false)
	if hasAbort(t, sim.Crash(vfs.AllOld()), opt) {
		t.Error("the abort file is back after a close and a power cut")
	}
	looked := 0
	sim.OnOp(func(op vfs.Op) {
		if op.Path == path.Join(opt.Dir, abortName) || op.Path == path.Join(opt.Dir, lockName) || op.Path == opt.Dir || !vfs.MutatingOps.Has(op.Kind) {
			return
		}
		if looked++; looked < 10 && !hasAbort(t, sim.Crash(vfs.AllOld()), opt) {
			t.Errorf("a power cut before %v of %s finds no abort file", op.Kind, op.Path)
		}
	})
	s, err := Open(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	sim.OnOp(nil)
	if looked == 0 {
		t.Fatal("nothing was written")
	}
	closeClean(t, s)
	if hasAbort(t, sim.Crash(vfs.AllOld()), opt) {
		t.Error("the abort file is back after a close and a power cut")
	}
}
