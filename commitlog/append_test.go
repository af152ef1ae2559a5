package commitlog

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/clock"
	"github.com/stratalog/stratalog/internal/vfs"
)

// testContext ends before the test binary's own deadline, so that a hang names
// what hung.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func mustStatus(t *testing.T, what string, r contract.Receipt, err error, want contract.AppendStatus, sentinel error) {
	t.Helper()
	var e *contract.Error
	if !errors.As(err, &e) || e.Status != want || r.Status() != want {
		t.Fatalf("%s: %v, receipt %v, want %v", what, err, r.Status(), want)
	}
	if sentinel != nil && !errors.Is(err, sentinel) {
		t.Fatalf("%s: %v is not %v", what, err, sentinel)
	}
	if _, ok := r.Range(); ok != want.Accepted() {
		t.Fatalf("%s: range %v with %v", what, ok, want)
	}
}

// TestAppendStatuses reaches every status that the local log can answer with,
// but for FlushDiskTimeout: see TestSyncTimeout.
func TestAppendStatuses(t *testing.T) {
	ctx := testContext(t)
	sim := vfs.NewSim()
	fault := vfs.NewFault(sim)
	opt := simOptions(fault)
	log, err := Open(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	m := message("T", 3)
	r, err := log.Append(ctx, m, contract.DurabilitySync)
	mustStatus(t, "not started", r, err, contract.StatusServiceUnavailable, contract.ErrNotStarted)
	_ = log.Close(false)
	if log, err = openStill(opt, nil); err != nil {
		t.Fatal(err)
	}
	r, err = log.Append(ctx, m, contract.DurabilitySync)
	if err != nil || r.Status() != contract.StatusPutOk || r.Reached() != contract.ReachedLocal {
		t.Fatalf("sync: %v, %v, %v", r.Status(), r.Reached(), err)
	}
	if r, err = log.Append(ctx, m, contract.DurabilityMemory); err != nil || r.Status() != contract.StatusPutOk || r.Reached() != contract.ReachedMemory {
		t.Fatalf("memory: %v, %v, %v", r.Status(), r.Reached(), err)
	}
	for what, bad := range map[string]*contract.Message{
		"empty topic":   {},
		"dot":           {Topic: "."},
		"dots":          {Topic: ".."},
		"separator":     {Topic: "a/b"},
		"control":       {Topic: "a\x01b"},
		"long topic":    {Topic: strings.Repeat("t", 128)},
		"queue":         {Topic: "T", QueueID: -1},
		"body":          {Topic: "T", Body: make([]byte, opt.MaxMessageSize+1)},
		"bad property":  {Topic: "T", Properties: []byte("no separator")},
		"no such level": m,
	} {
		d := contract.DurabilitySync
		if bad == m {
			d = 77
		}
		end := log.Appended()
		r, err := log.Append(ctx, bad, d)
		mustStatus(t, what, r, err, contract.StatusInvalidMessage, contract.ErrInvalid)
		if err := log.Submit(ctx, bad, d, func(contract.Receipt, error) { t.Errorf("%s: completion of a refused append", what) }); err == nil {
			t.Fatalf("%s: submitted", what)
		}
		if log.Appended() != end {
			t.Fatalf("%s: something was written", what)
		}
	}
	r, err = log.Append(ctx, &contract.Message{Topic: "T", Properties: manyProperties(maxProperties + 1)}, contract.DurabilitySync)
	mustStatus(t, "properties", r, err, contract.StatusPropertiesTooLarge, contract.ErrInvalid)
	// Overload: nothing is synced, and the window is full.
	for err == nil || !errors.Is(err, contract.ErrBusy) {
		r, err = log.Append(ctx, message("T", 20), contract.DurabilityMemory)
		pump(log)
	}
	mustStatus(t, "busy", r, err, contract.StatusPageCacheBusy, contract.ErrBusy)
	if !strings.Contains(err.Error(), "not yet durable") || !strings.Contains(err.Error(), "try again in") {
		t.Fatalf("a refusal without a reason: %v", err)
	}
	if err := background(log); err != nil {
		t.Fatal(err)
	}
	// The disk is full: the next segment cannot be made.
	full := fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpAllocate), Err: syscall.ENOSPC, Sticky: true})
	if r, err = fillSegment(ctx, log); err == nil {
		t.Fatal("room without end")
	}
	mustStatus(t, "disk full", r, err, contract.StatusServiceUnavailable, contract.ErrDiskFull)
	full.Remove()
	fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpCreate), Err: syscall.EIO, At: 0})
	pump(log)
	r, err = log.Append(ctx, message("T", 20), contract.DurabilitySync)
	mustStatus(t, "no segment", r, err, contract.StatusStorageUnavailable, nil)
	stillAppend(t, log, m) // it heals by itself
	// A failed write: whether the record is in the log is not known.
	fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpWrite), Path: "commitlog/*", Err: syscall.EIO})
	r, err = log.Append(ctx, m, contract.DurabilityMemory)
	mustStatus(t, "failed write", r, err, contract.StatusUnknown, contract.ErrOutcomeUnknown)
	r, err = log.Append(ctx, m, contract.DurabilityMemory)
	mustStatus(t, "fenced", r, err, contract.StatusServiceUnavailable, contract.ErrFenced)
	if !errors.Is(err, syscall.EIO) {
		t.Fatalf("the fence without its cause: %v", err)
	}
	if _, err := log.Recover(ctx, nil); err != nil {
		t.Fatal(err)
	}
	stillAppend(t, log, m)
	if err := log.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	r, err = log.Append(ctx, m, contract.DurabilityMemory)
	mustStatus(t, "closed", r, err, contract.StatusServiceUnavailable, contract.ErrClosed)
	if err := log.Close(true); err != nil {
		t.Fatal(err)
	}
}

