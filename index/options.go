package index

import (
	"fmt"
	"math"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/clock"
)

// The defaults of Options, which are Java's.
const (
	// DefaultSlots is the number of slots of a file.
	DefaultSlots = 5_000_000
	// DefaultEntries is the number of places for entries of a file.
	DefaultEntries = 20_000_000
	// DefaultMaxHandles bounds the files that are kept open, and mapped.
	DefaultMaxHandles = 64
)

const (
	headerSize = codec.IndexHeaderSize
	slotSize   = codec.IndexSlotSize
	entrySize  = codec.IndexEntrySize
)

// Options says how a Store works on its directory.
type Options struct {
	// Slots and Entries are the sizes of a file. Both or none are set; the
	// default is what the files that exist have, else DefaultSlots and
	// DefaultEntries. A file holds Entries-1 entries, so Entries is at least
	// 2. Java must be configured with the same (maxHashSlotNum, maxIndexNum).
	Slots   int
	Entries int
	// Tags makes an entry for the TAGS of a record, too.
	Tags bool
	// MaxHandles bounds the open files that are kept for later use, and the
	// mapped ones beside them. Default DefaultMaxHandles.
	MaxHandles int
	// StoreTime returns the store time of the record at a place of the log, in
	// epoch milliseconds; false if there is none. A file that is cut takes its
	// end time from it; without it the end of the last entry's second stands
	// in.
	StoreTime func(contract.Offset) (int64, bool, error)
	// Clock gives files their names. Default clock.Real().
	Clock clock.Clock
	// ReadOnly opens without ever changing anything; Apply is refused, and
	// Fit only tells what is certain.
	ReadOnly bool
}

func (o Options) withDefaults() (Options, error) {
	if o.MaxHandles == 0 {
		o.MaxHandles = DefaultMaxHandles
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if err := o.Validate(); err != nil {
		return o, err
	}
	return o, nil
}

// Validate checks what can be judged without touching the disk.
func (o Options) Validate() error {
	const most = math.MaxInt32 / entrySize
	none := o.Slots == 0 && o.Entries == 0
	if !none && (o.Slots < 1 || o.Slots > most || o.Entries < 2 || o.Entries > most) || o.MaxHandles < 0 {
		return contract.NewError(contract.KindInvalid, contract.OpOpen, contract.ComponentConfig,
			fmt.Sprintf("key index: %d slots, %d entries, %d handles: out of range", o.Slots, o.Entries, o.MaxHandles), nil)
	}
	return nil
}

// layout is where things stand in a file.
type layout struct{ slots, entries int64 }

func (l layout) fileSize() int64 { return l.entryAt(l.entries) }

// headSize is the length of header and slots.
func (l layout) headSize() int64 { return headerSize + l.slots*slotSize }

func (l layout) slotAt(slot int64) int64 { return headerSize + slot*slotSize }

func (l layout) entryAt(k int64) int64 { return l.headSize() + k*entrySize }
