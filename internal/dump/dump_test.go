package dump

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// all is a range that holds every place of a log.
var all = []contract.Range{{Start: 0, End: 1 << 40}}

// TestKinds: each kind of file is recognised, by its path or alone, and a whole
// one has no finding.
func TestKinds(t *testing.T) {
	want := map[string][]string{
		"/s/commitlog/":            {"Message", "Message", "Message", "Blank"},
		"/s/stratalog/cut/":        {"Message", "Message", "Message", "Blank"},
		"/s/stratalog/bound":       {"Bound", "Bound"},
		"/s/stratalog/state":       {"State"},
		"/s/stratalog/cursors":     {"State"},
		"/s/stratalog/spare/":      nil,
		"/s/consumequeue/":         {"QueueUnit", "QueueUnit", "QueueUnit"},
		"/s/batchconsumequeue/":    {"BatchUnit", "BatchUnit"},
		"/s/consumequeue_ext/":     {"QueueExtUnit", "QueueExtUnit", "QueueExtUnit"},
		"/s/index/":                {"IndexHeader", "IndexSlot", "IndexSlot", "IndexEntry", "IndexEntry", "IndexEntry", "IndexEntry"},
		"/s/checkpoint":            {"Checkpoint"},
		"/s/config/timercheck":     {"TimerCheckpoint"},
		"/s/timerwheel":            {"TimerSlot"},
		"/s/timerlog/":             {"TimerUnit", "TimerUnit", "TimerBlank"},
		"/s/abort":                 nil,
		"/lone/with/records":       nil,
		"/lone/with/other/records": nil,
	}
	for _, s := range samples(t) {
		kind := kindOf(t, s.path, s.bytes)
		got := dumpAll(t, mem(s.path, s.bytes), kind, Options{Ours: all})
		if f := findings(got); len(f) > 0 {
			t.Errorf("%s: %+v", s.path, f)
		}
		var names []string
		for _, r := range recordsOf(got) {
			names = append(names, r.name)
		}
		for prefix, list := range want {
			if strings.HasPrefix(s.path, prefix) && !slices.Equal(names, list) {
				t.Errorf("%s has %v, want %v", s.path, names, list)
			}
		}
		// The layout of the first record tells the same, whatever the name is.
		if len(names) == 0 || kind.Name == spareKind.Name {
			continue
		}
		if kind, err := KindOf(names[0], "/elsewhere/x"); err != nil {
			t.Error(err)
		} else if again := recordsOf(dumpAll(t, mem("x", s.bytes), kind, Options{})); len(again) != len(names) {
			t.Errorf("%s as --record %s: %d records, want %d", s.path, names[0], len(again), len(names))
		}
	}
}

