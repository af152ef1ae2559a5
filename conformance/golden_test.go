package conformance

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/conformance/javapeer"
)

// goldenVar, set to write, has TestWriteGolden replace the directories in
// testdata by ones that Java writes anew.
const goldenVar = "STRATALOG_GOLDEN"

// golden is what Java found in a directory that it wrote.
type golden struct {
	Version string `json:"rocketmq_store"`
	// SegmentSize and QueueFileSize are those of its files.
	SegmentSize   int64 `json:"segment_size"`
	QueueFileSize int64 `json:"queue_file_size"`
	// Unclean says that the process was killed.
	Unclean bool          `json:"unclean"`
	Queues  []goldenQueue `json:"queues"`
	// Log are all records, in order.
	Log []goldenRecord `json:"log"`
}

type goldenQueue struct {
	Topic string  `json:"topic"`
	Queue int32   `json:"queue"`
	Min   int64   `json:"min"`
	Max   int64   `json:"max"`
	Phy   []int64 `json:"phy"`
}

type goldenRecord struct {
	Phy  int64  `json:"phy"`
	Size int    `json:"size"`
	Sum  string `json:"sha256"`
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:8])
}

// TestGolden opens directories that Java wrote, kept compressed in testdata, and
// holds what we find against what Java found.
func TestGolden(t *testing.T) {
	list, err := filepath.Glob("testdata/*.tar.gz")
	if err != nil || len(list) == 0 {
		t.Fatalf("no golden directories: %v", err)
	}
	for _, archive := range list {
		name := strings.TrimSuffix(filepath.Base(archive), ".tar.gz")
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			if err := unpack(archive, dir); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(strings.TrimSuffix(archive, ".tar.gz") + ".json")
			var g golden
			if err = errors.Join(err, json.Unmarshal(text, &g)); err != nil {
				t.Fatal(err)
			}
			if err := g.check(t.Context(), dir); err != nil {
				t.Error(err)
			}
		})
	}
}

// check opens dir for reading, then for writing, and compares both times; then it
// appends, and what was there must still be.
func (g *golden) check(ctx context.Context, dir string) error {
	opt := stratalog.Options{Dir: dir, SegmentSize: g.SegmentSize, QueueFileSize: g.QueueFileSize, MaxMessageSize: 16 << 10, DiskFloor: -1}
	reader, err := stratalog.OpenReader(ctx, opt, stratalog.ReaderOptions{})
	if err != nil {
		return err
	}
	if err := errors.Join(g.compare(ctx, reader), reader.Close()); err != nil {
		return fmt.Errorf("reader: %w", err)
	}
	store, err := openOurs(ctx, opt)
	if err != nil {
		return err
	}
	if got := store.Report().Unclean; got != g.Unclean {
		err = fmt.Errorf("unclean %v, want %v", got, g.Unclean)
	}
	err = errors.Join(err, g.compare(ctx, store))
	if err == nil {
		var all []sent
		var seen snapshot
		if all, err = weAppend(ctx, store, several(10, func(_ int, m *stratalog.Message) { m.Topic = "more" }), nil, nil); err == nil {
			if seen, err = oursSees(ctx, store); err == nil {
				err = holds(seen, all)
			}
		}
	}
	if err := errors.Join(err, closeOurs(ctx, store)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if reader, err = stratalog.OpenReader(ctx, opt, stratalog.ReaderOptions{}); err != nil {
		return err
	}
	return errors.Join(verified(ctx, reader), reader.Close())
}

// compare holds what s answers against what Java found.
func (g *golden) compare(ctx context.Context, s reading) error {
	var errs []error
	for _, want := range g.Log {
		var r stratalog.Record
		found, err := s.GetAt(ctx, stratalog.Offset(want.Phy), &r)
		if err != nil || !found {
			errs = append(errs, fmt.Errorf("record at %d: found %v, %w", want.Phy, found, err))
			continue
		}
		if len(r.Bytes()) != want.Size || sum(r.Bytes()) != want.Sum {
			errs = append(errs, fmt.Errorf("record at %d: %d bytes, %s; want %d, %s", want.Phy, len(r.Bytes()), sum(r.Bytes()), want.Size, want.Sum))
		}
		r.Release()
	}
	seen, err := oursSees(ctx, s)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, want := range g.Queues {
		q := seen[queueKey{want.Topic, want.Queue}]
		if q.min != want.Min || q.max != want.Max {
			errs = append(errs, fmt.Errorf("%s/%d is [%d,%d), want [%d,%d)", want.Topic, want.Queue, q.min, q.max, want.Min, want.Max))
			continue
		}
		for i, raw := range q.raw {
			if phy := placeOf(raw); phy != want.Phy[i] {
				errs = append(errs, fmt.Errorf("%s/%d: record %d is at %d, want %d", want.Topic, want.Queue, q.min+int64(i), phy, want.Phy[i]))
			}
		}
	}
	if len(seen) != len(g.Queues) {
		errs = append(errs, fmt.Errorf("%d queues, want %d", len(seen), len(g.Queues)))
	}
	return errors.Join(errs...)
}

// keep are the parts of a store's directory that go into an archive. The RocksDB
// that newer versions make is none of ours.
var keep = []string{"abort", "batchconsumequeue", "checkpoint", "commitlog", "consumequeue", "consumequeue_ext", "index", "lock"}

// pack writes the kept parts of dir.
func pack(archive, dir string) (err error) {
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(z)
	for _, part := range keep {
		root := filepath.Join(dir, part)
		if _, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(dir, name)
			if err := w.WriteHeader(&tar.Header{Name: rel, Mode: 0o600, Size: int64(len(b)), Format: tar.FormatPAX}); err != nil {
				return err
			}
			_, err = w.Write(b)
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		return err
	}
	return os.WriteFile(archive, buf.Bytes(), 0o600)
}

func unpack(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(h.Name) {
			return fmt.Errorf("%s: %s leads out of it", archive, h.Name)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		name := filepath.Join(dir, h.Name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, b, 0o600)); err != nil {
			return err
		}
	}
}

