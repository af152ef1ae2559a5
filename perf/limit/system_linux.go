package limit

import (
	"os"
	"syscall"
)

func dataSync(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

func mapFile(f *os.File, size int64) ([]byte, error) {
	b, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	return b, os.NewSyscallError("mmap", err)
}

func unmap(b []byte) error { return os.NewSyscallError("munmap", syscall.Munmap(b)) }
