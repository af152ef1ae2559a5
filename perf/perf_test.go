package perf

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/internal/vfs"
	"github.com/stratalog/stratalog/perf/load"
)

// childVariable makes this binary the process that fills a store.
const childVariable = "STRATALOG_PERF_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		in, err := io.ReadAll(os.Stdin)
		if err == nil {
			err = RunRestartChild(context.Background(), bytes.NewReader(in), os.Stdout)
		}
		if err == nil && os.Getenv(childVariable) == "lose" {
			var c ChildConfig
			err = errors.Join(json.Unmarshal(in, &c), os.RemoveAll(c.Dir))
		}
		if err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
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

// config is a small run.
func config(dir string) Config {
	return Config{Dir: dir, Load: load.Spec{Records: 500, Warmup: 20, Producers: 3, Seed: 42}, Sizes: load.FixedSize(100), Topics: 2, Queues: 3,
		Durability: stratalog.Sync, SegmentSize: 64 << 10}
}

// right checks a run of which every byte must be as it was.
func right(t *testing.T, run *load.Run, err error, records int64) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if v := run.Verified; run.Err() != nil || !v.OK || v.Records != records || run.Interrupted {
		t.Fatalf("%+v", v)
	}
	if op := run.Ops[0]; op.Latency.Count != op.Count || op.Latency.Max < op.Latency.P50 || op.Seconds <= 0 || len(op.Series) == 0 {
		t.Fatalf("%+v", op)
	}
	if _, err := json.Marshal(run); err != nil {
		t.Fatal(err)
	}
}

func TestRunAppend(t *testing.T) {
	corpus := t.TempDir()
	if err := os.WriteFile(filepath.Join(corpus, "one"), []byte("a body of a corpus"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"sync":         func(*Config) {},
		"async":        func(c *Config) { c.Load.Async = 16 },
		"memory mmap":  func(c *Config) { c.Durability, c.WritePath = stratalog.Memory, stratalog.WriteMmap },
		"memory async": func(c *Config) { c.Durability, c.Load.Async = stratalog.Memory, 4 },
		"interval":     func(c *Config) { c.Durability, c.WritePath = stratalog.Interval, stratalog.WritePwrite },
		"empty bodies": func(c *Config) { c.Sizes = load.FixedSize(0) },
		"corpus":       func(c *Config) { c.Corpus = corpus },
		"few":          func(c *Config) { c.Load.Records, c.Load.Warmup, c.Load.Producers = 2, 0, 8 },
		"fixed":        func(c *Config) { c.Load.Arrivals, c.Load.Rate, c.Load.Async = load.Fixed, 20_000, 64 },
		"random":       func(c *Config) { c.Load.Arrivals, c.Load.Rate = load.Random, 20_000 },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t.TempDir())
			change(&cfg)
			phases := map[string]bool{}
			cfg.Load.Progress = func(phase string, done, total int64) { phases[phase] = done <= total }
			for range 2 { // into a new store, then into an existing one
				run, err := RunAppend(context.Background(), cfg)
				right(t, run, err, cfg.Load.Records+cfg.Load.Warmup)
				if cfg.Durability == stratalog.Sync && run.Log.Syncs == 0 || run.Log.Bytes == 0 || run.Ops[0].Records != cfg.Load.Records {
					t.Fatalf("%+v", run)
				}
				if run.Log.Calls["write"]+run.Log.Calls["mapwrite"] == 0 || run.Usage.Allocs == 0 || run.Usage.PeakRSS == 0 {
					t.Errorf("%+v, %+v", run.Log, run.Usage)
				}
			}
			if !phases["append"] || !phases["read back"] {
				t.Errorf("phases %v", phases)
			}
		})
	}
}

