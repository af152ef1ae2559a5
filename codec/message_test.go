package codec

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// example returns the worked example of the format, with reserve bytes left
// behind its properties.
func example(reserve int) Message {
	m := sampleMessageV1()
	m.PropertiesReserve = reserve
	return m
}

func encode(t testing.TB, m *Message) []byte {
	t.Helper()
	rec := make([]byte, m.Size())
	if _, err := m.Encode(rec); err != nil {
		t.Fatal(err)
	}
	return rec
}

func TestWorkedExample(t *testing.T) {
	m := example(0)
	rec := encode(t, &m)
	var v MessageView
	if err := v.Parse(rec); err != nil {
		t.Fatal(err)
	}
	if v.TotalSize() != 115 || v.BodyCRC() != 0x3610a686 || !v.CheckBodyCRC() {
		t.Errorf("size %d, body CRC %#x, right %v", v.TotalSize(), v.BodyCRC(), v.CheckBodyCRC())
	}
	if code := TagsCode(v.Properties()); code != 2598919 {
		t.Errorf("TagsCode = %d", code)
	}
	if keys, ok := FindProperty(v.Properties(), PropertyKeys); !ok || string(keys) != "k1" {
		t.Errorf("KEYS = %q, %v", keys, ok)
	}
	unit := make([]byte, QueueUnitSize)
	u := QueueUnit{PhysicalOffset: v.PhysicalOffset(), Size: v.TotalSize(), TagsCode: TagsCode(v.Properties())}
	if _, err := u.Encode(unit); err != nil || !bytes.Equal(unit, readGolden(t, "queue_unit")) {
		t.Errorf("unit %x, %v", unit, err)
	}
	if id := MessageID(v.StoreHost(), v.PhysicalOffset()); id != "0A00000200002A9F0000000000001000" {
		t.Errorf("MessageID = %s", id)
	}
	v.Body()[0] ^= 1
	if v.CheckBodyCRC() {
		t.Error("CheckBodyCRC does not see a flipped bit of the body")
	}
}

func TestEncodeRefuses(t *testing.T) {
	long := func(n int) []byte { return bytes.Repeat([]byte("x"), n) }
	for _, c := range []struct {
		name   string
		change func(*Message)
		want   string
	}{
		{"no magic", func(m *Message) { m.Magic = 0 },
			"codec: Message.Magic at byte 4: is 0x0, not 0xdaa320a7 or 0xdaa320ab"},
		{"blank magic", func(m *Message) { m.Magic = BlankMagic },
			"codec: Message.Magic at byte 4: is 0xcbd43194, not 0xdaa320a7 or 0xdaa320ab"},
		{"short born host", func(m *Message) { m.BornHost = m.BornHost[:7] },
			"codec: Message.BornHost at byte 48: has 7 bytes where the flags ask for 8"},
		{"no store host", func(m *Message) { m.StoreHost = nil },
			"codec: Message.StoreHost at byte 64: has 0 bytes where the flags ask for 8"},
		{"flag without host", func(m *Message) { m.SysFlag = SysFlagBornHostV6 },
			"codec: Message.BornHost at byte 48: has 8 bytes where the flags ask for 20"},
		{"host without flag", func(m *Message) { m.StoreHost = long(20) },
			"codec: Message.StoreHost at byte 64: has 20 bytes where the flags ask for 8"},
		{"topic of V1", func(m *Message) { m.Topic = long(128) },
			"codec: Message.Topic at byte 93: 128 is not within 0 to 127"},
		{"topic of V2", func(m *Message) { m.Magic, m.Topic = MessageMagicV2, long(32768) },
			"codec: Message.Topic at byte 93: 32768 is not within 0 to 32767"},
		{"properties", func(m *Message) { m.Properties = long(32768) },
			"codec: Message.Properties at byte 95: 32768 is not within 0 to 32767"},
		{"properties and reserve", func(m *Message) { m.Properties, m.PropertiesReserve = long(32748), 20 },
			"codec: Message.Properties at byte 95: 32768 is not within 0 to 32767"},
		{"negative reserve", func(m *Message) { m.PropertiesReserve = -1 },
			"codec: Message.Properties at byte 95: 17 is not within 0 to 32767"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := example(0)
			c.change(&m)
			dst := bytes.Repeat([]byte{0xEE}, 1<<17)
			n, err := m.Encode(dst)
			if n != 0 || err == nil || err.Error() != c.want {
				t.Errorf("Encode = %d, %v\nwant %s", n, err, c.want)
			}
			if !bytes.Equal(dst, bytes.Repeat([]byte{0xEE}, len(dst))) {
				t.Error("a refused Encode wrote something")
			}
		})
	}
}

