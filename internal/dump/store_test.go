package dump

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/internal/vfs"
)

// files returns the files below dir.
func files(t testing.TB, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			list = append(list, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestStore dumps every file of a store of ours, open and closed.
func TestStore(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// Behind the end of a log that was not closed stands a torn write, which
	// recovery sets aside.
	const size = 64 << 10
	first, _ := segment(t, 0, size, false, false, "one", "two")
	writeFile(t, filepath.Join(dir, "commitlog", fmt.Sprintf("%020d", 0)), first)
	writeFile(t, filepath.Join(dir, "commitlog", fmt.Sprintf("%020d", size)), append([]byte("torn"), make([]byte, size-4)...))
	writeFile(t, filepath.Join(dir, "abort"), []byte("1"))
	store, err := stratalog.Open(ctx, stratalog.Options{Dir: dir, SegmentSize: size, QueueFileSize: 2000, MaxMessageSize: 8 << 10,
		WritePath: stratalog.WritePwrite})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Start(ctx); err != nil {
		t.Fatal(err)
	}
	const count = 150
	for i := range count {
		m := &stratalog.Message{Topic: fmt.Sprintf("topic%d", i%3), Body: []byte(strings.Repeat("x", 61*i%4000))}
		if _, err := store.Append(ctx, m, stratalog.Sync); err != nil {
			t.Fatal(err)
		}
	}
	met := map[string]bool{}
	// look dumps all files, and returns how many records of each layout the log
	// and the queues hold.
	look := func(open bool) map[string]int {
		records := map[string]int{}
		for _, file := range files(t, dir) {
			if open && strings.Contains(filepath.ToSlash(file), "/stratalog/spare/") {
				continue // it may have become a segment by now
			}
			kind, got := identified(t, file)
			if kind.Name == guardKind.Name {
				t.Errorf("%s: a closed store has it", file)
			}
			met[kind.Name] = true
			bad := findings(got)
			if kind.Name == cutKind.Name {
				if len(bad) != 1 || bad[0].off != 0 || bad[0].end != 4 {
					t.Errorf("%s: %+v", file, got)
				}
				continue
			}
			if len(bad) > 0 {
				t.Errorf("%s: %+v", file, bad)
			}
			for _, r := range recordsOf(got) {
				if !strings.Contains(file, "consumequeue") || len(r.notes) == 1 {
					records[r.name]++
				}
			}
		}
		return records
	}
	look(true)
	if report, err := store.Close(ctx); err != nil || !report.Clean {
		t.Fatalf("%+v %v", report, err)
	}
	// The two records that were there have the same place in their queue.
	if got := look(false); got["Message"] != count+2 || got["QueueUnit"] != count+1 || got["Blank"] == 0 {
		t.Errorf("%v", got)
	}
	for _, kind := range []Kind{segmentKind, cutKind, queueKind, checkKind, boundKind, stateKind, cursorsKind, spareKind, textKind} {
		if !met[kind.Name] {
			t.Errorf("the store has no %s", kind.Name)
		}
	}
	// In what we wrote a record without its checksum is damage: the sidecar says
	// where that is.
	if ours := Ours(vfs.OS(), filepath.ToSlash(dir)); len(ours) != 1 || ours[0].Start == 0 {
		t.Errorf("ours: %v", ours)
	}
	if ours := Ours(vfs.OS(), filepath.ToSlash(t.TempDir())); ours != nil {
		t.Errorf("ours without a sidecar: %v", ours)
	}
}

// TestJava dumps every file of stores that Java wrote: none has a finding, and
// the log has the records that Java counts.
func TestJava(t *testing.T) {
	archives, err := filepath.Glob("../../conformance/testdata/*.tar.gz")
	if err != nil || len(archives) < 10 {
		t.Fatal(archives, err)
	}
	for _, archive := range archives {
		name := strings.TrimSuffix(filepath.Base(archive), ".tar.gz")
		t.Run(name, func(t *testing.T) {
			if testing.Short() && !strings.HasPrefix(name, "java-5.5.1") {
				t.Skip("the newer version alone")
			}
			dir := t.TempDir()
			unpack(t, archive, dir)
			text, err := os.ReadFile(strings.TrimSuffix(archive, ".tar.gz") + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var golden struct {
				Foreign string `json:"foreign"`
				Queues  []struct {
					Phy []int64 `json:"phy"`
				} `json:"queues"`
				Log []struct {
					Phy  int64 `json:"phy"`
					Size int   `json:"size"`
				} `json:"log"`
			}
			if err := json.Unmarshal(text, &golden); err != nil {
				t.Fatal(err)
			}
			counts := map[string]int{}
			var log []string
			for _, file := range files(t, dir) {
				_, got := identified(t, file)
				for _, f := range findings(got) {
					t.Errorf("%s: %+v", file, f)
				}
				for _, r := range recordsOf(got) {
					counts[r.name]++
					if r.name == "Message" {
						log = append(log, fmt.Sprint(r.notes[0].Value, " ", r.end-r.off))
					}
				}
			}
			if len(log) != len(golden.Log) {
				t.Fatalf("%d records, want %d", len(log), len(golden.Log))
			}
			for i, r := range golden.Log {
				if want := fmt.Sprint(r.Phy, " ", r.Size); log[i] != want {
					t.Errorf("record %d is %s, want %s", i, log[i], want)
				}
			}
			units := 0
			for _, q := range golden.Queues {
				units += len(q.Phy)
			}
			if got := counts["QueueUnit"] + counts["BatchUnit"]; golden.Foreign == "" && got < units {
				t.Errorf("%d units, want %d", got, units)
			}
			for part, record := range map[string]string{"batch": "BatchUnit", "extended": "QueueExtUnit", "mixed": "IndexEntry"} {
				if strings.Contains(name, part) && counts[record] == 0 {
					t.Logf("%v", counts)
					t.Errorf("no %s", record)
				}
			}
		})
	}
}

func unpack(t testing.TB, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil || !filepath.IsLocal(h.Name) {
			t.Fatal(h.Name, err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, h.Name), b)
	}
}
