package stratalog

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/clock"
	"github.com/stratalog/stratalog/internal/vfs"
)

// keyed is a store whose messages have keys, and what was appended to it.
type keyed struct {
	opt    Options
	sim    *vfs.Sim
	clock  *clock.Manual
	s      *Store
	starts []int64
	times  []time.Time
}

func newKeyed(t *testing.T) *keyed {
	sim := vfs.NewSim()
	k := newKeyedOn(t, sim, "/store")
	k.sim = sim
	return k
}

func newKeyedOn(t *testing.T, fs vfs.FS, dir string) *keyed {
	k := &keyed{clock: manual()}
	k.opt = testOptions(fs, dir)
	k.opt.SegmentSize, k.opt.Clock, k.opt.IndexSlots, k.opt.IndexEntries = 16<<10, k.clock, 11, 60
	k.s = start(t, k.opt)
	return k
}

// put appends n messages, one each 300 ms: the i-th has the keys k(i%5) and x.
func (k *keyed) put(t *testing.T, n int) {
	t.Helper()
	for range n {
		i := len(k.starts)
		place, _ := mustAppend(t, k.s, &Message{Topic: "t", Body: body(i % 9), Properties: keysOf(i)}, Sync).Range()
		k.starts = append(k.starts, int64(place.Start))
		k.times = append(k.times, k.clock.Now())
		k.clock.Advance(300 * time.Millisecond)
	}
	waitVisible(t, k.s, k.s.Health().Watermarks.Durable)
	waitIndexed(t, k.s)
}

// want are the places of the records with a key in a window, newest first.
func (k *keyed) want(key string, from, to time.Time) []int64 {
	var all []int64
	for i, at := range slices.Backward(k.starts) {
		if (key == "x" || key == keyOf(i)) && !k.times[i].Before(from) && (to.IsZero() || !k.times[i].After(to)) {
			all = append(all, at)
		}
	}
	return all
}

func (k *keyed) check(t *testing.T, s reading) {
	t.Helper()
	for _, key := range []string{"x", "k0", "k4", "k9"} {
		k.checkWindow(t, s, key, time.Time{}, time.Time{})
	}
	for i := 0; i < len(k.times); i += 7 {
		for _, d := range []time.Duration{-time.Millisecond, 0, time.Microsecond, time.Millisecond} {
			k.checkWindow(t, s, "x", k.times[i].Add(d), time.Time{})
			k.checkWindow(t, s, "k1", time.Time{}, k.times[i].Add(d))
			k.checkWindow(t, s, "k2", k.times[i].Add(d), k.times[i].Add(d+2*time.Second))
		}
	}
}

func (k *keyed) checkWindow(t *testing.T, s reading, key string, from, to time.Time) {
	t.Helper()
	got, out, err := byKey(s, Query{Topic: "t", Key: key, From: from, To: to})
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	if want := k.want(key, from, to); !slices.Equal(got, want) {
		t.Fatalf("%s from %v to %v: %v, want %v (%+v)", key, from, to, got, want, out.Boundary)
	}
}

