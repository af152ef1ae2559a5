package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"
)

// The yardstick for the generated codec: what one would write by hand for a
// V1 record with IPv4 hosts only, all offsets being constants up to the body.

var errHand = errors.New("hand: not a record of this kind")

// handEncode writes m, which must be of the one kind that it knows.
func handEncode(m *Message, dst []byte) (int, error) {
	body, topic, props := len(m.Body), len(m.Topic), len(m.Properties)
	size := 91 + body + topic + props
	if m.Magic != MessageMagicV1 || m.SysFlag&0x30 != 0 || topic > 127 || props > 32767 || len(dst) < size {
		return 0, errHand
	}
	dst = dst[:size]
	h := (*[88]byte)(dst)
	binary.BigEndian.PutUint32(h[0:], uint32(size))
	binary.BigEndian.PutUint32(h[4:], m.Magic)
	binary.BigEndian.PutUint32(h[8:], crc32.ChecksumIEEE(m.Body)&0x7fffffff)
	binary.BigEndian.PutUint32(h[12:], uint32(m.QueueID))
	binary.BigEndian.PutUint32(h[16:], uint32(m.Flag))
	binary.BigEndian.PutUint64(h[20:], uint64(m.QueueOffset))
	binary.BigEndian.PutUint64(h[28:], uint64(m.PhysicalOffset))
	binary.BigEndian.PutUint32(h[36:], uint32(m.SysFlag))
	binary.BigEndian.PutUint64(h[40:], uint64(m.BornTimestamp))
	*(*[8]byte)(h[48:]) = [8]byte(m.BornHost)
	binary.BigEndian.PutUint64(h[56:], uint64(m.StoreTimestamp))
	*(*[8]byte)(h[64:]) = [8]byte(m.StoreHost)
	binary.BigEndian.PutUint32(h[72:], uint32(m.ReconsumeTimes))
	binary.BigEndian.PutUint64(h[76:], uint64(m.PreparedTransactionOffset))
	binary.BigEndian.PutUint32(h[84:], uint32(body))
	copy(dst[88:], m.Body)
	at := 88 + body
	dst[at] = byte(topic)
	copy(dst[at+1:], m.Topic)
	at += 1 + topic
	binary.BigEndian.PutUint16(dst[at:], uint16(props))
	copy(dst[at+2:], m.Properties)
	return size, nil
}

// handView is a parsed record of the one kind.
type handView struct {
	b                []byte
	bodyEnd, topicAt int
	topicEnd         int
}

func (v *handView) parse(b []byte) error {
	if len(b) < 91 {
		return errHand
	}
	h := (*[88]byte)(b)
	size := int(int32(binary.BigEndian.Uint32(h[0:])))
	if binary.BigEndian.Uint32(h[4:]) != MessageMagicV1 || binary.BigEndian.Uint32(h[36:])&0x30 != 0 ||
		size < 91 || size > len(b) {
		return errHand
	}
	b = b[:size:size]
	body := int(int32(binary.BigEndian.Uint32(h[84:])))
	if uint(body) > uint(size-91) {
		return errHand
	}
	at := 88 + body
	topic := int(int8(b[at]))
	if uint(topic) > uint(size-at-3) {
		return errHand
	}
	end := at + 1 + topic
	props := int(int16(binary.BigEndian.Uint16(b[end:])))
	if end+2+props != size {
		return errHand
	}
	v.b, v.bodyEnd, v.topicAt, v.topicEnd = b, at, at+1, end
	return nil
}

func (v *handView) u32(at int) uint32 { return binary.BigEndian.Uint32(v.b[at : at+4]) }
func (v *handView) i64(at int) int64  { return int64(binary.BigEndian.Uint64(v.b[at : at+8])) }

// decoded is every field of a record, so that no read can be left out.
type decoded struct {
	total, queueID, flag, sysFlag, reconsume int32
	magic, crc                               uint32
	queueOffset, physical, born, store       int64
	prepared                                 int64
	bornHost, storeHost, body, topic, props  []byte
}

//go:noinline
func handDecode(v *handView, b []byte, d *decoded) error {
	if err := v.parse(b); err != nil {
		return err
	}
	*d = decoded{
		total: int32(v.u32(0)), magic: v.u32(4), crc: v.u32(8), queueID: int32(v.u32(12)), flag: int32(v.u32(16)),
		queueOffset: v.i64(20), physical: v.i64(28), sysFlag: int32(v.u32(36)), born: v.i64(40),
		bornHost: v.b[48:56:56], store: v.i64(56), storeHost: v.b[64:72:72], reconsume: int32(v.u32(72)),
		prepared: v.i64(76), body: v.b[88:v.bodyEnd:v.bodyEnd], topic: v.b[v.topicAt:v.topicEnd:v.topicEnd],
		props: v.b[v.topicEnd+2:],
	}
	return nil
}

//go:noinline
func generatedDecode(v *MessageView, b []byte, d *decoded) error {
	if err := v.Parse(b); err != nil {
		return err
	}
	*d = decoded{
		total: v.TotalSize(), magic: v.Magic(), crc: v.BodyCRC(), queueID: v.QueueID(), flag: v.Flag(),
		queueOffset: v.QueueOffset(), physical: v.PhysicalOffset(), sysFlag: int32(v.SysFlag()), born: v.BornTimestamp(),
		bornHost: v.BornHost(), store: v.StoreTimestamp(), storeHost: v.StoreHost(), reconsume: v.ReconsumeTimes(),
		prepared: v.PreparedTransactionOffset(), body: v.Body(), topic: v.Topic(), props: v.Properties(),
	}
	return nil
}

