package codec

// Bits of Message.SysFlag.
const (
	// SysFlagCompressed says that the producer compressed the body.
	SysFlagCompressed int32 = 0x1
	// SysFlagMultiTags says that TAGS holds several tags.
	SysFlagMultiTags int32 = 0x2
	// SysFlagTransactionMask covers the transaction type.
	SysFlagTransactionMask int32 = 0xC
	// SysFlagBornHostV6 says that BornHost has 20 bytes.
	SysFlagBornHostV6 int32 = 0x10
	// SysFlagStoreHostV6 says that StoreHost has 20 bytes.
	SysFlagStoreHostV6 int32 = 0x20
	// SysFlagNeedUnwrap says that the body holds a producer's batch.
	SysFlagNeedUnwrap int32 = 0x40
	// SysFlagInnerBatch says that the record holds many messages.
	SysFlagInnerBatch int32 = 0x80
	// SysFlagCompressionMask covers the compression type.
	SysFlagCompressionMask int32 = 0x700
)

// Values of the bits of SysFlagTransactionMask.
const (
	TransactionNone     int32 = 0x0
	TransactionPrepared int32 = 0x4
	TransactionCommit   int32 = 0x8
	TransactionRollback int32 = 0xC
)

// Values of the bits of SysFlagCompressionMask. Legacy is zlib, too.
const (
	CompressionLegacy int32 = 0x000
	CompressionLZ4    int32 = 0x100
	CompressionZSTD   int32 = 0x200
	CompressionZLIB   int32 = 0x300
)

// MaxPropertiesLength is the largest number of bytes of a message's
// properties, the checksum trailer included.
const MaxPropertiesLength = 32767

// CheckpointFileSize is the size of a checkpoint file in bytes. A Checkpoint
// stands at its start; the rest is zero.
const CheckpointFileSize = 4096

// QueueUnitBlankSize is the Size of the units that fill a consume queue which
// does not start at 0; their PhysicalOffset and TagsCode are 0.
const QueueUnitBlankSize int32 = 0x7fffffff

// MessageMagicFor returns the magic of a message with a topic of topicLength
// bytes: V2 from 128 bytes on, where the one byte of V1 no longer holds the
// length.
func MessageMagicFor(topicLength int) uint32 {
	if topicLength > 127 {
		return MessageMagicV2
	}
	return MessageMagicV1
}

// IsBlank says whether the unit is one of those that fill a queue which does
// not start at 0.
func (v *QueueUnitView) IsBlank() bool {
	return v.Size() == QueueUnitBlankSize && v.PhysicalOffset() == 0 && v.TagsCode() == 0
}

// IsWritten says whether the unit was written at all, as Java reckons: its
// offset is not negative and its size is positive.
func (v *QueueUnitView) IsWritten() bool {
	return v.PhysicalOffset() >= 0 && v.Size() > 0
}
