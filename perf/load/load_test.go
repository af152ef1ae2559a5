package load

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parse(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }

func TestParseSizes(t *testing.T) {
	for text, c := range map[string]struct{ least, most, max int }{
		"100":                   {100, 100, 100},
		"0":                     {0, 0, 0},
		"uniform:10-20":         {10, 20, 20},
		"uniform:7-7":           {7, 7, 7},
		"lognormal:100,0.5,900": {0, 900, 900},
		"10*1,20*3":             {10, 20, 20},
	} {
		s, err := ParseSizes(text, parse)
		if err != nil || s.Max() != c.max || s.String() != text {
			t.Errorf("%s: %v, max %d", text, err, s.Max())
			continue
		}
		least, most := math.MaxInt, 0
		for i := range uint64(20000) {
			n := s.Of(mix(i))
			least, most = min(least, n), max(most, n)
		}
		for _, u := range []uint64{0, math.MaxUint64} {
			if n := s.Of(u); n < 0 || n > c.max {
				t.Errorf("%s: %d of %d", text, n, u)
			}
		}
		if least < c.least || most > c.most || !strings.Contains(text, "log") && (least != c.least || most != c.most) {
			t.Errorf("%s: %d..%d, want %d..%d", text, least, most, c.least, c.most)
		}
	}
	for _, text := range []string{"", "x", "-1", "600000000", "uniform:1", "uniform:5-1", "uniform:x-1", "lognormal:1,2", "lognormal:0,1,10",
		"lognormal:5,NaN,10", "lognormal:5,0,10", "lognormal:50,1,10", "10*0", "10*-1", "10*x", "10*1,20", "10*Inf", "zipf:1"} {
		if s, err := ParseSizes(text, parse); err == nil {
			t.Errorf("%q is taken as %v", text, s)
		}
	}
}

func TestSizesShares(t *testing.T) {
	s, err := ParseSizes("10*1,20*3", parse)
	if err != nil {
		t.Fatal(err)
	}
	large := 0
	for i := range uint64(40000) {
		if s.Of(mix(i)) == 20 {
			large++
		}
	}
	if large < 29500 || large > 30500 {
		t.Errorf("%d of 40000, want about 30000", large)
	}
	if s, err = ParseSizes("lognormal:100,1,100000", parse); err != nil {
		t.Fatal(err)
	}
	below := 0
	for i := range uint64(40000) {
		if s.Of(mix(i)) < 100 {
			below++
		}
	}
	if below < 19500 || below > 20700 {
		t.Errorf("%d of 40000 below the median", below)
	}
}

func TestBodies(t *testing.T) {
	for _, size := range []int{0, 1, 7, 8, 9, 100, 4096} {
		b, same, other := NewBodies(1, FixedSize(size)), NewBodies(1, FixedSize(size)), NewBodies(2, FixedSize(size))
		seen := map[string]int64{}
		var buf []byte
		for seq := range int64(300) {
			buf = b.Make(buf, seq)
			if len(buf) != size || !b.Check(buf, seq) || !same.Check(buf, seq) || b.Size(seq) != size {
				t.Fatalf("size %d: body %d is not itself", size, seq)
			}
			if b.Check(append(buf, 0), seq) || size > 0 && b.Check(buf[1:], seq) {
				t.Fatalf("size %d: another length passes", size)
			}
			if size < 8 {
				continue
			}
			if before, ok := seen[string(buf)]; ok {
				t.Fatalf("size %d: bodies %d and %d are equal", size, before, seq)
			}
			seen[string(buf)] = seq
			if other.Check(buf, seq) || b.Check(buf, seq+1) {
				t.Fatalf("size %d: body %d passes for another", size, seq)
			}
			flips(t, b, buf, seq)
		}
	}
}

// flips checks that a flipped bit is seen.
func flips(t *testing.T, b *Bodies, body []byte, seq int64) {
	t.Helper()
	for _, at := range []int{0, len(body) / 2, len(body) - 1} {
		body[at] ^= 1
		if b.Check(body, seq) {
			t.Fatalf("body %d of %d bytes with a bit flipped at %d passes", seq, len(body), at)
		}
		body[at] ^= 1
	}
}

