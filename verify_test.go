package stratalog

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// verify opens a Reader, uses all of it, and checks that nothing changed.
func verify(t *testing.T, fs vfs.FS, opt Options) (VerifyReport, []Finding) {
	t.Helper()
	opt.FS = fs
	before := tree(t, fs, opt.Dir)
	r, err := OpenReader(context.Background(), opt, ReaderOptions{})
	if err != nil {
		t.Fatalf("open for reading: %v", err)
	}
	var found []Finding
	report, err := r.Verify(context.Background(), func(f Finding) { found = append(found, f) })
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	if n := int64(len(found)); report.Notes+report.Faults != n {
		t.Fatalf("%d notes and %d faults of %d findings", report.Notes, report.Faults, n)
	}
	_ = r.Inspect()
	_, _ = answers(r)
	if err := errors.Join(r.Refresh(context.Background()), r.Close()); err != nil {
		t.Fatal(err)
	}
	sameTree(t, "a Reader", before, tree(t, fs, opt.Dir))
	return report, found
}

// verified is a small store with the receipts of its records.
type verified struct {
	opt      Options
	sim      *vfs.Sim
	receipts []Receipt
}

func newVerified(t *testing.T, n int) *verified {
	v := &verified{sim: vfs.NewSim()}
	v.opt = testOptions(v.sim, "/store")
	v.opt.SegmentSize, v.opt.QueueFileSize, v.opt.Clock = 16<<10, 400, manual()
	s := start(t, v.opt)
	for i := range n {
		v.receipts = append(v.receipts, mustAppend(t, s, &Message{Topic: "t", QueueID: int32(i % 2), Body: body(i % 7), Properties: tags("x")}, Sync))
	}
	waitVisible(t, s, endOf(v.receipts[n-1]))
	closeClean(t, s)
	return v
}

// unit is where unit at of a queue stands.
func (v *verified) unit(queue int, at int64) (file string, off int64) {
	start := at * codec.QueueUnitSize / v.opt.QueueFileSize * v.opt.QueueFileSize
	return path.Join(v.opt.Dir, queueDirName, "t", fmt.Sprint(queue), fmt.Sprintf("%020d", start)), at*codec.QueueUnitSize - start
}

func kinds(found []Finding) (out []string) {
	for _, f := range found {
		out = append(out, string(f.Severity)+" "+f.Kind)
	}
	return out
}

