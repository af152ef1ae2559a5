package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/clock"
	"github.com/stratalog/stratalog/internal/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const segmentSize = 1000

// fakeLog is a log in memory, in segments with end marks.
type fakeLog struct {
	mu        sync.Mutex
	bytes     []byte // All of the log from 0.
	starts    []int  // Of records and end marks.
	min       contract.Offset
	confirmed contract.Offset
	durable   contract.Offset
	epochs    []contract.EpochStart
	grown     chan struct{}
	closed    bool
	next      int64

	// onRead, if set, may replace what ReadFrom returns.
	onRead func(off contract.Offset, b []byte) ([]byte, error)
	leases int
}

func newFakeLog() *fakeLog {
	return &fakeLog{
		grown:  make(chan struct{}),
		epochs: []contract.EpochStart{{Epoch: 1, Start: 0}},
	}
}

// put appends n records and shows them, durable or not.
func (f *fakeLog) put(t testing.TB, n int, durable bool) {
	t.Helper()
	f.mu.Lock()
	for range n {
		m := codec.Message{
			Magic: codec.MessageMagicV1, QueueOffset: f.next, BornHost: make([]byte, 8),
			StoreHost: make([]byte, 8), Topic: []byte("topic"), Body: fmt.Appendf(nil, "body %d", f.next),
		}
		f.next++
		if room := segmentSize - len(f.bytes)%segmentSize; m.Size()+codec.BlankSize > room {
			mark := codec.Blank{Size: int32(room)}
			b := make([]byte, room)
			if _, err := mark.Encode(b); err != nil {
				t.Fatal(err)
			}
			f.starts = append(f.starts, len(f.bytes))
			f.bytes = append(f.bytes, b...)
		}
		m.PhysicalOffset = int64(len(f.bytes))
		b := make([]byte, m.Size())
		if _, err := m.Encode(b); err != nil {
			t.Fatal(err)
		}
		f.starts = append(f.starts, len(f.bytes))
		f.bytes = append(f.bytes, b...)
	}
	f.mu.Unlock()
	f.show(contract.Offset(len(f.bytes)), durable)
}

func (f *fakeLog) show(end contract.Offset, durable bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.confirmed = max(f.confirmed, end)
	if durable {
		f.durable = max(f.durable, end)
	}
	close(f.grown)
	f.grown = make(chan struct{})
}

// cut drops the last n records and starts an epoch there.
func (f *fakeLog) cut(n int) contract.Offset {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.starts[len(f.starts)-n]
	f.starts = f.starts[:len(f.starts)-n]
	f.bytes = f.bytes[:at]
	end := contract.Offset(at)
	f.confirmed, f.durable = min(f.confirmed, end), min(f.durable, end)
	last := f.epochs[len(f.epochs)-1]
	f.epochs = append(slices.Clone(f.epochs), contract.EpochStart{Epoch: last.Epoch + 1, Start: end})
	return end
}

func (f *fakeLog) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	close(f.grown)
	f.grown = make(chan struct{})
}

type lease struct {
	f *fakeLog
	b []byte
}

func (l *lease) Bytes() []byte { return l.b }
func (l *lease) Release() {
	l.f.mu.Lock()
	l.f.leases--
	l.f.mu.Unlock()
}

func (f *fakeLog) ReadAt(contract.Offset, int32) (contract.Selection, error) {
	return nil, errors.New("not used")
}

func (f *fakeLog) ReadFrom(off contract.Offset, limit int) (contract.Selection, error) {
	f.mu.Lock()
	var b []byte
	if off >= f.min && off < f.confirmed {
		segmentEnd := (int(off)/segmentSize + 1) * segmentSize
		i, _ := slices.BinarySearch(f.starts, int(off))
		end := int(off)
		for ; i < len(f.starts); i++ {
			stop := len(f.bytes)
			if i+1 < len(f.starts) {
				stop = f.starts[i+1]
			}
			if stop > segmentEnd || stop > int(f.confirmed) || (end > int(off) && stop-int(off) > limit) {
				break
			}
			if _, magic, _ := codec.PeekMessage(f.bytes[f.starts[i]:]); magic == codec.BlankMagic {
				end = f.starts[i] + codec.BlankSize
				break
			}
			end = stop
		}
		b = f.bytes[off:end:end]
	}
	onRead := f.onRead
	f.mu.Unlock()
	if onRead != nil {
		var err error
		if b, err = onRead(off, b); err != nil {
			return nil, err
		}
	}
	if len(b) == 0 {
		return nil, nil
	}
	f.mu.Lock()
	f.leases++
	f.mu.Unlock()
	return &lease{f, b}, nil
}

func (f *fakeLog) get(p *contract.Offset) contract.Offset {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *p
}

func (f *fakeLog) MinOffset() contract.Offset { return f.get(&f.min) }
func (f *fakeLog) Confirmed() contract.Offset { return f.get(&f.confirmed) }
func (f *fakeLog) Durable() contract.Offset   { return f.get(&f.durable) }

func (f *fakeLog) Epochs() []contract.EpochStart {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.epochs
}

