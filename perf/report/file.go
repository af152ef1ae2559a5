package report

import (
	"errors"
	"os"
	"path/filepath"
)

// WriteFile writes the page of in to a file: wholly, or not at all. A file that
// is there is replaced; whoever has it open keeps reading the old one.
func WriteFile(name string, in Input) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = errors.Join(Write(f, in), f.Chmod(0o644), f.Sync())
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