func TestEncodeLimits(t *testing.T) {
	m := example(20)
	m.Magic = MessageMagicV2
	m.Body = make([]byte, 4<<20)
	m.Topic = bytes.Repeat([]byte("t"), 32767)
	m.Properties = bytes.Repeat([]byte("p"), 32747)
	rec := encode(t, &m)
	var v MessageView
	if err := v.Parse(rec); err != nil || !bytes.Equal(v.Topic(), m.Topic) || len(v.Properties()) != 32767 {
		t.Fatal(err)
	}
	m = example(0)
	m.Topic = bytes.Repeat([]byte("t"), 127)
	if err := v.Parse(encode(t, &m)); err != nil || len(v.Topic()) != 127 {
		t.Fatal(err)
	}
	for length, want := range map[int]uint32{0: MessageMagicV1, 127: MessageMagicV1, 128: MessageMagicV2} {
		if got := MessageMagicFor(length); got != want {
			t.Errorf("MessageMagicFor(%d) = %#x", length, got)
		}
	}
}

func TestEncodeShortBuffer(t *testing.T) {
	m := example(0)
	_, err := m.Encode(make([]byte, 114))
	if !errors.Is(err, ErrShortBuffer) || err.Error() != "codec: Message: needs 115 bytes, the buffer has 114" {
		t.Errorf("Encode = %v", err)
	}
}

func TestEncodeClearsTheReserve(t *testing.T) {
	m := example(20)
	rec := bytes.Repeat([]byte{0xEE}, m.Size()+1)
	if n, err := m.Encode(rec); err != nil || n != 135 {
		t.Fatal(n, err)
	}
	if !bytes.Equal(rec[115:], append(make([]byte, 20), 0xEE)) {
		t.Errorf("behind the properties: %x", rec[115:])
	}
}

// TestParseNamesTheField changes one thing in a good record and expects the
// error to say which field it was.
func TestParseNamesTheField(t *testing.T) {
	put32 := func(at int, x uint32) func([]byte) []byte {
		return func(b []byte) []byte { putBE(b[at:at+4], uint64(x)); return b }
	}
	put8 := func(at int, x byte) func([]byte) []byte {
		return func(b []byte) []byte { b[at] = x; return b }
	}
	for _, c := range []struct {
		name   string
		change func([]byte) []byte
		want   string
	}{
		{"empty", func([]byte) []byte { return nil },
			"codec: Message.TotalSize at byte 0: needs 4 bytes, 0 are left"},
		{"six bytes", func(b []byte) []byte { return b[:6] },
			"codec: Message.Magic at byte 4: needs 4 bytes, 2 are left"},
		{"zeros", func(b []byte) []byte { return make([]byte, 200) },
			"codec: Message.Magic at byte 4: is 0x0, not 0xdaa320a7 or 0xdaa320ab"},
		{"a byte short", func(b []byte) []byte { return b[:114] },
			"codec: Message.TotalSize at byte 0: says 115 bytes, 114 are there"},
		{"total too small", put32(0, 90),
			"codec: Message.TotalSize at byte 0: says 90 bytes, the smallest record has 91"},
		{"total negative", put32(0, 0x80000000),
			"codec: Message.TotalSize at byte 0: says -2147483648 bytes, the smallest record has 91"},
		{"total one less", put32(0, 114),
			"codec: Message.Properties at byte 95: length 18 is more than the 17 bytes left"},
		{"total one more", func(b []byte) []byte { return put32(0, 116)(append(b, 0)) },
			"codec: Message.TotalSize at byte 0: says 116 bytes, the fields have 115"},
		{"body one more", put32(84, 6),
			"codec: Message.Topic at byte 94: length 84 is more than the 20 bytes left"},
		{"body too long", put32(84, 28),
			"codec: Message.Body at byte 84: length 28 is more than the 27 bytes left"},
		{"body to the end", put32(84, 27),
			"codec: Message.Topic at byte 115: needs 1 bytes, 0 are left"},
		{"body negative", put32(84, 0xFFFFFFFF),
			"codec: Message.Body at byte 84: length -1 is not within 0 to 2147483647"},
		{"topic negative", put8(93, 0x80),
			"codec: Message.Topic at byte 93: length -128 is not within 0 to 2147483647"},
		{"topic to the end", put8(93, 21),
			"codec: Message.Properties at byte 115: needs 2 bytes, 0 are left"},
		{"properties negative", put8(95, 0x80),
			"codec: Message.Properties at byte 95: length -32750 is not within 0 to 2147483647"},
		{"properties one less", put8(96, 17),
			"codec: Message.TotalSize at byte 0: says 115 bytes, the fields have 114"},
		{"hosts of IPv6", func(b []byte) []byte { return put32(0, 91)(put32(36, 0x30)(b)) },
			"codec: Message.StoreHost at byte 76: needs 20 bytes, 15 are left"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := example(0)
			b := c.change(encode(t, &m))
			var v MessageView
			err := v.Parse(b[:len(b):len(b)])
			if err == nil || err.Error() != c.want {
				t.Errorf("Parse = %v\nwant %s", err, c.want)
			}
			requireFieldError(t, err, "Message")
		})
	}
}

