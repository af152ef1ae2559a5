package stratalog

import (
	"context"
	"errors"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// queueUnit encodes a unit.
func queueUnit(phy, size, tag int64) []byte {
	unit := codec.QueueUnit{PhysicalOffset: phy, Size: int32(size), TagsCode: tag}
	b, _ := unit.Append(nil) // no unit is illegal
	return b
}

// skipping follows a queue past every damage and returns what it saw and met.
func skipping(t *testing.T, s reading, req Request) (all []seen, met []*contract.CorruptionError) {
	t.Helper()
	var out Records
	defer out.Release()
	for range 10_000 {
		err := s.Get(context.Background(), req, &out)
		var c *contract.CorruptionError
		switch {
		case errors.As(err, &c):
			met = append(met, c)
			if out.Len() != 0 || out.Status == contract.GetFound || out.Next <= req.Offset {
				t.Fatalf("%v: %d records, %v, next %d", err, out.Len(), out.Status, out.Next)
			}
		case err != nil:
			t.Fatal(err)
		case out.Status == contract.GetOffsetOverflowOne || out.Status == contract.GetNoMessageInQueue:
			if out.Max > out.Next {
				t.Fatalf("at %d: %v of %d", req.Offset, out.Status, out.Max)
			}
			return all, met
		}
		for i := range out.Len() {
			r := out.At(i)
			all = append(all, seen{r.QueueOffset(), r.PhysicalOffset(), string(r.Body())})
		}
		req.Offset = out.Next
	}
	t.Fatal("it never ends")
	return nil, nil
}

// TestGetDamagedUnit: whatever stands in a unit of a healthy log, the error names
// the queue file and the unit, nothing is lost of the log, and all other records
// are read.
func TestGetDamagedUnit(t *testing.T) {
	v := newVerified(t, 100)
	place := func(i int) (int64, int64) {
		p, _ := v.receipts[i].Range()
		return int64(p.Start), p.Len()
	}
	phy, size := place(20)
	other, otherSize := place(22)
	stranger, strangerSize := place(21)
	end := int64(endOf(v.receipts[99]))
	right := codec.TagsCode(tags("x"))
	units := map[string][]byte{
		"beyond the log": queueUnit(end+phy, size, right), "at the log's end": queueUnit(end, size, right),
		"across the end": queueUnit(end-10, size, right), "far beyond": queueUnit(1<<50, size, right), "negative": queueUnit(-1<<63+phy, size, right),
		"in the record": queueUnit(phy+16, size, right), "before the record": queueUnit(phy-3, size, right),
		"of another record": queueUnit(other, otherSize, right), "of another queue": queueUnit(stranger, strangerSize, right),
		"larger": queueUnit(phy, size+1, right), "smaller": queueUnit(phy, size-1, right), "huge": queueUnit(phy, 1<<30, right),
		"no size": queueUnit(phy, 0, right), "negative size": queueUnit(phy, -1, right), "zeros": make([]byte, codec.QueueUnitSize),
		"at the log's start": queueUnit(0, size, right), "in the unused rest": queueUnit(16<<10-9, size, right),
	}
	for bit := range 63 {
		units["bit "+string(rune('0'+bit/10))+string(rune('0'+bit%10))] = queueUnit(phy^1<<bit, size, right)
	}
	for name, unit := range units {
		for _, kind := range []string{"reader", "store"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				image := v.sim.Kill()
				opt := v.opt
				opt.FS = image
				file, off := v.unit(0, 10)
				damage := func() { writeFile(t, image, file, off, unit, false) }
				var s reading
				if kind == "reader" {
					damage()
					s = openReading(t, opt, ReaderOptions{})
				} else {
					store := start(t, opt)
					defer func() { _, _ = store.Close(context.Background()) }()
					damage()
					s = store
				}
				for _, tag := range []string{"", "x"} {
					all, met := skipping(t, s, Request{Topic: "t", Tag: tag})
					if len(met) != 1 || met[0].File != file || met[0].Offset != off || met[0].Lost != (contract.Range{}) {
						t.Fatalf("tag %q: met %v, want %s at %d", tag, met, file, off)
					}
					if len(all) != 49 || all[9].at != 9 || all[10].at != 11 {
						t.Fatalf("tag %q: %d records", tag, len(all))
					}
				}
			})
		}
	}
}

