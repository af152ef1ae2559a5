package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
)

// conformers are all the ways to a file system, each with an empty root.
var conformers = map[string]func(t *testing.T) (FS, string){
	"OS":       func(t *testing.T) (FS, string) { return OS(), filepath.ToSlash(t.TempDir()) },
	"Sim":      func(*testing.T) (FS, string) { return NewSim(), "/" },
	"FaultSim": func(*testing.T) (FS, string) { return NewFault(NewSim()), "/" },
	"TraceOS":  func(t *testing.T) (FS, string) { return NewTrace(OS()), filepath.ToSlash(t.TempDir()) },
	"CrashedSim": func(t *testing.T) (FS, string) {
		s := NewSim()
		check(t, s.MkdirAll("/lost/deep"))
		return s.Crash(AllOld()), "/"
	},
}

func conform(t *testing.T, f func(t *testing.T, fsys FS, root string)) {
	for name, make := range conformers {
		t.Run(name, func(t *testing.T) {
			fsys, root := make(t)
			f(t, fsys, root)
		})
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, want %v", err, want)
	}
}

func open(t testing.TB, fsys FS, name string, flag Flag) File {
	t.Helper()
	f, err := fsys.Open(name, flag)
	check(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func create(t testing.TB, fsys FS, name, content string) File {
	t.Helper()
	f := open(t, fsys, name, ReadWrite|Create)
	_, err := f.WriteAt([]byte(content), 0)
	check(t, err)
	return f
}

func content(t testing.TB, fsys FS, name string) string {
	t.Helper()
	f, err := fsys.Open(name, ReadOnly)
	check(t, err)
	defer f.Close()
	info, err := f.Stat()
	check(t, err)
	buf := make([]byte, info.Size)
	_, err = f.ReadAt(buf, 0)
	check(t, err)
	return string(buf)
}

func exists(t testing.TB, fsys FS, name string) bool {
	t.Helper()
	_, err := fsys.Stat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func TestConformReadWrite(t *testing.T) {
	conform(t, func(t *testing.T, fsys FS, root string) {
		f := create(t, fsys, path.Join(root, "a"), "hello")
		if f.Name() != path.Join(root, "a") {
			t.Errorf("name is %q", f.Name())
		}
		_, err := f.WriteAt([]byte("far"), 10_000)
		check(t, err)
		info, err := f.Stat()
		check(t, err)
		if info.Size != 10_003 || info.IsDir {
			t.Errorf("info is %+v", info)
		}
		buf := make([]byte, 10_010)
		n, err := f.ReadAt(buf, 0)
		if n != 10_003 || err != io.EOF {
			t.Errorf("read %d, %v", n, err)
		}
		want := make([]byte, 10_003)
		copy(want, "hello")
		copy(want[10_000:], "far")
		if !bytes.Equal(buf[:n], want) {
			t.Error("content differs")
		}
		if n, err := f.ReadAt(buf[:3], 10_000); n != 3 || err != nil && err != io.EOF {
			t.Errorf("read at the end: %d, %v", n, err)
		}
		if n, err := f.ReadAt(buf[:1], 20_000); n != 0 || err != io.EOF {
			t.Errorf("read behind the end: %d, %v", n, err)
		}
		_, err = f.WriteAt([]byte("x"), -1)
		wantErr(t, err, syscall.EINVAL)
		_, err = f.ReadAt(buf, -1)
		wantErr(t, err, syscall.EINVAL)
		check(t, f.Sync())
		check(t, f.Datasync())
	})
}

func TestConformOpen(t *testing.T) {
	conform(t, func(t *testing.T, fsys FS, root string) {
		p := path.Join(root, "a")
		_, err := fsys.Open(p, ReadOnly)
		wantErr(t, err, fs.ErrNotExist)
		_, err = fsys.Open(p, ReadWrite)
		wantErr(t, err, fs.ErrNotExist)
		_, err = fsys.Open(path.Join(root, "no", "a"), ReadWrite|Create)
		wantErr(t, err, fs.ErrNotExist)
		f, err := fsys.Open(p, ReadWrite|Create|Exclusive)
		check(t, err)
		check(t, f.Close())
		wantErr(t, f.Close(), fs.ErrClosed)
		wantErr(t, f.Sync(), fs.ErrClosed)
		_, err = f.WriteAt([]byte("x"), 0)
		wantErr(t, err, fs.ErrClosed)
		_, err = fsys.Open(p, ReadWrite|Create|Exclusive)
		wantErr(t, err, fs.ErrExist)
		var pe *fs.PathError
		if !errors.As(err, &pe) || pe.Path != p {
			t.Errorf("error does not tell the path: %v", err)
		}
		_, err = fsys.Open(path.Join(p, "below"), ReadOnly)
		wantErr(t, err, syscall.ENOTDIR)
		_, err = fsys.Open(root, ReadOnly)
		wantErr(t, err, syscall.EISDIR)
		r := open(t, fsys, p, ReadOnly)
		_, err = r.WriteAt([]byte("x"), 0)
		wantErr(t, err, syscall.EBADF)
		if _, err = r.Map(1, false); err == nil {
			t.Error("mapped more than the file has")
		}
	})
}

func TestConformNames(t *testing.T) {
	conform(t, func(t *testing.T, fsys FS, root string) {
		d := path.Join(root, "x/y/z")
		check(t, fsys.MkdirAll(d))
		check(t, fsys.MkdirAll(d))
		create(t, fsys, path.Join(d, "b"), "bb")
		create(t, fsys, path.Join(d, "a"), "aa")
		check(t, fsys.MkdirAll(path.Join(d, "c")))
		wantErr(t, fsys.MkdirAll(path.Join(d, "a")), syscall.ENOTDIR)
		list, err := fsys.ReadDir(d)
		check(t, err)
		if !slices.Equal(list, []DirEntry{{"a", false}, {"b", false}, {"c", true}}) {
			t.Errorf("listed %v", list)
		}
		_, err = fsys.ReadDir(path.Join(d, "a"))
		wantErr(t, err, syscall.ENOTDIR)
		_, err = fsys.ReadDir(path.Join(d, "none"))
		wantErr(t, err, fs.ErrNotExist)

		before, err := fsys.Stat(path.Join(d, "a"))
		check(t, err)
		check(t, fsys.Rename(path.Join(d, "a"), path.Join(d, "b")))
		after, err := fsys.Stat(path.Join(d, "b"))
		check(t, err)
		if before.ID != after.ID || before.ID == (FileID{}) {
			t.Errorf("renamed %v became %v", before.ID, after.ID)
		}
		if before.Links != 1 || after.Links != 1 {
			t.Errorf("a file has %d links, and %d", before.Links, after.Links)
		}
		if content(t, fsys, path.Join(d, "b")) != "aa" || exists(t, fsys, path.Join(d, "a")) {
			t.Error("rename did not replace")
		}
		wantErr(t, fsys.Rename(path.Join(d, "a"), path.Join(d, "q")), fs.ErrNotExist)
		check(t, fsys.Rename(path.Join(d, "b"), path.Join(d, "c", "b")))
		wantErr(t, fsys.Remove(path.Join(d, "c")), syscall.ENOTEMPTY)
		open, err := fsys.Open(path.Join(d, "c", "b"), ReadOnly)
		check(t, err)
		check(t, fsys.Remove(path.Join(d, "c", "b")))
		if info, err := open.Stat(); runtime.GOOS != "windows" && (err != nil || info.Links != 0) {
			t.Errorf("an open file that was removed: %+v, %v", info, err)
		}
		check(t, open.Close())
		check(t, fsys.Remove(path.Join(d, "c")))
		wantErr(t, fsys.Remove(path.Join(d, "c")), fs.ErrNotExist)
		check(t, fsys.SyncDir(d))
		if fsys.SyncDir(path.Join(root, "none")) == nil {
			t.Error("synced a directory that is not there")
		}
		free, err := fsys.Free(root)
		check(t, err)
		if free <= 0 {
			t.Errorf("%d bytes free", free)
		}
	})
}

func TestConformLink(t *testing.T) {
	conform(t, func(t *testing.T, fsys FS, root string) {
		a, b := path.Join(root, "a"), path.Join(root, "d/b")
		check(t, fsys.MkdirAll(path.Dir(b)))
		f := create(t, fsys, a, "one")
		check(t, fsys.Link(a, b))
		one, err := fsys.Stat(a)
		check(t, err)
		two, err := fsys.Stat(b)
		check(t, err)
		if one.ID != two.ID {
			t.Errorf("two names, two files: %v, %v", one.ID, two.ID)
		}
		wantErr(t, fsys.Link(a, b), fs.ErrExist)
		wantErr(t, fsys.Link(a, path.Join(root, "none/b")), fs.ErrNotExist)
		wantErr(t, fsys.Link(path.Join(root, "none"), path.Join(root, "c")), fs.ErrNotExist)
		wantErr(t, fsys.Link(path.Join(root, "d"), path.Join(root, "c")), fs.ErrPermission)
		check(t, fsys.Rename(a, b)) // Of two names of one file neither goes.
		if !exists(t, fsys, a) {
			t.Error("the old name is gone")
		}
		check(t, fsys.Remove(a))
		_, err = f.WriteAt([]byte("two"), 0)
		check(t, err)
		if got := content(t, fsys, b); got != "two" {
			t.Errorf("found %q", got)
		}
	})
}

func TestConformOpenFileOutlivesItsName(t *testing.T) {
	conform(t, func(t *testing.T, fsys FS, root string) {
		p := path.Join(root, "a")
		f := create(t, fsys, p, "still here")
		id, err := f.Stat()
		check(t, err)
		check(t, fsys.Remove(p))
		create(t, fsys, p, "other")
		buf := make([]byte, 10)
		_, err = f.ReadAt(buf, 0)
		check(t, err)
		now, err := fsys.Stat(p)
		check(t, err)
		if string(buf) != "still here" || now.ID == id.ID {
			t.Errorf("read %q, ids %v and %v", buf, id.ID, now.ID)
		}
	})
}

func TestConformSize(t *testing.T) {
	conform(t, func(t *testing.T, fsys FS, root string) {
		p := path.Join(root, "a")
		f := create(t, fsys, p, "0123456789")
		check(t, f.Truncate(4))
		check(t, f.Truncate(8))
		if got := content(t, fsys, p); got != "0123\x00\x00\x00\x00" {
			t.Errorf("content is %q", got)
		}
		check(t, f.Allocate(4, 20_000))
		if got := content(t, fsys, p); len(got) != 20_004 || got[:4] != "0123" {
			t.Errorf("%d bytes, %q", len(got), got[:4])
		}
		_, err := f.WriteAt(bytes.Repeat([]byte("x"), 20_004), 0)
		check(t, err)
		check(t, f.PunchHole(100, 15_000))
		want := bytes.Repeat([]byte("x"), 20_004)
		clear(want[100:15_100])
		if got := content(t, fsys, p); got != string(want) {
			t.Error("hole is not where it should be")
		}
		check(t, f.PunchHole(20_000, 1000))
		if info, _ := f.Stat(); info.Size != 20_004 {
			t.Errorf("hole made the size %d", info.Size)
		}
		wantErr(t, f.Allocate(-1, 5), syscall.EINVAL)
		wantErr(t, f.Allocate(0, 0), syscall.EINVAL)
		wantErr(t, f.PunchHole(0, -1), syscall.EINVAL)
		wantErr(t, f.Truncate(-1), syscall.EINVAL)
	})
}

func TestConformMap(t *testing.T) {
	conform(t, func(t *testing.T, fsys FS, root string) {
		f := open(t, fsys, path.Join(root, "a"), ReadWrite|Create)
		check(t, f.Allocate(0, 10_000))
		small, err := f.Map(5000, true)
		check(t, err)
		large, err := f.Map(10_000, true)
		check(t, err)
		if len(small.Bytes()) != 5000 || len(large.Bytes()) != 10_000 {
			t.Fatal("mappings have wrong sizes")
		}
		_, err = f.WriteAt([]byte("file"), 4094)
		check(t, err)
		large.WriteAt([]byte("map"), 4998)
		check(t, large.Populate(4000, 2000))
		check(t, small.Populate(0, 5000))
		wantErr(t, small.Populate(1, 5000), syscall.EINVAL)
		if got := string(small.Bytes()[4094:4098]); got != "file" {
			t.Errorf("mapping shows %q", got)
		}
		if got := string(small.Bytes()[4998:]); got != "ma" {
			t.Errorf("the other mapping shows %q", got)
		}
		buf := make([]byte, 3)
		_, err = f.ReadAt(buf, 4998)
		check(t, err)
		if string(buf) != "map" {
			t.Errorf("the file shows %q", buf)
		}
		check(t, f.Close())
		large.WriteAt([]byte("after close"), 0)
		if got := string(small.Bytes()[:11]); got != "after close" {
			t.Errorf("mapping shows %q", got)
		}
		check(t, small.Unmap())
		wantErr(t, small.Unmap(), fs.ErrClosed)
		wantErr(t, small.Populate(0, 1), fs.ErrClosed)
		if small.Bytes() != nil {
			t.Error("bytes after unmap")
		}
		if string(large.Bytes()[:5]) != "after" {
			t.Error("the other mapping ended too")
		}
		mustPanic(t, func() { large.WriteAt([]byte("xx"), 9999) })
		mustPanic(t, func() { large.WriteAt([]byte("xx"), -1) })
		mustPanic(t, func() { small.WriteAt([]byte("xx"), 0) })
		check(t, large.Unmap())

		r := open(t, fsys, path.Join(root, "a"), ReadOnly)
		_, err = r.Map(100, true)
		wantErr(t, err, fs.ErrPermission)
		_, err = r.Map(0, false)
		wantErr(t, err, syscall.EINVAL)
		m, err := r.Map(100, false)
		check(t, err)
		mustPanic(t, func() { m.WriteAt([]byte("x"), 0) })
		check(t, m.Unmap())
	})
}

func mustPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	f()
}

func TestConformLock(t *testing.T) {
	conform(t, func(t *testing.T, fsys FS, root string) {
		p := path.Join(root, "lock")
		a, err := fsys.Lock(p)
		check(t, err)
		_, err = fsys.Lock(p)
		wantErr(t, err, ErrLocked)
		f := open(t, fsys, p, ReadWrite)
		check(t, f.Close())
		_, err = fsys.Lock(p)
		wantErr(t, err, ErrLocked)
		// Another program may write into the file of a lock; ours is emptied.
		f = open(t, fsys, p, ReadWrite)
		_, err = f.WriteAt([]byte("lock"), 0)
		check(t, errors.Join(err, f.Close()))
		for _, want := range []int64{4, 0} {
			size, err := a.Size()
			check(t, err)
			if size != want {
				t.Errorf("the lock file has %d bytes, want %d", size, want)
			}
			check(t, a.Clear())
		}
		_, err = fsys.Lock(p)
		wantErr(t, err, ErrLocked)
		check(t, a.Close())
		wantErr(t, a.Close(), fs.ErrClosed)
		wantErr(t, a.Clear(), fs.ErrClosed)
		_, err = a.Size()
		wantErr(t, err, fs.ErrClosed)
		b, err := fsys.Lock(p)
		check(t, err)
		check(t, b.Close())
		if !exists(t, fsys, p) {
			t.Error("the lock file is gone")
		}
		check(t, fsys.MkdirAll(path.Join(root, "d")))
		if _, err := fsys.Lock(path.Join(root, "d")); err == nil {
			t.Error("locked a directory")
		}
	})
}

func TestConformConcurrent(t *testing.T) {
	conform(t, func(t *testing.T, fsys FS, root string) {
		f := open(t, fsys, path.Join(root, "a"), ReadWrite|Create)
		check(t, f.Allocate(0, 8*4000))
		m, err := f.Map(8*4000, true)
		check(t, err)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				p := bytes.Repeat([]byte{byte('a' + i)}, 400)
				buf := make([]byte, 400)
				for k := range 10 {
					off := int64(i*4000 + k*400)
					if k%2 == 0 {
						m.WriteAt(p, off)
					} else if _, err := f.WriteAt(p, off); err != nil {
						t.Error(err)
					}
					if err := f.Datasync(); err != nil {
						t.Error(err)
					}
					if _, err := f.ReadAt(buf, off); err != nil || !bytes.Equal(buf, p) {
						t.Errorf("read back %q, %v", buf[:1], err)
					}
					if !bytes.Equal(m.Bytes()[off:off+400], p) {
						t.Error("mapping differs")
					}
				}
			})
		}
		wg.Wait()
		check(t, m.Unmap())
	})
}

func TestConformTree(t *testing.T) {
	var sums []string
	conform(t, func(t *testing.T, fsys FS, root string) {
		check(t, fsys.MkdirAll(path.Join(root, "d/e")))
		create(t, fsys, path.Join(root, "d/f"), "one")
		create(t, fsys, path.Join(root, "g"), "two")
		text, err := Dump(fsys, root)
		check(t, err)
		sum, err := Hash(fsys, root)
		check(t, err)
		if sums = append(sums, sum); sum != sums[0] {
			t.Errorf("hash differs from that of another file system:\n%s", text)
		}
	})
}
