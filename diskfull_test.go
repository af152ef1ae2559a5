//go:build linux

package stratalog

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// TestDiskFull fills a real file system: appends are refused, reads and Open go
// on with not a byte free, and it heals without a restart.
func TestDiskFull(t *testing.T) {
	t.Run("tmpfs", func(t *testing.T) {
		for _, path := range []WritePath{WritePwrite, WriteMmap} {
			t.Run(path.String(), func(t *testing.T) {
				fullDisk(t, tmpfs(t, 6<<20), path)
				ran(t)
			})
		}
	})
	t.Run("ext4", func(t *testing.T) {
		for _, path := range []WritePath{WritePwrite, WriteMmap} {
			t.Run(path.String(), func(t *testing.T) {
				fullDisk(t, ext4(t, 12<<20).dir, path)
				ran(t)
			})
		}
	})
}

// fill takes every byte that is free, and returns what frees them again.
func fill(t *testing.T, dir string) func() {
	t.Helper()
	name := filepath.Join(dir, "filler")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{1 << 20, 64 << 10, 4 << 10} {
		for {
			if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = f.Sync()
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil || st.Bavail != 0 {
		t.Fatalf("%d blocks are still free (%v)", st.Bavail, err)
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		syscall.Sync()
	}
}

func fullDisk(t *testing.T, dir string, path WritePath) {
	clk := manual()
	opt := testOptions(vfs.OS(), dir+"/store")
	opt.Clock, opt.WritePath, opt.SegmentSize = clk, path, 256<<10
	s := start(t, opt)
	t.Cleanup(func() { _, _ = s.Close(ended()) })
	var sent [][]byte
	var starts []Offset
	var last Receipt
	appendOne := func() error {
		m := Message{Topic: "t", Body: body(len(sent))}
		r, err := s.Append(context.Background(), &m, Sync)
		if err == nil {
			place, _ := r.Range()
			last, sent, starts = r, append(sent, m.Body), append(starts, place.Start)
			return nil
		}
		if _, in := r.Range(); !errors.Is(err, contract.ErrDiskFull) || in || r.Status() != contract.StatusServiceUnavailable {
			t.Fatalf("after %d records: %v, %v", len(sent), r, err)
		}
		return err
	}
	for range 10 {
		if err := appendOne(); err != nil {
			t.Fatal(err)
		}
	}
	waitVisible(t, s, endOf(last))
	free := fill(t, dir)
	for appendOne() == nil {
	}
	if len(sent) < 20 {
		t.Fatalf("refused after %d records, there was room in the segment", len(sent))
	}
	check := func() {
		t.Helper()
		var rec Record
		for i, at := range starts {
			found, err := s.GetAt(context.Background(), at, &rec)
			if err != nil || !found || string(rec.Body()) != string(sent[i]) {
				t.Fatalf("read of record %d on a full disk: %v, %v", i, found, err)
			}
		}
		rec.Release()
		// The queue has no room for all of them, and no hole.
		all, _, err := follow(s, Request{Topic: "t"})
		if err != nil || len(all) < 10 {
			t.Fatalf("%d records by queue on a full disk: %v", len(all), err)
		}
		for i, r := range all {
			if r.body != string(sent[i]) {
				t.Fatalf("record %d is another one", i)
			}
		}
	}
	check()
	if h := s.Health(); h.Reason != nil {
		t.Fatalf("a full disk fenced the log: %v", h.Reason)
	}
	// It can be closed and opened with not a byte free.
	for range 2 {
		if r, err := s.Close(context.Background()); err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("close on a full disk: %+v, %v", r, err)
		}
		s = start(t, opt)
		check()
		for i := 0; i < 3 && appendOne() == nil; i++ {
		}
	}
	free()
	until(t, "appends go on when there is room", func() bool { return appendOne() == nil }, func() { clk.Advance(time.Second) })
	for range 400 {
		if err := appendOne(); err != nil {
			until(t, "the next segment", func() bool { return appendOne() == nil }, func() { clk.Advance(time.Second) })
		}
	}
	until(t, "the lane catches up", func() bool { return s.Health().Frontier >= endOf(last) }, func() { clk.Advance(time.Second) })
	expect(t, s, "t", 0, sent)
	closeClean(t, s)
	s = start(t, opt)
	expect(t, s, "t", 0, sent)
	closeClean(t, s)
}
