package stratalog

import (
	"context"
	"slices"
	"testing"

	"github.com/stratalog/stratalog/codec"
)

// byTime is the model of OffsetByTime. What lies below the log's start is earlier
// than everything, but in a batch queue, whose units tell the times.
func (l *modelLog) byTime(ms int64, bound TimeBound) int64 {
	answer := map[TimeBound]int64{LowerBound: l.end, UpperBound: l.first}[bound]
	for _, r := range l.live() {
		behind := r.phy < l.min && l.kind != batchQueue
		if bound == LowerBound && r.time >= ms && !behind {
			return r.at
		}
		if bound == UpperBound && (r.time <= ms || behind) {
			answer = r.at
		}
	}
	return answer
}

// noteTime counts where a time lies among those of the queue.
func (l *modelLog) noteTime(ms int64, been reached) {
	live := l.live()
	equal := 0
	for i, r := range live {
		if r.time == ms {
			equal++
		}
		been.at("between two", i > 0 && live[i-1].time < ms && ms < r.time)
	}
	been.at("equal to one", equal == 1)
	been.at("equal to many", equal > 2)
	if len(live) > 0 {
		been.at("before all", ms < live[0].time)
		been.at("behind all", ms > live[len(live)-1].time)
	}
	been.at("an empty queue", len(live) == 0 && len(l.all) > 0)
	been.at("no queue", len(l.all) == 0)
}

// TestTimeModel holds OffsetByTime against the model, around the times there are.
func TestTimeModel(t *testing.T) {
	eachKind(t, func(t *testing.T, kind queueKind) {
		been := reached{}
		for seed := range uint64(logsToTry()) {
			l := newModelLog(t, seed, kind, false)
			been.at("a head that was retired", l.loseHead())
			for _, ms := range l.times() {
				l.noteTime(ms, been)
				for _, bound := range []TimeBound{LowerBound, UpperBound} {
					got, err := l.getter().byTime(context.Background(), l.topic, 0, ms, bound)
					if want := l.byTime(ms, bound); err != nil || got != want {
						t.Fatalf("seed %d: %v of %d over %s: %d, %v, want %d", seed, bound, ms, l, got, err, want)
					}
				}
			}
		}
		been.all(t, "before all", "equal to one", "equal to many", "between two", "behind all", "an empty queue", "no queue", "a head that was retired")
	})
}

// times are those to ask for: around that of some record, and far out.
func (l *modelLog) times() []int64 {
	asked := []int64{-1 << 62, 0, 1 << 62}
	for range min(3, len(l.all)) {
		at := l.all[l.rng.IntN(len(l.all))].time
		asked = append(asked, at-1, at, at+1)
	}
	return asked
}

// TestTimeBackwards: where times run backwards, the answer is a place at which
// they pass the one asked for, and in the queue's range.
func TestTimeBackwards(t *testing.T) {
	eachKind(t, func(t *testing.T, kind queueKind) {
		been := reached{}
		for seed := range uint64(logsToTry()) {
			l := newModelLog(t, seed, kind, true)
			live := l.live()
			for _, ms := range l.times() {
				l.checkBackwards(t, seed, live, ms)
				passed := 0
				for i := range live {
					if i > 0 && (live[i-1].time < ms) != (live[i].time < ms) {
						passed++
					}
				}
				been.at("passed once", passed == 1)
				been.at("passed more than once", passed > 1)
				been.at("never passed", passed == 0)
			}
		}
		been.all(t, "passed once", "passed more than once", "never passed")
	})
}

func (l *modelLog) checkBackwards(t *testing.T, seed uint64, live []logRecord, ms int64) {
	t.Helper()
	lower, err := l.getter().byTime(context.Background(), l.topic, 0, ms, LowerBound)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(live, func(r logRecord) bool { return r.at >= lower })
	if i < 0 {
		i = len(live)
	}
	if i < len(live) && (live[i].at != lower || live[i].time < ms) || i > 0 && live[i-1].time >= ms || i == len(live) && lower != l.end {
		t.Fatalf("seed %d: lower of %d over %s: %d", seed, ms, l, lower)
	}
	upper, err := l.getter().byTime(context.Background(), l.topic, 0, ms, UpperBound)
	if err != nil {
		t.Fatal(err)
	}
	i = slices.IndexFunc(live, func(r logRecord) bool { return r.at == upper })
	switch {
	case len(live) == 0 && upper == l.first:
	case i < 0, live[i].time > ms && i > 0, i+1 < len(live) && live[i+1].time <= ms && live[i].time <= ms:
		t.Fatalf("seed %d: upper of %d over %s: %d", seed, ms, l, upper)
	}
}

// TestIDModel: message ids name records by their place and host.
func TestIDModel(t *testing.T) {
	been := reached{}
	for seed := range uint64(logsToTry()) {
		l := newModelLog(t, seed, plainQueue, false)
		read := func(_ context.Context, off Offset, out *Record) (bool, error) { return l.Read(off, out) }
		for _, phy := range append([]int64{0, 99, 1 << 50}, l.places()...) {
			for _, host := range [][]byte{make([]byte, 8), {0, 0, 0, 1, 0, 0, 0, 0}, make([]byte, 20)} {
				r := slices.IndexFunc(l.all, func(r logRecord) bool { return r.phy == phy })
				there, ours := r >= 0 && phy >= l.min, slices.Equal(host, make([]byte, 8))
				var out Record
				found, err := byID(context.Background(), codec.MessageID(host, phy), &out, read)
				if err != nil || found != (there && ours) || found && !slices.Equal(out.Bytes(), l.all[r].raw) {
					t.Fatalf("seed %d: host %x, offset %d: %v, %v", seed, host, phy, found, err)
				}
				been.at("found", found)
				been.at("of another host", there && !ours)
				been.at("retired", r >= 0 && !there)
				been.at("no record", r < 0)
			}
		}
	}
	been.all(t, "found", "of another host", "retired", "no record")
}

func (l *modelLog) places() (out []int64) {
	for _, r := range l.all {
		out = append(out, r.phy)
	}
	return out
}
