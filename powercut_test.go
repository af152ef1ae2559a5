package stratalog

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/clock"
	"github.com/stratalog/stratalog/internal/vfs"
)

var cutStates = flag.Int("storecut.states", 20_000, "crash states of the whole store to check, without -short")

// cutRecord is one record that was handed to the store.
type cutRecord struct {
	topic string
	queue int32
	body  []byte
	start Offset // known once acknowledged
}

// cutState is a crash image and what must be true of it.
type cutState struct {
	image *vfs.Sim
	sent  []cutRecord
	need  int // the first so many of sent survive
	where string
	again bool
}

// cutRun is one seeded workload of a whole store, with its tasks running.
type cutRun struct {
	seed  uint64
	rng   *rand.Rand
	opt   Options
	sim   *vfs.Sim
	clock *clock.Manual

	mu   sync.Mutex
	sent []cutRecord
	need int
	rand *rand.Rand // of the hook
	ops  int
	out  chan<- cutState
	stop *atomic.Bool
}

func newCutRun(seed uint64, out chan<- cutState, stop *atomic.Bool) *cutRun {
	w := &cutRun{seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), rand: rand.New(rand.NewPCG(seed, 2)), clock: manual(), out: out, stop: stop,
		sim: vfs.NewSimOptions(vfs.SimOptions{JournaledRename: seed&4 != 0})}
	w.opt = Options{FS: w.sim, Clock: w.clock, Dir: "/root/store", SegmentSize: 8 << 10, MaxMessageSize: 2 << 10, MaxUnsynced: 6 << 10,
		QueueFileSize: 200, IndexSlots: 11, IndexEntries: 12, DiskFloor: -1}
	if seed&1 != 0 {
		w.opt.Visibility = VisibilityAppended
	}
	if seed&2 != 0 {
		w.opt.WritePath = WriteMmap
	}
	return w
}

// hook takes images before each operation.
func (w *cutRun) hook(op vfs.Op) {
	if w.stop.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ops++; w.rand.IntN(4) != 0 {
		return // rather more workloads
	}
	choose := vfs.AllOld()
	switch w.rand.IntN(8) {
	case 0:
	case 1:
		choose = vfs.AllNew()
	case 2:
		choose = vfs.Hole(w.rand.IntN(1 + w.sim.PendingCount()))
	case 3:
		choose = vfs.Prefix(w.rand.IntN(1 + w.sim.PendingCount()))
	default:
		choose = vfs.Random(w.rand, []float64{0.1, 0.3, 0.5, 0.7, 0.9}[w.rand.IntN(5)])
	}
	w.out <- cutState{image: w.sim.Crash(choose), sent: slices.Clone(w.sent), need: w.need, again: w.rand.IntN(8) == 0,
		where: fmt.Sprintf("seed %d, before operation %d, %v of %s", w.seed, w.ops, op.Kind, op.Path)}
}

// run is the workload: appends of every durability, batches, rolls, cuts of the
// log, and one close in order.
func (w *cutRun) run(t testing.TB) error {
	w.sim.OnOp(w.hook)
	defer w.sim.OnOp(nil)
	ctx := within(t)
	s := start(t, w.opt)
	for step := 0; step < 60 && !w.stop.Load(); step++ {
		var err error
		switch {
		case step == 35:
			if _, err = s.Close(ctx); err == nil {
				s = start(t, w.opt)
			}
		case w.rng.IntN(15) == 0:
			err = w.truncate(ctx, s)
		case w.rng.IntN(8) == 0:
			w.clock.Advance(time.Duration(1+w.rng.IntN(4)) * time.Second) // syncs, and saves of cursors
		default:
			err = w.append(ctx, s)
		}
		if err != nil {
			abandon(t, s)
			return fmt.Errorf("seed %d, step %d: %w", w.seed, step, err)
		}
	}
	_, err := s.Close(ctx)
	return err
}

