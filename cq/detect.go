package cq

import (
	"path"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// detectMax bounds how many files DetectFileSize describes.
const detectMax = 256

// DetectFileSize returns the file size that the directory at dir was made with:
// the length of its longest file, since damage makes files shorter. It looks at
// a few hundred files at most, and reports false if there is none.
func DetectFileSize(fsys vfs.FS, dir string) (int64, bool, error) {
	s := &Store{fs: fsys, dir: path.Clean(dir)}
	largest, seen := int64(0), 0
	topics, err := s.list(s.dir)
	for _, t := range topics {
		if err != nil || seen >= detectMax {
			break
		}
		if !t.IsDir {
			continue
		}
		var ids []vfs.DirEntry
		ids, err = s.list(path.Join(s.dir, t.Name))
		for _, d := range ids {
			if _, ok := parseQueueID(d.Name); !ok || !d.IsDir || err != nil || seen >= detectMax {
				continue
			}
			var n int64
			n, err = s.longest(path.Join(s.dir, t.Name, d.Name), &seen)
			largest = max(largest, n)
		}
	}
	return largest, largest > 0, err
}

// longest returns the length of the longest file in a queue's directory.
func (s *Store) longest(dir string, seen *int) (int64, error) {
	entries, err := s.list(dir)
	if err != nil {
		return 0, err
	}
	largest := int64(0)
	for _, e := range entries {
		if _, ok := parseFileName(e.Name); !ok || e.IsDir || *seen >= detectMax {
			continue
		}
		info, err := s.fs.Stat(path.Join(dir, e.Name))
		if err != nil {
			return 0, ioError(contract.OpOpen, "describe "+e.Name, err)
		}
		largest = max(largest, info.Size)
		*seen++
	}
	return largest, nil
}
