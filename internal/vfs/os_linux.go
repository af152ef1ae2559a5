package vfs

import (
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stratalog/stratalog/internal/invariant"
)

// osFile is a regular file. It holds the descriptor itself rather than an
// os.File, because that one repeats an interrupted sync, and because calls
// here must not allocate.
type osFile struct {
	name string
	// mu is held for reading by every call that uses fd, for writing by
	// Close: a descriptor is never closed, and its number never reused,
	// under a running call.
	mu sync.RWMutex
	fd int // -1 once closed.
}

var (
	_ File = (*osFile)(nil)
	_ Raw  = (*osFile)(nil)
)

// ioMax is the most that one read or write asks for; the system transfers at
// most a page less than 2 GiB at once.
const ioMax = 1 << 30

// retryEINTR calls f again while a signal interrupts it. It must not wrap a
// sync: a sync that failed, for whatever reason, is never repeated.
func retryEINTR(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

func openFile(native, name string, flag Flag) (File, error) {
	// A named pipe in the place of a file must give an error, not hang.
	mode := unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_RDONLY
	if flag&ReadWrite != 0 {
		mode = mode&^unix.O_ACCMODE | unix.O_RDWR
	}
	if flag&Create != 0 {
		mode |= unix.O_CREAT
		if flag&Exclusive != 0 {
			mode |= unix.O_EXCL
		}
	}
	if flag&Direct != 0 {
		mode |= unix.O_DIRECT
	}
	var fd int
	open := func() (err error) {
		fd, err = unix.Open(native, mode, uint32(filePerm))
		return err
	}
	err := retryEINTR(open)
	if flag&Direct != 0 && err == unix.EINVAL {
		// The file system has no direct I/O. The name may have been made
		// before the refusal.
		mode &^= unix.O_DIRECT | unix.O_EXCL
		err = retryEINTR(open)
	}
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	switch {
	case err != nil:
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		err = unix.EISDIR
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		err = unix.EINVAL
	default:
		// Regular files ignore the flag for read and write, a submission
		// ring does not.
		err = unix.SetNonblock(fd, false)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &osFile{name: name, fd: fd}, nil
}

func (f *osFile) Name() string { return f.name }

// hold keeps fd open until release. Every method but Close begins with it.
func (f *osFile) hold(op string) error {
	f.mu.RLock()
	if f.fd < 0 {
		f.mu.RUnlock()
		return pathErr(op, f.name, fs.ErrClosed)
	}
	return nil
}

func (f *osFile) release() { f.mu.RUnlock() }

func (f *osFile) Close() error {
	f.mu.Lock()
	fd := f.fd
	f.fd = -1
	f.mu.Unlock()
	if fd < 0 {
		return pathErr("close", f.name, fs.ErrClosed)
	}
	err := unix.Close(fd)
	if err == unix.EINTR {
		err = nil // The descriptor is gone all the same.
	}
	return pathErr("close", f.name, err)
}

func (f *osFile) Control(fn func(fd uintptr)) error {
	if err := f.hold("control"); err != nil {
		return err
	}
	defer f.release()
	fn(uintptr(f.fd))
	return nil
}

func (f *osFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.hold("read"); err != nil {
		return 0, err
	}
	defer f.release()
	if off < 0 {
		return 0, pathErr("read", f.name, unix.EINVAL)
	}
	done := 0
	for done < len(p) {
		n, err := unix.Pread(f.fd, p[done:min(len(p), done+ioMax)], off+int64(done))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return done, pathErr("read", f.name, err)
		}
		if n == 0 {
			return done, io.EOF
		}
		done += n
	}
	return done, nil
}

func (f *osFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.hold("write"); err != nil {
		return 0, err
	}
	defer f.release()
	if off < 0 {
		return 0, pathErr("write", f.name, unix.EINVAL)
	}
	done := 0
	for done < len(p) {
		n, err := unix.Pwrite(f.fd, p[done:min(len(p), done+ioMax)], off+int64(done))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return done, pathErr("write", f.name, err)
		}
		if n == 0 {
			return done, pathErr("write", f.name, io.ErrShortWrite)
		}
		done += n
	}
	return done, nil
}

func (f *osFile) Stat() (Info, error) {
	if err := f.hold("stat"); err != nil {
		return Info{}, err
	}
	defer f.release()
	var st unix.Stat_t
	if err := retryEINTR(func() error { return unix.Fstat(f.fd, &st) }); err != nil {
		return Info{}, pathErr("stat", f.name, err)
	}
	return infoOf(&st), nil
}

func infoOf(st *unix.Stat_t) Info {
	return Info{
		Size:    st.Size,
		IsDir:   st.Mode&unix.S_IFMT == unix.S_IFDIR,
		ModTime: time.Unix(st.Mtim.Unix()),
		ID:      FileID{Device: st.Dev, Inode: st.Ino},
		Links:   uint64(st.Nlink),
	}
}

