package perf

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/stratalog/stratalog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBodies(t *testing.T) {
	b, same, other := NewBodies(1, 5000), NewBodies(1, 4096), NewBodies(2, 5000)
	for _, size := range []int{0, 1, 7, 8, 9, 100, 4096} {
		seen := map[string]int64{}
		for seq := range int64(300) {
			body := make([]byte, size)
			b.Fill(body, seq)
			if !b.Check(body, seq) || !same.Check(body, seq) {
				t.Fatalf("size %d: body %d is not itself", size, seq)
			}
			if size < 8 {
				continue
			}
			if before, ok := seen[string(body)]; ok {
				t.Fatalf("size %d: bodies %d and %d are equal", size, before, seq)
			}
			seen[string(body)] = seq
			if other.Check(body, seq) || b.Check(body, seq+1) {
				t.Fatalf("size %d: body %d passes for another", size, seq)
			}
			for _, at := range []int{0, size / 2, size - 1} {
				body[at] ^= 1
				if b.Check(body, seq) {
					t.Fatalf("size %d: body %d with a bit flipped at %d passes", size, seq, at)
				}
				body[at] ^= 1
			}
		}
	}
	if b.Check(make([]byte, 5001), 0) {
		t.Error("a body that is too long passes")
	}
}

func TestShare(t *testing.T) {
	for _, c := range []struct {
		records   int64
		producers int
	}{{1, 1}, {10, 3}, {3, 10}, {64, 64}, {1000, 7}} {
		next := int64(0)
		for p := range c.producers {
			from, to := share(c.records, c.producers, p)
			if from != next || to < from {
				t.Fatalf("%+v: producer %d has [%d,%d), want from %d", c, p, from, to, next)
			}
			for seq := from; seq < to; seq++ {
				if got := producerOf(c.records, c.producers, seq); got != p {
					t.Fatalf("%+v: message %d is of producer %d, want %d", c, seq, got, p)
				}
			}
			next = to
		}
		if next != c.records {
			t.Fatalf("%+v: %d messages are shared out", c, next)
		}
	}
}

func TestTopicOf(t *testing.T) {
	for path, want := range map[string]string{
		"file": "root", "net/http/server.go": "net", "a b.c/d": "a_b_c", "../x": "__", "./x": "_", "%|-_9Z/x": "%|-_9Z",
		"grün/x": "gr_n", strings.Repeat("x", 200) + "/y": strings.Repeat("x", 127),
	} {
		if got := TopicOf(path); got != want {
			t.Errorf("TopicOf(%q) = %q, want %q", path, got, want)
		}
	}
}

// config is a small append run.
func config(dir string) AppendConfig {
	return AppendConfig{Dir: dir, Records: 500, Warmup: 20, Size: 100, Producers: 3, Topics: 2, Queues: 3,
		Durability: stratalog.Sync, SegmentSize: 64 << 10, Seed: 42}
}

func TestRunAppend(t *testing.T) {
	for name, change := range map[string]func(*AppendConfig){
		"sync":         func(*AppendConfig) {},
		"async":        func(c *AppendConfig) { c.Async = 16 },
		"memory mmap":  func(c *AppendConfig) { c.Durability, c.WritePath = stratalog.Memory, stratalog.WriteMmap },
		"memory async": func(c *AppendConfig) { c.Durability, c.Async = stratalog.Memory, 4 },
		"interval":     func(c *AppendConfig) { c.Durability, c.WritePath = stratalog.Interval, stratalog.WritePwrite },
		"empty bodies": func(c *AppendConfig) { c.Size = 0 },
		"few":          func(c *AppendConfig) { c.Records, c.Warmup, c.Producers = 2, 0, 8 },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t.TempDir())
			change(&cfg)
			phases := map[string]bool{}
			for range 2 { // into a new store, then into an existing one
				res, err := RunAppend(context.Background(), cfg, func(phase string, done, total int64) { phases[phase] = done <= total })
				if err != nil {
					t.Fatal(err)
				}
				if err := res.Err(); err != nil || res.Verified != cfg.Records {
					t.Fatalf("%v, %+v", err, res)
				}
				if res.Latency.Max < res.Latency.P50 || cfg.Durability == stratalog.Sync && res.Syncs == 0 || res.DiskBytesPerRecord < float64(cfg.Size) {
					t.Fatalf("%+v", res)
				}
			}
			if !phases["append"] || !phases["read back"] {
				t.Errorf("phases %v", phases)
			}
		})
	}
}

