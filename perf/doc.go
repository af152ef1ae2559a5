// Package perf holds the load generators of the store: workloads whose every
// message can be checked afterwards, so that a figure is only printed for data
// that was read back and compared; a run that was interrupted says so.
//
//	RunAppend  closed loop (or pipelined) appends, then a full read-back
//	RunGet     reads of an existing store, sequential or random
//	RunCorpus  appends the files of a directory, reads all back, compares each
//
// A result is a plain struct that encodes to one JSON object; its Table method
// writes the same for people. The error of a run says that it could not be
// done; that something is missing or wrong is told by the result's Err, which
// is a *WrongError.
package perf

import "fmt"

// WrongError says that what was read back is not what was written.
type WrongError struct {
	// Missing counts the messages that were acknowledged and not found, Wrong
	// those that are not as written, or were found where they do not belong.
	Missing int64
	Wrong   int64
	// First describes the first of them.
	First string
}

// Error names both counts and the first case.
func (e *WrongError) Error() string {
	return fmt.Sprintf("%d missing, %d wrong; first: %s", e.Missing, e.Wrong, e.First)
}

// Progress, if not nil, is called from time to time with how much of a phase is
// done. Calls come from one goroutine at a time.
type Progress func(phase string, done, total int64)

func (p Progress) tell(phase string, done, total int64) {
	if p != nil {
		p(phase, done, total)
	}
}
