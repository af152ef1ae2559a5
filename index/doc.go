// Package index owns the key index: which records of the log carry a key, so
// that "the messages of topic T with key K" is a few small reads. It is Apache
// RocketMQ's file format, and a Java broker opens the directory as its own.
//
// # Layout
//
//	<dir>/<yyyyMMddHHmmssSSS, local time of creation>
//
// Every file has the same length: a header of 40 bytes, Options.Slots slots of
// 4 bytes, and Options.Entries entries of 20 bytes, of which number 0 is never
// used. All integers are big-endian. A slot holds the number of the newest entry
// of its chain, an entry the number of the next older one; 0 ends the chain. A
// key's slot is its hash modulo the slots. Files are ordered by name, so a new
// name is never below the last one, whatever the clock says. A file is sparse
// and has its full length from the start.
//
// A record brings an entry for its UNIQ_KEY and one for each word of its KEYS;
// with Options.Tags also one for its TAGS, as Java does from 5.4 on. The entry
// has only a hash: whoever asks compares the key of the record itself.
//
// # Promises
//
// (I1) Entries stand in the order of the log, and the files hold what the
// records applied give, and nothing else: applying a record twice changes
// nothing, and files that were cut and applied again are, byte for byte, those
// of a rebuild, but for names. (The second of a file's entries and all later
// ones. The first has its time from the end of the file before, as Java has
// it, so that it differs where that file was retired.)
//
// (I2) Readers see whole commits, newest first, and never an entry that is not
// whole.
//
// (I3) Flush returns only when every entry committed before, the chains, the
// headers, and each name on the way would survive a power cut. After a failed
// Flush nothing is assumed about the pages: the active file goes back to the
// last good Flush and everything after it is applied, and written, again.
//
// (I4) A search never returns a record twice, never one whose entry has another
// hash, and never goes on along a chain that cannot be: an entry of another
// slot, or one that is not older, is a *contract.CorruptionError. The format has
// no checksums, so damage that leaves a chain possible is found by the Verifier
// alone.
//
// (I5) A search does a bounded amount of work and says where to go on.
//
// # What a power cut may leave, and what becomes of it
//
// Between two flushes the system may write any sector of the active file, of
// new ones, and any name. So nothing of them is believed but what the last good
// Flush covers. Its tally, which the owner keeps beside the lane's cursor, says
// how many entries there were and in which file: it holds a checksum of the
// file's name, its begin, and the last page of its entries, the only one that is
// written again later. Fit finds the file with that tally, removes what is newer,
// and makes slots and header anew from the entries below. What it cannot prove
// is dropped, and applied again from the log.
//
// # Concurrency
//
// One goroutine at a time applies, commits and flushes. Retention
// (DeleteExpired) may run beside it, and any number of readers. Fit, RollBack
// and DropAll need the lane to stand still.
package index
