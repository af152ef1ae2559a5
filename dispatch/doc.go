// Package dispatch owns the feed of derived state: it reads the log in order
// and hands every record, once and without a hole, to each lane's sink. It owns
// the lanes' cursors and the frontier, and no file: the owner brings the log,
// the sinks and the cursor store.
//
// # Invariants
//
// (D1) A lane's cursor moves only over records that contract.Cursor.Prepare
// allows: each starts where the last one ended, in the log's current epoch, and
// stands at the place that it names. Gap, overlap, wrong epoch and wrong place
// are distinct errors.
//
// (D2) Effect first, then cursor. The cursor in memory moves after Sink.Commit
// took the batch. What is persisted is a cursor for which Sink.Flush has
// succeeded after its last effect, and it is never beyond what the log holds
// durably. A crash in between repeats effects, and sinks are idempotent.
//
// (D3) Lanes are isolated: each has its own goroutine, cursor and errors. A lane
// that fails stays where it is, tries again with growing waits, and catches up
// when the cause is gone. Nothing that a lane does slows another one.
//
// (D4) After a failed Flush the sink's pages may be lost though they read well.
// The lane goes back to its last persisted cursor and applies everything after
// it again, before it flushes again.
//
// (D5) A cursor that is missing, damaged, of an unknown epoch or ahead of the
// log is never guessed right: the lane starts at the log's first record, and
// OpenReport says so. One that the log was cut below goes back to the cut.
//
// # Life
//
//	New, Add (loads and judges each cursor), CatchUp (synchronous replay),
//	Start (one goroutine a lane), Close (drain, flush, save)
//
// CatchUp, the goroutines and Close's drain take the same step: read a batch,
// apply it, commit it, publish the cursor.
package dispatch