// TestLone: a file away from its store is recognised by its content or its size,
// or refused with the names of the layouts.
func TestLone(t *testing.T) {
	log, _ := segment(t, 4096, 600, false, true, "one")
	bound := append(encode(t, boundSlot, &codec.Bound{Sequence: 1}), make([]byte, boundSlot)...)
	state := append(encode(t, stateSlot, &codec.State{Sequence: 1}), encode(t, stateSlot, &codec.State{Sequence: 2})...)
	// damaged is a file of two slots of which those are wrong.
	damaged := func(whole []byte, slots ...int) []byte {
		b := slices.Clone(whole)
		copy(b[len(b)/2:], b[:len(b)/2])
		for _, slot := range slots {
			for i := range 16 {
				b[slot*len(b)/2+i] ^= 0xFF
			}
		}
		return b
	}
	number := fmt.Sprintf("/x/%020d", 40)
	for _, c := range []struct {
		path string
		b    []byte
		want string
	}{
		{"/x/copy", log, recordsKind.Name}, {number, log, recordsKind.Name}, {"/x/copy", bound, boundKind.Name},
		{"/x/copy", damaged(bound, 0), boundKind.Name}, {"/x/copy", damaged(bound, 1), boundKind.Name}, {"/x/copy", damaged(bound, 0, 1), ""},
		{"/x/copy", state, stateKind.Name}, {"/x/copy", damaged(state, 0), stateKind.Name}, {"/x/copy", damaged(state, 1), stateKind.Name},
		{"/x/copy", damaged(state, 0, 1), ""}, {"/x/copy", damaged(bound, 0)[:boundSlot], ""}, {"/x/copy", damaged(state, 0)[:stateSlot], ""},
		{number, make([]byte, queueFileSize), queueKind.Name}, {number, make([]byte, batchFileSize), batchKind.Name},
		{"/x/20261130045319200", make([]byte, 500), indexKind.Name}, {"/x/checkpoint", make([]byte, 4096), checkKind.Name},
		{"/x/timercheck", make([]byte, 4096), timerChkKind.Name}, {"/x/wheel", make([]byte, wheelFileSize), wheelKind.Name},
		{"/x/copy", make([]byte, 600), ""}, {"/x/copy", nil, ""}, {"/x/consumequeue/CURRENT", []byte("MANIFEST-000005\n"), ""},
		{"/commitlog/" + strings.Repeat("9", 20), make([]byte, 600), segmentKind.Name},
		{"/stratalog/spare/" + strings.Repeat("0", 20) + ".guard", make([]byte, 600), guardKind.Name},
		// A topic may have any name.
		{"/s/consumequeue/commitlog/0/" + strings.Repeat("0", 20), make([]byte, 600), queueKind.Name},
		{"/s/consumequeue/consumequeue_ext/0/" + strings.Repeat("0", 20), make([]byte, 600), queueKind.Name},
	} {
		kind, err := Identify(mem(c.path, c.b), c.path)
		if kind.Name != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s is %q, %v, want %q", c.path, kind.Name, err, c.want)
		}
		if err != nil && (!strings.Contains(err.Error(), "QueueUnit") || !strings.Contains(err.Error(), c.path)) {
			t.Errorf("%v does not help", err)
		}
	}
	if _, err := KindOf("Unknown", "x"); err == nil || !strings.Contains(err.Error(), "Message, Blank, HostV4") {
		t.Errorf("KindOf: %v", err)
	}
	// The slot that is left is dumped behind the finding.
	for name, b := range map[string][]byte{"Bound": damaged(bound, 0), "State": damaged(state, 0)} {
		got := dumpAll(t, mem("copy", b), kindOf(t, "/x/copy", b), Options{})
		if len(got) == 0 || got[0].kind != "finding" || len(recordsOf(got)) != 1 || recordsOf(got)[0].off != int64(len(b)/2) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// Without a name the first record tells where the file starts in the log.
	if got := dumpAll(t, mem("copy", log), kindOf(t, "/x/copy", log), Options{}); got[0].kind != "record" {
		t.Errorf("%+v", got[0])
	}
}

// TestEveryLayout: every layout of the codecs can be named; the bytes of its
// golden vectors are one record of it.
func TestEveryLayout(t *testing.T) {
	for _, name := range Names() {
		kind, err := KindOf(name, "/x/file")
		if err != nil {
			t.Fatal(err)
		}
		r := random(1)
		for range 50 {
			b := make([]byte, r.IntN(200))
			for i := range b {
				if b[i] = byte(r.Uint32()); r.IntN(4) > 0 {
					b[i] = 0
				}
			}
			dumpAll(t, mem("/x/file", b), kind, Options{})
		}
	}
	// A key is a file of its own, since it takes what there is.
	key := encode(t, 0, &codec.QueueKey{Topic: []byte("longer"), QueueID: 2})
	kind, _ := KindOf("QueueKey", "x")
	if got := recordsOf(dumpAll(t, mem("x", key), kind, Options{})); len(got) != 1 || !strings.Contains(got[0].value, `Topic:"longer"`) {
		t.Errorf("%+v", got)
	}
	list := encode(t, 0, &codec.SubMessage{Body: []byte("one")}, &codec.SubMessage{Body: []byte("three")})
	kind, _ = KindOf("SubMessage", "x")
	if got := recordsOf(dumpAll(t, mem("x", list), kind, Options{})); len(got) != 2 || got[1].end != int64(len(list)) {
		t.Errorf("%+v", got)
	}
	if got := dumpAll(t, mem("x", list[1:]), kind, Options{}); len(got) != 1 || got[0].kind != "finding" {
		t.Errorf("%+v", got)
	}
}

