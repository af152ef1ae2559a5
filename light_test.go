package stratalog

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// lit is a message of the model and where it went.
type lit struct {
	body  string
	start Offset
	light []string
}

// lightModel are the messages in the log, in order; the light queues follow.
type lightModel struct{ all []lit }

// queue returns the bodies in a light queue: in the order of the log.
func (m *lightModel) queue(name string) (bodies []string) {
	for _, l := range m.all {
		if slices.Contains(l.light, name) {
			bodies = append(bodies, l.body)
		}
	}
	return bodies
}

func (m *lightModel) check(t *testing.T, s reading) {
	t.Helper()
	for _, name := range []string{"%LMQ%a", "%LMQ%b", "%LMQ%c"} {
		want := m.queue(name)
		if first, end := s.QueueRange(name, 0); first != 0 || end != int64(len(want)) {
			t.Fatalf("%s is [%d,%d), want [0,%d)", name, first, end, len(want))
		}
		var out Records
		for at := int64(0); at < int64(len(want)); at = out.Next {
			if err := s.Get(context.Background(), Request{Topic: name, Offset: at, MaxCount: 3}, &out); err != nil || out.Status != contract.GetFound {
				t.Fatalf("%s at %d: %v, %v", name, at, out.Status, err)
			}
			for i := range out.Len() {
				if got := out.QueueOffset(i); got != at+int64(i) || string(out.At(i).Body()) != want[got] {
					t.Fatalf("%s: record %d is number %d with %q, want %q", name, at+int64(i), got, out.At(i).Body(), want[got])
				}
			}
		}
		out.Release()
	}
}

func lightProps(names ...string) []byte {
	return codec.AppendProperty(codec.AppendProperty(nil, codec.PropertyMultiDispatch, strings.Join(names, ",")), "TAGS", "x")
}

// TestLightQueues runs appends, cuts, closes and crashes, and holds the light
// queues against a model after each.
func TestLightQueues(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 12
	}
	for round := range rounds {
		rng := rand.New(rand.NewPCG(uint64(round), 7))
		sim := vfs.NewSim()
		opt := testOptions(sim, "/store")
		opt.Clock, opt.LightQueues, opt.QueueFileSize = manual(), true, 100
		opt.NoRecordChecksum = round%3 == 0
		opt.ExtendedQueues, opt.ExtendedFileSize = round%2 == 0, 100
		s := start(t, opt)
		model := &lightModel{}
		for step := range 25 {
			switch {
			case rng.IntN(8) == 0 && len(model.all) > 0:
				cut := rng.IntN(len(model.all))
				if err := s.TruncateTo(context.Background(), model.all[cut].start); err != nil {
					t.Fatal(err)
				}
				model.all = model.all[:cut]
			case rng.IntN(8) == 0:
				closeClean(t, s)
				s = start(t, opt)
			case rng.IntN(8) == 0:
				sim = sim.Crash(vfs.Random(rng, 0.5))
				abandon(t, s)
				opt.FS = sim
				s = start(t, opt)
			default:
				names := []string{"%LMQ%a", "%LMQ%b", "%LMQ%c"}[:rng.IntN(4)]
				rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
				m := &Message{Topic: "t", QueueID: rng.Int32N(2), Body: body(step), Properties: tags("y")}
				if len(names) > 0 {
					m.Properties = lightProps(names...)
				}
				r := mustAppend(t, s, m, Sync)
				place, _ := r.Range()
				model.all = append(model.all, lit{string(m.Body), place.Start, names})
			}
			if n := len(model.all); n > 0 {
				waitVisible(t, s, s.Health().Watermarks.Confirmed)
			}
			model.check(t, s)
		}
		closeClean(t, s)
		verifyClean(t, opt)
		r, err := OpenReader(context.Background(), opt, ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		model.check(t, r)
		before := mustAnswers(t, r)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if again, err := rebuilt(sim, opt); err != nil || again != before {
			t.Fatalf("rebuilt: %v\n%s\nbefore\n%s", err, again, before)
		}
	}
}