// TestWriteGolden has Java write the directories of testdata anew.
func TestWriteGolden(t *testing.T) {
	if os.Getenv(goldenVar) != "write" {
		t.Skipf("replaces testdata: set %s to write, and %s to short", goldenVar, modeVar)
	}
	needsJava(t)
	for _, version := range javapeer.Versions {
		for _, g := range []struct {
			name  string
			write func(e *env, dir string, s *setup) error
		}{
			{"mixed", func(e *env, dir string, s *setup) error {
				_, _, err := e.javaWrites(dir, *s, goldenMessages())
				return err
			}},
			{"checksums", func(e *env, dir string, s *setup) error {
				s.checksum = true
				_, _, err := e.javaWrites(dir, *s, goldenMessages())
				return err
			}},
			{"killed", func(e *env, dir string, s *setup) error {
				return e.crashed(dir, *s, func(store *javapeer.Store) error {
					_, err := e.javaPuts(store, goldenMessages())
					return errors.Join(err, store.Wait(e.ctx))
				})
			}},
			{"prefill", func(e *env, dir string, s *setup) error {
				if _, err := e.javaWithExpired(dir, *s, some(0, 400), 3); err != nil {
					return err
				}
				if err := os.RemoveAll(filepath.Join(dir, "consumequeue")); err != nil {
					return err
				}
				_, err := e.javaReads(dir, *s)
				return err
			}},
			{"light-queues", func(e *env, dir string, s *setup) error {
				s.more = javapeer.Config{"enableLmq": true, "enableMultiDispatch": true}
				_, _, err := e.javaWrites(dir, *s, lightMessages())
				return err
			}},
			{"extended-queues", func(e *env, dir string, s *setup) error {
				s.more = javapeer.Config{"enableConsumeQueueExt": true}
				_, _, err := e.javaWrites(dir, *s, taggedMessages())
				return err
			}},
			{"batch-queues", func(e *env, dir string, s *setup) error {
				s.types = map[string]string{"inner": "BatchCQ"}
				_, _, err := e.javaWrites(dir, *s, innerBatches())
				return err
			}},
		} {
			t.Run(version+"/"+g.name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				java, err := peer(ctx, version)
				if err != nil {
					t.Fatal(err)
				}
				e := &env{t: t, ctx: ctx, version: version, java: java}
				s := usual()
				s.checksum = false
				dir := e.dir()
				if err := g.write(e, dir, &s); err != nil {
					t.Fatal(err)
				}
				if err := e.freeze("testdata/java-"+version+"-"+g.name, dir, s); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// freeze packs dir, and notes what Java finds in a copy of it.
func (e *env) freeze(base, dir string, s setup) error {
	if err := os.MkdirAll("testdata", 0o700); err != nil {
		return err
	}
	g := golden{Version: e.version, SegmentSize: s.segment, QueueFileSize: s.queueFile}
	_, err := os.Stat(filepath.Join(dir, "abort"))
	g.Unclean = err == nil
	if err := pack(base+".tar.gz", dir); err != nil {
		return err
	}
	copied := e.dir()
	if err := unpack(base+".tar.gz", copied); err != nil {
		return err
	}
	if err := g.readLog(copied); err != nil {
		return err
	}
	seen, err := e.javaReads(copied, s)
	if err != nil {
		return err
	}
	for _, k := range seen.keys() {
		q := goldenQueue{Topic: k.topic, Queue: k.queue, Min: seen[k].min, Max: seen[k].max}
		for _, raw := range seen[k].raw {
			q.Phy = append(q.Phy, placeOf(raw))
		}
		g.Queues = append(g.Queues, q)
	}
	text, err := json.Marshal(g)
	if err != nil {
		return err
	}
	return os.WriteFile(base+".json", append(text, '\n'), 0o600)
}

// readLog lists the records of the log files, by their lengths alone.
func (g *golden) readLog(dir string) error {
	list, err := files(dir, "commitlog")
	if err != nil {
		return err
	}
	var namesOf []string
	for name := range list {
		namesOf = append(namesOf, name)
	}
	slices.Sort(namesOf)
	for _, name := range namesOf {
		var base int64
		if _, err := fmt.Sscanf(name, "%d", &base); err != nil {
			return err
		}
		b := list[name]
		for at := 0; ; {
			size, magic, ok := codec.PeekMessage(b[at:])
			if !ok || magic != codec.MessageMagicV1 && magic != codec.MessageMagicV2 {
				break
			}
			raw := b[at : at+int(size)]
			g.Log = append(g.Log, goldenRecord{Phy: base + int64(at), Size: len(raw), Sum: sum(raw)})
			at += int(size)
		}
	}
	return nil
}

// goldenMessages are a few of most kinds.
func goldenMessages() [][]stratalog.Message {
	var all [][]stratalog.Message
	for _, k := range kinds() {
		switch k.name {
		case "plain", "ipv6-mixed", "host-edges", "empty-body", "flags", "transactions", "properties", "topic-scripts", "topic-signs",
			"delay-levels", "batch", "topic-lengths", "topic-v2", "properties-no-last-separator", "checksum-property-incoming", "queue-ids":
			all = append(all, k.groups[:min(len(k.groups), 22)]...)
		}
	}
	return all
}
