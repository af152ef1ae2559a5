package stratalog

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"
)

// needRoot skips a test that mounts something, loudly.
func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		fmt.Println("SKIPPED (needs root):", t.Name())
		t.Skip("needs root to mount a file system")
	}
}

// ran tells that a test that needs root did run.
func ran(t testing.TB) { fmt.Println("RAN:", t.Name()) }

func command(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}

// tmpfs mounts a memory file system of so many bytes.
func tmpfs(t testing.TB, size int64) string {
	t.Helper()
	needRoot(t)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=755", size)); err != nil {
		fmt.Println("SKIPPED (no mount):", t.Name())
		t.Skipf("tmpfs cannot be mounted: %v", err)
	}
	t.Cleanup(func() { unmount(t, dir) })
	return dir
}

func unmount(t testing.TB, dir string) {
	t.Helper()
	if err := syscall.Unmount(dir, 0); err != nil {
		t.Errorf("something holds %s: %v", filepath.Base(dir), err)
		_ = syscall.Unmount(dir, syscall.MNT_DETACH)
	}
}

// disk is an ext4 file system in a file, mounted through a loop device.
type disk struct {
	t     testing.TB
	image string
	dir   string
	up    bool
}

func ext4(t testing.TB, size int64) *disk {
	t.Helper()
	needRoot(t)
	d := &disk{t: t, image: filepath.Join(t.TempDir(), "disk"), dir: t.TempDir()}
	if err := os.WriteFile(d.image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(d.image, size); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		fmt.Println("SKIPPED (no mkfs.ext4):", t.Name())
		t.Skip("mkfs.ext4 is missing")
	}
	command(t, "mkfs.ext4", "-q", "-m", "0", d.image)
	t.Cleanup(d.unmount)
	d.mount()
	return d
}

func (d *disk) mount() {
	d.t.Helper()
	out, err := exec.Command("mount", "-o", "loop", d.image, d.dir).CombinedOutput()
	if err != nil {
		fmt.Println("SKIPPED (no loop device):", d.t.Name())
		d.t.Skipf("mount: %v: %s", err, out)
	}
	d.up = true
}

func (d *disk) unmount() {
	if d.up {
		d.up = false
		unmount(d.t, d.dir)
	}
}

// Cut stops the file system at once: nothing that is not on the disk by now
// will get there.
func (d *disk) cut() {
	d.t.Helper()
	f, err := os.Open(d.dir)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	const shutdown, noLogFlush = 0x8004587d, 2
	how := uint32(noLogFlush)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), shutdown, uintptr(unsafe.Pointer(&how))); errno != 0 {
		d.t.Fatalf("shutdown of the file system: %v", errno)
	}
}
