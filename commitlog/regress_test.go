package commitlog

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// Each test of this file stands for a fault that an attack on the log found.

// sized is a message whose record takes size bytes.
func sized(t testing.TB, log *Log, size int, fill byte) *contract.Message {
	t.Helper()
	m := &contract.Message{Topic: "T"}
	b, err := log.encode(nil, m, 1)
	if err != nil {
		t.Fatal(err)
	}
	m.Body = bytes.Repeat([]byte{fill}, size-len(b))
	return m
}

// placeOf is where a receipt says that the record is.
func placeOf(r contract.Receipt) contract.Range {
	rng, _ := r.Range()
	return rng
}

// A sync that failed left more in the page cache only than the next owner's
// MaxUnsynced: recovery wrote no more than that again, and acknowledged appends
// behind bytes that a power cut took away.
func TestSmallerWindowAfterFailedSync(t *testing.T) {
	for _, write := range []WritePath{WritePwrite, WriteMmap} {
		sim := vfs.NewSim()
		opt := simOptions(sim)
		opt.WritePath = write
		opt.SegmentSize, opt.MaxMessageSize, opt.MaxUnsynced = 512<<10, 1<<10, 256<<10
		log, err := openStill(opt, nil)
		if err != nil {
			t.Fatal(err)
		}
		var receipts []contract.Receipt
		for i := range 300 {
			receipts = append(receipts, mustAppend(t, log, message("T", i), contract.DurabilityMemory))
		}
		sim.FailSync("commitlog/*", 1, syscall.EIO, true)
		if _, err := log.Append(t.Context(), message("T", 300), contract.DurabilitySync); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		_ = log.Close(false)
		opt.MaxUnsynced = 16 << 10
		if log, err = openStill(opt, nil); err != nil {
			t.Fatal(err)
		}
		if end := placeOf(receipts[299]).End; log.Durable() < end || int64(end) <= log.window() {
			t.Fatalf("%v: durable %d, want %d; window %d", write, log.Durable(), end, log.window())
		}
		acked := mustAppend(t, log, message("S", 7), contract.DurabilitySync)
		_ = log.Close(false)
		for _, choose := range []vfs.Chooser{vfs.AllOld(), vfs.AllNew()} {
			opt.FS = sim.Crash(choose)
			again, err := openStill(opt, nil)
			if err != nil {
				t.Fatalf("%v: %v", write, err)
			}
			readBack(t, again, acked, message("S", 7))
			for i, r := range receipts {
				readBack(t, again, r, message("T", i))
			}
			_ = again.Close(false)
		}
	}
}

// The sync of a cut failed and dropped the pages: the page cache showed zeros,
// so that the next recovery had nothing to cut, and a power cut later brought
// back what lay there on the disk, behind a new record that fitted exactly.
func TestCutWhoseSyncFailed(t *testing.T) {
	const block = 8192
	for _, write := range []WritePath{WritePwrite, WriteMmap} {
		fired := 0
		for n := 1; ; n++ {
			sim := vfs.NewSim()
			opt := simOptions(sim)
			opt.WritePath = write
			opt.SegmentSize, opt.MaxMessageSize, opt.MaxUnsynced = 64<<10, 8<<10, 64<<10
			log, err := openStill(opt, nil)
			if err != nil {
				t.Fatal(err)
			}
			mustAppend(t, log, sized(t, log, 1000, 1), contract.DurabilitySync)
			if err := log.syncBound(); err != nil {
				t.Fatal(err)
			}
			mustAppend(t, log, sized(t, log, block-1000, 2), contract.DurabilityMemory)
			for range 3 {
				mustAppend(t, log, sized(t, log, 3000, 3), contract.DurabilityMemory)
			}
			// The second record is lost, those behind it are on disk.
			disk := sim.Crash(func(_, _ int, it vfs.Item) int {
				if it.Kind == vfs.ItemSector && vfs.Match("commitlog/*", it.Path) && it.Offset < block {
					return 0
				}
				return it.Versions - 1
			})
			_ = log.Close(false)
			opt.FS = disk
			disk.FailSync("commitlog/*", n, syscall.EIO, true)
			log, first := openStill(opt, nil)
			if first != nil {
				fired++
				if log, err = openStill(opt, nil); err != nil {
					t.Fatalf("%v, sync %d: second open: %v", write, n, err)
				}
			}
			if log.Appended() != 1000 {
				t.Fatalf("%v, sync %d: the log ends at %d", write, n, log.Appended())
			}
			if first == nil {
				_ = log.Close(false)
				break // the rule has not fired: there are no more syncs
			}
			acked := mustAppend(t, log, sized(t, log, block-1000, 9), contract.DurabilitySync)
			if err := log.syncBound(); err != nil {
				t.Fatal(err)
			}
			_ = log.Close(false)
			opt.FS = disk.Crash(vfs.AllOld())
			if log, err = openStill(opt, nil); err != nil {
				t.Fatalf("%v, sync %d: after the power cut: %v", write, n, err)
			}
			readBack(t, log, acked, sized(t, log, block-1000, 9))
			if log.Appended() != block || !restIsZero(log) {
				t.Fatalf("%v, sync %d: the log ends at %d, want %d: what was cut is back", write, n, log.Appended(), block)
			}
			_ = log.Close(false)
		}
		if fired == 0 {
			t.Fatalf("%v: no sync failed", write)
		}
	}
}

