package stratalog

import (
	"time"

	"github.com/stratalog/stratalog/commitlog"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/clock"
	"github.com/stratalog/stratalog/internal/vfs"
)

// Options configures a Store. The zero value of a field stands for its default;
// only Dir must be set.
type Options struct {
	// Dir is the store's root directory, made if it is missing.
	Dir string

	// SegmentSize is the length of a log file in bytes, a multiple of 4096
	// below 2 GiB. Default: that of the files that exist, else 1 GiB. Java
	// must be configured with the same (mappedFileSizeCommitLog).
	SegmentSize int64
	// QueueFileSize is the length of a consume queue file in bytes, rounded up
	// to a multiple of 20. Default 6,000,000, as Java has it.
	QueueFileSize int64
	// MaxMessageSize bounds a body in bytes. Default 4 MiB.
	MaxMessageSize int

	// Durability is what an append with the zero Durability asks for. Default
	// Sync.
	Durability Durability
	// Visibility is how far readers and lanes may see. Default: what is
	// durable.
	Visibility Visibility
	// WritePath is how bytes get into the page cache. Default: mmap if
	// Durability is Memory, else pwrite.
	WritePath WritePath
	// SyncInterval is the longest time until a background sync covers what was
	// appended, whatever was asked. Default 500 ms.
	SyncInterval time.Duration
	// Interval is the promise of an append with durability Interval. Default
	// 10 ms.
	Interval time.Duration
	// SyncTimeout is how long a Sync append waits until it is answered
	// FlushDiskTimeout. Default 5 s.
	SyncTimeout time.Duration

	// NoRecordChecksum leaves out the checksum over the whole record, which
	// costs 20 bytes a record. Damage outside the body then goes unseen.
	NoRecordChecksum bool
	// NoVerifyReads skips the checksum on reads.
	NoVerifyReads bool

	// LightQueues puts a message into the light queues, too, that its property
	// INNER_MULTI_DISPATCH names, with commas: each begins with %LMQ%, has the
	// queue id 0, and is read by Get like any other. It is what Java's
	// enableLmq and enableMultiDispatch do together, and off as they are: each
	// name makes a directory, so whoever may set a property may make files, and
	// a Java broker with these options off would let the queues fall behind.
	// Records that have their numbers already, of whoever, are always in their
	// light queues. Messages of an AppendBatch are in none.
	LightQueues bool

	// DelayLevels are the delays of the levels from 1 on, for entries of
	// SCHEDULE_TOPIC_XXXX: Java's messageDelayLevel, which ParseDelayLevels
	// reads. Default 1 s to 2 h in 18 levels, as Java has it. No levels at all
	// (not nil) leave the entries the hash of their tags.
	DelayLevels []time.Duration
	// BatchQueueFileSize is the length of a file of a batch queue in bytes, a
	// multiple of 46. Default: that of the files that exist, else 13,800,000,
	// as Java has it.
	BatchQueueFileSize int64
	// ExtendedQueues gives each entry of a consume queue an entry in extension
	// files beside it, with the record's store time: Java's
	// enableConsumeQueueExt, off as that is. It makes entries 40 bytes instead
	// of 20. Entries that have one are read whatever is said here.
	ExtendedQueues bool
	// ExtendedFileSize is the length of an extension file in bytes. Default:
	// that of the files that exist, else 48 MiB, as Java has it.
	ExtendedFileSize int64

	// AdmissionWait is how long an append waits for room. Default 1 s;
	// negative refuses at once.
	AdmissionWait time.Duration
	// MaxInFlight and MaxInFlightSize bound what is admitted and not yet
	// answered, in records and bytes. Defaults 65536 and 64 MiB.
	MaxInFlight     int
	MaxInFlightSize int64
	// MaxUnsynced bounds what is appended and not yet durable, in bytes.
	// Default 64 MiB.
	MaxUnsynced int64
	// DiskFloor is the free space in bytes that the log leaves alone. Default
	// 64 MiB; negative means none.
	DiskFloor int64
	// MaxQueueFiles bounds the consume queue files held open. Default 1024.
	MaxQueueFiles int

	// NoIndex leaves out the key index: messages are then not found by key.
	NoIndex bool
	// IndexSlots and IndexEntries are the sizes of a key index file, both or
	// none set. Default: those of the files that exist, else 5,000,000 and
	// 20,000,000. Java must be configured with the same (maxHashSlotNum,
	// maxIndexNum). While messages with keys come, the slots of one file, 4
	// bytes each, are held in memory.
	IndexSlots   int
	IndexEntries int
	// IndexTags puts the tags of messages into the key index, too, as Java
	// does from 5.4 on.
	IndexTags bool

	// StoreHost stands in records that name none. Default 127.0.0.1:10911.
	StoreHost Host
	// Confirmer, if set, bounds what readers and lanes may see, for example by
	// what replicas hold.
	Confirmer contract.Confirmer

	// FS and Clock replace the operating system and the time. They are for
	// this module's own tests and tools.
	FS    vfs.FS
	Clock clock.Clock
}

// withDefaults fills in what the store itself needs; the parts have their own
// defaults.
func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	return o
}

// log returns the options of the log.
func (o Options) log() commitlog.Options {
	return commitlog.Options{
		FS: o.FS, Clock: o.Clock, Dir: o.Dir, SegmentSize: o.SegmentSize, MaxMessageSize: o.MaxMessageSize,
		Durability: o.Durability, Visibility: o.Visibility, Confirmer: o.Confirmer, WritePath: o.WritePath,
		NoRecordChecksum: o.NoRecordChecksum, LightQueues: o.LightQueues, NoVerifyReads: o.NoVerifyReads, SyncInterval: o.SyncInterval,
		Interval: o.Interval, SyncTimeout: o.SyncTimeout, AdmissionWait: o.AdmissionWait, MaxInFlight: o.MaxInFlight,
		MaxInFlightSize: o.MaxInFlightSize, MaxUnsynced: o.MaxUnsynced, DiskFloor: o.DiskFloor, StoreHost: o.StoreHost,
	}
}

// Validate checks what can be judged without touching the disk.
func (o Options) Validate() error {
	if o.QueueFileSize < 0 {
		return invalid("QueueFileSize %d is negative", o.QueueFileSize)
	}
	if o.BatchQueueFileSize < 0 || o.BatchQueueFileSize%46 != 0 {
		return invalid("BatchQueueFileSize %d is not a multiple of 46", o.BatchQueueFileSize)
	}
	if o.ExtendedFileSize < 0 {
		return invalid("ExtendedFileSize %d is negative", o.ExtendedFileSize)
	}
	if o.MaxQueueFiles < 0 {
		return invalid("MaxQueueFiles %d is negative", o.MaxQueueFiles)
	}
	if err := o.index().Validate(); err != nil {
		return err
	}
	return o.log().Validate()
}