func TestRunAppendInvalid(t *testing.T) {
	for name, change := range map[string]func(*AppendConfig){
		"records":   func(c *AppendConfig) { c.Records = 0 },
		"many":      func(c *AppendConfig) { c.Records = 1 << 31 },
		"size":      func(c *AppendConfig) { c.Size = -1 },
		"producers": func(c *AppendConfig) { c.Producers = 0 },
		"queues":    func(c *AppendConfig) { c.Queues = 0 },
		"async":     func(c *AppendConfig) { c.Async = -1 },
		"segment":   func(c *AppendConfig) { c.SegmentSize = 1 },
	} {
		cfg := config(t.TempDir())
		change(&cfg)
		if _, err := RunAppend(context.Background(), cfg, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestRunAppendCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cfg := config(t.TempDir())
	cfg.Records = 1 << 30
	opened := false
	cfg.Opened = func(stratalog.LoadReport) { opened = true }
	res, err := RunAppend(ctx, cfg, func(phase string, _, _ int64) {
		if phase == "append" {
			cancel()
		}
	})
	cancel()
	if !errors.Is(err, context.Canceled) || res == nil || !res.Interrupted || res.Records == 0 || res.Records == cfg.Records || !opened {
		t.Fatalf("%v, %+v", err, res)
	}
	if _, err := os.Stat(filepath.Join(cfg.Dir, "abort")); !os.IsNotExist(err) {
		t.Errorf("not closed cleanly: %v", err)
	}
}

// TestReadBackNotices appends other messages than the run says, in every way in
// which they can be others.
func TestReadBackNotices(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		before int64 // messages appended by the run, of 60
		then   func(r *appendRun) *stratalog.Message
		first  string
		lost   int64
		wrong  int64
	}{
		"nothing": {60, nil, "", 0, 0},
		"missing": {59, nil, "message 59, acknowledged, is in no queue", 1, 0},
		"twice":   {60, func(r *appendRun) *stratalog.Message { return r.nth(7, 7) }, "message 7 is there twice", 0, 1},
		"unknown": {60, func(r *appendRun) *stratalog.Message { return r.nth(60, 60) }, "was never appended", 0, 1},
		"body":    {59, func(r *appendRun) *stratalog.Message { return r.nth(59, 58) }, "the body of message 59", 0, 1},
		"queue": {59, func(r *appendRun) *stratalog.Message {
			m := r.nth(59, 59)
			m.QueueID ^= 1
			return m
		}, "belongs to another queue", 0, 1},
		"length": {59, func(r *appendRun) *stratalog.Message {
			m := r.nth(59, 59)
			m.Body = m.Body[:50]
			return m
		}, "has 50 bytes", 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t.TempDir())
			cfg.Records, cfg.Producers, cfg.Queues = 60, 1, 2
			store, err := openStarted(ctx, stratalog.Options{Dir: cfg.Dir, SegmentSize: cfg.SegmentSize, MaxMessageSize: 1 << 10}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := closeStore(store); err != nil {
					t.Error(err)
				}
			}()
			run := newAppendRun(store, cfg, nil)
			starts := run.queueEnds()
			if err := run.append(ctx, "append", c.before, nil); err != nil {
				t.Fatal(err)
			}
			if c.then != nil {
				receipt, err := store.Append(ctx, c.then(run), stratalog.Sync)
				if err != nil {
					t.Fatal(err)
				}
				run.noteEnd(receipt)
			}
			if err := run.waitVisible(ctx); err != nil {
				t.Fatal(err)
			}
			b := newReadBack(run, starts)
			if err := b.all(ctx); err != nil {
				t.Fatal(err)
			}
			if cfg.Records-b.found != c.lost || b.wrong != c.wrong || !strings.Contains(b.first, c.first) {
				t.Errorf("%d missing, %d wrong, %q", cfg.Records-b.found, b.wrong, b.first)
			}
			res := AppendResult{Missing: c.lost, Wrong: c.wrong, FirstWrong: b.first}
			var wrong *WrongError
			if failed := errors.As(res.Err(), &wrong); failed != (c.first != "") {
				t.Errorf("result: %v", res.Err())
			}
		})
	}
}

// nth is message seq with the body of message body.
func (r *appendRun) nth(seq, body int64) *stratalog.Message {
	m := &stratalog.Message{Body: make([]byte, r.cfg.Size)}
	r.message(m, seq)
	r.bodies.Fill(m.Body, body)
	return m
}

func TestRunGet(t *testing.T) {
	cfg := config(t.TempDir())
	if _, err := RunAppend(context.Background(), cfg, nil); err != nil {
		t.Fatal(err)
	}
	for _, random := range []bool{false, true} {
		for _, batch := range []int{1, 32} {
			res, err := RunGet(context.Background(), GetConfig{Dir: cfg.Dir, Count: 2000, Random: random, Batch: batch, Seed: 1, BodySeed: cfg.Seed}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if res.Err() != nil || res.Records != 2000 || res.Verified != 2000 || res.Queues != 6 || batch == 1 && res.Gets != 2000 {
				t.Errorf("random %v, batch %d: %+v", random, batch, res)
			}
		}
	}
	if _, err := RunGet(context.Background(), GetConfig{Dir: cfg.Dir, Count: 1, Batch: stratalog.MaxCount + 1}, nil); err == nil {
		t.Error("a batch that is too large is taken")
	}
}

func TestRunCorpus(t *testing.T) {
	src := t.TempDir()
	for name, size := range map[string]int{"top": 10, "a/empty": 0, "a/x": 5000, "b/c/d": 40000, "b/large": 100_000} {
		path := filepath.Join(src, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cfg := CorpusConfig{Source: src, Dir: t.TempDir(), SegmentSize: 128 << 10, Durability: stratalog.Sync}
	res, err := RunCorpus(context.Background(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.Err() != nil || res.Files != 4 || res.Verified != 4 || res.Empty != 1 || res.TooLarge != 1 || res.Topics != 3 || res.Bytes != 45010 {
		t.Errorf("%+v", res)
	}
}

// TestCorpusNotices checks that a file that is not as its message is found.
func TestCorpusNotices(t *testing.T) {
	ctx, src := context.Background(), t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(src, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	changed := false
	res, err := RunCorpus(ctx, CorpusConfig{Source: src, Dir: t.TempDir(), SegmentSize: 128 << 10, Durability: stratalog.Sync},
		func(phase string, done, total int64) {
			if phase == "append" && done == total && !changed {
				changed = true
				if err := os.WriteFile(filepath.Join(src, "b"), []byte("B"), 0o644); err != nil {
					t.Error(err)
				}
			}
		})
	if err != nil {
		t.Fatal(err)
	}
	if res.Err() == nil || res.Wrong != 1 || res.Verified != 2 || !strings.Contains(res.FirstWrong, `"b"`) {
		t.Errorf("%+v", res)
	}
}