func TestPatch(t *testing.T) {
	for _, flag := range []SysFlag{0, SysFlagBornHostV6, SysFlagStoreHostV6, SysFlagBornHostV6 | SysFlagStoreHostV6} {
		m := example(0)
		m.SysFlag = flag
		if flag&SysFlagBornHostV6 != 0 {
			m.BornHost = make([]byte, HostV6Size)
		}
		if flag&SysFlagStoreHostV6 != 0 {
			m.StoreHost = make([]byte, HostV6Size)
		}
		rec := encode(t, &m)
		m.QueueOffset, m.PhysicalOffset, m.StoreTimestamp, m.PreparedTransactionOffset = -2, 1<<40, 1<<50, 1<<60
		PatchMessageQueueOffset(rec, m.QueueOffset)
		PatchMessagePhysicalOffset(rec, m.PhysicalOffset)
		PatchMessageStoreTimestamp(rec, m.StoreTimestamp)
		PatchMessagePreparedTransactionOffset(rec, m.PreparedTransactionOffset)
		if want := encode(t, &m); !bytes.Equal(rec, want) {
			t.Errorf("sysFlag %#x: patched\n%x\nencoded\n%x", flag, rec, want)
		}
	}
}

func TestHosts(t *testing.T) {
	addr := [16]byte{10: 0xFF, 11: 0xFF, 12: 10, 15: 2}
	if got := AppendHost([]byte{1}, addr, false, 10911); !bytes.Equal(got, []byte{1, 10, 0, 0, 2, 0, 0, 42, 159}) {
		t.Errorf("IPv4: %x", got)
	}
	got := AppendHost(nil, addr, true, -1)
	if !bytes.Equal(got, append(addr[:], 0xFF, 0xFF, 0xFF, 0xFF)) {
		t.Errorf("IPv6: %x", got)
	}
	if id := MessageID(got, -1); id != "00000000000000000000FFFF0A000002FFFFFFFF"+strings.Repeat("F", 16) {
		t.Errorf("MessageID = %s", id)
	}
}

func TestPeekMessage(t *testing.T) {
	if _, _, ok := PeekMessage(make([]byte, 7)); ok {
		t.Error("seven bytes are enough")
	}
	if size, magic, ok := PeekMessage(readGolden(t, "blank")); size != 1000 || magic != BlankMagic || !ok {
		t.Errorf("PeekMessage = %d, %#x, %v", size, magic, ok)
	}
	var v BlankView
	if err := v.Parse([]byte{0, 0, 0, 7, 0xCB, 0xD4, 0x31, 0x94}); err == nil {
		t.Error("a blank of 7 bytes is accepted")
	}
}

func TestQueueUnitKinds(t *testing.T) {
	for _, c := range []struct {
		unit           QueueUnit
		blank, written bool
	}{
		{QueueUnit{}, false, false},
		{QueueUnit{0, 115, 0}, false, true},
		{QueueUnit{-1, 115, 0}, false, false},
		{QueueUnit{0, QueueUnitBlankSize, 0}, true, true},
		{QueueUnit{0, QueueUnitBlankSize, 1}, false, true},
	} {
		var b [QueueUnitSize]byte
		var v QueueUnitView
		if _, err := c.unit.Encode(b[:]); err != nil {
			t.Fatal(err)
		}
		if err := v.Parse(b[:]); err != nil || v.IsBlank() != c.blank || v.IsWritten() != c.written {
			t.Errorf("%+v: blank %v, written %v, %v", c.unit, v.IsBlank(), v.IsWritten(), err)
		}
	}
}
