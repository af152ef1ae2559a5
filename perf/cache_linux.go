package perf

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// DropCache asks the kernel to forget what it caches of the files below dir.
// Bytes that are not on the disk yet, or are mapped and in use, stay.
func DropCache(dir string) error {
	var errs []error
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // retired meanwhile
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err == nil {
			errs = append(errs, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}
