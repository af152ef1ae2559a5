package mmap

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/stratalog/stratalog/internal/invariant"
	"github.com/stratalog/stratalog/internal/vfs"
)

// State is what a File admits.
type State uint8

const (
	// Active admits reads, writes and maintenance.
	Active State = iota
	// Sealed admits reads and maintenance.
	Sealed
	// Closing admits nothing; what was admitted goes on.
	Closing
	// Detached is Closing with the mapping gone.
	Detached
)

// String returns a lower-case word.
func (s State) String() string {
	switch s {
	case Active:
		return "active"
	case Sealed:
		return "sealed"
	case Closing:
		return "closing"
	case Detached:
		return "detached"
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// ErrUnavailable is returned when a file's state does not admit the lease.
var ErrUnavailable = errors.New("mmap: file does not admit the lease")

// The word: state in the top two bits, leases below.
const (
	stateShift = 62
	leaseMask  = uint64(1)<<stateShift - 1
)

// File is an open file of fixed size, mapped for reading (and for writing if
// asked for), with leases. All methods are safe for concurrent use.
type File struct {
	// file is replaced only by ReplaceHandle.
	file    atomic.Pointer[vfs.File]
	mapping vfs.Mapping
	path    atomic.Pointer[string]
	size    int64

	// word is state and lease count; every change is a compare-and-swap.
	word atomic.Uint64
	// detachErr is written once, by the goroutine that detaches, before
	// detached is closed.
	detachErr error
	detached  chan struct{}
	onDetach  func()
}

// Open maps the existing file at path, which must have exactly size bytes.
// With writable the mapping takes writes too: the file must then have been
// allocated by this process, or a full disk becomes a signal.
func Open(fs vfs.FS, path string, size int64, writable bool) (*File, error) {
	return open(fs, path, size, vfs.ReadWrite, writable)
}

// OpenReadOnly is Open on a file that may not be writable.
func OpenReadOnly(fs vfs.FS, path string, size int64) (*File, error) {
	return open(fs, path, size, vfs.ReadOnly, false)
}

func open(fs vfs.FS, path string, size int64, flag vfs.Flag, writable bool) (*File, error) {
	f, err := fs.Open(path, flag)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size != size {
		err = &LengthError{Path: path, Got: info.Size, Want: size}
	}
	var m vfs.Mapping
	if err == nil {
		m, err = f.Map(size, writable)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	file := &File{mapping: m, size: size, detached: make(chan struct{})}
	file.file.Store(&f)
	file.path.Store(&path)
	return file, nil
}

// LengthError says that a file has not the length that its kind must have.
type LengthError struct {
	Path string
	Got  int64
	Want int64
}

// Error names the file and both lengths.
func (e *LengthError) Error() string {
	return fmt.Sprintf("%s: length is %d bytes, must be %d", e.Path, e.Got, e.Want)
}

// Path returns the name that the file has now.
func (f *File) Path() string { return *f.path.Load() }

// Size returns the file's length in bytes.
func (f *File) Size() int64 { return f.size }

// Handle returns the descriptor, for reads, writes and syncs by the owner of
// the file. It is valid until the file is detached.
func (f *File) Handle() vfs.File { return *f.file.Load() }

// ReplaceHandle opens the file's name anew and uses that descriptor from now
// on: after a failed sync only a fresh one tells the truth. The old descriptor
// is closed. The name must still be the same file. Only for the owner, with no
// write or sync under way.
func (f *File) ReplaceHandle(fs vfs.FS) error {
	fresh, err := fs.Open(f.Path(), vfs.ReadWrite)
	if err != nil {
		return err
	}
	was, err1 := f.Handle().Stat()
	now, err2 := fresh.Stat()
	if err := errors.Join(err1, err2); err != nil {
		return errors.Join(err, fresh.Close())
	}
	if was.ID != now.ID || now.Size != f.size {
		return errors.Join(fmt.Errorf("%s: %w", f.Path(), ErrReplaced), fresh.Close())
	}
	// The old descriptor's close may report the sync error once more; the
	// caller knows it already and acts on it.
	_ = (*f.file.Swap(&fresh)).Close()
	return nil
}

// ErrReplaced is returned when a name no longer leads to the file held open.
var ErrReplaced = errors.New("mmap: another file stands under the name")

// CheckName fails with ErrReplaced if the file's name leads elsewhere.
func (f *File) CheckName(fs vfs.FS) error {
	held, err := f.Handle().Stat()
	if err != nil {
		return err
	}
	named, err := fs.Stat(f.Path())
	if err != nil {
		return err
	}
	if held.ID != named.ID {
		return fmt.Errorf("%s: %w", f.Path(), ErrReplaced)
	}
	return nil
}

// Bytes returns the mapped bytes, for reading only. The caller holds a lease,
// or is the owner and has not closed the file.
func (f *File) Bytes() []byte { return f.mapping.Bytes() }

// WriteMapped copies p to off through the mapping. Only for files opened
// writable, and only by the owner while the file is Active.
func (f *File) WriteMapped(p []byte, off int64) { f.mapping.WriteAt(p, off) }

// Populate brings the pages of [off, off+n) into memory, so that a later touch
// is neither a signal nor a stall. The caller holds a lease.
func (f *File) Populate(off, n int64) error { return f.mapping.Populate(off, n) }

// Renamed tells that the file was found to have the name path.
func (f *File) Renamed(path string) { f.path.Store(&path) }

// Rename gives the file a new name. Durable after the directories are synced.
func (f *File) Rename(fs vfs.FS, path string) error {
	if err := fs.Rename(f.Path(), path); err != nil {
		return err
	}
	f.Renamed(path)
	return nil
}

// State returns the current state.
func (f *File) State() State {
	w := f.word.Load()
	s := State(w >> stateShift)
	if s == Closing && w&leaseMask == 0 {
		select {
		case <-f.detached:
			return Detached
		default:
		}
	}
	return s
}

// Leases returns the number of live leases.
func (f *File) Leases() int { return int(f.word.Load() & leaseMask) }

// Acquire takes a read lease. It fails with ErrUnavailable once the file is
// closing.
func (f *File) Acquire() error {
	for {
		w := f.word.Load()
		if State(w>>stateShift) >= Closing {
			return ErrUnavailable
		}
		if f.word.CompareAndSwap(w, w+1) {
			return nil
		}
	}
}

// Release gives a lease back. The last one out of a closing file detaches it.
func (f *File) Release() {
	w := f.word.Add(^uint64(0))
	if invariant.Enabled && w&leaseMask == leaseMask {
		invariant.Check(false, "mmap: release of %s without a lease", f.Path())
	}
	if State(w>>stateShift) == Closing && w&leaseMask == 0 {
		f.detach()
	}
}

// Seal ends writing; it is harmless on a file that is sealed or closing.
func (f *File) Seal() {
	for {
		w := f.word.Load()
		if State(w>>stateShift) != Active || f.word.CompareAndSwap(w, w|uint64(Sealed)<<stateShift) {
			return
		}
	}
}

// Close stops the admission of leases. The file is detached (unmapped and its
// descriptor closed) at once if no lease is live, else by the last Release;
// onDetach, if not nil, runs after that, exactly once. The second and later
// calls do nothing and return false.
func (f *File) Close(onDetach func()) bool {
	// One lease is held over the change, so that onDetach is set before
	// anybody can see the count reach zero.
	for {
		w := f.word.Load()
		if State(w>>stateShift) >= Closing {
			return false
		}
		next := (w & leaseMask) + 1 | uint64(Closing)<<stateShift
		if f.word.CompareAndSwap(w, next) {
			break
		}
	}
	f.onDetach = onDetach
	f.Release()
	return true
}

// Detached is closed when the mapping is gone.
func (f *File) Detached() <-chan struct{} { return f.detached }

// DetachErr returns what went wrong while detaching; call it after Detached.
func (f *File) DetachErr() error { return f.detachErr }

// detach runs once: the count reaches zero in Closing exactly once, because
// nothing is admitted in Closing.
func (f *File) detach() {
	f.detachErr = errors.Join(f.mapping.Unmap(), f.Handle().Close())
	close(f.detached)
	if f.onDetach != nil {
		f.onDetach()
	}
}
