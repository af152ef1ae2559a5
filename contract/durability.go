package contract

import "fmt"

// Durability is what the caller of an append asks for. The zero value is
// DurabilityDefault, which stands for the store's configured default.
type Durability uint8

const (
	// DurabilityDefault asks for the default of the store's options.
	DurabilityDefault Durability = iota
	// DurabilityMemory answers when the bytes are in the page cache: they
	// survive the death of the process, not a power cut.
	DurabilityMemory
	// DurabilityInterval answers like DurabilityMemory and promises a sync
	// within the configured interval.
	DurabilityInterval
	// DurabilitySync answers when a successful sync covers the bytes.
	DurabilitySync
)

// String returns the word the command line uses.
func (d Durability) String() string {
	switch d {
	case DurabilityDefault:
		return "default"
	case DurabilityMemory:
		return "memory"
	case DurabilityInterval:
		return "interval"
	case DurabilitySync:
		return "sync"
	}
	return fmt.Sprintf("durability(%d)", uint8(d))
}

// ParseDurability is the inverse of Durability.String.
func ParseDurability(s string) (Durability, error) {
	for d := DurabilityDefault; d <= DurabilitySync; d++ {
		if d.String() == s {
			return d, nil
		}
	}
	return 0, NewError(KindInvalid, OpAppend, ComponentConfig,
		fmt.Sprintf("durability %q is none of memory, interval, sync", s), nil)
}

// Reached is the durability that an append has, told by the watermarks.
type Reached uint8

const (
	// ReachedNone is the durability of a rejected append.
	ReachedNone Reached = iota
	// ReachedMemory means that the bytes are in the page cache.
	ReachedMemory
	// ReachedLocal means that a successful local sync covers the bytes.
	ReachedLocal
	// ReachedReplicated means that a replication decision covers the bytes.
	ReachedReplicated
)

// String returns a lower-case word.
func (r Reached) String() string {
	switch r {
	case ReachedNone:
		return "none"
	case ReachedMemory:
		return "memory"
	case ReachedLocal:
		return "local"
	case ReachedReplicated:
		return "replicated"
	}
	return fmt.Sprintf("reached(%d)", uint8(r))
}

// Visibility is the policy for the confirmed watermark: how far readers and
// lanes may see. A call's own durability never changes it.
type Visibility uint8

const (
	// VisibilityDurable shows what is durable. It is the default.
	VisibilityDurable Visibility = iota
	// VisibilityAppended shows what is in the page cache: a reader may then
	// see a record that a power cut takes away.
	VisibilityAppended
)

// String returns a lower-case word.
func (v Visibility) String() string {
	if v == VisibilityAppended {
		return "appended"
	}
	return "durable"
}

// ReplicationProof says that enough replicas hold the log up to an offset.
// Only DecideReplication makes one that counts; the zero value proves nothing.
type ReplicationProof struct {
	end   Offset
	valid bool
}

// End returns the exclusive end that the proof covers, and whether it is one.
func (p ReplicationProof) End() (Offset, bool) { return p.end, p.valid }

// DecideReplication returns the proof that at least need of the given replica
// ends have reached a common offset. It fails (false) when need is not
// positive or there are fewer replicas than needed.
func DecideReplication(need int, replicaEnds []Offset) (ReplicationProof, bool) {
	if need <= 0 || len(replicaEnds) < need {
		return ReplicationProof{}, false
	}
	// The need-th largest end: selection by repeated counting, since replica
	// sets are tiny and the function must not change its input.
	best := Offset(-1)
	for _, candidate := range replicaEnds {
		have := 0
		for _, end := range replicaEnds {
			if end >= candidate {
				have++
			}
		}
		if have >= need && candidate > best {
			best = candidate
		}
	}
	if best < 0 {
		return ReplicationProof{}, false
	}
	return ReplicationProof{end: best, valid: true}, true
}
