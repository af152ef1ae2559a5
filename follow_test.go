package stratalog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// followed is what a Follow gave.
type followed struct {
	status contract.GetStatus
	next   int64
	bodies []string
	err    error
}

// follower is a Store or a Reader.
type follower interface {
	Follow(ctx context.Context, req Request, out *Records) error
}

// following starts a Follow and returns where its answer comes.
func following(ctx context.Context, s follower, req Request) chan followed {
	c := make(chan followed, 1)
	go func() {
		var out Records
		defer out.Release()
		err := s.Follow(ctx, req, &out)
		f := followed{status: out.Status, next: out.Next, err: err}
		for i := range out.Len() {
			f.bodies = append(f.bodies, string(out.At(i).Body()))
		}
		c <- f
	}()
	return c
}

func answer(t *testing.T, c chan followed) followed {
	t.Helper()
	select {
	case f := <-c:
		return f
	case <-within(t).Done():
		t.Fatal("Follow never came back")
		return followed{}
	}
}

// TestFollow: it waits at the end of a queue, and for a queue that is not there
// yet, passes over other tags, and tells of a cut and of its own end: of a Store,
// and of a Reader beside it.
func TestFollow(t *testing.T) {
	for _, beside := range []bool{false, true} {
		t.Run(map[bool]string{false: "store", true: "reader"}[beside], func(t *testing.T) { testFollow(t, beside) })
	}
}

func testFollow(t *testing.T, beside bool) {
	opt := testOptions(besideFS(t))
	s := start(t, opt)
	ctx := within(t)
	put := func(topic string, i int, tag string) Receipt {
		return mustAppend(t, s, &Message{Topic: topic, Body: body(i), Properties: tags(tag)}, Sync)
	}
	var of interface {
		follower
		reading
	} = s
	waits := func() { until(t, "somebody waits", func() bool { return s.dispatcher.Waiting() > 0 }, nil) }
	ends := func() { closeClean(t, s) }
	if beside {
		now := manual()
		ropt := opt
		ropt.Clock = now
		r, err := OpenReader(ctx, ropt, ReaderOptions{FollowEvery: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		of = r
		waits = func() {
			if err := now.WaitFor(ctx, 1); err != nil {
				t.Fatal(err)
			}
		}
		ends = func() {
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
		stop := make(chan struct{})
		var ticks sync.WaitGroup
		ticks.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
					now.Advance(time.Second)
				}
			}
		})
		defer func() { close(stop); ticks.Wait(); closeClean(t, s) }()
	}
	c := following(ctx, of, Request{Topic: "t"})
	put("other", 0, "x")
	put("t", 1, "x")
	if f := answer(t, c); f.err != nil || f.status != contract.GetFound || len(f.bodies) != 1 || f.bodies[0] != string(body(1)) || f.next != 1 {
		t.Fatalf("%+v", f)
	}
	c = following(ctx, of, Request{Topic: "t", Offset: 1, Tag: "y"})
	for i := range 70 {
		put("t", 2+i, "x")
	}
	last := put("t", 100, "y")
	if f := answer(t, c); f.err != nil || len(f.bodies) != 1 || f.bodies[0] != string(body(100)) || f.next != 72 {
		t.Fatalf("%+v", f)
	}
	if f := answer(t, following(ctx, of, Request{Topic: "t", Offset: 99})); f.status != contract.GetOffsetOverflowBadly || f.next != 72 {
		t.Fatalf("%+v", f)
	}
	short, cancel := context.WithCancel(ctx)
	c = following(short, of, Request{Topic: "t", Offset: 72})
	cancel()
	if f := answer(t, c); !errors.Is(f.err, context.Canceled) || f.next != 72 {
		t.Fatalf("%+v", f)
	}
	var now Records
	if err := of.Get(ctx, Request{Topic: "t", Offset: 72}, &now); err != nil || now.Status != contract.GetOffsetOverflowOne {
		t.Fatal(now.Status, err)
	}
	c = following(ctx, of, Request{Topic: "t", Offset: 72, Epoch: now.Epoch})
	waits()
	place, _ := last.Range()
	if err := s.TruncateTo(ctx, place.Start); err != nil {
		t.Fatal(err)
	}
	if f := answer(t, c); f.err != nil || f.status != contract.GetOffsetReset || f.next != 71 {
		t.Fatalf("%+v", f)
	}
	c = following(ctx, of, Request{Topic: "t", Offset: 71})
	waits()
	ends()
	if f := answer(t, c); !errors.Is(f.err, contract.ErrClosed) || f.next != 71 || !strings.HasPrefix(f.err.Error(), "store: read: ") {
		t.Fatalf("%+v", f)
	}
}

