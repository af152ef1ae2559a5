// Package conformance holds the store against the real one: released versions of
// Apache RocketMQ's store, run in a process of their own, write what we read, read
// what we wrote, take turns with us over one directory, and die beside us.
//
// Its tests need Java and Maven and take minutes, so that they run by `make
// conformance` and `make conformance-full` and are skipped otherwise. What a plain
// test run does is TestGolden: directories that Java wrote, kept in testdata.
package conformance