// TestGetDamagedEnds: the first and the last unit of a queue, under an open store.
func TestGetDamagedEnds(t *testing.T) {
	v := newVerified(t, 100)
	end := int64(endOf(v.receipts[99]))
	for _, at := range []int64{0, 49} {
		for _, phy := range []int64{end, end + 1000, 1 << 50, -1 << 62, 5} {
			image := v.sim.Kill()
			opt := v.opt
			opt.FS = image
			s := start(t, opt)
			r := openReading(t, opt, ReaderOptions{})
			p, _ := v.receipts[2*at].Range()
			file, off := v.unit(0, at)
			writeFile(t, image, file, off, queueUnit(phy, p.Len(), 0), false)
			all, met := skipping(t, s, Request{Topic: "t"})
			if len(met) != 1 || met[0].File != file || met[0].Offset != off || len(all) != 49 {
				t.Errorf("store, unit %d to %d: met %v, %d records", at, phy, met, len(all))
			}
			// A Reader beside may think that the owner cut the log meanwhile.
			if all, _ := skipping(t, r, Request{Topic: "t"}); len(all) != 49 {
				t.Errorf("reader, unit %d to %d: %d records", at, phy, len(all))
			}
			_, _ = s.Close(context.Background())
		}
	}
}

// TestGetDamagedRecord: the log is blamed for what it lost.
func TestGetDamagedRecord(t *testing.T) {
	v := newVerified(t, 100)
	place, _ := v.receipts[20].Range()
	whole := readFile(t, v.sim, segment(v.opt, 0))
	for at := place.Start; at < place.End; at++ {
		image := v.sim.Kill()
		writeFile(t, image, segment(v.opt, 0), int64(at), []byte{whole[at] ^ 0x10}, false)
		opt := v.opt
		opt.FS = image
		r := openReading(t, opt, ReaderOptions{})
		all, met := skipping(t, r, Request{Topic: "t"})
		if len(met) != 1 || met[0].File != segment(v.opt, 0) || met[0].Offset != int64(place.Start) || met[0].Lost != place || len(all) != 49 {
			t.Fatalf("byte %d: met %v, %d records", at-place.Start, met, len(all))
		}
		var rec Record
		for off := place.Start - 200; off < place.End+200; off++ {
			found, err := r.GetAt(context.Background(), off, &rec)
			rec.Release()
			starts := false
			for _, receipt := range v.receipts {
				p, _ := receipt.Range()
				starts = starts || p.Start == off
			}
			switch {
			case place.Contains(off) && off > place.Start:
				// The damage may be in the record's length: then it is not known.
				if found || err != nil && !errors.Is(err, contract.ErrCorrupt) {
					t.Fatalf("byte %d, inside the damage at %d: %v, %v", at-place.Start, off, found, err)
				}
			case off == place.Start:
				if found || !errors.Is(err, contract.ErrCorrupt) {
					t.Fatalf("byte %d, at the damage: %v, %v", at-place.Start, found, err)
				}
			case found != starts || err != nil:
				t.Fatalf("byte %d, at %d: %v, %v", at-place.Start, off, found, err)
			}
		}
	}
}

// TestGetAtEverywhere: a record is found where one starts, and nothing anywhere
// else.
func TestGetAtEverywhere(t *testing.T) {
	v := newVerified(t, 200)
	starts := map[Offset]bool{}
	for _, r := range v.receipts {
		p, _ := r.Range()
		starts[p.Start] = true
	}
	r := openReading(t, v.opt, ReaderOptions{})
	var rec Record
	defer rec.Release()
	for off := Offset(-5); off < endOf(v.receipts[199])+300; off++ {
		if found, err := r.GetAt(context.Background(), off, &rec); err != nil || found != starts[off] || rec.Held() != found {
			t.Fatalf("at %d: %v, %v", off, found, err)
		}
	}
}

// TestGetBesideCuts: while the log is cut and written on, no Get takes that for
// damage.
func TestGetBesideCuts(t *testing.T) {
	opt := testOptions(vfs.OS(), t.TempDir()+"/store")
	opt.SegmentSize = 16 << 10
	s := start(t, opt)
	ctx := context.Background()
	places := make([]Offset, 0, 100)
	fill := func() {
		t.Helper()
		for len(places) < cap(places) {
			r := mustAppend(t, s, &Message{Topic: "t", Body: body(len(places))}, Memory)
			p, _ := r.Range()
			places = append(places, p.Start)
		}
	}
	fill()
	stop, done := make(chan struct{}), make(chan error, 2)
	for range cap(done) {
		go func() {
			var out Records
			defer out.Release()
			var err error
			for at := int64(0); err == nil; at = (at + 7) % 100 {
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
				err = s.Get(ctx, Request{Topic: "t", Offset: at}, &out)
			}
			done <- err
		}()
	}
	rounds := 200
	if testing.Short() {
		rounds = 30
	}
	for i := range rounds {
		keep := 20 + i%60
		if err := s.TruncateTo(ctx, places[keep]); err != nil {
			t.Fatal(err)
		}
		places = places[:keep]
		fill()
	}
	close(stop)
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	closeClean(t, s)
}

