package stratalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"syscall"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// smallStore is a directory with a few segments and queues, closed well or
// killed.
func smallStore(t *testing.T, killed bool) (*vfs.Sim, Options) {
	t.Helper()
	sim := vfs.NewSim()
	opt := testOptions(sim, "/root/store")
	opt.SegmentSize, opt.QueueFileSize = 16<<10, 400
	opt.Clock = manual()
	s := start(t, opt)
	var last Receipt
	for i := range 120 {
		last = mustAppend(t, s, &Message{Topic: "t", QueueID: int32(i % 2), Body: body(i)}, Sync)
	}
	waitVisible(t, s, endOf(last))
	if killed {
		image := sim.Kill()
		closeClean(t, s)
		opt.FS = image
		return image, opt
	}
	closeClean(t, s)
	return sim, opt
}

func segment(opt Options, i int64) string {
	return path.Join(opt.Dir, "commitlog", fmt.Sprintf("%020d", i*opt.SegmentSize))
}

// spares is where second names of segments are.
func spares(opt Options) string { return path.Join(opt.Dir, "stratalog", "spare") }

// TestOpenRefuses: valid options promise nothing about what is on the disk. Each
// refusal is typed, and leaves every byte as it was.
func TestOpenRefuses(t *testing.T) {
	corrupt := func(t *testing.T, err error) {
		var c *contract.CorruptionError
		if !errors.Is(err, contract.ErrCorrupt) || !errors.As(err, &c) || c.File == "" {
			t.Errorf("not a corruption with its file: %v", err)
		}
	}
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, sim *vfs.Sim, opt *Options)
		want   func(t *testing.T, err error)
		// afterKill: only of a store that was not closed. Of one that was, the
		// log takes it for the work of another program, and goes on.
		afterKill bool
	}{
		{"a segment is too short", func(t *testing.T, sim *vfs.Sim, opt *Options) {
			writeFile(t, sim, segment(*opt, 1), 0, readFile(t, sim, segment(*opt, 1))[:opt.SegmentSize-4096], true)
		}, corrupt, false},
		{"a segment is too long", func(t *testing.T, sim *vfs.Sim, opt *Options) {
			writeFile(t, sim, segment(*opt, 1), opt.SegmentSize, []byte("more"), true)
		}, corrupt, false},
		{"a stray file among the segments", func(t *testing.T, sim *vfs.Sim, opt *Options) {
			writeFile(t, sim, path.Join(opt.Dir, "commitlog", "notes.txt"), 0, []byte("x"), true)
		}, corrupt, false},
		{"a gap between the segments", func(t *testing.T, sim *vfs.Sim, opt *Options) {
			if err := errors.Join(sim.Remove(segment(*opt, 1)), removeAll(sim, spares(*opt))); err != nil {
				t.Fatal(err)
			}
		}, corrupt, false},
		{"the last segments are gone", func(t *testing.T, sim *vfs.Sim, opt *Options) {
			files, err := sim.ReadDir(path.Join(opt.Dir, "commitlog"))
			if err != nil {
				t.Fatal(err)
			}
			if err := removeAll(sim, spares(*opt)); err != nil {
				t.Fatal(err)
			}
			for _, f := range files[1:] {
				if err := sim.Remove(path.Join(opt.Dir, "commitlog", f.Name)); err != nil {
					t.Fatal(err)
				}
			}
		}, corrupt, true},
		{"all segments are gone", func(t *testing.T, sim *vfs.Sim, opt *Options) {
			if err := errors.Join(removeAll(sim, path.Join(opt.Dir, "commitlog")), removeAll(sim, spares(*opt))); err != nil {
				t.Fatal(err)
			}
		}, corrupt, false},
		{"a stray file among the queue files", func(t *testing.T, sim *vfs.Sim, opt *Options) {
			writeFile(t, sim, path.Join(opt.Dir, queueDirName, "t/0/notes.txt"), 0, []byte("x"), true)
		}, corrupt, false},
		{"a queue file is too long", func(t *testing.T, sim *vfs.Sim, opt *Options) {
			writeFile(t, sim, path.Join(opt.Dir, queueDirName, "t/0", fmt.Sprintf("%020d", 0)), 1000, []byte("x"), true)
		}, corrupt, false},
		{"a newer version wrote the sidecar", func(t *testing.T, sim *vfs.Sim, opt *Options) {
			name := path.Join(opt.Dir, "stratalog", "state")
			var st codec.State
			b := readFile(t, sim, name)
			if err := codec.ParseState(b[:cursorSlot], &st); err != nil {
				if err := codec.ParseState(b[cursorSlot:], &st); err != nil {
					t.Fatal(err)
				}
			}
			st.Incompatible, st.Sequence = 1<<20, st.Sequence+10
			for slot := range int64(2) {
				out, err := codec.AppendState(nil, &st)
				if err != nil {
					t.Fatal(err)
				}
				writeFile(t, sim, name, slot*cursorSlot, out, false)
			}
		}, func(t *testing.T, err error) {
			var e *contract.Error
			if !errors.Is(err, contract.ErrNewerFormat) || !errors.As(err, &e) || e.Component != contract.ComponentSidecar {
				t.Errorf("%v", err)
			}
		}, false},
		{"another segment size", func(_ *testing.T, _ *vfs.Sim, opt *Options) { opt.SegmentSize *= 2 },
			func(t *testing.T, err error) {
				if !errors.Is(err, contract.ErrInvalid) {
					t.Errorf("%v", err)
				}
			}, false},
		{"the directory is a plain file", func(t *testing.T, sim *vfs.Sim, opt *Options) {
			opt.Dir = "/root/plain"
			writeFile(t, sim, opt.Dir, 0, []byte("x"), true)
		}, func(t *testing.T, err error) {
			var e *contract.Error
			if !errors.As(err, &e) || e.Op != contract.OpOpen {
				t.Errorf("%v", err)
			}
		}, false},
		{"a plain file on the way to it", func(t *testing.T, sim *vfs.Sim, opt *Options) {
			writeFile(t, sim, "/root/plain", 0, []byte("x"), true)
			opt.Dir = "/root/plain/store"
		}, func(t *testing.T, err error) {
			var e *contract.Error
			if !errors.As(err, &e) || e.Kind != contract.KindIO || !errors.Is(err, syscall.ENOTDIR) {
				t.Errorf("%v", err)
			}
		}, false},
		{"a read-only file system", func(_ *testing.T, sim *vfs.Sim, _ *Options) { sim.SetReadOnly(true) },
			func(t *testing.T, err error) {
				var e *contract.Error
				if !errors.As(err, &e) || e.Kind != contract.KindIO || !errors.Is(err, syscall.EROFS) {
					t.Errorf("%v", err)
				}
			}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, killed := range []bool{false, true} {
				if c.afterKill && !killed {
					continue
				}
				sim, opt := smallStore(t, killed)
				c.damage(t, sim, &opt)
				before := tree(t, sim, "/root")
				for range 2 {
					s, err := Open(context.Background(), opt)
					if err == nil {
						abandon(t, s)
						t.Fatalf("it was opened (killed: %v): %+v", killed, s.report)
					}
					c.want(t, err)
					sameTree(t, "a refused open", before, tree(t, sim, "/root"))
				}
				l, err := sim.Lock(path.Join(opt.Dir, lockName))
				if errors.Is(err, vfs.ErrLocked) {
					t.Error("a refused open keeps the lock")
				} else if err == nil {
					_ = l.Close()
				}
			}
		})
	}
}

