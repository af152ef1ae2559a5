package stratalog

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// openReading opens a Reader that is closed at the end of the test.
func openReading(t *testing.T, opt Options, ro ReaderOptions) *Reader {
	t.Helper()
	r, err := OpenReader(context.Background(), opt, ro)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// salvage opens what is left and returns what Verify tells.
func salvage(t *testing.T, opt Options) (VerifyReport, []Finding) {
	t.Helper()
	r := openReading(t, opt, ReaderOptions{Salvage: true})
	var found []Finding
	report, err := r.Verify(context.Background(), func(f Finding) { found = append(found, f) })
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.File != "" && strings.Contains(f.Text, f.File) {
			t.Errorf("the text repeats the file: %+v", f)
		}
	}
	_ = r.Inspect()
	return report, found
}

// TestReaderMissingSegments removes segments below the published bound: only a
// Reader that salvages opens, and tells.
func TestReaderMissingSegments(t *testing.T) {
	v := newVerified(t, 400)
	size, bound := Offset(v.opt.SegmentSize), endOf(v.receipts[399])
	n := int(bound/size) + 1
	if n < 3 {
		t.Fatalf("only %d segments", n)
	}
	end := Offset(n) * size
	for _, c := range []struct {
		name    string
		removed []int
		file    int
		lost    contract.Range
	}{
		{"the last", []int{n - 1}, n - 1, contract.Range{Start: end - size, End: bound}},
		{"the last two", []int{n - 2, n - 1}, n - 2, contract.Range{Start: end - 2*size, End: bound}},
		{"one between", []int{1}, 1, contract.Range{Start: size, End: 2 * size}},
		{"all", all(n), 0, contract.Range{End: bound}},
	} {
		t.Run(c.name, func(t *testing.T) {
			opt := v.opt
			image := v.sim.Kill()
			opt.FS = image
			for _, i := range c.removed {
				if err := image.Remove(segment(opt, int64(i))); err != nil {
					t.Fatal(err)
				}
			}
			for _, appended := range []bool{false, true} {
				_, err := OpenReader(context.Background(), opt, ReaderOptions{Appended: appended})
				var damage *contract.CorruptionError
				if !errors.As(err, &damage) || damage.Lost != c.lost {
					t.Errorf("appended %v: %v, want %v lost", appended, err, c.lost)
				}
			}
			report, found := salvage(t, opt)
			i := slices.IndexFunc(found, func(f Finding) bool { return f.Kind == "missing-segment" })
			if i < 0 || found[i].Severity != Fault || found[i].File != segment(opt, int64(c.file)) || *found[i].Lost != (LostRange{c.lost.Start, c.lost.End}) || report.Faults != 1 {
				t.Errorf("%+v, %+v", report, found)
			}
			whole := int64(0)
			for _, r := range v.receipts {
				if p, _ := r.Range(); !slices.Contains(c.removed, int(p.Start/size)) {
					whole++
				}
			}
			if report.Records != whole {
				t.Errorf("%d records, there are %d", report.Records, whole)
			}
			if _, err := Open(context.Background(), opt); !errors.Is(err, contract.ErrCorrupt) {
				t.Errorf("the owner: %v", err)
			}
		})
	}
	t.Run("get", func(t *testing.T) {
		opt := v.opt
		image := v.sim.Kill()
		opt.FS = image
		if err := image.Remove(segment(opt, 1)); err != nil {
			t.Fatal(err)
		}
		r := openReading(t, opt, ReaderOptions{Salvage: true})
		seen, met := skipping(t, r, Request{Topic: "t"})
		if len(met) == 0 || len(seen)+len(met) != 200 || met[0].File != segment(opt, 1) {
			t.Errorf("%d seen, %d met, the first %v", len(seen), len(met), met[0])
		}
	})
}