// TestFromAndCount: a dump begins at the first record at or behind From, and
// ends after Count.
func TestFromAndCount(t *testing.T) {
	b, starts := segment(t, 4096, 600, true, true, "one", "two", "three")
	name := fmt.Sprintf("/s/commitlog/%020d", 4096)
	for from, want := range map[int64]int64{0: 0, 1: starts[1], starts[1]: starts[1], starts[1] + 50: starts[2], starts[2] + 1: starts[3]} {
		c := &collector{t: t, next: from, text: NewText(io.Discard, 600), json: NewJSON(io.Discard)}
		sum, err := File(mem(name, b), kindOf(t, name, b), Options{From: from, Count: 1}, c)
		got := recordsOf(c.all)
		if err != nil || sum.Records != 1 || sum.Findings != 0 || len(got) != 1 || got[0].off != want {
			t.Errorf("from %d: %+v, %+v, %v; want %d", from, sum, c.all, err, want)
		}
	}
	queue := encode(t, 400, &codec.QueueUnit{Size: 1}, &codec.QueueUnit{PhysicalOffset: 1, Size: 1}, &codec.QueueUnit{PhysicalOffset: 2, Size: 1})
	c := &collector{t: t, next: 40, text: NewText(io.Discard, 400), json: NewJSON(io.Discard)}
	if _, err := File(mem("/s/consumequeue/T/0/x", queue), queueKind, Options{From: 21}, c); err != nil || len(recordsOf(c.all)) != 1 {
		t.Errorf("%+v, %v", c.all, err)
	}
	for _, from := range []int64{-1, 601} {
		if _, err := File(mem(name, b), segmentKind, Options{From: from}, c); err == nil {
			t.Errorf("from %d is taken", from)
		}
	}
}

// TestSettle: what a live writer is in the middle of is no finding.
func TestSettle(t *testing.T) {
	whole, starts := segment(t, 0, 600, false, true, "one", "two", "three")
	name := "/s/commitlog/" + strings.Repeat("0", 20)
	torn := slices.Clone(whole)
	clear(torn[starts[1]+40:])
	hole := slices.Clone(whole)
	clear(hole[starts[1]:starts[2]])
	for what, early := range map[string][]byte{"torn": torn, "hole": hole} {
		f := mem(name, early)
		f.again = whole
		asked := 0
		got := dumpAll(t, f, kindOf(t, name, early), Options{Ours: all, Settle: func(tries int) bool {
			asked++
			return tries < 3
		}})
		if len(findings(got)) != 0 || len(recordsOf(got)) != 3 || asked != 1 {
			t.Errorf("%s: asked %d times, %+v", what, asked, got)
		}
		// One that stays is a finding, after as many tries as Settle wants.
		asked = 0
		got = dumpAll(t, mem(name, early), kindOf(t, name, early), Options{Ours: all, Settle: func(tries int) bool {
			if asked++; tries != asked {
				t.Errorf("%d tries, asked %d times", tries, asked)
			}
			return tries < 3
		}})
		if len(findings(got)) != 1 || asked != 3 {
			t.Errorf("%s: asked %d times, %+v", what, asked, got)
		}
	}
}

// holes is a memFile that knows that it is empty from its bytes on.
type holes struct {
	*memFile
	data int64
}

func (f holes) NextData(off int64) (int64, error) {
	if off < f.data {
		return off, nil
	}
	return f.size, nil
}

// TestBounded: of a large file only a window is held, and holes are not read.
func TestBounded(t *testing.T) {
	b, _ := segment(t, 0, 64<<10, false, true, "one", "two")
	name := "/s/commitlog/" + strings.Repeat("0", 20)
	f := &memFile{name: name, size: 1 << 30, read: func(p []byte, off int64) {
		clear(p)
		if off < int64(len(b)) {
			copy(p, b[off:])
		}
	}}
	got := dumpAll(t, f, kindOf(t, name, b), Options{})
	if len(got) != 3 || got[2].kind != "zeros" || got[2].end != 1<<30 || f.largest > piece {
		t.Errorf("reads of %d bytes, %+v", f.largest, got)
	}
	f.reads = 0
	got = dumpAll(t, holes{f, 64 << 10}, kindOf(t, name, b), Options{})
	if len(got) != 3 || f.reads > 4*piece {
		t.Errorf("%d bytes read, %+v", f.reads, got)
	}
	// Bytes that are no record, but hold the magic all over.
	f.size = 8 << 20
	f.read = func(p []byte, off int64) {
		for i := range p {
			p[i] = "\x00\x00\x00\x60\xda\xa3\x20\xa7"[(off+int64(i))%8]
		}
	}
	f.reads, f.largest = 0, 0
	got = dumpAll(t, f, kindOf(t, name, b), Options{})
	if len(got) != 1 || got[0].kind != "finding" || got[0].end != 8<<20 || f.largest > piece || f.reads > 4*f.size {
		t.Errorf("reads of %d bytes, %d in all, %+v", f.largest, f.reads, got)
	}
}

