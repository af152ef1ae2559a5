package index

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// oneLog is a log with a flushed index of a few files.
func oneLog(t testing.TB, records int) (*log, *vfs.Sim, Options, int64) {
	t.Helper()
	sim := newSim(t)
	opts := small()
	s := mustOpen(t, sim, opts)
	l := newLog(rand.New(rand.NewPCG(4, 4)), 1000)
	for range records {
		mustApply(t, s, l.grow())
	}
	must(t, s.Flush())
	return l, sim, opts, s.Tally()
}

func overwrite(t testing.TB, fsys vfs.FS, name string, at int64, b []byte) {
	t.Helper()
	f, err := fsys.Open(name, vfs.ReadWrite|vfs.Create)
	must(t, err)
	_, err = f.WriteAt(b, at)
	must(t, errors.Join(err, f.Sync(), f.Close()))
}

// TestEveryByte flips each byte of every file. Whatever it was: nothing panics,
// no wrong record is found, a record that is not found any more was told of by an
// error, or is by the verifier; and the owner's next open makes it right, or
// takes over what its cursor still vouches for.
func TestEveryByte(t *testing.T) {
	l, sim, opts, tally := oneLog(t, 25)
	entries, err := sim.ReadDir(dir)
	must(t, err)
	ro := opts
	ro.ReadOnly = true
	silent, typed := 0, 0
	for _, e := range entries {
		name := dir + "/" + e.Name
		old := readAll(t, sim, name)
		for at := range old {
			for _, bit := range []byte{0x01, 0x80, 0xFF} {
				overwrite(t, sim, name, int64(at), []byte{old[at] ^ bit})
				what := fmt.Sprintf("byte %d of %s, %#x", at, e.Name, bit)
				missed, failed := flipped(t, l, sim, ro, tally, what)
				if missed && !failed {
					if silent++; !verifierFinds(t, l, sim, ro, tally) {
						t.Fatalf("%s: records are missing, and the verifier finds nothing", what)
					}
				}
				if failed {
					typed++
				}
				overwrite(t, sim, name, int64(at), old[at:at+1])
			}
		}
	}
	t.Logf("%d flips gave an error, %d were found by the verifier alone", typed, silent)
}

// flipped asks everything of a damaged index: whether something is missing, and
// whether there was an error.
func flipped(t *testing.T, l *log, sim *vfs.Sim, ro Options, tally int64, what string) (missed, failed bool) {
	t.Helper()
	s, err := Open(sim, dir, ro)
	must(t, err)
	defer s.Close()
	_, err = s.Fit(Fit{Limit: contract.Offset(l.phy), Tally: tally, Exact: true}, nil)
	must(t, err)
	for _, topic := range topics {
		for _, key := range words {
			q := Query{Topic: topic, Key: key}
			got, err := query(t, s, l, q, 0, 10)
			var typed *contract.CorruptionError
			if err != nil && !errors.As(err, &typed) && !errors.Is(err, errNoRecord) {
				t.Fatalf("%s: %v", what, err)
			}
			want := l.model(q, 0, l.phy)
			for _, phy := range got {
				if !slices.Contains(want, phy) {
					t.Fatalf("%s: %+v gives %d", what, q, phy)
				}
			}
			missed = missed || len(got) < len(want)
			failed = failed || err != nil || !s.Exact()
		}
	}
	return missed, failed
}

func verifierFinds(t *testing.T, l *log, sim *vfs.Sim, ro Options, tally int64) bool {
	t.Helper()
	s, err := Open(sim, dir, ro)
	must(t, err)
	defer s.Close()
	_, err = s.Fit(Fit{Limit: contract.Offset(l.phy), Tally: tally, Exact: true, Clean: true}, nil)
	must(t, err)
	faults := 0
	v := s.NewVerifier(0, contract.Offset(l.phy), func(Fault) { faults++ })
	for _, r := range l.records {
		must(t, v.Record(r.view(t)))
	}
	must(t, v.Finish())
	return faults > 0
}

