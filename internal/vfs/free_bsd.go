//go:build darwin || freebsd

package vfs

import "golang.org/x/sys/unix"

func freeBytes(native string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(native, &st); err != nil {
		return 0, err
	}
	if int64(st.Bavail) < 0 {
		return 0, nil
	}
	return int64(uint64(st.Bavail) * uint64(st.Bsize)), nil
}
