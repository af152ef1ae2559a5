package dispatch

import (
	"time"
)

// Options are the dispatcher's; a zero field stands for its default.
type Options struct {
	// BatchBytes bounds what is read, applied and committed at once. A lane
	// uses as much of the log's memory under a lease. Default 1 MiB.
	BatchBytes int
	// PersistEvery is how often a lane flushes and saves its cursor while it
	// has something to save: what a crash makes it repeat. Default 1 s.
	PersistEvery time.Duration
	// BackoffMin and BackoffMax bound the wait of a lane that failed. It
	// doubles from the one to the other. Defaults 10 ms and 5 s.
	BackoffMin time.Duration
	BackoffMax time.Duration
}

func (o Options) withDefaults() Options {
	if o.BatchBytes <= 0 {
		o.BatchBytes = 1 << 20
	}
	if o.PersistEvery <= 0 {
		o.PersistEvery = time.Second
	}
	if o.BackoffMin <= 0 {
		o.BackoffMin = 10 * time.Millisecond
	}
	if o.BackoffMax < o.BackoffMin {
		o.BackoffMax = max(5*time.Second, o.BackoffMin)
	}
	return o
}

// RetiredPolicy says what becomes of a lane whose next record was retired.
type RetiredPolicy uint8

const (
	// RetiredFail fails the lane with a *RetiredError.
	RetiredFail RetiredPolicy = iota
	// RetiredSkip goes on with the log's first record and counts what was
	// left out in LaneStatus.SkippedBytes.
	RetiredSkip
)

// LaneOptions are one lane's.
type LaneOptions struct {
	// Required makes the lane count for the frontier, and CatchUp and Close
	// fail if it is behind.
	Required bool
	// OnRetired is the policy for records that were retired before the lane
	// came to them.
	OnRetired RetiredPolicy
	// PersistEvery overrides Options.PersistEvery for the lane; 0 does not.
	PersistEvery time.Duration
	// LagMax, if not 0, has CatchUp and Close leave the lane behind, and say
	// so, if it has more bytes of the log to go: an open or a close must not
	// wait until a lane that is not required was built anew.
	LagMax int64
}