func TestRunInvalid(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"records":   func(c *Config) { c.Load.Records = 0 },
		"many":      func(c *Config) { c.Load.Records = 1 << 31 },
		"producers": func(c *Config) { c.Load.Producers = 0 },
		"queues":    func(c *Config) { c.Queues = 0 },
		"async":     func(c *Config) { c.Load.Async = -1 },
		"segment":   func(c *Config) { c.SegmentSize = 1 },
		"corpus":    func(c *Config) { c.Corpus = filepath.Join(c.Dir, "none") },
	} {
		cfg := config(t.TempDir())
		change(&cfg)
		if _, err := RunAppend(context.Background(), cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	ctx := context.Background()
	if _, err := RunTail(ctx, TailConfig{Config: config(t.TempDir()), Batch: 0}); err == nil {
		t.Error("tail: a batch of 0 is taken")
	}
	if _, err := RunMixed(ctx, MixedConfig{TailConfig: TailConfig{Config: config(t.TempDir()), Batch: 1}, Keep: -1}); err == nil {
		t.Error("mixed: a negative size is taken")
	}
	for name, change := range map[string]func(*MixedConfig){
		"followers": func(c *MixedConfig) { c.Followers = 0 },
		"warm-up":   func(c *MixedConfig) { c.Load.Warmup, c.Load.WarmupDuration = 0, time.Second },
	} {
		mixed := MixedConfig{TailConfig: TailConfig{Config: config(t.TempDir()), Followers: 1, Batch: 1}}
		change(&mixed)
		if _, err := RunMixed(ctx, mixed); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("mixed, %s: %v", name, err)
		}
	}
	cfg := config(t.TempDir())
	cfg.Load.Async = 1
	if _, err := RunRoll(ctx, cfg); err == nil {
		t.Error("roll: async is taken")
	}
	if _, err := RunRestart(ctx, RestartConfig{Dir: t.TempDir(), LogSizes: []int64{1 << 20}, Rounds: 1}); err == nil {
		t.Error("restart: no child is taken")
	}
}

func TestRunCancelled(t *testing.T) {
	for name, do := range map[string]func(context.Context, Config) (*load.Run, error){
		"append": RunAppend,
		"roll":   RunRoll,
		"tail": func(ctx context.Context, c Config) (*load.Run, error) {
			return RunTail(ctx, TailConfig{Config: c, Followers: 2, Batch: 8})
		},
		"mixed": func(ctx context.Context, c Config) (*load.Run, error) {
			return RunMixed(ctx, MixedConfig{TailConfig: TailConfig{Config: c, Followers: 1, Batch: 8}, Keep: 1 << 20})
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			cfg := config(t.TempDir())
			cfg.Load.Records = 1 << 30
			opened := false
			cfg.Opened = func(stratalog.LoadReport) { opened = true }
			cfg.Load.Progress = func(phase string, _, _ int64) {
				if phase == name {
					cancel()
				}
			}
			if name == "roll" {
				name = "append" // its phase
			}
			run, err := do(ctx, cfg)
			if !errors.Is(err, context.Canceled) || run == nil || !run.Interrupted || run.Ops[0].Records == 0 || run.Verified.OK || !opened {
				t.Fatalf("%v, %+v", err, run)
			}
			if _, err := os.Stat(filepath.Join(cfg.Dir, "abort")); !os.IsNotExist(err) {
				t.Errorf("not closed cleanly: %v", err)
			}
		})
	}
}

func TestRunTail(t *testing.T) {
	for _, followers := range []int{0, 1, 3} {
		cfg := TailConfig{Config: config(t.TempDir()), Followers: followers, Batch: 4}
		for range 2 {
			run, err := RunTail(context.Background(), cfg)
			right(t, run, err, 520)
			if followers > 0 && (len(run.Ops) != 2 || run.Ops[1].Records != 500*int64(followers) || run.Ops[1].Latency.Min <= 0) {
				t.Errorf("%d followers: %+v", followers, run.Ops)
			}
		}
	}
}

