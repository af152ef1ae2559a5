package codecs

import (
	"bytes"

	"github.com/stratalog/stratalog/perf/peers/codecs/mp"
)

// encodeTuple is msgp's encoder, as an array.
func encodeTuple(rs []Record) func() ([]byte, error) {
	ms, dst := make([]mp.Tuple, len(rs)), make([]byte, 0, room(rs))
	for i := range rs {
		r := &rs[i]
		ms[i] = mp.Tuple(tupleOf(r))
	}
	return func() ([]byte, error) {
		var b []byte
		var err error
		for i := range ms {
			if b, err = ms[i].MarshalMsg(dst[:0]); err != nil {
				return nil, err
			}
		}
		return b, nil
	}
}

// encodeMap is msgp's encoder, as a map.
func encodeMap(rs []Record) func() ([]byte, error) {
	ms, dst := make([]mp.Map, len(rs)), make([]byte, 0, room(rs))
	for i := range rs {
		r := &rs[i]
		ms[i] = mp.Map(tupleOf(r))
	}
	return func() ([]byte, error) {
		var b []byte
		var err error
		for i := range ms {
			if b, err = ms[i].MarshalMsg(dst[:0]); err != nil {
				return nil, err
			}
		}
		return b, nil
	}
}

func tupleOf(r *Record) mp.Tuple {
	return mp.Tuple{
		Magic: r.Magic, QueueID: r.QueueID, Flag: r.Flag, QueueOffset: r.QueueOffset,
		PhysicalOffset: r.PhysicalOffset, SysFlag: r.SysFlag, BornTimestamp: r.BornTimestamp,
		BornHost: r.BornHost, StoreTimestamp: r.StoreTimestamp, StoreHost: r.StoreHost,
		ReconsumeTimes: r.ReconsumeTimes, PreparedTransactionOffset: r.PreparedTransactionOffset,
		Body: r.Body, Topic: r.Topic, Properties: r.Properties,
	}
}

// decodeTuple decodes into one struct, whose bytes keep their capacity.
func decodeTuple(encoded [][]byte) func() (uint64, error) {
	var m mp.Tuple
	return func() (uint64, error) {
		sum := uint64(0)
		for _, b := range encoded {
			s, err := sumTuple(&m, b)
			if err != nil {
				return 0, err
			}
			sum += s
		}
		return sum, nil
	}
}

//go:noinline
func sumTuple(m *mp.Tuple, b []byte) (uint64, error) {
	if _, err := m.UnmarshalMsg(b); err != nil {
		return 0, err
	}
	return uint64(m.Magic) + uint64(m.QueueID) + uint64(m.Flag) + uint64(m.QueueOffset) +
		uint64(m.PhysicalOffset) + uint64(m.SysFlag) + uint64(m.BornTimestamp) + touch(m.BornHost) +
		uint64(m.StoreTimestamp) + touch(m.StoreHost) + uint64(m.ReconsumeTimes) +
		uint64(m.PreparedTransactionOffset) + touch(m.Body) + touch(m.Topic) + touch(m.Properties), nil
}

func recordTuple(b []byte) (Record, error) {
	var m mp.Tuple
	_, err := m.UnmarshalMsg(b)
	return recordMsg((*mp.Tuple)(&m)), err
}

// decodeAliased lets the bytes alias the input.
func decodeAliased(encoded [][]byte) func() (uint64, error) {
	var m mp.Aliased
	return func() (uint64, error) {
		sum := uint64(0)
		for _, b := range encoded {
			s, err := sumAliased(&m, b)
			if err != nil {
				return 0, err
			}
			sum += s
		}
		return sum, nil
	}
}

//go:noinline
func sumAliased(m *mp.Aliased, b []byte) (uint64, error) {
	if _, err := m.UnmarshalMsg(b); err != nil {
		return 0, err
	}
	return uint64(m.Magic) + uint64(m.QueueID) + uint64(m.Flag) + uint64(m.QueueOffset) +
		uint64(m.PhysicalOffset) + uint64(m.SysFlag) + uint64(m.BornTimestamp) + touch(m.BornHost) +
		uint64(m.StoreTimestamp) + touch(m.StoreHost) + uint64(m.ReconsumeTimes) +
		uint64(m.PreparedTransactionOffset) + touch(m.Body) + touch(m.Topic) + touch(m.Properties), nil
}

func recordAliased(b []byte) (Record, error) {
	var m mp.Aliased
	_, err := m.UnmarshalMsg(b)
	return recordMsg((*mp.Tuple)(&m)), err
}

// decodeMap is decodeTuple from a map.
func decodeMap(encoded [][]byte) func() (uint64, error) {
	var m mp.Map
	return func() (uint64, error) {
		sum := uint64(0)
		for _, b := range encoded {
			s, err := sumMap(&m, b)
			if err != nil {
				return 0, err
			}
			sum += s
		}
		return sum, nil
	}
}

//go:noinline
func sumMap(m *mp.Map, b []byte) (uint64, error) {
	if _, err := m.UnmarshalMsg(b); err != nil {
		return 0, err
	}
	return uint64(m.Magic) + uint64(m.QueueID) + uint64(m.Flag) + uint64(m.QueueOffset) +
		uint64(m.PhysicalOffset) + uint64(m.SysFlag) + uint64(m.BornTimestamp) + touch(m.BornHost) +
		uint64(m.StoreTimestamp) + touch(m.StoreHost) + uint64(m.ReconsumeTimes) +
		uint64(m.PreparedTransactionOffset) + touch(m.Body) + touch(m.Topic) + touch(m.Properties), nil
}

func recordMap(b []byte) (Record, error) {
	var m mp.Map
	_, err := m.UnmarshalMsg(b)
	return recordMsg((*mp.Tuple)(&m)), err
}

func recordMsg(m *mp.Tuple) Record {
	return Record{
		Magic: m.Magic, QueueID: m.QueueID, Flag: m.Flag, QueueOffset: m.QueueOffset,
		PhysicalOffset: m.PhysicalOffset, SysFlag: m.SysFlag, BornTimestamp: m.BornTimestamp,
		BornHost: bytes.Clone(m.BornHost), StoreTimestamp: m.StoreTimestamp,
		StoreHost: bytes.Clone(m.StoreHost), ReconsumeTimes: m.ReconsumeTimes,
		PreparedTransactionOffset: m.PreparedTransactionOffset, Body: bytes.Clone(m.Body),
		Topic: bytes.Clone(m.Topic), Properties: bytes.Clone(m.Properties),
	}
}