// verifyClean has nothing but notes.
func verifyClean(t *testing.T, opt Options) {
	t.Helper()
	r, err := OpenReader(context.Background(), opt, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Verify(context.Background(), func(f Finding) {
		if f.Severity == Fault {
			t.Errorf("%+v", f)
		}
	})
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestLightNumbers: the numbers stand in the record, what a producer gives as
// numbers does not, and what cannot be a light queue is refused.
func TestLightNumbers(t *testing.T) {
	sim := vfs.NewSim()
	opt := testOptions(sim, "/store")
	opt.LightQueues = true
	s := start(t, opt)
	read := func(r Receipt) string {
		var rec Record
		defer rec.Release()
		place, _ := r.Range()
		if found, err := s.GetAt(context.Background(), place.Start, &rec); !found || err != nil {
			t.Fatal(found, err)
		}
		value, _ := codec.FindProperty(rec.Properties(), codec.PropertyMultiOffsets)
		return string(value)
	}
	put := func(topic string, props []byte) Receipt {
		r := mustAppend(t, s, &Message{Topic: topic, Properties: props}, Sync)
		waitVisible(t, s, endOf(r))
		return r
	}
	forged := codec.AppendProperty(lightProps("%LMQ%a", "%LMQ%b"), codec.PropertyMultiOffsets, "77,78")
	for i, want := range []string{"0,0", "1,1"} {
		if got := read(put("t", forged)); got != want {
			t.Errorf("append %d has numbers %q, want %q", i, got, want)
		}
	}
	if got := read(put("t", lightProps("%LMQ%a", "%LMQ%a", ""))); got != "2,2" {
		t.Errorf("a queue named twice: %q", got)
	}
	if got := read(put("t", lightProps("%LMQ%b", "%LMQ%a"))); got != "2,3" {
		t.Errorf("after it: %q", got)
	}
	for range 7 {
		put("t", lightProps("%LMQ%a"))
	}
	if got := read(put("t", lightProps("%LMQ%a"))); got != "11" {
		t.Errorf("a number of two digits: %q", got)
	}
	for _, topic := range []string{"%RETRY%g", "rmq_sys_x", "SCHEDULE_TOPIC_XXXX"} {
		if got := read(put(topic, lightProps("%LMQ%a"))); got != "" {
			t.Errorf("a record of %s has numbers %q", topic, got)
		}
	}
	half := &Message{Topic: "t", SysFlag: int32(codec.SysFlagTransactionPrepared), Properties: lightProps("%LMQ%a")}
	if got := read(mustAppend(t, s, half, Sync)); got != "" {
		t.Errorf("a prepared record has numbers %q", got)
	}
	for _, name := range []string{"other", "%LMQ%a/b", "%LMQ%\x1f", "%LMQ%" + strings.Repeat("x", 123)} {
		_, err := s.Append(context.Background(), &Message{Topic: "t", Properties: lightProps(name)}, Sync)
		if !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, end := s.QueueRange("%LMQ%a", 0); end != 12 {
		t.Errorf("the light queue ends at %d", end)
	}
	closeClean(t, s)

	opt.LightQueues = false
	s = start(t, opt)
	if got := read(put("t", forged)); got != "" {
		t.Errorf("with light queues off a producer's numbers %q came into the log", got)
	}
	if _, end := s.QueueRange("%LMQ%a", 0); end != 12 {
		t.Errorf("the light queue ends at %d", end)
	}
	closeClean(t, s)
	verifyClean(t, opt)
}

// TestLightLimits: properties that only the numbers make too long are refused,
// and the queues do not move.
func TestLightLimits(t *testing.T) {
	opt := testOptions(vfs.NewSim(), "/store")
	opt.LightQueues = true
	s := start(t, opt)
	defer closeClean(t, s)
	base := lightProps("%LMQ%a")
	for _, over := range []bool{false, true} {
		room := codec.MaxPropertiesLength - codec.ChecksumTrailerSize - len(base) - len(codec.PropertyMultiOffsets) - 2 - 19 - len("k\x01\x02")
		if over {
			room++
		}
		props := codec.AppendProperty(slices.Clone(base), "k", strings.Repeat("v", room))
		r, err := s.Append(context.Background(), &Message{Topic: "t", Properties: props}, Sync)
		if over != (err != nil) || over && r.Status() != contract.StatusPropertiesTooLarge {
			t.Errorf("over %v: %v, %v", over, r.Status(), err)
		}
		if err == nil {
			waitVisible(t, s, endOf(r))
		}
	}
	if _, end := s.QueueRange("%LMQ%a", 0); end != 1 {
		t.Errorf("the light queue ends at %d", end)
	}
}

// TestLightWithoutAPlace: a name that can be no queue's, which a broker with light
// queues off stores as a producer wrote it, is no fault of the queues.
func TestLightWithoutAPlace(t *testing.T) {
	sim := vfs.NewSim()
	opt := testOptions(sim, "/store")
	opt.LightQueues, opt.NoRecordChecksum = true, true
	s := start(t, opt)
	for range 3 {
		mustAppend(t, s, &Message{Topic: "t", Properties: lightProps("%LMQ%a", "%LMQ%b")}, Sync)
	}
	closeClean(t, s)
	const segment = "/store/commitlog/00000000000000000000"
	at := bytes.LastIndex(readFile(t, sim, segment), []byte("%LMQ%a"))
	writeFile(t, sim, segment, int64(at), []byte("%LMQ%/"), false)
	if a, err := rebuilt(sim, opt); err != nil || !strings.Contains(a, "%LMQ%a/0 [0,2)") || !strings.Contains(a, "%LMQ%b/0 [0,3)") {
		t.Fatalf("%v\n%s", err, a)
	}
	verifyClean(t, opt)
}
