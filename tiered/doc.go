// Package tiered is not built yet. It will be the stratum that copies sealed
// parts of the log, with their queues and index, to another tier (a directory,
// memory, or an object store), and serves from there what local retention took
// away, by offset, time and key.
//
// A tier will neither strengthen an ack nor be a backup: local answers do not
// wait for it, and its outage stops nothing but its own cursor.
package tiered
