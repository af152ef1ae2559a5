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
// modelLogs random logs of one queue, of each kind: with jumps in the numbers, a
// retired head, equal times and tags with equal hashes. Each test counts which
// boundaries it came to, and must have come to all.

const modelLogs = 10_000

// queueKind is what kind of queue a random log has.
type queueKind string

const (
	plainQueue    queueKind = "plain"
	extendedQueue queueKind = "extended"
	lightQueue    queueKind = "light"
	batchQueue    queueKind = "batch"
)

// eachKind runs a test with each kind of queue.
func eachKind(t *testing.T, f func(*testing.T, queueKind)) {
	for _, kind := range []queueKind{plainQueue, extendedQueue, lightQueue, batchQueue} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			f(t, kind)
		})
	}
}

// reached counts the boundaries that a test came to.
type reached map[string]int

// at counts a boundary if the test is there.
func (r reached) at(what string, there bool) {
	if there {
		r[what]++
	}
}

// all fails the test for each boundary that it did not come to.
func (r reached) all(t *testing.T, what ...string) {
	t.Helper()
	for _, name := range what {
		if r[name] == 0 {
			t.Errorf("never reached: %s", name)
		}
	}
}

func logsToTry() int {
	if testing.Short() {
		return modelLogs / 20
	}
	return modelLogs
}

// logRecord is a record of the queue; a number without one is blank. It takes n
// numbers: more than one in a batch queue.
type logRecord struct {
	at, n, phy, time int64
	size             int
	tag              string
	raw              []byte
}

