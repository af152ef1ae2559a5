package dump

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/internal/vfs"
)

// memFile is a file in memory, for reading.
type memFile struct {
	vfs.File // nil: nothing else may be called
	name     string
	size     int64
	read     func(p []byte, off int64)
	// reads counts bytes, largest is the longest read.
	reads   int64
	largest int
	// again, unless nil, is what the file holds from the second read on.
	again []byte
}

func mem(name string, b []byte) *memFile {
	f := &memFile{name: name, size: int64(len(b))}
	f.read = func(p []byte, off int64) {
		copy(p, b[off:])
		if f.again != nil {
			b = f.again
		}
	}
	return f
}

func (f *memFile) Name() string { return f.name }

func (f *memFile) Stat() (vfs.Info, error) { return vfs.Info{Size: f.size}, nil }

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.largest = max(f.largest, len(p))
	n := int(min(int64(len(p)), max(0, f.size-off)))
	f.read(p[:n], off)
	f.reads += int64(n)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// found is what a dump handed out; what it alludes to is copied.
type found struct {
	kind        string // record, finding, zeros, bytes, text
	off, end    int64
	name, field string
	fieldAt     int64
	reason      string
	readable    bool
	value       string
	notes       []Note
}

// collector is a Sink that checks what must hold for every file: the parts that
// are handed out fill it without a gap, and each can be printed in both forms.
type collector struct {
	t     testing.TB
	next  int64
	all   []found
	text  *Text
	json  *JSON
	lines bytes.Buffer
}

func (c *collector) part(f found) {
	if f.off != c.next || f.end < f.off {
		c.t.Errorf("%s [%d,%d) follows %d", f.kind, f.off, f.end, c.next)
	}
	c.next = f.end
	c.all = append(c.all, f)
}

func (c *collector) Record(r *Record) error {
	c.part(found{kind: "record", off: r.Offset, end: r.Offset + int64(len(r.View.Bytes())), name: r.Name,
		value: string(r.View.AppendText(nil)), notes: r.Notes})
	return first2(c.text.Record(r), c.json.Record(r))
}

func (c *collector) Finding(f *Finding) error {
	c.part(found{kind: "finding", off: f.Offset, end: f.End, name: f.Record, field: f.Field, fieldAt: f.FieldOffset,
		reason: f.Reason, readable: f.View != nil})
	if f.Reason == "" || f.Error() == "" || f.File == "" {
		c.t.Errorf("a finding does not say enough: %+v", f)
	}
	return first2(c.text.Finding(f), c.json.Finding(f))
}

func (c *collector) Skipped(s *Skipped) error {
	kind := "bytes"
	switch {
	case s.Text != nil:
		kind = "text"
	case s.Zeros:
		kind = "zeros"
	}
	c.part(found{kind: kind, off: s.Offset, end: s.End, reason: s.Why, value: string(s.Text)})
	return first2(c.text.Skipped(s), c.json.Skipped(s))
}

