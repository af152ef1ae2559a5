// Package lint holds the rules that the module's own source and documents keep,
// as tests: which package may import which, that importing starts nothing, that
// the core takes time, files and goroutines from its owner, that what is
// exported is documented, and that what the documents promise has a test.
//
// Each exception stands in a table in the test that it is an exception to, with
// its reason.
package lint
