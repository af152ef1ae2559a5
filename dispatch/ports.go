package dispatch

import (
	"context"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// Log is what the dispatcher needs of the log. All methods must be safe for
// concurrent use.
type Log interface {
	contract.WALPort
	// MinOffset returns the start of the oldest record that is there.
	MinOffset() contract.Offset
	// Confirmed returns the exclusive end of what lanes may see.
	Confirmed() contract.Offset
	// Durable returns the exclusive end of what a power cut leaves.
	Durable() contract.Offset
	// Epochs returns the epoch table, ascending, not empty. The caller does
	// not change it, and the log does not change what it has returned. The
	// new epoch of a cut must be in it before other bytes can be read.
	Epochs() []contract.EpochStart
	// WaitConfirmed returns nil once Confirmed is above beyond, or an error
	// when the log closes or ctx ends.
	WaitConfirmed(ctx context.Context, beyond contract.Offset) error
}

// Sink is the derived state of one lane. The dispatcher calls its methods from
// one goroutine at a time.
type Sink interface {
	// Lane returns the lane that the sink is the state of.
	Lane() contract.Lane
	// Apply takes the effect of a record. It may buffer it until Commit. It
	// must be idempotent, since a batch comes again after a failure or a
	// crash, and must not keep rec.
	Apply(id contract.RecordID, rec *codec.MessageView) error
	// Commit shows what was applied to readers. After an error the whole
	// batch comes again.
	Commit() error
	// Flush makes everything that was committed durable. After an error,
	// everything since the last good Flush comes again.
	Flush() error
}

// RollBacker is a Sink that can take effects back. RollBack is called when the
// log was cut at to: the effects of records that do not lie wholly below to
// must go, durably. A Sink without it must be right after the records that
// stand there now were applied over them.
type RollBacker interface {
	RollBack(to contract.Offset) error
}

// CursorStore keeps the cursors. It must be safe for concurrent use, and
// SaveCursor must be atomic: a crash leaves the old cursor or the new one.
type CursorStore interface {
	// LoadCursor returns the lane's cursor; false if there is none, an error
	// if there is something that is no cursor of this lane.
	LoadCursor(lane contract.Lane) (contract.Cursor, bool, error)
	// SaveCursor replaces the cursor of c.Lane.
	SaveCursor(c contract.Cursor) error
}

// Owner runs goroutines. The context that f gets ends when the owner closes.
type Owner interface {
	Go(name string, f func(ctx context.Context)) error
}
