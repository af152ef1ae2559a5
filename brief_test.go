package stratalog

import (
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/dispatch"
	"github.com/stratalog/stratalog/internal/vfs"
)

// The tests here go by the numbers of the rules that the store was asked for.

// Rule 02: receipts, the durable boundary, derived progress, and the ownership
// of what runs are contracts.
func TestBrief_02(t *testing.T) {
	opt := testOptions(vfs.NewSim(), "/store")
	opt.Clock = manual()
	s := start(t, opt)
	for i, d := range []Durability{Sync, Memory, Interval, Sync} {
		r := mustAppend(t, s, &Message{Topic: "t", Body: body(i)}, d)
		place, in := r.Range()
		if !in || r.Appended() < place.End || r.Durable() > r.Appended() || (r.Reached() == contract.ReachedLocal) != (r.Durable() >= place.End) {
			t.Errorf("%v: receipt %+v", d, r)
		}
		if r.QueueOffset() != int64(i) {
			t.Errorf("number %d has queue offset %d", i, r.QueueOffset())
		}
		w := s.Health().Watermarks
		if w.Durable > w.Appended || w.Confirmed > w.Durable || s.Health().Frontier > w.Confirmed {
			t.Errorf("watermarks %+v, frontier %d", w, s.Health().Frontier)
		}
	}
	report, err := s.Close(context.Background())
	if err != nil || len(report.Running) != 0 || len(s.owner.Running()) != 0 {
		t.Errorf("after Close: %+v, %v", report, err)
	}
}

// Rule 03: the contract layer needs nothing but the standard library.
func TestBrief_03(t *testing.T) {
	files, err := filepath.Glob("contract/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if !strings.HasSuffix(name, "_test.go") && strings.Contains(i.Path.Value, ".") {
				t.Errorf("%s imports %s", name, i.Path.Value)
			}
		}
	}
}

// Rule 05: "not there" and "failed" never mix.
func TestBrief_05(t *testing.T) {
	fault := vfs.NewFault(vfs.NewSim())
	s := start(t, testOptions(fault, "/store"))
	r := mustAppend(t, s, &Message{Topic: "t", Body: body(0)}, Sync)
	waitVisible(t, s, endOf(r))
	var port contract.WALPort = s.log
	for _, off := range []Offset{-1, endOf(r), 1 << 40} {
		if sel, err := port.ReadAt(off, 100); sel != nil || err != nil {
			t.Errorf("%d is not there: %v, %v", off, sel, err)
		}
		if sel, err := port.ReadFrom(off, 100); sel != nil || err != nil {
			t.Errorf("%d is not there: %v, %v", off, sel, err)
		}
	}
	closeClean(t, s)
	// Cold: the bytes have to be brought in, and that fails.
	s = start(t, testOptions(fault, "/store"))
	port = s.log
	fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpPopulate), Err: syscall.EIO, Sticky: true})
	place, _ := r.Range()
	if sel, err := port.ReadAt(place.Start, int32(place.Len())); sel != nil || !errors.Is(err, syscall.EIO) {
		t.Errorf("a failed read: %v, %v", sel, err)
	}
	var rec Record
	if found, err := s.GetAt(context.Background(), place.Start, &rec); found || !errors.Is(err, syscall.EIO) {
		t.Errorf("a failed read: %v, %v", found, err)
	}
	var out Records
	if err := s.Get(context.Background(), Request{Topic: "t"}, &out); !errors.Is(err, syscall.EIO) {
		t.Errorf("a failed read: %v, %v", out.Status, err)
	}
	fault.Clear()
	closeClean(t, s)
}

// Rule 06: derived state proves nothing about the log. The queues may be ahead
// of what a power cut leaves of the log; no unit leads beyond its end.
func TestBrief_06(t *testing.T) {
	sim := vfs.NewSim()
	opt := testOptions(sim, "/store")
	opt.Clock, opt.Visibility = manual(), VisibilityAppended
	s := start(t, opt)
	mustAppend(t, s, &Message{Topic: "t", Body: body(0)}, Sync)
	var last Receipt
	for i := 1; i < 50; i++ {
		last = mustAppend(t, s, &Message{Topic: "t", Body: body(i)}, Memory)
	}
	waitVisible(t, s, endOf(last))
	// The queue files are kept, what was appended to the log is lost.
	image := sim.Crash(func(_, _ int, it vfs.Item) int {
		if strings.Contains(it.Path, "/commitlog/") {
			return 0
		}
		return it.Versions - 1
	})
	closeClean(t, s)
	opt.FS = image
	s = start(t, opt)
	expect(t, s, "t", 0, [][]byte{body(0)})
	if s.Report().QueueCut.Units == 0 || s.queues.MaxPhysical() > s.log.Durable() {
		t.Errorf("units up to %d, log up to %d: %+v", s.queues.MaxPhysical(), s.log.Durable(), s.Report().QueueCut)
	}
	if r := mustAppend(t, s, &Message{Topic: "t", Body: body(1)}, Sync); r.QueueOffset() != 1 {
		t.Errorf("the next record is number %d", r.QueueOffset())
	}
	closeClean(t, s)
}

