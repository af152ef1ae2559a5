package commitlog

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

const sideDir = "/store/" + SidecarDir

var sideNames = []string{stateName, boundName, cursorsName}

// sidecarLog makes a log with a cursor and a second epoch. It is closed well,
// or killed.
func sidecarLog(t *testing.T, clean bool) (*vfs.Sim, Options, []contract.Receipt) {
	t.Helper()
	sim := vfs.NewSim()
	opt := simOptions(sim)
	receipts := stillLog(t, opt, 30)
	log, err := openStill(opt, nil)
	if err != nil {
		t.Fatal(err)
	}
	cut, _ := receipts[25].Range()
	if err := log.TruncateTo(t.Context(), cut.Start, nil); err != nil {
		t.Fatal(err)
	}
	receipts = receipts[:25]
	for i := 25; i < 40; i++ {
		receipts = append(receipts, stillAppend(t, log, message("T", i)))
	}
	for i := range 3 {
		if err := log.SaveCursor(contract.Cursor{Lane: contract.LaneQueue, Epoch: log.Epoch(), Next: contract.Offset(i * 10)}, -1); err != nil {
			t.Fatal(err)
		}
	}
	if clean {
		if err := log.Close(true); err != nil {
			t.Fatal(err)
		}
	} else {
		_ = log.Close(false)
	}
	opt.Unclean = !clean
	return sim, opt, receipts
}

// readFile returns the whole content of a file.
func readFile(t testing.TB, fsys vfs.FS, name string) []byte {
	t.Helper()
	f, err := fsys.Open(name, vfs.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, info.Size)
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	return b
}