// gateConfirmer confirms everything; once armed, its next answer takes until
// leave is closed.
type gateConfirmer struct {
	armed        bool
	enter, leave chan struct{}
}

func (c *gateConfirmer) Confirmed() contract.Offset {
	if c.armed {
		c.armed = false
		close(c.enter)
		<-c.leave
	}
	return 1 << 60
}

// A Confirmer that took its time over a truncation had confirmed published from
// a durable of before it, far above the end of the log.
func TestSlowConfirmerOverTruncate(t *testing.T) {
	for _, visibility := range []contract.Visibility{contract.VisibilityDurable, contract.VisibilityAppended} {
		opt := simOptions(vfs.NewSim())
		opt.Visibility = visibility
		c := &gateConfirmer{enter: make(chan struct{}), leave: make(chan struct{})}
		opt.Confirmer = c
		log, err := openStill(opt, nil)
		if err != nil {
			t.Fatal(err)
		}
		var receipts []contract.Receipt
		for i := range 10 {
			receipts = append(receipts, stillAppend(t, log, message("T", i)))
		}
		c.armed = true
		done := make(chan struct{})
		go func() {
			log.ConfirmerChanged()
			close(done)
		}()
		<-c.enter
		at := placeOf(receipts[4]).Start
		err = log.TruncateTo(t.Context(), at, nil)
		close(c.leave)
		<-done
		if err != nil {
			t.Fatal(err)
		}
		if w := log.Watermarks(); w.Appended != at || w.Durable != at || w.Confirmed != at {
			t.Fatalf("visibility %d: cut at %d: %+v", visibility, at, w)
		}
		_ = log.Close(false)
	}
}