// Rule 09: a cursor moves only contiguously, and what is saved is never beyond
// what is durable, though the lane shows more.
func TestBrief_09(t *testing.T) {
	sim := vfs.NewSim()
	clk := manual()
	opt := testOptions(sim, "/store")
	opt.Clock, opt.Visibility, opt.SyncInterval = clk, VisibilityAppended, time.Hour
	s := start(t, opt)
	durable := endOf(mustAppend(t, s, &Message{Topic: "t", Body: body(0)}, Sync))
	var last Receipt
	for i := range 20 {
		last = mustAppend(t, s, &Message{Topic: "t", Body: body(i)}, Memory)
	}
	waitVisible(t, s, endOf(last))
	for range 20 {
		clk.Advance(time.Second)
		cursor, found, err := s.log.LoadCursor(contract.LaneQueue)
		if err != nil || found && cursor.Next > durable {
			t.Fatalf("cursor %+v, durable %d, %v", cursor, durable, err)
		}
	}
	if lane := s.Health().Lanes[0]; lane.Applied.Next != endOf(last) {
		t.Errorf("applied %+v", lane)
	}
	mustAppend(t, s, &Message{Topic: "t", Body: body(1)}, Sync)
	until(t, "the cursor is saved", func() bool {
		cursor, found, err := s.log.LoadCursor(contract.LaneQueue)
		return err == nil && found && cursor.Next >= endOf(last)
	}, func() { clk.Advance(time.Second) })
	closeClean(t, s)
}

// Rule 10: nothing exported sets a cursor.
func TestBrief_10(t *testing.T) {
	for _, v := range []any{&Store{}, &Reader{}} {
		typ := reflect.TypeOf(v)
		for i := range typ.NumMethod() {
			m := typ.Method(i)
			if strings.Contains(m.Name, "Cursor") {
				t.Errorf("%v has a method %s", typ, m.Name)
			}
			for k := 1; k < m.Type.NumIn(); k++ {
				if m.Type.In(k) == reflect.TypeFor[contract.Cursor]() {
					t.Errorf("%v.%s takes a cursor", typ, m.Name)
				}
			}
		}
	}
	// A damaged one is rebuilt and told: TestCursor has them all.
	r := newCursorRig(t, "/store")
	image := r.clean.Kill()
	writeFile(t, image, r.cursorFile(), 0, make([]byte, 2*cursorSlot), true)
	report, err := r.reopen(image)
	if err != nil || report.Lanes[0].Reason != dispatch.StartDamaged || report.Lanes[0].Cause == nil {
		t.Errorf("%+v, %v", report.Lanes, err)
	}
}

// Rule 11: create, load, start, and close are stages. Every order of five
// calls.
func TestBrief_11(t *testing.T) {
	calls := 5
	if testing.Short() {
		calls = 4
	}
	names := [...]string{"Load", "Start", "Append", "Get", "Close"}
	total := 1
	for range calls {
		total *= len(names)
	}
	sim, base := smallStore(t, false)
	for n := range total {
		opt := base
		opt.FS = sim.Kill()
		s, err := New(opt)
		if err != nil {
			t.Fatal(err)
		}
		stage, order := "new", ""
		for k, x := 0, n; k < calls; k, x = k+1, x/len(names) {
			name := names[x%len(names)]
			order += " " + name
			err := call(s, name)
			next, want := expected(stage, name)
			stage = next
			if want == nil && err != nil || want != nil && !errors.Is(err, want) {
				t.Fatalf("%s: %v, want %v", order, err, want)
			}
			if got := s.Health().Stage; got != stage {
				t.Fatalf("%s: the stage is %s, want %s", order, got, stage)
			}
		}
		if stage != "closed" {
			closeClean(t, s)
		}
	}
	t.Logf("%d orders", total)
}

func call(s *Store, name string) error {
	ctx := context.Background()
	switch name {
	case "Load":
		_, err := s.Load(ctx)
		return err
	case "Start":
		return s.Start(ctx)
	case "Append":
		r, err := s.Append(ctx, &Message{Topic: "t", Body: body(1)}, Memory)
		if _, in := r.Range(); in != (err == nil) {
			return fmt.Errorf("receipt %+v with %v", r, err)
		}
		return err
	case "Get":
		var out Records
		defer out.Release()
		err := s.Get(ctx, Request{Topic: "t"}, &out)
		if err == nil && out.Status != contract.GetFound {
			err = fmt.Errorf("status %v", out.Status)
		}
		return err
	}
	r, err := s.Close(ctx)
	if err == nil && !r.Clean {
		err = fmt.Errorf("report %+v", r)
	}
	return err
}

// expected is the stage behind a call at a stage, and the call's error.
func expected(stage, call string) (string, error) {
	if call == "Close" {
		return "closed", nil
	}
	if stage == "closed" {
		return stage, contract.ErrClosed
	}
	switch call {
	case "Load":
		if stage == "new" {
			return "loaded", nil
		}
		return stage, contract.ErrInvalid
	case "Start":
		switch stage {
		case "new":
			return stage, contract.ErrNotStarted
		case "loaded":
			return "started", nil
		}
		return stage, contract.ErrInvalid
	case "Append":
		if stage == "started" {
			return stage, nil
		}
		return stage, contract.ErrNotStarted
	}
	if stage == "new" {
		return stage, contract.ErrNotStarted
	}
	return stage, nil
}

// Rule 12: valid options promise nothing; TestOpenRefuses has all causes.
func TestBrief_12(t *testing.T) {
	sim := vfs.NewSim()
	writeFile(t, sim, "/plain", 0, []byte("x"), true)
	opt := testOptions(sim, "/plain")
	before := tree(t, sim, "/")
	if err := opt.Validate(); err != nil {
		t.Fatal(err)
	}
	s, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(context.Background()); err == nil {
		t.Fatal("a plain file was loaded")
	}
	if _, err := New(testOptions(sim, "/never")); err != nil {
		t.Fatal(err)
	}
	sameTree(t, "New, or a refused Load", before, tree(t, sim, "/"))
}

// Rule 32: a program that links all of this and asks for nothing runs nothing
// and makes no file.
func TestBrief_32(t *testing.T) {
	dir := t.TempDir()
	c := startChild(t, "idle", dir)
	if got := c.line(); got != "goroutines 1" {
		t.Errorf("%q", got)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}
