package report

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile writes the page of in to a file: wholly, or not at all. A file that
// is there is replaced; whoever has it open keeps reading the old one. What is no
// regular file, such as a device, is written to and stays what it is. An error
// of the file system is a *fs.PathError that names the file asked for.
func WriteFile(name string, in Input) error {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return &fs.PathError{Op: "write", Path: name, Err: errors.New("is a directory")}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	var page bytes.Buffer
	if err := Write(&page, in); err != nil {
		return err
	}
	if info != nil && !info.Mode().IsRegular() {
		return os.WriteFile(name, page.Bytes(), 0o644)
	}
	if err := replace(name, page.Bytes()); err != nil {
		return &fs.PathError{Op: "write", Path: name, Err: cause(err)}
	}
	return nil
}

// replace puts a file in place of another.
func replace(name string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // what went wrong before is what matters
		}
	}()
	if _, err = f.Write(content); err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	return err
}

// cause takes the name of the temporary file, which nobody asked for, off an
// error.
func cause(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
