package cq

import (
	"fmt"
	"math"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// The defaults of Options.
const (
	// DefaultFileSize is the length of a queue file: 300,000 units.
	DefaultFileSize = 300_000 * unitSize
	// DefaultMaxHandles bounds the files that are kept open.
	DefaultMaxHandles = 1024
	// DefaultMaxGapFiles bounds how much a jump in a queue may fill.
	DefaultMaxGapFiles = 16
)

const unitSize = codec.QueueUnitSize

// sizeMax is the largest length of a file, in bytes. offsetMax keeps the places of
// units, and of two files behind them, below 2^63.
const (
	sizeMax   = 1 << 40
	offsetMax = (math.MaxInt64 - 2*sizeMax) / unitSize
)

// Options says how a Store works on its directory.
type Options struct {
	// FileSize is the length of a queue file in bytes. It is rounded up to a
	// multiple of 20. Default DefaultFileSize. All files of a directory have
	// the same length.
	FileSize int64
	// MaxHandles bounds the open files that are kept for later use. Readers
	// and the lane may hold a few more for the time of one call. Default
	// DefaultMaxHandles.
	MaxHandles int
	// MaxGapFiles bounds the blank units that one jump in a queue's offsets
	// may make, in files: a wild queue offset must not fill the disk. Default
	// DefaultMaxGapFiles.
	MaxGapFiles int
	// DelayLevels are the delays of the levels from 1 on, for the units of
	// SCHEDULE_TOPIC_XXXX. Default DefaultDelayLevels.
	DelayLevels []time.Duration
	// ExtWrite gives each unit an extension unit.
	ExtWrite bool
	// ReadOnly opens without ever changing anything; Apply is refused and
	// TruncateAbove moves ends in memory only.
	ReadOnly bool
	// ExtFileSize is the length of an extension file in bytes. Default: that of
	// the files that exist, else DefaultExtFileSize.
	ExtFileSize int64
	// BatchFileSize is the length of a batch queue file in bytes, a multiple of
	// 46. Default: that of the files that exist, else DefaultBatchFileSize.
	BatchFileSize int64
}

func (o Options) withDefaults() (Options, error) {
	if o.FileSize == 0 {
		o.FileSize = DefaultFileSize
	}
	if o.MaxHandles == 0 {
		o.MaxHandles = DefaultMaxHandles
	}
	if o.MaxGapFiles == 0 {
		o.MaxGapFiles = DefaultMaxGapFiles
	}
	if o.DelayLevels == nil {
		o.DelayLevels = DefaultDelayLevels()
	}
	if o.FileSize < 0 || o.FileSize > sizeMax || o.ExtFileSize < 0 || o.BatchFileSize < 0 || o.BatchFileSize > sizeMax || o.ExtFileSize > sizeMax || o.MaxHandles < 0 || o.MaxGapFiles < 0 {
		return o, contract.NewError(contract.KindInvalid, contract.OpOpen, contract.ComponentConfig,
			fmt.Sprintf("consume queue: file size %d, handles %d, gap files %d: out of range",
				o.FileSize, o.MaxHandles, o.MaxGapFiles), nil)
	}
	o.FileSize = RoundFileSize(o.FileSize)
	return o, nil
}

// RoundFileSize returns size rounded up to a multiple of the unit's size, as
// RocketMQ does with its configured value.
func RoundFileSize(size int64) int64 {
	return (size + unitSize - 1) / unitSize * unitSize
}
