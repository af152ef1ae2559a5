// Command peers measures the store beside other Go logs and stores: the same
// load, the same bodies and the same checks, interleaved in one run. It is a
// module of its own, so that users of the store do not pay for its dependencies.
//
//	go run .                          all of it, in under 15 minutes on 2 cores
//	go run . -workloads check         what each answer means, and whether it is kept
//	go run . -engines raft-wal,bbolt  only these beside ours and the yardstick
//	go run . -sizes 128,1024,4096     more body sizes of durable appends
//	go run . -from runs.json          the tables of a run that -json wrote
//	go run ./codecs/compare           our codec beside others: see package codecs
//
// # What is compared
//
//	check    syncs behind each answer, counted by strace; answers that outlive a kill
//	durable  appends that wait for a sync, closed loop, 1 to 256 producers
//	memory   appends that do not, one producer
//	read     a scan and random reads by number, in the page cache
//	reopen   time until a log takes appends, closed cleanly and killed
//
// Only equal promises have a ratio: an engine that answers while the message is
// in a buffer of its process is listed apart. A ratio is the median over the
// rounds of the quotient of two cells of the same round. Every table has the
// yardstick in it, package limit, which does nothing but what an append log must
// do.
//
// # How
//
// Each cell is a process of its own, with a directory of its own. In each round
// every engine has its cell, in another order. Generator and schema of results
// are those of package load. After the run the log is opened again and read, and
// every message compared; a cell in which one is missing or wrong ends the run.
// Before and after each cell the disk is probed; a cell beside which it was slow
// runs once more.
//
// # How many producers reach an engine
//
// The way native calls the engine from all producers at once. The way single
// calls one that takes one caller at a time, for one producer. The way batch puts
// our coalescer between: it hands the engine all messages that came while the
// last batch was on its way, as one batch, and is the same for every engine. It
// waits up to 40 us for as many producers as the last batch woke or found
// waiting, which is worth a factor of 1.5 with 16 producers, and costs nothing
// with one; -no-gather leaves that out.
//
// # What is left out
//
// github.com/rosedblabs/wal, which the module proxy refuses. Several of these
// engines keep indexes, which is more than a log needs: pebble, badger and bbolt
// are databases, and are run near their defaults. The stream of NATS includes
// its client and a pipe inside the process.
package main
