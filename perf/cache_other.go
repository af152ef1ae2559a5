//go:build !linux

package perf

import "errors"

// DropCache is for Linux only.
func DropCache(string) error { return errors.ErrUnsupported }