func (f *osFile) Truncate(size int64) error {
	if err := f.hold("truncate"); err != nil {
		return err
	}
	defer f.release()
	err := retryEINTR(func() error { return unix.Ftruncate(f.fd, size) })
	return pathErr("truncate", f.name, err)
}

func (f *osFile) Allocate(off, n int64) error {
	if err := f.hold("allocate"); err != nil {
		return err
	}
	defer f.release()
	err := checkRange(off, n)
	if err == nil {
		err = retryEINTR(func() error { return unix.Fallocate(f.fd, 0, off, n) })
	}
	return pathErr("allocate", f.name, err)
}

func (f *osFile) PunchHole(off, n int64) error {
	if err := f.hold("punchhole"); err != nil {
		return err
	}
	defer f.release()
	const mode = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
	err := checkRange(off, n)
	if err == nil {
		err = retryEINTR(func() error { return unix.Fallocate(f.fd, mode, off, n) })
	}
	return pathErr("punchhole", f.name, err)
}

func (f *osFile) Sync() error {
	if err := f.hold("sync"); err != nil {
		return err
	}
	defer f.release()
	return pathErr("sync", f.name, unix.Fsync(f.fd))
}

func (f *osFile) Datasync() error {
	if err := f.hold("datasync"); err != nil {
		return err
	}
	defer f.release()
	return pathErr("datasync", f.name, unix.Fdatasync(f.fd))
}

func (f *osFile) Map(size int64, writable bool) (Mapping, error) {
	if err := f.hold("map"); err != nil {
		return nil, err
	}
	defer f.release()
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return nil, pathErr("map", f.name, err)
	}
	if size <= 0 || size > st.Size || int64(int(size)) != size {
		return nil, pathErr("map", f.name, unix.EINVAL)
	}
	prot := unix.PROT_READ
	if writable {
		prot |= unix.PROT_WRITE
	}
	m := &osMapping{path: f.name, writable: writable, fd: -1}
	if !canPopulate() {
		fd, err := unix.FcntlInt(uintptr(f.fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, pathErr("map", f.name, err)
		}
		m.fd = fd
	}
	addr, err := unix.MmapPtr(f.fd, 0, nil, uintptr(size), prot, unix.MAP_SHARED)
	if err != nil {
		if m.fd >= 0 {
			unix.Close(m.fd)
		}
		return nil, pathErr("map", f.name, err)
	}
	m.data = unsafe.Slice((*byte)(addr), size)
	return m, nil
}

// canPopulate tells whether the system knows MADV_POPULATE_READ (Linux 5.14).
// It is asked once, with a page of its own: for other memory, EINVAL can mean
// other things.
var canPopulate = sync.OnceValue(func() bool {
	size := uintptr(os.Getpagesize())
	addr, err := unix.MmapPtr(-1, 0, nil, size, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return false
	}
	err = unix.Madvise(unsafe.Slice((*byte)(addr), size), unix.MADV_POPULATE_READ)
	_ = unix.MunmapPtr(addr, size)
	return err == nil
})

func (m *osMapping) populate(off, n int64) error {
	page := int64(os.Getpagesize())
	start := off &^ (page - 1)
	if m.fd < 0 {
		return retryEINTR(func() error {
			err := unix.Madvise(m.data[start:off+n], unix.MADV_POPULATE_READ)
			if err == unix.EAGAIN {
				return unix.EINTR
			}
			return err
		})
	}
	// Reading brings the pages into the cache, where a touch finds them.
	return populateByRead(start, off+n, func(p []byte, at int64) (int, error) {
		for {
			k, err := unix.Pread(m.fd, p, at)
			if err != unix.EINTR {
				return k, err
			}
		}
	})
}

func (m *osMapping) unmap() error {
	if m.fd >= 0 {
		unix.Close(m.fd)
	}
	addr, size := unsafe.Pointer(unsafe.SliceData(m.data)), uintptr(len(m.data))
	if invariant.Enabled {
		// Keep the addresses taken but unreadable, so that a use after
		// release stops at once instead of reading what came to lie there.
		const flags = unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_FIXED | unix.MAP_NORESERVE
		_, err := unix.MmapPtr(-1, 0, addr, size, unix.PROT_NONE, flags)
		return err
	}
	return unix.MunmapPtr(addr, size)
}

// rename does without the look at newPath by which package os turns some
// errors into others.
func rename(oldPath, newPath string) error {
	return retryEINTR(func() error { return unix.Rename(oldPath, newPath) })
}

func statPath(native string) (Info, error) {
	var st unix.Stat_t
	if err := retryEINTR(func() error { return unix.Stat(native, &st) }); err != nil {
		return Info{}, err
	}
	return infoOf(&st), nil
}