func TestBodiesOfOtherKinds(t *testing.T) {
	dir := t.TempDir()
	for name, body := range map[string]string{"a": "first", "b/c": "second", "b/empty": "", "large": strings.Repeat("x", 101)} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(body), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	corpus, err := NewCorpus(1, dir, 100)
	if err != nil {
		t.Fatal(err)
	}
	sizes, err := ParseSizes("uniform:0-50", parse)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for seq := range int64(200) {
		body := corpus.Make(nil, seq)
		seen[string(body)] = true
		if !corpus.Check(body, seq) || corpus.Check(append(body, 1), seq) || corpus.Size(seq) != len(body) {
			t.Fatalf("body %d of a corpus", seq)
		}
		for _, b := range []*Bodies{NewBodies(3, FixedSize(40)).ZeroFrom(20), NewBodies(3, FixedSize(40)).ZeroFrom(0), NewBodies(3, sizes)} {
			body := b.Make([]byte(strings.Repeat("y", 64)), seq)
			if !b.Check(body, seq) || b.Size(seq) != len(body) {
				t.Fatalf("%v: body %d", b, seq)
			}
			if len(body) > 0 {
				flips(t, b, body, seq)
			}
		}
	}
	if len(seen) != 3 || !seen[""] || !seen["second"] || corpus.Max() != 6 {
		t.Errorf("a corpus of %v, longest %d", seen, corpus.Max())
	}
	if b := NewPayload([]byte("same")); !b.Check(b.Make(nil, 7), 7) || b.Check([]byte("other"), 7) || b.Size(1) != 4 {
		t.Error("a payload is not itself")
	}
	if _, err := NewCorpus(1, dir, -1); err == nil {
		t.Error("a corpus without files is taken")
	}
	if _, err := NewCorpus(1, filepath.Join(dir, "none"), 100); err == nil {
		t.Error("a corpus that is not there is taken")
	}
}

func TestSchedule(t *testing.T) {
	const producers, rate = 4, 1000.0
	at := map[time.Duration]bool{}
	for p := range producers {
		s := NewSchedule(Fixed, rate, producers, p, 1)
		for i := range 10 {
			want := time.Duration(i*4+p) * time.Millisecond
			if got := s.Next(); got != want {
				t.Errorf("producer %d, message %d: due at %v, want %v", p, i, got, want)
			}
			at[want] = true
		}
	}
	if len(at) != 40 {
		t.Errorf("%d times", len(at))
	}
	random, again := NewSchedule(Random, rate, producers, 0, 7), NewSchedule(Random, rate, producers, 0, 7)
	last, gaps, squares := time.Duration(0), 0.0, 0.0
	for range 20000 {
		next := random.Next()
		if next != again.Next() || next < last {
			t.Fatal("not repeatable, or running backwards")
		}
		gap := float64(next - last)
		gaps, squares, last = gaps+gap, squares+gap*gap, next
	}
	mean := gaps / 20000
	deviation := math.Sqrt(squares/20000 - mean*mean)
	if math.Abs(mean/4e6-1) > 0.05 || math.Abs(deviation/4e6-1) > 0.05 { // of an exponential distribution both are alike
		t.Errorf("mean gap %v, deviation %v", time.Duration(mean), time.Duration(deviation))
	}
	if NewSchedule(Random, rate, producers, 1, 7).Next() == NewSchedule(Random, rate, producers, 0, 7).Next() {
		t.Error("two producers send at the same times")
	}
}

