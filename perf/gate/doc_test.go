// Package gate holds the benchmarks that tools/benchstat.sh judges the store by.
// Their counters are exact: the store's clock stands still, its segments hold
// all that comes, and an operation ends when its effects can be seen, so that
// nothing runs beside it.
//
// docs/GATE.md says how they are judged, and what to mind when adding one.
package gate
