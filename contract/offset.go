package contract

import "fmt"

// Offset is an absolute position in the primary log, in bytes. It is never
// used for a length, a count or a queue offset.
type Offset int64

// Range is the half-open interval [Start, End) of the primary log.
type Range struct {
	Start Offset
	End   Offset
}

// Len returns the number of bytes in r.
func (r Range) Len() int64 { return int64(r.End - r.Start) }

// Empty reports whether r holds no byte.
func (r Range) Empty() bool { return r.End <= r.Start }

// Contains reports whether o lies in r.
func (r Range) Contains(o Offset) bool { return o >= r.Start && o < r.End }

// String returns r as "[start,end)".
func (r Range) String() string { return fmt.Sprintf("[%d,%d)", r.Start, r.End) }

// Epoch numbers the generations of log bytes. It grows by one whenever bytes
// of the log were cut or replaced; epoch 0 is never written.
type Epoch uint32

// Watermarks are the exclusive ends that the log has reached. Appended >=
// Durable and Appended >= Confirmed always hold.
type Watermarks struct {
	// Appended is the end of the bytes written to the log (page cache).
	Appended Offset
	// Durable is the end of the bytes that a successful sync covers. It moves
	// back only when the log is truncated.
	Durable Offset
	// Confirmed is the end of what readers and lanes may see.
	Confirmed Offset
}