// After anything but an orderly stop, every flip but one in a file that is full
// is made right by Fit and the replay; those that Fit cannot see the verifier does.
func TestFitHealsFlips(t *testing.T) {
	l, sim, opts, tally := oneLog(t, 25)
	opts.StoreTime = l.storeTime
	entries, err := sim.ReadDir(dir)
	must(t, err)
	want := contents(t, sim)
	last := dir + "/" + entries[len(entries)-1].Name
	old := readAll(t, sim, last)
	for at := range old {
		damaged := sim.Kill()
		overwrite(t, damaged, last, int64(at), []byte{old[at] ^ 0xFF})
		s, err := Open(damaged, dir, opts)
		must(t, err)
		report, err := s.Fit(Fit{Limit: contract.Offset(l.phy), Tally: tally, Exact: true, LogMin: 1000},
			func(contract.Offset, int64) error { return nil })
		must(t, err)
		for _, r := range l.records {
			if r.phy >= int64(report.Replay) {
				must(t, r.apply(t, s))
			}
		}
		must(t, errors.Join(s.Commit(), s.Flush(), s.Close()))
		// The end time stands in the header alone and is not asked for again.
		got := contents(t, damaged)
		if at >= 8 && at < 16 {
			copy(got[len(got)-1][8:16], want[len(got)-1][8:16])
		}
		if at >= 40+7*4 && at < 40+7*4+20 {
			clear(got[len(got)-1][40+7*4 : 40+7*4+20]) // Entry 0 is never used.
		}
		sameContents(t, got, want)
	}
}

// Files of another length, or that are no index at all, are told of, and a fit
// makes them anew.
func TestStrangeFiles(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, fs *vfs.Sim, name string){
		"empty": func(t *testing.T, fs *vfs.Sim, name string) { resize(t, fs, name, 0) },
		"short": func(t *testing.T, fs *vfs.Sim, name string) { resize(t, fs, name, 50) },
		"long":  func(t *testing.T, fs *vfs.Sim, name string) { resize(t, fs, name, 5000) },
		"garbage": func(t *testing.T, fs *vfs.Sim, name string) {
			overwrite(t, fs, name, 0, []byte("no header at all, and no slots, and more of that"))
		},
		"missing": func(t *testing.T, fs *vfs.Sim, name string) { must(t, fs.Remove(name)) },
	} {
		t.Run(name, func(t *testing.T) {
			l, sim, opts, tally := oneLog(t, 43)
			want := contents(t, sim)
			entries, err := sim.ReadDir(dir)
			must(t, err)
			for _, e := range entries {
				fs := sim.Kill()
				spoil(t, fs, dir+"/"+e.Name)
				s, err := Open(fs, dir, opts)
				must(t, err)
				lowered := false
				report, err := s.Fit(Fit{Limit: contract.Offset(l.phy), Tally: tally, Exact: true, LogMin: 1000},
					func(contract.Offset, int64) error { lowered = true; return nil })
				must(t, err)
				last := e.Name == entries[len(entries)-1].Name
				if name == "missing" && !last {
					// The files do not tell: it may have been retired.
					if must(t, s.Close()); !verifierFinds(t, l, fs, opts, tally) {
						t.Fatal("the verifier finds nothing")
					}
					continue
				}
				if !lowered && !(last && name == "long") {
					t.Fatalf("%s of %d: %+v", e.Name, len(entries), report)
				}
				for _, r := range l.records {
					if r.phy >= int64(report.Replay) {
						must(t, r.apply(t, s))
					}
				}
				must(t, errors.Join(s.Commit(), s.Flush(), s.Close()))
				sameContents(t, contents(t, fs), want)
			}
		})
	}
}

func resize(t testing.TB, fsys vfs.FS, name string, n int64) {
	t.Helper()
	f, err := fsys.Open(name, vfs.ReadWrite)
	must(t, err)
	must(t, errors.Join(f.Truncate(n), f.Sync(), f.Close()))
}

// A name that is no number is none of ours, and stays.
func TestStrangersStay(t *testing.T) {
	l, sim, opts, tally := oneLog(t, 30)
	for _, name := range []string{"readme", "20260101.tmp", "-5"} {
		overwrite(t, sim, dir+"/"+name, 0, []byte("x"))
	}
	must(t, sim.MkdirAll(dir+"/1234"))
	s := mustOpen(t, sim, opts)
	_, err := s.Fit(Fit{Limit: contract.Offset(l.phy), Tally: tally, Exact: true, Clean: true}, noLower(t))
	must(t, err)
	l.verify(t, s, 0, l.phy)
	must(t, s.DropAll())
	entries, err := sim.ReadDir(dir)
	if must(t, err); len(entries) != 4 {
		t.Errorf("%v", entries)
	}
}

