package cq

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// entry is a record as a lane sees it.
type entry struct {
	topic string
	queue int32
	at    int64
	phy   int64
	size  int32
	flag  codec.SysFlag
	tag   string
}

func (e entry) unit() codec.QueueUnit {
	u := codec.QueueUnit{PhysicalOffset: e.phy, Size: e.size}
	if e.tag != "" {
		u.TagsCode = int64(codec.JavaHashString(e.tag))
	}
	return u
}

func (e entry) end() int64 { return e.phy + int64(e.size) }

type key struct {
	topic string
	queue int32
}

func (e entry) key() key { return key{e.topic, e.queue} }

// encode returns the record's bytes and sets its size.
func (e *entry) encode(t testing.TB) []byte {
	t.Helper()
	m := codec.Message{
		Magic: codec.MessageMagicFor(len(e.topic)), QueueID: e.queue, QueueOffset: e.at, PhysicalOffset: e.phy,
		SysFlag: e.flag, BornHost: make([]byte, 8), StoreHost: make([]byte, 8), StoreTimestamp: 1,
		Topic: []byte(e.topic), Body: []byte("body"),
	}
	if e.tag != "" {
		m.Properties = codec.AppendProperty(nil, "TAGS", e.tag)
	}
	b := make([]byte, m.Size())
	if _, err := m.Encode(b); err != nil {
		t.Fatalf("encode: %v", err)
	}
	e.size = int32(len(b))
	return b
}

func (e *entry) apply(t testing.TB, s *Store) error {
	t.Helper()
	var v codec.MessageView
	if err := v.Parse(e.encode(t)); err != nil {
		t.Fatalf("parse: %v", err)
	}
	return s.Apply(contract.RecordID{Epoch: 1, Offset: contract.Offset(e.phy), Length: int64(e.size)}, &v)
}

func mustApply(t testing.TB, s *Store, entries ...entry) {
	t.Helper()
	for i := range entries {
		if err := entries[i].apply(t, s); err != nil {
			t.Fatalf("apply %+v: %v", entries[i], err)
		}
	}
	must(t, s.Commit())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustOpen(t testing.TB, fsys vfs.FS, opts Options) *Store {
	t.Helper()
	s, err := Open(fsys, "/store/consumequeue", opts)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func newSim(t testing.TB) *vfs.Sim {
	t.Helper()
	sim := vfs.NewSim()
	must(t, sim.MkdirAll("/store"))
	must(t, sim.SyncDir("/"))
	return sim
}

// history is a log of records, some of them of no queue of ours.
type history struct {
	rng     *rand.Rand
	entries []entry
	next    map[key]int64
	phy     int64
	jumps   bool
}

func newHistory(rng *rand.Rand, start int64, jumps bool) *history {
	return &history{rng: rng, next: make(map[key]int64), phy: start, jumps: jumps}
}

func (h *history) grow(t testing.TB) entry {
	k := key{fmt.Sprintf("topic%d", h.rng.IntN(3)), int32(h.rng.IntN(2))}
	at, ok := h.next[k]
	if !ok && h.rng.IntN(2) == 0 {
		at = h.rng.Int64N(100)
	}
	if h.jumps && h.rng.IntN(40) == 0 {
		at += 1 + h.rng.Int64N(70)
	}
	h.next[k] = at + 1
	h.phy += h.rng.Int64N(3) / 2 * 1_000_003
	e := entry{topic: k.topic, queue: k.queue, at: at, phy: h.phy, tag: fmt.Sprintf("t%d", h.rng.IntN(5))}
	e.encode(t)
	h.phy = e.end()
	h.entries = append(h.entries, e)
	return e
}

func (h *history) check() Check {
	all := make(map[int64]entry, len(h.entries))
	for _, e := range h.entries {
		all[e.phy] = e
	}
	return func(topic string, queue int32, offset int64, u codec.QueueUnit) (bool, error) {
		e, ok := all[u.PhysicalOffset]
		return ok && e.topic == topic && e.queue == queue && e.at == offset && e.unit() == u, nil
	}
}

// verify compares the store with what the records at or above logMin give.
func (h *history) verify(t testing.TB, s *Store, logMin int64) {
	t.Helper()
	live := make(map[key][]entry)
	for _, e := range h.entries {
		if e.phy >= logMin {
			live[e.key()] = append(live[e.key()], e)
		}
	}
	for topic := range 3 {
		for queue := range int32(2) {
			k := key{fmt.Sprintf("topic%d", topic), queue}
			verifyQueue(t, s, k, live[k])
		}
	}
}

func verifyQueue(t testing.TB, s *Store, k key, want []entry) {
	t.Helper()
	lo, hi := s.Min(k.topic, k.queue), s.Max(k.topic, k.queue)
	if len(want) == 0 {
		if lo != hi {
			t.Fatalf("%v: [%d,%d), want none", k, lo, hi)
		}
		return
	}
	if lo != want[0].at || hi != want[len(want)-1].at+1 {
		t.Fatalf("%v: [%d,%d), want [%d,%d)", k, lo, hi, want[0].at, want[len(want)-1].at+1)
	}
	got := make([]codec.QueueUnit, hi-lo)
	n, err := s.Units(k.topic, k.queue, lo, got)
	if err != nil || n != len(got) {
		t.Fatalf("%v: %d of %d units: %v", k, n, len(got), err)
	}
	expect := make([]codec.QueueUnit, len(got))
	for i := range expect {
		expect[i] = codec.QueueUnit{Size: codec.QueueUnitBlankSize}
	}
	for _, e := range want {
		expect[e.at-lo] = e.unit()
	}
	if !slices.Equal(got, expect) {
		for i := range got {
			if got[i] != expect[i] {
				t.Fatalf("%v: unit %d is %+v, want %+v", k, lo+int64(i), got[i], expect[i])
			}
		}
	}
}

// readAll returns the content of a file.
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

func overwrite(t testing.TB, fsys vfs.FS, name string, at int64, b []byte) {
	t.Helper()
	f, err := fsys.Open(name, vfs.ReadWrite)
	must(t, err)
	_, err = f.WriteAt(b, at)
	must(t, err)
	must(t, f.Sync())
	must(t, f.Close())
}

func setLength(t testing.TB, fsys vfs.FS, name string, n int64) {
	t.Helper()
	f, err := fsys.Open(name, vfs.ReadWrite|vfs.Create)
	must(t, err)
	must(t, f.Truncate(n))
	must(t, f.Sync())
	must(t, f.Close())
}

func blankUnits(n int) []byte {
	one := []byte{0, 0, 0, 0, 0, 0, 0, 0, 0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0}
	return bytes.Repeat(one, n)
}
