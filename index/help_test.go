package index

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/clock"
	"github.com/stratalog/stratalog/internal/vfs"
)

const dir = "/store/index"

// record is a message as the lane sees it.
type record struct {
	topic, unique, keys, tags string
	phy, time                 int64
	flag                      codec.SysFlag
	bytes                     []byte
}

func (r *record) encode(t testing.TB) []byte {
	t.Helper()
	if r.bytes != nil {
		return r.bytes
	}
	m := codec.Message{Magic: codec.MessageMagicFor(len(r.topic)), PhysicalOffset: r.phy, SysFlag: r.flag, BornHost: make([]byte, 8),
		StoreHost: make([]byte, 8), StoreTimestamp: r.time, Topic: []byte(r.topic), Body: []byte("body")}
	for _, p := range [][2]string{{"UNIQ_KEY", r.unique}, {"KEYS", r.keys}, {"TAGS", r.tags}} {
		if p[1] != "" {
			m.Properties = codec.AppendProperty(m.Properties, p[0], p[1])
		}
	}
	r.bytes = make([]byte, m.Size())
	if _, err := m.Encode(r.bytes); err != nil {
		t.Fatal(err)
	}
	return r.bytes
}

func (r *record) view(t testing.TB) *codec.MessageView {
	t.Helper()
	var v codec.MessageView
	must(t, v.Parse(r.encode(t)))
	return &v
}

func (r *record) apply(t testing.TB, s *Store) error {
	v := r.view(t)
	return s.Apply(contract.RecordID{Epoch: 1, Offset: contract.Offset(r.phy), Length: int64(len(r.bytes))}, v)
}

