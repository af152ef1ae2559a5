package gen

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// segmentSize is the length of a segment of the stores of these tests.
const segmentSize = 64 << 10

// fileRow is a row of the table of docs/format/README.md.
type fileRow struct {
	name   string
	match  *regexp.Regexp
	parser string
}

// fileTable reads the table of files.
func fileTable(t *testing.T) []fileRow {
	t.Helper()
	text, err := os.ReadFile("../docs/format/README.md")
	if err != nil {
		t.Fatal(err)
	}
	holes := map[string]string{"20 digits": `[0-9]{20}`, "17 digits": `[0-9]{17}`, "8 digits": `[0-9]{8}`, "n": `[0-9]+`,
		"queue id": `[0-9]+`, "topic": `[^/]+`, "sidecar file": `(bound|state|cursors)`}
	var rows []fileRow
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		name := strings.Trim(cells[1], " `")
		pattern := regexp.QuoteMeta(name)
		for hole, re := range holes {
			pattern = strings.ReplaceAll(pattern, "<"+hole+">", re)
		}
		if strings.Contains(pattern, "<") {
			t.Fatalf("README.md: unknown words in %s", name)
		}
		rows = append(rows, fileRow{name, regexp.MustCompile("^" + pattern + "$"),
			strings.TrimSuffix(strings.Trim(cells[4], " `"), ".ksy")})
	}
	if len(rows) < 10 {
		t.Fatalf("README.md has only %d files", len(rows))
	}
	return rows
}

// listFiles returns the files below dir, with slashes.
func listFiles(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		out = append(out, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// makeStore makes a store in dir that has every kind of file, and closes it.
// seen is called now and then while it is open.
func makeStore(t *testing.T, dir string, seen func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	foreignSegment(t, dir)
	opt := stratalog.Options{Dir: dir, SegmentSize: segmentSize, QueueFileSize: 2000, MaxMessageSize: 8 << 10,
		WritePath: stratalog.WritePwrite, ExtendedQueues: true, ExtendedFileSize: 4096}
	store, err := stratalog.Open(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Start(ctx); err != nil {
		t.Fatal(err)
	}
	seen()
	var cut stratalog.Offset
	for i := range 120 {
		r, err := store.Append(ctx, testMessage(i), stratalog.Sync)
		if err != nil {
			t.Fatal(err)
		}
		if i == 70 {
			place, _ := r.Range()
			cut = place.End
		}
	}
	batch := stratalog.Message{Topic: "batches", SysFlag: int32(codec.SysFlagInnerBatch), Properties: codec.AppendProperty(nil, codec.PropertyInnerNumber, "3")}
	if r, err := store.Append(ctx, &batch, stratalog.Sync); err != nil {
		t.Fatal(err)
	} else if place, _ := r.Range(); store.WaitVisible(ctx, place.End) != nil {
		t.Fatal("never visible")
	}
	seen()
	if err := store.TruncateTo(ctx, cut); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if _, err := store.Append(ctx, testMessage(i), stratalog.Memory); err != nil {
			t.Fatal(err)
		}
	}
	seen()
	if report, err := store.Close(ctx); err != nil || !report.Clean {
		t.Fatalf("%+v %v", report, err)
	}
	seen()
}

// foreignSegment writes a log as another program leaves it when it is killed,
// with records that the store itself does not write: with the magic V2, and of a
// queue that does not start at 0. Behind the end stands a torn write, which
// recovery sets aside.
func foreignSegment(t *testing.T, dir string) {
	t.Helper()
	segment := make([]byte, segmentSize)
	at := 0
	for i := range 7 {
		m := codec.Message{Magic: codec.MessageMagicV2, QueueID: 2, QueueOffset: int64(5 + i), PhysicalOffset: int64(at),
			BornTimestamp: 1700000000000, StoreTimestamp: 1700000000000 + int64(i), BornHost: make([]byte, 8), StoreHost: make([]byte, 8),
			Body: fmt.Appendf(nil, "body %d", i), Topic: []byte(strings.Repeat("topic", 20))}
		if i%2 == 1 {
			m.SysFlag = codec.SysFlagBornHostV6 | codec.SysFlagStoreHostV6
			m.BornHost, m.StoreHost = make([]byte, 20), make([]byte, 20)
		}
		n, err := m.Encode(segment[at:])
		if err != nil {
			t.Fatal(err)
		}
		at += n
	}
	writeFile(t, filepath.Join(dir, "commitlog", strings.Repeat("0", 20)), segment)
	torn := append([]byte("torn"), make([]byte, segmentSize-4)...)
	writeFile(t, filepath.Join(dir, "commitlog", fmt.Sprintf("%020d", segmentSize)), torn)
	writeFile(t, filepath.Join(dir, "abort"), []byte("1"))
}

// testMessage returns one of various messages.
func testMessage(i int) *stratalog.Message {
	m := &stratalog.Message{Topic: fmt.Sprintf("topic%d", i%3), QueueID: int32(i % 2), Flag: int32(i - 5),
		Body: []byte(strings.Repeat("x", 61*i%4000)), BornTimestamp: 1<<62 + int64(i), ReconsumeTimes: int32(i % 4),
		PreparedTransactionOffset: int64(i) << 55}
	if i%2 == 0 {
		m.BornHost = hostOf("[2001:db8::1]:10911")
	}
	if i%3 == 0 {
		m.StoreHost = hostOf("[2001:db8::2]:80")
	}
	if i%5 == 0 {
		m.Body = nil
	}
	if i%4 == 0 {
		m.Properties = codec.AppendProperty(codec.AppendProperty(nil, "KEYS", "\u00fcber"), "TAGS", fmt.Sprint("tag", i))
	}
	return m
}

func hostOf(s string) stratalog.Host { return contract.HostOf(netip.MustParseAddrPort(s)) }

// TestFilesAreDescribed: every file that a store makes stands in the table of
// docs/format/README.md, and the rows without one of these are those that only
// a moment or an accident leaves.
func TestFilesAreDescribed(t *testing.T) {
	rows := fileTable(t)
	met := map[string]bool{}
	dir := t.TempDir()
	makeStore(t, dir, func() {
		for _, file := range listFiles(t, dir) {
			found := 0
			for _, row := range rows {
				if row.match.MatchString(file) {
					met[row.name] = true
					found++
				}
			}
			if found != 1 {
				t.Errorf("%s is in %d rows of README.md", file, found)
			}
		}
	})
	rare := map[string]bool{"stratalog/<sidecar file>.new": true, "stratalog/spare/<8 digits>.building": true,
		"stratalog/spare/<20 digits>.guard": true, "stratalog/cut/<20 digits>.<n>": true}
	for _, row := range rows {
		if !met[row.name] && !rare[row.name] {
			t.Errorf("no store made a file %s", row.name)
		}
		if row.parser == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(ksyFolder, row.parser+".ksy")); err != nil {
			t.Error(err)
		}
	}
}