// TestStallShows checks that a sync of half a second is in the tail of an open
// loop's latencies, of the appends and of what followers saw.
func TestStallShows(t *testing.T) {
	fault := vfs.NewFault(vfs.OS())
	stall := fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpDatasync), Path: "commitlog/*", At: 100,
		Hook: func(vfs.Op) { time.Sleep(500 * time.Millisecond) }})
	cfg := TailConfig{Config: config(t.TempDir()), Followers: 1, Batch: 32}
	cfg.FS, cfg.SegmentSize = fault, 8<<20
	cfg.Load.Arrivals, cfg.Load.Rate, cfg.Load.Async = load.Fixed, 2000, 1024
	cfg.Load.Records, cfg.Load.Duration = 0, 2*time.Second
	run, err := RunTail(context.Background(), cfg)
	right(t, run, err, 4020)
	if stall.Fired() != 1 {
		t.Fatal("the sync was not delayed")
	}
	// A quarter of all messages was due during the stall, so p99.9 is near its end.
	for _, op := range run.Ops {
		if op.Latency.Max < 490e3 || op.Latency.P999 < 450e3 || op.Latency.P90 < 200e3 {
			t.Errorf("%s: %v", op.Name, op.Latency)
		}
	}
}

func TestRunRoll(t *testing.T) {
	cfg := config(t.TempDir())
	run, err := RunRoll(context.Background(), cfg)
	right(t, run, err, 520)
	if run.Log.Rolls == 0 || len(run.Ops) != 2 || run.Ops[1].Count < run.Log.Rolls || run.Ops[1].Count > 3*run.Log.Rolls {
		t.Errorf("%+v, %d at a roll", run.Log, run.Ops[1].Count)
	}
}

func TestRunMixed(t *testing.T) {
	cfg := MixedConfig{TailConfig: TailConfig{Config: config(t.TempDir()), Followers: 2, Batch: 16}, Backlog: 500, Keep: 128 << 10,
		RetainEvery: 5 * time.Millisecond}
	cfg.Load.Arrivals, cfg.Load.Rate, cfg.Load.Records = load.Fixed, 2000, 1500
	run, err := RunMixed(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if v := run.Verified; run.Err() != nil || !v.OK || v.Records < 1500 || v.Records+v.Retired != 2020 {
		t.Fatalf("%+v", v)
	}
	if len(run.Ops) != 3 || run.Ops[2].Name != "scan" || run.Ops[2].Records == 0 || run.Ops[0].Records != 1500 {
		t.Errorf("%+v", run.Ops)
	}
	log, err := filepath.Glob(filepath.Join(cfg.Dir, "commitlog", "*"))
	if err != nil || len(log) == 0 || filepath.Base(log[0]) == strings.Repeat("0", 20) {
		t.Errorf("%v: nothing was retired: %v", err, log)
	}
}

// TestMixedCannotReopen checks that a run ends well when its store cannot be
// opened the second time.
func TestMixedCannotReopen(t *testing.T) {
	fault := vfs.NewFault(vfs.OS())
	cfg := MixedConfig{TailConfig: TailConfig{Config: config(t.TempDir()), Followers: 1, Batch: 8}}
	cfg.FS = fault
	fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpLock), At: 1, Err: syscall.EIO})
	if run, err := RunMixed(context.Background(), cfg); run != nil || !errors.Is(err, syscall.EIO) {
		t.Errorf("%v, %+v", err, run)
	}
}

// TestMixedMissesItsBacklog loses the whole store between its two openings.
func TestMixedMissesItsBacklog(t *testing.T) {
	fault := vfs.NewFault(vfs.OS())
	cfg := MixedConfig{TailConfig: TailConfig{Config: config(t.TempDir()), Followers: 1, Batch: 8}, Backlog: 200}
	cfg.FS = fault
	fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpLock), At: 1, Hook: func(vfs.Op) {
		for _, name := range []string{"commitlog", "consumequeue", "stratalog"} {
			if err := os.RemoveAll(filepath.Join(cfg.Dir, name)); err != nil {
				t.Error(err)
			}
		}
	}})
	run, err := RunMixed(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if v := run.Verified; v.OK || v.Missing < 200 || run.Err() == nil {
		t.Errorf("%+v", v)
	}
}

