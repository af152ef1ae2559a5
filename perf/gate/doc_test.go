// Package gate holds the benchmarks that tools/benchstat.sh judges the store by.
// The store's clock stands still, its segments hold all that comes, and an
// operation ends when its effects can be seen, so that little runs beside it.
//
// Syncs, system calls and bytes written are exact: the same in every run. So are
// mallocs/op and malloced-B/op in nearly every one; those of BenchmarkOpen on a
// quiet machine only, and malloced-B/op of BenchmarkRoll not: a goroutine that
// wakes up early or late allocates, and so does one that finds a pool empty.
// allocs/op and B/op, which the testing package reports, are exact only where
// b.N is large; of BenchmarkRoll, BenchmarkOpen and B/op of the durable appends
// they are not, and the gate judges those by pairs.
//
// Files do not tell where their holes are here, so the store does not write zeros
// ahead of its tail, and what that costs is not gated.
//
// docs/GATE.md says how all is judged, and what to mind when adding a benchmark.
package gate