func all(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// TestReaderRefreshMissing: what goes while a Reader is open is noticed too, and
// what it had stays.
func TestReaderRefreshMissing(t *testing.T) {
	v := newVerified(t, 200)
	opt := v.opt
	image := v.sim.Kill()
	opt.FS = image
	r := openReading(t, opt, ReaderOptions{})
	before := mustAnswers(t, r)
	if err := image.Remove(segment(opt, int64(endOf(v.receipts[199]))/opt.SegmentSize)); err != nil {
		t.Fatal(err)
	}
	if err := r.Refresh(context.Background()); !errors.Is(err, contract.ErrCorrupt) {
		t.Errorf("%v", err)
	}
	if after := mustAnswers(t, r); after != before {
		t.Errorf("it answers\n%s\nbefore\n%s", after, before)
	}
}

// TestReaderHeadGone: the owner wrote down where the log started.
func TestReaderHeadGone(t *testing.T) {
	v := newVerified(t, 400)
	opt := v.opt
	image := v.sim.Kill()
	opt.FS = image
	if err := image.Remove(segment(opt, 0)); err != nil {
		t.Fatal(err)
	}
	report, found := salvage(t, opt)
	if !slices.Contains(kinds(found), "note missing-head") || report.Faults != 0 {
		t.Errorf("%+v, %+v", report, found)
	}
}

// TestReaderOddFiles: strangers and files of a wrong length.
func TestReaderOddFiles(t *testing.T) {
	v := newVerified(t, 400)
	size := v.opt.SegmentSize
	for name, damage := range map[string]func(vfs.FS) string{
		"stranger in the log": func(fs vfs.FS) string {
			name := path.Join(v.opt.Dir, "commitlog", "notes.txt")
			writeFile(t, fs, name, 0, []byte("x"), true)
			return name
		},
		"short segment": func(fs vfs.FS) string {
			writeFile(t, fs, segment(v.opt, 1), 100, []byte("x"), true)
			return segment(v.opt, 1)
		},
		"short first segment": func(fs vfs.FS) string {
			writeFile(t, fs, segment(v.opt, 0), 5000, []byte("x"), true)
			return segment(v.opt, 0)
		},
		"misaligned": func(fs vfs.FS) string {
			name := path.Join(v.opt.Dir, "commitlog", "00000000000000000077")
			writeFile(t, fs, name, size-1, []byte{0}, true)
			return name
		},
		"stranger in the queues": func(fs vfs.FS) string {
			name := path.Join(v.opt.Dir, queueDirName, "t", "0", "notes.txt")
			writeFile(t, fs, name, 0, []byte("x"), true)
			return name
		},
	} {
		t.Run(name, func(t *testing.T) {
			opt := v.opt
			opt.SegmentSize, opt.QueueFileSize = 0, 0
			image := v.sim.Kill()
			opt.FS = image
			file := damage(image)
			if _, err := OpenReader(context.Background(), opt, ReaderOptions{}); !errors.Is(err, contract.ErrCorrupt) {
				t.Fatalf("%v", err)
			}
			report, found := salvage(t, opt)
			if !slices.ContainsFunc(found, func(f Finding) bool { return f.Severity == Fault && f.Kind == "damage" && f.File == file }) || report.Records == 0 {
				t.Errorf("%+v, %+v", report, found)
			}
			for _, f := range found {
				if f.Kind == "wrong-unit" || f.Kind == "missing-unit" || f.Kind == "missing-segment" {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// TestReaderNoStore: there is nothing to read.
func TestReaderNoStore(t *testing.T) {
	sim := vfs.NewSim()
	if err := sim.MkdirAll("/empty"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/nowhere", "/empty"} {
		for _, ro := range []ReaderOptions{{}, {Appended: true}, {Salvage: true}} {
			if _, err := OpenReader(context.Background(), testOptions(sim, dir), ro); !errors.Is(err, contract.ErrNotFound) {
				t.Errorf("%s: %v", dir, err)
			}
		}
	}
	writeFile(t, sim, "/file", 0, []byte("x"), true)
	if _, err := OpenReader(context.Background(), testOptions(sim, "/file"), ReaderOptions{}); !errors.Is(err, contract.ErrInvalid) {
		t.Errorf("a file: %v", err)
	}
	// A log whose directory is gone with all segments is another thing.
	v := newVerified(t, 20)
	if err := removeAll(v.sim, path.Join(v.opt.Dir, "commitlog")); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenReader(context.Background(), v.opt, ReaderOptions{}); !errors.Is(err, contract.ErrCorrupt) {
		t.Errorf("%v", err)
	}
	if report, found := salvage(t, v.opt); report.Faults != 1 {
		t.Errorf("%+v, %+v", report, found)
	}
}

func TestReaderClosed(t *testing.T) {
	v := newVerified(t, 20)
	r, err := OpenReader(context.Background(), v.opt, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var out Records
	var rec Record
	ctx := context.Background()
	_, at := r.GetAt(ctx, 0, &rec)
	_, verified := r.Verify(ctx, func(Finding) {})
	for name, err := range map[string]error{"Get": r.Get(ctx, Request{Topic: "t"}, &out), "GetAt": at, "Verify": verified, "Refresh": r.Refresh(ctx)} {
		if !errors.Is(err, contract.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, _ = r.Topics(), r.Queues("t")
	_ = r.Inspect()
}

// TestVerifyRuns: what is wrong in a row is one finding.
func TestVerifyRuns(t *testing.T) {
	v := newVerified(t, 100)
	image := v.sim.Kill()
	opt := v.opt
	opt.FS = image
	file, off := v.unit(0, 10)
	for at := int64(10); at < 20; at++ {
		f, o := v.unit(0, at)
		writeFile(t, image, f, o, queueUnit(7, 100, 0), false)
	}
	lone, loneOff := v.unit(0, 30)
	writeFile(t, image, lone, loneOff, queueUnit(7, 100, 0), false)
	report, found := salvage(t, opt)
	for _, kind := range []string{"missing-unit", "wrong-unit"} {
		var runs []Finding
		for _, f := range found {
			if f.Kind == kind {
				runs = append(runs, f)
			}
		}
		if len(runs) != 2 || runs[0].File != file || runs[0].Offset != off || runs[0].Count != 10 || !strings.Contains(runs[0].Text, "10 units") ||
			runs[1].File != lone || runs[1].Offset != loneOff || runs[1].Count != 1 {
			t.Errorf("%s: %+v", kind, runs)
		}
	}
	if report.Faults != 4 {
		t.Errorf("%+v", report)
	}
}

// TestVerifySidecar: a damaged slot is a note, as is a cursors file that says
// nothing.
func TestVerifySidecar(t *testing.T) {
	v := newVerified(t, 20)
	side := func(name string) string { return path.Join(v.opt.Dir, "stratalog", name) }
	for name, slot := range map[string]int64{"bound": 4096, "state": 64 << 10, "cursors": 64 << 10} {
		for i := range int64(2) {
			image := v.sim.Kill()
			b := readFile(t, image, side(name))[i*slot : i*slot+slot]
			if len(strings.Trim(string(b[:40]), "\x00")) == 0 {
				continue // never written
			}
			writeFile(t, image, side(name), i*slot+20, []byte{b[20] ^ 4}, false)
			report, found := verify(t, image, v.opt)
			if !slices.ContainsFunc(found, func(f Finding) bool {
				return f.Severity == Note && f.Kind == "sidecar-slot" && f.File == side(name) && f.Offset == i*slot
			}) && !slices.Contains(kinds(found), "note sidecar") || report.Faults != 0 {
				t.Errorf("slot %d of %s: %+v, %+v", i, name, report, found)
			}
		}
	}
	image := v.sim.Kill()
	writeFile(t, image, side("cursors"), 0, slices.Repeat([]byte{0xEE}, 128<<10), false)
	report, found := verify(t, image, v.opt)
	if len(found) != 1 || found[0].Kind != "sidecar" || found[0].File != side("cursors") || report.Notes != 1 {
		t.Errorf("%+v, %+v", report, found)
	}
	// Without a cursor nobody knows where the lane is.
	if err := removeAll(image, path.Join(v.opt.Dir, queueDirName)); err != nil {
		t.Fatal(err)
	}
	_, found = verify(t, image, v.opt)
	i := slices.IndexFunc(found, func(f Finding) bool { return f.Kind == "lagging-lane" })
	if i < 0 || !strings.Contains(found[i].Text, "unknown") || strings.Contains(found[i].Text, "position 0") {
		t.Errorf("%+v", found)
	}
}

// opening is a file system that does something when a file is opened first.
type opening struct {
	vfs.FS
	file string
	then func()
}

func (o *opening) Open(name string, flag vfs.Flag) (vfs.File, error) {
	if then := o.then; name == o.file && then != nil {
		o.then = nil
		then()
	}
	return o.FS.Open(name, flag)
}

// TestReaderBesideRetirement: files that retention removes between the look at
// their directory and the one into them are no failure.
func TestReaderBesideRetirement(t *testing.T) {
	sim := vfs.NewSim()
	opt := testOptions(sim, "/store")
	opt.SegmentSize, opt.QueueFileSize = 16<<10, 400
	s := start(t, opt)
	for i := range 900 {
		mustAppend(t, s, &Message{Topic: "t", Body: body(i % 7)}, Sync)
	}
	waitVisible(t, s, s.Health().Watermarks.Durable)
	o := &opening{FS: sim, file: "/store/consumequeue/t/0/00000000000000000000"}
	o.then = func() {
		if retired, err := s.Retire(context.Background(), s.Health().Watermarks.Durable/2); err != nil || retired.QueueFiles == 0 {
			t.Errorf("%+v, %v", retired, err)
		}
	}
	reading := opt
	reading.FS = o
	r, err := OpenReader(context.Background(), reading, ReaderOptions{})
	if err != nil || o.then != nil {
		t.Fatal(err)
	}
	var out Records
	first, _ := r.QueueRange("t", 0)
	if err := r.Get(context.Background(), Request{Topic: "t", Offset: first}, &out); err != nil {
		t.Error(out.Status, err)
	}
	out.Release()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	closeClean(t, s)
}