// TestUnreadable: a read error is an error, and names the place.
func TestUnreadable(t *testing.T) {
	f := failing{mem("/s/commitlog/"+strings.Repeat("0", 20), make([]byte, 600))}
	c := &collector{t: t, text: NewText(io.Discard, 600), json: NewJSON(io.Discard)}
	for _, kind := range []Kind{segmentKind, queueKind, extKind, indexKind, boundKind, timerKind, spareKind, textKind, checkKind} {
		if _, err := File(f, kind, Options{}, c); err == nil || !strings.Contains(err.Error(), "reading at 0: no luck") {
			t.Errorf("%s: %v", kind.Name, err)
		}
	}
}

// failing is a file that cannot be read.
type failing struct{ *memFile }

func (failing) ReadAt([]byte, int64) (int, error) { return 0, fmt.Errorf("no luck") }

// TestText checks what people see, to the letter.
func TestText(t *testing.T) {
	b, _ := segment(t, 0, 200, false, false, "hello\x00"+strings.Repeat("x", 70))
	b[180] = 1
	var out bytes.Buffer
	text := NewText(&out, int64(len(b)))
	if _, err := File(mem("seg", b), recordsKind, Options{}, text); err != nil {
		t.Fatal(err)
	}
	if err := text.Flush(); err != nil {
		t.Fatal(err)
	}
	want := `0: Message, 176 bytes, log offset 0, checksum absent
       0  00 00 00 b0                                      TotalSize = 176
       4  da a3 20 a7                                      Magic = V1
       8  1c cc 3c a0                                      BodyCRC = 483146912
      12  00 00 00 03                                      QueueID = 3
      16  00 00 00 00                                      Flag = 0
      20  00 00 00 00 00 00 00 07                          QueueOffset = 7
      28  00 00 00 00 00 00 00 00                          PhysicalOffset = 0
      36  00 00 00 00                                      SysFlag = 0
      40  00 00 01 8b cf e5 68 00                          BornTimestamp = 1700000000000 2023-11-14T22:13:20.000Z
      48  7f 00 00 01 00 00 03 e8                          BornHost = 127.0.0.1:1000
      56  00 00 01 8b cf e5 68 7b                          StoreTimestamp = 1700000000123 2023-11-14T22:13:20.123Z
      64  0a 00 00 02 00 00 2a 9f                          StoreHost = 10.0.0.2:10911
      72  00 00 00 00                                      ReconsumeTimes = 0
      76  00 00 00 00 00 00 00 00                          PreparedTransactionOffset = 0
      84  00 00 00 4c 68 65 6c 6c 6f 00 78 78 78 78 78 78  Body = 76 bytes
     100  78 78 78 78 78 78 78 78 78 78 78 78 78 78 78 78  |xxxxxxxxxxxxxxxx|
     116  78 78 78 78 78 78 78 78 78 78 78 78 78 78 78 78  |xxxxxxxxxxxxxxxx|
     132  78 78 78 78 78 78 78 78 78 78 78 78 78 78 78 78  |xxxxxxxxxxxxxxxx|
          ... 16 bytes more
     164  01 54                                            Topic = "T"
     166  00 08 4b 45 59 53 01 6b 31 02                    Properties = KEYS=k1

176: FINDING, 5 bytes: Message.Magic at 180: is 0x1000000, which no record has
     176  00 00 00 00 01                                   |.....|

181: zeros from 181 to 200

`
	if got := out.String(); got != want {
		t.Errorf("got\n%s", got)
	}
}

// TestIndexWithoutEntries: a key index whose header counts entries, and that holds
// none, was cut off.
func TestIndexWithoutEntries(t *testing.T) {
	head := encode(t, codec.IndexHeaderSize, &codec.IndexHeader{BeginTime: 1, EndTime: 2, Count: 6, UsedSlots: 1})
	path := "/s/index/20261130045319200"
	for _, size := range []int{1000, 5000} {
		b := append(append([]byte(nil), head...), make([]byte, size)...)
		got := findings(dumpAll(t, mem(path, b), kindOf(t, path, b), Options{}))
		if len(got) != 1 || got[0].off != codec.IndexHeaderSize || got[0].end != int64(len(b)) {
			t.Errorf("%d bytes: %+v", size, got)
		}
	}
}
