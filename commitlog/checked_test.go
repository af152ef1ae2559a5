package commitlog

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// walkFrom reads like a lane, limit bytes at a time, from at to the end of what
// is confirmed, and returns where it came to.
func walkFrom(l *Log, at contract.Offset, limit int) (contract.Offset, error) {
	for at < l.Confirmed() {
		sel, err := l.ReadFrom(at, limit)
		if err != nil || sel == nil {
			return at, err
		}
		b := sel.Bytes()
		at += contract.Offset(len(b))
		if size, magic, _ := codec.PeekMessage(b[len(b)-codec.BlankSize:]); magic == codec.BlankMagic {
			at += contract.Offset(size) - codec.BlankSize
		}
		sel.Release()
	}
	return at, nil
}

// flipBody damages a byte of the body of a record.
func flipBody(t *testing.T, fs vfs.FS, l *Log, at contract.Offset) {
	t.Helper()
	var rec Record
	if found, err := l.Read(at, &rec); !found || err != nil {
		t.Fatalf("read %d: %v, %v", at, found, err)
	}
	seg := l.segs.Load().find(int64(at))
	place := int64(at) - seg.base + int64(rec.TotalSize()) - int64(len(rec.Properties())) - 2 - int64(len(rec.Topic())) - 1 - 1
	rec.Release()
	f, err := fs.Open(seg.file.Path(), vfs.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if _, err = f.ReadAt(b[:], place); err == nil {
		b[0] ^= 0x40
		_, err = f.WriteAt(b[:], place)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestCheckedOnce: what one lane found whole is not checked for another one; a
// place where no record starts, what nobody has read yet, and what was written
// after a cut, are.
func TestCheckedOnce(t *testing.T) {
	fs := vfs.NewSim()
	opt := smallOptions(fs, "/log")
	r := openRig(t, opt)
	defer r.close(true)
	var starts []contract.Offset
	fill := func(n int) {
		for i := range n {
			rng, _ := mustAppend(t, r.log, message("T", i+3), contract.DurabilitySync).Range()
			starts = append(starts, rng.Start)
		}
	}
	fill(8)
	end, err := walkFrom(r.log, 0, 500)
	if err != nil || end != r.log.Confirmed() {
		t.Fatal(end, err)
	}
	flipBody(t, fs, r.log, starts[2])
	if at, err := walkFrom(r.log, 0, 700); err != nil || at != end {
		t.Errorf("a second lane came to %d with %v, %d is the end", at, err, end)
	}
	if _, err := r.log.ReadFrom(starts[2]+4, 500); err == nil {
		t.Error("a place inside a record was taken for a record")
	}
	fill(4)
	flipBody(t, fs, r.log, starts[9])
	if at, err := walkFrom(r.log, 0, 700); !errors.Is(err, contract.ErrCorrupt) || at != starts[9] {
		t.Errorf("came to %d with %v, the damage is at %d", at, err, starts[9])
	}
	if err := r.log.TruncateTo(context.Background(), starts[1], nil); err != nil {
		t.Fatal(err)
	}
	starts = starts[:1]
	fill(3)
	flipBody(t, fs, r.log, starts[3])
	if at, err := walkFrom(r.log, 0, 700); !errors.Is(err, contract.ErrCorrupt) || at != starts[3] {
		t.Errorf("after a cut: came to %d with %v, the damage is at %d", at, err, starts[3])
	}
}

// TestCheckedRange holds the range to what was added to it.
func TestCheckedRange(t *testing.T) {
	var c checkedRange
	const far = 60 + 2*hotBytes
	for i, step := range []struct{ from, to, cuts, at, known int64 }{
		{0, 100, 0, 0, 100},
		{100, 150, 0, 20, 150},
		{20, 60, 0, 0, 150},     // a lane behind
		{100, 150, 0, 150, 150}, // at the end nothing is known
		{200, 300, 0, 100, 100}, // a hole: only what is new counts
		{180, 320, 0, 180, 320}, // from in front of it
		{50, 60, 1, 200, 200},   // the log was cut
		{0, 500, 0, 55, 60},     // a read of before that
		{60, far, 1, 50, 50},    // too long to be kept whole
		{60, far, 1, far - hotBytes - 1, far - hotBytes - 1},
		{60, far, 1, far - hotBytes, far},
		{60, far, 1, far + 1, far + 1},
	} {
		c.add(step.from, step.to, step.cuts)
		if known, _ := c.upTo(step.at, c.cuts); known != step.known {
			t.Fatalf("step %d: known up to %d, want %d", i, known, step.known)
		}
		if known, _ := c.upTo(step.at, c.cuts+1); known != step.at {
			t.Fatalf("step %d: known up to %d after a cut", i, known)
		}
	}
}

// TestCheckedBeside has lanes of different steps read beside appends and cuts.
func TestCheckedBeside(t *testing.T) {
	r := openRig(t, smallOptions(vfs.NewSim(), "/log"))
	defer r.close(true)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for _, limit := range []int{1, 800, 4000} {
		wg.Go(func() {
			at := contract.Offset(0)
			for {
				select {
				case <-done:
					return
				default:
				}
				next, err := walkFrom(r.log, min(at, r.log.Confirmed()), limit)
				if err != nil && !errors.Is(err, contract.ErrCorrupt) {
					t.Error(err) // Behind a cut no record need start where the lane stands.
					return
				}
				if at = next; err != nil || at%7 == 0 {
					at = 0
				}
			}
		})
	}
	for i := range 400 {
		rng, _ := mustAppend(t, r.log, message("T", i), contract.DurabilitySync).Range()
		if i%50 == 49 && !raceEnabled { // A cut zeroes bytes that others may look at.
			if err := r.log.TruncateTo(context.Background(), rng.Start, nil); err != nil {
				t.Error(err)
			}
		}
	}
	close(done)
	wg.Wait()
	if at, err := walkFrom(r.log, 0, 900); err != nil || at != r.log.Confirmed() {
		t.Errorf("came to %d of %d: %v", at, r.log.Confirmed(), err)
	}
}
