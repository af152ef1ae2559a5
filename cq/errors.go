package cq

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/stratalog/stratalog/contract"
)

// topicBytesMax is the longest topic that every file system takes as a directory.
// We append to topics of up to 127 bytes; Java brokers have longer ones, in records
// of the second version, for their retry queues.
const topicBytesMax = 255

// The causes that a *contract.CorruptionError of this package carries.
var (
	// ErrFileLength is the cause when a file's length is not FileSize.
	ErrFileLength = errors.New("queue file of another length than configured")
	// ErrFileName is the cause when a name is not 20 digits, or not a
	// multiple of the file size.
	ErrFileName = errors.New("queue file with a name that is no start offset")
	// ErrFileMissing is the cause when a file between two others, or one that
	// a committed unit stands in, is not there.
	ErrFileMissing = errors.New("queue file is missing")
)

// GapError is returned by Commit when a record's queue offset lies so far
// beyond the queue's end that the units between would exceed MaxGapFiles.
type GapError struct {
	Topic string
	Queue int32
	// End is the queue's end, Offset the record's place, both in units.
	End    int64
	Offset int64
}

// Error names the queue, its end and the record's queue offset.
func (e *GapError) Error() string {
	return fmt.Sprintf("consume queue %s/%d: queue offset %d is too far beyond the end %d",
		e.Topic, e.Queue, e.Offset, e.End)
}

// Is matches contract.ErrInvalid.
func (e *GapError) Is(target error) bool { return target == contract.ErrInvalid }

func invalid(op contract.Operation, format string, args ...any) error {
	return contract.NewError(contract.KindInvalid, op, contract.ComponentQueue,
		fmt.Sprintf(format, args...), nil)
}

func ioError(op contract.Operation, what string, cause error) error {
	return contract.NewError(contract.KindIO, op, contract.ComponentQueue, what, cause)
}

// checkTopic refuses a topic that is no safe single directory name. The log
// refuses it before it is written; this is the second lock on the same door.
func checkTopic(topic []byte) error {
	if len(topic) == 0 || len(topic) > topicBytesMax {
		return invalid(contract.OpDispatch, "topic of %d bytes", len(topic))
	}
	if s := string(topic); s == "." || s == ".." {
		return invalid(contract.OpDispatch, "topic %q", s)
	}
	for _, c := range topic {
		if c < 0x20 || c == 0x7F || c == '/' || c == '\\' {
			return invalid(contract.OpDispatch, "topic %q holds a separator or a control byte", topic)
		}
	}
	return nil
}

// checkPlace refuses queue numbers that have no place on disk.
func checkPlace(queue int32, offset int64) error {
	if queue < 0 {
		return invalid(contract.OpDispatch, "queue id %d", queue)
	}
	if offset < 0 || offset > offsetMax {
		return invalid(contract.OpDispatch, "queue offset %d", offset)
	}
	return nil
}

const nameDigits = 20

// fileName returns the 20-digit name of the file that starts at byte start.
func fileName(start int64) string {
	var b [nameDigits]byte
	for i := nameDigits - 1; i >= 0; i-- {
		b[i] = byte('0' + start%10)
		start /= 10
	}
	return string(b[:])
}

// parseFileName is the inverse of fileName.
func parseFileName(name string) (int64, bool) {
	if len(name) != nameDigits {
		return 0, false
	}
	for i := range len(name) {
		if name[i] < '0' || name[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(name, 10, 64)
	return n, err == nil
}

// parseQueueID takes canonical, not negative integers only: "7", not "07".
func parseQueueID(name string) (int32, bool) {
	n, err := strconv.ParseInt(name, 10, 32)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != name {
		return 0, false
	}
	return int32(n), true
}
