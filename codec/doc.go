// Package codec holds the bytes of every record that the store writes: the
// records of the commit log, the units of consume queues and the checkpoint,
// all as Apache RocketMQ lays them out, and the sidecar records that are our
// own. It does no I/O, takes no lock, starts no goroutine and imports only the
// standard library.
//
// The layouts are declared in the *.layout files of this folder, from which
// the gen package makes the *_gen.go files; the few hand-written pieces are
// properties, Java's string hash, what the whole-record checksum says about a
// record, and the search for records; none of them reads or writes a number.
//
// # Records and views
//
// Each record X has a struct X with Encode, and a view XView. Encode writes
// into the caller's buffer and keeps nothing. XView.Parse checks structure and
// bounds; its accessors alias the bytes it was given, so a view holds exactly
// as long as they do. Neither allocates, except for an error.
//
// # A message in the log
//
//	 0  TotalSize                  i32
//	 4  Magic                      u32   V1 or V2
//	 8  BodyCRC                    u32   CRC-32 of the body, top bit cleared
//	12  QueueID                    i32
//	16  Flag                       i32
//	20  QueueOffset                i64   late
//	28  PhysicalOffset             i64   late
//	36  SysFlag                    i32
//	40  BornTimestamp              i64
//	48  BornHost                   8 bytes, or 20 with SysFlag 0x10
//	56  StoreTimestamp             i64   late
//	64  StoreHost                  8 bytes, or 20 with SysFlag 0x20
//	72  ReconsumeTimes             i32
//	76  PreparedTransactionOffset  i64   late
//	84  Body                       i32 length, bytes
//	 .  Topic                      length (V1 one byte, V2 two), bytes
//	 .  Properties                 i16 length, bytes
//
// Offsets are those of a record with two IPv4 hosts. A field marked late is
// known only when the record is given its place: a producer encodes outside
// every lock, and the Patch functions fill these fields in under it. Then
// SealRecord writes the checksum over the whole record.
package codec

//go:generate go run ../gen/cmd/layoutgen -in *.layout -out . -package codec -lock layouts.lock
