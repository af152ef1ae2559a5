// Package report makes one HTML page of runs of package load, and of the
// history of accepted baselines: charts that can be hovered, what is behind
// them as tables, and all numbers as they came.
//
// The page needs no network and asks for none: its policy forbids it. Charts
// are drawn by uPlot, which comes with the plot package of vegeta. The same
// input gives the same page, byte for byte.
//
// # What is compared with what
//
// Runs of one engine and workload with one configuration on one machine and
// program are repeats: they are shown as one line, by their medians. A run that
// was interrupted or not found right is never counted among them, stands on its
// own, and is never called best. Runs that had nothing to read back are told
// apart from both.
//
// The lines of a workload differ in the load that was offered (producers, sizes,
// rates) and in what it was offered to (engine, durability, commit, and all
// else). Lines under the same load are compared with the first of them.
package report
