package index

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

func TestRefusals(t *testing.T) {
	sim := newSim(t)
	for _, o := range []Options{{Slots: -1, Entries: 5}, {Slots: 5}, {Entries: 5}, {Slots: 1, Entries: 1}, {Slots: 1 << 30, Entries: 5}, {MaxHandles: -1}} {
		if _, err := Open(sim, dir, o); !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	s := mustOpen(t, sim, small())
	l := newLog(rand.New(rand.NewPCG(3, 3)), 0)
	for range 60 {
		mustApply(t, s, l.grow())
	}
	must(t, s.Flush())
	must(t, s.Close())
	must(t, s.Close())
	if err := l.grow().apply(t, s); !errors.Is(err, contract.ErrClosed) {
		t.Error(err)
	}
	if _, _, err := s.Search(t.Context(), Query{}, Position{}, nil); !errors.Is(err, contract.ErrClosed) {
		t.Error(err)
	}
	for _, o := range []Options{{Slots: 8, Entries: 12}, {Slots: 7, Entries: 13}} {
		if _, err := Open(sim, dir, o); !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	r, err := Open(sim, dir, Options{ReadOnly: true})
	must(t, err)
	for _, err := range []error{l.grow().apply(t, r), r.Flush(), r.DropAll(), r.RollBack(0)} {
		if !errors.Is(err, contract.ErrUnsupported) {
			t.Error(err)
		}
	}
	must(t, r.Close())
}

// The sizes of files are found out, whatever they are.
func TestFindsSizes(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 8))
		sim := newSim(t)
		opts := small()
		opts.Slots, opts.Entries = 1+rng.IntN(300), 2+rng.IntN(300)
		s, err := Open(sim, dir, opts)
		must(t, err)
		l := newLog(rng, 1)
		for range 1 + rng.IntN(400) {
			mustApply(t, s, l.grow())
		}
		must(t, s.Flush())
		n := len(s.Files())
		must(t, s.Close())
		r, err := Open(sim, dir, Options{ReadOnly: true})
		must(t, err)
		if n > 0 && (r.Slots() != opts.Slots || r.Entries() != opts.Entries) {
			t.Errorf("seed %d: %d/%d, want %d/%d (%d files)", seed, r.Slots(), r.Entries(), opts.Slots, opts.Entries, n)
		}
		if n == 0 && (r.Slots() != DefaultSlots || r.Entries() != DefaultEntries) {
			t.Error(r.Slots(), r.Entries())
		}
		must(t, r.Close())
	}
}

// A reader beside the owner sees, of what the cursor vouches for, everything,
// however far the owner is.
func TestReaderBesideOwner(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		sim := newSim(t)
		opts := small()
		opts.Slots, opts.Entries = 1+rng.IntN(50), 2+rng.IntN(200)
		s, err := Open(sim, dir, opts)
		must(t, err)
		l := newLog(rng, 0)
		for range 1 + rng.IntN(150) {
			mustApply(t, s, l.grow())
		}
		must(t, s.Flush())
		cursor, tally := l.phy, s.Tally()
		for range rng.IntN(100) {
			mustApply(t, s, l.grow())
		}
		view := vfs.FS(sim)
		switch rng.IntN(3) {
		case 0:
			must(t, s.Flush())
		case 1:
			view = sim.Crash(chooser(rng))
		}
		ro := opts
		ro.ReadOnly = true
		r, err := Open(view, dir, ro)
		must(t, err)
		_, err = r.Fit(Fit{Limit: contract.Offset(cursor), Tally: tally, Exact: true}, nil)
		must(t, err)
		if r.Exact() {
			l.verifyBelow(t, r, cursor)
		} else if view == vfs.FS(sim) {
			t.Errorf("seed %d: not exact", seed)
		}
		must(t, r.Close())
		must(t, s.Close())
	}
}
