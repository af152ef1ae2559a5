package contract

import (
	"errors"
	"fmt"
)

// Lane identifies one kind of derived state.
type Lane uint8

// The lanes, with the numbers that their cursors carry on disk.
const (
	LaneQueue   Lane = 1
	LaneIndex   Lane = 2
	LaneRocksDB Lane = 3
	LaneTiered  Lane = 4
	LaneTimer   Lane = 6
)

// String returns the lane's name.
func (l Lane) String() string {
	switch l {
	case LaneQueue:
		return "consumequeue"
	case LaneIndex:
		return "index"
	case LaneRocksDB:
		return "rocksdb"
	case LaneTiered:
		return "tiered"
	case LaneTimer:
		return "timer"
	}
	return fmt.Sprintf("lane(%d)", uint8(l))
}

// RecordID names one stretch of log bytes: the record [Offset, Offset+Length)
// as written in Epoch.
type RecordID struct {
	Epoch  Epoch
	Offset Offset
	Length int64
}

// The reasons for which Cursor.Prepare refuses a record.
var (
	// ErrCursorGap is returned when a record starts behind the cursor.
	ErrCursorGap = errors.New("cursor: gap before the record")
	// ErrCursorOverlap is returned when a record straddles the cursor.
	ErrCursorOverlap = errors.New("cursor: record straddles the cursor")
	// ErrCursorEpoch is returned when a record is of another epoch.
	ErrCursorEpoch = errors.New("cursor: record of another epoch")
	// ErrCursorRecord is returned when a record is empty or its end overflows.
	ErrCursorRecord = errors.New("cursor: impossible record")
)

// Cursor says how far a lane is: everything below Next is done in it. It is
// not a consumer's offset and does not convert to one.
type Cursor struct {
	Lane  Lane
	Epoch Epoch
	Next  Offset
}

// Advance tells what Prepare found.
type Advance struct {
	// Done is true when the record lies below the cursor: a safe no-op.
	Done bool
	// Next is the cursor to commit after the record's effect.
	Next Cursor
}

// Prepare checks that rec is the next record for c. It fails when rec leaves a
// gap, straddles the cursor, or belongs to another epoch.
func (c Cursor) Prepare(rec RecordID) (Advance, error) {
	end := rec.Offset + Offset(rec.Length)
	if rec.Length <= 0 || rec.Offset < 0 || end < rec.Offset {
		return Advance{}, ErrCursorRecord
	}
	if rec.Epoch != c.Epoch {
		return Advance{}, ErrCursorEpoch
	}
	switch {
	case end <= c.Next:
		return Advance{Done: true, Next: c}, nil
	case rec.Offset == c.Next:
		return Advance{Next: Cursor{Lane: c.Lane, Epoch: c.Epoch, Next: end}}, nil
	case rec.Offset > c.Next:
		return Advance{}, ErrCursorGap
	}
	return Advance{}, ErrCursorOverlap
}

// EpochStart says that the bytes from Start on were written in Epoch or later.
type EpochStart struct {
	Epoch Epoch
	Start Offset
}

// RollBackError says that log bytes below a cursor were cut or replaced after
// it was written, and where the lane has to go back to.
type RollBackError struct {
	Cursor Cursor
	To     Offset
}

// Error names the cursor and the point to roll back to.
func (e *RollBackError) Error() string {
	return fmt.Sprintf("cursor of lane %s at %d (epoch %d): the log was cut at %d since; roll back to there",
		e.Cursor.Lane, e.Cursor.Next, e.Cursor.Epoch, e.To)
}

// ResolveCursor brings c to the current epoch of table (ascending epochs). A
// cursor of an older epoch stays valid if it lies at or below the start of the
// next one; else the error is a *RollBackError with the point to roll back to.
// A cursor of an epoch that the table does not know is refused.
func ResolveCursor(c Cursor, table []EpochStart) (Cursor, error) {
	if len(table) == 0 {
		return Cursor{}, ErrCursorEpoch
	}
	known := false
	cut := Offset(-1)
	for _, e := range table {
		if e.Epoch == c.Epoch {
			known = true
			continue
		}
		if e.Epoch > c.Epoch && e.Start < c.Next && (cut < 0 || e.Start < cut) {
			cut = e.Start
		}
	}
	last := table[len(table)-1].Epoch
	if !known && (c.Epoch == 0 || c.Epoch > last || c.Epoch > table[0].Epoch) {
		return Cursor{}, ErrCursorEpoch
	}
	if cut >= 0 {
		return Cursor{}, &RollBackError{Cursor: c, To: cut}
	}
	return Cursor{Lane: c.Lane, Epoch: last, Next: c.Next}, nil
}