// A failed sync of the bound leaves in the page cache what the disk may never
// get. The bound loop tried again and believed that, Retire believed it, and
// the next owner read it from the page cache: segments went that the bound on
// disk still pointed into, and after a power cut the log was refused.
func TestFailedBoundSync(t *testing.T) {
	for name, then := range map[string]func(t *testing.T, log *Log, opt Options, end contract.Offset) *Log{
		"the loop tries again, then Recover": func(t *testing.T, log *Log, _ Options, end contract.Offset) *Log {
			if err := log.side.syncBound(); !errors.Is(err, syscall.EIO) {
				t.Errorf("a second sync of the bound: %v", err)
			}
			if _, err := log.Recover(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			retireAll(t, log, end)
			return log
		},
		"Recover": func(t *testing.T, log *Log, _ Options, end contract.Offset) *Log {
			if _, err := log.Recover(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			retireAll(t, log, end)
			return log
		},
		"Retire while fenced": func(t *testing.T, log *Log, _ Options, end contract.Offset) *Log {
			if at, err := log.Retire(end); !errors.Is(err, syscall.EIO) || at != 0 {
				t.Errorf("retired to %d: %v", at, err)
			}
			return log
		},
		"Retire, its bound alone fenced": func(t *testing.T, log *Log, _ Options, end contract.Offset) *Log {
			log.fence.Store(nil) // as if the sidecar alone knew
			if at, err := log.Retire(end); !errors.Is(err, syscall.EIO) || at != 0 {
				t.Errorf("retired to %d: %v", at, err)
			}
			return log
		},
		"a restart": func(t *testing.T, log *Log, opt Options, end contract.Offset) *Log {
			_ = log.Close(false)
			log, err := openStill(opt, nil)
			if err != nil {
				t.Fatal(err)
			}
			retireAll(t, log, end)
			return log
		},
	} {
		t.Run(name, func(t *testing.T) {
			sim := vfs.NewSim()
			opt := simOptions(sim)
			log, err := openStill(opt, nil)
			if err != nil {
				t.Fatal(err)
			}
			var receipts []contract.Receipt
			for i := range 120 {
				receipts = append(receipts, stillAppend(t, log, message("T", i)))
			}
			end := log.Durable()
			sim.FailSync("stratalog/bound", 1, syscall.EIO, true)
			if err := log.syncBound(); !errors.Is(err, syscall.EIO) || log.Fenced() == nil {
				t.Fatalf("the bound's sync: %v, fenced: %v", err, log.Fenced())
			}
			log = then(t, log, opt, end)
			min := log.MinOffset()
			_ = log.Close(false)
			for _, choose := range []vfs.Chooser{vfs.AllOld(), vfs.AllNew()} {
				opt.FS = sim.Crash(choose)
				again, err := openStill(opt, nil)
				if err != nil {
					t.Fatalf("after the power cut: %v", err)
				}
				if again.Appended() != end {
					t.Errorf("the log ends at %d, want %d", again.Appended(), end)
				}
				for i, r := range receipts {
					if placeOf(r).Start >= min {
						readBack(t, again, r, message("T", i))
					}
				}
				_ = again.Close(false)
			}
		})
	}
}

// retireAll retires what lies wholly below end; something must go.
func retireAll(t *testing.T, log *Log, end contract.Offset) {
	t.Helper()
	if at, err := log.Retire(end); err != nil || at == 0 {
		t.Fatalf("retired to %d: %v", at, err)
	}
}

// The zeros that fill up a written block went beyond the end of a segment whose
// size is no multiple of a block: the file grew, and the next open refused it.
func TestOddSegmentKeepsItsLength(t *testing.T) {
	const size = 10000
	for _, write := range []WritePath{WritePwrite, WriteMmap} {
		sim := vfs.NewSim()
		if err := sim.MkdirAll("/store/commitlog"); err != nil {
			t.Fatal(err)
		}
		writeFile(t, sim, "/store/commitlog/"+segmentName(0), make([]byte, size))
		opt := simOptions(sim)
		opt.WritePath, opt.SegmentSize, opt.MaxMessageSize = write, 0, 2000
		log, err := openStill(opt, nil)
		if err != nil {
			t.Fatal(err)
		}
		lengths := func(when string) {
			t.Helper()
			entries, err := sim.ReadDir("/store/commitlog")
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				info, err := sim.Stat("/store/commitlog/" + e.Name)
				if err != nil || info.Size != size {
					t.Fatalf("%v, %s: %s has %d bytes, %v", write, when, e.Name, info.Size, err)
				}
			}
		}
		var receipts []contract.Receipt
		for i := range 60 {
			receipts = append(receipts, stillAppend(t, log, message("T", i)))
			lengths(fmt.Sprint("append ", i))
		}
		if log.Stats().Rolls < 2 {
			t.Fatalf("%d rolls", log.Stats().Rolls)
		}
		_ = log.Close(false)
		if log, err = openStill(opt, nil); err != nil {
			t.Fatal(err)
		}
		lengths("reopened")
		for i, r := range receipts {
			readBack(t, log, r, message("T", i))
		}
		_ = log.Close(false)
	}
}

// A truncation without record checksums kept the range in which every record
// had to carry one: what was appended behind it was taken for damage.
func TestTruncateWithoutChecksums(t *testing.T) {
	for _, clean := range []bool{true, false} {
		sim := vfs.NewSim()
		opt := simOptions(sim)
		receipts := stillLog(t, opt, 20)
		opt.NoRecordChecksum = true
		log, err := openStill(opt, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := log.TruncateTo(t.Context(), placeOf(receipts[10]).Start, nil); err != nil {
			t.Fatal(err)
		}
		receipts = receipts[:10]
		for i := 10; i < 20; i++ {
			receipts = append(receipts, stillAppend(t, log, message("T", i)))
			readBack(t, log, receipts[i], message("T", i))
		}
		if err := log.Close(clean); err != nil {
			t.Fatal(err)
		}
		opt.Unclean = !clean
		for _, bare := range []bool{true, false} {
			o := opt
			o.FS, o.NoRecordChecksum = sim.Kill(), bare
			again, err := openStill(o, nil)
			if err != nil {
				t.Fatal(err)
			}
			if report := again.Report(); report.End != placeOf(receipts[19]).End || !report.Cut.Empty() {
				t.Fatalf("%+v", report)
			}
			for i, r := range receipts {
				readBack(t, again, r, message("T", i))
			}
			_ = again.Close(false)
		}
	}
}

// A cut into a stretch that was written without checksums left what was
// appended there, with its checksum, outside our ranges: a flip in it would not
// have been noticed.
func TestRangesAfterTruncateBelowThem(t *testing.T) {
	sim := vfs.NewSim()
	opt := simOptions(sim)
	session := func(bare bool, work func(log *Log)) {
		t.Helper()
		opt.NoRecordChecksum = bare
		log, err := openStill(opt, nil)
		if err != nil {
			t.Fatal(err)
		}
		work(log)
		if err := log.Close(true); err != nil {
			t.Fatal(err)
		}
		opt.Unclean = false
	}
	session(false, func(log *Log) {
		for i := range 5 {
			stillAppend(t, log, message("T", i))
		}
	})
	var bare contract.Range
	session(true, func(log *Log) {
		bare = placeOf(stillAppend(t, log, message("T", 20)))
		stillAppend(t, log, message("T", 21))
	})
	var sealed contract.Range
	session(false, func(log *Log) {
		stillAppend(t, log, message("T", 22))
		if log.side.ranges().contains(int64(bare.Start)) {
			t.Fatal("a record without a checksum lies in a range")
		}
		if err := log.TruncateTo(t.Context(), bare.Start, nil); err != nil {
			t.Fatal(err)
		}
		sealed = placeOf(stillAppend(t, log, message("T", 23)))
		if sealed.Start != bare.Start || !log.side.ranges().contains(int64(sealed.Start)) || !log.ranges.Load().contains(int64(sealed.Start)) {
			t.Fatalf("the record at %v lies in none of %v", sealed, log.side.ranges())
		}
	})
	session(false, func(log *Log) {
		if !log.ranges.Load().contains(int64(sealed.Start)) {
			t.Fatalf("after a reopen the record at %v lies in none of %v", sealed, log.side.ranges())
		}
	})
}

// A state that is whole by its checksum and names no epoch made the open panic.
func TestStateWithoutEpochs(t *testing.T) {
	for _, clean := range []bool{true, false} {
		sim, opt, receipts := sidecarLog(t, clean)
		name := path.Join(sideDir, stateName)
		b := readFile(t, sim, name)
		var newest codec.State
		for slot := range 2 {
			var st codec.State
			if codec.ParseState(b[slot*codec.StateFileSlotSize:], &st) == nil && st.Sequence >= newest.Sequence {
				newest = st
			}
		}
		if len(newest.Epochs) == 0 {
			t.Fatal("no state to begin with")
		}
		newest.Epochs = nil
		newest.Sequence++
		raw, err := codec.AppendState(nil, &newest)
		if err != nil {
			t.Fatal(err)
		}
		for slot := range 2 {
			copy(b[slot*codec.StateFileSlotSize:], raw)
		}
		writeFile(t, sim, name, b)
		ro, err := OpenReadOnly(opt, true)
		if err != nil {
			t.Fatalf("clean %v: read-only: %v", clean, err)
		}
		_ = ro.Epochs()
		readBack(t, ro, receipts[0], message("T", 0))
		ro.Close()
		report, err := sameLog(t, "no epochs", opt, receipts)
		if err != nil || report.SidecarReason == "" {
			t.Errorf("clean %v: %+v, cursor %v", clean, report, err)
		}
	}
}

// A write that hung held up who answers appends whose SyncTimeout is over:
// nobody did.
func TestSyncTimeoutBesideHungWrite(t *testing.T) {
	ctx := testContext(t)
	r, fault, _, clk := slowRig(t, WritePwrite)
	mustAppend(t, r.log, message("T", 0), contract.DurabilitySync)
	entered, release := hangSyncs(fault)
	got := make(chan outcome, 1)
	if err := r.log.Submit(ctx, message("T", 1), contract.DurabilitySync, func(r contract.Receipt, err error) { got <- outcome{r, err} }); err != nil {
		t.Fatal(err)
	}
	<-entered
	tail := int64(r.log.Appended())
	writing := make(chan struct{})
	fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpWrite), Path: "commitlog/*", Only: func(op vfs.Op) bool { return op.Offset == tail },
		Hook: func(vfs.Op) { close(writing) }, Block: release})
	memory := make(chan error, 1)
	go func() {
		_, err := r.log.Append(ctx, message("T", 2), contract.DurabilityMemory)
		memory <- err
	}()
	<-writing
	o := await(t, ctx, clk, time.Second, got)
	var e *contract.Error
	if _, in := o.r.Range(); !errors.As(o.err, &e) || e.Kind != contract.KindTimeout || o.r.Status() != contract.StatusFlushDiskTimeout || !in {
		t.Errorf("answered %v, %v", o.r.Status(), o.err)
	}
	close(release)
	if err := <-memory; err != nil {
		t.Error(err)
	}
	r.close(true)
}

