package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stratalog/stratalog"
)

// TestGoldenBatchBytes: the batch queue that we make anew from the log that Java
// wrote is Java's, byte by byte. Nothing is left out.
func TestGoldenBatchBytes(t *testing.T) {
	list, err := filepath.Glob("testdata/*-batch-queues.tar.gz")
	if err != nil || len(list) == 0 {
		t.Fatalf("no golden directories: %v", err)
	}
	for _, archive := range list {
		dir := filepath.Join(t.TempDir(), "store")
		text, err := os.ReadFile(strings.TrimSuffix(archive, ".tar.gz") + ".json")
		var g golden
		if err = errors.Join(err, unpack(archive, dir), json.Unmarshal(text, &g)); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, "batchconsumequeue", "inner", "0", strings.Repeat("0", 20))
		java, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		opt := stratalog.Options{Dir: dir, SegmentSize: g.SegmentSize, QueueFileSize: g.QueueFileSize, MaxMessageSize: 16 << 10, DiskFloor: -1,
			BatchQueueFileSize: int64(len(java))}
		if err := os.RemoveAll(filepath.Join(dir, "batchconsumequeue")); err != nil {
			t.Fatal(err)
		}
		store, err := openOurs(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		if err := closeOurs(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		if ours, err := os.ReadFile(name); err != nil || !bytes.Equal(ours, java) {
			t.Errorf("%s: %v: %s", archive, err, firstDifference(ours, java))
		}
	}
}

// TestGoldenQueues opens the directories of testdata with queues of other kinds
// than the plain one, and holds every queue against what Java found: reading,
// then as owner, and again after that.
func TestGoldenQueues(t *testing.T) {
	for _, feature := range []string{"light", "extended", "batch"} {
		list, err := filepath.Glob("testdata/*-" + feature + "-queues.tar.gz")
		if err != nil || len(list) == 0 {
			t.Fatalf("no golden directories of %s queues: %v", feature, err)
		}
		for _, archive := range list {
			t.Run(strings.TrimSuffix(filepath.Base(archive), ".tar.gz"), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "store")
				text, err := os.ReadFile(strings.TrimSuffix(archive, ".tar.gz") + ".json")
				var g golden
				if err = errors.Join(err, unpack(archive, dir), json.Unmarshal(text, &g)); err != nil {
					t.Fatal(err)
				}
				if err := g.holdQueues(t.Context(), dir); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func (g *golden) holdQueues(ctx context.Context, dir string) error {
	opt := stratalog.Options{Dir: dir, SegmentSize: g.SegmentSize, QueueFileSize: g.QueueFileSize, MaxMessageSize: 16 << 10, DiskFloor: -1}
	read := func() error {
		reader, err := stratalog.OpenReader(ctx, opt, stratalog.ReaderOptions{})
		if err != nil {
			return err
		}
		return errors.Join(g.sameQueues(ctx, reader), verified(ctx, reader), reader.Close())
	}
	if err := read(); err != nil {
		return fmt.Errorf("reader: %w", err)
	}
	store, err := openOurs(ctx, opt)
	if err != nil {
		return err
	}
	if err := errors.Join(g.sameQueues(ctx, store), closeOurs(ctx, store)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := read(); err != nil {
		return fmt.Errorf("reader, afterwards: %w", err)
	}
	return nil
}

// sameQueues reads each queue by following Next.
func (g *golden) sameQueues(ctx context.Context, s reading) error {
	var errs []error
	queues := 0
	for _, topic := range s.Topics() {
		queues += len(s.Queues(topic))
	}
	if queues != len(g.Queues) {
		errs = append(errs, fmt.Errorf("%d queues, want %d: %q", queues, len(g.Queues), s.Topics()))
	}
	for _, want := range g.Queues {
		if first, end := s.QueueRange(want.Topic, want.Queue); first != want.Min || end != want.Max {
			errs = append(errs, fmt.Errorf("%s/%d is [%d,%d), want [%d,%d)", want.Topic, want.Queue, first, end, want.Min, want.Max))
			continue
		}
		var phy []int64
		err := follow(ctx, s, stratalog.Request{Topic: want.Topic, QueueID: want.Queue, Offset: want.Min}, func(r *stratalog.Record) error {
			phy = append(phy, r.PhysicalOffset())
			return nil
		})
		if err != nil || fmt.Sprint(phy) != fmt.Sprint(want.Phy) {
			errs = append(errs, fmt.Errorf("%s/%d: records at %v, want %v: %w", want.Topic, want.Queue, phy, want.Phy, err))
		}
	}
	return errors.Join(errs...)
}

// TestQueueKinds has the cases of light queues that both sides write.
func TestQueueKinds(t *testing.T) {
	runCases(t, []testCase{
		{group: "b", name: "light-queues-ours", run: ourLight},
		{group: "c", name: "light-queues-turns", run: lightTurns},
		{group: "b", name: "extended-queues-ours", run: ourExtended},
		{group: "a", name: "time-lookup-ours", run: bothTimes},
		{group: "b", name: "batch-queues-ours", run: ourBatches},
		{group: "c", name: "batch-queues-turns", run: batchTurns},
	})
}

func lightSetup() setup {
	return featureSetup(func(s *setup) { s.more = map[string]any{"enableLmq": true, "enableMultiDispatch": true} })
}

// lightAppends appends messages as weWrite does, with light queues.
func lightAppends(e *env, s setup, dir string) (snapshot, error) {
	opt := s.options(dir)
	opt.LightQueues = true
	store, err := openOurs(e.ctx, opt)
	if err != nil {
		return nil, err
	}
	_, err = weAppend(e.ctx, store, lightMessages(), nil, nil)
	seen := snapshot{}
	if err == nil {
		seen, err = lightSees(e.ctx, store)
	}
	return seen, errors.Join(err, closeOurs(e.ctx, store))
}

// lightSees is oursSees where records stand in queues of other topics.
func lightSees(ctx context.Context, s reading) (snapshot, error) {
	all := snapshot{}
	for _, topic := range s.Topics() {
		for _, queue := range s.Queues(topic) {
			q := queueSeen{}
			q.min, q.max = s.QueueRange(topic, queue)
			err := follow(ctx, s, stratalog.Request{Topic: topic, QueueID: queue, Offset: q.min}, func(r *stratalog.Record) error {
				q.raw = append(q.raw, append([]byte(nil), r.Bytes()...))
				return nil
			})
			if err != nil {
				return nil, err
			}
			if q.min < q.max {
				all[queueKey{topic, queue}] = q
			}
		}
	}
	return all, nil
}

// ourLight: we write into light queues, and Java reads them all.
func ourLight(e *env) error {
	s, dir := lightSetup(), e.dir()
	ours, err := lightAppends(e, s, dir)
	if err != nil {
		return err
	}
	if n := len(ours[queueKey{"%LMQ%a", 0}].raw); n != 60 {
		return fmt.Errorf("the light queue has %d records, want 60", n)
	}
	java, err := e.javaReads(dir, s)
	if err != nil {
		return err
	}
	return differs("java", java, ours)
}

// The lengths of files that the driver gives Java, unless told otherwise.
const (
	extFileSize   = 4096
	batchFileSize = 50 * 46
)

// ourExtended: we write extended queues over several extension files, Java finds
// all by tag, goes on, and we verify what it left, and go on.
func ourExtended(e *env) error {
	s, dir := featureSetup(func(s *setup) { s.more = map[string]any{"enableConsumeQueueExt": true} }), e.dir()
	opt := s.options(dir)
	opt.ExtendedQueues, opt.ExtendedFileSize = true, extFileSize
	for range 2 {
		store, err := openOurs(e.ctx, opt)
		if err != nil {
			return err
		}
		for range 10 {
			if _, err = weAppend(e.ctx, store, taggedMessages(), nil, nil); err != nil {
				break
			}
		}
		ours := snapshot{}
		if err == nil {
			ours, err = oursSees(e.ctx, store)
		}
		if err = errors.Join(err, closeOurs(e.ctx, store)); err != nil {
			return err
		}
		java, err := e.javaReads(dir, s)
		if err != nil {
			return err
		}
		if err := differs("java", java, ours); err != nil {
			return err
		}
		if _, _, err := e.javaWrites(dir, s, taggedMessages()); err != nil {
			return err
		}
		reader, err := stratalog.OpenReader(e.ctx, opt, stratalog.ReaderOptions{})
		if err != nil {
			return err
		}
		if err := errors.Join(verified(e.ctx, reader), reader.Close()); err != nil {
			return err
		}
	}
	return nil
}

// lightTurns: both write into the same light queues in turns, and each finds what
// the other one wrote, and goes on with its numbers.
func lightTurns(e *env) error {
	s, dir := lightSetup(), e.dir()
	for turn := range 3 {
		_, java, err := e.javaWrites(dir, s, lightMessages())
		if err != nil {
			return fmt.Errorf("turn %d of java: %w", turn, err)
		}
		if n := len(java[queueKey{"%LMQ%b", 0}].raw); n != 60*turn+30 {
			return fmt.Errorf("turn %d: java finds %d records in the light queue, want %d", turn, n, 60*turn+30)
		}
		ours, err := lightAppends(e, s, dir)
		if err != nil {
			return fmt.Errorf("turn %d of ours: %w", turn, err)
		}
		if again, err := e.javaReads(dir, s); err != nil {
			return err
		} else if err := differs("java", again, ours); err != nil {
			return fmt.Errorf("turn %d: %w", turn, err)
		}
		for k, q := range java {
			if first := ours[k]; len(first.raw) < len(q.raw) || first.min != q.min {
				return fmt.Errorf("turn %d: of %v we find %d records, java found %d", turn, k, len(first.raw), len(q.raw))
			}
		}
	}
	return nil
}

// bothTimes: of what Java wrote, both give the same offsets by time, at and around
// each record's.
func bothTimes(e *env) error {
	s, dir := usual(), e.dir()
	store, err := e.openJava(e.java, dir, s)
	if err != nil {
		return err
	}
	type asked struct {
		ms    int64
		bound stratalog.TimeBound
	}
	want := map[asked]int64{}
	err = func() error {
		all, err := e.javaPuts(store, spread())
		if err != nil {
			return err
		}
		if err := store.Wait(e.ctx); err != nil {
			return err
		}
		for _, m := range all {
			for _, ms := range []int64{m.stored - 5, m.stored, m.stored + 1, m.stored + 1e9} {
				for _, bound := range []stratalog.TimeBound{stratalog.LowerBound, stratalog.UpperBound} {
					if want[asked{ms, bound}], err = store.OffsetByTime(e.ctx, "kinds", 0, ms, bound.String()); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}()
	if err = errors.Join(err, store.Shutdown(e.ctx)); err != nil {
		return err
	}
	reader, err := stratalog.OpenReader(e.ctx, s.options(dir), stratalog.ReaderOptions{})
	if err != nil {
		return err
	}
	var errs []error
	for a, offset := range want {
		got, err := reader.OffsetByTime(e.ctx, "kinds", 0, time.UnixMilli(a.ms), a.bound)
		if err != nil || got != offset {
			errs = append(errs, fmt.Errorf("%v of %d: %d, java says %d: %w", a.bound, a.ms, got, offset, err))
		}
	}
	return errors.Join(append(errs, reader.Close())...)
}

func batchSetup() setup {
	return featureSetup(func(s *setup) { s.types = map[string]string{"inner": "BatchCQ"} })
}

// batchAppends appends inner batches and others, and returns all that we find.
func batchAppends(e *env, s setup, dir string) (snapshot, error) {
	opt := s.options(dir)
	opt.BatchQueueFileSize = batchFileSize
	store, err := openOurs(e.ctx, opt)
	if err != nil {
		return nil, err
	}
	_, err = weAppend(e.ctx, store, innerBatches(), nil, nil)
	seen := snapshot{}
	if err == nil {
		seen, err = lightSees(e.ctx, store)
	}
	if err = errors.Join(err, closeOurs(e.ctx, store)); err != nil {
		return nil, err
	}
	reader, err := stratalog.OpenReader(e.ctx, s.options(dir), stratalog.ReaderOptions{})
	if err != nil {
		return nil, err
	}
	return seen, errors.Join(verified(e.ctx, reader), reader.Close())
}

// ourBatches: we write inner batches, and Java reads them all.
func ourBatches(e *env) error {
	s, dir := batchSetup(), e.dir()
	ours, err := batchAppends(e, s, dir)
	if err != nil {
		return err
	}
	if q := ours[queueKey{"inner", 0}]; len(q.raw) != 30 || q.max != 150 {
		return fmt.Errorf("the batch queue has %d records and ends at %d, want 30 and 150", len(q.raw), q.max)
	}
	java, err := e.javaReads(dir, s)
	if err != nil {
		return err
	}
	return differs("java", java, ours)
}

// batchTurns: both write into the same batch queue in turns.
func batchTurns(e *env) error {
	s, dir := batchSetup(), e.dir()
	for turn := range 3 {
		_, java, err := e.javaWrites(dir, s, innerBatches())
		if err != nil {
			return fmt.Errorf("turn %d of java: %w", turn, err)
		}
		if q := java[queueKey{"inner", 0}]; len(q.raw) != 60*turn+30 {
			return fmt.Errorf("turn %d: java finds %d records, want %d", turn, len(q.raw), 60*turn+30)
		}
		ours, err := batchAppends(e, s, dir)
		if err != nil {
			return fmt.Errorf("turn %d of ours: %w", turn, err)
		}
		again, err := e.javaReads(dir, s)
		if err == nil {
			err = differs("java", again, ours)
		}
		if err != nil {
			return fmt.Errorf("turn %d: %w", turn, err)
		}
	}
	return nil
}
