package index

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// Open lists the files below dir, which need not exist, and changes nothing. An
// owner calls Fit before it applies anything. As in Java, a file whose name is no
// number is none of the index. Files that are sound, but of other sizes than
// opts names, are refused.
func Open(fsys vfs.FS, dir string, opts Options) (*Store, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{fs: fsys, dir: path.Clean(dir), opts: opts, files: newHandles(fsys, opts), lastPhy: -1,
		layout: layout{int64(opts.Slots), int64(opts.Entries)}, mark: mark{phy: -1}}
	s.maps = &mappings{fs: fsys, max: max(opts.MaxHandles, 1), size: func() int64 { return s.fileSize() }}
	err = s.scan()
	if err == nil {
		err = s.chooseLayout()
	}
	s.show(s.list)
	if err != nil {
		return nil, errors.Join(err, s.files.close())
	}
	return s, nil
}

// scan lists the files and reads their headers.
func (s *Store) scan() error {
	entries, err := s.fs.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return ioError(contract.OpOpen, "list "+s.dir, err)
	}
	for _, e := range entries {
		if e.IsDir || !isName(e.Name) {
			continue
		}
		f := &file{name: e.Name, path: path.Join(s.dir, e.Name)}
		info, err := s.fs.Stat(f.path)
		if err == nil {
			f.size = info.Size
			err = s.with(f, contract.OpOpen, func(h *handle) (err error) {
				f.head, err = h.header()
				return err
			})
		}
		if errors.Is(err, fs.ErrNotExist) && s.opts.ReadOnly {
			continue // Retired by a live owner since it was listed.
		}
		if err != nil {
			return ioError(contract.OpOpen, "read "+f.path, err)
		}
		if f.size < headerSize {
			f.headErr = damaged(f, f.size, ErrFileLength)
		}
		s.list = append(s.list, f)
	}
	slices.SortFunc(s.list, func(a, b *file) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return nil
}

// chooseLayout settles the sizes of the files.
func (s *Store) chooseLayout() error {
	found, known, err := s.findLayout()
	if err != nil {
		return err
	}
	switch {
	case s.layout == layout{} && known:
		s.layout = found
	case s.layout == layout{}:
		s.layout = layout{DefaultSlots, DefaultEntries}
	case known && found != s.layout && found.fileSize() != s.fileSize():
		return contract.NewError(contract.KindInvalid, contract.OpOpen, contract.ComponentIndex,
			fmt.Sprintf("%s: the files have %d slots and %d entries each, the options say %d and %d",
				s.dir, found.slots, found.entries, s.slots, s.layout.entries), nil)
	}
	return nil
}

// findLayout finds out from the files which sizes they were made with. A
// length alone does not tell.
func (s *Store) findLayout() (layout, bool, error) {
	usual := layout{DefaultSlots, DefaultEntries}
	for i, f := range slices.Backward(s.list) {
		if f.size == s.fileSize() && s.layout != (layout{}) {
			return s.layout, true, nil
		}
		if f.headErr != nil {
			continue
		}
		if f.size == usual.fileSize() {
			return usual, true, nil
		}
		// All but the last are full.
		tries := []layout{layoutFor(f, (f.size-headerSize-f.count()*entrySize)/slotSize)}
		if i == len(s.list)-1 {
			tries = append(tries, layout{})
		}
		for _, l := range tries {
			var fits bool
			err := s.with(f, contract.OpOpen, func(h *handle) (err error) {
				if l == (layout{}) {
					if l, err = h.lastWritten(f); err != nil {
						return err
					}
				}
				fits, err = h.fits(f, l)
				return err
			})
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return layout{}, false, err
			}
			if fits {
				return l, true, nil
			}
		}
	}
	return layout{}, false, nil
}

// layoutFor is the layout of a file with so many slots.
func layoutFor(f *file, slots int64) layout {
	return layout{slots, (f.size - headerSize - slots*slotSize) / entrySize}
}

// scanMax is the longest file in which the last entry is looked for.
const scanMax = 1 << 30

// lastWritten takes the last byte of f that is not zero for one of its last
// entry, and concludes where the entries begin.
func (h *handle) lastWritten(f *file) (layout, error) {
	if f.size > scanMax || f.count() < 2 {
		return layout{}, nil
	}
	buf := make([]byte, scanBytes)
	for end := f.size; end > headerSize; {
		start := max(end-int64(len(buf)), headerSize)
		b := buf[:end-start]
		if err := h.readAt(b, start); err != nil {
			return layout{}, err
		}
		for i := len(b) - 1; i >= 0; i-- {
			if b[i] == 0 {
				continue
			}
			// The entry holds byte at: it begins at most 19 bytes before, and
			// of five places for it one leaves whole entries behind.
			at := start + int64(i)
			for first := max(at-entrySize+1, 0); first <= at; first++ {
				slots := first - (f.count()-1)*entrySize - headerSize
				if slots > 0 && slots%slotSize == 0 && (f.size-first)%entrySize == 0 {
					return layoutFor(f, slots/slotSize), nil
				}
			}
			return layout{}, nil
		}
		end = start
	}
	return layout{}, nil
}

// fits reports whether f can have the layout: its last entry is the newest of
// its chain and leads to where the header says that the file ends.
func (h *handle) fits(f *file, l layout) (bool, error) {
	if l.slots < 1 || l.entries < 2 || l.fileSize() != f.size || !possibleHeader(&f.head, l) {
		return false, nil
	}
	var b [entrySize]byte
	if err := h.readAt(b[:], l.entryAt(f.count()-1)); err != nil {
		return false, err
	}
	e := decodeEntry(b[:])
	if e.KeyHash < 0 || e.PhysicalOffset != f.head.EndPhysicalOffset {
		return false, nil
	}
	if err := h.readAt(b[:slotSize], l.slotAt(int64(e.KeyHash)%l.slots)); err != nil {
		return false, err
	}
	return decodeSlot(b[:]) == f.count()-1, nil
}
