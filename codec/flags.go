package codec

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