// FuzzOpenAndSearch opens any bytes as index files, asks, verifies, fits and goes
// on.
func FuzzOpenAndSearch(f *testing.F) {
	l, sim, _, tally := oneLog(f, 25)
	for _, b := range contents(f, sim) {
		f.Add(b, b[:40], tally, true)
	}
	f.Add([]byte{}, []byte{1}, int64(-1), false)
	f.Fuzz(func(t *testing.T, a, b []byte, tally int64, sizes bool) {
		fs := newSim(t)
		must(t, fs.MkdirAll(dir))
		overwrite(t, fs, dir+"/20261130083000000", 0, a)
		overwrite(t, fs, dir+"/20261130083000001", 0, b)
		opts := Options{ReadOnly: true}
		if sizes {
			opts.Slots, opts.Entries = 7, 12
		}
		for range 2 {
			s, err := Open(fs, dir, opts)
			if errors.Is(err, contract.ErrInvalid) {
				return
			}
			must(t, err)
			if s.Slots() > 1000 || s.Entries() > 1_000_000 {
				must(t, s.Close())
				return // Of the usual size: the fuzzer's files are not.
			}
			report, err := s.Fit(Fit{Limit: contract.Offset(l.phy), Tally: tally, Exact: true, Clean: tally%2 == 0},
				func(contract.Offset, int64) error { return nil })
			must(t, err)
			for _, key := range words {
				_, _, err := s.Search(context.Background(), Query{Topic: "T", Key: key}, Position{}, &counter{})
				if err != nil && !errors.Is(err, contract.ErrCorrupt) {
					t.Fatal(err)
				}
			}
			v := s.NewVerifier(0, contract.Offset(l.phy), func(Fault) {})
			for _, r := range l.records {
				must(t, v.Record(r.view(t)))
				if !opts.ReadOnly && report.Rebuilt != "" && r.phy >= int64(report.Replay) {
					must(t, r.apply(t, s))
				}
			}
			must(t, v.Finish())
			if !opts.ReadOnly {
				if err := errors.Join(s.Commit(), s.Flush()); err != nil {
					t.Fatal(err)
				}
			}
			must(t, s.Close())
			opts.ReadOnly = false
		}
	})
}

// TestVerifierCounts spoils the count in the header of each file: the verifier says
// so, of whatever index, and not only that records lack entries.
func TestVerifierCounts(t *testing.T) {
	for file := range 5 {
		for _, count := range [][]byte{{0, 0, 0, 0}, {0, 0, 0, 1}, {0x80, 0, 0, 0}, {0, 0, 0, 3}, {0x40, 0, 0, 0}} {
			for _, exact := range []bool{true, false} {
				l, sim, opts, tally := oneLog(t, 43)
				opts.ReadOnly = true
				s := mustOpen(t, sim, opts)
				if len(s.list) != 5 || s.list[4].head.UsedSlots < 2 {
					t.Fatalf("%d files, %+v", len(s.list), s.list[len(s.list)-1].head)
				}
				overwrite(t, sim, s.list[file].path, 36, count)
				fit := Fit{Limit: contract.Offset(l.phy), Tally: -1}
				if exact {
					fit.Tally, fit.Exact = tally, true
				}
				s = mustOpen(t, sim, opts)
				_, err := s.Fit(fit, nil)
				must(t, err)
				if s.Exact() && file == 4 {
					continue // The cursor says how many there are.
				}
				faults := 0
				v := s.NewVerifier(0, contract.Offset(l.phy), func(f Fault) {
					if !f.Missing {
						faults++
					}
				})
				for _, r := range l.records {
					must(t, v.Record(r.view(t)))
				}
				must(t, v.Finish())
				if faults == 0 {
					t.Errorf("count %x in file %d, exact %v: nothing is wrong", count, file, s.Exact())
				}
			}
		}
	}
}

// TestWildNumbers spoils the count of files and the slots that lead to their
// entries: together they would lead a search beyond the file.
func TestWildNumbers(t *testing.T) {
	wild := func(n int32) []byte {
		b := make([]byte, slotSize)
		_, err := (&codec.IndexSlot{Entry: n}).Encode(b)
		must(t, err)
		return b
	}
	for _, slot := range []int32{11, 12, 13, 1 << 20, 1<<31 - 1, -1} {
		for _, count := range []int32{12, 13, 1 << 20, 1<<31 - 1} {
			for first := range 5 {
				l, sim, opts, tally := oneLog(t, 43)
				opts.ReadOnly = true
				for _, f := range mustOpen(t, sim, opts).list[first:] {
					for i := range opts.Slots {
						overwrite(t, sim, f.path, int64(headerSize+i*slotSize), wild(slot))
					}
					overwrite(t, sim, f.path, headerSize-4, wild(count))
				}
				for _, exact := range []bool{true, false} {
					s := mustOpen(t, sim, opts)
					_, err := s.Fit(Fit{Limit: contract.Offset(l.phy), Tally: tally, Exact: exact}, nil)
					must(t, err)
					for _, key := range words {
						_, _, err := s.Search(context.Background(), Query{Topic: "T", Key: key}, Position{}, &counter{})
						if err != nil && !errors.Is(err, contract.ErrCorrupt) {
							t.Fatal(err)
						}
					}
				}
			}
		}
	}
}
