package codecs

import (
	"bytes"

	"github.com/stratalog/stratalog/perf/peers/codecs/plain"
)

// encodePlain is our encoder.
func encodePlain(rs []Record) func() ([]byte, error) {
	ms, dst := make([]plain.Record, len(rs)), make([]byte, room(rs))
	for i := range rs {
		r := &rs[i]
		ms[i] = plain.Record{
			Magic: r.Magic, QueueID: r.QueueID, Flag: r.Flag, QueueOffset: r.QueueOffset,
			PhysicalOffset: r.PhysicalOffset, SysFlag: r.SysFlag, BornTimestamp: r.BornTimestamp,
			BornHost: r.BornHost, StoreTimestamp: r.StoreTimestamp, StoreHost: r.StoreHost,
			ReconsumeTimes: r.ReconsumeTimes, PreparedTransactionOffset: r.PreparedTransactionOffset,
			Body: r.Body, Topic: r.Topic, Properties: r.Properties,
		}
	}
	return func() ([]byte, error) {
		var n int
		var err error
		for i := range ms {
			if n, err = ms[i].Encode(dst); err != nil {
				return nil, err
			}
		}
		return dst[:n], nil
	}
}

// encodeCopies is the yardstick: it copies the body, the topic and the properties
// to their places, writes nothing else and checks nothing but the room. Every
// codec that writes one run of bytes makes these copies.
func encodeCopies(rs []Record) func() ([]byte, error) {
	dst := make([]byte, room(rs))
	return func() ([]byte, error) {
		n := 0
		for i := range rs {
			n = copies(&rs[i], dst)
		}
		return dst[:n], nil
	}
}

//go:noinline
func copies(r *Record, dst []byte) int {
	topic := plain.RecordMinSize - 3 + len(r.Body)
	props := topic + 1 + len(r.Topic)
	n := props + 2 + len(r.Properties)
	if len(dst) < n {
		return 0
	}
	copy(dst[plain.RecordMinSize-3:], r.Body)
	copy(dst[topic+1:], r.Topic)
	copy(dst[props+2:], r.Properties)
	return n
}

// decodePlain is our view.
func decodePlain(encoded [][]byte) func() (uint64, error) {
	var v plain.RecordView
	return func() (uint64, error) {
		sum := uint64(0)
		for _, b := range encoded {
			s, err := sumPlain(&v, b)
			if err != nil {
				return 0, err
			}
			sum += s
		}
		return sum, nil
	}
}

//go:noinline
func sumPlain(v *plain.RecordView, b []byte) (uint64, error) {
	if err := v.Parse(b); err != nil {
		return 0, err
	}
	return uint64(v.Magic()) + uint64(v.QueueID()) + uint64(v.Flag()) + uint64(v.QueueOffset()) +
		uint64(v.PhysicalOffset()) + uint64(v.SysFlag()) + uint64(v.BornTimestamp()) +
		touch(v.BornHost()) + uint64(v.StoreTimestamp()) + touch(v.StoreHost()) +
		uint64(v.ReconsumeTimes()) + uint64(v.PreparedTransactionOffset()) + touch(v.Body()) +
		touch(v.Topic()) + touch(v.Properties()), nil
}

func recordPlain(b []byte) (Record, error) {
	var v plain.RecordView
	if err := v.Parse(b); err != nil {
		return Record{}, err
	}
	return Record{
		Magic: v.Magic(), QueueID: v.QueueID(), Flag: v.Flag(), QueueOffset: v.QueueOffset(),
		PhysicalOffset: v.PhysicalOffset(), SysFlag: v.SysFlag(), BornTimestamp: v.BornTimestamp(),
		BornHost: bytes.Clone(v.BornHost()), StoreTimestamp: v.StoreTimestamp(),
		StoreHost: bytes.Clone(v.StoreHost()), ReconsumeTimes: v.ReconsumeTimes(),
		PreparedTransactionOffset: v.PreparedTransactionOffset(), Body: bytes.Clone(v.Body()),
		Topic: bytes.Clone(v.Topic()), Properties: bytes.Clone(v.Properties()),
	}, nil
}
