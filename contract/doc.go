// Package contract holds the words that every layer of the store shares:
// append and get statuses, receipts, durability, offsets and ranges, cursors,
// typed errors, and the small interfaces through which layers meet.
//
// It owns no state. Nothing here does I/O, starts a goroutine, or imports
// anything but the standard library, so a program may depend on it without
// taking the store along.
//
// Three promises are kept by construction rather than by convention:
//
//   - A Receipt exists only if its numbers agree (NewReceipt refuses every
//     inconsistent combination), so the durability that a receipt reports
//     follows from watermarks and cannot be claimed.
//   - A Cursor moves only over a record that starts where it stands
//     (Cursor.Prepare), so a derived stratum has no silent hole.
//   - "Not there" is a value and "failed" is an error; no call of WALPort
//     mixes the two.
package contract
