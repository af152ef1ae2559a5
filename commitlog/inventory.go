package commitlog

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
	"github.com/stratalog/stratalog/mmap"
)

var errSegmentsGone = errors.New("segments below the durable bound are missing")

// inventory finds the segments and the sidecar. It changes nothing. An empty
// last segment file, which a power cut may leave and Java removes too, is noted
// for prepareFiles to remove.
func (l *Log) inventory() ([]SegmentFile, sidecarFound, error) {
	var found sidecarFound
	if err := l.checkRoot(); err != nil {
		return nil, found, err
	}
	files, err := l.opt.Catalog.List()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, found, openError(contract.ComponentLog, err)
	}
	var empty *SegmentFile
	if n := len(files); n > 0 && files[n-1].Size == 0 {
		empty, files = &files[n-1], files[:n-1]
	}
	l.side, found, err = loadSidecar(l.opt.FS, l.opt.Dir, vfs.ReadWrite)
	if err != nil {
		return nil, found, openError(contract.ComponentSidecar, err)
	}
	if files, err = l.withGuards(files, found); err != nil {
		return nil, found, openError(contract.ComponentSegment, err)
	}
	want := l.opt.SegmentSize
	if want == 0 && found.state == sideOK {
		want = l.side.state.SegmentSize
	}
	if l.size, err = checkFiles(files, want); err != nil {
		return nil, found, err
	}
	if int64(l.opt.MaxUnsynced) < 0 {
		return nil, found, invalidOption("MaxUnsynced %d is negative", l.opt.MaxUnsynced)
	}
	list, err := openSegments(l.opt.FS, files, l.size, l.mode())
	if err != nil {
		return nil, found, openError(contract.ComponentSegment, err)
	}
	l.segs.Store(list)
	if empty != nil {
		l.empty = empty.Path
	}
	return files, found, nil
}

// checkRoot makes sure that the store root is a directory, made if missing.
func (l *Log) checkRoot() error {
	info, err := l.opt.FS.Stat(l.opt.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = mkdirDurable(l.opt.FS, l.opt.Dir)
	case err == nil && !info.IsDir:
		return invalidOption("%s is not a directory", l.opt.Dir)
	}
	if err != nil {
		return openError(contract.ComponentLog, err)
	}
	return nil
}

// openError is typed for OpOpen.
func openError(component contract.Component, err error) error {
	return typed(contract.OpOpen, component, err)
}

// typed wraps what the system said; typed errors, and nil, pass.
func typed(op contract.Operation, component contract.Component, err error) error {
	if err == nil {
		return nil
	}
	var c *contract.CorruptionError
	var e *contract.Error
	var length *mmap.LengthError
	switch {
	case errors.As(err, &c), errors.As(err, &e):
		return err
	case errors.As(err, &length):
		return &contract.CorruptionError{File: length.Path, Offset: min(length.Got, length.Want), Cause: length}
	}
	wrapped := contract.NewError(contract.KindIO, op, component, "", err)
	if isDiskFull(err) {
		wrapped.Kind, wrapped.Sentinel = contract.KindCapacity, contract.ErrDiskFull
	}
	return wrapped
}

// prepareFiles makes the directories and the sidecar files that are missing.
func (l *Log) prepareFiles(facts startFacts) error {
	if err := l.opt.Catalog.Prepare(); err != nil {
		return err
	}
	found := sidecarFound{state: facts.state, bound: facts.bound}
	list := l.segs.Load()
	if err := l.side.create(found, l.size, list.min(), l.clk.Now().UnixMilli()); err != nil {
		return err
	}
	if l.empty != "" {
		if err := l.opt.FS.Remove(l.empty); err != nil {
			return err
		}
	}
	var used []vfs.FileID
	for _, seg := range list.segs {
		info, err := seg.file.Handle().Stat()
		if err != nil {
			return err
		}
		used = append(used, info.ID)
	}
	var err error
	l.spares, err = mmap.NewSpares(l.opt.FS, l.spareDir(), l.size, l.mapped, used...)
	if err != nil {
		return err
	}
	// The last owner may have died between a change of a name and its sync.
	if err := l.syncNames(); err != nil {
		return err
	}
	if err := l.nameGuarded(); err != nil {
		return err
	}
	return syncParent(l.opt.FS, l.opt.Dir)
}

// syncNames makes all names below the root durable, those that segments are
// moved to before those in the log: a power cut in between leaves two names,
// not none.
func (l *Log) syncNames() error {
	dirs := []string{l.opt.Dir, path.Join(l.opt.Dir, SidecarDir), l.spares.Dir()}
	if _, err := l.opt.FS.Stat(l.cutDir()); err == nil {
		dirs = append(dirs, l.cutDir())
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, dir := range l.opt.Catalog.Dirs() {
		if dir = path.Dir(dir); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	if l.opt.broken == brokenNoDirSync {
		return nil
	}
	for _, dir := range dirs {
		if err := l.opt.FS.SyncDir(dir); err != nil {
			return err
		}
	}
	return l.syncDirs()
}

// mkdirDurable makes dir and its parents, from the top, each durable before the
// next. So where the last one exists, those above it are durable.
func mkdirDurable(fsys vfs.FS, dir string) error {
	dir = path.Clean(dir)
	var missing []string
	for d := dir; d != path.Dir(d); d = path.Dir(d) {
		_, err := fsys.Stat(d)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		missing = append(missing, d)
		if err == nil {
			break // that it is there does not say that an earlier try synced its name
		}
	}
	for _, d := range slices.Backward(missing) {
		if err := fsys.MkdirAll(d); err != nil {
			return err
		}
		if err := syncParent(fsys, d); err != nil {
			return err
		}
	}
	return nil
}

// syncParent makes the name of dir durable. Who may not read the directory
// above did not make dir either.
func syncParent(fsys vfs.FS, dir string) error {
	if err := fsys.SyncDir(path.Dir(path.Clean(dir))); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}
