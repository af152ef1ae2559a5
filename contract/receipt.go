package contract

import "errors"

// The reasons for which NewReceipt refuses a combination.
var (
	ErrEmptyRange                           = errors.New("receipt: empty range")
	ErrReversedRange                        = errors.New("receipt: reversed range")
	ErrRejectedStatusWithRange              = errors.New("receipt: rejected status with a range")
	ErrAcceptedStatusWithoutRange           = errors.New("receipt: accepted status without a range")
	ErrAppendedWatermarkBehindRange         = errors.New("receipt: appended watermark behind the range")
	ErrDurableWatermarkBehindRange          = errors.New("receipt: local durability, durable watermark behind the range")
	ErrDurableWatermarkAheadOfAppended      = errors.New("receipt: durable watermark ahead of appended")
	ErrMemoryDurabilityAlreadyCovered       = errors.New("receipt: memory durability, durable watermark covers the range")
	ErrReplicatedDurabilityRequiresDecision = errors.New("receipt: replicated durability without a decision")
	ErrReplicationDecisionBehindRange       = errors.New("receipt: replication decision behind the range")
	ErrRejectedStatusWithDurability         = errors.New("receipt: rejected status with a durability")
	ErrAcceptedStatusWithoutDurability      = errors.New("receipt: accepted status without a durability")
	ErrNegativeReceiptNumber                = errors.New("receipt: negative offset, time or watermark")
)

// Waits is a set of things that an append waited for.
type Waits uint8

const (
	// WaitDisk is the wait for the local sync.
	WaitDisk Waits = 1 << iota
	// WaitReplica is the wait for replicas.
	WaitReplica
)

// Has reports whether every wait of x is in w.
func (w Waits) Has(x Waits) bool { return w&x == x }

// String lists the waits, joined by "+".
func (w Waits) String() string {
	switch w {
	case 0:
		return "none"
	case WaitDisk:
		return "disk"
	case WaitReplica:
		return "replica"
	case WaitDisk | WaitReplica:
		return "disk+replica"
	}
	return "waits(?)"
}

// ReceiptFields is what a Receipt is made of. See the accessors of Receipt for
// the meaning of each field.
type ReceiptFields struct {
	Status      AppendStatus
	Range       Range
	HasRange    bool
	QueueOffset int64
	StoreTime   int64
	Appended    Offset
	Durable     Offset
	Reached     Reached
	Proof       ReplicationProof
	Failed      Waits
}

// Receipt says exactly what an append achieved. Its fields cannot be set from
// outside; NewReceipt is the only way to make one that is not the zero value,
// and the zero value is a rejected append with StatusUnknown.
type Receipt struct{ f ReceiptFields }

// NewReceipt returns the receipt for f, or the reason why f contradicts itself.
func NewReceipt(f ReceiptFields) (Receipt, error) {
	if f.Appended < 0 || f.Durable < 0 || f.QueueOffset < 0 || f.StoreTime < 0 {
		return Receipt{}, ErrNegativeReceiptNumber
	}
	if f.Durable > f.Appended {
		return Receipt{}, ErrDurableWatermarkAheadOfAppended
	}
	if !f.Status.Accepted() {
		if f.HasRange || f.Range != (Range{}) {
			return Receipt{}, ErrRejectedStatusWithRange
		}
		if f.Reached != ReachedNone {
			return Receipt{}, ErrRejectedStatusWithDurability
		}
		return Receipt{f}, nil
	}
	if !f.HasRange {
		return Receipt{}, ErrAcceptedStatusWithoutRange
	}
	if f.Range.Start < 0 {
		return Receipt{}, ErrNegativeReceiptNumber
	}
	if f.Range.End == f.Range.Start {
		return Receipt{}, ErrEmptyRange
	}
	if f.Range.End < f.Range.Start {
		return Receipt{}, ErrReversedRange
	}
	if f.Appended < f.Range.End {
		return Receipt{}, ErrAppendedWatermarkBehindRange
	}
	switch f.Reached {
	case ReachedMemory:
		if f.Durable >= f.Range.End {
			return Receipt{}, ErrMemoryDurabilityAlreadyCovered
		}
	case ReachedLocal:
		if f.Durable < f.Range.End {
			return Receipt{}, ErrDurableWatermarkBehindRange
		}
	case ReachedReplicated:
		end, ok := f.Proof.End()
		if !ok {
			return Receipt{}, ErrReplicatedDurabilityRequiresDecision
		}
		if end < f.Range.End {
			return Receipt{}, ErrReplicationDecisionBehindRange
		}
	default:
		return Receipt{}, ErrAcceptedStatusWithoutDurability
	}
	return Receipt{f}, nil
}

// ReachedBy returns the durability that the numbers imply for a record that
// ends at end.
func ReachedBy(end, durable Offset, proof ReplicationProof) Reached {
	if proofEnd, ok := proof.End(); ok && proofEnd >= end {
		return ReachedReplicated
	}
	if durable >= end {
		return ReachedLocal
	}
	return ReachedMemory
}

// Status returns the outcome.
func (r Receipt) Status() AppendStatus { return r.f.Status }

// Accepted reports whether the bytes are in the log.
func (r Receipt) Accepted() bool { return r.f.Status.Accepted() }

// Range returns the record's place in the log; ok is false, and the range
// empty, exactly when the append was rejected.
func (r Receipt) Range() (rng Range, ok bool) { return r.f.Range, r.f.HasRange }

// QueueOffset returns the record's index in its topic queue. For a batch it is
// the first record's.
func (r Receipt) QueueOffset() int64 { return r.f.QueueOffset }

// StoreTime returns the record's store time in milliseconds since 1970.
func (r Receipt) StoreTime() int64 { return r.f.StoreTime }

// Appended returns the appended watermark at the time of the answer.
func (r Receipt) Appended() Offset { return r.f.Appended }

// Durable returns the durable watermark at the time of the answer.
func (r Receipt) Durable() Offset { return r.f.Durable }

// Reached returns the durability that the watermarks prove.
func (r Receipt) Reached() Reached { return r.f.Reached }

// FailedWaits returns every wait that did not end well.
func (r Receipt) FailedWaits() Waits { return r.f.Failed }
