package commitlog

import (
	"fmt"
	"path"
	"strconv"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// SegmentFile is one segment as a catalog knows it.
type SegmentFile struct {
	Base contract.Offset
	Path string
	Size int64
}

// Catalog says where the segments of a log lie, so that several roots can
// serve one log. Names are the 20-digit start offsets.
type Catalog interface {
	// List returns the segments that exist, sorted by Base. A file that is
	// none is an error: the Java store refuses such a directory.
	List() ([]SegmentFile, error)
	// Place returns the path for a new segment that starts at base.
	Place(base contract.Offset) (string, error)
	// Dirs returns the directories in which segments lie; they exist after
	// Prepare.
	Dirs() []string
	// Prepare makes missing directories, durably.
	Prepare() error
}

// segmentName is the name of the segment that starts at base.
func segmentName(base contract.Offset) string { return fmt.Sprintf("%020d", base) }

// dirCatalog keeps all segments in one directory.
type dirCatalog struct {
	fs  vfs.FS
	dir string
}

// NewDirCatalog returns the catalog of segments in dir.
func NewDirCatalog(fs vfs.FS, dir string) Catalog { return &dirCatalog{fs, dir} }

func (c *dirCatalog) Dirs() []string { return []string{c.dir} }

func (c *dirCatalog) Place(base contract.Offset) (string, error) {
	return path.Join(c.dir, segmentName(base)), nil
}

func (c *dirCatalog) Prepare() error {
	if _, err := c.fs.Stat(c.dir); err == nil {
		return nil
	}
	return mkdirDurable(c.fs, c.dir)
}

func (c *dirCatalog) List() ([]SegmentFile, error) {
	return c.list(func(odd *contract.CorruptionError) error { return odd })
}

// list is List that leaves out a file that is no segment if odd returns nil for
// it.
func (c *dirCatalog) list(odd func(*contract.CorruptionError) error) ([]SegmentFile, error) {
	entries, err := c.fs.ReadDir(c.dir)
	if err != nil {
		return nil, err
	}
	var files []SegmentFile
	for _, e := range entries {
		if e.IsDir {
			continue
		}
		p := path.Join(c.dir, e.Name)
		base, err := strconv.ParseInt(e.Name, 10, 64)
		if err != nil || base < 0 || segmentName(contract.Offset(base)) != e.Name {
			if err := odd(&contract.CorruptionError{File: p, Cause: errNotASegment}); err != nil {
				return nil, err
			}
			continue
		}
		info, err := c.fs.Stat(p)
		if err != nil {
			return nil, err
		}
		files = append(files, SegmentFile{Base: contract.Offset(base), Path: p, Size: info.Size})
	}
	return files, nil
}
