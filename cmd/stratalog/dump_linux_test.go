package main

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// TestDumpReadOnlyMount dumps every file of a store on a read-only mount.
func TestDumpReadOnlyMount(t *testing.T) {
	if os.Geteuid() != 0 {
		fmt.Println("SKIPPED (needs root):", t.Name())
		t.Skip("needs root to mount a file system")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16777216,mode=755"); err != nil {
		fmt.Println("SKIPPED (no mount):", t.Name())
		t.Skipf("tmpfs cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("something holds the mount: %v", err)
			_ = syscall.Unmount(dir, syscall.MNT_DETACH)
		}
	})
	store := dir + "/store"
	fine(t, "a\nb\n", "append", "--dir", store, "--topic", "t", "--segment-size", "1MiB", "--disk-floor", "0")
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	files := contents(t, store)
	for file := range files {
		fine(t, "", "dump", file)
	}
	if len(files) < 6 {
		t.Errorf("%d files", len(files))
	}
	fmt.Println("RAN:", t.Name())
}
