package codecs

import (
	"bytes"

	"github.com/stratalog/stratalog/perf/peers/codecs/vt"
)

// A message that is used again must be reset: decoding merges, and a field that
// is zero is not among the bytes.

// decodeVT decodes into one message, whose bytes keep their capacity.
func decodeVT(encoded [][]byte) func() (uint64, error) {
	var m vt.Fixed
	return func() (uint64, error) {
		sum := uint64(0)
		for _, b := range encoded {
			s, err := oneVT(&m, b)
			if err != nil {
				return 0, err
			}
			sum += s
		}
		return sum, nil
	}
}

//go:noinline
func oneVT(m *vt.Fixed, b []byte) (uint64, error) {
	m.ResetVT()
	if err := m.UnmarshalVT(b); err != nil {
		return 0, err
	}
	return sumFixed(m), nil
}

// decodeVTPool takes a message from the pool and gives it back.
func decodeVTPool(encoded [][]byte) func() (uint64, error) {
	return func() (uint64, error) {
		sum := uint64(0)
		for _, b := range encoded {
			s, err := oneVTPool(b)
			if err != nil {
				return 0, err
			}
			sum += s
		}
		return sum, nil
	}
}

//go:noinline
func oneVTPool(b []byte) (uint64, error) {
	m := vt.FixedFromVTPool()
	err := m.UnmarshalVT(b)
	sum := sumFixed(m)
	m.ReturnToVTPool()
	return sum, err
}

// decodeVTUnsafe lets the bytes alias the input.
func decodeVTUnsafe(encoded [][]byte) func() (uint64, error) {
	var m vt.Fixed
	return func() (uint64, error) {
		sum := uint64(0)
		for _, b := range encoded {
			s, err := oneVTUnsafe(&m, b)
			if err != nil {
				return 0, err
			}
			sum += s
		}
		return sum, nil
	}
}

//go:noinline
func oneVTUnsafe(m *vt.Fixed, b []byte) (uint64, error) {
	m.ResetVT()
	if err := m.UnmarshalVTUnsafe(b); err != nil {
		return 0, err
	}
	return sumFixed(m), nil
}

// decodeVTVarint is decodeVTUnsafe with integers of variable width.
func decodeVTVarint(encoded [][]byte) func() (uint64, error) {
	var m vt.Record
	return func() (uint64, error) {
		sum := uint64(0)
		for _, b := range encoded {
			s, err := oneVTVarintUnsafe(&m, b)
			if err != nil {
				return 0, err
			}
			sum += s
		}
		return sum, nil
	}
}

//go:noinline
func oneVTVarintUnsafe(m *vt.Record, b []byte) (uint64, error) {
	m.ResetVT()
	if err := m.UnmarshalVTUnsafe(b); err != nil {
		return 0, err
	}
	return sumVarint(m), nil
}

func recordVT(b []byte) (Record, error) {
	var m vt.Fixed
	err := m.UnmarshalVT(b)
	return recordFixed(&m), err
}

func recordVTUnsafe(b []byte) (Record, error) {
	var m vt.Fixed
	err := m.UnmarshalVTUnsafe(b)
	return recordFixed(&m), err
}

func recordVTVarint(b []byte) (Record, error) {
	var m vt.Record
	err := m.UnmarshalVTUnsafe(b)
	return recordVarint(&m), err
}

func sumFixed(m *vt.Fixed) uint64 {
	return uint64(m.Magic) + uint64(m.QueueId) + uint64(m.Flag) + uint64(m.QueueOffset) +
		uint64(m.PhysicalOffset) + uint64(m.SysFlag) + uint64(m.BornTimestamp) + touch(m.BornHost) +
		uint64(m.StoreTimestamp) + touch(m.StoreHost) + uint64(m.ReconsumeTimes) +
		uint64(m.PreparedTransactionOffset) + touch(m.Body) + touch(m.Topic) + touch(m.Properties)
}

func recordFixed(m *vt.Fixed) Record {
	return Record{
		Magic: m.Magic, QueueID: m.QueueId, Flag: m.Flag, QueueOffset: m.QueueOffset,
		PhysicalOffset: m.PhysicalOffset, SysFlag: m.SysFlag, BornTimestamp: m.BornTimestamp,
		BornHost: bytes.Clone(m.BornHost), StoreTimestamp: m.StoreTimestamp,
		StoreHost: bytes.Clone(m.StoreHost), ReconsumeTimes: m.ReconsumeTimes,
		PreparedTransactionOffset: m.PreparedTransactionOffset, Body: bytes.Clone(m.Body),
		Topic: bytes.Clone(m.Topic), Properties: bytes.Clone(m.Properties),
	}
}

func sumVarint(m *vt.Record) uint64 {
	return uint64(m.Magic) + uint64(m.QueueId) + uint64(m.Flag) + uint64(m.QueueOffset) +
		uint64(m.PhysicalOffset) + uint64(m.SysFlag) + uint64(m.BornTimestamp) + touch(m.BornHost) +
		uint64(m.StoreTimestamp) + touch(m.StoreHost) + uint64(m.ReconsumeTimes) +
		uint64(m.PreparedTransactionOffset) + touch(m.Body) + touch(m.Topic) + touch(m.Properties)
}

func recordVarint(m *vt.Record) Record {
	return Record{
		Magic: m.Magic, QueueID: m.QueueId, Flag: m.Flag, QueueOffset: m.QueueOffset,
		PhysicalOffset: m.PhysicalOffset, SysFlag: m.SysFlag, BornTimestamp: m.BornTimestamp,
		BornHost: bytes.Clone(m.BornHost), StoreTimestamp: m.StoreTimestamp,
		StoreHost: bytes.Clone(m.StoreHost), ReconsumeTimes: m.ReconsumeTimes,
		PreparedTransactionOffset: m.PreparedTransactionOffset, Body: bytes.Clone(m.Body),
		Topic: bytes.Clone(m.Topic), Properties: bytes.Clone(m.Properties),
	}
}