// TestRetentionLeavesWhatItShould: a store that takes more than it was told to is
// at fault, whoever has read it before.
func TestRetentionLeavesWhatItShould(t *testing.T) {
	for _, c := range []struct {
		bytes, least int64
		fault        bool
	}{{0, 0, false}, {1000, 100, false}, {1000, 99, true}} {
		r := &retention{keep: 100, bytes: c.bytes, least: c.least}
		if got := r.fault(); (got != "") != c.fault {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestDamageIsTheOutcome flips a byte of a record that was acknowledged: that is
// what the run reports, with all that it measured.
func TestDamageIsTheOutcome(t *testing.T) {
	cfg := config(t.TempDir())
	fault := vfs.NewFault(vfs.OS())
	cfg.FS = fault
	fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpLock), At: 1, Hook: func(vfs.Op) {
		name := filepath.Join(cfg.Dir, "commitlog", strings.Repeat("0", 20))
		b, err := os.ReadFile(name)
		if err == nil {
			b[len(b)/2] ^= 1
			err = os.WriteFile(name, b, 0o644)
		}
		if err != nil {
			t.Error(err)
		}
	}})
	run, err := RunAppend(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if v := run.Verified; v.OK || v.Wrong == 0 || !strings.Contains(v.First, "commitlog") || run.Ops[0].Records != 500 {
		t.Errorf("%+v", v)
	}
}

// TestTallyExcusesNoMoreThanRetentionTook checks that a message that was lost is
// not taken for one of those that were retired.
func TestTallyExcusesNoMoreThanRetentionTook(t *testing.T) {
	cfg := config(t.TempDir())
	s, err := open(context.Background(), &cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := s.gen.Run(context.Background(), "append"); err != nil {
		t.Fatal(err)
	}
	f := &follower{check: newChecker(s), skipped: 40}
	for seq := range s.gen.Total() - 41 {
		f.check.mark(seq)
	}
	if v := tally([]*follower{f}); v.Retired != 40 || v.Missing != 1 || v.OK || v.First == "" {
		t.Errorf("%+v", v)
	}
}

func TestRunRestart(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg := RestartConfig{Dir: t.TempDir(), Size: 100, SegmentSize: 512 << 10, LogSizes: []int64{1 << 20, 2 << 20}, Rounds: 2, Child: func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = append(os.Environ(), childVariable+"=1")
		return cmd
	}}
	run, err := RunRestart(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if v := run.Verified; run.Err() != nil || !v.OK || v.Records < 4*(3<<20)/300 {
		t.Fatalf("%+v", v)
	}
	if len(run.Ops) != 16 {
		t.Fatalf("%d operations", len(run.Ops))
	}
	for _, op := range run.Ops {
		if op.Count != 2 || op.Latency.Min <= 0 {
			t.Errorf("%+v", op)
		}
	}
}

// TestRestartNoticesLoss loses a store between its process' end and the opening.
func TestRestartNoticesLoss(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	fills := 0
	cfg := RestartConfig{Dir: t.TempDir(), Size: 100, SegmentSize: 512 << 10, LogSizes: []int64{1 << 20}, Rounds: 2, Child: func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, self)
		how := "1"
		if fills++; fills == 1 {
			how = "lose"
		}
		cmd.Env = append(os.Environ(), childVariable+"="+how)
		return cmd
	}}
	run, err := RunRestart(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if v := run.Verified; v.OK || v.Missing == 0 || !strings.Contains(v.First, "opening 1") {
		t.Errorf("%+v", v)
	}
}

// TestReadBackNotices appends other messages than the generator sent, in every
// way in which they can be others.
func TestReadBackNotices(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		then  func(s *session) *stratalog.Message
		lose  bool // the first message of the run is said to have been another's
		first string
		lost  int64
		wrong int64
	}{
		"nothing": {nil, false, "", 0, 0},
		"twice":   {func(s *session) *stratalog.Message { return s.nth(7, 7) }, false, "message 7 is there twice", 0, 1},
		"unknown": {func(s *session) *stratalog.Message { return s.nth(60, 60) }, false, "was never sent", 0, 1},
		"body":    {func(s *session) *stratalog.Message { return s.nth(60, 58) }, false, "the body of message 60", 0, 1},
		"queue": {func(s *session) *stratalog.Message {
			m := s.nth(61, 61)
			m.QueueID ^= 1
			return m
		}, false, "belongs to another queue", 0, 1},
		"length": {func(s *session) *stratalog.Message {
			m := s.nth(61, 61)
			m.Body = m.Body[:50]
			return m
		}, false, "the body of message 61", 0, 1},
		"missing": {nil, true, "message 0, acknowledged, is in no queue", 1, 0},
		"elsewhere": {func(s *session) *stratalog.Message {
			m := s.nth(61, 61)
			m.QueueID = 7
			return m
		}, false, "bench0/7 holds more than before the run", 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t.TempDir())
			cfg.Load.Records, cfg.Load.Warmup, cfg.Load.Producers, cfg.Topics, cfg.Queues = 60, 0, 1, 1, 2
			s, err := open(ctx, &cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := s.close(); err != nil {
					t.Error(err)
				}
			}()
			starts := s.ends()
			if _, err := s.gen.Run(ctx, "append"); err != nil {
				t.Fatal(err)
			}
			if c.then != nil {
				if _, err := s.store.Append(ctx, c.then(s), stratalog.Sync); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.waitVisible(ctx); err != nil {
				t.Fatal(err)
			}
			if c.lose {
				starts[0]++
			}
			run, err := s.verify(ctx, &load.Run{}, starts, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if v := run.Verified; v.Missing != c.lost || v.Wrong != c.wrong || !strings.Contains(v.First, c.first) || v.OK != (c.first == "") {
				t.Errorf("%+v", v)
			}
			var wrong *load.WrongError
			if failed := errors.As(run.Err(), &wrong); failed != (c.first != "") {
				t.Errorf("result: %v", run.Err())
			}
		})
	}
}

