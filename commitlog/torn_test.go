package commitlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// stillLog writes n records, syncs them and what the sidecar knows, and leaves
// the log as a kill does. It returns the receipts.
func stillLog(t testing.TB, opt Options, n int) []contract.Receipt {
	t.Helper()
	log, err := openStill(opt, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []contract.Receipt
	for i := range n {
		out = append(out, stillAppend(t, log, message("T", i)))
	}
	if err := log.side.syncBound(); err != nil {
		t.Fatal(err)
	}
	_ = log.Close(false)
	return out
}

// stillAppend appends with Sync, making segments as needed.
func stillAppend(t testing.TB, log *Log, m *contract.Message) contract.Receipt {
	t.Helper()
	for range 3 {
		pump(log)
		r, err := log.Append(context.Background(), m, contract.DurabilitySync)
		if err == nil {
			return r
		}
		if !errors.Is(err, contract.ErrBusy) {
			t.Fatal(err)
		}
	}
	t.Fatal("no room")
	return contract.Receipt{}
}

func simOptions(sim vfs.FS) Options {
	opt := smallOptions(sim, "/store")
	opt.AdmissionWait, opt.Gather = -1, -1
	return opt
}

// poke writes b into a segment file, behind the log's back.
func poke(t testing.TB, fs vfs.FS, seg contract.Offset, off int64, b []byte) {
	t.Helper()
	f, err := fs.Open(path.Join("/store/commitlog", segmentName(seg)), vfs.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, off); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
}

func peek(t testing.TB, fs vfs.FS, seg contract.Offset, off, n int64) []byte {
	t.Helper()
	f, err := fs.Open(path.Join("/store/commitlog", segmentName(seg)), vfs.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, off); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	return b
}

// TestTornTail puts every kind of broken record at the end of a log.
func TestTornTail(t *testing.T) {
	for _, path := range []WritePath{WritePwrite, WriteMmap} {
		t.Run(path.String(), func(t *testing.T) {
			sim := vfs.NewSim()
			opt := simOptions(sim)
			opt.WritePath = path
			const before = 6
			whole := stillLog(t, opt, before+1)
			torn, _ := whole[before].Range()
			record := peek(t, sim, 0, int64(torn.Start), torn.Len())
			// The log without its last record: the bound goes back too.
			log, err := openStill(opt, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := log.TruncateTo(context.Background(), torn.Start, nil); err != nil {
				t.Fatal(err)
			}
			_ = log.Close(false)

			rng := rand.New(rand.NewPCG(1, 2))
			cases := 0
			try := func(name string, tail []byte, kept bool) {
				cases++
				checkTail(t, name, sim.Kill(), opt, whole[:before], torn.Start, tail, kept)
			}
			for n := 1; n < len(record); n++ {
				try(fmt.Sprintf("prefix of %d", n), record[:n], false)
				try(fmt.Sprintf("prefix of %d, then 0xFF", n), append(bytes.Clone(record[:n]), bytes.Repeat([]byte{0xFF}, len(record)-n)...), false)
				junk := bytes.Clone(record)
				for i := n; i < len(junk); i++ {
					junk[i] = byte(rng.Uint32())
				}
				try(fmt.Sprintf("prefix of %d, then noise", n), junk, false)
			}
			try("0xFF", bytes.Repeat([]byte{0xFF}, 700), false)
			noise := make([]byte, 700)
			for i := range noise {
				noise[i] = byte(rng.Uint32())
			}
			try("noise", noise, false)
			first, _ := whole[0].Range()
			try("a copy of another record", peek(t, sim, 0, int64(first.Start), first.Len()), false)
			try("the record one byte further on", append([]byte{0}, record...), false)
			try("the whole record", record, true)
			if cases < 3*(len(record)-1) {
				t.Fatalf("only %d cases", cases)
			}
			t.Logf("%d tails", cases)
		})
	}
}

// checkTail opens the log with tail written behind its end.
func checkTail(t *testing.T, name string, sim *vfs.Sim, opt Options, before []contract.Receipt, end contract.Offset, tail []byte, kept bool) {
	t.Helper()
	opt.FS = sim
	poke(t, sim, 0, int64(end), tail)
	log, err := openStill(opt, nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	report := log.Report()
	zero := firstNonZero(tail) < 0
	switch {
	case kept && (log.Appended() != end+contract.Offset(len(tail)) || !report.Cut.Empty()):
		t.Fatalf("%s: ends at %d, report %+v", name, log.Appended(), report)
	case !kept && log.Appended() != end:
		t.Fatalf("%s: ends at %d, want %d", name, log.Appended(), end)
	case !kept && !zero && (report.Cut.Start != end || report.Cut.Empty() || report.CutCause == nil || !report.NewEpoch):
		t.Fatalf("%s: not reported: %+v", name, report)
	}
	var five []contract.Receipt
	for i := range 5 {
		five = append(five, stillAppend(t, log, message("five", i)))
	}
	_ = log.Close(false)
	opt.FS = sim.Crash(vfs.AllOld())
	log, err = openStill(opt, nil)
	if err != nil {
		t.Fatalf("%s: reopen: %v", name, err)
	}
	if !log.Report().Cut.Empty() {
		t.Fatalf("%s: cut again: %+v", name, log.Report())
	}
	for i, r := range before {
		readBack(t, log, r, message("T", i))
	}
	for i, r := range five {
		readBack(t, log, r, message("five", i))
	}
	if err := log.Close(true); err != nil {
		t.Fatalf("%s: close: %v", name, err)
	}
}

// TestDamageBelowBound damages a record that was durable: Open does not cut,
// Read tells, and the neighbours are served.
func TestDamageBelowBound(t *testing.T) {
	sim := vfs.NewSim()
	opt := simOptions(sim)
	receipts := stillLog(t, opt, 60)
	victim := 30
	rng, _ := receipts[victim].Range()
	base := rng.Start / (16 << 10) * (16 << 10)
	for _, c := range []struct {
		name string
		b    []byte
	}{
		{"zeros", make([]byte, rng.Len())},
		{"0xFF", bytes.Repeat([]byte{0xFF}, int(rng.Len()))},
		{"half zeros", make([]byte, rng.Len()/2)},
		{"one byte", []byte{0x55}},
		{"copy of another", peek(t, sim, 0, 0, 100)},
	} {
		image := sim.Kill()
		o := opt
		o.FS = image
		poke(t, image, base, int64(rng.Start-base), c.b)
		log, err := openStill(o, &history{})
		if err != nil && !errors.Is(err, contract.ErrCorrupt) {
			t.Fatalf("%s: open: %v", c.name, err)
		}
		if err != nil {
			// The scan for queue offsets met it; the log itself opens.
			if log, err = Open(context.Background(), o); err != nil {
				t.Fatalf("%s: open: %v", c.name, err)
			}
		}
		if !log.Report().Cut.Empty() {
			t.Fatalf("%s: cut: %+v", c.name, log.Report())
		}
		var rec Record
		found, err := log.Read(rng.Start, &rec)
		var damage *contract.CorruptionError
		if found || !errors.As(err, &damage) {
			t.Fatalf("%s: read: %v, %v", c.name, found, err)
		}
		if damage.Offset != int64(rng.Start-base) || path.Base(damage.File) != segmentName(base) || !damage.Lost.Contains(rng.Start) {
			t.Fatalf("%s: %+v", c.name, damage)
		}
		for i, r := range receipts {
			if i != victim {
				readBack(t, log, r, message("T", i))
			}
		}
		if err := log.Close(true); err != nil {
			t.Fatalf("%s: close: %v", c.name, err)
		}
	}
}

// damageBelowOracle is the oracle for damage where the bound is not known: the
// log must refuse to open and be left as it was.
func damageBelowOracle(broken breakage) error {
	sim := vfs.NewSim()
	opt := simOptions(sim)
	opt.broken = broken
	var t recorder
	receipts := stillLog(&t, opt, 20)
	rng, _ := receipts[7].Range()
	poke(&t, sim, 0, int64(rng.Start)+120, []byte{0xAA, 0x55}) // in the body
	for _, name := range []string{boundName, stateName, cursorsName} {
		if err := sim.Remove("/store/stratalog/" + name); err != nil {
			return err
		}
	}
	before := peek(&t, sim, 0, 0, 16<<10)
	if t.failed {
		return errors.New("could not be set up")
	}
	log, err := openStill(opt, nil)
	if err == nil {
		_ = log.Close(false)
		return errors.New("a log with damage and valid records behind it was opened")
	}
	var damage *contract.CorruptionError
	if !errors.As(err, &damage) || damage.Offset != int64(rng.Start) {
		return fmt.Errorf("error: %w", err)
	}
	if !bytes.Equal(before, peek(&t, sim, 0, 0, 16<<10)) {
		return errors.New("the log was changed")
	}
	return nil
}

// recorder is a testing.TB for helpers that must not end the test.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Fatal(...any)          { r.failed = true }
func (r *recorder) Fatalf(string, ...any) { r.failed = true }

// TestEveryBit flips each bit of each byte of a log of several segments, marks
// and the zeros behind them included: a read of the record and a walk find it.
func TestEveryBit(t *testing.T) {
	sim := vfs.NewSim()
	opt := simOptions(sim)
	opt.SegmentSize = 4096
	opt.MaxMessageSize = 1024
	n := 14
	if testing.Short() {
		n = 8
	}
	receipts := stillLog(t, opt, n)
	log, err := openStill(opt, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close(false) }()
	end := int64(log.Appended())
	if v, err := log.Verify(0, log.Appended(), func(err error) bool { t.Error(err); return true }); err != nil || v.Records != int64(n) || v.Unverified != 0 {
		t.Fatalf("a whole log: %+v, %v", v, err)
	}
	owner := make([]int, end) // by byte of the log: the record, or -1
	for i := range owner {
		owner[i] = -1
	}
	for i, r := range receipts {
		rng, _ := r.Range()
		for at := rng.Start; at < rng.End; at++ {
			owner[at] = i
		}
	}
	flips := 0
	for _, seg := range log.segs.Load().segs {
		f, err := sim.Open(seg.file.Path(), vfs.ReadWrite)
		if err != nil {
			t.Fatal(err)
		}
		b := bytes.Clone(seg.file.Bytes())
		for at := range b {
			off := seg.base + int64(at)
			if off >= end {
				break
			}
			for bit := range 8 {
				flips++
				if _, err := f.WriteAt([]byte{b[at] ^ 1<<bit}, int64(at)); err != nil {
					t.Fatal(err)
				}
				checkFlip(t, log, receipts, owner[off], off, bit)
			}
			if _, err := f.WriteAt(b[at:at+1], int64(at)); err != nil {
				t.Fatal(err)
			}
		}
		_ = f.Close()
	}
	t.Logf("%d flips", flips)
	if int64(flips) != 8*end {
		t.Fatalf("%d flips in %d bytes", flips, end)
	}
}

func checkFlip(t *testing.T, log *Log, receipts []contract.Receipt, owner int, off int64, bit int) {
	t.Helper()
	base := off / log.size * log.size
	if owner >= 0 {
		rng, _ := receipts[owner].Range()
		var rec Record
		found, err := log.Read(rng.Start, &rec)
		var damage *contract.CorruptionError
		if found || !errors.As(err, &damage) || damage.Offset != int64(rng.Start)-base {
			t.Fatalf("byte %d, bit %d: read of record %d: %v, %v", off, bit, owner, found, err)
		}
	}
	findings := 0
	v, err := log.Verify(contract.Offset(base), contract.Offset(base+log.size), func(err error) bool { findings++; return true })
	if err != nil || findings == 0 {
		t.Fatalf("byte %d, bit %d: not found by a walk: %+v, %v", off, bit, v, err)
	}
	if owner >= 0 && findings != 1 {
		t.Fatalf("byte %d, bit %d: %d findings for one record", off, bit, findings)
	}
}

// TestVerifyGoesOn damages several places: each is found, and the records
// between them count.
func TestVerifyGoesOn(t *testing.T) {
	sim := vfs.NewSim()
	opt := simOptions(sim)
	receipts := stillLog(t, opt, 80)
	victims := []int{3, 4, 20, 41, 79}
	for _, i := range victims {
		rng, _ := receipts[i].Range()
		base := rng.Start / (16 << 10) * (16 << 10)
		poke(t, sim, base, int64(rng.Start-base)+30, []byte{0xEE, 0xEE, 0xEE})
	}
	ro, err := OpenReadOnly(opt, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ro.Close() }()
	var lost []contract.Range
	v, err := ro.Verify(0, ro.Appended(), func(err error) bool {
		var damage *contract.CorruptionError
		if !errors.As(err, &damage) {
			t.Fatal(err)
		}
		lost = append(lost, damage.Lost)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if int(v.Records) != len(receipts)-len(victims) || int(v.Findings) != len(lost) {
		t.Fatalf("%+v, lost %v", v, lost)
	}
	for _, i := range victims {
		rng, _ := receipts[i].Range()
		covered := false
		for _, l := range lost {
			covered = covered || l.Start <= rng.Start && rng.End <= l.End
		}
		if !covered {
			t.Fatalf("record %d at %v is not in %v", i, rng, lost)
		}
	}
	n := 0
	if _, err := ro.Verify(0, ro.Appended(), func(error) bool { n++; return false }); err != nil || n != 1 {
		t.Fatalf("a walk that was told to stop: %d findings, %v", n, err)
	}
}
