// Package cq owns the consume queues: for each topic and queue, the list of
// the records' places in the log, so that "record number n of this queue" is
// one small read. It is Apache RocketMQ's file format, and a Java broker opens
// the directory as its own.
//
// # Layout
//
//	<dir>/<topic>/<queue id>/<20-digit start offset in bytes>
//
// Every file has the same length (Options.FileSize, a multiple of 20) and holds
// units of 20 bytes, big-endian: physical offset (8), record size (4), tags
// code (8). Unit n of a queue stands at byte n*20, counted over its files. A
// file is sparse: it gets its full length when it is made, and a zero tail is
// its normal state (a unit of size 0 is no unit). A queue whose first record is
// not number 0 starts with a file that is filled up to it with blank units
// (physical offset 0, size 0x7FFFFFFF, tags code 0).
//
// What is said below is of these plain queues. Light queues (light.go) are plain
// but for whose records they lead to; extended ones (ext.go) keep more about a
// record in files beside; batch queues (batch.go) have files and rules of their
// own.
//
// # Promises
//
// (C1) A unit's place follows from the record alone: queue offset times 20. So
// applying a record twice changes nothing, and a replay that starts too early
// is only slower.
//
// (C2) Readers see whole commits: a queue's end is published after its units
// are written. Units never returns a unit at or above the end.
//
// (C3) Flush returns only when every unit committed before, the length of its
// file, and each name on the way to it would survive a power cut. After a
// failed Flush nothing is assumed about the pages: the caller applies again
// what came after the last good Flush, and every such unit is really written.
//
// (C4) A file of a queue is removed oldest first, each removal durable before
// the next, and never the file that holds the last flushed unit, so the
// numbering of a queue is never lost.
//
// (C5) Nothing but queue files is ever put into a queue's directory, since Java refuses
// one with strangers in it. (A file that is made anew lies beside the topics, which
// Java passes over: keep.go.)
//
// # What a power cut may leave, and what becomes of it
//
// Let P be the position up to which the lane's cursor says that everything is
// done (it is persisted after Flush only). Units of records below P are durable
// by (C3). Anything else that was being written may be there, or not, or torn,
// sector by sector and name by name. Open never fails because of that; it
// changes nothing but an empty last file, and leaves what it found strange in
// LoadReport. TruncateAbove with the limit P then makes the directory equal to
// one in which exactly the records below P were applied, and the replay from P
// does the rest:
//
//	state found                           | told from           | what is done
//	--------------------------------------+---------------------+------------------------------
//	units behind the end, or a hole and   | unit invalid, or    | zeroed and synced, so that no
//	units behind it                       | its record above P  | later scan picks them up
//	unit torn at a sector's edge          | check, for the last | cut
//	                                      | unit on an edge     |
//	tail of a file lost, units in next    | last unit of a file | next file removed
//	file of length 0, last                | length              | removed (by Open)
//	file of length 0 or short, in between | length              | it and later ones removed
//	file missing in between               | names               | later ones removed
//	files without a unit below P          | first unit          | removed
//	blank units behind the last record    | value               | zeroed; filled again if needed
//	queue without a file                  | no name             | forgotten
//	bytes behind the end nobody wrote     | unit impossible     | zeroed; replay from below
//
// Damage looks much the same, with one difference: units of records below P are
// gone. It is proven when units of records below P stand behind the hole, and
// assumed when a last file is empty, short or absent, or when a sector that was
// being written holds garbage; TruncateReport.Replay is then lower than P, the
// lane's cursor is lowered to it before the first cut, and the owner starts the
// replay there. The exception is a
// queue whose last file is full and whose next one is not there: this is a
// normal state as well as that of a deleted file, and is only listed
// (FullTail).
//
// A torn unit needs the log to be told from a whole one in one case only. The
// file was zero before, so a unit that lost its second part has size 0, or
// stands for a record above P. If it lost its first part, the high bytes of its
// physical offset are zero, and it may pass for a record below P. Such a unit
// stands on a sector's edge, and behind it is nothing that passes; so check is
// asked for the last unit of a queue if it crosses an edge, and for no other.
//
// # Concurrency
//
// One goroutine at a time applies, commits and flushes. Retention (CorrectMin,
// DeleteExpired) may run beside it, and any number of readers. TruncateAbove,
// RollBack and DropAll need the lane to stand still.
package cq