// TestGetStale: with an error nothing of an earlier answer is left.
func TestGetStale(t *testing.T) {
	v := newVerified(t, 20)
	opt := v.opt
	opt.FS = v.sim.Kill()
	s := start(t, opt)
	r := openReading(t, opt, ReaderOptions{})
	ctx := context.Background()
	var out Records
	var rec Record
	fill := func() {
		t.Helper()
		if err := r.Get(ctx, Request{Topic: "t"}, &out); err != nil || out.Len() != 10 {
			t.Fatal(out.Len(), err)
		}
		if found, err := r.GetAt(ctx, 0, &rec); !found || err != nil {
			t.Fatal(found, err)
		}
	}
	empty := func(name string, err error) {
		t.Helper()
		if err == nil || out.Len() != 0 || out.Status == contract.GetFound || out.Next != 3 {
			t.Errorf("%s: %v, %d records, %v, next %d", name, err, out.Len(), out.Status, out.Next)
		}
	}
	fill()
	empty("context", s.Get(ended(), Request{Topic: "t", Offset: 3}, &out))
	fill()
	empty("negative", s.Get(ctx, Request{Topic: "t", Offset: 3, MaxBytes: -1}, &out))
	closeClean(t, s)
	fill()
	empty("closed", s.Get(ctx, Request{Topic: "t", Offset: 3}, &out))
	if found, err := s.GetAt(ctx, 0, &rec); found || err == nil || rec.Held() {
		t.Errorf("GetAt of a closed store: %v, %v, %v", found, err, rec.Held())
	}
	fill()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	empty("reader closed", r.Get(ctx, Request{Topic: "t", Offset: 3}, &out))
	if found, err := r.GetAt(ctx, 0, &rec); found || !errors.Is(err, contract.ErrClosed) || rec.Held() {
		t.Errorf("GetAt of a closed reader: %v, %v, %v", found, err, rec.Held())
	}
	if zero := (Records{}); zero.Status != contract.GetNoMatchedLogicQueue || contract.GetStatus(0).String() != "NoMatchedLogicQueue" {
		t.Error("the zero answer found something")
	}
}

// Nothing to read into, and nothing to append, is refused.
func TestNil(t *testing.T) {
	ctx := context.Background()
	s := start(t, testOptions(vfs.NewSim(), "/store"))
	mustAppend(t, s, &Message{Topic: "t", Body: body(1)}, Sync)
	r := openReading(t, s.opt, ReaderOptions{})
	_, at := s.GetAt(ctx, 0, nil)
	_, readerAt := r.GetAt(ctx, 0, nil)
	receipt, appended := s.Append(ctx, nil, Sync)
	for name, err := range map[string]error{
		"Get": s.Get(ctx, Request{Topic: "t"}, nil), "GetAt": at, "Append": appended, "Submit": s.Submit(ctx, nil, Sync, func(Receipt, error) {}),
		"Reader.Get": r.Get(ctx, Request{Topic: "t"}, nil), "Reader.GetAt": readerAt,
	} {
		if !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if receipt.Status() != contract.StatusInvalidMessage {
		t.Errorf("the receipt says %v", receipt.Status())
	}
	closeClean(t, s)
}

// A receipt says that there was no service.
func TestAppendTooEarlyAndLate(t *testing.T) {
	s, err := Open(context.Background(), testOptions(vfs.NewSim(), "/store"))
	if err != nil {
		t.Fatal(err)
	}
	m := &Message{Topic: "t", Body: body(1)}
	check := func(want error) {
		t.Helper()
		r, err := s.Append(context.Background(), m, Sync)
		if !errors.Is(err, want) || r.Status() != contract.StatusServiceUnavailable || r.Accepted() {
			t.Errorf("%v: %v", r.Status(), err)
		}
	}
	check(contract.ErrNotStarted)
	closeClean(t, s)
	check(contract.ErrClosed)
}