func TestQueryKey(t *testing.T) {
	k := newKeyed(t)
	k.put(t, 200)
	k.check(t, k.s)
	ctx := context.Background()
	var out Matches
	for name, c := range map[string]struct {
		q    Query
		kind error
	}{
		"no key":         {Query{Topic: "t"}, contract.ErrInvalid},
		"no topic":       {Query{Key: "x"}, contract.ErrInvalid},
		"negative count": {Query{Topic: "t", Key: "x", MaxCount: -1}, contract.ErrInvalid},
		"negative bytes": {Query{Topic: "t", Key: "x", MaxBytes: -1}, contract.ErrInvalid},
	} {
		if err := k.s.QueryKey(ctx, c.q, &out); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := k.s.QueryKey(ctx, Query{Topic: "t", Key: "x"}, nil); !errors.Is(err, contract.ErrInvalid) {
		t.Error(err)
	}
	if err := k.s.QueryKey(ended(), Query{Topic: "t", Key: "k0"}, &out); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := k.s.QueryKey(ctx, Query{Topic: "t", Key: "x"}, &out); err != nil || out.Len() != DefaultMaxCount || !out.More ||
		out.Status != contract.GetFound || out.Boundary != k.s.Health().Watermarks.Durable || out.Start != 0 {
		t.Errorf("%d, %+v, %v", out.Len(), out.Status, err)
	}
	one := len(out.At(0).Bytes())
	if err := k.s.QueryKey(ctx, Query{Topic: "t", Key: "x", MaxBytes: 1}, &out); err != nil || out.Len() != 1 || !out.More {
		t.Errorf("%d, more %v, %v", out.Len(), out.More, err)
	}
	// A bound in bytes leaves nothing out when the query goes on.
	var got []int64
	q := Query{Topic: "t", Key: "x", MaxBytes: 3 * one}
	for out.More = true; out.More; q.After = out.Next {
		if err := k.s.QueryKey(ctx, q, &out); err != nil || out.bytes > q.MaxBytes && out.Len() > 1 {
			t.Fatal(out.bytes, err)
		}
		for i := range out.Len() {
			got = append(got, out.At(i).PhysicalOffset())
		}
	}
	if !slices.Equal(got, k.want("x", time.Time{}, time.Time{})) {
		t.Errorf("%d of %d found by pieces", len(got), len(k.starts))
	}
	if err := k.s.QueryKey(ctx, Query{Topic: "t", Key: "no"}, &out); err != nil || out.Len() != 0 || out.More || out.Status != contract.GetNoMatchedMessage {
		t.Errorf("%+v, %v", out.Status, err)
	}
	// Tags are not in it unless they are asked for.
	if err := k.s.QueryKey(ctx, Query{Topic: "t", Key: "x", Tag: true}, &out); err != nil || out.Len() != 0 {
		t.Error(out.Len(), err)
	}
	closeClean(t, k.s)
	if err := k.s.QueryKey(ctx, Query{Topic: "t", Key: "x"}, &out); !errors.Is(err, contract.ErrClosed) {
		t.Error(err)
	}
}

func TestQueryAllocs(t *testing.T) {
	k := newKeyed(t)
	k.put(t, 100)
	var out Matches
	q, ctx := Query{Topic: "t", Key: "k3", From: k.times[10]}, context.Background()
	ask := func() {
		if err := k.s.QueryKey(ctx, q, &out); err != nil || out.Len() == 0 {
			t.Fatal(out.Len(), err)
		}
	}
	ask()
	if got := testing.AllocsPerRun(100, ask); got != 0 && !raceEnabled {
		t.Errorf("%v allocations", got)
	}
	closeClean(t, k.s)
}

// While the lane lags the answer says up to where it counts.
func TestQueryBoundary(t *testing.T) {
	k := newKeyed(t)
	k.put(t, 30)
	end := k.s.Health().Watermarks.Durable
	if err := k.s.dispatcher.Pause(contract.LaneIndex); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, k.s, &Message{Topic: "t", Body: body(1), Properties: keysOf(0)}, Sync)
	waitVisible(t, k.s, k.s.Health().Watermarks.Durable) // nobody waits for the index
	got, out, err := byKey(k.s, Query{Topic: "t", Key: "x"})
	if err != nil || len(got) != 30 || out.Boundary != end || k.s.Health().Watermarks.Durable <= end {
		t.Errorf("%d found, boundary %d, want %d, %v", len(got), out.Boundary, end, err)
	}
	if err := k.s.dispatcher.Resume(contract.LaneIndex); err != nil {
		t.Fatal(err)
	}
	waitIndexed(t, k.s)
	if got, out, err := byKey(k.s, Query{Topic: "t", Key: "x"}); err != nil || len(got) != 31 || out.Boundary <= end {
		t.Errorf("%d found, boundary %d, %v", len(got), out.Boundary, err)
	}
	closeClean(t, k.s)
}

