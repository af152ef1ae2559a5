package stratalog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// toRebuild is a closed store with all kinds of queues, and keys, and what it
// answers.
func toRebuild(t *testing.T) (*vfs.Sim, Options, string) {
	t.Helper()
	sim := vfs.NewSim()
	opt := testOptions(sim, "/store")
	opt.Clock, opt.QueueFileSize, opt.LightQueues = manual(), 100, true
	opt.IndexSlots, opt.IndexEntries = 10, 40
	s := start(t, opt)
	for i := range 60 {
		m := &Message{Topic: "t", QueueID: int32(i % 2), Body: body(i % 9), Properties: keysOf(i)}
		switch i % 5 {
		case 3:
			m = inner("b", 1+i%3, body(i%7))
		case 4:
			m.Properties = lightProps("%LMQ%a")
		}
		mustAppend(t, s, m, Sync)
	}
	waitVisible(t, s, s.Health().Watermarks.Confirmed)
	waitIndexed(t, s)
	before := mustAnswers(t, s)
	closeClean(t, s)
	return sim, opt, before
}

// files are the bytes of all files below a directory of the store.
func files(t *testing.T, sim *vfs.Sim, opt Options, dir string) string {
	t.Helper()
	var b strings.Builder
	entries, err := vfs.Tree(sim, path.Join(opt.Dir, dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		fmt.Fprintf(&b, "%+v\n", e)
	}
	return b.String()
}

// spoil makes the first files of both strata wrong where no open looks.
func spoil(t *testing.T, sim *vfs.Sim, opt Options) {
	t.Helper()
	unit := make([]byte, 20)
	copy(unit, readFile(t, sim, queueFile(opt, 1, 0))[20:40])
	writeFile(t, sim, queueFile(opt, 0, 0), 20, unit, false)
	list, err := sim.ReadDir(path.Join(opt.Dir, indexDirName))
	if err != nil || len(list) < 2 {
		t.Fatal(list, err)
	}
	writeFile(t, sim, path.Join(opt.Dir, indexDirName, list[0].Name), 40, make([]byte, 40), false)
}

func faults(t *testing.T, opt Options) (kinds []string) {
	t.Helper()
	r := openReading(t, opt, ReaderOptions{Salvage: true})
	if _, err := r.Verify(t.Context(), func(f Finding) {
		if f.Severity == Fault {
			kinds = append(kinds, f.Kind+" in "+path.Dir(f.File))
		}
	}); err != nil {
		t.Fatal(err)
	}
	return kinds
}

// TestRebuild: each stratum is made anew, and the other is left alone; numbers go
// on where they were.
func TestRebuild(t *testing.T) {
	dirs := map[string]string{"consumequeue": queueDirName, "index": indexDirName}
	for _, name := range Strata() {
		t.Run(name, func(t *testing.T) {
			sim, opt, before := toRebuild(t)
			spoil(t, sim, opt)
			if found := faults(t, opt); len(found) < 2 {
				t.Fatalf("only %q are wrong", found)
			}
			s, err := Open(t.Context(), opt)
			if err != nil {
				t.Fatal(err)
			}
			others := map[string]string{}
			for other, dir := range dirs {
				others[other] = files(t, sim, opt, dir)
			}
			calls, last := 0, int64(-1)
			report, err := s.Rebuild(t.Context(), name, func(done, total int64) {
				if calls++; done <= last || done > total {
					t.Errorf("%d of %d behind %d", done, total, last)
				}
				last = done
				if err := s.Get(t.Context(), Request{Topic: "t"}, new(Records)); name == "consumequeue" != errors.Is(err, contract.ErrNotStarted) {
					t.Errorf("a get in between: %v", err)
				}
			})
			if err != nil || calls == 0 || report.Records != 60 || report.From != 0 || report.To != s.Health().Watermarks.Confirmed {
				t.Fatalf("%+v, %v, %d calls", report, err, calls)
			}
			for other, was := range others {
				if now := files(t, sim, opt, dirs[other]); other != name && now != was {
					t.Errorf("%s changed", other)
				}
			}
			if err := s.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, end := s.QueueRange("t", 1)
			if r := mustAppend(t, s, &Message{Topic: "t", QueueID: 1}, Sync); r.QueueOffset() != end || end == 0 {
				t.Errorf("number %d follows on %d", r.QueueOffset(), end)
			}
			if _, err := s.Rebuild(t.Context(), name, nil); !errors.Is(err, contract.ErrInvalid) {
				t.Errorf("while it runs: %v", err)
			}
			if err := s.TruncateTo(t.Context(), report.To); err != nil {
				t.Fatal(err)
			}
			closeClean(t, s)
			for _, kind := range faults(t, opt) {
				if strings.HasSuffix(kind, opt.Dir+"/"+dirs[name]) || strings.Contains(kind, dirs[name]+"/") {
					t.Errorf("still %s", kind)
				}
			}
			s = start(t, opt)
			if s.Report().QueueTally != "" || s.Report().Index.Rebuilt != "" {
				t.Errorf("the next open rebuilds: %+v", s.Report())
			}
			closeClean(t, s)
			s, err = Open(t.Context(), opt)
			if err != nil {
				t.Fatal(err)
			}
			for _, other := range Strata() {
				if _, err := s.Rebuild(t.Context(), other, nil); err != nil {
					t.Fatal(err)
				}
			}
			if after := mustAnswers(t, s); after != before {
				t.Errorf("it answers\n%s\nbefore\n%s", after, before)
			}
			closeClean(t, s)
			if found := faults(t, opt); len(found) > 0 {
				t.Errorf("%q", found)
			}
		})
	}
}

// TestRebuildCrash: killed or cut from power at each of its operations, the next
// open completes it.
func TestRebuildCrash(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 11
	}
	whole, opt, before := toRebuild(t)
	for _, name := range Strata() {
		for at := 1; ; at += step {
			sim := whole.Kill()
			rng := rand.New(rand.NewPCG(uint64(at), 5))
			fault := vfs.NewFault(sim)
			opt.FS = fault
			s, err := Open(t.Context(), opt)
			if err != nil {
				t.Fatal(err)
			}
			var image *vfs.Sim
			rule := fault.Add(vfs.Rule{Kinds: vfs.MutatingOps | vfs.SyncOps, At: at, Hook: func(vfs.Op) {
				if image = sim.Kill(); at/step%2 == 0 {
					image = sim.Crash(vfs.Random(rng, 0.5))
				}
			}})
			_, err = s.Rebuild(t.Context(), name, nil)
			rule.Remove()
			abandon(t, s)
			if err != nil {
				t.Fatal(err)
			}
			if image == nil {
				break
			}
			opt.FS = image
			s = start(t, opt)
			waitIndexed(t, s)
			if after := mustAnswers(t, s); after != before {
				t.Fatalf("%s, operation %d: it answers\n%s\nbefore\n%s", name, at, after, before)
			}
			closeClean(t, s)
		}
	}
}

