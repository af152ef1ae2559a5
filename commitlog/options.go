package commitlog

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/clock"
	"github.com/stratalog/stratalog/internal/vfs"
)

// WritePath says how record bytes get into the page cache.
type WritePath uint8

const (
	// WriteAuto takes WriteMmap when the default durability is Memory, else
	// WritePwrite (docs/decisions/0003 has the measurements).
	WriteAuto WritePath = iota
	// WritePwrite stages a batch and writes it with one pwrite.
	WritePwrite
	// WriteMmap copies each record into the mapping.
	WriteMmap
)

// String returns the word the command line uses.
func (w WritePath) String() string {
	switch w {
	case WriteAuto:
		return "auto"
	case WritePwrite:
		return "pwrite"
	case WriteMmap:
		return "mmap"
	}
	return fmt.Sprintf("write-path(%d)", uint8(w))
}

// ParseWritePath is the inverse of WritePath.String.
func ParseWritePath(s string) (WritePath, error) {
	for w := WriteAuto; w <= WriteMmap; w++ {
		if w.String() == s {
			return w, nil
		}
	}
	return 0, invalidOption("write path %q is none of auto, pwrite, mmap", s)
}

// Limits and defaults.
const (
	DefaultSegmentSize     = 1 << 30
	DefaultMaxMessageSize  = 4 << 20
	DefaultSyncInterval    = 500 * time.Millisecond
	DefaultInterval        = 10 * time.Millisecond
	DefaultSyncTimeout     = 5 * time.Second
	DefaultAdmissionWait   = time.Second
	DefaultMaxInFlight     = 1 << 16
	DefaultMaxInFlightSize = 64 << 20
	DefaultMaxUnsynced     = 64 << 20
	DefaultDiskFloor       = 64 << 20

	// MinSegmentSize is the smallest segment, one page.
	MinSegmentSize = 4096
	// MaxSegmentSize is the largest one: the format keeps lengths in int32.
	MaxSegmentSize = 1<<31 - 4096
	// maxTopic is the longest topic, in bytes.
	maxTopic = 127
)

var defaultStoreHost = contract.HostOf(netip.MustParseAddrPort("127.0.0.1:10911"))

// Options configures a Log. The zero value of a field stands for its default.
type Options struct {
	// FS is the file system; default vfs.OS().
	FS vfs.FS
	// Clock gives the time; default clock.Real().
	Clock clock.Clock
	// Dir is the store root. Segments lie in Dir/commitlog, the log's own
	// files in Dir/stratalog.
	Dir string
	// Catalog says where segments lie; default: all of them in Dir/commitlog.
	Catalog Catalog
	// SegmentSize is the fixed length of a segment in bytes, a multiple of
	// 4096. 0 takes the size of the segments that exist, else 1 GiB.
	SegmentSize int64
	// MaxMessageSize bounds a body in bytes; default 4 MiB.
	MaxMessageSize int
	// Durability is what an append with DurabilityDefault asks for; default
	// Sync.
	Durability contract.Durability
	// Visibility is the policy for the confirmed watermark; default Durable.
	Visibility contract.Visibility
	// Confirmer, if set, bounds the confirmed watermark from outside.
	Confirmer contract.Confirmer
	// WritePath is how bytes get into the page cache; default auto.
	WritePath WritePath
	// NoRecordChecksum leaves out the trailing checksum property. Damage
	// outside the body is then not detected.
	NoRecordChecksum bool
	// NoVerifyReads skips the checksum on each read.
	NoVerifyReads bool
	// SyncInterval is the longest time between an append and a background
	// sync that covers it, whatever was asked; default 500 ms.
	SyncInterval time.Duration
	// Interval is the promise of DurabilityInterval; default 10 ms.
	Interval time.Duration
	// SyncTimeout is how long a Sync append waits before it is answered
	// FlushDiskTimeout; default 5 s.
	SyncTimeout time.Duration
	// AdmissionWait is how long an append waits for room before it is
	// refused; default 1 s. Negative refuses at once.
	AdmissionWait time.Duration
	// MaxInFlight and MaxInFlightSize bound the appends admitted and not yet
	// answered, in records and bytes; default 65536 and 64 MiB.
	MaxInFlight     int
	MaxInFlightSize int64
	// MaxUnsynced bounds appended minus durable in bytes; default 64 MiB.
	// Recovery uses it to tell a torn tail from damage.
	MaxUnsynced int64
	// DiskFloor is the free space, in bytes, below which no segment is made;
	// default 64 MiB. Negative means none.
	DiskFloor int64
	// StoreHost stands in messages that name none; default 127.0.0.1:10911.
	StoreHost contract.Host
	// Unclean tells that the last owner did not close the store (the abort
	// file was there).
	Unclean bool
	// Stranger tells that another program has owned the store since this log was
	// opened last: it may have appended, and cut what it took for invalid.
	Stranger bool
	// Covered is where the record ends that the last entry of the queues leads to,
	// as found; 0 if that is not known. A log that another program closed has an
	// entry for all that was acknowledged: bytes behind that place are left from
	// before a recovery of its own.
	Covered contract.Offset
	// Offsets gives the next queue offsets at open and after a cut; default:
	// a scan of the whole log.
	Offsets OffsetSource
	// Gather is how long a commit waits for the next one of the producers that
	// are on their way; default 20 us, negative never. A lone producer never
	// waits.
	Gather time.Duration

	// zeroing, if its piece is set, replaces the distances of zeroLoop, and
	// firstZeroed how much of a segment that is needed at once is zeroed. Only
	// tests set them.
	zeroing     zeroing
	firstZeroed int64
	// broken switches one protection off, for the tests that prove that the
	// suite notices.
	broken breakage
}