func TestVerifyClean(t *testing.T) {
	v := newVerified(t, 150)
	report, found := verify(t, v.sim, v.opt)
	if report.Faults != 0 || report.Records != 150 || report.Units != 150 || report.Unverified != 0 || report.End != endOf(v.receipts[149]) {
		t.Errorf("%+v, %+v", report, found)
	}
	if len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

// TestVerifyClosedElsewhere: in a log of which no bound is known, which was closed, a
// queue's last unit that leads beyond the end is named, and not the log alone.
func TestVerifyClosedElsewhere(t *testing.T) {
	v := newVerified(t, 60)
	for _, name := range []string{"bound", "state", "cursors"} {
		if err := v.sim.Remove(path.Join(v.opt.Dir, "stratalog", name)); err != nil {
			t.Fatal(err)
		}
	}
	if report, found := verify(t, v.sim, v.opt); report.Faults != 0 {
		t.Fatalf("%+v", found)
	}
	for queue := range 2 {
		file, off := v.unit(queue, 29)
		old := readFile(t, v.sim, file)
		writeFile(t, v.sim, file, off+1, []byte{old[off+1] ^ 2}, false)
		report, found := verify(t, v.sim, v.opt)
		named := slices.ContainsFunc(found, func(f Finding) bool {
			return f.Severity == Fault && f.Kind == "wrong-unit" && f.File == file && f.Offset == off
		})
		if !named || report.Faults != 2 {
			t.Errorf("queue %d: %+v", queue, found)
		}
		writeFile(t, v.sim, file, off+1, []byte{old[off+1]}, false)
	}
}

// What a kill leaves at the end is a note.
func TestVerifyTornTail(t *testing.T) {
	v := newVerified(t, 20)
	end := int64(endOf(v.receipts[19]))
	rec := readFile(t, v.sim, segment(v.opt, 0))[:200]
	for cut := 1; cut <= len(rec); cut += 7 {
		image := v.sim.Kill()
		writeFile(t, image, segment(v.opt, 0), end, rec[:cut], false)
		report, found := verify(t, image, v.opt)
		// Zeros at the front of the length look like the end of the log.
		if report.Faults != 0 || report.Records != 20 || cut >= 4 && !slices.Contains(kinds(found), "note torn-tail") {
			t.Fatalf("%d bytes: %+v, %+v", cut, report, found)
		}
	}
}

// Every bit of every byte of a few records below the bound.
func TestVerifyFlips(t *testing.T) {
	v := newVerified(t, 6)
	whole := readFile(t, v.sim, segment(v.opt, 0))
	n, bits := 0, 8
	if testing.Short() {
		bits = 2
	}
	for _, i := range []int{0, 3, 5} { // the first, one in the middle, the last
		place, _ := v.receipts[i].Range()
		for at := place.Start; at < place.End; at++ {
			for k := range bits {
				bit := k
				if bits < 8 {
					bit = (int(at)*3 + k*5) % 8
				}
				image := v.sim.Kill()
				writeFile(t, image, segment(v.opt, 0), int64(at), []byte{whole[at] ^ 1<<bit}, false)
				report, found := verify(t, image, v.opt)
				hit := slices.ContainsFunc(found, func(f Finding) bool {
					return f.Severity == Fault && f.Kind == "damage" && f.File == segment(v.opt, 0) && f.Offset == int64(place.Start) &&
						f.Lost != nil && f.Lost.Start == place.Start && f.Lost.End > place.Start
				})
				if !hit || report.Faults == 0 {
					t.Fatalf("bit %d of byte %d of record %d: %+v", bit, at-place.Start, i, found)
				}
				n++
			}
		}
	}
	t.Logf("%d flips", n)
}

// A unit that leads to the wrong place is a fault, and named.
func TestVerifyUnits(t *testing.T) {
	v := newVerified(t, 100)
	place := func(i int) contract.Range { p, _ := v.receipts[i].Range(); return p }
	unit := func(phy Offset, size int64, tag int64) []byte { return queueUnit(int64(phy), size, tag) }
	right := codec.TagsCode(tags("x"))
	// Unit 10 of queue 0 stands for record 20.
	for _, c := range []struct {
		name string
		unit []byte
		want string
	}{
		{"of another record", unit(place(22).Start, place(22).Len(), right), "wrong-unit"},
		{"of another queue", unit(place(21).Start, place(21).Len(), right), "wrong-unit"},
		{"of another size", unit(place(20).Start, place(20).Len()+1, right), "wrong-unit"},
		{"into the middle of a record", unit(place(20).Start+20, place(20).Len()-20, right), "wrong-unit"},
		{"of another tag", unit(place(20).Start, place(20).Len(), right+1), "wrong-unit"},
		{"blank", unit(0, 0x7FFFFFFF, 0), "missing-unit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			image := v.sim.Kill()
			file, off := v.unit(0, 10)
			writeFile(t, image, file, off, c.unit, false)
			report, found := verify(t, image, v.opt)
			hit := slices.ContainsFunc(found, func(f Finding) bool {
				return f.Severity == Fault && f.Kind == c.want && f.File == file && f.Offset == off
			})
			if !hit || report.Faults == 0 {
				t.Errorf("%+v, %+v", report, found)
			}
		})
	}
	t.Run("gone", func(t *testing.T) {
		// Each unit in turn, and the last ones of a queue.
		for at := range int64(50) {
			image := v.sim.Kill()
			file, off := v.unit(0, at)
			writeFile(t, image, file, off, make([]byte, codec.QueueUnitSize), false)
			report, found := verify(t, image, v.opt)
			hit := slices.ContainsFunc(found, func(f Finding) bool {
				return f.Severity == Fault && f.Kind == "missing-unit" && f.File == file && f.Offset == off
			})
			if !hit || report.Faults == 0 {
				t.Fatalf("unit %d: %+v, %+v", at, report, found)
			}
		}
	})
	t.Run("queue gone", func(t *testing.T) {
		image := v.sim.Kill()
		if err := removeAll(image, path.Join(v.opt.Dir, queueDirName)); err != nil {
			t.Fatal(err)
		}
		report, found := verify(t, image, v.opt)
		if report.Faults != 2 || found[0].Count+found[1].Count != 100 || found[1].Offset != 0 {
			t.Errorf("%+v, %+v", report, found)
		}
	})
}

// A lane that is behind is a note.
func TestVerifyLaggingLane(t *testing.T) {
	fault := vfs.NewFault(vfs.NewSim())
	opt := testOptions(fault, "/store")
	s := start(t, opt)
	fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpCreate, vfs.OpWrite), Path: "consumequeue/t/0/*", Sticky: true, Err: syscall.EIO})
	for i := range 10 {
		mustAppend(t, s, &Message{Topic: "t", Body: body(i)}, Sync)
	}
	report, found := verify(t, fault, opt)
	if report.Faults != 0 || report.Records != 10 || !slices.Contains(kinds(found), "note lagging-lane") {
		t.Errorf("%+v, %+v", report, found)
	}
	fault.Clear()
	closeClean(t, s)
	if report, found := verify(t, fault, opt); len(found) != 0 || report.Units != 10 {
		t.Errorf("%+v, %+v", report, found)
	}
}

// Nothing a Reader does needs to write: it works on a read-only file system.
func TestVerifyReadOnly(t *testing.T) {
	v := newVerified(t, 50)
	image := v.sim.Kill()
	image.SetReadOnly(true)
	if report, found := verify(t, image, v.opt); report.Records != 50 || len(found) != 0 {
		t.Errorf("%+v, %+v", report, found)
	}
	// And on what a kill left, with and without the appended tail.
	s := start(t, v.opt)
	mustAppend(t, s, &Message{Topic: "t", Body: body(1)}, Memory)
	killed := v.sim.Kill()
	killed.SetReadOnly(true)
	closeClean(t, s)
	report, found := verify(t, killed, v.opt)
	if report.Faults != 0 || report.Records != 50 || !slices.Contains(kinds(found), "note unpublished-tail") {
		t.Errorf("%+v, %s", report, strings.Join(kinds(found), ", "))
	}
	opt := v.opt
	opt.FS = killed
	r, err := OpenReader(context.Background(), opt, ReaderOptions{Appended: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if report, err := r.Verify(context.Background(), func(Finding) {}); err != nil || report.Records != 51 || report.Faults != 0 {
		t.Errorf("%+v, %v", report, err)
	}
}