// A store whose Load failed can be loaded again when the cause is gone.
func TestOpenAgain(t *testing.T) {
	sim, opt := smallStore(t, false)
	stray := path.Join(opt.Dir, queueDirName, "t/0/notes.txt")
	writeFile(t, sim, stray, 0, []byte("x"), true)
	s, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(context.Background()); !errors.Is(err, contract.ErrCorrupt) {
		t.Fatal(err)
	}
	if err := sim.Remove(stray); err != nil {
		t.Fatal(err)
	}
	r, err := s.Load(context.Background())
	if err != nil || r.Unclean || r.Log.Start != "closed well" {
		t.Fatalf("%+v, %v", r, err)
	}
	closeClean(t, s)
}

// Load fails at each of its operations in turn: the next Load, without the
// fault, finds everything.
func TestOpenFaults(t *testing.T) {
	for _, killed := range []bool{false, true} {
		sim, opt := smallStore(t, killed)
		want := rebuiltFrom(t, sim.Kill(), opt)
		fired := 0
		for at := 0; ; at++ {
			image := sim.Kill()
			fault := vfs.NewFault(image)
			rule := fault.Add(vfs.Rule{Kinds: vfs.AllOps &^ vfs.KindsOf(vfs.OpClose, vfs.OpUnmap, vfs.OpUnlock), At: at, Err: syscall.EIO})
			opt.FS = fault
			s, err := Open(context.Background(), opt)
			if err == nil {
				_, _ = s.Close(context.Background())
			}
			if rule.Fired() == 0 {
				break
			}
			fired++
			for name, after := range map[string]*vfs.Sim{"then": image, "after a power cut": image.Crash(vfs.AllOld())} {
				if err := sameAnswers(after, opt, want, name); err != nil {
					t.Fatalf("killed %v, fault at operation %d: %v", killed, at, err)
				}
			}
		}
		t.Logf("killed %v: %d operations", killed, fired)
	}
}

// A log whose middle was wiped opens (nobody reads what lies below the bound),
// and says so when the records are asked for; nothing is renumbered.
func TestOpenWipedSegment(t *testing.T) {
	sim, opt := smallStore(t, false)
	writeFile(t, sim, segment(opt, 1), 0, make([]byte, opt.SegmentSize), false)
	s := start(t, opt)
	var rec Record
	_, err := s.GetAt(context.Background(), Offset(opt.SegmentSize), &rec)
	var c *contract.CorruptionError
	if !errors.As(err, &c) || c.File != segment(opt, 1) || c.Offset != 0 {
		t.Errorf("%v", err)
	}
	_, end := s.QueueRange("t", 0)
	if end != 60 {
		t.Errorf("the queue ends at %d", end)
	}
	r := mustAppend(t, s, &Message{Topic: "t", Body: body(1)}, Sync)
	if r.QueueOffset() != 60 {
		t.Errorf("the next record is number %d", r.QueueOffset())
	}
	closeClean(t, s)
}

func TestReaderRefuses(t *testing.T) {
	sim := vfs.NewSim()
	_, err := OpenReader(context.Background(), testOptions(sim, "/nowhere"), ReaderOptions{})
	var e *contract.Error
	if !errors.As(err, &e) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if entries := tree(t, sim, "/"); len(entries) != 0 {
		t.Errorf("it made %+v", entries)
	}
}