func (f *fakeLog) WaitConfirmed(ctx context.Context, beyond contract.Offset) error {
	for {
		f.mu.Lock()
		confirmed, grown, closed := f.confirmed, f.grown, f.closed
		f.mu.Unlock()
		if confirmed > beyond {
			return nil
		}
		if closed {
			return contract.ErrClosed
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fakeSink keeps the queue offset of every record by its place.
type fakeSink struct {
	lane contract.Lane

	mu      sync.Mutex
	pending map[int64]int64
	shown   map[int64]int64
	durable map[int64]int64
	applied int
	backs   []contract.Offset

	onApply  func(id contract.RecordID) error
	onCommit func() error
	onFlush  func() error
}

func newFakeSink(lane contract.Lane) *fakeSink {
	return &fakeSink{
		lane: lane, pending: map[int64]int64{}, shown: map[int64]int64{}, durable: map[int64]int64{},
	}
}

func (s *fakeSink) Lane() contract.Lane { return s.lane }

func (s *fakeSink) Apply(id contract.RecordID, rec *codec.MessageView) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onApply != nil {
		if err := s.onApply(id); err != nil {
			return err
		}
	}
	s.applied++
	s.pending[int64(id.Offset)] = rec.QueueOffset()
	return nil
}

func (s *fakeSink) Commit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onCommit != nil {
		if err := s.onCommit(); err != nil {
			clear(s.pending)
			return err
		}
	}
	for k, v := range s.pending {
		s.shown[k] = v
	}
	clear(s.pending)
	return nil
}

func (s *fakeSink) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onFlush != nil {
		if err := s.onFlush(); err != nil {
			return err
		}
	}
	clear(s.durable)
	for k, v := range s.shown {
		s.durable[k] = v
	}
	return nil
}

func (s *fakeSink) RollBack(to contract.Offset) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backs = append(s.backs, to)
	for _, m := range []map[int64]int64{s.pending, s.shown, s.durable} {
		for k := range m {
			if k >= int64(to) {
				delete(m, k)
			}
		}
	}
	return nil
}

// crash returns what a power cut leaves of the sink.
func (s *fakeSink) crash() *fakeSink {
	c := newFakeSink(s.lane)
	for k, v := range s.durable {
		c.shown[k], c.durable[k] = v, v
	}
	return c
}

func (s *fakeSink) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// holds fails unless the sink shows exactly the records of the log in [min, end).
func (s *fakeSink) holds(t testing.TB, f *fakeLog, from, end contract.Offset) {
	t.Helper()
	f.mu.Lock()
	want := map[int64]int64{}
	for _, at := range f.starts {
		var v codec.MessageView
		if err := v.Parse(f.bytes[at:]); err == nil && at >= int(from) && at < int(end) {
			want[int64(at)] = v.QueueOffset()
		}
	}
	f.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(want) != len(s.shown) {
		t.Fatalf("sink shows %d records, want %d", len(s.shown), len(want))
	}
	for k, v := range want {
		if got, ok := s.shown[k]; !ok || got != v {
			t.Fatalf("record at %d: %d, %v; want %d", k, got, ok, v)
		}
	}
}

// memCursors is a CursorStore in memory.
type memCursors struct {
	mu     sync.Mutex
	table  map[contract.Lane]contract.Cursor
	broken error
	saves  int
	onSave func(contract.Cursor) error
}

func newMemCursors() *memCursors {
	return &memCursors{table: map[contract.Lane]contract.Cursor{}}
}

func (m *memCursors) LoadCursor(lane contract.Lane) (contract.Cursor, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.table[lane]
	return c, ok, m.broken
}

func (m *memCursors) SaveCursor(c contract.Cursor) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.onSave != nil {
		if err := m.onSave(c); err != nil {
			return err
		}
	}
	m.saves++
	m.table[c.Lane] = c
	return nil
}

func (m *memCursors) get(lane contract.Lane) contract.Cursor {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.table[lane]
}

// rig is a dispatcher with everything around it.
type rig struct {
	t       *testing.T
	log     *fakeLog
	cursors *memCursors
	clock   *clock.Manual
	d       *Dispatcher
	group   *task.Group
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, log: newFakeLog(), cursors: newMemCursors(), clock: clock.NewManual(time.Unix(1, 0))}
	r.renew()
	t.Cleanup(func() {
		r.stop()
		if r.log.leases != 0 {
			t.Errorf("%d leases were not given back", r.log.leases)
		}
	})
	return r
}

// renew makes another dispatcher over the same log and cursors.
func (r *rig) renew() {
	r.d = New(r.log, r.cursors, r.clock, Options{BatchBytes: 300})
}

func (r *rig) add(s Sink, opts LaneOptions) OpenReport {
	r.t.Helper()
	report, err := r.d.Add(s, opts)
	if err != nil {
		r.t.Fatal(err)
	}
	return report
}

func (r *rig) start() {
	r.t.Helper()
	r.group = task.New("test")
	if err := r.d.Start(r.group); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) stop() {
	if r.group != nil {
		r.group.Close(context.Background())
		r.group = nil
	}
}

func (r *rig) catchUp() []CatchUpReport {
	r.t.Helper()
	reports, err := r.d.CatchUp(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	return reports
}

// until polls with growing virtual time until cond holds.
func (r *rig) until(what string, cond func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			r.t.Fatalf("waited in vain: %s; %+v", what, r.d.Lanes())
		}
		r.clock.Advance(20 * time.Millisecond)
		time.Sleep(100 * time.Microsecond)
	}
}

func (r *rig) status(lane contract.Lane) LaneStatus {
	r.t.Helper()
	s, err := r.d.Status(lane)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}