func syncDir(native string) error {
	var fd int
	err := retryEINTR(func() (err error) {
		fd, err = unix.Open(native, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fsync(fd)
}

func freeBytes(native string) (int64, error) {
	var st unix.Statfs_t
	if err := retryEINTR(func() error { return unix.Statfs(native, &st) }); err != nil {
		return 0, err
	}
	unit := uint64(st.Frsize)
	if unit == 0 {
		unit = uint64(st.Bsize)
	}
	return int64(min(st.Bavail*unit, 1<<62)), nil
}

// osLock is a lock that belongs to one open file description: another
// descriptor of the same file, in this process or elsewhere, neither shares it
// nor gives it up by being closed.
type osLock struct {
	path string
	mu   sync.Mutex
	fd   int // Guarded by mu; -1 once closed.
}

// lockAttempts bounds how often lockFile starts again because the file under
// the name was replaced in between.
const lockAttempts = 8

func lockFile(native string) (Lock, error) {
	for range lockAttempts {
		fd, stale, err := tryLock(native)
		if err != nil {
			return nil, err
		}
		if !stale {
			return &osLock{path: native, fd: fd}, nil
		}
	}
	return nil, ErrLocked
}

// tryLock locks the file at native. It reports stale when the file that it
// locked is no longer the one under that name, so that the lock means nothing.
func tryLock(native string) (fd int, stale bool, err error) {
	const mode = unix.O_RDWR | unix.O_CREAT | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK
	err = retryEINTR(func() (err error) {
		fd, err = unix.Open(native, mode, uint32(filePerm))
		return err
	})
	if err != nil {
		return -1, false, err
	}
	stale, err = lockDescriptor(fd, native)
	if err != nil || stale {
		unix.Close(fd)
		return -1, stale, err
	}
	return fd, false, nil
}

// lockDescriptor locks byte 0 of fd and compares it with what native names.
func lockDescriptor(fd int, native string) (stale bool, err error) {
	var held, named unix.Stat_t
	if err := unix.Fstat(fd, &held); err != nil {
		return false, err
	}
	if held.Mode&unix.S_IFMT != unix.S_IFREG {
		return false, unix.EINVAL
	}
	lk := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: 0, Len: 1}
	err = retryEINTR(func() error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &lk) })
	if err == unix.EAGAIN || err == unix.EACCES {
		return false, ErrLocked
	}
	if err != nil {
		return false, err
	}
	err = unix.Lstat(native, &named)
	if err == unix.ENOENT {
		return true, nil
	}
	return err == nil && (held.Dev != named.Dev || held.Ino != named.Ino), err
}

func (l *osLock) Size() (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fd < 0 {
		return 0, pathErr("stat", l.path, fs.ErrClosed)
	}
	var st unix.Stat_t
	err := unix.Fstat(l.fd, &st)
	return st.Size, pathErr("stat", l.path, err)
}

func (l *osLock) Clear() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fd < 0 {
		return pathErr("truncate", l.path, fs.ErrClosed)
	}
	err := retryEINTR(func() error { return unix.Ftruncate(l.fd, 0) })
	if err == nil {
		err = unix.Fsync(l.fd) // never tried again: see osFile.Sync
	}
	return pathErr("truncate", l.path, err)
}

func (l *osLock) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fd < 0 {
		return pathErr("unlock", l.path, fs.ErrClosed)
	}
	// Closing alone would not do while a child that is being started has a copy
	// of the descriptor.
	lk := unix.Flock_t{Type: unix.F_UNLCK, Whence: io.SeekStart, Start: 0, Len: 1}
	_ = retryEINTR(func() error { return unix.FcntlFlock(uintptr(l.fd), unix.F_OFD_SETLK, &lk) })
	err := unix.Close(l.fd)
	l.fd = -1
	if err == unix.EINTR {
		err = nil
	}
	return pathErr("unlock", l.path, err)
}

// NextHole returns the first position at or behind off that was never written
// (as far as the file system tells), or the file's length.
func (f *osFile) NextHole(off int64) (int64, error) {
	if err := f.hold("seek"); err != nil {
		return 0, err
	}
	defer f.release()
	at, err := unix.Seek(f.fd, off, unix.SEEK_HOLE)
	if err != nil {
		return 0, pathErr("seek", f.name, err)
	}
	return at, nil
}

// NextData returns the first position at or behind off that holds data (as far
// as the file system tells; it may be zeros), or the file's length.
func (f *osFile) NextData(off int64) (int64, error) {
	if err := f.hold("seek"); err != nil {
		return 0, err
	}
	defer f.release()
	at, err := unix.Seek(f.fd, off, unix.SEEK_DATA)
	if err == unix.ENXIO { // none up to the end
		var st unix.Stat_t
		err = unix.Fstat(f.fd, &st)
		at = st.Size
	}
	if err != nil {
		return 0, pathErr("seek", f.name, err)
	}
	return at, nil
}
