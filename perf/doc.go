// Package perf holds the load generators of the store: workloads whose every
// message can be checked afterwards, so that a figure is only printed for data
// that was read back and compared; a run that was interrupted says so.
//
//	RunAppend   producers alone
//	RunTail     producers and followers; how long a message is under way
//	RunMixed    producers, followers, a cold scan of the past, retention
//	RunRoll     small segments; latency at the roll beside that elsewhere
//	RunGet      reads of an existing store, sequential or random
//	RunRestart  how long opening takes, after a clean stop and after a kill
//	RunCorpus   appends the files of a directory, reads all back, compares each
//
// What a load is and how it is measured is package load's. A load.Run encodes to
// one JSON object; its Table method writes the same for people. The error of a
// run says that it could not be done; that something is missing or wrong is told
// by the run's Err, which is a *load.WrongError.
package perf
