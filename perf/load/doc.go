// Package load offers load to a log, any log, and measures what it does with
// it: arrivals in a closed loop or at a rate, bodies that can be checked without
// being kept, latencies from the intended start, the process's own use of the
// machine. It knows no engine; package perf and module perf/peers drive theirs
// with it, so that their figures can be laid side by side.
//
// # What a latency is
//
// In a closed loop each producer sends, waits for the answer, and sends again:
// a stall of the log delays the next message as well, and so hides itself. In an
// open loop each message has a time at which it is due, fixed before the run
// looks at the log, and its latency runs from there, however late it was sent
// ("coordinated omission", as Gil Tene named it). Op.Latency is that; Op.Service
// runs from when the message was really handed over; Op.WakeUp is how late a
// producer that had nothing else to do woke: below some 8,000 messages a second
// and producer it is what a low latency mostly consists of.
//
// A waiting producer sleeps on a timer of the Go runtime; it never spins, which
// would take a core away from the log that is measured.
//
// # What a run is
//
// A Run is one JSON object with everything needed to draw and compare it:
// parameters, environment, latency curves, throughput over time, and whether
// every message was read back and found right.
package load