func writeFile(t testing.TB, fsys vfs.FS, name string, b []byte) {
	t.Helper()
	f, err := fsys.Open(name, vfs.ReadWrite|vfs.Create)
	if err == nil {
		err = f.Truncate(int64(len(b)))
	}
	if err == nil && len(b) > 0 {
		_, err = f.WriteAt(b, 0)
	}
	if err == nil {
		err = errors.Join(f.Sync(), f.Close(), fsys.SyncDir(path.Dir(name)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sameLog opens the log after a change of the sidecar: the records are what
// they were, nothing is cut, and appends go on.
func sameLog(t *testing.T, what string, opt Options, receipts []contract.Receipt) (RecoveryReport, error) {
	t.Helper()
	log, err := openStill(opt, nil)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for i, r := range receipts {
		readBack(t, log, r, message("T", i))
	}
	last, _ := receipts[len(receipts)-1].Range()
	report := log.Report()
	if log.Appended() != last.End || !report.Cut.Empty() || len(report.SetAside) > 0 {
		t.Fatalf("%s: ends at %d, want %d; %+v", what, log.Appended(), last.End, report)
	}
	cursor, found, err := log.LoadCursor(contract.LaneQueue)
	if found && (cursor.Next > 20 || cursor.Epoch > 2) {
		t.Fatalf("%s: cursor %+v", what, cursor)
	}
	five := stillAppend(t, log, message("T", 1))
	_ = log.Close(false)
	opt.Unclean = true
	again, err2 := openStill(opt, nil)
	if err2 != nil {
		t.Fatalf("%s: reopen: %v", what, err2)
	}
	readBack(t, again, five, message("T", 1))
	readBack(t, again, receipts[0], message("T", 0))
	_ = again.Close(false)
	return report, err
}

func TestSidecarDamage(t *testing.T) {
	for _, clean := range []bool{true, false} {
		whole, opt, receipts := sidecarLog(t, clean)
		try := func(what string, named bool, change func(sim *vfs.Sim)) {
			t.Helper()
			sim := whole.Kill()
			opt.FS = sim
			change(sim)
			report, cursorErr := sameLog(t, what, opt, receipts)
			if named && report.SidecarReason == "" {
				t.Fatalf("%s: not reported: %+v", what, report)
			}
			var damage *contract.CorruptionError
			if cursorErr != nil && !errors.As(cursorErr, &damage) {
				t.Fatalf("%s: cursor: %v", what, cursorErr)
			}
		}
		try("nothing", false, func(*vfs.Sim) {})
		other, _, _ := sidecarLog(t, clean)
		changes := 0
		for _, name := range sideNames {
			full := path.Join(sideDir, name)
			try(name+" deleted", true, func(sim *vfs.Sim) {
				if err := sim.Remove(full); err != nil {
					t.Fatal(err)
				}
			})
			content := readFile(t, whole, full)
			for _, n := range []int{0, 1, 63, 100, len(content) / 2} {
				named := n < len(content)/2
				try(name+" truncated", named, func(sim *vfs.Sim) { writeFile(t, sim, full, content[:n]) })
			}
			try(name+" of zeros", true, func(sim *vfs.Sim) { writeFile(t, sim, full, make([]byte, len(content))) })
			try(name+" of another log", true, func(sim *vfs.Sim) { writeFile(t, sim, full, readFile(t, other, full)) })
			slot := len(content) / 2
			for at := range content {
				// The bytes of records, and some of the unused rest.
				if at%slot > 260 && at%997 != 0 || testing.Short() && at%5 != 0 {
					continue
				}
				for _, x := range []byte{0x01, 0xFF} {
					changes++
					try(name+" with a flipped byte", false, func(sim *vfs.Sim) {
						f, err := sim.Open(full, vfs.ReadWrite)
						if err != nil {
							t.Fatal(err)
						}
						if _, err := f.WriteAt([]byte{content[at] ^ x}, int64(at)); err != nil {
							t.Fatal(err)
						}
						_ = f.Close()
					})
				}
			}
		}
		try("all deleted", false, func(sim *vfs.Sim) {
			for _, name := range sideNames {
				if err := sim.Remove(path.Join(sideDir, name)); err != nil {
					t.Fatal(err)
				}
			}
		})
		try("all of another log", false, func(sim *vfs.Sim) {
			for _, name := range sideNames {
				writeFile(t, sim, path.Join(sideDir, name), readFile(t, other, path.Join(sideDir, name)))
			}
		})
		if changes < 500 {
			t.Fatalf("only %d flips", changes)
		}
		t.Logf("clean %v: %d flips", clean, changes)
	}
}

// TestSidecarOlderCopy brings back the sidecar of an earlier time, as a restore
// of a backup does: the log is what it was, and its lanes are told.
func TestSidecarOlderCopy(t *testing.T) {
	for _, clean := range []bool{true, false} {
		sim, opt, receipts := sidecarLog(t, clean)
		older := map[string][]byte{}
		for _, name := range sideNames {
			older[name] = readFile(t, sim, path.Join(sideDir, name))
		}
		log, err := openStill(opt, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := len(receipts); i < 60; i++ {
			receipts = append(receipts, stillAppend(t, log, message("T", i)))
		}
		if err := log.Close(clean); err != nil && clean {
			t.Fatal(err)
		}
		for name, b := range older {
			writeFile(t, sim, path.Join(sideDir, name), b)
		}
		report, err := sameLog(t, "older copy", opt, receipts)
		if err != nil {
			t.Fatal(err)
		}
		if clean && !(report.Foreign && report.NewEpoch) {
			t.Fatalf("not told: %+v", report)
		}
	}
}

// TestSidecarNewer refuses what a newer version wrote, and changes nothing.
func TestSidecarNewer(t *testing.T) {
	sim, opt, _ := sidecarLog(t, true)
	name := path.Join(sideDir, stateName)
	b := readFile(t, sim, name)
	var st codec.State
	if err := codec.ParseState(b[len(b)/2:], &st); err != nil {
		t.Fatal(err)
	}
	st.Incompatible = 4
	st.Sequence += 10
	raw, err := codec.AppendState(nil, &st)
	if err != nil {
		t.Fatal(err)
	}
	copy(b, raw)
	copy(b[len(b)/2:], raw)
	writeFile(t, sim, name, b)
	before := tree(t, sim, "/store")
	if _, err := Open(t.Context(), opt); !errors.Is(err, contract.ErrNewerFormat) || !strings.Contains(err.Error(), "0x4") {
		t.Fatalf("open: %v", err)
	}
	if _, err := OpenReadOnly(opt, false); !errors.Is(err, contract.ErrNewerFormat) {
		t.Fatalf("read-only: %v", err)
	}
	if !slices.Equal(before, tree(t, sim, "/store")) {
		t.Fatal("a refused open changed something")
	}
}

// tree lists all files below dir with their content.
func tree(t testing.TB, fsys vfs.FS, dir string) []string {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		if e.IsDir {
			out = append(append(out, name), tree(t, fsys, name)...)
			continue
		}
		out = append(out, name+" "+string(readFile(t, fsys, name)))
	}
	return out
}
