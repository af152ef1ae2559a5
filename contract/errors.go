package contract

import (
	"errors"
	"fmt"
	"strings"
)

// Kind says what sort of failure an Error is; it is what a program branches on.
type Kind uint8

// The kinds. Each has a stable code (Kind.Code).
const (
	KindInternal Kind = iota
	KindNotStarted
	KindUnavailable
	KindInvalid
	KindNotFound
	KindCapacity
	KindIO
	KindCorruption
	KindTimeout
	KindUnsupported
	KindClosed
	KindFenced
	KindLocked
	KindNewerFormat

	kindCount
)

var kindCodes = [kindCount]string{
	"STORE_INTERNAL", "STORE_NOT_STARTED", "STORE_UNAVAILABLE", "STORE_INVALID", "STORE_NOT_FOUND",
	"STORE_CAPACITY", "STORE_IO", "STORE_CORRUPTION", "STORE_TIMEOUT", "STORE_UNSUPPORTED",
	"STORE_CLOSED", "STORE_FENCED", "STORE_LOCKED", "STORE_NEWER_FORMAT",
}

// Code returns the stable code of k, for example "STORE_IO".
func (k Kind) Code() string {
	if k < kindCount {
		return kindCodes[k]
	}
	return fmt.Sprintf("STORE_KIND_%d", uint8(k))
}

// Operation says what was being done.
type Operation uint8

// The operations.
const (
	OpOpen Operation = iota
	OpStart
	OpClose
	OpAppend
	OpFlush
	OpRead
	OpQuery
	OpDispatch
	OpRecover
	OpTruncate
	OpVerify
	OpAdmin

	operationCount
)

var operationNames = [operationCount]string{
	"open", "start", "close", "append", "flush", "read", "query", "dispatch", "recover", "truncate",
	"verify", "admin",
}

// String returns a lower-case word.
func (o Operation) String() string {
	if o < operationCount {
		return operationNames[o]
	}
	return fmt.Sprintf("operation(%d)", uint8(o))
}

// Component says which part failed.
type Component uint8

// The components.
const (
	ComponentStore Component = iota
	ComponentConfig
	ComponentLog
	ComponentSegment
	ComponentSidecar
	ComponentDispatch
	ComponentQueue
	ComponentIndex
	ComponentRocksDB
	ComponentTiered
	ComponentReplication

	componentCount
)

var componentNames = [componentCount]string{
	"store", "config", "commitlog", "segment", "sidecar", "dispatch", "consumequeue", "index",
	"rocksdb", "tiered", "replication",
}

// String returns a lower-case word.
func (c Component) String() string {
	if c < componentCount {
		return componentNames[c]
	}
	return fmt.Sprintf("component(%d)", uint8(c))
}

// The sentinels, for errors.Is. Every Error of the matching kind is one of them.
var (
	// ErrClosed is returned when the store or a part of it has been closed.
	ErrClosed = errors.New("closed")
	// ErrNotStarted is returned when a call needs a stage that was not reached.
	ErrNotStarted = errors.New("not started")
	// ErrFenced is returned when a write or sync failed and Recover was not
	// called since.
	ErrFenced = errors.New("log is fenced")
	// ErrBusy is returned when admission is full; the text names the limit.
	ErrBusy = errors.New("busy")
	// ErrDiskFull is returned when the disk has no room for the log.
	ErrDiskFull = errors.New("disk full")
	// ErrInvalid is returned when an argument, option or message is refused.
	ErrInvalid = errors.New("invalid")
	// ErrNotFound is returned when what was named does not exist.
	ErrNotFound = errors.New("not found")
	// ErrLocked is returned when another owner holds the store's directory.
	ErrLocked = errors.New("locked by another owner")
	// ErrUnsupported is returned when this build or system cannot do it.
	ErrUnsupported = errors.New("unsupported")
	// ErrCorrupt is returned when bytes on disk are damaged; use errors.As
	// with *CorruptionError for the place.
	ErrCorrupt = errors.New("corrupt")
	// ErrStale is returned by a reader beside a live owner when the log was cut
	// since it looked: refresh it, and ask again.
	ErrStale = errors.New("stale view")
	// ErrNewerFormat is returned when a file was written by a newer version.
	ErrNewerFormat = errors.New("newer format")
	// ErrOutcomeUnknown is returned when a wait ended after the append was
	// admitted: the record is, or will be, in the log once.
	ErrOutcomeUnknown = errors.New("outcome unknown")
)

// Error is an operational error: what kind, doing what, where, and why.
type Error struct {
	Kind      Kind
	Op        Operation
	Component Component
	// Detail is for people; programs branch on Kind and the sentinels.
	Detail string
	// Sentinel, if set, makes errors.Is match one of the sentinels that the
	// kind alone does not imply (ErrBusy, ErrDiskFull, ErrOutcomeUnknown).
	Sentinel error
	// Status is the outcome of the append that the error refused; it has no
	// meaning for other operations.
	Status AppendStatus
	// Cause is the error below, never nil when the system refused.
	Cause error
}

// NewError returns an *Error. cause may be nil.
func NewError(kind Kind, op Operation, component Component, detail string, cause error) *Error {
	return &Error{Kind: kind, Op: op, Component: component, Detail: detail, Cause: cause}
}

// Error returns "component: operation: detail: cause [CODE]".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Component.String())
	b.WriteString(": ")
	b.WriteString(e.Op.String())
	if e.Detail != "" {
		b.WriteString(": ")
		b.WriteString(e.Detail)
	}
	if e.Cause != nil {
		b.WriteString(": ")
		b.WriteString(e.Cause.Error())
	}
	b.WriteString(" [")
	b.WriteString(e.Kind.Code())
	b.WriteString("]")
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is matches the sentinel of e's kind and e.Sentinel.
func (e *Error) Is(target error) bool {
	if e.Sentinel != nil && target == e.Sentinel {
		return true
	}
	switch e.Kind {
	case KindNotStarted:
		return target == ErrNotStarted
	case KindInvalid:
		return target == ErrInvalid
	case KindNotFound:
		return target == ErrNotFound
	case KindCorruption:
		return target == ErrCorrupt
	case KindUnsupported:
		return target == ErrUnsupported
	case KindClosed:
		return target == ErrClosed
	case KindFenced:
		return target == ErrFenced
	case KindLocked:
		return target == ErrLocked
	case KindNewerFormat:
		return target == ErrNewerFormat
	}
	return false
}

// CorruptionError says that bytes on disk are not what was written. Nothing
// was changed because of it.
type CorruptionError struct {
	// File is the path of the damaged file.
	File string
	// Offset is the position in File, in bytes, where the damage was seen.
	Offset int64
	// Lost is the range of the log that can not be served; it is empty when
	// the damage lies outside the log.
	Lost Range
	// Cause names the field or check that failed.
	Cause error
}

// Error names the file, the offset, the lost range and the cause.
func (e *CorruptionError) Error() string {
	s := fmt.Sprintf("%s: damaged at offset %d", e.File, e.Offset)
	if !e.Lost.Empty() {
		s += ", lost range " + e.Lost.String()
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *CorruptionError) Unwrap() error { return e.Cause }

// Is matches ErrCorrupt.
func (e *CorruptionError) Is(target error) bool { return target == ErrCorrupt }
