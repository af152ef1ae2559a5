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

// slotScratch holds buffers for slots while they are read.
var slotScratch = sync.Pool{New: func() any { return new([stateSlotSize]byte) }}

// openSlots opens the two-slot file name in dir. parse reads one slot and
// returns its sequence number; take is called when what parse read last is the
// newest so far.
func openSlots(fsys vfs.FS, name string, size int64, flag vfs.Flag, parse func([]byte) (uint64, error), take func()) (*slotFile, sideStatus, error) {
	f, err := fsys.Open(name, flag)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, sideMissing, nil
	}
	if err != nil {
		return nil, sideMissing, err
	}
	scratch := slotScratch.Get().(*[stateSlotSize]byte)
	defer slotScratch.Put(scratch)
	s := &slotFile{file: f, size: size}
	// A version is raised by writing both slots. So one slot of a newer version
	// beside a good one of ours is damage to the former.
	status, newest, newer := sideDamaged, uint64(0), false
	for slot := range int64(2) {
		b := scratch[:size]
		if _, err := f.ReadAt(b, slot*size); errors.Is(err, io.EOF) {
			continue
		} else if err != nil {
			return nil, sideMissing, errors.Join(err, f.Close()) // no damage
		}
		seq, err := parse(b)
		newer = newer || errors.Is(err, codec.ErrNewerVersion)
		if err == nil && (status != sideOK || seq > newest) {
			status, newest = sideOK, seq
			s.write = 1 - slot
			take()
		}
	}
	if status != sideOK && newer {
		status = sideNewer
	}
	if status != sideOK {
		return nil, status, f.Close()
	}
	return s, status, nil
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
	var st codec.State
	file, status, err := openSlots(fsys, name, stateSlotSize, flag, func(b []byte) (uint64, error) {
		st = codec.State{} // with slices of its own
		err := codec.ParseState(b, &st)
		return st.Sequence, err
	}, func() { s.State = st })
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
	s.file, err = createSlots(fsys, name, stateSlotSize, b)
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
	if err == nil && len(b) > stateSlotSize {
		return contract.NewError(contract.KindCapacity, contract.OpFlush, contract.ComponentSidecar,
			fmt.Sprintf("state of %d bytes does not fit its slot of %d", len(b), stateSlotSize), nil)
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
