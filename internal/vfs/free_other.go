//go:build unix && !linux && !darwin && !freebsd

package vfs

import "errors"

func freeBytes(string) (int64, error) { return 0, errors.ErrUnsupported }
