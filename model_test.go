package stratalog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/cq"
	"github.com/stratalog/stratalog/internal/vfs"
)

// The lookups are held against models of a few lines, each over at least
// modelLogs random logs of one queue: with jumps in the numbers, a retired head,
// equal times and tags with equal hashes.

const modelLogs = 10_000

func logsToTry() int {
	if testing.Short() {
		return modelLogs / 20
	}
	return modelLogs
}

// logRecord is a record of the queue; a number without one is blank.
type logRecord struct {
	at, phy, time int64
	size          int
	tag           string
	raw           []byte
}

// modelLog is a log in memory. It implements logReader.
type modelLog struct {
	rng    *rand.Rand
	all    []logRecord
	min    int64
	epochs []contract.EpochStart
	queues *cq.Store
	// first and end are the queue's range, until CorrectMin moves first.
	first, end int64
}

func (l *modelLog) ReadSized(off contract.Offset, size int32, dst *Record) (bool, error) {
	found, err := l.Read(off, dst)
	return found && dst.TotalSize() == size, err
}

func (l *modelLog) Read(off contract.Offset, dst *Record) (bool, error) {
	for _, r := range l.all {
		if r.phy == int64(off) && r.phy >= l.min {
			return true, dst.Parse(r.raw)
		}
	}
	return false, nil
}

func (l *modelLog) MinOffset() contract.Offset { return contract.Offset(l.min) }
func (l *modelLog) Confirmed() contract.Offset { return 1 << 40 }
func (l *modelLog) Epochs() []contract.EpochStart {
	return l.epochs
}
func (l *modelLog) Epoch() contract.Epoch { return l.epochs[len(l.epochs)-1].Epoch }

// live returns the records from the first live number on.
func (l *modelLog) live() []logRecord {
	i := slices.IndexFunc(l.all, func(r logRecord) bool { return r.at >= l.first })
	if i < 0 {
		return nil
	}
	return l.all[i:]
}

func (l *modelLog) at(n int64) *logRecord {
	for i := range l.all {
		if l.all[i].at == n {
			return &l.all[i]
		}
	}
	return nil
}

// newModelLog makes a random log. Times run backwards now and then if they may.
func newModelLog(t *testing.T, seed uint64, backwards bool) *modelLog {
	t.Helper()
	l := &modelLog{rng: rand.New(rand.NewPCG(seed, 3)), epochs: []contract.EpochStart{{Epoch: 1}}}
	fsys := vfs.NewSim()
	var err error
	l.queues, err = cq.Open(fsys, "/q", cq.Options{FileSize: int64(20 * (1 + l.rng.IntN(7)))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.queues.Close() })
	at, phy, ms := l.rng.Int64N(12), int64(100), int64(1000)
	for range l.rng.IntN(14) {
		ms += []int64{0, 0, 1, 2, 10}[l.rng.IntN(5)]
		if backwards && l.rng.IntN(4) == 0 {
			ms -= l.rng.Int64N(20)
		}
		r := logRecord{at: at, phy: phy, time: ms, tag: []string{"", "Aa", "BB", "Aa", "z"}[l.rng.IntN(5)]}
		m := codec.Message{Magic: codec.MessageMagicV1, QueueOffset: at, PhysicalOffset: phy, StoreTimestamp: ms, Topic: []byte("t"),
			BornHost: make([]byte, 8), StoreHost: make([]byte, 8), Body: make([]byte, l.rng.IntN(60))}
		if r.tag != "" {
			m.Properties = tags(r.tag)
		}
		if r.raw, err = m.Append(nil); err != nil {
			t.Fatal(err)
		}
		r.size = len(r.raw)
		var v codec.MessageView
		if err := v.Parse(r.raw); err != nil {
			t.Fatal(err)
		}
		if err := l.queues.Apply(contract.RecordID{Epoch: 1, Offset: contract.Offset(phy), Length: int64(r.size)}, &v); err != nil {
			t.Fatal(err)
		}
		l.all = append(l.all, r)
		l.end = at + 1
		phy += int64(r.size) + l.rng.Int64N(3)*50
		if at++; l.rng.IntN(6) == 0 {
			at += 1 + l.rng.Int64N(9)
		}
	}
	if err := l.queues.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := l.queues.CorrectMin(0); err != nil {
		t.Fatal(err)
	}
	if l.first = l.end; len(l.all) > 0 {
		l.first = l.all[0].at
	}
	if len(l.all) > 0 && l.rng.IntN(3) == 0 {
		l.retire(t, l.rng.IntN(len(l.all)+1))
	}
	return l
}

