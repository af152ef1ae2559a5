package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// blocks returns the bytes that a file takes on the disk.
func blocks(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return info.Size()
}

// ownGroup makes the end of cmd the end of all its processes.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return os.NewSyscallError("kill", syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)) }
}

// probe measures the disk as it is now: the median of some 4 KiB writes into
// written blocks of one file, each with an fdatasync.
type probe struct {
	file *os.File
	buf  [4096]byte
}

const probeWrites = 60

func newProbe(dir string) (*probe, error) {
	file, err := os.Create(filepath.Join(dir, "probe"))
	if err != nil {
		return nil, err
	}
	p := &probe{file: file}
	for i := range int64(probeWrites) {
		if _, err := file.WriteAt(p.buf[:], i*int64(len(p.buf))); err != nil {
			return nil, err
		}
	}
	return p, file.Sync()
}

func (p *probe) measure() (time.Duration, error) {
	took := make([]time.Duration, probeWrites)
	for i := range took {
		start := time.Now()
		if _, err := p.file.WriteAt(p.buf[:], int64(i)*int64(len(p.buf))); err != nil {
			return 0, err
		}
		if err := syscall.Fdatasync(int(p.file.Fd())); err != nil {
			return 0, os.NewSyscallError("fdatasync", err)
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
