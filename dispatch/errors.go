package dispatch

import (
	"errors"
	"fmt"

	"github.com/stratalog/stratalog/contract"
)

// The causes of a *LaneError that are this package's own; those of
// contract.Cursor.Prepare and of the sink come too.
var (
	// ErrMisplaced is the cause when a record stands in another place than
	// it names.
	ErrMisplaced = errors.New("record stands in another place than it names")
	// ErrPartRecord is the cause when the log hands out a part of a record.
	ErrPartRecord = errors.New("the log handed out a part of a record")
	// ErrBlank is the cause when bytes follow an end-of-segment mark.
	ErrBlank = errors.New("bytes follow an end-of-segment mark")
	// ErrBehind is the cause when a lane is not where it should be.
	ErrBehind = errors.New("lane is behind")
	// ErrPaused is the cause when a paused lane is behind at Close.
	ErrPaused = errors.New("lane is paused")
	// ErrStuck is the cause when a sink did not return by the deadline.
	ErrStuck = errors.New("lane did not stop by the deadline")
)

// LaneError says which lane failed, and at which place of the log.
type LaneError struct {
	Lane  contract.Lane
	At    contract.Offset
	Cause error
}

// Error names the lane, the place and the cause.
func (e *LaneError) Error() string {
	return fmt.Sprintf("lane %s at %d: %v", e.Lane, e.At, e.Cause)
}

// Unwrap returns the cause.
func (e *LaneError) Unwrap() error { return e.Cause }

// RetiredError says that the records a lane needs next are gone.
type RetiredError struct {
	Lane contract.Lane
	// Next is where the lane stands, Min the log's first record.
	Next contract.Offset
	Min  contract.Offset
}

// Error names the lane and both places.
func (e *RetiredError) Error() string {
	return fmt.Sprintf("lane %s at %d: the log begins at %d", e.Lane, e.Next, e.Min)
}

func stateError(kind contract.Kind, detail string) error {
	op := contract.OpDispatch
	return contract.NewError(kind, op, contract.ComponentDispatch, detail, nil)
}