func TestSummary(t *testing.T) {
	a, b := NewHistogram(), NewHistogram()
	for i := range 9999 {
		h := a
		if i%2 == 0 {
			h = b
		}
		h.Record(time.Duration(i+1) * time.Microsecond)
	}
	b.Record(time.Hour)
	a.Record(-1)
	l := Summary(a, b, Histogram{})
	near := func(name string, got, want float64) {
		if math.Abs(got/want-1) > 0.002 {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	near("p50", l.P50, 5000)
	near("p90", l.P90, 9000)
	near("p99", l.P99, 9900)
	near("p99.9", l.P999, 9990)
	near("max", l.Max, float64(longest/time.Microsecond))
	if l.Count != 10001 || l.Min != 0 {
		t.Errorf("%+v", l)
	}
	last := Quantile{-1, -1}
	for _, q := range l.Curve {
		if q.Q <= last.Q || q.Us < last.Us {
			t.Fatalf("the curve does not rise: %v", l.Curve)
		}
		last = q
	}
	if last.Q != 100 || last.Us != l.Max || l.Curve[0].Q != 0 {
		t.Errorf("the curve ends at %v", last)
	}
	if empty := Summary(); empty.Count != 0 || empty.Curve != nil || empty.Max != 0 {
		t.Errorf("of nothing: %+v", empty)
	}
}

func TestTimeline(t *testing.T) {
	start := time.Now()
	line := NewTimeline(start, time.Second)
	a, b := NewRecorder(line), NewRecorder(line)
	for i := range 30 { // one every 100 ms for 3 s, by turns
		r := a
		if i%2 == 0 {
			r = b
		}
		r.Add(time.Duration(i)*time.Millisecond, 2, start.Add(time.Duration(i)*100*time.Millisecond))
	}
	a.Add(time.Millisecond, 1, start.Add(-time.Second)) // counts as the first
	a.Flush()
	b.Flush()
	points := line.Points(start.Add(2500 * time.Millisecond))
	if len(points) != 3 {
		t.Fatalf("%+v", points)
	}
	if points[0].RecordsPerSec != 21 || points[1].RecordsPerSec != 20 || points[2].RecordsPerSec != 40 { // the last is half as wide
		t.Errorf("%+v", points)
	}
	if points[2].Seconds != 2.5 || points[2].Max < 28.9e3 || points[1].Max > 19.3e3 {
		t.Errorf("%+v", points)
	}
	late := NewRecorder(line)
	late.Add(time.Second, 1, start.Add(1e9*time.Second))
	late.Flush()
	if points := line.Points(start.Add(2e9 * time.Second)); len(points) != maxIntervals {
		t.Errorf("%d points", len(points))
	}
}

// engine answers at once, or as it is told.
type engine struct {
	mu    sync.Mutex
	got   map[int64]int
	delay func(seq int64) time.Duration
	fail  int64 // number of the message that fails, -1 for none
}

var errFull = errors.New("full")

func newEngine() *engine { return &engine{got: map[int64]int{}, fail: -1} }

func (e *engine) Append(_ context.Context, seq int64, body []byte) error {
	if e.delay != nil {
		time.Sleep(e.delay(seq))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if seq == e.fail {
		return errFull
	}
	e.got[seq] += len(body)
	return nil
}

func (e *engine) Slot(done func(error)) func(context.Context, int64, []byte) error {
	return func(ctx context.Context, seq int64, body []byte) error {
		body = append([]byte(nil), body...)
		go func() { done(e.Append(ctx, seq, body)) }()
		return nil
	}
}

// of returns producers that share e.
func (e *engine) of(n int) []Producer {
	all := make([]Producer, n)
	for i := range all {
		all[i] = e
	}
	return all
}

func spec() Spec {
	return Spec{Producers: 3, Records: 500, Warmup: 20, Bodies: NewBodies(1, FixedSize(10)), Seed: 1}
}

func TestGenerator(t *testing.T) {
	for name, change := range map[string]func(*Spec){
		"closed":       func(*Spec) {},
		"async":        func(s *Spec) { s.Async = 7 },
		"fixed":        func(s *Spec) { s.Arrivals, s.Rate = Fixed, 50_000 },
		"random async": func(s *Spec) { s.Arrivals, s.Rate, s.Async = Random, 50_000, 7 },
		"few":          func(s *Spec) { s.Records, s.Producers, s.Warmup = 2, 8, 0 },
	} {
		t.Run(name, func(t *testing.T) {
			s, e, told := spec(), newEngine(), int64(0)
			change(&s)
			s.Starts = NewStarts()
			s.Progress = func(_ string, done, total int64) { told = max(told, done) }
			g, err := NewGenerator(s, e.of(s.Producers))
			if err != nil {
				t.Fatal(err)
			}
			ctx := context.Background()
			if err := g.Warmup(ctx); err != nil {
				t.Fatal(err)
			}
			op, err := g.Run(ctx, "append")
			if err != nil {
				t.Fatal(err)
			}
			if op.Records != s.Records || op.Latency.Count != s.Records || op.Bytes != 10*s.Records || g.Total() != s.Records+s.Warmup || told != s.Records {
				t.Errorf("%+v, %d acknowledged, %d told", op, g.Total(), told)
			}
			if (op.Service != nil) != (s.Arrivals != Closed) || op.Arrivals != s.Arrivals.String() {
				t.Errorf("%+v", op)
			}
			for p := range s.Producers {
				if g.Sent(p) != g.Acked(p) {
					t.Errorf("producer %d: %d sent, %d acknowledged", p, g.Sent(p), g.Acked(p))
				}
				for i := range g.Sent(p) {
					seq := i*int64(s.Producers) + int64(p)
					if e.got[seq] != 10 {
						t.Errorf("message %d: %d bytes", seq, e.got[seq])
					}
					delete(e.got, seq)
				}
			}
			if len(e.got) != 0 {
				t.Errorf("%d too many", len(e.got))
			}
			if since := s.Starts.Since(0, time.Now()); since <= 0 || since > time.Hour {
				t.Errorf("message 0 was due %v ago", since)
			}
		})
	}
}

// TestOpenLoopShowsAStall checks that a stall of 300 ms is in the latency of
// every message that was due in it, and not in that of one alone.
func TestOpenLoopShowsAStall(t *testing.T) {
	s, e := spec(), newEngine()
	s.Producers, s.Warmup, s.Arrivals, s.Rate, s.Records = 1, 0, Fixed, 1000, 600
	e.delay = func(seq int64) time.Duration {
		if seq == 100 {
			return 300 * time.Millisecond
		}
		return 0
	}
	g, err := NewGenerator(s, e.of(1))
	if err != nil {
		t.Fatal(err)
	}
	op, err := g.Run(context.Background(), "append")
	if err != nil {
		t.Fatal(err)
	}
	// 300 of 600 messages were due during the stall: two thirds are late at all.
	if op.Latency.Max < 300e3 || op.Latency.P90 < 150e3 || op.Service.Max < 300e3 {
		t.Errorf("%+v", op.Latency)
	}
	if op.Service.P90 > op.Latency.P90/2 {
		t.Errorf("from when it was sent: %+v", op.Service)
	}
	if op.WakeUp.Count == 0 || op.WakeUp.Count >= 600 {
		t.Errorf("it woke %d times", op.WakeUp.Count)
	}
}

func TestGeneratorEnds(t *testing.T) {
	for name, async := range map[string]int{"closed": 0, "async": 5} {
		t.Run(name, func(t *testing.T) {
			s, e := spec(), newEngine()
			s.Async, s.Warmup, s.Records, s.Duration = async, 0, 0, time.Hour
			e.fail = 301
			g, err := NewGenerator(s, e.of(3))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := g.Run(context.Background(), "append"); !errors.Is(err, errFull) {
				t.Errorf("%v", err)
			}
			e.fail = -1
			ctx, cancel := context.WithCancel(context.Background())
			s.Arrivals, s.Rate = Fixed, 0.001 // all of them wait
			if g, err = NewGenerator(s, e.of(3)); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(20*time.Millisecond, cancel)
			if _, err := g.Run(ctx, "append"); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
			s.Arrivals, s.Rate, s.Duration = Closed, 0, 20*time.Millisecond
			if g, err = NewGenerator(s, e.of(3)); err != nil {
				t.Fatal(err)
			}
			if op, err := g.Run(context.Background(), "append"); err != nil || op.Records == 0 || op.Seconds < 0.02 {
				t.Errorf("%v, %+v", err, op)
			}
		})
	}
}

func TestSpecInvalid(t *testing.T) {
	for name, change := range map[string]func(*Spec){
		"no producers":   func(s *Spec) { s.Producers = 0 },
		"async":          func(s *Spec) { s.Async = -1 },
		"no rate":        func(s *Spec) { s.Arrivals = Fixed },
		"rate NaN":       func(s *Spec) { s.Arrivals, s.Rate = Fixed, math.NaN() },
		"closed rate":    func(s *Spec) { s.Rate = 5 },
		"no end":         func(s *Spec) { s.Records = 0 },
		"two ends":       func(s *Spec) { s.Duration = time.Second },
		"too many":       func(s *Spec) { s.Records = 1 << 31 },
		"negative":       func(s *Spec) { s.Records = -1 },
		"warm-up":        func(s *Spec) { s.Warmup = -1 },
		"two warm-ups":   func(s *Spec) { s.WarmupDuration = time.Second },
		"long":           func(s *Spec) { s.Records, s.Duration = 0, 25*time.Hour },
		"negative while": func(s *Spec) { s.Warmup, s.WarmupDuration = 0, -1 },
	} {
		s := spec()
		change(&s)
		if _, err := NewGenerator(s, newEngine().of(3)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := NewGenerator(spec(), newEngine().of(2)); err == nil {
		t.Error("too few producers: taken")
	}
	s := spec()
	s.Async = 1
	if _, err := NewGenerator(s, make([]Producer, 3)); err == nil {
		t.Error("producers that cannot: taken")
	}
}

func TestMeterAndEnvironment(t *testing.T) {
	m := StartMeter()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	keep := make([]byte, 10<<20)
	for i := range keep {
		keep[i] = 1
	}
	u := m.Stop(100, 1<<20)
	if u.Allocs == 0 || u.AllocBytes < 10<<20 || u.Seconds <= 0 || u.PeakRSS < 10<<20 || u.WriteCalls < 1 || u.MinorFault == 0 {
		t.Errorf("%+v (%d)", u, keep[0])
	}
	e := Environment(filepath.Join(dir, "not", "yet", "there"))
	if e.Cores < 1 || e.Go == "" || e.Kernel == "" || e.FileSystem == "" || e.Memory < 1<<20 {
		t.Errorf("%+v", e)
	}
}

func TestRunTable(t *testing.T) {
	s, w := Summary(), Summary()
	r := Run{Schema: Schema, Engine: "e", Workload: "w", Interrupted: true, Config: []Param{{"producers", "3"}},
		Ops: []Op{{Name: "append", Rate: 5, Records: 1, Service: &s, WakeUp: &w}, {Name: "opening"}},
		Log: &LogCounts{Calls: map[string]int64{"write": 3}}, Lag: &Lag{}, Verified: Verify{Wrong: 1, First: "that one"}, Notes: []string{"remark"}}
	var out strings.Builder
	if err := r.Table(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ended early", "producers 3", "asked: 5", "intended start", "NO: that one", "write 3", "remark", "opening"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	var wrong *WrongError
	if !errors.As(r.Err(), &wrong) || wrong.Wrong != 1 || r.Param("producers") != "3" || r.Param("x") != "" {
		t.Errorf("%v", r.Err())
	}
	data, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	var back Run
	if err := json.Unmarshal(data, &back); err != nil || back.Engine != "e" || back.Ops[0].Name != "append" {
		t.Errorf("%v, %s", err, data)
	}
	if (&Run{}).Err() != nil {
		t.Error("a run in which nothing is wrong is")
	}
}

// TestGeneratorGivesUp checks that what cannot be sent in time is counted, and
// stands in the latencies as late as it is.
func TestGeneratorGivesUp(t *testing.T) {
	s := Spec{Producers: 1, Bodies: NewBodies(1, FixedSize(1)), Arrivals: Fixed, Rate: 1000, Duration: time.Second}
	w := &worker{g: &Generator{spec: s}, start: time.Now().Add(-time.Minute), limit: math.MaxInt64, until: s.Duration,
		schedule: NewSchedule(Fixed, s.Rate, 1, 0, 1), all: NewRecorder(nil)}
	if _, ok := w.due(context.Background(), 0); ok || w.unsent != 1000 {
		t.Errorf("%v, %d unsent", ok, w.unsent)
	}
	op := w.g.op(phase{duration: s.Duration, arrivals: Fixed}, []*worker{w}, time.Minute)
	if op.Count != 0 || op.Unsent != 1000 || op.Latency.Count != 1000 || op.Latency.P50 < 58e6 || op.Latency.Min < 58e6 {
		t.Errorf("%d sent, %d not; latency %v", op.Count, op.Unsent, op.Latency)
	}
}

// TestFieldsAreDocumented holds docs/BENCH.md to the fields of a run.
func TestFieldsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/BENCH.md")
	if err != nil {
		t.Fatal(err)
	}
	var walk func(reflect.Type, string)
	walk = func(typ reflect.Type, path string) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			if typ.Kind() == reflect.Slice {
				path += "[]"
			}
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[time.Time]() {
			if path = strings.TrimSuffix(path, "[]"); !strings.Contains(string(page), "`"+path+"`") {
				t.Errorf("docs/BENCH.md says nothing of `%s`", path)
			}
			return
		}
		if typ == reflect.TypeFor[Latency]() || typ == reflect.TypeFor[Quantile]() {
			if name := strings.TrimSuffix(path, "[]"); !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("docs/BENCH.md says nothing of `%s`", name)
			}
			path = "" // its fields are the same everywhere
		}
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if path != "" {
				name = path + "." + name
			}
			walk(f.Type, name)
		}
	}
	walk(reflect.TypeFor[Run](), "")
}