// breakage names a protection to leave out. Only tests set it.
type breakage uint8

const (
	brokenNone breakage = iota
	brokenAckBeforeSync
	brokenNoDirSync
	brokenAckBeforeWrite
	brokenRetrySync
	brokenCutBelowBound
)

func invalidOption(format string, args ...any) error {
	return contract.NewError(contract.KindInvalid, contract.OpOpen, contract.ComponentConfig,
		fmt.Sprintf(format, args...), nil)
}

// withDefaults returns o with every zero field replaced.
func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	setDefault(&o.MaxMessageSize, DefaultMaxMessageSize)
	setDefault(&o.Durability, contract.DurabilitySync)
	setDefault(&o.SyncInterval, DefaultSyncInterval)
	setDefault(&o.Interval, DefaultInterval)
	setDefault(&o.SyncTimeout, DefaultSyncTimeout)
	setDefault(&o.AdmissionWait, DefaultAdmissionWait)
	setDefault(&o.MaxInFlight, DefaultMaxInFlight)
	setDefault(&o.MaxInFlightSize, DefaultMaxInFlightSize)
	setDefault(&o.MaxUnsynced, DefaultMaxUnsynced)
	setDefault(&o.DiskFloor, DefaultDiskFloor)
	setDefault(&o.firstZeroed, firstZeroed)
	setDefault(&o.Gather, 20*time.Microsecond)
	if o.StoreHost == (contract.Host{}) {
		o.StoreHost = defaultStoreHost
	}
	if o.WritePath == WriteAuto {
		o.WritePath = WritePwrite
		if o.Durability == contract.DurabilityMemory {
			o.WritePath = WriteMmap
		}
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate checks the fields that can be judged without touching the disk.
func (o Options) Validate() error {
	switch {
	case o.Dir == "":
		return invalidOption("Dir is empty")
	case o.SegmentSize != 0 && (o.SegmentSize < MinSegmentSize || o.SegmentSize > MaxSegmentSize || o.SegmentSize%4096 != 0):
		return invalidOption("SegmentSize %d is not a multiple of 4096 from %d to %d", o.SegmentSize, MinSegmentSize, MaxSegmentSize)
	case o.MaxMessageSize < 0 || o.MaxMessageSize > MaxSegmentSize/2:
		return invalidOption("MaxMessageSize %d is not in 0..%d", o.MaxMessageSize, MaxSegmentSize/2)
	case o.Durability > contract.DurabilitySync:
		return invalidOption("Durability %v is unknown", o.Durability)
	case o.Visibility > contract.VisibilityAppended:
		return invalidOption("Visibility %d is unknown", o.Visibility)
	case o.WritePath > WriteMmap:
		return invalidOption("WritePath %v is unknown", o.WritePath)
	case o.SyncInterval < 0 || o.Interval < 0 || o.SyncTimeout < 0:
		return invalidOption("SyncInterval, Interval and SyncTimeout must not be negative")
	case o.MaxInFlight < 0 || o.MaxInFlightSize < 0 || o.MaxUnsynced < 0:
		return invalidOption("MaxInFlight, MaxInFlightSize and MaxUnsynced must not be negative")
	case o.StoreHost.Port < 0 || o.StoreHost.Port > 65535:
		return invalidOption("StoreHost port %d is not in 0..65535", o.StoreHost.Port)
	}
	return nil
}