// The end of a log that was closed well was lost. If the bound was lost too, or
// an open had been killed since, the log was cut where it still was whole, and
// went on from there without a word.
func TestEndLostAfterCleanClose(t *testing.T) {
	const n = 50
	for name, lose := range map[string]func(t *testing.T, sim *vfs.Sim, last contract.Range, size int64){
		"last record zeroed": func(t *testing.T, sim *vfs.Sim, last contract.Range, size int64) {
			base := int64(last.Start) / size * size
			poke(t, sim, contract.Offset(base), int64(last.Start)-base, make([]byte, last.Len()))
		},
		"last record flipped": func(t *testing.T, sim *vfs.Sim, last contract.Range, size int64) {
			base := int64(last.Start) / size * size
			b := peek(t, sim, contract.Offset(base), int64(last.Start)-base+50, 1)
			poke(t, sim, contract.Offset(base), int64(last.Start)-base+50, []byte{b[0] ^ 1})
		},
		"last segment zeroed": func(t *testing.T, sim *vfs.Sim, last contract.Range, size int64) {
			poke(t, sim, contract.Offset(int64(last.Start)/size*size), 0, make([]byte, size))
		},
		"last segment gone": func(t *testing.T, sim *vfs.Sim, last contract.Range, size int64) {
			if err := sim.Remove("/store/commitlog/" + segmentName(contract.Offset(int64(last.Start)/size*size))); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, bound := range []bool{true, false} {
			for _, abort := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/bound=%v/abort=%v", name, bound, abort), func(t *testing.T) {
					sim := vfs.NewSim()
					opt := simOptions(sim)
					log, err := openStill(opt, nil)
					if err != nil {
						t.Fatal(err)
					}
					var last contract.Range
					for i := range n {
						last = placeOf(stillAppend(t, log, message("T", i)))
					}
					if int64(last.Start)/opt.SegmentSize == 0 || int64(last.Start)%opt.SegmentSize == 0 {
						t.Fatalf("the last record is at %v", last)
					}
					if err := log.Close(true); err != nil {
						t.Fatal(err)
					}
					lose(t, sim, last, opt.SegmentSize)
					if !bound {
						if err := sim.Remove(path.Join(sideDir, boundName)); err != nil {
							t.Fatal(err)
						}
					}
					opt.Unclean = abort
					before := tree(t, sim, "/store/commitlog")
					for try := range 2 {
						_, err = openStill(opt, nil)
						var damage *contract.CorruptionError
						if !errors.Is(err, contract.ErrCorrupt) || !errors.As(err, &damage) || damage.Lost.Start > last.Start || damage.Lost.End < last.End {
							t.Fatalf("open %d: %v; want %v among what is lost", try, err, last)
						}
						if !slices.Equal(before, tree(t, sim, "/store/commitlog")) {
							t.Fatal("a refused open changed the log")
						}
						opt.Unclean = true // that open was killed before it could remove the abort file
					}
				})
			}
		}
	}
}