// benchMessage has a body of 1 KiB, a topic of 16 and properties of 64 bytes.
func benchMessage() *Message {
	props := AppendProperty(nil, PropertyTags, "TagA")
	props = AppendProperty(props, PropertyKeys, strings.Repeat("k", 64-len(props)-len(PropertyKeys)-2))
	return &Message{
		Magic: MessageMagicV1, QueueID: 3, Flag: 1, QueueOffset: 7, PhysicalOffset: 4096, BornTimestamp: 1700000000000,
		BornHost: []byte{127, 0, 0, 1, 0, 0, 3, 232}, StoreTimestamp: 1700000000123,
		StoreHost: []byte{10, 0, 0, 2, 0, 0, 42, 159}, ReconsumeTimes: 1, PreparedTransactionOffset: 5,
		Body: bytes.Repeat([]byte("0123456789abcdef"), 64), Topic: []byte("topic-of-sixteen"), Properties: props,
	}
}

func TestGeneratedAgreesWithHand(t *testing.T) {
	m := benchMessage()
	if len(m.Topic) != 16 || len(m.Properties) != 64 || len(m.Body) != 1024 {
		t.Fatalf("the sample has %d+%d+%d bytes", len(m.Body), len(m.Topic), len(m.Properties))
	}
	hand, generated := make([]byte, m.Size()), make([]byte, m.Size())
	n, err := handEncode(m, hand)
	if err != nil || n != len(hand) {
		t.Fatal(n, err)
	}
	if n, err := m.Encode(generated); err != nil || n != len(generated) {
		t.Fatal(n, err)
	}
	if !bytes.Equal(hand, generated) {
		t.Fatalf("hand\n%x\ngenerated\n%x", hand, generated)
	}
	var a, b decoded
	var hv handView
	var gv MessageView
	if err := handDecode(&hv, hand, &a); err != nil {
		t.Fatal(err)
	}
	if err := generatedDecode(&gv, hand, &b); err != nil {
		t.Fatal(err)
	}
	if string(a.body) != string(b.body) || string(a.topic) != string(b.topic) || string(a.props) != string(b.props) ||
		a.prepared != b.prepared || a.crc != b.crc || a.store != b.store {
		t.Errorf("hand %+v\ngenerated %+v", a, b)
	}
}

func TestMessageAllocatesNothing(t *testing.T) {
	m := benchMessage()
	m.PropertiesReserve = ChecksumTrailerSize
	dst := make([]byte, m.Size())
	var v MessageView
	var d decoded
	requireNoAllocs(t, func() {
		n, _ := m.Encode(dst)
		PatchMessageQueueOffset(dst, 1)
		PatchMessagePhysicalOffset(dst, 2)
		PatchMessageStoreTimestamp(dst, 3)
		SealRecord(dst[:n])
		if CheckRecord(dst) != ChecksumValid || generatedDecode(&v, dst, &d) != nil || !v.CheckBodyCRC() {
			panic("the sample does not hold")
		}
		TagsCode(v.Properties())
	})
}

func BenchmarkEncode(b *testing.B) {
	m := benchMessage()
	dst := make([]byte, m.Size())
	b.Run("generated", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.Encode(dst); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := handEncode(m, dst); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	m := benchMessage()
	src := make([]byte, m.Size())
	if _, err := m.Encode(src); err != nil {
		b.Fatal(err)
	}
	b.Run("generated", func(b *testing.B) {
		var v MessageView
		var d decoded
		b.ReportAllocs()
		for b.Loop() {
			if err := generatedDecode(&v, src, &d); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("hand", func(b *testing.B) {
		var v handView
		var d decoded
		b.ReportAllocs()
		for b.Loop() {
			if err := handDecode(&v, src, &d); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	m := benchMessage()
	src := make([]byte, m.Size())
	if _, err := m.Encode(src); err != nil {
		b.Fatal(err)
	}
	b.Run("generated", func(b *testing.B) {
		var v MessageView
		for b.Loop() {
			if err := v.Parse(src); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("hand", func(b *testing.B) {
		var v handView
		for b.Loop() {
			if err := v.parse(src); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkSealRecord(b *testing.B) {
	m := benchMessage()
	m.PropertiesReserve = ChecksumTrailerSize
	dst := make([]byte, m.Size())
	if _, err := m.Encode(dst); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		SealRecord(dst)
	}
}

func BenchmarkCheckRecord(b *testing.B) {
	m := benchMessage()
	m.PropertiesReserve = ChecksumTrailerSize
	dst := make([]byte, m.Size())
	if _, err := m.Encode(dst); err != nil {
		b.Fatal(err)
	}
	SealRecord(dst)
	b.ReportAllocs()
	for b.Loop() {
		if CheckRecord(dst) != ChecksumValid {
			b.Fatal("not valid")
		}
	}
}

func BenchmarkTagsCode(b *testing.B) {
	props := benchMessage().Properties
	b.ReportAllocs()
	for b.Loop() {
		TagsCode(props)
	}
}
