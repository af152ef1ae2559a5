//go:build invariants || race

package invariant

// Enabled tells whether assertions are compiled in.
const Enabled = true
