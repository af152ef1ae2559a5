package mmap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/stratalog/stratalog/internal/vfs"
)

const (
	buildingSuffix = ".building"
	readySuffix    = ".ready"
	// zeroPiece is the size of one zeroing write through the page cache. It
	// bounds the folios that such a file gets, and with them what a sync of one
	// page dirtied through the mapping writes.
	zeroPiece = 64 << 10
	// directPiece is the size of one zeroing write past the page cache.
	directPiece = 128 << 10
	// zeroSync is how many zeros lie between two looks at whether it is enough,
	// and between two syncs, so that the disk sees small pieces and not one
	// burst.
	zeroSync = 1 << 20
)

// Spares makes and keeps the spare files of one directory. One goroutine at a
// time builds; the other methods may run beside it.
type Spares struct {
	fs   vfs.FS
	dir  string
	size int64
	next atomic.Int64 // the last number given to a spare
	// cached zeroes through the page cache: right for files that are written
	// through a mapping, whose first touch of a page would else read the disk.
	cached bool
	zeros  []byte
}

// NewSpares returns the keeper of dir for files of size bytes. dir is made if
// it is missing; spares of an earlier run are kept, those of another size are
// removed. So are second names, of one another or of the files used: a power
// cut in the middle of a rename may leave two. With cached, the zeros of a new
// spare stay in the page cache.
func NewSpares(fsys vfs.FS, dir string, size int64, cached bool, used ...vfs.FileID) (*Spares, error) {
	s := &Spares{fs: fsys, dir: dir, size: size, cached: cached}
	if err := fsys.MkdirAll(dir); err != nil {
		return nil, err
	}
	names, err := s.list()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		info, err := fsys.Stat(path.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if info.Size != size || strings.HasSuffix(name, buildingSuffix) || slices.Contains(used, info.ID) {
			if err := fsys.Remove(path.Join(dir, name)); err != nil {
				return nil, err
			}
			continue
		}
		used = append(used, info.ID)
		s.next.Store(max(s.next.Load(), int64(number(name))))
	}
	return s, nil
}

// list returns the names of spares in order, leaving alone what is not one.
func (s *Spares) list() ([]string, error) {
	entries, err := s.fs.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir && number(e.Name) >= 0 {
			names = append(names, e.Name)
		}
	}
	return names, nil
}

// number returns the number in a spare's name, or -1.
func number(name string) int {
	base := strings.TrimSuffix(strings.TrimSuffix(name, readySuffix), buildingSuffix)
	if base == name {
		return -1
	}
	n, err := strconv.Atoi(base)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// Ready returns the path of a ready spare, or "" if there is none. The caller
// renames it to where it is used.
func (s *Spares) Ready() (string, error) {
	names, err := s.list()
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if strings.HasSuffix(name, readySuffix) {
			return path.Join(s.dir, name), nil
		}
	}
	return "", nil
}

// Build makes one more ready spare and returns its path. Every block of it is
// written, unless enough, asked now and then with the number of bytes zeroed so
// far, says to stop earlier. ctx gives up.
func (s *Spares) Build(ctx context.Context, enough func(zeroed int64) bool) (string, error) {
	name := path.Join(s.dir, fmt.Sprintf("%08d", s.next.Add(1)))
	flag := vfs.ReadWrite | vfs.Create | vfs.Exclusive
	if !s.cached && s.size%vfs.DirectAlign == 0 {
		flag |= vfs.Direct
	}
	f, err := s.fs.Open(name+buildingSuffix, flag)
	if err != nil {
		return "", err
	}
	err = s.fill(ctx, f, enough)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = s.fs.Rename(name+buildingSuffix, name+readySuffix)
	}
	if err != nil {
		// What was reserved is given back, above all on a full disk.
		if rm := s.fs.Remove(name + buildingSuffix); rm != nil && !errors.Is(rm, fs.ErrNotExist) {
			err = errors.Join(err, rm)
		}
		return "", err
	}
	return name + readySuffix, nil
}

// fill allocates the whole file, so that a full disk is met here and not in
// the middle of an append, then writes and syncs zeros in small pieces.
func (s *Spares) fill(ctx context.Context, f vfs.File, enough func(int64) bool) error {
	if err := f.Allocate(0, s.size); err != nil {
		return err
	}
	for off := int64(0); off < s.size && !enough(off); off += zeroSync {
		if err := s.zeroPart(ctx, f, off, min(off+zeroSync, s.size)); err != nil {
			return err
		}
	}
	return f.Sync()
}

// zeroPart zeroes [off, end).
func (s *Spares) zeroPart(ctx context.Context, f vfs.File, off, end int64) error {
	if s.cached {
		return Zero(ctx, f, off, end-off)
	}
	if s.zeros == nil {
		s.zeros = vfs.AlignedBuffer(directPiece)
	}
	for off < end {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.WriteAt(s.zeros[:min(directPiece, end-off)], off)
		if err != nil {
			return err
		}
		off += int64(n)
	}
	if off%(16*zeroSync) == 0 {
		return f.Datasync()
	}
	return nil
}

// Return puts the file at from, whose bytes are known to be zero and synced,
// back among the ready spares. The caller syncs both directories.
func (s *Spares) Return(from string) error {
	to := path.Join(s.dir, fmt.Sprintf("%08d", s.next.Add(1))+readySuffix)
	return s.fs.Rename(from, to)
}

// Dir returns the spare directory.
func (s *Spares) Dir() string { return s.dir }

var zeros [zeroPiece]byte

// Zero writes zeros over [off, off+n) of f and syncs them, in small pieces.
func Zero(ctx context.Context, f vfs.File, off, n int64) error {
	end := off + n
	unsynced := int64(0)
	for off < end {
		if err := ctx.Err(); err != nil {
			return err
		}
		piece := min(int64(zeroPiece)-off%zeroPiece, end-off)
		if _, err := f.WriteAt(zeros[:piece], off); err != nil {
			return err
		}
		off += piece
		unsynced += piece
		if unsynced >= zeroSync || off == end {
			if err := f.Datasync(); err != nil {
				return err
			}
			unsynced = 0
		}
	}
	return nil
}