// TestRebuildRefused: what cannot be rebuilt is left as it was, and so is what
// would lose the number of a queue.
func TestRebuildRefused(t *testing.T) {
	_, opt, before := toRebuild(t)
	s, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rebuild(t.Context(), "index", nil); !errors.Is(err, contract.ErrNotStarted) {
		t.Errorf("before Load: %v", err)
	}
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rebuild(t.Context(), "queues", nil); !errors.Is(err, contract.ErrInvalid) || !strings.Contains(err.Error(), `"queues"`) {
		t.Errorf("%v", err)
	}
	short, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Rebuild(short, "index", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that ended: %v", err)
	}
	closeClean(t, s)
	if _, err := s.Rebuild(t.Context(), "index", nil); !errors.Is(err, contract.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	opt.NoIndex = true
	if s, err = Open(t.Context(), opt); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rebuild(t.Context(), "index", nil); !errors.Is(err, contract.ErrUnsupported) {
		t.Errorf("without an index: %v", err)
	}
	closeClean(t, s)
	opt.NoIndex = false
	s = start(t, opt)
	waitIndexed(t, s)
	if after := mustAnswers(t, s); after != before {
		t.Errorf("it answers\n%s\nbefore\n%s", after, before)
	}
	last := Receipt{}
	for range 300 {
		last = mustAppend(t, s, &Message{Topic: "other", Body: body(600)}, Sync)
	}
	waitVisible(t, s, endOf(last))
	if _, err := s.Retire(t.Context(), endOf(last)); err != nil {
		t.Fatal(err)
	}
	first, end := s.QueueRange("t", 0)
	if first != end || end == 0 {
		t.Fatalf("t/0 is [%d,%d)", first, end)
	}
	closeClean(t, s)
	if s, err = Open(t.Context(), opt); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rebuild(t.Context(), "consumequeue", nil); !errors.Is(err, contract.ErrInvalid) || !strings.Contains(err.Error(), "only its files know that it goes on at") {
		t.Errorf("%v", err)
	}
	if _, now := s.QueueRange("t", 0); now != end {
		t.Errorf("t/0 goes on at %d", now)
	}
	closeClean(t, s)
}
