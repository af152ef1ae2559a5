package commitlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// slotFile is a file of two slots under rule (S1).
type slotFile struct {
	file vfs.File
	size int64
	// write is the slot that the next write goes to; the other one is on disk.
	write int64
	// dirty tells that the write slot differs from what was last synced.
	dirty bool
	// failed is the first write or sync error. Nothing is written or synced
	// after it but through a fresh descriptor (reopen).
	failed error
	buf    []byte
}

// slotScratch holds buffers for the files while they are read.
var slotScratch = sync.Pool{New: func() any { return new([codec.StateFileSize]byte) }}

// openSlots opens a file of two slots of size bytes. newest takes what it needs
// from the newest record in the bytes of the whole file, and returns its slot.
func openSlots(fsys vfs.FS, name string, size int64, flag vfs.Flag, newest func([]byte) (int, error)) (*slotFile, sideStatus, error) {
	f, err := fsys.Open(name, flag)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, sideMissing, nil
	}
	if err != nil {
		return nil, sideMissing, err
	}
	scratch := slotScratch.Get().(*[codec.StateFileSize]byte)
	defer slotScratch.Put(scratch)
	b := scratch[:2*size]
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, sideMissing, errors.Join(err, f.Close()) // no damage
	}
	clear(b[int64(n)/size*size:]) // a slot that is cut off holds nothing
	// A version is raised by writing both slots. So one slot of a newer version
	// beside a good one of ours is damage to the former.
	slot, err := newest(b)
	switch {
	case err == nil:
		return &slotFile{file: f, size: size, write: 1 - int64(slot)}, sideOK, nil
	case errors.Is(err, codec.ErrNewerVersion):
		return nil, sideNewer, f.Close()
	}
	return nil, sideDamaged, f.Close()
}

// createSlots makes the file complete, first slot filled, under a temporary
// name, then renames it into place. The caller syncs the directory.
func createSlots(fsys vfs.FS, name string, size int64, first []byte) (*slotFile, error) {
	tmp := name + ".new"
	if err := fsys.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := fsys.Open(tmp, vfs.ReadWrite|vfs.Create|vfs.Exclusive)
	if err != nil {
		return nil, err
	}
	s := &slotFile{file: f, size: size, buf: make([]byte, size), write: 1}
	copy(s.buf, first)
	err = f.Allocate(0, 2*size)
	if err == nil {
		_, err = f.WriteAt(s.buf, 0)
	}
	if err == nil {
		// The other slot is written too, so that no later write needs blocks.
		_, err = f.WriteAt(make([]byte, size), size)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = fsys.Rename(tmp, name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// put writes b to the free slot without a sync.
func (s *slotFile) put(b []byte) error {
	if s.failed != nil {
		return s.failed
	}
	s.dirty = true
	_, s.failed = s.file.WriteAt(b, s.write*s.size)
	return s.failed
}

// sync makes the free slot the one that is on disk.
func (s *slotFile) sync() error {
	if s.failed != nil || !s.dirty {
		return s.failed
	}
	if s.failed = s.file.Datasync(); s.failed == nil {
		s.synced()
	}
	return s.failed
}

// synced notes that the free slot is on disk.
func (s *slotFile) synced() {
	s.dirty = false
	s.write = 1 - s.write
}

// settle makes what was read durable for certain. The last owner may have died
// between a write and its sync: a sync puts that on the disk. It may also have
// died after a sync that failed, and then this one proves nothing; so what was
// read is written to the other slot as well.
func (s *slotFile) settle() error {
	if err := s.file.Datasync(); err != nil {
		return err
	}
	b := make([]byte, s.size)
	if _, err := s.file.ReadAt(b, (1-s.write)*s.size); err != nil {
		return err
	}
	if err := s.put(b); err != nil {
		return err
	}
	return s.sync()
}

// stateSlots is a slot file that holds a codec.State.
type stateSlots struct {
	codec.State
	file *slotFile
	// failed is the first write or sync error; from then on nothing more is
	// written (a sync is never retried).
	failed error
}

// load reads the newest state in the file at name.
func (s *stateSlots) load(fsys vfs.FS, name string, flag vfs.Flag) (sideStatus, error) {
	file, status, err := openSlots(fsys, name, codec.StateFileSlotSize, flag, func(b []byte) (int, error) {
		page, err := codec.OpenStateFile(b)
		if err != nil {
			return -1, err
		}
		var v codec.StateView
		slot, err := page.Newest(&v)
		if err == nil {
			s.State = codec.State{} // with slices of its own
			err = codec.ParseState(v.Bytes(), &s.State)
		}
		return slot, err
	})
	if err != nil || status != sideOK {
		return status, err
	}
	s.file = file
	if s.Incompatible != 0 {
		return sideNewer, nil
	}
	return sideOK, nil
}

// create makes the file with s as its first content.
func (s *stateSlots) create(fsys vfs.FS, name string) (err error) {
	if err := s.close(); err != nil {
		return err
	}
	s.Sequence = 1
	b, err := codec.AppendState(nil, &s.State)
	if err != nil {
		return err
	}
	s.file, err = createSlots(fsys, name, codec.StateFileSlotSize, b)
	return err
}

// update changes the state and makes the change durable.
func (s *stateSlots) update(change func(*codec.State)) error {
	if s.failed != nil {
		return s.failed
	}
	change(&s.State)
	s.Sequence++
	b, err := codec.AppendState(s.file.buf[:0], &s.State)
	if err == nil && len(b) > codec.StateFileSlotSize {
		return contract.NewError(contract.KindCapacity, contract.OpFlush, contract.ComponentSidecar,
			fmt.Sprintf("state of %d bytes does not fit its slot of %d", len(b), codec.StateFileSlotSize), nil)
	}
	if err == nil {
		err = s.file.put(b)
	}
	if err == nil {
		err = s.file.sync()
	}
	if err != nil {
		s.failed = contract.NewError(contract.KindIO, contract.OpFlush, contract.ComponentSidecar, "", err)
	}
	return s.failed
}

func (s *stateSlots) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.file.Close()
}

func (s *slotFile) reopen(fsys vfs.FS, name string) error {
	fresh, err := fsys.Open(name, vfs.ReadWrite)
	if err != nil {
		return err
	}
	// The old descriptor may report the failure that is known already.
	_ = s.file.Close()
	s.file, s.failed = fresh, nil
	return nil
}