func (w *cutRun) append(ctx context.Context, s *Store) error {
	n := 1
	if w.rng.IntN(5) == 0 {
		n = 4
	}
	d := []Durability{Memory, Interval, Sync}[w.rng.IntN(3)]
	topic, queue := fmt.Sprintf("T%d", w.rng.IntN(2)), int32(w.rng.IntN(2))
	var msgs []Message
	w.mu.Lock()
	at := len(w.sent)
	for i := range n {
		b := fmt.Appendf(nil, "%d-%d-%0*d", w.seed, at+i, w.rng.IntN(500), 0)
		msgs = append(msgs, Message{Topic: topic, QueueID: queue, Body: b, Properties: keysOf(at + i)})
		w.sent = append(w.sent, cutRecord{topic, queue, b, -1})
	}
	w.mu.Unlock()
	var receipts []Receipt
	var err error
	for {
		if receipts, err = s.AppendBatch(ctx, msgs, d, nil); !errors.Is(err, contract.ErrBusy) {
			break
		}
		w.clock.Advance(time.Second)
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, r := range receipts {
		place, _ := r.Range()
		w.sent[at+i].start = place.Start
	}
	if receipts[n-1].Reached() == contract.ReachedLocal {
		w.need = len(w.sent)
	}
	return nil
}

func (w *cutRun) truncate(ctx context.Context, s *Store) error {
	if len(w.sent) == 0 {
		return nil
	}
	w.mu.Lock()
	i := len(w.sent) - 1 - w.rng.IntN(min(8, len(w.sent)))
	w.need = min(w.need, i)
	off := w.sent[i].start
	w.mu.Unlock()
	err := s.TruncateTo(ctx, off)
	w.mu.Lock()
	w.sent = w.sent[:i]
	w.need = i
	w.mu.Unlock()
	return err
}

// check opens a crash image and holds what it answers against the history and
// against a full rebuild.
func (st *cutState) check(opt Options) error {
	opt.Clock = manual()
	copied := st.image.Kill()
	opt.FS = st.image
	s, err := Open(context.Background(), opt)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	got, err := answers(s)
	if err == nil {
		err = st.history(s)
	}
	if err == nil && s.queues.MaxPhysical() > s.log.Durable() {
		err = fmt.Errorf("a unit leads to %d, the log ends at %d", s.queues.MaxPhysical(), s.log.Durable())
	}
	if err == nil && st.again {
		// The power goes once more right after recovery.
		err = sameAnswers(st.image.Crash(vfs.AllOld()), opt, got, "a second power cut after recovery")
	}
	r, cerr := s.Close(context.Background())
	if err == nil && (cerr != nil || !r.Clean) {
		err = fmt.Errorf("close: %+v, %w", r, cerr)
	}
	if err == nil && st.again {
		err = sameAnswers(st.image.Crash(vfs.AllOld()), opt, got, "a power cut after the close")
	}
	if err != nil {
		return err
	}
	want, err := rebuilt(copied, opt)
	if err == nil && got != want {
		err = fmt.Errorf("the store says\n%s\na full rebuild\n%s\nload: %+v", got, want, s.report)
	}
	return err
}

func sameAnswers(image *vfs.Sim, opt Options, want, when string) error {
	opt.FS = image
	s, err := Open(context.Background(), opt)
	if err != nil {
		return fmt.Errorf("%s: %w", when, err)
	}
	got, err := answers(s)
	if _, cerr := s.Close(context.Background()); cerr != nil || err != nil {
		return fmt.Errorf("%s: %w", when, errors.Join(err, cerr))
	}
	if got != want {
		return fmt.Errorf("%s: the store says\n%s\nbefore\n%s", when, got, want)
	}
	return nil
}

// history checks that the records are the first ones sent, all of them up to
// some number not below need.
func (st *cutState) history(s *Store) error {
	type key struct {
		topic string
		queue int32
	}
	n, lists := 0, map[key][]seen{}
	for _, topic := range s.Topics() {
		for _, q := range s.Queues(topic) {
			all, _, err := follow(s, Request{Topic: topic, QueueID: q})
			if err != nil {
				return err
			}
			lists[key{topic, q}] = all
			n += len(all)
		}
	}
	if n < st.need || n > len(st.sent) {
		return fmt.Errorf("%d records, of %d sent %d are durable; load: %+v", n, len(st.sent), st.need, s.report)
	}
	for i, r := range st.sent[:n] {
		k := key{r.topic, r.queue}
		if len(lists[k]) == 0 || lists[k][0].body != string(r.body) || r.start >= 0 && lists[k][0].start != int64(r.start) {
			return fmt.Errorf("record %d of %s/%d is missing among %d, or another one", i, r.topic, r.queue, n)
		}
		lists[k] = lists[k][1:]
	}
	return nil
}

// TestStorePowerCut cuts the power before the operations of random workloads
// and opens what is left.
func TestStorePowerCut(t *testing.T) {
	enough := *cutStates
	if testing.Short() {
		enough = 2000
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	states := make(chan cutState, 4)
	var stop atomic.Bool
	var checked atomic.Int64
	var wg sync.WaitGroup
	failed := make([]error, 2)
	for i := range failed {
		wg.Go(func() {
			for st := range states {
				if stop.Load() {
					continue
				}
				opt := newCutRun(0, nil, nil).opt
				if err := st.check(opt); err != nil && failed[i] == nil {
					failed[i] = fmt.Errorf("%s: %w", st.where, err)
					stop.Store(true)
				}
				if checked.Add(1) >= int64(enough) {
					stop.Store(true)
				}
			}
		})
	}
	seed := uint64(0)
	for ; !stop.Load(); seed++ {
		if err := newCutRun(seed, states, &stop).run(t); err != nil {
			stop.Store(true)
			t.Error(err)
		}
	}
	close(states)
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	if checked.Load() < int64(enough) {
		t.Fatalf("only %d states, want %d", checked.Load(), enough)
	}
	t.Logf("%d crash states of %d workloads", checked.Load(), seed)
}
