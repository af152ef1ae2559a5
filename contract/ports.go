package contract

import (
	"context"
	"net/netip"
)

// Message is what a producer hands to an append. The store copies everything
// before Submit returns, so the caller may reuse all slices at once.
type Message struct {
	// Topic is 1 to 127 bytes, without control bytes and path separators.
	Topic string
	// QueueID is the queue of the topic, not negative.
	QueueID int32
	// Flag is opaque to the store.
	Flag int32
	// SysFlag holds the format's system flags (compression, transaction type,
	// several messages in one record): int32 of codec.SysFlagCompressed and so on.
	// The host-family bits are set by the store.
	SysFlag int32
	// BornTimestamp is the producer's time in milliseconds; 0 means "now".
	BornTimestamp int64
	// BornHost and StoreHost are "address, port"; the zero value stands for
	// the store's own host.
	BornHost  Host
	StoreHost Host
	// ReconsumeTimes and PreparedTransactionOffset are stored as given.
	ReconsumeTimes            int32
	PreparedTransactionOffset int64
	// Body may be empty.
	Body []byte
	// Properties is the encoded property string (codec.AppendProperty makes
	// one): name 0x01 value 0x02, repeated.
	Properties []byte
}

// Host is an IPv4 or IPv6 address with a port, as the record format keeps it.
type Host struct {
	// Addr holds the address as netip.Addr.As16 gives it; for IPv4 the last 4
	// bytes count.
	Addr [16]byte
	// Port is stored as a 32-bit integer.
	Port int32
	// IPv6 tells the family.
	IPv6 bool
}

// HostOf returns the host of a.
func HostOf(a netip.AddrPort) Host {
	addr := a.Addr().Unmap()
	return Host{Addr: addr.As16(), Port: int32(a.Port()), IPv6: addr.Is6()}
}

// Completion is called exactly once for each admitted append, in log order
// among appends of the same durability. It must not block: a slow one shows as
// back-pressure on every producer.
type Completion func(Receipt, error)

// Appender appends messages.
type Appender interface {
	// Submit admits m and returns before it is durable; done is called later.
	// An error means that nothing was or will be written.
	Submit(ctx context.Context, m *Message, d Durability, done Completion) error
	// Append is Submit plus the wait.
	Append(ctx context.Context, m *Message, d Durability) (Receipt, error)
}

// Confirmer bounds the confirmed watermark from outside, for example by what
// replicas hold. It must be cheap and safe for concurrent use.
type Confirmer interface {
	// Confirmed returns the exclusive end that may be shown.
	Confirmed() Offset
}

// Selection is a stretch of log bytes under a lease.
type Selection interface {
	// Bytes returns the bytes, valid until Release.
	Bytes() []byte
	// Release ends the lease. Calling it twice is a fault of the caller.
	Release()
}

// WALPort is the only way a stratum sees the log. A nil Selection with a nil
// error means "not there" (not yet, or not any more); an error means that the
// read failed. The two are never mixed.
type WALPort interface {
	// ReadAt returns the record of size bytes at off.
	ReadAt(off Offset, size int32) (Selection, error)
	// ReadFrom returns the whole records from off on that lie below the
	// confirmed watermark, as many as are contiguous within one segment and
	// at most about limit bytes, at least one.
	ReadFrom(off Offset, limit int) (Selection, error)
}

// Lifecycle is how an owner runs a part of the store.
type Lifecycle interface {
	// Start begins background work.
	Start(ctx context.Context) error
	// Close ends it, within ctx's deadline.
	Close(ctx context.Context) error
}
