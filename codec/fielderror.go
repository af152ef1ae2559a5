package codec

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
)

// ErrNewerVersion is returned when a record is of a version that this program
// does not know: it may be whole, but cannot be read.
var ErrNewerVersion = errors.New("codec: record of a newer version")

// ErrShortBuffer is returned when the buffer given to Encode is too short.
var ErrShortBuffer = errors.New("codec: buffer too short")

// FieldError says which field of a record is wrong, and why.
type FieldError struct {
	// Record and Field are the names in the layout. Field is empty if the
	// record as a whole is meant.
	Record, Field string
	// Offset is where the field starts, counted from the record's first byte.
	Offset int
	// Reason is a sentence without a full stop.
	Reason string
	// Err is ErrNewerVersion, ErrShortBuffer or nil.
	Err error
}

// Error names the record, the field, its offset and the reason.
func (e *FieldError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("codec: %s: %s", e.Record, e.Reason)
	}
	return fmt.Sprintf("codec: %s.%s at byte %d: %s", e.Record, e.Field, e.Offset, e.Reason)
}

// Unwrap returns Err.
func (e *FieldError) Unwrap() error { return e.Err }

// castagnoli is the table of CRC-32C.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// What follows is called by generated code where something is wrong. The
// functions are kept out of line, so that the good path stays short.

// span is a field with the places where it starts and ends.
type span struct {
	field      string
	start, end int
}

//go:noinline
func fieldError(record, field string, offset int, err error, format string, args ...any) error {
	return &FieldError{Record: record, Field: field, Offset: offset, Reason: fmt.Sprintf(format, args...), Err: err}
}

// truncated names the first span that does not fit into have bytes.
//
//go:noinline
func truncated(record string, have int, spans []span) error {
	for _, s := range spans {
		if s.end > have {
			return fieldError(record, s.field, s.start, nil, "needs %d bytes, %d are left", s.end-s.start,
				max(0, have-s.start))
		}
	}
	return fieldError(record, "", 0, nil, "is cut off after %d bytes", have)
}

//go:noinline
func notOneOf(record, field string, offset int, got int64, want ...int64) error {
	var b strings.Builder
	for i, x := range want {
		if i > 0 {
			b.WriteString(" or ")
		}
		fmt.Fprintf(&b, "%#x", x)
	}
	return fieldError(record, field, offset, nil, "is %#x, not %s", got, b.String())
}

//go:noinline
func outOfRange(record, field string, offset int, got, low, high int64) error {
	return fieldError(record, field, offset, nil, "%d is not within %d to %d", got, low, high)
}

//go:noinline
func badTotal(record, field string, offset, got, low, high int) error {
	if got > high && low <= high {
		return fieldError(record, field, offset, nil, "says %d bytes, %d are there", got, high)
	}
	return fieldError(record, field, offset, nil, "says %d bytes, the smallest record has %d", got, low)
}

//go:noinline
func badLength(record, field string, offset, got, low, high, left int) error {
	if got < low || got > high {
		return fieldError(record, field, offset, nil, "length %d is not within %d to %d", got, low, high)
	}
	return fieldError(record, field, offset, nil, "length %d is more than the %d bytes left", got, left)
}

//go:noinline
func badWidth(record, field string, offset, got, want int) error {
	return fieldError(record, field, offset, nil, "has %d bytes where the flags ask for %d", got, want)
}

//go:noinline
func badSum(record, field string, offset, got, sum int) error {
	return fieldError(record, field, offset, nil, "says %d bytes, the fields have %d", got, sum)
}

//go:noinline
func badVersion(record, field string, offset int, got, known int64) error {
	if got > known {
		return fieldError(record, field, offset, ErrNewerVersion, "is %d, this program knows %d", got, known)
	}
	return fieldError(record, field, offset, nil, "is %d, which never was one", got)
}

//go:noinline
func badChecksum(record, field string, offset int, got, want uint32) error {
	return fieldError(record, field, offset, nil, "is %#08x, the bytes give %#08x", got, want)
}

//go:noinline
func notZero(record, field string, offset int) error {
	return fieldError(record, field, offset, nil, "reserved bytes are not zero")
}

//go:noinline
func shortBuffer(record string, need, have int) error {
	return fieldError(record, "", 0, ErrShortBuffer, "needs %d bytes, the buffer has %d", need, have)
}