// fillSegment appends until it is refused for another reason than a missing
// background.
func fillSegment(ctx context.Context, log *Log) (contract.Receipt, error) {
	for range 1000 {
		pump(log)
		r, err := log.Append(ctx, message("T", 20), contract.DurabilitySync)
		if err != nil && !errors.Is(err, contract.ErrBusy) {
			return r, err
		}
	}
	return contract.Receipt{}, nil
}

// manyProperties returns a property string of n bytes.
func manyProperties(n int) []byte {
	return append(append([]byte("k\x01"), bytes.Repeat([]byte("v"), n-3)...), 2)
}

// TestLimits holds each limit, and one more, against the log.
func TestLimits(t *testing.T) {
	ctx := testContext(t)
	opt := simOptions(vfs.NewSim())
	opt.SegmentSize, opt.MaxUnsynced = 128<<10, 128<<10
	log, err := openStill(opt, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close(false) }()
	ok := func(what string, m *contract.Message) {
		t.Helper()
		readBack(t, log, stillAppend(t, log, m), m)
	}
	ok("body", &contract.Message{Topic: "T", Body: make([]byte, opt.MaxMessageSize)})
	ok("topic", &contract.Message{Topic: strings.Repeat("t", 127)})
	ok("properties", &contract.Message{Topic: "T", Properties: manyProperties(maxProperties - codec.ChecksumTrailerSize)})
	ok("empty", &contract.Message{Topic: "T"})
	if r, err := log.Append(ctx, &contract.Message{Topic: "T", Properties: manyProperties(maxProperties - codec.ChecksumTrailerSize + 1)}, contract.DurabilitySync); err == nil || r.Status() != contract.StatusPropertiesTooLarge {
		t.Fatalf("properties: %v, %v", r.Status(), err)
	}
	// A batch is bounded like one record.
	batch := make([]contract.Message, 80)
	for i := range batch {
		batch[i] = contract.Message{Topic: "T", Body: make([]byte, 1000)}
	}
	if _, err := log.AppendBatch(ctx, batch, contract.DurabilitySync, nil); !errors.Is(err, contract.ErrInvalid) {
		t.Fatalf("a batch of 80 KB: %v", err)
	}
	if _, err := log.AppendBatch(ctx, nil, contract.DurabilitySync, nil); !errors.Is(err, contract.ErrInvalid) {
		t.Fatalf("an empty batch: %v", err)
	}
}