func first2(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// findings returns those of all.
func findings(all []found) []found {
	return slices.DeleteFunc(slices.Clone(all), func(f found) bool { return f.kind != "finding" })
}

// records returns those of all.
func recordsOf(all []found) []found {
	return slices.DeleteFunc(slices.Clone(all), func(f found) bool { return f.kind != "record" })
}

// dumpAll dumps f from opt.From and checks what every dump must do.
func dumpAll(t testing.TB, f vfs.File, kind Kind, opt Options) []found {
	t.Helper()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{t: t}
	c.text, c.json = NewText(io.Discard, info.Size), NewJSON(&c.lines)
	c.json.Fields, c.json.Hex = true, true
	sum, err := File(f, kind, opt, c)
	if err != nil {
		t.Fatalf("%s: %v", kind.Name, err)
	}
	if err := c.json.Flush(); err != nil {
		t.Fatal(err)
	}
	if c.next != info.Size {
		t.Errorf("%s: the parts end at %d of %d", kind.Name, c.next, info.Size)
	}
	if r, n := len(recordsOf(c.all)), len(findings(c.all)); int64(r) != sum.Records || int64(n) != sum.Findings {
		t.Errorf("%d records, %d findings, but %+v", r, n, sum)
	}
	lines := 0
	for line := range bytes.Lines(c.lines.Bytes()) {
		var x map[string]any
		if err := json.Unmarshal(line, &x); err != nil || x["kind"] != c.all[lines].kind {
			t.Fatalf("line %d: %v in %s", lines, err, line)
		}
		lines++
	}
	if lines != len(c.all) {
		t.Errorf("%d lines for %d parts", lines, len(c.all))
	}
	return c.all
}

// identified dumps a file of the disk as what it is found to be.
func identified(t testing.TB, file string) (Kind, []found) {
	t.Helper()
	f, err := vfs.OS().Open(filepath.ToSlash(file), vfs.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	kind, err := Identify(f, filepath.ToSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	var opt Options
	if kind.Root != "" {
		opt.Ours = Ours(vfs.OS(), kind.Root)
	}
	return kind, dumpAll(t, f, kind, opt)
}

// message encodes a message that stands at off in the log.
func message(t testing.TB, off int64, body string, sealed bool) []byte {
	t.Helper()
	m := codec.Message{Magic: codec.MessageMagicV1, QueueID: 3, QueueOffset: 7, PhysicalOffset: off, BornTimestamp: 1700000000000,
		BornHost: []byte{127, 0, 0, 1, 0, 0, 3, 0xe8}, StoreTimestamp: 1700000000123, StoreHost: []byte{10, 0, 0, 2, 0, 0, 0x2a, 0x9f},
		Body: []byte(body), Topic: []byte("T"), Properties: codec.AppendProperty(nil, "KEYS", "k1")}
	if sealed {
		m.PropertiesReserve = codec.ChecksumTrailerSize
	}
	b, err := m.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if sealed {
		codec.SealRecord(b)
	}
	return b
}

// encoder is a record that can be encoded.
type encoder interface{ Append([]byte) ([]byte, error) }

// encode encodes records one behind the other, and fills up to size with zeros.
func encode(t testing.TB, size int, list ...encoder) []byte {
	t.Helper()
	var b []byte
	for _, r := range list {
		var err error
		if b, err = r.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	return append(b, make([]byte, max(0, size-len(b)))...)
}

// segment is a segment that starts at base: records, an end mark if marked, and
// zeros. starts are the places of the records in it.
func segment(t testing.TB, base int64, size int, marked, sealed bool, bodies ...string) (b []byte, starts []int64) {
	t.Helper()
	for _, body := range bodies {
		starts = append(starts, int64(len(b)))
		b = append(b, message(t, base+int64(len(b)), body, sealed)...)
	}
	if marked {
		starts = append(starts, int64(len(b)))
		b = append(b, encode(t, 0, &codec.Blank{Size: int32(size - len(b))})...)
	}
	return append(b, make([]byte, size-len(b))...), starts
}

// indexFile is an index file of so many slots and entries, in which the entries
// of keys stand.
func indexFile(t testing.TB, slots, entries int, keys ...int32) []byte {
	t.Helper()
	h := &codec.IndexHeader{BeginTime: 1700000000000, EndTime: 1700000001000, BeginPhysicalOffset: 0,
		EndPhysicalOffset: int64(100 * (len(keys) - 1)), Count: int32(len(keys) + 1)}
	heads := make([]codec.IndexSlot, slots)
	list := []codec.IndexEntry{{}}
	for i, hash := range keys {
		slot := &heads[int(hash)%slots]
		if slot.Entry == 0 {
			h.UsedSlots++
		}
		list = append(list, codec.IndexEntry{KeyHash: hash, PhysicalOffset: int64(100 * i), TimeDiff: int32(i), Previous: slot.Entry})
		slot.Entry = int32(i + 1)
	}
	b := encode(t, 0, h)
	for i := range heads {
		b = append(b, encode(t, 0, &heads[i])...)
	}
	for i := range list {
		b = append(b, encode(t, 0, &list[i])...)
	}
	return append(b, make([]byte, codec.IndexHeaderSize+slots*codec.IndexSlotSize+entries*codec.IndexEntrySize-len(b))...)
}

// sample is a small file of a kind.
type sample struct {
	path  string
	bytes []byte
	// strict says that each changed byte below used must give a finding.
	strict bool
	used   int
}

// samples has a file of each kind that has records.
func samples(t testing.TB) []sample {
	t.Helper()
	log, starts := segment(t, 4096, 600, true, true, "one", "two", "three")
	state := encode(t, stateSlot, &codec.State{Sequence: 2, SegmentSize: 600, CreatedAt: 1700000000000,
		Epochs: []codec.EpochEntry{{Epoch: 1}, {Epoch: 2, Start: 500}}, Ranges: []codec.RangeEntry{{Start: 0, End: 4096 + 600}},
		Cursors: []codec.CursorEntry{{Lane: 1, Epoch: 2, Next: 3}}})
	used := len(bytes.TrimRight(state, "\x00"))
	ext := encode(t, 0, &codec.QueueExtUnit{TagsCode: 5, StoreTime: 1700000000123, Filter: []byte{1, 2, 3, 4, 5, 6, 7, 8}},
		&codec.QueueExtUnit{TagsCode: 6, StoreTime: 1700000000124}, &codec.QueueExtUnit{TagsCode: 7, StoreTime: 1700000000125})
	unit := codec.TimerUnit{Previous: -1, Mark: codec.TimerMarkDefault, EnqueueTime: 1700000000000, Delay: 1000, PhysicalOffset: 4096, MessageSize: 115}
	timer := encode(t, 0, &unit, &unit, &codec.TimerBlank{Size: 36})
	queue := []encoder{&codec.QueueUnit{Size: codec.QueueUnitBlankSize}, &codec.QueueUnit{PhysicalOffset: 4096, Size: 115, TagsCode: 1},
		&codec.QueueUnit{PhysicalOffset: 4211, Size: 115, TagsCode: -1}}
	batch := codec.BatchUnit{PhysicalOffset: 4096, Size: 115, StoreTime: 1700000000123, BaseOffset: 7, BatchSize: 3, CompactedOffset: -1}
	number := fmt.Sprintf("%020d", 4096)
	return []sample{
		{"/s/commitlog/" + number, log, true, int(starts[3]) + codec.BlankSize},
		{"/s/stratalog/cut/" + number + ".2", log, false, 0},
		{"/s/stratalog/bound", append(encode(t, boundSlot, &codec.Bound{Sequence: 1, Durable: 3, Window: 4}),
			encode(t, boundSlot, &codec.Bound{Sequence: 2, Durable: 3, Window: 4})...), true, codec.BoundSize},
		{"/s/stratalog/state", append(slices.Clone(state), make([]byte, stateSlot)...), true, used},
		{"/s/stratalog/cursors", append(make([]byte, stateSlot), state...), false, 0},
		{"/s/stratalog/spare/00000001.ready", make([]byte, 600), true, 600},
		{"/s/stratalog/spare/00000001.building", log, false, 0},
		{"/s/consumequeue/T/0/" + fmt.Sprintf("%020d", 400), encode(t, 400, queue...), false, 0},
		{"/s/batchconsumequeue/T/0/" + number, encode(t, 460, &batch, &batch), false, 0},
		{"/s/consumequeue_ext/T/0/" + number, append(ext, make([]byte, 100)...), false, 0},
		{"/s/index/20261130045319200", indexFile(t, 7, 20, 5, 12, 41, 5), false, 0},
		{"/s/checkpoint", encode(t, 4096, &codec.Checkpoint{PhysicTimestamp: 1700000000123, ConfirmPhy: 7}), false, 0},
		{"/s/config/timercheck", encode(t, 4096, &codec.TimerCheckpoint{LastReadTime: 1700000000123}), false, 0},
		{"/s/timerwheel", encode(t, 320, &codec.TimerSlot{Time: 1700000000, First: 52, Last: 104, Count: 2}), false, 0},
		{"/s/timerlog/" + number, append(timer, make([]byte, 20)...), false, 0},
		{"/s/abort", []byte("123\n\x1b[1m"), false, 0},
	}
}

// kindOf identifies a sample.
func kindOf(t testing.TB, name string, b []byte) Kind {
	t.Helper()
	kind, err := Identify(mem(name, b), name)
	if err != nil {
		t.Fatal(err)
	}
	return kind
}

// random is a generator with a seed that a failure can be repeated with.
func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

// writeFile writes a file and the directories above it.
func writeFile(t testing.TB, name string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
