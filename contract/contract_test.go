package contract

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"math"
	"math/rand"
	"os"
	"strings"
	"testing"
)

// model says, in its own words, whether a receipt with these fields may exist.
func mayExist(f ReceiptFields) bool {
	if f.Appended < 0 || f.Durable < 0 || f.QueueOffset < 0 || f.StoreTime < 0 || f.Durable > f.Appended {
		return false
	}
	accepted := f.Status == StatusPutOk || f.Status == StatusFlushDiskTimeout ||
		f.Status == StatusFlushReplicaTimeout || f.Status == StatusReplicaUnavailable
	if !accepted {
		return !f.HasRange && f.Range == Range{} && f.Reached == ReachedNone
	}
	if !f.HasRange || f.Range.Start < 0 || f.Range.End <= f.Range.Start || f.Appended < f.Range.End {
		return false
	}
	covered := f.Durable >= f.Range.End
	switch f.Reached {
	case ReachedMemory:
		return !covered
	case ReachedLocal:
		return covered
	case ReachedReplicated:
		end, ok := f.Proof.End()
		return ok && end >= f.Range.End
	}
	return false
}

// Every combination of small numbers, statuses and claims is refused or
// accepted as the model says, and what is accepted reads back as given.
func TestReceiptInvariants(t *testing.T) {
	offsets := []Offset{-1, 0, 1, 2, 3}
	proofs := []ReplicationProof{{}}
	for _, end := range []Offset{1, 2, 3} {
		p, ok := DecideReplication(1, []Offset{end})
		if !ok {
			t.Fatal("no proof")
		}
		proofs = append(proofs, p)
	}
	accepted, refused := 0, map[error]int{}
	check := func(f ReceiptFields) {
		r, err := NewReceipt(f)
		if (err == nil) != mayExist(f) {
			t.Fatalf("%+v: %v", f, err)
		}
		if err != nil {
			refused[err]++
			if r != (Receipt{}) {
				t.Fatalf("%+v: a refused receipt has content", f)
			}
			return
		}
		accepted++
		rng, has := r.Range()
		if rng != f.Range || has != f.HasRange || r.Status() != f.Status || r.Reached() != f.Reached ||
			r.Appended() != f.Appended || r.Durable() != f.Durable || r.Accepted() != has || r.FailedWaits() != f.Failed {
			t.Fatalf("%+v: reads back as another one", f)
		}
	}
	for _, status := range append(AppendStatuses(), appendStatusCount) {
		for reached := ReachedNone; reached <= ReachedReplicated+1; reached++ {
			for _, proof := range proofs {
				for _, start := range offsets {
					for _, end := range offsets {
						for _, appended := range offsets {
							for _, durable := range offsets {
								for _, has := range []bool{false, true} {
									check(ReceiptFields{Status: status, Range: Range{start, end}, HasRange: has,
										Appended: appended, Durable: durable, Reached: reached, Proof: proof})
								}
							}
						}
					}
				}
			}
		}
	}
	check(ReceiptFields{QueueOffset: -1})
	check(ReceiptFields{StoreTime: -1})
	if accepted == 0 {
		t.Fatal("nothing was accepted")
	}
	for _, want := range []error{ErrEmptyRange, ErrReversedRange, ErrRejectedStatusWithRange, ErrAcceptedStatusWithoutRange,
		ErrAppendedWatermarkBehindRange, ErrDurableWatermarkBehindRange, ErrDurableWatermarkAheadOfAppended,
		ErrMemoryDurabilityAlreadyCovered, ErrReplicatedDurabilityRequiresDecision, ErrReplicationDecisionBehindRange,
		ErrRejectedStatusWithDurability, ErrAcceptedStatusWithoutDurability, ErrNegativeReceiptNumber} {
		if refused[want] == 0 {
			t.Errorf("never refused for: %v", want)
		}
	}
}

// The durability that the numbers imply is always one that NewReceipt takes.
func TestReachedByIsAccepted(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for range 20000 {
		appended := Offset(rng.Intn(1000) + 1)
		end := Offset(rng.Intn(int(appended))) + 1
		f := ReceiptFields{Status: StatusPutOk, HasRange: true, Range: Range{end - 1, end}, Appended: appended,
			Durable: Offset(rng.Intn(int(appended) + 1))}
		if rng.Intn(2) == 0 {
			f.Proof, _ = DecideReplication(1, []Offset{Offset(rng.Intn(1000))})
		}
		f.Reached = ReachedBy(end, f.Durable, f.Proof)
		if _, err := NewReceipt(f); err != nil {
			t.Fatalf("%+v: %v", f, err)
		}
	}
}

func TestDecideReplication(t *testing.T) {
	for _, c := range []struct {
		need int
		ends []Offset
		want Offset
		ok   bool
	}{
		{0, []Offset{5}, 0, false},
		{-1, []Offset{5}, 0, false},
		{1, nil, 0, false},
		{2, []Offset{5}, 0, false},
		{1, []Offset{5, 9, 7}, 9, true},
		{2, []Offset{5, 9, 7}, 7, true},
		{3, []Offset{5, 9, 7}, 5, true},
		{2, []Offset{7, 7}, 7, true},
		{1, []Offset{-3}, 0, false},
	} {
		p, ok := DecideReplication(c.need, c.ends)
		end, valid := p.End()
		if ok != c.ok || valid != c.ok || end != c.want {
			t.Errorf("%+v: %d %v", c, end, ok)
		}
	}
}