// modelLog is a log in memory. It implements logReader.
type modelLog struct {
	rng    *rand.Rand
	kind   queueKind
	topic  string // Of the queue.
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
func newModelLog(t *testing.T, seed uint64, kind queueKind, backwards bool) *modelLog {
	t.Helper()
	l := &modelLog{rng: rand.New(rand.NewPCG(seed, 3)), kind: kind, topic: "t", epochs: []contract.EpochStart{{Epoch: 1}}}
	if kind == lightQueue {
		l.topic = "%LMQ%q"
	}
	var err error
	l.queues, err = cq.Open(vfs.NewSim(), "/q", cq.Options{FileSize: int64(20 * (1 + l.rng.IntN(7))), ExtWrite: kind == extendedQueue,
		ExtFileSize: 60, BatchFileSize: int64(46 * (1 + l.rng.IntN(4)))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.queues.Close() })
	at, phy, ms := l.rng.Int64N(12), int64(100), int64(1000)
	for i := range l.rng.IntN(14) {
		ms += []int64{0, 0, 1, 2, 10}[l.rng.IntN(5)]
		if backwards && l.rng.IntN(4) == 0 {
			ms -= l.rng.Int64N(20)
		}
		r := logRecord{at: at, n: 1, phy: phy, time: ms, tag: []string{"", "Aa", "BB", "Aa", "z"}[l.rng.IntN(5)]}
		if kind == batchQueue {
			r.n = 1 + l.rng.Int64N(4)
		}
		l.write(t, i, &r)
		l.all = append(l.all, r)
		l.end = at + r.n
		phy += int64(r.size) + l.rng.Int64N(3)*50
		if at += r.n; kind != batchQueue && l.rng.IntN(6) == 0 {
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

// write makes the bytes of the i-th record and puts it into the queue.
func (l *modelLog) write(t *testing.T, i int, r *logRecord) {
	t.Helper()
	m := codec.Message{Magic: codec.MessageMagicV1, QueueOffset: r.at, PhysicalOffset: r.phy, StoreTimestamp: r.time, Topic: []byte("t"),
		BornHost: make([]byte, 8), StoreHost: make([]byte, 8), Body: make([]byte, l.rng.IntN(60))}
	if r.tag != "" {
		m.Properties = tags(r.tag)
	}
	switch l.kind {
	case lightQueue:
		m.QueueOffset = int64(i) // In the queue of its own topic.
		m.Properties = codec.AppendProperty(m.Properties, codec.PropertyMultiDispatch, "%LMQ%other,"+l.topic)
		m.Properties = codec.AppendProperty(m.Properties, codec.PropertyMultiOffsets, fmt.Sprintf("%d,%d", i, r.at))
	case batchQueue:
		m.SysFlag = codec.SysFlagInnerBatch
		m.Properties = codec.AppendProperty(m.Properties, codec.PropertyInnerNumber, fmt.Sprint(r.n))
		m.Properties = codec.AppendProperty(m.Properties, codec.PropertyInnerBase, fmt.Sprint(r.at))
	}
	var err error
	var v codec.MessageView
	if r.raw, err = m.Append(nil); err == nil {
		err = v.Parse(r.raw)
	}
	if r.size = len(r.raw); err == nil {
		err = l.queues.Apply(contract.RecordID{Epoch: 1, Offset: contract.Offset(r.phy), Length: int64(r.size)}, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
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

// get is the model of Get, but for records below the log's start. It notes in been
// where it came to.
func (l *modelLog) get(req Request, been reached) (status contract.GetStatus, next int64, got []logRecord) {
	switch cut, reset := l.cut(req); {
	case len(l.all) == 0:
		return contract.GetNoMatchedLogicQueue, 0, nil
	case cut && reset < req.Offset:
		return contract.GetOffsetReset, max(reset, l.first), nil
	case l.first == l.end:
		return contract.GetNoMessageInQueue, l.end, nil
	case req.Offset < l.first:
		been.at("one below the first", req.Offset == l.first-1)
		return contract.GetOffsetTooSmall, l.first, nil
	case req.Offset == l.end:
		return contract.GetOffsetOverflowOne, l.end, nil
	case req.Offset > l.end:
		been.at("one beyond the end", req.Offset == l.end+1)
		return contract.GetOffsetOverflowBadly, l.end, nil
	}
	been.at("at the first", req.Offset == l.first)
	been.at("at the last", req.Offset == l.end-1)
	been.at("at a cut", req.Offset > l.first && l.cutAt(req) == req.Offset)
	if l.kind == batchQueue {
		return l.getBatch(req, been)
	}
	status, next = contract.GetNoMatchedMessage, req.Offset
	size := 0
	for at := req.Offset; at < min(l.end, req.Offset+int64(req.MaxCount)); at++ {
		r := l.at(at)
		alike := r != nil && (l.kind == extendedQueue || codec.JavaHashString(r.tag) == codec.JavaHashString(req.Tag))
		full := r != nil && len(got) > 0 && req.MaxBytes > 0 && size+r.size > req.MaxBytes
		switch {
		case r == nil && len(got) == 0:
			been.at("blank in front", true)
			status, next = contract.GetOffsetFoundNull, at+1
			continue
		case r == nil || status == contract.GetOffsetFoundNull:
			been.at("blank behind", r == nil)
			return status, next, got
		case req.Tag != "" && r.tag != req.Tag && (r.phy >= l.min || !alike):
			if full && alike {
				been.at("a tag like it does not fit", true)
				return status, next, got // It has to be read to be told apart.
			}
			been.at("a tag of equal hash", codec.JavaHashString(r.tag) == codec.JavaHashString(req.Tag))
			been.at("another tag", !alike)
			next = at + 1
			continue
		case r.phy < l.min && next > req.Offset:
			been.at("retired behind others", true)
			return status, next, got
		case r.phy < l.min:
			return contract.GetMessageWasRemoving, l.firstLeft(), nil
		case full:
			been.at("one byte too many", size+r.size == req.MaxBytes+1)
			return status, next, got
		}
		status, next, size, got = contract.GetFound, at+1, size+r.size, append(got, *r)
		l.noteSize(req, size, len(got), been)
	}
	been.at("the count ends it", next < l.end && next == req.Offset+int64(req.MaxCount))
	been.at("the end ends it", next == l.end)
	return status, next, got
}

func (l *modelLog) noteSize(req Request, size, n int, been reached) {
	been.at("bytes to the last one", size == req.MaxBytes && n > 1)
	been.at("one larger than the bytes", req.MaxBytes > 0 && size > req.MaxBytes)
}

// getBatch is the model of Get at an offset in a batch queue's range.
func (l *modelLog) getBatch(req Request, been reached) (status contract.GetStatus, next int64, got []logRecord) {
	status, next = contract.GetNoMatchedMessage, req.Offset
	size, numbers, looked := 0, 0, 0
	for _, r := range l.all {
		alike := codec.JavaHashString(r.tag) == codec.JavaHashString(req.Tag)
		full := req.MaxBytes > 0 && size+r.size > req.MaxBytes
		switch {
		case r.at+r.n <= req.Offset:
			continue
		case looked == req.MaxCount:
			been.at("the count of records ends it", true)
			return status, next, got
		case req.Tag != "" && !alike:
			been.at("another tag", true)
		case len(got) > 0 && (numbers+int(r.n) > req.MaxCount || full):
			been.at("the count ends it", !full && numbers < req.MaxCount)
			been.at("the count is reached", numbers == req.MaxCount)
			been.at("one byte too many", size+r.size == req.MaxBytes+1)
			return status, next, got
		case r.phy < l.min && next > req.Offset:
			been.at("retired behind others", true)
			return status, next, got
		case r.phy < l.min:
			return contract.GetMessageWasRemoving, l.firstLeft(), nil
		case req.Tag != "" && r.tag != req.Tag:
			been.at("a tag of equal hash", true)
		default:
			been.at("inside of a batch", r.at < req.Offset)
			been.at("a batch larger than the count", r.n > int64(req.MaxCount))
			status, size, numbers, got = contract.GetFound, size+r.size, numbers+int(r.n), append(got, r)
			l.noteSize(req, size, len(got), been)
		}
		next, looked = r.at+r.n, looked+1
	}
	been.at("the end ends it", next == l.end)
	return status, next, got
}

// cut returns the first number whose record was written after the cut, if there
// was one since the request's epoch.
func (l *modelLog) cut(req Request) (bool, int64) {
	if req.Epoch == 0 || req.Epoch >= l.Epoch() {
		return false, 0
	}
	return true, l.cutAt(req)
}

func (l *modelLog) cutAt(req Request) int64 {
	if len(l.epochs) < 2 || req.Epoch != 1 {
		return -1
	}
	reset := l.first
	for _, r := range l.all {
		if r.at >= l.first && contract.Offset(r.phy) < l.epochs[1].Start {
			reset = r.at + r.n
		}
	}
	return reset
}

// request asks for something, mostly near a boundary.
func (l *modelLog) request() Request {
	req := Request{Topic: l.topic, Offset: l.rng.Int64N(l.end + 4), MaxCount: 1 + l.rng.IntN(12), MaxBytes: l.rng.IntN(3) * l.rng.IntN(400),
		Tag: []string{"", "", "Aa", "BB", "z", "none"}[l.rng.IntN(6)], Epoch: contract.Epoch(l.rng.IntN(3))}
	if l.rng.IntN(2) == 0 || len(l.all) < 2 {
		return req
	}
	// Just enough bytes for some records, or one too few.
	req.MaxBytes, req.MaxCount = -l.rng.IntN(2), 12
	i := l.rng.IntN(len(l.all) - 1)
	for _, r := range l.all[i : i+2+l.rng.IntN(len(l.all)-i-1)] {
		req.MaxBytes += r.size
	}
	req.Offset = l.all[i].at + l.rng.Int64N(l.all[i].n)
	return req
}

// TestLookupModel holds Get against the model: by number, by tag, and with caps. All
// ten statuses come up.
func TestLookupModel(t *testing.T) {
	eachKind(t, func(t *testing.T, kind queueKind) {
		been := reached{}
		for seed := range uint64(logsToTry()) {
			lookUp(t, seed, newModelLog(t, seed, kind, false), been)
		}
		for _, s := range contract.GetStatuses() {
			if kind != batchQueue || s != contract.GetOffsetFoundNull { // There are no blank units.
				been.all(t, s.String())
			}
		}
		been.all(t, "one below the first", "at the first", "at the last", "one beyond the end", "at a cut", "a tag of equal hash",
			"one byte too many", "bytes to the last one", "one larger than the bytes", "the count ends it", "the end ends it")
		switch kind {
		case batchQueue:
			been.all(t, "another tag", "retired behind others", "inside of a batch", "a batch larger than the count", "the count of records ends it", "the count is reached")
		case extendedQueue:
			been.all(t, "blank in front", "blank behind", "a tag like it does not fit")
		default:
			been.all(t, "another tag", "retired behind others", "blank in front", "blank behind", "a tag like it does not fit")
		}
	})
}

func lookUp(t *testing.T, seed uint64, l *modelLog, been reached) {
	t.Helper()
	if l.rng.IntN(4) == 0 {
		l.epochs = append(l.epochs, contract.EpochStart{Epoch: 2, Start: contract.Offset(l.rng.Int64N(2000))})
	}
	l.loseHead()
	var out Records
	for range 4 {
		req := l.request()
		status, next, want := l.get(req, been)
		if err := l.getter().get(context.Background(), req, &out); err != nil {
			t.Fatalf("seed %d: %+v over %s: %v", seed, req, l, err)
		}
		same := out.Len() == len(want)
		for i := 0; same && i < out.Len(); i++ {
			same = out.QueueOffset(i) == want[i].at && slices.Equal(out.At(i).Bytes(), want[i].raw)
		}
		if out.Status != status || out.Next != next || !same {
			t.Fatalf("seed %d: %+v over %s: %v, next %d, %d records; the model says %v, next %d, %d records",
				seed, req, l, out.Status, out.Next, out.Len(), status, next, len(want))
		}
		been.at(status.String(), true)
		if status == contract.GetMessageWasRemoving {
			break // The queue knows now.
		}
	}
}

// loseHead has the log lose its head, now and then, and the queue not know yet.
func (l *modelLog) loseHead() bool {
	n := slices.IndexFunc(l.all, func(r logRecord) bool { return r.at >= l.first })
	if n < 0 || l.rng.IntN(4) != 0 {
		return false
	}
	l.takeAway(n + l.rng.IntN(len(l.all)-n+1))
	return true
}

// String lists the log.
func (l *modelLog) String() string {
	s := fmt.Sprintf("[%d,%d) from %d, epochs %v:", l.first, l.end, l.min, l.epochs)
	for _, r := range l.all {
		s += fmt.Sprintf(" %d+%d@%d+%d/%d%s", r.at, r.n, r.phy, r.size, r.time, r.tag)
	}
	return s
}
