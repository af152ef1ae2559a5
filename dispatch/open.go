package dispatch

import (
	"errors"
	"fmt"

	"github.com/stratalog/stratalog/contract"
)

// StartReason says why a lane starts where it starts.
type StartReason uint8

// The reasons.
const (
	// StartResumed: at its cursor.
	StartResumed StartReason = iota
	// StartMissing: there is no cursor; at the log's first record.
	StartMissing
	// StartDamaged: the cursor cannot be read; at the log's first record.
	StartDamaged
	// StartAhead: the cursor lies beyond the log; at the first record.
	StartAhead
	// StartForeign: the cursor is of an epoch that the log does not know, or
	// of another lane; at the first record.
	StartForeign
	// StartRolledBack: the log was cut below the cursor; at the cut.
	StartRolledBack
	// StartRetired: the log begins above the cursor; at its first record.
	StartRetired
)

var startReasonNames = [...]string{
	"resumed", "no cursor", "damaged cursor", "cursor ahead of the log", "cursor of another log",
	"rolled back", "behind retention",
}

// String returns lower-case words.
func (r StartReason) String() string {
	if int(r) < len(startReasonNames) {
		return startReasonNames[r]
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// OpenReport says where a lane starts, and why.
type OpenReport struct {
	Lane   contract.Lane
	Start  contract.Cursor
	Reason StartReason
	// Found is the cursor that was loaded; HasFound is false if none was.
	Found    contract.Cursor
	HasFound bool
	// Cause is the error behind the reason, if there is one.
	Cause error
}

// Add makes a lane of sink: it loads the cursor, judges it, and, unless the
// lane just resumes, has the sink take back what the log does not hold. With an
// error nothing was added.
func (d *Dispatcher) Add(sink Sink, opts LaneOptions) (OpenReport, error) {
	id := sink.Lane()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.started || d.closed {
		return OpenReport{}, stateError(contract.KindInvalid, "Add after Start or Close")
	}
	for _, l := range d.lanes {
		if l.id == id {
			return OpenReport{}, stateError(contract.KindInvalid, "lane "+id.String()+" is there already")
		}
	}
	report, err := d.judge(id, opts)
	if err != nil {
		return report, err
	}
	if err := takeBack(sink, report, d.log.Durable()); err != nil {
		return report, &LaneError{Lane: id, At: report.Start.Next, Cause: err}
	}
	l := newLane(d, sink, opts)
	l.restart(report.Start)
	if report.Reason == StartResumed {
		l.setPersisted(report.Found)
	}
	d.lanes = append(d.lanes, l)
	return report, nil
}

// takeBack has the sink drop what stands for bytes that the log lost.
func takeBack(sink Sink, report OpenReport, end contract.Offset) error {
	back, ok := sink.(RollBacker)
	if !ok {
		return nil
	}
	switch report.Reason {
	case StartResumed, StartRetired:
		return nil
	case StartRolledBack:
		var cut *contract.RollBackError
		if errors.As(report.Cause, &cut) {
			end = min(end, cut.To)
		}
	}
	return back.RollBack(end)
}

// judge decides where the lane starts.
func (d *Dispatcher) judge(id contract.Lane, opts LaneOptions) (OpenReport, error) {
	r := OpenReport{Lane: id}
	first, err := d.startAt(id, d.log.MinOffset())
	if err != nil {
		return r, err
	}
	r.Found, r.HasFound, r.Cause = d.cursors.LoadCursor(id)
	switch {
	case r.Cause != nil:
		r.Start, r.Reason, r.HasFound = first, StartDamaged, false
	case !r.HasFound:
		r.Start, r.Reason = first, StartMissing
	case r.Found.Lane != id:
		r.Start, r.Reason = first, StartForeign
	default:
		d.resolve(&r, first)
	}
	if r.Start.Next < first.Next {
		retired := &RetiredError{Lane: id, Next: r.Start.Next, Min: first.Next}
		if opts.OnRetired == RetiredFail {
			return r, retired
		}
		r.Start, r.Reason, r.Cause = first, StartRetired, retired
	}
	return r, nil
}

// resolve brings the cursor that was found to the log's current epoch.
func (d *Dispatcher) resolve(r *OpenReport, first contract.Cursor) {
	cursor, err := contract.ResolveCursor(r.Found, d.log.Epochs())
	var cut *contract.RollBackError
	switch {
	case errors.As(err, &cut):
		r.Start, r.Reason, r.Cause = first, StartRolledBack, err
		r.Start.Next = max(cut.To, first.Next)
	case err != nil:
		r.Start, r.Reason, r.Cause = first, StartForeign, err
	case cursor.Next > d.log.Durable() || cursor.Next < 0:
		r.Start, r.Reason = first, StartAhead
	default:
		r.Start, r.Reason = cursor, StartResumed
	}
}