func TestCursorPrepare(t *testing.T) {
	c := Cursor{Lane: LaneQueue, Epoch: 3, Next: 100}
	for _, x := range []struct {
		rec  RecordID
		next Offset
		done bool
		err  error
	}{
		{RecordID{3, 100, 10}, 110, false, nil},
		{RecordID{3, 90, 10}, 100, true, nil},
		{RecordID{3, 0, 1}, 100, true, nil},
		{RecordID{3, 101, 10}, 0, false, ErrCursorGap},
		{RecordID{3, 95, 10}, 0, false, ErrCursorOverlap},
		{RecordID{2, 100, 10}, 0, false, ErrCursorEpoch},
		{RecordID{4, 100, 10}, 0, false, ErrCursorEpoch},
		{RecordID{3, 100, 0}, 0, false, ErrCursorRecord},
		{RecordID{3, 100, -1}, 0, false, ErrCursorRecord},
		{RecordID{3, -1, 5}, 0, false, ErrCursorRecord},
		{RecordID{3, math.MaxInt64, 5}, 0, false, ErrCursorRecord},
	} {
		got, err := c.Prepare(x.rec)
		if !errors.Is(err, x.err) || err == nil && (got.Done != x.done || got.Next != Cursor{LaneQueue, 3, x.next}) {
			t.Errorf("%+v: %+v, %v", x.rec, got, err)
		}
	}
}

func TestResolveCursor(t *testing.T) {
	table := []EpochStart{{1, 0}, {2, 100}, {3, 80}, {5, 200}}
	for _, x := range []struct {
		epoch Epoch
		next  Offset
		to    Offset // roll back to; -1 for none
		err   error
	}{
		{5, 900, -1, nil},
		{5, 0, -1, nil},
		{3, 200, -1, nil},
		{3, 201, 200, nil},
		{2, 80, -1, nil},
		{2, 81, 80, nil},
		{1, 80, -1, nil},
		{1, 100, 80, nil},
		{1, 500, 80, nil},
		{0, 0, 0, ErrCursorEpoch},
		{4, 10, 0, ErrCursorEpoch},
		{6, 10, 0, ErrCursorEpoch},
	} {
		got, err := ResolveCursor(Cursor{LaneQueue, x.epoch, x.next}, table)
		var back *RollBackError
		switch {
		case x.err != nil:
			if !errors.Is(err, x.err) {
				t.Errorf("%+v: %v", x, err)
			}
		case x.to >= 0:
			if !errors.As(err, &back) || back.To != x.to {
				t.Errorf("%+v: %v", x, err)
			}
		case err != nil || got != Cursor{LaneQueue, 5, x.next}:
			t.Errorf("%+v: %+v, %v", x, got, err)
		}
	}
	if _, err := ResolveCursor(Cursor{LaneQueue, 1, 0}, nil); !errors.Is(err, ErrCursorEpoch) {
		t.Errorf("empty table: %v", err)
	}
}

func TestErrors(t *testing.T) {
	cause := errors.New("cause")
	for k := Kind(0); k < kindCount; k++ {
		e := NewError(k, OpAppend, ComponentLog, "detail", cause)
		if !errors.Is(e, cause) || !strings.HasPrefix(k.Code(), "STORE_") || !strings.Contains(e.Error(), k.Code()) {
			t.Errorf("kind %d: %v", k, e)
		}
	}
	for sentinel, kind := range map[error]Kind{ErrNotStarted: KindNotStarted, ErrInvalid: KindInvalid, ErrNotFound: KindNotFound,
		ErrCorrupt: KindCorruption, ErrUnsupported: KindUnsupported, ErrClosed: KindClosed, ErrFenced: KindFenced,
		ErrLocked: KindLocked, ErrNewerFormat: KindNewerFormat} {
		if !errors.Is(NewError(kind, OpOpen, ComponentStore, "", nil), sentinel) {
			t.Errorf("%v is not %v", kind.Code(), sentinel)
		}
		if errors.Is(NewError(KindInternal, OpOpen, ComponentStore, "", nil), sentinel) {
			t.Errorf("an internal error is %v", sentinel)
		}
	}
	busy := NewError(KindCapacity, OpAppend, ComponentLog, "", nil)
	busy.Sentinel = ErrBusy
	if !errors.Is(busy, ErrBusy) || errors.Is(busy, ErrDiskFull) {
		t.Error("sentinel of an error")
	}
	damage := fmt.Errorf("x: %w", &CorruptionError{File: "f", Offset: 7, Lost: Range{1, 2}, Cause: cause})
	if !errors.Is(damage, ErrCorrupt) || !errors.Is(damage, cause) || !strings.Contains(damage.Error(), "f: damaged at offset 7, lost range [1,2)") {
		t.Errorf("%v", damage)
	}
}

func TestNamesAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range AppendStatuses() {
		if seen[s.String()] {
			t.Errorf("append status %v twice", s)
		}
		seen[s.String()] = true
	}
	if len(seen) != 16 {
		t.Errorf("%d append statuses", len(seen))
	}
	if n := len(GetStatuses()); n != 10 {
		t.Errorf("%d get statuses", n)
	}
	for d := DurabilityDefault; d <= DurabilitySync; d++ {
		if got, err := ParseDurability(d.String()); err != nil || got != d {
			t.Errorf("%v: %v, %v", d, got, err)
		}
	}
	if _, err := ParseDurability("maybe"); !errors.Is(err, ErrInvalid) {
		t.Errorf("unknown durability: %v", err)
	}
}

// The contract layer runs nothing and needs nothing but the standard library.
func TestBrief_03_ContractImportsOnlyStd(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if strings.Contains(strings.Split(i.Path.Value, "/")[0], ".") {
				t.Errorf("%s imports %s", e.Name(), i.Path.Value)
			}
		}
	}
}