// An open of a log that was closed well was killed; then its last record was
// damaged. With the abort file there the record was taken for a torn tail, and
// cut.
func TestDamageAfterKilledOpen(t *testing.T) {
	whole := vfs.NewSim()
	opt := simOptions(whole)
	log, err := openStill(opt, nil)
	if err != nil {
		t.Fatal(err)
	}
	var last contract.Range
	for i := range 20 {
		last = placeOf(stillAppend(t, log, message("T", i)))
	}
	if err := log.Close(true); err != nil {
		t.Fatal(err)
	}
	var images []*vfs.Sim
	image := whole.Kill()
	image.OnOp(func(vfs.Op) { images = append(images, image.Kill()) })
	opt.FS, opt.Unclean = image, false
	if log, err = openStill(opt, nil); err != nil {
		t.Fatal(err)
	}
	_ = log.Close(false)
	image.OnOp(nil)
	if len(images) < 5 {
		t.Fatalf("only %d operations", len(images))
	}
	refused := 0
	base := int64(last.Start) / opt.SegmentSize * opt.SegmentSize
	opt.Unclean = true
	for i, image := range images {
		b := peek(t, image, contract.Offset(base), int64(last.Start)-base+50, 1)
		poke(t, image, contract.Offset(base), int64(last.Start)-base+50, []byte{b[0] ^ 1})
		before := tree(t, image, "/store/commitlog")
		opt.FS = image
		for range 2 {
			log, err := openStill(opt, nil)
			switch {
			case errors.Is(err, contract.ErrCorrupt):
				refused++
				if !slices.Equal(before, tree(t, image, "/store/commitlog")) {
					t.Fatalf("killed at operation %d: a refused open changed the log", i)
				}
			case err != nil:
				t.Fatalf("killed at operation %d: %v", i, err)
			default:
				// The log is known to end there, and what lies below is read when asked for.
				if log.Appended() != last.End || !log.Report().Cut.Empty() {
					t.Fatalf("killed at operation %d: the log ends at %d, want %d; cut %v", i, log.Appended(), last.End, log.Report().Cut)
				}
				var rec Record
				if _, err := log.Read(last.Start, &rec); !errors.Is(err, contract.ErrCorrupt) {
					t.Fatalf("killed at operation %d: the damaged record: %v", i, err)
				}
				_ = log.Close(false)
			}
		}
	}
	if refused == 0 {
		t.Fatal("never refused")
	}
}

