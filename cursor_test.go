package stratalog

import (
	"context"
	"errors"
	"fmt"
	"path"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/dispatch"
	"github.com/stratalog/stratalog/internal/vfs"
)

const cursorSlot = 64 << 10

// cursorRig is a store's directory as it was closed, and as it was killed a
// little later, with a sidecar of an earlier time.
type cursorRig struct {
	opt    Options
	clean  *vfs.Sim
	killed *vfs.Sim
	older  map[string][]byte // the sidecar, two closes ago
}

func newCursorRig(t *testing.T, dir string) *cursorRig {
	sim := vfs.NewSim()
	r := &cursorRig{opt: testOptions(sim, dir), older: map[string][]byte{}}
	r.opt.SegmentSize = 16 << 10
	r.opt.QueueFileSize = 400
	r.opt.IndexSlots, r.opt.IndexEntries = 11, 40
	clk := manual()
	r.opt.Clock = clk
	n := 0
	put := func(s *Store, count int) (last Receipt) {
		for range count {
			last = mustAppend(t, s, &Message{Topic: fmt.Sprint("t", n%2), QueueID: int32(n % 3), Body: body(n), Properties: keysOf(n)}, Sync)
			n++
		}
		waitVisible(t, s, endOf(last))
		waitIndexed(t, s)
		return last
	}
	s := start(t, r.opt)
	put(s, 40)
	closeClean(t, s)
	for _, name := range []string{"bound", "state", "cursors"} {
		r.older[name] = readFile(t, sim, path.Join(dir, "stratalog", name))
	}
	s = start(t, r.opt)
	cut, _ := put(s, 20).Range()
	put(s, 10)
	if err := s.TruncateTo(context.Background(), cut.Start); err != nil {
		t.Fatal(err)
	}
	put(s, 30)
	closeClean(t, s)
	r.clean = sim.Kill()
	s = start(t, r.opt)
	put(s, 25)
	r.killed = sim.Kill()
	closeClean(t, s)
	return r
}

// cursorFile is where the cursors lie.
func (r *cursorRig) cursorFile() string { return path.Join(r.opt.Dir, "stratalog", "cursors") }

// edit changes the newest cursors and writes them into both slots.
func (r *cursorRig) edit(t *testing.T, image *vfs.Sim, change func(*codec.State)) {
	b := readFile(t, image, r.cursorFile())
	var newest codec.State
	for slot := range 2 {
		var st codec.State
		if codec.ParseState(b[slot*cursorSlot:(slot+1)*cursorSlot], &st) == nil && st.Sequence >= newest.Sequence {
			newest = st
		}
	}
	if len(newest.Cursors) == 0 || newest.Cursors[0].Lane != uint8(contract.LaneQueue) {
		t.Fatalf("cursors %+v", newest.Cursors)
	}
	newest.Sequence++
	change(&newest)
	for slot := range int64(2) {
		out, err := codec.AppendState(nil, &newest)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, image, r.cursorFile(), slot*cursorSlot, out, false)
	}
}

// reopen opens image and holds its answers against a full rebuild of a copy.
func (r *cursorRig) reopen(image *vfs.Sim) (LoadReport, error) {
	opt := r.opt
	copied := image.Kill()
	opt.FS = image
	s, err := Open(context.Background(), opt)
	if err != nil {
		return LoadReport{}, err
	}
	got, err := answers(s)
	report, cerr := s.Close(context.Background())
	if err != nil || cerr != nil || !report.Clean {
		return s.report, fmt.Errorf("close %+v: %w", report, errors.Join(err, cerr))
	}
	want, err := rebuilt(copied, opt)
	if err == nil && got != want {
		err = fmt.Errorf("the store says\n%s\na full rebuild\n%s", got, want)
	}
	if again := sameAnswers(image, opt, got, "the next open"); err == nil {
		err = again
	}
	return s.report, err
}

func (r *cursorRig) each(t *testing.T, f func(t *testing.T, image *vfs.Sim)) {
	for name, image := range map[string]*vfs.Sim{"closed": r.clean, "killed": r.killed} {
		t.Run(name, func(t *testing.T) { f(t, image.Kill()) })
	}
}

