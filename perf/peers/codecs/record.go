package codecs

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/stratalog/stratalog/codec"
)

// Record is the message of all codecs: a record of the log without its size,
// which is framing, and without its checksum.
type Record struct {
	Magic                                  uint32
	QueueID, Flag, SysFlag, ReconsumeTimes int32
	QueueOffset, PhysicalOffset            int64
	BornTimestamp, StoreTimestamp          int64
	PreparedTransactionOffset              int64
	BornHost, StoreHost                    []byte
	Body, Topic, Properties                []byte
}

// Sum is what a way to decode returns: every integer, and of each of the bytes
// what touch takes.
func (r *Record) Sum() uint64 {
	return uint64(r.Magic) + uint64(r.QueueID) + uint64(r.Flag) + uint64(r.QueueOffset) + uint64(r.PhysicalOffset) +
		uint64(r.SysFlag) + uint64(r.BornTimestamp) + touch(r.BornHost) + uint64(r.StoreTimestamp) +
		touch(r.StoreHost) + uint64(r.ReconsumeTimes) + uint64(r.PreparedTransactionOffset) + touch(r.Body) +
		touch(r.Topic) + touch(r.Properties)
}

// touch reads b without going through all of it, which would be the same work
// for all codecs and hide what differs.
func touch(b []byte) uint64 {
	if len(b) == 0 {
		return 0
	}
	return uint64(len(b)) + uint64(b[0])
}

// Equal says whether all fields are the same. Empty and nil bytes are.
func (r *Record) Equal(o *Record) bool {
	return r.Magic == o.Magic && r.QueueID == o.QueueID && r.Flag == o.Flag && r.QueueOffset == o.QueueOffset &&
		r.PhysicalOffset == o.PhysicalOffset && r.SysFlag == o.SysFlag && r.BornTimestamp == o.BornTimestamp &&
		bytes.Equal(r.BornHost, o.BornHost) && r.StoreTimestamp == o.StoreTimestamp &&
		bytes.Equal(r.StoreHost, o.StoreHost) && r.ReconsumeTimes == o.ReconsumeTimes &&
		r.PreparedTransactionOffset == o.PreparedTransactionOffset && bytes.Equal(r.Body, o.Body) &&
		bytes.Equal(r.Topic, o.Topic) && bytes.Equal(r.Properties, o.Properties)
}

// BatchSize is the number of records in a batch: few enough that their bytes
// stay in the first cache.
const BatchSize = 8

// Batch returns the records that are measured: as a broker stores them, each
// with a body of that many bytes, and no two alike.
func Batch(body int) []Record {
	rng := rand.New(rand.NewPCG(1, uint64(body)))
	rs := make([]Record, BatchSize)
	for i := range rs {
		props := codec.AppendProperty(nil, codec.PropertyTags, "TagA")
		props = codec.AppendProperty(props, codec.PropertyKeys, fmt.Sprintf("order-%d", rng.Uint64()))
		props = codec.AppendProperty(props, "UNIQ_KEY", fmt.Sprintf("7F0000010E8818B4AAC2%012X", rng.Uint64()>>16))
		born := 1_700_000_000_000 + rng.Int64N(1_000_000)
		rs[i] = Record{
			Magic: codec.MessageMagicV1, QueueID: 1 + rng.Int32N(15), Flag: 1 + rng.Int32N(3),
			QueueOffset: 1_000_000 + rng.Int64N(1_000_000), PhysicalOffset: 1<<36 + rng.Int64N(1<<34),
			SysFlag: 1, BornTimestamp: born, BornHost: random(rng, 8), StoreTimestamp: born + 1 + rng.Int64N(9),
			StoreHost: random(rng, 8), ReconsumeTimes: 1, PreparedTransactionOffset: 1<<36 + rng.Int64N(1<<34),
			Body: random(rng, body), Topic: fmt.Appendf(nil, "orders-of-region-%d", rng.IntN(1000)), Properties: props,
		}
	}
	return rs
}

// Any returns a record that is legal for all codecs, with extreme and empty
// values among its fields.
func Any(rng *rand.Rand) Record {
	r := Record{
		Magic: codec.MessageMagicV1, QueueID: int32(integer(rng)), Flag: int32(integer(rng)), QueueOffset: integer(rng),
		PhysicalOffset: integer(rng), SysFlag: int32(integer(rng)), BornTimestamp: integer(rng),
		StoreTimestamp: integer(rng), ReconsumeTimes: int32(integer(rng)), PreparedTransactionOffset: integer(rng),
		Body: random(rng, rng.IntN(3)*rng.IntN(3000)), Topic: random(rng, rng.IntN(128)),
		Properties: random(rng, rng.IntN(2)*rng.IntN(300)),
	}
	if rng.IntN(2) == 0 {
		r.Magic, r.Topic = codec.MessageMagicV2, random(rng, rng.IntN(1000))
	}
	r.BornHost = random(rng, hostSize(r.SysFlag, codec.SysFlagBornHostV6))
	r.StoreHost = random(rng, hostSize(r.SysFlag, codec.SysFlagStoreHostV6))
	return r
}

// hostSize is the size of a host, of which flag says that it is IPv6.
func hostSize(sysFlag int32, flag codec.SysFlag) int {
	if codec.SysFlag(sysFlag)&flag != 0 {
		return 20
	}
	return 8
}

// integer returns 0, or a value with any number of bits.
func integer(rng *rand.Rand) int64 {
	if rng.IntN(4) == 0 {
		return 0
	}
	return int64(rng.Uint64()) >> rng.IntN(64)
}

// random returns n random bytes.
func random(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}