// has is the model of a match.
func (r *record) has(q Query) bool {
	if q.To == 0 {
		q.To = 1 << 62
	}
	if r.topic != q.Topic || r.time < q.From || r.time > q.To || r.flag == codec.SysFlagTransactionRollback {
		return false
	}
	if q.Tag {
		return q.Key == r.tags
	}
	return q.Key == r.unique || slices.Contains(strings.Split(r.keys, " "), q.Key)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// small are the sizes of the tests' files.
func small() Options {
	return Options{Slots: 7, Entries: 12, Clock: clock.NewManual(time.Date(2026, 11, 30, 8, 30, 0, 0, time.UTC))}
}

func newSim(t testing.TB) *vfs.Sim {
	t.Helper()
	sim := vfs.NewSim()
	must(t, sim.MkdirAll("/store"))
	must(t, sim.SyncDir("/"))
	return sim
}

func mustOpen(t testing.TB, fsys vfs.FS, opts Options) *Store {
	t.Helper()
	s, err := Open(fsys, dir, opts)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// noLower fails the test where nothing may have to be replayed.
func noLower(t testing.TB) func(contract.Offset, int64) error {
	return func(to contract.Offset, tally int64) error {
		t.Helper()
		t.Fatalf("lowered to %d, %d", to, tally)
		return nil
	}
}

func mustApply(t testing.TB, s *Store, records ...*record) {
	t.Helper()
	for _, r := range records {
		must(t, r.apply(t, s))
	}
	must(t, s.Commit())
}

// log is a history of records.
type log struct {
	rng     *rand.Rand
	records []*record
	phy     int64
	time    int64
}

func newLog(rng *rand.Rand, start int64) *log {
	return &log{rng: rng, phy: start, time: 1_700_000_000_123}
}

var (
	topics = []string{"T", "Aa", "BB", "ünï😀"}
	words  = []string{"Aa", "BB", "k1", "k2", "Aa#", "x", "long-key-of-some-length", "schlüssel", "𝄞"}
)

func (l *log) pick(all []string) string { return all[l.rng.IntN(len(all))] }

// grow adds a record. Times stand still, creep and jump.
func (l *log) grow() *record {
	switch l.rng.IntN(4) {
	case 0:
		l.time += l.rng.Int64N(3)
	case 1:
		l.time += l.rng.Int64N(2500)
	}
	r := &record{topic: l.pick(topics), phy: l.phy, time: l.time}
	switch l.rng.IntN(8) {
	case 0: // No key at all.
	case 1:
		r.unique, r.keys = l.pick(words), l.pick(words)+" "+l.pick(words)+"  "+l.pick(words)
	case 2:
		r.keys = " "
	case 3:
		r.keys, r.flag = l.pick(words), []codec.SysFlag{codec.SysFlagTransactionPrepared, codec.SysFlagTransactionCommit, codec.SysFlagTransactionRollback}[l.rng.IntN(3)]
	case 4:
		r.unique = fmt.Sprintf("u%d", l.phy)
	default:
		r.keys, r.tags = l.pick(words), l.pick([]string{"", "t1", "t2"})
	}
	if l.rng.IntN(200) == 0 {
		r.keys = strings.Repeat("same ", 1+l.rng.IntN(30)) // More than a file holds.
	}
	l.records = append(l.records, r)
	l.phy += int64(200 + l.rng.IntN(3)*1000)
	return r
}

func (l *log) at(phy int64) *record {
	i, ok := slices.BinarySearchFunc(l.records, phy, func(r *record, phy int64) int { return int(min(max(r.phy-phy, -1), 1)) })
	if !ok {
		return nil
	}
	return l.records[i]
}

func (l *log) storeTime(off contract.Offset) (int64, bool, error) {
	if r := l.at(int64(off)); r != nil {
		return r.time, true, nil
	}
	return 0, false, nil
}

// model is what a query must give: the places of the matches, newest first.
func (l *log) model(q Query, from, below int64) []int64 {
	var out []int64
	for _, r := range slices.Backward(l.records) {
		if r.has(q) && r.phy >= from && r.phy < below {
			out = append(out, r.phy)
		}
	}
	return out
}

// reader is a Visitor over a log.
type reader struct {
	t    testing.TB
	l    *log
	q    Query
	from int64
	most int
	out  []int64
	// misses counts entries of other keys.
	misses int
	// loose takes entries that lead nowhere, as behind what is vouched for.
	loose     bool
	looseFrom int64
}

var errNoRecord = errors.New("an entry leads to no record")

func (r *reader) Visit(c Candidate) (bool, error) {
	rec := r.l.at(int64(c.Offset))
	switch {
	case int64(c.Offset) < r.from:
		return false, nil
	case rec == nil && r.loose && int64(c.Offset) >= r.looseFrom:
		return true, nil
	case rec == nil:
		return false, errNoRecord
	}
	q := r.q
	if q.To == 0 {
		q.To = 1 << 62
	}
	if !Matches(rec.view(r.t), q.Topic, q.Key, q.Tag) || rec.time < q.From || rec.time > q.To {
		r.misses++
		return true, nil
	}
	r.out = append(r.out, rec.phy)
	return len(r.out)%r.most != 0, nil
}

// query asks, in pieces of most records, until the end.
func query(t testing.TB, s *Store, l *log, q Query, from int64, most int) ([]int64, error) {
	t.Helper()
	r := &reader{t: t, l: l, q: q, from: from, most: most, loose: s.view.exact, looseFrom: s.view.limit}
	var at Position
	for range 100_000 {
		next, done, err := s.Search(context.Background(), q, at, r)
		if err != nil || done {
			return r.out, err
		}
		if n := len(r.out); n > 0 && r.out[n-1] < from {
			return r.out, nil
		}
		at = next
		if from > 0 && done {
			break
		}
	}
	t.Fatal("the search does not end")
	return nil, nil
}

// verify compares every query of the store with the model.
func (l *log) verify(t testing.TB, s *Store, from, below int64) {
	t.Helper()
	for _, topic := range topics {
		for _, key := range append(words, "same", "", "u0") {
			l.check(t, s, Query{Topic: topic, Key: key}, from, below)
		}
	}
	if n := len(l.records); n > 0 {
		r := l.records[l.rng.IntN(n)]
		l.check(t, s, Query{Topic: r.topic, Key: r.unique}, from, below)
		l.check(t, s, Query{Topic: r.topic, Key: "x", From: r.time, To: r.time + l.rng.Int64N(3000)}, from, below)
	}
}

func (l *log) check(t testing.TB, s *Store, q Query, from, below int64) {
	t.Helper()
	if q.Key == "" {
		return
	}
	got, err := query(t, s, l, q, from, 1+l.rng.IntN(5))
	must(t, err)
	got = slices.DeleteFunc(got, func(phy int64) bool { return phy < from })
	if want := l.model(q, from, below); !slices.Equal(got, want) {
		t.Fatalf("%+v in [%d,%d): %v, want %v", q, from, below, got, want)
	}
}

// verifyBelow compares what lies below a place with the model; what lies above
// may be found or not, but must match.
func (l *log) verifyBelow(t testing.TB, s *Store, below int64) {
	t.Helper()
	for _, topic := range topics {
		for _, key := range words {
			q := Query{Topic: topic, Key: key}
			for _, most := range []int{1, 3, 1000} {
				got, err := query(t, s, l, q, 0, most)
				must(t, err)
				all := l.model(q, 0, l.phy)
				for i, phy := range got {
					if !slices.Contains(all, phy) || i > 0 && phy >= got[i-1] {
						t.Fatalf("%+v: %v, of %v", q, got, all)
					}
				}
				got = slices.DeleteFunc(got, func(phy int64) bool { return phy >= below })
				if want := l.model(q, 0, below); !slices.Equal(got, want) {
					t.Fatalf("%+v below %d: %v, want %v", q, below, got, want)
				}
			}
		}
	}
}

// contents returns what the files hold, in order, without their names.
func contents(t testing.TB, fsys vfs.FS) [][]byte {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out [][]byte
	for _, e := range entries {
		out = append(out, readAll(t, fsys, path.Join(dir, e.Name)))
	}
	return out
}

func readAll(t testing.TB, fsys vfs.FS, name string) []byte {
	t.Helper()
	f, err := fsys.Open(name, vfs.ReadOnly)
	must(t, err)
	info, err := f.Stat()
	must(t, err)
	b := make([]byte, info.Size)
	n, err := f.ReadAt(b, 0)
	if n != len(b) {
		t.Fatalf("read %s: %d, %v", name, n, err)
	}
	must(t, f.Close())
	return b
}

// rebuild is what the records in [from, below) give.
func (l *log) rebuild(t testing.TB, opts Options, from, below int64) [][]byte {
	t.Helper()
	sim := newSim(t)
	s, err := Open(sim, dir, opts)
	must(t, err)
	for _, r := range l.records {
		if r.phy >= from && r.phy < below {
			must(t, r.apply(t, s))
		}
	}
	must(t, s.Commit())
	must(t, s.Flush())
	must(t, s.Close())
	return contents(t, sim)
}

func sameContents(t testing.TB, got, want [][]byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d files, want %d", len(got), len(want))
	}
	for i := range got {
		if string(got[i]) != string(want[i]) {
			for k := range got[i] {
				if got[i][k] != want[i][k] {
					t.Fatalf("file %d of %d differs at byte %d of %d: %x, want %x", i, len(got), k, len(got[i]), got[i][k], want[i][k])
				}
			}
		}
	}
}
