// Command peers measures the store beside other Go logs, in one interleaved
// run, at equal promises. It is a module of its own, so that users of the store
// do not pay for its dependencies.
//
// The first peer is pebble's record writer (the write-ahead log under pebble,
// CockroachDB's storage engine): SyncRecord acks after an fdatasync that covers
// the record, with group commit, as our Sync does. The syncs of both are
// counted and printed; an engine that syncs less often than it promises would
// show there.
package main