// TestReaderFollowsEnd: what the owner puts into a queue after it published the
// record's place, and after a Reader looked, is seen; and one that Follow took for
// being beyond the end.
func TestReaderFollowsEnd(t *testing.T) {
	base, dir := besideFS(t)
	fault := vfs.NewFault(base)
	opt := testOptions(fault, dir)
	opt.NoIndex = true // whose cursor would have a Reader look at the queues again
	s := start(t, opt)
	defer func() { closeClean(t, s) }()
	waitVisible(t, s, endOf(mustAppend(t, s, &Message{Topic: "t", Body: body(0)}, Sync)))
	ropt := opt
	ropt.FS = base
	r, err := OpenReader(t.Context(), ropt, ReaderOptions{FollowEvery: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	full := make(chan struct{})
	rule := fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpWrite), Path: queueDirName + "/*/*/*", Sticky: true, Block: full})
	last := mustAppend(t, s, &Message{Topic: "t", Body: body(1)}, Sync)
	for range 2 {
		if err := r.Refresh(t.Context()); err != nil || r.log.Confirmed() != endOf(last) {
			t.Fatal(r.log.Confirmed(), err)
		}
		expect2(t, r, [][]byte{body(0)})
	}
	if rule.Remove(); s.dispatcher.Frontier() == endOf(last) {
		t.Fatal("the lane was not held up")
	}
	close(full)
	waitVisible(t, s, endOf(last))
	if f := answer(t, following(within(t), r, Request{Topic: "t", Offset: 1})); f.err != nil || len(f.bodies) != 1 {
		t.Fatalf("%+v", f)
	}
	expect2(t, r, [][]byte{body(0), body(1)})
	waitVisible(t, s, endOf(mustAppend(t, s, &Message{Topic: "t", Body: body(2)}, Sync)))
	mustAppend(t, s, &Message{Topic: "t", Body: body(3)}, Sync)
	waitVisible(t, s, s.Health().Watermarks.Confirmed)
	if f := answer(t, following(within(t), r, Request{Topic: "t", Offset: 3})); f.err != nil || len(f.bodies) != 1 || f.bodies[0] != string(body(3)) {
		t.Fatalf("%+v", f)
	}
}

// TestReaderTakesUp: a refreshed Reader knows of a cut that was made good by as
// many bytes, of retirement, and how far the key index has come.
func TestReaderTakesUp(t *testing.T) {
	opt := testOptions(vfs.NewSim(), "/store")
	now := manual()
	opt.Clock = now
	s := start(t, opt)
	put := func(i int, gen string) Receipt {
		r := mustAppend(t, s, &Message{Topic: "t", Body: []byte(gen + strings.Repeat("x", 500)), Properties: keysOf(i)}, Sync)
		waitVisible(t, s, endOf(r))
		return r
	}
	var all []Receipt
	for i := range 300 {
		all = append(all, put(i, "a"))
	}
	r := openReading(t, opt, ReaderOptions{})
	var out Records
	defer out.Release()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(r.Get(t.Context(), Request{Topic: "t", Offset: 299}, &out))
	epoch := out.Epoch
	place, _ := all[290].Range()
	must(s.TruncateTo(t.Context(), place.Start))
	for i := 290; i < 300; i++ {
		put(i, "b")
	}
	if endOf(all[299]) != s.Health().Watermarks.Confirmed {
		t.Fatal("the records are not as long")
	}
	must(r.Refresh(t.Context()))
	must(r.Get(t.Context(), Request{Topic: "t", Offset: 299, Epoch: epoch}, &out))
	if out.Status != contract.GetOffsetReset || out.Next != 290 || out.Epoch != s.Health().Epoch {
		t.Errorf("%v, next %d, epoch %d", out.Status, out.Next, out.Epoch)
	}
	must(r.Get(t.Context(), Request{Topic: "t", Offset: 290}, &out))
	if out.Len() != 10 || out.At(0).Body()[0] != 'b' {
		t.Errorf("%d records, the first %.1s", out.Len(), out.At(0).Body())
	}

	waitIndexed(t, s)
	must(s.dispatcher.Persist())
	must(r.Refresh(t.Context()))
	found, matches, err := byKey(r, Query{Topic: "t", Key: keyOf(299)})
	if end := s.Health().Watermarks.Confirmed; err != nil || matches.Boundary != end || len(found) != 60 {
		t.Errorf("%d found, up to %d of %d, %v", len(found), matches.Boundary, end, err)
	}

	retired, err := s.Retire(t.Context(), endOf(all[200]))
	must(err)
	must(r.Refresh(t.Context()))
	first, _ := s.QueueRange("t", 0)
	if got, _ := r.QueueRange("t", 0); got != first || first == 0 || r.log.MinOffset() != retired.MinOffset {
		t.Errorf("the queue starts at %d, want %d", got, first)
	}
	closeClean(t, s)
}

