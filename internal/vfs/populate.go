package vfs

import "io"

// populateChunk is how much one read of populateByRead asks for.
const populateChunk = 64 << 10

// populateByRead reads [start, end) and throws the bytes away, for the effect
// that they are in memory afterwards.
func populateByRead(start, end int64, read func(p []byte, at int64) (int, error)) error {
	buf := make([]byte, min(populateChunk, end-start))
	for start < end {
		n, err := read(buf[:min(int64(len(buf)), end-start)], start)
		if n == 0 && err == nil {
			err = io.ErrUnexpectedEOF // The file shrank: a touch would be a signal.
		}
		if n == 0 {
			return err
		}
		start += int64(n)
	}
	return nil
}
