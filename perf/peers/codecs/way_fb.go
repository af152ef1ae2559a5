package codecs

import (
	"bytes"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/stratalog/stratalog/perf/peers/codecs/fb"
)

// encodeTable builds a table from the fields, the bytes before it.
func encodeTable(rs []Record) func() ([]byte, error) {
	b := flatbuffers.NewBuilder(room(rs))
	return func() ([]byte, error) {
		for i := range rs {
			oneTable(b, &rs[i])
		}
		return b.FinishedBytes(), nil
	}
}

//go:noinline
func oneTable(b *flatbuffers.Builder, r *Record) {
	b.Reset()
	properties := b.CreateByteVector(r.Properties)
	topic := b.CreateByteVector(r.Topic)
	body := b.CreateByteVector(r.Body)
	storeHost := b.CreateByteVector(r.StoreHost)
	bornHost := b.CreateByteVector(r.BornHost)
	fb.RecordStart(b)
	// The wide ones first, so that nothing is spent on padding between them.
	fb.RecordAddQueueOffset(b, r.QueueOffset)
	fb.RecordAddPhysicalOffset(b, r.PhysicalOffset)
	fb.RecordAddBornTimestamp(b, r.BornTimestamp)
	fb.RecordAddStoreTimestamp(b, r.StoreTimestamp)
	fb.RecordAddPreparedTransactionOffset(b, r.PreparedTransactionOffset)
	fb.RecordAddMagic(b, r.Magic)
	fb.RecordAddQueueId(b, r.QueueID)
	fb.RecordAddFlag(b, r.Flag)
	fb.RecordAddSysFlag(b, r.SysFlag)
	fb.RecordAddBornHost(b, bornHost)
	fb.RecordAddStoreHost(b, storeHost)
	fb.RecordAddReconsumeTimes(b, r.ReconsumeTimes)
	fb.RecordAddBody(b, body)
	fb.RecordAddTopic(b, topic)
	fb.RecordAddProperties(b, properties)
	b.Finish(fb.RecordEnd(b))
}

// encodePacked writes what has a fixed width as one struct.
func encodePacked(rs []Record) func() ([]byte, error) {
	b := flatbuffers.NewBuilder(room(rs))
	return func() ([]byte, error) {
		for i := range rs {
			onePacked(b, &rs[i])
		}
		return b.FinishedBytes(), nil
	}
}

//go:noinline
func onePacked(b *flatbuffers.Builder, r *Record) {
	b.Reset()
	properties := b.CreateByteVector(r.Properties)
	topic := b.CreateByteVector(r.Topic)
	body := b.CreateByteVector(r.Body)
	storeHost := b.CreateByteVector(r.StoreHost)
	bornHost := b.CreateByteVector(r.BornHost)
	fb.PackedStart(b)
	fb.PackedAddHead(b, fb.CreateHead(b, r.Magic, r.QueueID, r.Flag, r.SysFlag, r.QueueOffset, r.PhysicalOffset,
		r.BornTimestamp, r.StoreTimestamp, r.PreparedTransactionOffset, r.ReconsumeTimes))
	fb.PackedAddBornHost(b, bornHost)
	fb.PackedAddStoreHost(b, storeHost)
	fb.PackedAddBody(b, body)
	fb.PackedAddTopic(b, topic)
	fb.PackedAddProperties(b, properties)
	b.Finish(fb.PackedEnd(b))
}

// decodeTable reads through the accessors.
func decodeTable(encoded [][]byte) func() (uint64, error) {
	var m fb.Record
	return func() (uint64, error) {
		sum := uint64(0)
		for _, b := range encoded {
			sum += sumTable(&m, b)
		}
		return sum, nil
	}
}

//go:noinline
func sumTable(m *fb.Record, b []byte) uint64 {
	m.Init(b, flatbuffers.GetUOffsetT(b))
	return uint64(m.Magic()) + uint64(m.QueueId()) + uint64(m.Flag()) + uint64(m.QueueOffset()) +
		uint64(m.PhysicalOffset()) + uint64(m.SysFlag()) + uint64(m.BornTimestamp()) +
		touch(m.BornHostBytes()) + uint64(m.StoreTimestamp()) + touch(m.StoreHostBytes()) +
		uint64(m.ReconsumeTimes()) + uint64(m.PreparedTransactionOffset()) + touch(m.BodyBytes()) +
		touch(m.TopicBytes()) + touch(m.PropertiesBytes())
}

// decodePacked reads through the accessors of the struct and of the table.
func decodePacked(encoded [][]byte) func() (uint64, error) {
	var m fb.Packed
	var h fb.Head
	return func() (uint64, error) {
		sum := uint64(0)
		for _, b := range encoded {
			sum += sumPacked(&m, &h, b)
		}
		return sum, nil
	}
}

//go:noinline
func sumPacked(m *fb.Packed, h *fb.Head, b []byte) uint64 {
	m.Init(b, flatbuffers.GetUOffsetT(b))
	m.Head(h)
	return uint64(h.Magic()) + uint64(h.QueueId()) + uint64(h.Flag()) + uint64(h.QueueOffset()) +
		uint64(h.PhysicalOffset()) + uint64(h.SysFlag()) + uint64(h.BornTimestamp()) +
		touch(m.BornHostBytes()) + uint64(h.StoreTimestamp()) + touch(m.StoreHostBytes()) +
		uint64(h.ReconsumeTimes()) + uint64(h.PreparedTransactionOffset()) + touch(m.BodyBytes()) +
		touch(m.TopicBytes()) + touch(m.PropertiesBytes())
}

func recordTable(b []byte) (Record, error) {
	m := fb.GetRootAsRecord(b, 0)
	return Record{
		Magic: m.Magic(), QueueID: m.QueueId(), Flag: m.Flag(), QueueOffset: m.QueueOffset(),
		PhysicalOffset: m.PhysicalOffset(), SysFlag: m.SysFlag(), BornTimestamp: m.BornTimestamp(),
		BornHost: bytes.Clone(m.BornHostBytes()), StoreTimestamp: m.StoreTimestamp(),
		StoreHost: bytes.Clone(m.StoreHostBytes()), ReconsumeTimes: m.ReconsumeTimes(),
		PreparedTransactionOffset: m.PreparedTransactionOffset(), Body: bytes.Clone(m.BodyBytes()),
		Topic: bytes.Clone(m.TopicBytes()), Properties: bytes.Clone(m.PropertiesBytes()),
	}, nil
}

func recordPacked(b []byte) (Record, error) {
	m := fb.GetRootAsPacked(b, 0)
	h := m.Head(nil)
	return Record{
		Magic: h.Magic(), QueueID: h.QueueId(), Flag: h.Flag(), QueueOffset: h.QueueOffset(),
		PhysicalOffset: h.PhysicalOffset(), SysFlag: h.SysFlag(), BornTimestamp: h.BornTimestamp(),
		BornHost: bytes.Clone(m.BornHostBytes()), StoreTimestamp: h.StoreTimestamp(),
		StoreHost: bytes.Clone(m.StoreHostBytes()), ReconsumeTimes: h.ReconsumeTimes(),
		PreparedTransactionOffset: h.PreparedTransactionOffset(), Body: bytes.Clone(m.BodyBytes()),
		Topic: bytes.Clone(m.TopicBytes()), Properties: bytes.Clone(m.PropertiesBytes()),
	}, nil
}