// TestRollEdge appends records that end exactly 8 bytes before the end of a
// segment, and a byte or two around it.
func TestRollEdge(t *testing.T) {
	for _, path := range []WritePath{WritePwrite, WriteMmap} {
		for left := int64(4); left <= 12; left++ {
			sim := vfs.NewSim()
			opt := simOptions(sim)
			opt.WritePath = path
			opt.SegmentSize = 4096
			log, err := openStill(opt, nil)
			if err != nil {
				t.Fatal(err)
			}
			empty := stillAppend(t, log, &contract.Message{Topic: "T"})
			rng, _ := empty.Range()
			overhead := rng.Len()
			m := &contract.Message{Topic: "T", Body: make([]byte, 4096-overhead-overhead-left)}
			edge, _ := stillAppend(t, log, m).Range()
			after := stillAppend(t, log, &contract.Message{Topic: "T", Body: []byte("after")})
			next, _ := after.Range()
			wantEdge, wantNext := contract.Offset(overhead), contract.Offset(4096)
			if left < codec.BlankSize {
				wantEdge, wantNext = 4096, 8192 // there is no room for the third either
			}
			if edge.Start != wantEdge || next.Start != wantNext {
				t.Fatalf("%v, %d bytes left: records at %v and %v", path, left, edge, next)
			}
			mark := peek(t, sim, 0, overhead, 8)
			if left >= codec.BlankSize {
				mark = peek(t, sim, 0, int64(edge.End), 8)
			}
			if _, magic, _ := codec.PeekMessage(mark); magic != codec.BlankMagic {
				t.Fatalf("%v, %d bytes left: no mark: %x", path, left, mark)
			}
			readBack(t, log, after, &contract.Message{Topic: "T", Body: []byte("after")})
			_ = log.Close(false)
			log, err = openStill(opt, nil)
			if err != nil {
				t.Fatal(err)
			}
			if v, err := log.Verify(0, log.Appended(), func(err error) bool { t.Error(err); return true }); err != nil || v.Records != 3 {
				t.Fatalf("%v, %d bytes left: %+v, %v", path, left, v, err)
			}
			_ = log.Close(true)
		}
	}
}

// TestAdmissionInFlight fills the bounds on what is admitted and not answered.
func TestAdmissionInFlight(t *testing.T) {
	ctx := testContext(t)
	for _, bound := range []string{"records in flight", "bytes in flight"} {
		opt := simOptions(vfs.NewSim())
		if bound == "records in flight" {
			opt.MaxInFlight = 3
		} else {
			opt.MaxInFlightSize = 1200
		}
		log, err := openStill(opt, nil)
		if err != nil {
			t.Fatal(err)
		}
		answered := 0
		submit := func() error {
			return log.Submit(ctx, message("T", 10), contract.DurabilitySync, func(_ contract.Receipt, err error) {
				if err != nil {
					t.Error(err)
				}
				answered++
			})
		}
		admitted := 0
		for err == nil {
			if err = submit(); err == nil {
				admitted++
			}
		}
		if !errors.Is(err, contract.ErrBusy) || !strings.Contains(err.Error(), bound) || admitted == 0 {
			t.Fatalf("%s: %d admitted, %v", bound, admitted, err)
		}
		if err := background(log); err != nil || answered != admitted {
			t.Fatalf("%s: %d of %d answered, %v", bound, answered, admitted, err)
		}
		if err := submit(); err != nil {
			t.Fatalf("%s: after room was made: %v", bound, err)
		}
		_ = background(log)
		_ = log.Close(false)
	}
}