// The bound was left to commits that no longer came: nothing synced it.
func TestBoundLoopSyncs(t *testing.T) {
	ctx := testContext(t)
	r, fault, sim, clk := slowRig(t, WritePwrite)
	syncs := fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpDatasync), Path: "stratalog/bound", Sticky: true, Hook: func(vfs.Op) {}})
	acked := mustAppend(t, r.log, message("T", 1), contract.DurabilitySync)
	r.log.side.boundMu.Lock()
	before := r.log.side.boundFile.write
	r.log.side.boundMu.Unlock()
	for done := false; !done; {
		if ctx.Err() != nil {
			t.Fatalf("the bound is not synced; %d syncs", syncs.Fired())
		}
		clk.Advance(boundSyncEvery)
		runtime.Gosched()
		r.log.side.boundMu.Lock()
		done = !r.log.side.boundFile.dirty && r.log.side.boundFile.write != before
		r.log.side.boundMu.Unlock()
	}
	opt := simOptions(sim.Crash(vfs.AllOld()))
	again, err := openStill(opt, nil)
	if err != nil {
		t.Fatal(err)
	}
	if from, end := again.Report().ScannedFrom, placeOf(acked).End; from != end {
		t.Errorf("the bound on disk is %d, want %d", from, end)
	}
	_ = again.Close(false)
	r.close(true)
}
