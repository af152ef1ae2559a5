// Package mp is the record of the log for MessagePack, in the three forms that
// msgp offers. The methods are in record_gen.go.
package mp

//msgp:tuple Tuple Aliased

// Map is encoded as a map with short keys: fields may come and go.
type Map struct {
	Magic                     uint32 `msg:"m"`
	QueueID                   int32  `msg:"q"`
	Flag                      int32  `msg:"f"`
	QueueOffset               int64  `msg:"qo"`
	PhysicalOffset            int64  `msg:"po"`
	SysFlag                   int32  `msg:"sf"`
	BornTimestamp             int64  `msg:"bt"`
	BornHost                  []byte `msg:"bh"`
	StoreTimestamp            int64  `msg:"st"`
	StoreHost                 []byte `msg:"sh"`
	ReconsumeTimes            int32  `msg:"r"`
	PreparedTransactionOffset int64  `msg:"pt"`
	Body                      []byte `msg:"b"`
	Topic                     []byte `msg:"t"`
	Properties                []byte `msg:"p"`
}

// Tuple is encoded as an array: fields are known by their places.
type Tuple struct {
	Magic                     uint32 `msg:"m"`
	QueueID                   int32  `msg:"q"`
	Flag                      int32  `msg:"f"`
	QueueOffset               int64  `msg:"qo"`
	PhysicalOffset            int64  `msg:"po"`
	SysFlag                   int32  `msg:"sf"`
	BornTimestamp             int64  `msg:"bt"`
	BornHost                  []byte `msg:"bh"`
	StoreTimestamp            int64  `msg:"st"`
	StoreHost                 []byte `msg:"sh"`
	ReconsumeTimes            int32  `msg:"r"`
	PreparedTransactionOffset int64  `msg:"pt"`
	Body                      []byte `msg:"b"`
	Topic                     []byte `msg:"t"`
	Properties                []byte `msg:"p"`
}

// Aliased is a Tuple whose bytes alias what it was decoded from.
type Aliased struct {
	Magic                     uint32 `msg:"m"`
	QueueID                   int32  `msg:"q"`
	Flag                      int32  `msg:"f"`
	QueueOffset               int64  `msg:"qo"`
	PhysicalOffset            int64  `msg:"po"`
	SysFlag                   int32  `msg:"sf"`
	BornTimestamp             int64  `msg:"bt"`
	BornHost                  []byte `msg:"bh,zerocopy"`
	StoreTimestamp            int64  `msg:"st"`
	StoreHost                 []byte `msg:"sh,zerocopy"`
	ReconsumeTimes            int32  `msg:"r"`
	PreparedTransactionOffset int64  `msg:"pt"`
	Body                      []byte `msg:"b,zerocopy"`
	Topic                     []byte `msg:"t,zerocopy"`
	Properties                []byte `msg:"p,zerocopy"`
}
