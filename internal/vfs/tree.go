package vfs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"strings"
)

// TreeEntry is one file or directory below a root.
type TreeEntry struct {
	Path  string // Relative to the root.
	IsDir bool
	Size  int64  // Of a file.
	Sum   string // SHA-256 of the content of a file, in hexadecimal.
}

// Tree returns what lies below root, parents before children, else by name. It
// is for telling whether two trees are the same.
func Tree(fsys FS, root string) ([]TreeEntry, error) {
	return treeBelow(fsys, root, "", nil)
}

func treeBelow(fsys FS, dir, prefix string, out []TreeEntry) ([]TreeEntry, error) {
	list, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		full, rel := path.Join(dir, e.Name), path.Join(prefix, e.Name)
		if e.IsDir {
			out, err = treeBelow(fsys, full, rel, append(out, TreeEntry{Path: rel, IsDir: true}))
		} else {
			var t TreeEntry
			t, err = hashFile(fsys, full, rel)
			out = append(out, t)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func hashFile(fsys FS, full, rel string) (TreeEntry, error) {
	f, err := fsys.Open(full, ReadOnly)
	if err != nil {
		return TreeEntry{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return TreeEntry{}, err
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, info.Size)); err != nil {
		return TreeEntry{}, err
	}
	return TreeEntry{Path: rel, Size: info.Size, Sum: hex.EncodeToString(h.Sum(nil))}, nil
}

// Dump returns the tree below root as text, one line for each entry: its kind,
// the size and the sum of a file, and the path.
func Dump(fsys FS, root string) (string, error) {
	entries, err := Tree(fsys, root)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, e := range entries {
		if e.IsDir {
			fmt.Fprintf(&b, "dir %s\n", e.Path)
		} else {
			fmt.Fprintf(&b, "file %d %s %s\n", e.Size, e.Sum, e.Path)
		}
	}
	return b.String(), nil
}

// Hash returns one sum of everything that Dump tells.
func Hash(fsys FS, root string) (string, error) {
	text, err := Dump(fsys, root)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:]), nil
}