// TestReaderFollowsDamage: damage that stays is told, and not looked at for ever.
func TestReaderFollowsDamage(t *testing.T) {
	v := newVerified(t, 40)
	v.opt.FS = v.sim.Kill()
	flipRecord(t, v.opt.FS.(*vfs.Sim), v.opt, 5)
	r := openReading(t, v.opt, ReaderOptions{})
	f := following(within(t), r, Request{Topic: "t", Offset: 5})
	if f := answer(t, f); !errors.Is(f.err, contract.ErrCorrupt) || f.next != 6 {
		t.Fatalf("%+v", f)
	}
}

// TestReaderFollowsLive: many who follow by one Reader see each what the store has
// at the end, while it is appended to, cut, retired from and verified.
func TestReaderFollowsLive(t *testing.T) {
	rounds := 6
	if testing.Short() {
		rounds = 1
	}
	for round := range rounds {
		for name, fs := range map[string]vfs.FS{"sim": vfs.NewSim(), "os": vfs.OS()} {
			if name == "sim" && raceEnabled {
				continue // A Reader looks at what an owner writes behind the end; in the simulator that is memory of both.
			}
			t.Run(fmt.Sprint(name, round), func(t *testing.T) {
				opt := testOptions(fs, t.TempDir()+"/store")
				opt.SegmentSize, opt.QueueFileSize = 16<<10, 200
				followLive(t, opt, uint64(round))
			})
		}
	}
}

func followLive(t *testing.T, opt Options, seed uint64) {
	s := start(t, opt)
	r, err := OpenReader(t.Context(), opt, ReaderOptions{FollowEvery: 200 * time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	const queues, last = 3, "the last one"
	seen := make([]map[int64]string, queues)
	var followers, checker sync.WaitGroup
	for q := range queues {
		seen[q] = map[int64]string{}
		followers.Go(func() {
			if err := followTo(within(t), r, int32(q), last, seen[q]); err != nil {
				t.Errorf("queue %d: %v", q, err)
			}
		})
	}
	checks := make(chan struct{})
	checker.Go(func() {
		for {
			select {
			case <-checks:
				return
			default:
			}
			if _, err := r.Verify(t.Context(), func(Finding) {}); err != nil && !errors.Is(err, contract.ErrCorrupt) {
				t.Errorf("verify: %v", err)
			}
			time.Sleep(time.Millisecond)
		}
	})
	rng := rand.New(rand.NewPCG(seed, 11))
	var all []Receipt
	for i := range 400 {
		switch n := rng.IntN(60); {
		case n == 0 && len(all) > 20:
			at := len(all) - 1 - rng.IntN(15)
			place, _ := all[at].Range()
			if err := s.TruncateTo(t.Context(), place.Start); err != nil {
				t.Fatal(err)
			}
			all = all[:at]
		case n == 1:
			if _, err := s.Retire(t.Context(), max(0, s.Health().Watermarks.Durable-60<<10)); err != nil {
				t.Fatal(err)
			}
		default:
			m := &Message{Topic: "t", QueueID: rng.Int32N(queues), Body: body(i)}
			all = append(all, mustAppend(t, s, m, []Durability{Sync, Memory}[rng.IntN(2)]))
		}
	}
	for q := range queues {
		mustAppend(t, s, &Message{Topic: "t", QueueID: int32(q), Body: []byte(last)}, Sync)
	}
	waitVisible(t, s, s.Health().Watermarks.Confirmed)
	followers.Wait()
	close(checks)
	checker.Wait()
	for q := range queues {
		first, _ := s.QueueRange("t", int32(q))
		there, _, err := follow(s, Request{Topic: "t", QueueID: int32(q), Offset: first})
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range there {
			if got := seen[q][rec.at]; got != rec.body {
				t.Errorf("queue %d: record %d was seen as %q, it is %q", q, rec.at, got, rec.body)
			}
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	closeClean(t, s)
}

// followTo follows a queue until a record has the body last, and keeps in seen what
// the records were that stand there.
func followTo(ctx context.Context, r *Reader, queue int32, last string, seen map[int64]string) error {
	var out Records
	defer out.Release()
	for req := (Request{Topic: "t", QueueID: queue}); ; req.Offset, req.Epoch = out.Next, out.Epoch {
		if err := r.Follow(ctx, req, &out); err != nil {
			return fmt.Errorf("at %d: %w", req.Offset, err)
		}
		if out.Status == contract.GetOffsetReset {
			for at := range seen {
				if at >= out.Next {
					delete(seen, at)
				}
			}
		}
		for i := range out.Len() {
			seen[out.QueueOffset(i)] = string(out.At(i).Body())
			if seen[out.QueueOffset(i)] == last {
				return nil
			}
		}
	}
}