// TestCancelled ends contexts before and after admission.
func TestCancelled(t *testing.T) {
	ctx := testContext(t)
	sim := vfs.NewSim()
	fault := vfs.NewFault(sim)
	opt := simOptions(fault)
	opt.MaxInFlight, opt.AdmissionWait = 1, time.Hour
	r := openRig(t, opt)
	entered, release := hangSyncs(fault)
	one, cancel := context.WithCancel(ctx)
	result := make(chan error, 1)
	go func() {
		_, err := r.log.Append(one, message("T", 1), contract.DurabilitySync)
		result <- err
	}()
	<-entered // it is admitted, and its sync hangs
	cancel()
	if err := <-result; err != nil && !errors.Is(err, contract.ErrOutcomeUnknown) {
		t.Fatalf("cancelled after admission: %v", err)
	} else if err == nil {
		t.Fatal("acknowledged while the sync hangs")
	}
	// There is no room while the first is not answered.
	tail := r.log.Stats().Records
	two, cancel2 := context.WithCancel(ctx)
	go func() {
		_, err := r.log.Append(two, message("T", 2), contract.DurabilitySync)
		result <- err
	}()
	for {
		r.log.mu.Lock()
		waiting := r.log.waiting
		r.log.mu.Unlock()
		if waiting > 0 {
			break
		}
	}
	cancel2()
	if err := <-result; errors.Is(err, contract.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled before room: %v", err)
	}
	if got := r.log.Stats().Records; got != tail {
		t.Fatalf("%d records placed, want %d", got, tail)
	}
	close(release)
	if err := r.log.WaitConfirmed(ctx, 0); err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := r.log.Walk(0, r.log.Appended(), func(v *codec.MessageView) {
		n++
		if string(v.Body()) != string(message("T", 1).Body) {
			t.Error("another record")
		}
	}); err != nil || n != 1 {
		t.Fatalf("%d records, %v", n, err)
	}
	r.close(true)
}

// hangSyncs makes the syncs of segments hang from now on until release is
// closed. Each tells entered first.
func hangSyncs(fault *vfs.Fault) (entered, release chan struct{}) {
	entered, release = make(chan struct{}, 1000), make(chan struct{})
	fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpDatasync), Path: "commitlog/*", Sticky: true,
		Hook: func(vfs.Op) { entered <- struct{}{} }, Block: release})
	return entered, release
}

// TestCompletionsInOrder submits from a completion, and checks that completions
// come in the order of the log.
func TestCompletionsInOrder(t *testing.T) {
	everyPath(t, func(t *testing.T, opt Options) {
		ctx := testContext(t)
		opt.MaxUnsynced, opt.AdmissionWait = 1<<20, time.Minute
		r := openRig(t, opt)
		var mu sync.Mutex
		var last contract.Offset = -1
		left := 0
		all := make(chan struct{})
		var complete contract.Completion
		submit := func(n int) {
			if err := r.log.Submit(ctx, message("T", n), contract.DurabilitySync, complete); err != nil {
				t.Errorf("submit: %v", err)
			}
		}
		again := 100
		complete = func(rec contract.Receipt, err error) {
			rng, _ := rec.Range()
			mu.Lock()
			if err != nil || rng.Start <= last {
				t.Errorf("completion of %v behind %d: %v", rng, last, err)
			}
			last = rng.Start
			resubmit := again > 0
			if resubmit {
				again--
			} else if left--; left == 0 {
				close(all)
			}
			mu.Unlock()
			if resubmit {
				submit(again)
			}
		}
		left = 50
		for i := range 50 {
			submit(i)
		}
		select {
		case <-all:
		case <-ctx.Done():
			t.Fatal("completions are missing")
		}
		// One of a Memory append may append too.
		done := make(chan error, 1)
		err := r.log.Submit(ctx, message("T", 1), contract.DurabilityMemory, func(_ contract.Receipt, err error) {
			if err == nil {
				err = r.log.Submit(ctx, message("T", 2), contract.DurabilityMemory, func(_ contract.Receipt, err error) { done <- err })
			}
			if err != nil {
				done <- err
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		r.close(true)
	})
}

// TestBatchIsContiguous appends batches from several goroutines.
func TestBatchIsContiguous(t *testing.T) {
	everyPath(t, func(t *testing.T, opt Options) {
		ctx := testContext(t)
		r := openRig(t, opt)
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 30 {
					msgs := make([]contract.Message, 1+(g+i)%5)
					for k := range msgs {
						msgs[k] = contract.Message{Topic: "T", QueueID: 1, Body: bytes.Repeat([]byte{byte(g), byte(i), byte(k)}, 50)}
					}
					out, err := r.log.AppendBatch(ctx, msgs, anyDurability[i%3], nil)
					if err != nil || len(out) != len(msgs) {
						t.Errorf("batch: %d receipts of %d, %v", len(out), len(msgs), err)
						return
					}
					for k := 1; k < len(out); k++ {
						a, _ := out[k-1].Range()
						b, _ := out[k].Range()
						if a.End != b.Start || out[k].QueueOffset() != out[k-1].QueueOffset()+1 {
							t.Errorf("record %d of a batch at %v, offset %d, behind %v, offset %d", k, b, out[k].QueueOffset(), a, out[k-1].QueueOffset())
						}
					}
				}
			})
		}
		wg.Wait()
		if _, err := r.log.AppendBatch(ctx, []contract.Message{{Topic: "T"}, {Topic: "U"}}, contract.DurabilitySync, nil); !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("a batch of two topics: %v", err)
		}
		r.close(true)
	})
}

