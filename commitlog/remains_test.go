package commitlog

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stratalog/stratalog/internal/vfs"
	"github.com/stratalog/stratalog/mmap"
)

// blindFS hides what its files know of their holes.
type blindFS struct{ vfs.FS }

func (f blindFS) Open(name string, flag vfs.Flag) (vfs.File, error) {
	inner, err := f.FS.Open(name, flag)
	return struct{ vfs.File }{inner}, err
}

// What survey finds in files of holes, written zeros and bytes is what a look at
// every byte finds, whether or not the file system tells where it was written.
func TestSurvey(t *testing.T) {
	const size = 4 << 20
	rng := rand.New(rand.NewPCG(4, 7))
	for round := range 40 {
		path := filepath.Join(t.TempDir(), "segment")
		f, err := vfs.OS().Open(path, vfs.ReadWrite|vfs.Create|vfs.Exclusive)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Allocate(0, size); err != nil {
			t.Fatal(err)
		}
		for range rng.IntN(5) {
			b := make([]byte, 1+rng.IntN(100_000))
			for range rng.IntN(3) {
				b[rng.IntN(len(b))] = 1
			}
			if _, err := f.WriteAt(b, rng.Int64N(size-int64(len(b)))); err != nil {
				t.Fatal(err)
			}
		}
		if round%2 == 0 {
			if err := f.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		from := rng.Int64N(size)
		for _, fs := range []vfs.FS{vfs.OS(), blindFS{vfs.OS()}} {
			file, err := mmap.OpenReadOnly(fs, path, size)
			if err != nil {
				t.Fatal(err)
			}
			const base = 3 * size
			seg := &segment{base: base, file: file}
			list := &segmentList{size: size, segs: []*segment{seg}}
			for _, at := range []int64{0, from} {
				got, err := survey(list, base+at)
				if err != nil {
					t.Fatal(err)
				}
				var want remain
				if rest := file.Bytes()[at:]; len(bytes.Trim(rest, "\x00")) > 0 {
					want.start = at + int64(len(rest)-len(bytes.TrimLeft(rest, "\x00")))
					want.end = at + int64(len(bytes.TrimRight(rest, "\x00")))
				}
				if got.of(seg) != want {
					t.Errorf("round %d, from %d: %v, want %v", round, at, got.of(seg), want)
				}
			}
			file.Close(nil)
		}
	}
}

// A look behind the tail reads no more than what was written.
func TestSurveySkipsHoles(t *testing.T) {
	const size = 64 << 20
	path := filepath.Join(t.TempDir(), "segment")
	f, err := vfs.OS().Open(path, vfs.ReadWrite|vfs.Create|vfs.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	finder, ok := f.(dataFinder)
	if !ok {
		t.Skip("this system does not tell where a file was written")
	}
	if err := f.Allocate(0, size); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{1 << 20, 40 << 20} {
		if _, err := f.WriteAt([]byte{1}, at); err != nil {
			t.Fatal(err)
		}
	}
	if hole, err := finder.NextHole(1 << 20); err != nil || hole == size {
		t.Skipf("this file system tells no holes: %d, %v", hole, err)
	}
	trace := vfs.NewTrace(vfs.OS()).WithHoles()
	read := int64(0)
	trace.OnOp(func(op vfs.Op, n int, err error) {
		if op.Kind == vfs.OpRead {
			read += int64(n)
		}
	})
	file, err := mmap.OpenReadOnly(trace, path, size)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close(nil)
	rest, err := survey(&segmentList{size: size, segs: []*segment{{file: file}}}, 0)
	if want := (remain{1 << 20, 40<<20 + 1}); err != nil || rest[0] != want {
		t.Errorf("found %v, %v, want %v", rest[0], err, want)
	}
	if read == 0 || read > 1<<20 {
		t.Errorf("%d bytes were read for two that were written", read)
	}
}