// retire takes the first n records from the log and the queue.
func (l *modelLog) retire(t *testing.T, n int) {
	t.Helper()
	l.takeAway(n)
	var err error
	if l.rng.IntN(2) == 0 {
		err = l.queues.CorrectMin(contract.Offset(l.min))
	} else {
		err = l.queues.Flush()
		if err == nil {
			_, err = l.queues.DeleteExpired(contract.Offset(l.min))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	l.first = l.firstLeft()
}

// takeAway takes the first n records from the log alone.
func (l *modelLog) takeAway(n int) {
	l.min = 1 << 30
	if n < len(l.all) {
		l.min = l.all[n].phy
	}
}

func (l *modelLog) firstLeft() int64 {
	for _, r := range l.all {
		if r.phy >= l.min {
			return r.at
		}
	}
	return l.end
}

func (l *modelLog) getter() getter { return getter{log: l, queues: l.queues} }

// get is the model of Get.
func (l *modelLog) get(req Request) (status contract.GetStatus, next int64, got []int64) {
	switch cut, reset := l.cut(req); {
	case len(l.all) == 0:
		return contract.GetNoMatchedLogicQueue, 0, nil
	case cut && reset < req.Offset:
		return contract.GetOffsetReset, max(reset, l.first), nil
	case l.first == l.end:
		return contract.GetNoMessageInQueue, l.end, nil
	case req.Offset < l.first:
		return contract.GetOffsetTooSmall, l.first, nil
	case req.Offset == l.end:
		return contract.GetOffsetOverflowOne, l.end, nil
	case req.Offset > l.end:
		return contract.GetOffsetOverflowBadly, l.end, nil
	}
	status, next = contract.GetNoMatchedMessage, req.Offset
	size := 0
	for at := req.Offset; at < min(l.end, req.Offset+int64(req.MaxCount)); at++ {
		r := l.at(at)
		switch {
		case r == nil && len(got) == 0:
			status, next = contract.GetOffsetFoundNull, at+1
			continue
		case r == nil || status == contract.GetOffsetFoundNull:
			return status, next, got
		case req.Tag != "" && r.tag != req.Tag && (r.phy >= l.min || codec.JavaHashString(r.tag) != codec.JavaHashString(req.Tag)):
			if len(got) > 0 && req.MaxBytes > 0 && size+r.size > req.MaxBytes && codec.JavaHashString(r.tag) == codec.JavaHashString(req.Tag) {
				return status, next, got // It has to be read to be told apart.
			}
			next = at + 1
			continue
		case r.phy < l.min && next > req.Offset:
			return status, next, got
		case r.phy < l.min:
			return contract.GetMessageWasRemoving, l.firstLeft(), nil
		case len(got) > 0 && req.MaxBytes > 0 && size+r.size > req.MaxBytes:
			return status, next, got
		}
		status, next, size, got = contract.GetFound, at+1, size+r.size, append(got, at)
	}
	return status, next, got
}

// cut returns the first number whose record was written after the cut, if there
// was one since the request's epoch.
func (l *modelLog) cut(req Request) (bool, int64) {
	if req.Epoch == 0 || req.Epoch >= l.Epoch() {
		return false, 0
	}
	reset := l.first
	for _, r := range l.all {
		if r.at >= l.first && contract.Offset(r.phy) < l.epochs[1].Start {
			reset = r.at + 1
		}
	}
	return true, reset
}

// TestLookupModel holds Get against the model: by number, by tag, and with caps. All
// ten statuses come up.
func TestLookupModel(t *testing.T) {
	seen := map[contract.GetStatus]int{}
	var out Records
	for seed := range uint64(logsToTry()) {
		l := newModelLog(t, seed, false)
		if l.rng.IntN(4) == 0 {
			l.epochs = append(l.epochs, contract.EpochStart{Epoch: 2, Start: contract.Offset(l.rng.Int64N(2000))})
		}
		if len(l.all) > 0 && l.rng.IntN(4) == 0 {
			// The log lost its head, and the queue does not know yet.
			n := slices.IndexFunc(l.all, func(r logRecord) bool { return r.at >= l.first })
			if n >= 0 {
				l.takeAway(n + l.rng.IntN(len(l.all)-n+1))
			}
		}
		for range 4 {
			req := Request{Topic: "t", Offset: l.rng.Int64N(l.end + 4), MaxCount: 1 + l.rng.IntN(12), MaxBytes: l.rng.IntN(3) * l.rng.IntN(400),
				Tag: []string{"", "", "Aa", "BB", "z", "none"}[l.rng.IntN(6)], Epoch: contract.Epoch(l.rng.IntN(3))}
			status, next, want := l.get(req)
			if err := l.getter().get(context.Background(), req, &out); err != nil {
				t.Fatalf("seed %d: %+v: %v", seed, req, err)
			}
			var got []int64
			for i := range out.Len() {
				got = append(got, out.QueueOffset(i))
				if out.At(i).QueueOffset() != out.QueueOffset(i) {
					t.Fatalf("seed %d: %+v: record %d is number %d", seed, req, i, out.At(i).QueueOffset())
				}
			}
			if out.Status != status || out.Next != next || !slices.Equal(got, want) {
				t.Fatalf("seed %d: %+v over %s: %v, next %d, %v; the model says %v, next %d, %v",
					seed, req, l, out.Status, out.Next, got, status, next, want)
			}
			seen[status]++
			if status == contract.GetMessageWasRemoving {
				break // The queue knows now.
			}
		}
	}
	for _, s := range contract.GetStatuses() {
		if seen[s] == 0 {
			t.Errorf("%v was never the answer", s)
		}
	}
}

// String lists the log.
func (l *modelLog) String() string {
	s := fmt.Sprintf("[%d,%d) from %d, epochs %v:", l.first, l.end, l.min, l.epochs)
	for _, r := range l.all {
		s += fmt.Sprintf(" %d@%d+%d/%d%s", r.at, r.phy, r.size, r.time, r.tag)
	}
	return s
}

// byTime is the model of OffsetByTime.
func (l *modelLog) byTime(ms int64, bound TimeBound) int64 {
	answer := map[TimeBound]int64{LowerBound: l.end, UpperBound: l.first}[bound]
	for _, r := range l.live() {
		if bound == LowerBound && r.time >= ms {
			return r.at
		}
		if bound == UpperBound && r.time <= ms {
			answer = r.at
		}
	}
	return answer
}

// TestTimeModel holds OffsetByTime against the model, around every time there is.
func TestTimeModel(t *testing.T) {
	for seed := range uint64(logsToTry()) {
		l := newModelLog(t, seed, false)
		for _, ms := range l.times() {
			for _, bound := range []TimeBound{LowerBound, UpperBound} {
				got, err := l.getter().byTime(context.Background(), "t", 0, ms, bound)
				if want := l.byTime(ms, bound); err != nil || got != want {
					t.Fatalf("seed %d: %v of %d over %s: %d, %v, want %d", seed, bound, ms, l, got, err, want)
				}
			}
		}
	}
}

func (l *modelLog) times() []int64 {
	asked := []int64{-1 << 62, 0, 1 << 62}
	for _, r := range l.all {
		asked = append(asked, r.time-1, r.time, r.time+1)
	}
	return asked
}

// TestTimeBackwards: where times run backwards, the answer is a place at which
// they pass the one asked for, and in the queue's range.
func TestTimeBackwards(t *testing.T) {
	for seed := range uint64(logsToTry()) {
		l := newModelLog(t, seed, true)
		live := l.live()
		for _, ms := range l.times() {
			lower, err := l.getter().byTime(context.Background(), "t", 0, ms, LowerBound)
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
			upper, err := l.getter().byTime(context.Background(), "t", 0, ms, UpperBound)
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
	}
}

// TestIDModel: message ids name records by their place and host.
func TestIDModel(t *testing.T) {
	for seed := range uint64(logsToTry()) {
		l := newModelLog(t, seed, false)
		read := func(_ context.Context, off Offset, out *Record) (bool, error) { return l.Read(off, out) }
		for _, phy := range append([]int64{0, 99, 1 << 50}, l.places()...) {
			for _, host := range [][]byte{make([]byte, 8), {0, 0, 0, 1, 0, 0, 0, 0}, make([]byte, 20)} {
				r := slices.IndexFunc(l.all, func(r logRecord) bool { return r.phy == phy && phy >= l.min })
				var out Record
				found, err := byID(context.Background(), codec.MessageID(host, phy), &out, read)
				if want := r >= 0 && slices.Equal(host, make([]byte, 8)); err != nil || found != want || found && out.PhysicalOffset() != phy {
					t.Fatalf("seed %d: host %x, offset %d: %v, %v", seed, host, phy, found, err)
				}
			}
		}
	}
}

func (l *modelLog) places() (out []int64) {
	for _, r := range l.all {
		out = append(out, r.phy)
	}
	return out
}
