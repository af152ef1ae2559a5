package index

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/stratalog/stratalog/codec"
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
		var l layout
		var known bool
		err := s.with(f, contract.OpOpen, func(h *handle) (err error) {
			l, known, err = h.layoutOf(f, i == len(s.list)-1, s.opts.ReadOnly)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return layout{}, false, err
		}
		if known {
			return l, true, nil
		}
	}
	return layout{}, false, nil
}

// movedTries bounds how often the layout of a file is looked for that is written
// to meanwhile.
const movedTries = 100

// layoutOf finds out the layout of f. Where another process may write to it, f
// gets the newer header if it has one meanwhile.
func (h *handle) layoutOf(f *file, last, live bool) (layout, bool, error) {
	for try := 0; ; try++ {
		// All but the last are full.
		tries := []layout{layoutFor(f, (f.size-headerSize-f.count()*entrySize)/slotSize)}
		if last {
			more, err := h.lastWritten(f, live)
			if err != nil {
				return layout{}, false, err
			}
			tries = append(tries, more...)
		}
		var fit []layout
		for _, l := range tries {
			fits, err := h.fits(f, l, live)
			if err != nil {
				return layout{}, false, err
			}
			if fits {
				fit = append(fit, l)
			}
		}
		if l, err := h.likeliest(f, fit); l != (layout{}) || err != nil || !live || try == movedTries {
			return l, l != layout{}, err
		}
		now, err := h.header()
		if err != nil || now == f.head {
			return layout{}, false, err
		}
		f.head = now
	}
}

// likeliest is the one of the layouts that fit f where the entries begin with the
// first: what it takes for entry 0, which is never used, is no entry. Where none
// is so, it is the one that was tried first.
func (h *handle) likeliest(f *file, fit []layout) (layout, error) {
	if len(fit) == 0 {
		return layout{}, nil
	}
	for _, l := range fit {
		none, err := h.entryAt(l, 0)
		if err != nil {
			return layout{}, err
		}
		first, err := h.entryAt(l, 1)
		if err != nil {
			return layout{}, err
		}
		if none == (codec.IndexEntry{}) && first.Previous == 0 && first.PhysicalOffset == f.head.BeginPhysicalOffset {
			return l, nil
		}
	}
	return fit[0], nil
}

// layoutFor is the layout of a file with so many slots.
func layoutFor(f *file, slots int64) layout {
	return layout{slots, (f.size - headerSize - slots*slotSize) / entrySize}
}

const (
	// scanMax is the longest file in which the last entry is looked for.
	scanMax = 1 << 30
	// aheadMax is how many entries that the header does not count are thought
	// of: Java counts each at once, we at the end of a batch.
	aheadMax = 1 << 10
)

// lastWritten takes the last byte of f that is not zero for one of its last
// entry, and concludes where the entries begin. In a file that is written to,
// that may be an entry which the header does not count yet.
func (h *handle) lastWritten(f *file, live bool) ([]layout, error) {
	if f.size > scanMax || f.count() < 2 {
		return nil, nil
	}
	buf := make([]byte, scanBytes)
	for end := f.size; end > headerSize; {
		start := max(end-int64(len(buf)), headerSize)
		b := buf[:end-start]
		if err := h.readAt(b, start); err != nil {
			return nil, err
		}
		for i := len(b) - 1; i >= 0; i-- {
			if b[i] == 0 {
				continue
			}
			return f.layoutsFor(start+int64(i), live), nil
		}
		end = start
	}
	return nil, nil
}

// layoutsFor are the layouts of a file of which the last entry holds byte at.
func (f *file) layoutsFor(at int64, live bool) []layout {
	// It begins at most 19 bytes before, and one place for it leaves whole entries
	// behind.
	first := f.size - (f.size-at+entrySize-1)/entrySize*entrySize
	ahead := int64(0)
	if live {
		ahead = aheadMax
	}
	var all []layout
	for k := f.count() - 1; k < f.count()+ahead; k++ {
		slots := first - k*entrySize - headerSize
		if slots <= 0 {
			break
		}
		if slots%slotSize == 0 {
			all = append(all, layoutFor(f, slots/slotSize))
		}
	}
	return all
}

// fits reports whether f can have the layout: its last entry is the newest of
// its chain and leads to where the header says that the file ends. In a file that
// is written to, entries that the header does not count yet may be newer, and the
// end may be that of the entry before.
func (h *handle) fits(f *file, l layout, live bool) (bool, error) {
	possible := possibleHeader
	if live {
		possible = possibleAmid
	}
	if l.slots < 1 || l.entries < 2 || l.fileSize() != f.size || !possible(&f.head, l) {
		return false, nil
	}
	newest := f.count() - 1
	e, err := h.entryAt(l, newest)
	if err != nil || e.KeyHash < 0 {
		return false, err
	}
	if e.PhysicalOffset != f.head.EndPhysicalOffset {
		if ended, err := h.endsBefore(f, l); !live || !ended || err != nil {
			return false, err
		}
	}
	var b [slotSize]byte
	if err := h.readAt(b[:], l.slotAt(int64(e.KeyHash)%l.slots)); err != nil {
		return false, err
	}
	k := decodeSlot(b[:])
	for tries := 0; live && k > newest && k < l.entries && tries < aheadMax; tries++ {
		later, err := h.entryAt(l, k)
		if err != nil || int64(later.Previous) >= k {
			return false, err
		}
		k = int64(later.Previous)
	}
	return k == newest, nil
}

// endsBefore reports whether the header's end is that of the entry before the
// last it counts.
func (h *handle) endsBefore(f *file, l layout) (bool, error) {
	if f.count() == 2 {
		return f.head.EndPhysicalOffset == 0, nil
	}
	e, err := h.entryAt(l, f.count()-2)
	return e.PhysicalOffset == f.head.EndPhysicalOffset, err
}

// entryAt reads entry k.
func (h *handle) entryAt(l layout, k int64) (codec.IndexEntry, error) {
	var b [entrySize]byte
	err := h.readAt(b[:], l.entryAt(k))
	return decodeEntry(b[:]), err
}
