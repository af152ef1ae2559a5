package commitlog

import (
	"bytes"
	"context"
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// TestRecoveryTables: every combination of facts matches exactly one row.
func TestRecoveryTables(t *testing.T) {
	both := []bool{false, true}
	combinations := 0
	hit := map[string]bool{}
	for _, segments := range both {
		for state := range sideStatusCount {
			for bound := range sideStatusCount {
				for bits := range 16 * int(boundPlaceCount) {
					f := startFacts{segments: segments, state: state, bound: bound, clean: bits&1 != 0, abort: bits&2 != 0,
						matches: bits&4 != 0, stranger: bits&8 != 0, where: boundPlace(bits / 16)}
					combinations++
					n := 0
					for _, row := range startTable {
						if row.match(f) {
							n++
							hit[row.name] = true
						}
					}
					if n != 1 {
						t.Errorf("%+v matches %d rows", f, n)
					}
				}
			}
		}
	}
	for b := range behindCount {
		for bits := range 64 {
			f := tailFacts{short: bits&16 != 0, bounded: bits&1 != 0, clean: bits&2 != 0, abort: bits&4 != 0, behind: b, anchored: bits&8 != 0,
				covered: bits&32 != 0}
			combinations++
			n := 0
			for _, row := range tailTable {
				if row.match(f) {
					n++
					hit[row.name] = true
				}
			}
			if n != 1 {
				t.Errorf("%+v matches %d rows", f, n)
			}
		}
	}
	if combinations != 2*4*4*48+4*64 || len(hit) != len(startTable)+len(tailTable) {
		t.Fatalf("%d combinations, %d rows hit", combinations, len(hit))
	}
}

// rows opens a log and returns the rows that applied.
func rows(opt Options) (start, tail string, err error) {
	l := newLog(opt)
	err = l.load(context.Background())
	start, tail = l.report.Start, l.report.Tail
	if err != nil {
		for _, row := range tailTable {
			if strings.HasPrefix(err.Error(), row.name+": ") {
				tail = row.name
			}
		}
	}
	return start, tail, errors.Join(err, l.abandon())
}

// TestEveryRow provokes each row by a directory as it can be found.
func TestEveryRow(t *testing.T) {
	const size = 8 << 10
	small := func(fs vfs.FS) Options {
		opt := simOptions(fs)
		opt.SegmentSize, opt.MaxUnsynced = size, size // a window smaller than the log
		return opt
	}
	removeSide := func(names ...string) func(*testing.T, *vfs.Sim) {
		return func(t *testing.T, sim *vfs.Sim) {
			for _, name := range names {
				if err := sim.Remove(path.Join(sideDir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	noSide := removeSide(sideNames...)
	removeSegments := func(n int) func(*testing.T, *vfs.Sim) {
		return func(t *testing.T, sim *vfs.Sim) {
			entries, err := sim.ReadDir("/store/commitlog")
			if err != nil {
				t.Fatal(err)
			}
			if n < 0 {
				entries = entries[len(entries)+n:]
			} else {
				entries = entries[:min(n, len(entries))]
			}
			for _, e := range entries {
				if err := sim.Remove("/store/commitlog/" + e.Name); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	removeGuards := func(t *testing.T, sim *vfs.Sim) {
		for _, name := range guardNames(t, sim, "/store") {
			if err := sim.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	both := func(fs ...func(*testing.T, *vfs.Sim)) func(*testing.T, *vfs.Sim) {
		return func(t *testing.T, sim *vfs.Sim) {
			for _, f := range fs {
				f(t, sim)
			}
		}
	}
	// The log that all start from: several segments, the end within the last.
	const records = 55
	made := func(t *testing.T, clean bool) (*vfs.Sim, Options, []contract.Receipt) {
		sim := vfs.NewSim()
		opt := small(sim)
		receipts := stillLog(t, opt, records)
		if clean {
			log, err := openStill(opt, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := log.Close(true); err != nil {
				t.Fatal(err)
			}
		}
		opt.Unclean = !clean
		return sim, opt, receipts
	}
	_, _, receipts := made(t, false)
	at := func(i int) contract.Range { r, _ := receipts[i].Range(); return r }
	write := func(off contract.Offset, b []byte) func(*testing.T, *vfs.Sim) {
		return func(t *testing.T, sim *vfs.Sim) { poke(t, sim, off/size*size, int64(off%size), b) }
	}
	end := at(records - 1).End
	// A record that belongs some way behind the end.
	farther := func(gap contract.Offset) func(*testing.T, *vfs.Sim) {
		return func(t *testing.T, sim *vfs.Sim) {
			log, err := Open(context.Background(), small(sim.Kill()))
			if err != nil {
				t.Fatal(err)
			}
			buf, err := log.encode(nil, message("T", 3), 1)
			if err != nil {
				t.Fatal(err)
			}
			log.finish(buf, int64(end+gap), 0, 1)
			_ = log.Close(false)
			poke(t, sim, (end+gap)/size*size, int64((end+gap)%size), buf)
		}
	}
	middle := write(at(20).Start+120, bytes.Repeat([]byte{0xAB}, 8))
	last := write(at(records-1).Start+120, bytes.Repeat([]byte{0xAB}, 8))
	cases := []struct {
		name        string
		clean       bool
		abort       bool
		change      func(*testing.T, *vfs.Sim)
		start, tail string
		fails       bool
	}{
		{"first open", true, false, both(removeSegments(10), noSide), "new log", "nothing behind", false},
		{"newer", true, false, func(t *testing.T, sim *vfs.Sim) {
			// Version 9 in both slots of the bound.
			name := path.Join(sideDir, boundName)
			b := readFile(t, sim, name)
			for _, slot := range []int{0, codec.BoundFileSlotSize} {
				b[slot+5] = 9
			}
			writeFile(t, sim, name, b)
		}, "newer version", "", true},
		{"segments gone", true, false, removeSegments(10), "all segments gone", "", true},
		{"Java's directory", true, false, noSide, "no sidecar", "nothing behind", false},
		{"Java's directory, killed", false, true, noSide, "no sidecar", "nothing behind", false},
		{"bound gone", true, false, removeSide(boundName), "sidecar damaged", "nothing behind", false},
		{"closed well", true, false, nil, "closed well", "nothing behind", false},
		{"closed well, then killed before a write", true, true, nil, "closed well", "nothing behind", false},
		{"first segment gone since", true, false, removeSegments(1), "closed well, changed since", "nothing behind", false},
		{"killed", false, true, nil, "not closed", "nothing behind", false},
		{"killed, name of the last segment gone", false, true, removeSegments(-1), "not closed", "nothing behind", false},
		{"killed, last segment gone", false, true, both(removeSegments(-1), removeGuards), "last segments gone", "", true},
		{"closed well, last segment gone", true, false, removeSegments(-1), "last segments gone", "", true},
		{"killed, only a later segment left", false, true, both(removeSegments(10), removeGuards, func(t *testing.T, sim *vfs.Sim) {
			writeFile(t, sim, "/store/commitlog/"+segmentName(end/size*size+size), make([]byte, size))
		}), "not closed, segments at the bound gone", "", true},
		{"closed well, end zeroed", true, false, write(at(records-1).Start, make([]byte, at(records-1).Len())), "closed well, changed since", "ends below what was durable", true},
		{"closed well, last record flipped", true, true, last, "closed well, changed since", "ends below what was durable", true},
		{"no record at the bound", false, true, both(last, write(end, []byte("junk"))), "not closed", "no record ends at the bound", true},
		{"killed, then Java killed", false, true, nil, "not closed by another program", "nothing behind", false},
		{"killed, then Java killed, and retention took all of ours", false, true, both(removeSegments(10), func(t *testing.T, sim *vfs.Sim) {
			writeFile(t, sim, "/store/commitlog/"+segmentName(end/size*size+size), make([]byte, size))
		}), "not closed by another program", "nothing behind", false},
		{"closed well, then Java appended nothing", true, false, nil, "closed well", "nothing behind", false},
		{"closed well, then Java cut far below and wrote less", true, false, write(at(records-7).Start+120, bytes.Repeat([]byte{0xAB}, 8)), "closed well, changed since", "ends below what was durable", true},
		{"closed by Java", false, false, nil, "closed by another program", "nothing behind", false},
		{"killed, abort removed, torn tail", false, false, write(end, []byte("junk")), "closed by another program", "torn tail, no bound, not closed", false},
		{"closed by Java, bytes behind", false, false, write(end, []byte("junk")), "closed by another program", "bytes behind the end of a closed log, no bound", true},
		{"junk behind what a broker closed, covered", true, false, both(noSide, write(end, []byte("junk"))), "no sidecar", "bytes behind the last entry of a closed log, no bound", false},
		{"torn tail", false, true, write(end, []byte("junk")), "not closed", "torn tail above the bound", false},
		{"near", false, true, farther(100), "not closed", "torn tail above the bound", false},
		{"torn tail, no bound", false, true, both(last, noSide), "no sidecar", "torn tail, no bound, not closed", false},
		{"valid behind, no bound", false, true, both(write(at(records-3).Start+120, []byte("junk")), noSide), "no sidecar", "valid records behind, no bound", true},
		{"junk behind a closed log", true, false, both(last, noSide), "no sidecar", "bytes behind the end of a closed log, no bound", true},
		{"damage far back, no bound", false, true, both(write(5, []byte{0x77}), noSide), "no sidecar", "a later record proves it was durable", true},
		{"damage, no bound", true, false, both(middle, noSide), "no sidecar", "a later record proves it was durable", true},
	}
	seen := map[string]bool{}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			sim, opt, _ := made(t, c.clean)
			opt.Unclean, opt.Stranger = c.abort, strings.Contains(c.name, "Java")
			if strings.Contains(c.name, "covered") {
				opt.Covered = end
			}
			if c.change != nil {
				c.change(t, sim)
			}
			before := tree(t, sim, "/store/commitlog")
			start, tail, err := rows(opt)
			if start != c.start || tail != c.tail || (err != nil) != c.fails {
				t.Fatalf("rows %q, %q, error %v; want %q, %q", start, tail, err, c.start, c.tail)
			}
			if c.fails && strings.Join(before, "") != strings.Join(tree(t, sim, "/store/commitlog"), "") {
				t.Fatal("a refused open changed the log")
			}
			seen[start], seen[tail] = true, true
		})
	}
	for _, row := range startTable {
		if !seen[row.name] {
			t.Errorf("row %q was not provoked", row.name)
		}
	}
	for _, row := range tailTable {
		if !seen[row.name] {
			t.Errorf("row %q was not provoked", row.name)
		}
	}
}
