// Package vfs is the one seam between the store and the operating system:
// files, directories, syncs, allocation, mappings and locks.
//
// It has four implementations. OS is the real one. Sim is an in-memory file
// system that models a power cut: what was not synced may be old, new or torn,
// and names that no directory sync covers may be gone. Fault wraps another one
// and makes chosen operations fail, come up short, or take long. Trace wraps
// another one and reports every operation.
//
// Every layer above takes an FS, so a test decides what a crash leaves behind.
package vfs

import (
	"errors"
	"io"
	"io/fs"
	"time"
	"unsafe"
)

// Flag says how Open opens a file.
type Flag uint8

const (
	// ReadOnly opens an existing file for reading.
	ReadOnly Flag = 0
	// ReadWrite opens a file for reading and writing.
	ReadWrite Flag = 1 << (iota - 1)
	// Create makes the file, empty, if it does not exist.
	Create
	// Exclusive, with Create, refuses a file that exists.
	Exclusive
	// Direct asks that writes go past the page cache, where the file system
	// can. Offsets, lengths and memory (AlignedBuffer) must then be multiples
	// of DirectAlign. Elsewhere it has no effect.
	Direct
)

// DirectAlign is the alignment, in bytes, that files opened Direct need.
const DirectAlign = 4096

// AlignedBuffer returns n zero bytes at an address that Direct writes accept.
func AlignedBuffer(n int) []byte {
	b := make([]byte, n+DirectAlign)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (DirectAlign - 1)
	return b[skip : skip+n : skip+n]
}

// FileID tells whether two names or handles are the same file.
type FileID struct {
	Device uint64
	Inode  uint64
}

// Info describes a file or directory.
type Info struct {
	Size    int64
	IsDir   bool
	ModTime time.Time
	ID      FileID
	// Links counts the names of a file. It is 0 when an open one was deleted.
	Links uint64
}

// NotRegularError is the cause of the error of Open for what is neither a file
// nor a directory. It is never waited for.
type NotRegularError struct {
	// Mode is what it is: fs.ModeNamedPipe, fs.ModeSocket or fs.ModeDevice, with
	// other type bits.
	Mode fs.FileMode
	// Cause is the system's error number.
	Cause error
}

// Error names what it is.
func (e *NotRegularError) Error() string {
	what := "is no regular file"
	switch {
	case e.Mode&fs.ModeNamedPipe != 0:
		what = "is a named pipe"
	case e.Mode&fs.ModeSocket != 0:
		what = "is a socket"
	case e.Mode&fs.ModeDevice != 0:
		what = "is a device"
	}
	return what + ", where a file is needed"
}

// Unwrap returns Cause.
func (e *NotRegularError) Unwrap() error { return e.Cause }

// DirEntry is one name in a directory.
type DirEntry struct {
	Name  string
	IsDir bool
}

// FS is a file system. Paths are slash-separated. Errors match io/fs sentinels
// (fs.ErrNotExist, fs.ErrExist, fs.ErrPermission) and system error numbers
// (syscall.ENOSPC, syscall.EIO) through errors.Is. All methods are safe for
// concurrent use.
type FS interface {
	// Open opens path. It must not follow up with a sync: a new name is
	// durable only after SyncDir of its directory.
	Open(path string, flag Flag) (File, error)
	// Rename replaces newPath atomically. Durable after SyncDir of both
	// directories.
	Rename(oldPath, newPath string) error
	// Link gives the file at oldPath the name newPath, too, which must be free.
	// Durable after SyncDir of the new name's directory. Not every file system
	// has it: the error then is errors.ErrUnsupported or fs.ErrPermission.
	Link(oldPath, newPath string) error
	// Remove removes a file or an empty directory.
	Remove(path string) error
	// MkdirAll makes path and its parents. An existing directory is fine; a
	// plain file in the way is an error.
	MkdirAll(path string) error
	// ReadDir returns the entries, sorted by name.
	ReadDir(path string) ([]DirEntry, error)
	// Stat describes path.
	Stat(path string) (Info, error)
	// SyncDir makes the names in directory path durable.
	SyncDir(path string) error
	// Free returns the bytes that a writer can still use where path lies.
	Free(path string) (int64, error)
	// Lock takes the exclusive lock on byte 0 of the file at path, made if
	// missing, and fails at once (ErrLocked) when anybody holds it: another
	// process (fcntl locks included) or another owner in this one. The lock's
	// descriptor alone may be used to reach the file while it is held.
	Lock(path string) (Lock, error)
}

// Lock is a lock that is held.
type Lock interface {
	// Size returns the length in bytes of the lock file, into which an owner
	// before may have written.
	Size() (int64, error)
	// Clear makes the file empty, durably.
	Clear() error
	// Close releases the lock; the file stays. A second one is fs.ErrClosed.
	io.Closer
}

// File is an open file. ReadAt, WriteAt, Datasync and Sync may run
// concurrently; one writer at a time per byte is the caller's duty.
type File interface {
	io.ReaderAt
	// WriteAt writes all of p or fails; a short count always comes with an
	// error.
	io.WriterAt
	io.Closer
	// Name returns the path it was opened by.
	Name() string
	// Stat describes the open file (not the name).
	Stat() (Info, error)
	// Truncate sets the length.
	Truncate(size int64) error
	// Allocate reserves blocks for [off, off+n), growing the file if needed.
	// Bytes in it that were never written read as zero.
	Allocate(off, n int64) error
	// PunchHole makes [off, off+n) read as zero without changing the length.
	PunchHole(off, n int64) error
	// Sync makes data and metadata durable, Datasync the data and what is
	// needed to read it back. Both cover bytes written through a Mapping of
	// the same file. A failed sync must not be retried: the system may have
	// dropped the pages.
	Sync() error
	Datasync() error
	// Map maps the first size bytes, which the file must have. The mapping
	// outlives the File.
	Map(size int64, writable bool) (Mapping, error)
}

// Mapping is a shared mapping of a file.
type Mapping interface {
	// Bytes returns the mapped bytes, for reading only. They are valid until
	// Unmap.
	Bytes() []byte
	// WriteAt copies p to off; the range must lie in the mapping, and be
	// allocated by this process, or the system answers with a signal.
	WriteAt(p []byte, off int64)
	// Populate brings the pages of [off, off+n) into memory by a system call,
	// so that a read error is an error and not a signal.
	Populate(off, n int64) error
	// Unmap ends the mapping. Nothing may touch its bytes afterwards.
	Unmap() error
}

// ErrLocked is returned by FS.Lock when somebody else holds the lock.
var ErrLocked = errors.New("vfs: locked by another owner")
