// Package stratalog is an embeddable message store for brokers. It keeps Apache
// RocketMQ's own files: one primary log that every record goes through, and
// strata derived from it, of which the consume queues (queue offset to record)
// and the key index (key to records) are built in. A Java broker can open a directory that a Store wrote, and the
// other way round.
//
// A Store goes through stages: New checks the options and touches nothing, Load
// locks the directory and recovers, Start begins background work and admits
// appends, Close drains and marks the directory as closed well. Open is New and
// Load.
//
//	Submit, Append, AppendBatch  write; the receipt says what was achieved
//	Get, Follow                  read a queue by offset and tag; Follow waits for more
//	GetByTime, OffsetByTime      go by store time
//	GetAt, GetByID               read the record at a physical offset, or of a message id
//	QueryKey                     finds messages by key, newest first
//	Delayed, RealQueue           make, and resolve, messages that wait for a delay level
//	Retire, TruncateTo           remove what is old; cut what is new
//	Health                       watermarks, lanes, what is wrong
//	Recover                      lifts the fence after a failed write or sync
//
// A Reader (OpenReader) reads, inspects and verifies a directory without owning
// it, also beside a running Store, and one of a Java broker.
//
// What an answer means after a kill, a power cut, a failed sync or on a full
// disk is the table in README.md; docs/DURABILITY.md has the assumptions.
package stratalog

import (
	"github.com/stratalog/stratalog/commitlog"
	"github.com/stratalog/stratalog/contract"
)

// The words of the contract package that every caller needs, under short names.
type (
	// Message is what a producer appends.
	Message = contract.Message
	// Host is an address and port, as the record format keeps it.
	Host = contract.Host
	// Receipt says exactly what an append achieved.
	Receipt = contract.Receipt
	// Completion is called once for each submitted message.
	Completion = contract.Completion
	// Durability is what the caller of an append asks for.
	Durability = contract.Durability
	// Visibility is how far readers may see.
	Visibility = contract.Visibility
	// Offset is a position in the log, in bytes.
	Offset = contract.Offset
	// WritePath says how bytes get into the page cache.
	WritePath = commitlog.WritePath
	// Record is one record under a lease.
	Record = commitlog.Record
)

// The durabilities that an append may ask for.
const (
	Memory   = contract.DurabilityMemory
	Interval = contract.DurabilityInterval
	Sync     = contract.DurabilitySync
)

// The write paths.
const (
	WriteAuto   = commitlog.WriteAuto
	WritePwrite = commitlog.WritePwrite
	WriteMmap   = commitlog.WriteMmap
)

// How far readers may see.
const (
	VisibilityDurable  = contract.VisibilityDurable
	VisibilityAppended = contract.VisibilityAppended
)