// nth is message seq with the body of message body.
func (s *session) nth(seq, body int64) *stratalog.Message {
	p := producer{s: s}
	p.message(seq, s.cfg.Load.Bodies.Make(nil, body))
	return &p.m
}

func TestRunGet(t *testing.T) {
	cfg := config(t.TempDir())
	if _, err := RunAppend(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	for _, random := range []bool{false, true} {
		for _, batch := range []int{1, 32} {
			for _, readers := range []int{1, 4, 9} {
				get := GetConfig{Dir: cfg.Dir, Count: 2000, Random: random, Batch: batch, Readers: readers, Seed: 1, BodySeed: cfg.Load.Seed, Sizes: cfg.Sizes}
				run, err := RunGet(context.Background(), get)
				right(t, run, err, 2000)
				if op := run.Ops[0]; op.Records != 2000 || batch == 1 && op.Count != 2000 || op.Bytes != 200_000 {
					t.Errorf("random %v, batch %d: %+v", random, batch, run)
				}
			}
		}
	}
	get := GetConfig{Dir: cfg.Dir, Count: 50, Batch: 1, Readers: 1, BodySeed: cfg.Load.Seed + 1, Sizes: cfg.Sizes}
	if run, err := RunGet(context.Background(), get); err != nil || run.Verified.Wrong != 50 || run.Err() == nil || run.Verified.OK {
		t.Errorf("another seed: %v, %+v", err, run)
	}
	get = GetConfig{Dir: cfg.Dir, Duration: 10 * time.Millisecond, Batch: 4, Readers: 2}
	if run, err := RunGet(context.Background(), get); err != nil || run.Ops[0].Records == 0 || !run.Verified.OK {
		t.Errorf("for a while: %v, %+v", err, run)
	}
	for name, get := range map[string]GetConfig{
		"batch":   {Dir: cfg.Dir, Count: 1, Batch: stratalog.MaxCount + 1, Readers: 1},
		"readers": {Dir: cfg.Dir, Count: 1, Batch: 1},
		"no end":  {Dir: cfg.Dir, Batch: 1, Readers: 1},
		"topic":   {Dir: cfg.Dir, Count: 1, Batch: 1, Readers: 1, Topic: "none"},
	} {
		if _, err := RunGet(context.Background(), get); err == nil {
			t.Errorf("%s: taken", name)
		}
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