// TestCallerReusesSlices overwrites everything as soon as Submit returns.
func TestCallerReusesSlices(t *testing.T) {
	everyPath(t, func(t *testing.T, opt Options) {
		ctx := testContext(t)
		r := openRig(t, opt)
		body, props := make([]byte, 300), make([]byte, 40)
		var mu sync.Mutex
		starts := map[int]contract.Offset{}
		var wg sync.WaitGroup
		for i := range 100 {
			for k := range body {
				body[k] = byte(i)
			}
			copy(props, "KEYS\x01")
			for k := 5; k < 39; k++ {
				props[k] = byte('a' + i%26)
			}
			props[39] = 2
			wg.Add(1)
			if err := r.log.Submit(ctx, &contract.Message{Topic: "T", Body: body, Properties: props}, anyDurability[i%3], func(rec contract.Receipt, err error) {
				defer wg.Done()
				rng, _ := rec.Range()
				mu.Lock()
				starts[i] = rng.Start
				mu.Unlock()
			}); err != nil {
				t.Fatal(err)
			}
			clear(body)
			clear(props)
		}
		wg.Wait()
		if err := r.log.Drain(ctx); err != nil {
			t.Fatal(err)
		}
		var rec Record
		for i, at := range starts {
			found, err := r.log.Read(at, &rec)
			if err != nil || !found || rec.Body()[0] != byte(i) || rec.Body()[299] != byte(i) || rec.Properties()[6] != byte('a'+i%26) {
				t.Fatalf("record %d at %d: %v, %v", i, at, found, err)
			}
		}
		rec.Release()
		r.close(true)
	})
}

// TestStoreTime sets the wall clock back: store times do not follow, and no
// offset depends on it.
func TestStoreTime(t *testing.T) {
	clk := clock.NewManual(time.UnixMilli(1_700_000_000_000))
	opt := simOptions(vfs.NewSim())
	opt.Clock = clk
	last := int64(0)
	for _, jump := range []time.Duration{0, time.Second, -time.Hour, 10 * 365 * 24 * time.Hour, -40 * 365 * 24 * time.Hour, 0, time.Hour} {
		clk.SetWall(clk.Now().Add(jump))
		log, err := openStill(opt, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			got := stillAppend(t, log, message("T", i)).StoreTime()
			if got < last || got <= 0 {
				t.Fatalf("store time %d behind %d", got, last)
			}
			last = got
			clk.SetWall(clk.Now().Add(-time.Millisecond))
		}
		if err := log.Close(jump%2 == 0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTwoPathsOneLog does the same through both write paths: the bytes are the
// same.
func TestTwoPathsOneLog(t *testing.T) {
	var logs [2]string
	for i, path := range []WritePath{WritePwrite, WriteMmap} {
		w := newWorkload(10, brokenNone)
		w.opt.WritePath = path
		w.opt.Clock = clock.NewManual(time.UnixMilli(1_700_000_000_000))
		if err := w.run(200); err != nil {
			t.Fatal(err)
		}
		got, err := files(w.sim)
		if err != nil {
			t.Fatal(err)
		}
		logs[i] = got
	}
	if logs[0] != logs[1] {
		t.Fatal("pwrite and mmap left different logs")
	}
	if len(logs[0]) < 16<<10 {
		t.Fatalf("only %d bytes", len(logs[0]))
	}
}