func TestCursor(t *testing.T) {
	r := newCursorRig(t, "/store")
	foreign := newCursorRig(t, "/other")
	theirs := readFile(t, foreign.clean, foreign.cursorFile())
	one := func(change func(*codec.CursorEntry)) func(t *testing.T, image *vfs.Sim) {
		return func(t *testing.T, image *vfs.Sim) {
			r.edit(t, image, func(st *codec.State) { change(&st.Cursors[0]) })
		}
	}
	for _, c := range []struct {
		name   string
		change func(t *testing.T, image *vfs.Sim)
		reason dispatch.StartReason
	}{
		{"as it was", func(*testing.T, *vfs.Sim) {}, dispatch.StartResumed},
		{"deleted", func(t *testing.T, image *vfs.Sim) {
			if err := image.Remove(r.cursorFile()); err != nil {
				t.Fatal(err)
			}
		}, dispatch.StartMissing},
		{"empty", func(t *testing.T, image *vfs.Sim) { writeFile(t, image, r.cursorFile(), 0, nil, true) }, dispatch.StartDamaged},
		{"cut", func(t *testing.T, image *vfs.Sim) {
			writeFile(t, image, r.cursorFile(), 0, readFile(t, image, r.cursorFile())[:50], true)
		}, dispatch.StartDamaged},
		{"zeros", func(t *testing.T, image *vfs.Sim) {
			writeFile(t, image, r.cursorFile(), 0, make([]byte, 2*cursorSlot), true)
		}, dispatch.StartDamaged},
		{"of another store", func(t *testing.T, image *vfs.Sim) { writeFile(t, image, r.cursorFile(), 0, theirs, true) }, dispatch.StartDamaged},
		{"of an epoch to come", one(func(c *codec.CursorEntry) { c.Epoch = 99 }), dispatch.StartForeign},
		{"of no epoch", one(func(c *codec.CursorEntry) { c.Epoch = 0 }), dispatch.StartForeign},
		{"of the epoch before the cut", one(func(c *codec.CursorEntry) { c.Epoch = 1 }), dispatch.StartRolledBack},
		{"beyond the log", one(func(c *codec.CursorEntry) { c.Next += 1 << 30 }), dispatch.StartAhead},
		{"of another lane", one(func(c *codec.CursorEntry) { c.Lane = uint8(contract.LaneTimer) }), dispatch.StartMissing},
		{"at the start", one(func(c *codec.CursorEntry) { c.Next = 0 }), dispatch.StartResumed},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.each(t, func(t *testing.T, image *vfs.Sim) {
				c.change(t, image)
				report, err := r.reopen(image)
				if err != nil {
					t.Fatal(err)
				}
				if len(report.Lanes) != 2 || report.Lanes[0].Reason != c.reason {
					t.Errorf("the report says %+v, want %q", report.Lanes, c.reason)
				}
			})
		})
	}
}

// Every byte of the cursors file, one bit at a time: the answers stay.
func TestCursorFlips(t *testing.T) {
	r := newCursorRig(t, "/store")
	used := int64(160)
	if testing.Short() {
		used = 40
	}
	r.each(t, func(t *testing.T, base *vfs.Sim) {
		whole := readFile(t, base, r.cursorFile())
		n := 0
		for slot := range int64(2) {
			for at := slot * cursorSlot; at < (slot+1)*cursorSlot; at++ {
				if at%cursorSlot >= used && at%4099 != 0 {
					continue
				}
				image := base.Kill()
				writeFile(t, image, r.cursorFile(), at, []byte{whole[at] ^ 1<<(at%8)}, false)
				if _, err := r.reopen(image); err != nil {
					t.Fatalf("byte %d: %v", at, err)
				}
				n++
			}
		}
		t.Logf("%d flips", n)
	})
}

