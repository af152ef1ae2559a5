package index

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// unpack returns the files of an archive by name.
func unpack(t *testing.T, archive string) map[string][]byte {
	t.Helper()
	f, err := os.Open(archive)
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	all := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		all[h.Name], err = io.ReadAll(r)
		must(t, err)
	}
}

func sortedNames(all map[string][]byte, in string) []string {
	var names []string
	for name := range all {
		if path.Dir(name) == in {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// walkLog calls each with the records of log files, in order.
func walkLog(t *testing.T, all map[string][]byte, each func(*codec.MessageView)) {
	t.Helper()
	for _, name := range sortedNames(all, "commitlog") {
		for b := all[name]; ; {
			size, magic, ok := codec.PeekMessage(b)
			if !ok || magic != codec.MessageMagicV1 && magic != codec.MessageMagicV2 {
				break
			}
			var v codec.MessageView
			must(t, v.Parse(b))
			each(&v)
			b = b[size:]
		}
	}
}

// TestSameAsJava makes the index anew from logs that Java wrote and compares it,
// byte for byte, with the index that Java wrote; and it opens Java's.
func TestSameAsJava(t *testing.T) {
	list, err := filepath.Glob("../conformance/testdata/*.tar.gz")
	must(t, err)
	compared := 0
	for _, archive := range list {
		all := unpack(t, archive)
		names := sortedNames(all, "index")
		if len(names) == 0 {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(archive), ".tar.gz"), func(t *testing.T) {
			sim := newSim(t)
			must(t, sim.MkdirAll(dir))
			for _, name := range names {
				f, err := sim.Open("/store/"+name, vfs.ReadWrite|vfs.Create)
				must(t, err)
				_, err = f.WriteAt(all[name], 0)
				must(t, errors.Join(err, f.Close()))
			}
			r := mustOpen(t, sim, Options{ReadOnly: true})
			if len(r.Files()) == 1 && r.Files()[0].Entries == 0 {
				t.Log("there are no keys")
				return
			}
			if r.Slots() != 97 || r.Entries() != 401 {
				t.Fatalf("taken for %d slots and %d entries", r.Slots(), r.Entries())
			}
			tags := strings.Contains(archive, "5.5.1")
			_, err := r.Fit(Fit{Tally: -1}, nil)
			must(t, err)
			first, end := int64(-1), int64(0)
			ours := newSim(t)
			s := mustOpen(t, ours, Options{Slots: 97, Entries: 401, Tags: tags})
			walkLog(t, all, func(m *codec.MessageView) {
				if first < 0 {
					first = m.PhysicalOffset()
				}
				end = m.PhysicalOffset() + int64(m.TotalSize())
				must(t, s.Apply(contract.RecordID{Offset: contract.Offset(m.PhysicalOffset()), Length: int64(m.TotalSize())}, m))
			})
			must(t, s.Commit())
			must(t, s.Flush())
			var faults []Fault
			v := r.NewVerifier(contract.Offset(first), contract.Offset(end), func(f Fault) { faults = append(faults, f) })
			walkLog(t, all, func(m *codec.MessageView) { must(t, v.Record(m)) })
			must(t, v.Finish())
			if len(faults) > 0 || v.Entries() == 0 {
				t.Errorf("%d faults in %d entries: %+v", len(faults), v.Entries(), faults)
			}
			if strings.Contains(archive, "prefill") {
				return // Java's begins with records that the log does not hold any more.
			}
			var want [][]byte
			for _, name := range names {
				want = append(want, all[name])
			}
			got := contents(t, ours)
			for _, b := range append(got, want...) {
				clear(b[97*4+40 : 97*4+60]) // Entry 0 is never used.
			}
			sameContents(t, got, want)
			compared++
		})
	}
	if compared < 4 {
		t.Errorf("%d directories compared", compared)
	}
}
