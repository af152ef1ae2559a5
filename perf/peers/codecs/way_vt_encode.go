package codecs

import (
	"github.com/stratalog/stratalog/perf/peers/codecs/vt"
)

// fixedOf returns the messages with integers of fixed width.
func fixedOf(rs []Record) []*vt.Fixed {
	ms := make([]*vt.Fixed, len(rs))
	for i := range rs {
		r := &rs[i]
		ms[i] = &vt.Fixed{
			Magic: r.Magic, QueueId: r.QueueID, Flag: r.Flag, QueueOffset: r.QueueOffset,
			PhysicalOffset: r.PhysicalOffset, SysFlag: r.SysFlag, BornTimestamp: r.BornTimestamp,
			BornHost: r.BornHost, StoreTimestamp: r.StoreTimestamp, StoreHost: r.StoreHost,
			ReconsumeTimes: r.ReconsumeTimes, PreparedTransactionOffset: r.PreparedTransactionOffset,
			Body: r.Body, Topic: r.Topic, Properties: r.Properties,
		}
	}
	return ms
}

// encodeVTEnd leaves out the pass that finds the size: the buffer is known to be
// large enough, and the message stands at its end.
func encodeVTEnd(rs []Record) func() ([]byte, error) {
	ms, dst := fixedOf(rs), make([]byte, room(rs))
	return func() ([]byte, error) {
		n := 0
		for _, m := range ms {
			var err error
			if n, err = m.MarshalToSizedBufferVT(dst); err != nil {
				return nil, err
			}
		}
		return dst[len(dst)-n:], nil
	}
}

// encodeVTSized finds the size first, as one must whose buffer may be too small.
func encodeVTSized(rs []Record) func() ([]byte, error) {
	ms, dst := fixedOf(rs), make([]byte, room(rs))
	return func() ([]byte, error) {
		n := 0
		for _, m := range ms {
			var err error
			if n, err = m.MarshalToSizedBufferVT(dst[:m.SizeVT()]); err != nil {
				return nil, err
			}
		}
		return dst[:n], nil
	}
}

// encodeVTVarint is encodeVTSized with integers of variable width.
func encodeVTVarint(rs []Record) func() ([]byte, error) {
	ms, dst := make([]*vt.Record, len(rs)), make([]byte, room(rs))
	for i := range rs {
		r := &rs[i]
		ms[i] = &vt.Record{
			Magic: r.Magic, QueueId: r.QueueID, Flag: r.Flag, QueueOffset: r.QueueOffset,
			PhysicalOffset: r.PhysicalOffset, SysFlag: r.SysFlag, BornTimestamp: r.BornTimestamp,
			BornHost: r.BornHost, StoreTimestamp: r.StoreTimestamp, StoreHost: r.StoreHost,
			ReconsumeTimes: r.ReconsumeTimes, PreparedTransactionOffset: r.PreparedTransactionOffset,
			Body: r.Body, Topic: r.Topic, Properties: r.Properties,
		}
	}
	return func() ([]byte, error) {
		n := 0
		for _, m := range ms {
			var err error
			if n, err = m.MarshalToSizedBufferVT(dst[:m.SizeVT()]); err != nil {
				return nil, err
			}
		}
		return dst[:n], nil
	}
}
