package omb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Payload returns the content of PayloadFile, the body of every message, and
// nil if there is no PayloadFile or bodies are randomized. A relative path starts
// at the folder of the workload file; if nothing is there, at the folder above,
// which in the tree of the benchmark is the one that it is run in. Content that
// is not MessageSize bytes long is an error, as in the benchmark. The error is an
// *Error.
func (w *Workload) Payload() ([]byte, error) {
	if w.PayloadFile == "" || w.UseRandomizedPayloads {
		return nil, nil
	}
	path := w.payloadPath()
	body, err := w.readPayload(path)
	if err != nil {
		return nil, w.wrong("payloadFile", "%s: %w", path, err)
	}
	return body, nil
}

func (w *Workload) readPayload(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, bare(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case info.Size() != int64(w.MessageSize):
		return nil, fmt.Errorf("%d bytes, but messageSize is %d", info.Size(), w.MessageSize)
	}
	body, err := readFile(path, info.Size())
	if err == nil && len(body) != w.MessageSize {
		return nil, errors.New("changed while it was read")
	}
	return body, err
}

// payloadPath returns where PayloadFile is, or should be.
func (w *Workload) payloadPath() string {
	path := filepath.FromSlash(w.PayloadFile)
	if filepath.IsAbs(path) {
		return path
	}
	folder := filepath.Dir(w.file)
	here, above := filepath.Join(folder, path), filepath.Join(folder, "..", path)
	if _, err := os.Stat(here); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(above); err == nil {
			return above
		}
	}
	return here
}
