package main

import (
	"fmt"
	"os"
	"path/filepath"
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

// TestDumpNoFile: what is no file is named at once, whatever the flags say of it.
func TestDumpNoFile(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{fifo: "named pipe", "/dev/null": "device", "/dev/zero": "device"} {
		for _, flags := range [][]string{nil, {"--record", "QueueUnit"}, {"--json"}} {
			a := cli(t, "", append([]string{"dump", name}, flags...)...)
			if want := "stratalog: open " + name + ": is a " + want + ", where a file is needed\n"; a.code != exitFailed || a.errOut != want || a.out != "" {
				t.Errorf("%s %v: code %d, %q, want %q", name, flags, a.code, a.errOut, want)
			}
		}
	}
}