// A paused index does not keep the store from closing well, and follows at the
// next open.
func TestCloseIndexBehind(t *testing.T) {
	k := newKeyed(t)
	k.put(t, 30)
	if err := k.s.dispatcher.Pause(contract.LaneIndex); err != nil {
		t.Fatal(err)
	}
	at := mustAppend(t, k.s, &Message{Topic: "t", Body: body(1), Properties: keysOf(0)}, Sync)
	r, err := k.s.Close(context.Background())
	if err != nil || !r.Clean || r.Behind["index"] <= 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	_, found := verify(t, k.sim, k.opt)
	if got := kinds(found); !slices.Equal(got, []string{"note lagging-lane"}) {
		t.Errorf("%v", found)
	}
	reader, err := OpenReader(context.Background(), k.opt, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	start0, _ := at.Range()
	if got, out, err := byKey(reader, Query{Topic: "t", Key: "x"}); err != nil || len(got) != 30 || out.Boundary != start0.Start {
		t.Errorf("%d found, boundary %d, want %d, %v", len(got), out.Boundary, start0.Start, err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	k.s = start(t, k.opt)
	if got, _, err := byKey(k.s, Query{Topic: "t", Key: "x"}); err != nil || len(got) != 31 {
		t.Errorf("%d found, %v", len(got), err)
	}
	closeClean(t, k.s)
}

// The index follows cuts of the log, retirement, closing, kills and power cuts,
// and a Reader sees the same.
func TestQueryLife(t *testing.T) {
	k := newKeyed(t)
	k.put(t, 150)
	for _, keep := range []int{140, 90, 89} {
		if err := k.s.TruncateTo(context.Background(), Offset(k.starts[keep])); err != nil {
			t.Fatal(err)
		}
		k.starts, k.times = k.starts[:keep], k.times[:keep]
		k.check(t, k.s)
		k.put(t, 10)
		k.check(t, k.s)
	}
	r, err := k.s.Retire(context.Background(), Offset(k.starts[80]))
	if err != nil || r.MinOffset == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	gone := slices.IndexFunc(k.starts, func(at int64) bool { return at >= int64(r.MinOffset) })
	k.starts, k.times = append(make([]int64, gone), k.starts[gone:]...), append(make([]time.Time, gone), k.times[gone:]...)
	for i := range gone {
		k.starts[i], k.times[i] = -1, time.Unix(-1, 0)
	}
	live := func(s reading) {
		t.Helper()
		got, out, err := byKey(s, Query{Topic: "t", Key: "x"})
		want := slices.DeleteFunc(k.want("x", time.Time{}, time.Time{}), func(at int64) bool { return at < 0 })
		if err != nil || !slices.Equal(got, want) || out.Start != r.MinOffset {
			t.Fatalf("%T: %v, want %v, start %d, boundary %d, %v", s, got, want, out.Start, out.Boundary, err)
		}
	}
	live(k.s)
	if r.IndexFiles == 0 {
		t.Error("no index file was retired")
	}
	k.clock.Advance(10 * time.Second)
	until(t, "the cursor is saved", func() bool {
		// Of this epoch: a cut log may have come to the same place before.
		lane, err := k.s.dispatcher.Status(contract.LaneIndex)
		return err == nil && lane.HasPersisted && lane.Persisted == lane.Applied
	}, func() { k.clock.Advance(time.Second) })
	killed, cut := k.sim.Kill(), k.sim.Crash(vfs.AllOld())
	closeClean(t, k.s)
	for name, image := range map[string]*vfs.Sim{"closed": k.sim, "killed": killed, "power cut": cut} {
		opt := k.opt
		opt.FS = image
		// After a power cut the published bound may lag behind what is durable.
		reader, err := OpenReader(context.Background(), opt, ReaderOptions{Appended: true})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		live(reader)
		if in := reader.Inspect(); len(in.IndexFiles) == 0 || len(in.Cursors) != 2 || in.IndexSlots != 11 {
			t.Errorf("%s: %+v", name, in)
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
		s := start(t, opt)
		if got := s.Report(); got.Index.Rebuilt != "" || got.Lanes[1].Found != got.Lanes[1].Start {
			t.Errorf("%s: %+v", name, got)
		}
		live(s)
		closeClean(t, s)
		report, found := verify(t, image, opt)
		if report.Faults != 0 || report.Entries == 0 {
			t.Errorf("%s: %+v %v", name, report, found)
		}
	}
}

// Whatever becomes of the index's files, the answers are right after the next
// open, and what was wrong before is reported by Verify or by an error.
func TestIndexDamage(t *testing.T) {
	k := newKeyed(t)
	k.put(t, 100)
	closeClean(t, k.s)
	whole := k.sim.Kill()
	dir := path.Join(k.opt.Dir, indexDirName)
	entries, err := whole.ReadDir(dir)
	if err != nil || len(entries) < 2 {
		t.Fatal(entries, err)
	}
	last := path.Join(dir, entries[len(entries)-1].Name)
	for name, spoil := range map[string]func(image *vfs.Sim) error{
		"deleted":      func(image *vfs.Sim) error { return removeAll(image, dir) },
		"last deleted": func(image *vfs.Sim) error { return image.Remove(last) },
		"emptied":      func(image *vfs.Sim) error { writeFile(t, image, last, 0, nil, true); return nil },
		"last entry":   func(image *vfs.Sim) error { flipLastEntry(t, image, last, k.opt); return nil },
		"cursors":      func(image *vfs.Sim) error { return image.Remove(path.Join(k.opt.Dir, "stratalog", "cursors")) },
		"off, then on": func(image *vfs.Sim) error {
			opt := k.opt
			opt.FS, opt.NoIndex = image, true
			s := start(t, opt)
			var out Matches
			if err := s.QueryKey(context.Background(), Query{Topic: "t", Key: "x"}, &out); !errors.Is(err, contract.ErrUnsupported) {
				t.Errorf("off: %v", err)
			}
			closeClean(t, s)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			opt := k.opt
			opt.FS = whole.Kill()
			if err := spoil(opt.FS.(*vfs.Sim)); err != nil {
				t.Fatal(err)
			}
			k.s = start(t, opt)
			k.check(t, k.s)
			closeClean(t, k.s)
			if report, found := verify(t, opt.FS, opt); report.Faults != 0 || report.Entries != 200 {
				t.Errorf("%+v %v", report, found)
			}
		})
	}
}

func flipLastEntry(t *testing.T, image *vfs.Sim, name string, opt Options) {
	b := readFile(t, image, name)
	var h codec.IndexHeaderView
	if err := h.Parse(b); err != nil {
		t.Fatal(err)
	}
	at := codec.IndexHeaderSize + opt.IndexSlots*codec.IndexSlotSize + int(h.Count()-1)*codec.IndexEntrySize
	writeFile(t, image, name, int64(at), []byte{b[at] ^ 1}, false)
}

// Verify names a wrong entry, and Java's checkpoint the last full file.
func TestVerifyIndex(t *testing.T) {
	k := newKeyed(t)
	k.put(t, 100)
	closeClean(t, k.s)
	var c codec.CheckpointView
	if err := c.Parse(readFile(t, k.sim, path.Join(k.opt.Dir, checkpointName))); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(context.Background(), k.opt, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	files := r.Inspect().IndexFiles
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if want := files[len(files)-2].EndTime; c.IndexTimestamp() != want {
		t.Errorf("the checkpoint says %d, the last full file ends at %d", c.IndexTimestamp(), want)
	}
	at := int64(codec.IndexHeaderSize + k.opt.IndexSlots*codec.IndexSlotSize + 7*codec.IndexEntrySize)
	old := readFile(t, k.sim, files[0].Path)
	writeFile(t, k.sim, files[0].Path, at, []byte{old[at] ^ 1}, false)
	report, found := verify(t, k.sim, k.opt)
	if report.Faults == 0 || found[0].File != files[0].Path || !slices.ContainsFunc(found, func(f Finding) bool { return f.Kind == "wrong-entry" && f.Offset == at }) {
		t.Errorf("%v", found)
	}
}

// TestVerifyIndexPlaces: an entry that leads to a place far beyond the log hides its
// message from queries. In a store that was closed well it is a fault, at its place.
func TestVerifyIndexPlaces(t *testing.T) {
	k := newKeyed(t)
	k.put(t, 100)
	closeClean(t, k.s)
	r, err := OpenReader(context.Background(), k.opt, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	files := r.Inspect().IndexFiles
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		old := readFile(t, k.sim, file.Path)
		for e := int64(1); e <= file.Entries; e++ {
			entry := int64(codec.IndexHeaderSize+k.opt.IndexSlots*codec.IndexSlotSize) + e*codec.IndexEntrySize
			writeFile(t, k.sim, file.Path, entry+4, []byte{old[entry+4] ^ 0x20}, false)
			report, found := verify(t, k.sim, k.opt)
			if report.Faults == 0 || !slices.ContainsFunc(found, func(f Finding) bool {
				return f.Severity == Fault && f.File == file.Path && (f.Offset == entry || f.Offset == 0)
			}) {
				t.Errorf("entry %d of %s: %v", e, file.Path, found)
			}
			writeFile(t, k.sim, file.Path, 0, old, false)
		}
	}
}

// With tags in the index they are found by it.
func TestQueryTag(t *testing.T) {
	sim := vfs.NewSim()
	opt := testOptions(sim, "/store")
	opt.IndexTags = true
	s := start(t, opt)
	for i := range 20 {
		mustAppend(t, s, &Message{Topic: "t", Body: body(i), Properties: tags(fmt.Sprint("g", i%2))}, Sync)
	}
	waitVisible(t, s, s.Health().Watermarks.Durable)
	waitIndexed(t, s)
	if got, _, err := byKey(s, Query{Topic: "t", Key: "g1", Tag: true}); err != nil || len(got) != 10 {
		t.Errorf("%v, %v", got, err)
	}
	closeClean(t, s)
}
