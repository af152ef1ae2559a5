// Package commitlog owns the primary log: fixed-size segments of RocketMQ
// records, the order in which records come, how they become durable, and what
// is found after a crash.
//
// # Watermarks
//
// Three exclusive ends, each a promise:
//
//	appended   the bytes below are in the page cache: a killed process loses none
//	durable    a successful sync covers them: a power cut loses none
//	confirmed  readers and lanes may see them
//
// (L1) durable <= appended, and confirmed <= appended; durable moves back only
// by TruncateTo.
// (L2) A Sync append is answered well only when durable covers its range.
// (L3) No segment is written to before its file is complete under its name and
// the directory is synced.
// (L4) durable never passes a segment that has not been synced to its end.
// (L5) The first failed write or sync fences the log: nothing is retried, every
// waiter gets the cause, and only Recover, or opening again, goes on.
// (L6) Nothing below the durable bound is ever cut. What is invalid there is
// damage, reported with file, offset and lost range.
// (L7) Bytes behind the log's end are zero.
//
// commit.go tells how an append becomes durable, table.go what recovery
// decides, sidecar.go what the log remembers about itself, zero.go and roll.go
// how segments come to be.
package commitlog
