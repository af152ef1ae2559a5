package vfs

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkCrash measures one crash state of 20 files with 200 KiB in all and
// a few pending sectors, with and without reading all of it.
func BenchmarkCrash(b *testing.B) {
	s := NewSim()
	var files []File
	if err := s.MkdirAll("/store/log"); err != nil {
		b.Fatal(err)
	}
	for i := range 20 {
		f, err := s.Open(fmt.Sprintf("/store/log/%020d", i), ReadWrite|Create)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := f.WriteAt(make([]byte, 10<<10), 0); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		files = append(files, f)
	}
	for _, d := range []string{"/", "/store", "/store/log"} {
		if err := s.SyncDir(d); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 4 {
		if _, err := files[i].WriteAt(make([]byte, 1500), 700); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("%d items pending", s.PendingCount())
	choose := Random(rand.New(rand.NewPCG(1, 2)), 0.5)
	b.Run("clone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Crash(choose)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "crashes/s")
	})
	b.Run("clone and read", func(b *testing.B) {
		b.ReportAllocs()
		buf := make([]byte, 10<<10)
		for b.Loop() {
			c := s.Crash(choose)
			for i := range files {
				f, err := c.Open(files[i].Name(), ReadOnly)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := f.ReadAt(buf, 0); err != nil {
					b.Fatal(err)
				}
				f.Close()
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "crashes/s")
	})
}
