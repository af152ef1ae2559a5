// Package invariant holds assertions that are too costly for a release build.
//
// They are compiled in by the build tag "invariants" and by the race detector,
// and compile to nothing otherwise:
//
//	if invariant.Enabled {
//		invariant.Check(isSorted(xs), "not sorted: %v", xs)
//	}
//
// The if spares a release build the evaluation of the arguments. An assertion
// that costs next to nothing belongs in ordinary code instead.
package invariant

import "fmt"

// Check panics with the formatted message if cond is false and Enabled is set.
func Check(cond bool, format string, args ...any) {
	if Enabled && !cond {
		panic("invariant violated: " + fmt.Sprintf(format, args...))
	}
}
