package contract

import "fmt"

// AppendStatus is the outcome of an append. Accepted tells whether the bytes
// are in the log; how durable they are is a second question, answered by
// Receipt.Reached.
type AppendStatus uint8

// The sixteen append statuses. docs/SCOREBOARD.md names the producer of each.
const (
	// StatusUnknown claims nothing. Beside ErrOutcomeUnknown the record was
	// admitted and is, or may come to be, in the log; else it is an unexpected
	// failure before anything was written.
	StatusUnknown AppendStatus = iota
	// StatusPutOk means that the bytes are in the log and everything that was
	// asked for holds.
	StatusPutOk
	// StatusFlushDiskTimeout means that the bytes are in the log and the sync
	// was not confirmed: it failed or did not end in time. A blind retry
	// makes a duplicate.
	StatusFlushDiskTimeout
	// StatusFlushReplicaTimeout means that the bytes are in the log and the
	// replicas did not answer in time.
	StatusFlushReplicaTimeout
	// StatusReplicaUnavailable means that the bytes are in the log and no
	// suitable replica exists.
	StatusReplicaUnavailable
	// StatusServiceUnavailable refuses: closed, not started, read-only, disk
	// full, or fenced.
	StatusServiceUnavailable
	// StatusStorageUnavailable refuses: no segment could be made.
	StatusStorageUnavailable
	// StatusInvalidMessage refuses: malformed or too large.
	StatusInvalidMessage
	// StatusPropertiesTooLarge refuses: the properties exceed their limit.
	StatusPropertiesTooLarge
	// StatusPageCacheBusy refuses: overload, try again after the wait named
	// in the error.
	StatusPageCacheBusy
	// StatusInsufficientReplicas refuses before anything is written.
	StatusInsufficientReplicas
	// StatusRemoteAppendFailed refuses: forwarding to another node failed.
	StatusRemoteAppendFailed
	// StatusQueueLimitExceeded refuses: quota of light queues.
	StatusQueueLimitExceeded
	// StatusScheduleFlowControl refuses: timer admission is full.
	StatusScheduleFlowControl
	// StatusScheduleMessageIllegal refuses: the delivery time is not allowed.
	StatusScheduleMessageIllegal
	// StatusScheduleDisabled refuses: the store has no timer stratum.
	StatusScheduleDisabled

	appendStatusCount
)

var appendStatusNames = [appendStatusCount]string{
	"Unknown", "PutOk", "FlushDiskTimeout", "FlushReplicaTimeout", "ReplicaUnavailable",
	"ServiceUnavailable", "StorageUnavailable", "InvalidMessage", "PropertiesTooLarge",
	"PageCacheBusy", "InsufficientReplicas", "RemoteAppendFailed", "QueueLimitExceeded",
	"ScheduleFlowControl", "ScheduleMessageIllegal", "ScheduleDisabled",
}

// AppendStatuses returns every status, in order.
func AppendStatuses() []AppendStatus {
	all := make([]AppendStatus, appendStatusCount)
	for i := range all {
		all[i] = AppendStatus(i)
	}
	return all
}

// Accepted reports whether the bytes of an append with status s are in the log.
func (s AppendStatus) Accepted() bool {
	switch s {
	case StatusPutOk, StatusFlushDiskTimeout, StatusFlushReplicaTimeout, StatusReplicaUnavailable:
		return true
	}
	return false
}

// String returns the status' name.
func (s AppendStatus) String() string {
	if s < appendStatusCount {
		return appendStatusNames[s]
	}
	return fmt.Sprintf("AppendStatus(%d)", uint8(s))
}

// GetStatus is the outcome of a read by queue offset. Every status comes with
// the next offset to use; a loop that only follows it ends and sees every live
// record once.
type GetStatus uint8

// The ten get statuses. The zero value found nothing.
const (
	// GetNoMatchedLogicQueue: there is no such topic and queue; next is 0.
	GetNoMatchedLogicQueue GetStatus = iota
	// GetFound: at least one record is returned; next is behind the last.
	GetFound
	// GetNoMatchedMessage: there are records, the filter took none; next is
	// behind the last one looked at.
	GetNoMatchedMessage
	// GetMessageWasRemoving: the records left while they were read
	// (retention); next is the queue's first live offset.
	GetMessageWasRemoving
	// GetOffsetFoundNull: the queue has the offset's range but no unit there;
	// next is the first offset behind the gap.
	GetOffsetFoundNull
	// GetOffsetOverflowBadly: the offset lies beyond the queue's end; next is
	// the end.
	GetOffsetOverflowBadly
	// GetOffsetOverflowOne: the offset is the queue's end: nothing there yet;
	// next is the same offset.
	GetOffsetOverflowOne
	// GetOffsetTooSmall: the offset lies below the queue's first live one;
	// next is that one.
	GetOffsetTooSmall
	// GetNoMessageInQueue: the queue exists and is empty; next is its end.
	GetNoMessageInQueue
	// GetOffsetReset: the offset belongs to log bytes that were cut; next is
	// the point to go on from.
	GetOffsetReset

	getStatusCount
)

var getStatusNames = [getStatusCount]string{
	"NoMatchedLogicQueue", "Found", "NoMatchedMessage", "MessageWasRemoving", "OffsetFoundNull",
	"OffsetOverflowBadly", "OffsetOverflowOne", "OffsetTooSmall", "NoMessageInQueue", "OffsetReset",
}

// GetStatuses returns every get status, in order.
func GetStatuses() []GetStatus {
	all := make([]GetStatus, getStatusCount)
	for i := range all {
		all[i] = GetStatus(i)
	}
	return all
}

// String returns the status' name.
func (s GetStatus) String() string {
	if s < getStatusCount {
		return getStatusNames[s]
	}
	return fmt.Sprintf("GetStatus(%d)", uint8(s))
}
