package vfs

import (
	"path"
	"strings"
)

// OpKind names an operation of an FS, a File or a Mapping.
type OpKind uint8

// The kinds of operation. Opening with Create is OpCreate, whether or not the
// file was there; Sim tells OpCreate only where a file comes into being.
const (
	OpOpen OpKind = iota
	OpCreate
	OpClose
	OpRead
	OpWrite
	OpTruncate
	OpAllocate
	OpPunchHole
	OpSync
	OpDatasync
	OpSyncDir
	OpMap
	OpMapWrite
	OpPopulate
	OpUnmap
	OpRename
	OpLink
	OpRemove
	OpMkdir
	OpReadDir
	OpStat
	OpFree
	OpLock
	OpUnlock

	opKinds
)

var opNames = [opKinds]string{
	"open", "create", "close", "read", "write", "truncate", "allocate", "punchhole", "sync",
	"datasync", "syncdir", "map", "mapwrite", "populate", "unmap", "rename", "link", "remove", "mkdir",
	"readdir", "stat", "free", "lock", "unlock",
}

// String returns a lower-case word.
func (k OpKind) String() string {
	if k < opKinds {
		return opNames[k]
	}
	return "unknown"
}

// OpKinds returns all kinds, in order.
func OpKinds() []OpKind {
	all := make([]OpKind, opKinds)
	for i := range all {
		all[i] = OpKind(i)
	}
	return all
}

// Kinds is a set of operation kinds. The zero value is the empty set.
type Kinds uint32

// KindsOf returns the set of the given kinds.
func KindsOf(kinds ...OpKind) Kinds {
	var s Kinds
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

// Has tells whether k is in the set.
func (s Kinds) Has(k OpKind) bool { return s>>k&1 != 0 }

var (
	// AllOps is every operation.
	AllOps = Kinds(1<<opKinds - 1)
	// SyncOps are the operations that make something durable.
	SyncOps = KindsOf(OpSync, OpDatasync, OpSyncDir)
	// MutatingOps are the operations that change what is stored.
	MutatingOps = KindsOf(OpCreate, OpWrite, OpTruncate, OpAllocate, OpPunchHole, OpMapWrite,
		OpRename, OpLink, OpRemove, OpMkdir)
)

// Op is one operation. Offset and Length are those of reads, writes,
// allocations and holes; a truncation and a mapping have the size as Length.
type Op struct {
	Kind   OpKind
	Path   string // The old path of a rename or link.
	Target string // The new path of a rename or link.
	Offset int64
	Length int64
	Seq    uint64 // Counts the operations that were told, from 1.
}

// Match tells whether name matches pattern, in the language of path.Match. The
// pattern is held against as many last elements of name as it has itself, so
// that "*.log" means any such file and "spare/*" any file in a folder spare. A
// pattern that begins with a slash is held against the whole of name, the empty
// pattern matches everything, a malformed one nothing.
func Match(pattern, name string) bool {
	if pattern == "" {
		return true
	}
	name = path.Clean(name)
	if !strings.HasPrefix(pattern, "/") {
		at := len(name)
		for range strings.Count(pattern, "/") + 1 {
			if at < 0 {
				return false
			}
			at = strings.LastIndexByte(name[:at], '/')
		}
		name = name[at+1:]
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