// Without a sidecar, or with one of another time or another store, nothing of
// the log is lost and the queues are right.
func TestCursorSidecar(t *testing.T) {
	r := newCursorRig(t, "/store")
	foreign := newCursorRig(t, "/other")
	side := path.Join(r.opt.Dir, "stratalog")
	for _, c := range []struct {
		name   string
		change func(t *testing.T, image *vfs.Sim)
		start  map[string]string // the row that applied, by base
	}{
		{"gone", func(t *testing.T, image *vfs.Sim) {
			if err := removeAll(image, side); err != nil {
				t.Fatal(err)
			}
		}, map[string]string{"closed": "no sidecar", "killed": "no sidecar"}},
		{"older", func(t *testing.T, image *vfs.Sim) {
			for name, b := range r.older {
				writeFile(t, image, path.Join(side, name), 0, b, true)
			}
		}, nil},
		{"of another store", func(t *testing.T, image *vfs.Sim) {
			for _, name := range []string{"bound", "state", "cursors"} {
				b := readFile(t, foreign.clean, path.Join("/other/stratalog", name))
				writeFile(t, image, path.Join(side, name), 0, b, true)
			}
		}, nil},
		{"state of another store", func(t *testing.T, image *vfs.Sim) {
			b := readFile(t, foreign.clean, "/other/stratalog/state")
			writeFile(t, image, path.Join(side, "state"), 0, b, true)
		}, map[string]string{"closed": "sidecar damaged", "killed": "sidecar damaged"}},
		{"bound gone", func(t *testing.T, image *vfs.Sim) {
			if err := image.Remove(path.Join(side, "bound")); err != nil {
				t.Fatal(err)
			}
		}, map[string]string{"closed": "sidecar damaged", "killed": "sidecar damaged"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, base := range map[string]*vfs.Sim{"closed": r.clean, "killed": r.killed} {
				t.Run(name, func(t *testing.T) {
					image := base.Kill()
					want := rebuiltFrom(t, base.Kill(), r.opt)
					c.change(t, image)
					report, err := r.reopen(image)
					if err != nil {
						t.Fatal(err)
					}
					if row, ok := c.start[name]; ok && report.Log.Start != row {
						t.Errorf("row %q, want %q", report.Log.Start, row)
					}
					opt := r.opt
					if err := sameAnswers(image, opt, want, "with the right sidecar"); err != nil {
						t.Errorf("%v (%+v)", err, report)
					}
				})
			}
		})
	}
}

func rebuiltFrom(t *testing.T, image *vfs.Sim, opt Options) string {
	t.Helper()
	a, err := rebuilt(image, opt)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestEveryLaneHasItsCursor: each lane of a store keeps a cursor of its own, which
// names the lane and the epoch, also behind a cut, and comes to the end of the log
// at a close.
func TestEveryLaneHasItsCursor(t *testing.T) {
	opt := testOptions(vfs.NewSim(), "/store")
	s := start(t, opt)
	var receipts []Receipt
	for i := range 40 {
		receipts = append(receipts, mustAppend(t, s, &Message{Topic: "t", Body: body(i), Properties: keysOf(i)}, Sync))
	}
	check := func(what string, end Offset) {
		t.Helper()
		waitVisible(t, s, end)
		waitIndexed(t, s)
		if err := s.dispatcher.Persist(); err != nil {
			t.Fatal(err)
		}
		lanes := s.Health().Lanes
		if len(lanes) != len(Strata()) {
			t.Fatalf("%d lanes of %d strata", len(lanes), len(Strata()))
		}
		for i, lane := range lanes {
			want := contract.Cursor{Lane: lane.Lane, Epoch: s.Health().Epoch, Next: end}
			got, found, err := s.log.LoadCursor(lane.Lane)
			if err != nil || !found || got != want || lane.Lane.String() != Strata()[i] {
				t.Errorf("%s: lane %v has the cursor %+v, %v, %v; want %+v", what, lane.Lane, got, found, err, want)
			}
		}
	}
	check("appended", endOf(receipts[39]))
	place, _ := receipts[20].Range()
	if err := s.TruncateTo(t.Context(), place.Start); err != nil {
		t.Fatal(err)
	}
	check("cut, and one more", endOf(mustAppend(t, s, &Message{Topic: "t", Properties: keysOf(1)}, Sync)))
	last := mustAppend(t, s, &Message{Topic: "t", Properties: keysOf(2)}, Sync)
	closeClean(t, s)
	for _, c := range openReading(t, opt, ReaderOptions{}).Inspect().Cursors {
		if c.Next != endOf(last) || c.Epoch != 2 || c.Error != "" {
			t.Errorf("closed: %+v, want %d", c, endOf(last))
		}
	}
}
