package commitlog

import (
	"cmp"
	"errors"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/mmap"
)

// # Guards
//
// A Java broker that is started by mistake over an open store lists the segments,
// recovers, and deletes those behind the end that it found, before it learns that
// the lock is taken. The next segment, empty when it looked, may hold
// acknowledged records by then. So a young segment has a second name in the spare
// directory, its guard: a link, by which the first one comes back when it is
// gone, in a running log (keepNames) and at the next open after a kill
// (withGuards).
//
// (G1) A guard vouches for a name only while this log is open, or after it was
// killed with nobody working on it since. A log that is closed in order has none,
// and those that a power cut brought back there, or behind another owner, are
// dropped unread.
// (G2) A guard goes, durably, before its segment does: what was cut or retired never
// comes back.

const guardSuffix = ".guard"

// guardTime is for how long a new segment has a guard: more than a Java broker
// takes to load and recover.
const guardTime = 5 * time.Minute

// guardMost is how many segments have one, so that what guards cost does not grow
// with the log.
const guardMost = 32

// keepNamesEvery is how often all of them are looked after.
const keepNamesEvery = time.Second

// guard tells that the segment at base has one since then.
type guard struct {
	base  int64
	since time.Duration
}

// spareDir is where spares and guards are.
func (l *Log) spareDir() string { return path.Join(l.opt.Dir, SidecarDir, "spare") }

func (l *Log) guardPath(base int64) string {
	return path.Join(l.spareDir(), segmentName(contract.Offset(base))+guardSuffix)
}

// guarded reports whether the segment at base has a guard. Like everything about
// guards it is called under shapeMu, or alone.
func (l *Log) guarded(base int64) bool {
	return slices.ContainsFunc(l.guards, func(g guard) bool { return g.base == base })
}

func (l *Log) forgetGuard(base int64) {
	l.guards = slices.DeleteFunc(l.guards, func(g guard) bool { return g.base == base })
}

// giveName puts the spare under the name of the segment at base, with a guard
// where the file system has links. A guard that is there already is that of a
// segment which lost its name before it was used: it is taken, and the spare may
// be "". The caller syncs the names.
func (l *Log) giveName(spare, to string, base int64) error {
	at := l.guardPath(base)
	if !l.guarded(base) {
		if err := l.opt.FS.Rename(spare, at); err != nil {
			return err
		}
		l.guards = append(l.guards, guard{base, l.clk.Mono()})
	}
	err := l.opt.FS.Link(at, to)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) {
		if err = l.opt.FS.Rename(at, to); err == nil {
			l.forgetGuard(base)
		}
	}
	return err
}

// takeBack makes a ready spare again of the segment at base, which was never
// written and may have lost its name. The caller syncs the names.
func (l *Log) takeBack(to string, base int64) error {
	if !l.guarded(base) {
		return l.spares.Return(to)
	}
	// In this order no spare is ever a segment as well.
	if err := l.opt.FS.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := l.spares.Return(l.guardPath(base)); err != nil {
		return err
	}
	l.forgetGuard(base)
	return nil
}

// everyName has keepNames look at all segments that have a guard.
const everyName = 0

// keepNames gives segments at and above from that lost their names those back, and
// fails if one that holds records cannot have its own. It looks at those that have a
// guard, and at the last one in any case.
func (l *Log) keepNames(from int64) error {
	list := l.segs.Load()
	l.mu.Lock()
	next := l.next
	l.mu.Unlock()
	lost := false
	last := list.last()
	if last != nil {
		back, err := l.keepName(last)
		if err != nil {
			return err
		}
		lost = back
	}
	for _, g := range slices.Backward(l.guards) {
		seg := list.find(g.base)
		if seg == nil || seg == last || g.base < from {
			continue
		}
		back, err := l.keepName(seg)
		if err != nil {
			return err
		}
		lost = lost || back
	}
	if next != nil && l.guarded(next.base) {
		// If it cannot be helped, the roll sees it and takes another.
		back, _ := l.keepName(next)
		lost = lost || back
	}
	if !lost {
		return nil
	}
	return l.syncDirs()
}

// keepName reports whether the segment had lost its name and has it again.
func (l *Log) keepName(seg *segment) (bool, error) {
	err := seg.file.CheckName(l.opt.FS)
	if !errors.Is(err, fs.ErrNotExist) || !l.guarded(seg.base) {
		return false, err
	}
	if err := l.opt.FS.Link(l.guardPath(seg.base), seg.file.Path()); err != nil {
		return false, err
	}
	l.counts.restored.Add(1)
	return true, seg.file.CheckName(l.opt.FS)
}

// dropOldGuards drops the guards of segments that have them for long enough, and
// of the oldest if there are many, but those of the last two.
func (l *Log) dropOldGuards() error {
	for len(l.guards) > 2 && (len(l.guards) > guardMost || l.clk.Mono()-l.guards[0].since > guardTime) {
		if seg := l.segs.Load().find(l.guards[0].base); seg != nil {
			if back, err := l.keepName(seg); err != nil {
				return err
			} else if back {
				if err := l.syncDirs(); err != nil {
					return err
				}
			}
		}
		if err := l.dropGuard(l.guards[0].base); err != nil {
			return err
		}
	}
	return nil
}

// dropGuard drops the guard of the segment at base, if it has one.
func (l *Log) dropGuard(base int64) error {
	if !l.guarded(base) {
		return nil
	}
	if err := l.opt.FS.Remove(l.guardPath(base)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l.forgetGuard(base)
	return nil
}

// dropGuards durably drops the guards of the segments below to.
func (l *Log) dropGuards(to int64) error {
	dropped := false
	for _, g := range slices.Clone(l.guards) {
		if g.base >= to {
			continue
		}
		if err := l.dropGuard(g.base); err != nil {
			return err
		}
		dropped = true
	}
	if !dropped || l.opt.broken == brokenNoDirSync {
		return nil
	}
	return l.opt.FS.SyncDir(l.spareDir())
}

// withGuards adds to the segments that were listed those which only their guards
// show, under these names, and remembers all guards that there are. It changes no
// file.
func (l *Log) withGuards(files []SegmentFile, found sidecarFound) ([]SegmentFile, error) {
	entries, err := l.opt.FS.ReadDir(l.spareDir())
	if errors.Is(err, fs.ErrNotExist) {
		return files, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		base, err := strconv.ParseInt(strings.TrimSuffix(e.Name, guardSuffix), 10, 64)
		if !e.IsDir && err == nil && base >= 0 && path.Base(l.guardPath(base)) == e.Name {
			l.guards = append(l.guards, guard{base: base})
		}
	}
	if found.state != sideOK || l.side.state.Clean || l.opt.Stranger {
		return files, nil
	}
	size := l.side.state.SegmentSize
	if len(files) == 0 {
		base, known := l.boundGuard(found, size)
		if !known {
			return files, nil
		}
		if files, err = l.withGuard(nil, base); err != nil {
			return nil, err
		}
	}
	// Up from the first segment, and down from it: no retired one has a guard.
	for base := int64(files[0].Base); err == nil && base <= int64(files[len(files)-1].Base)+size; base += size {
		if l.guarded(base) {
			files, err = l.withGuard(files, base)
		}
	}
	for base := int64(files[0].Base) - size; err == nil && l.guarded(base); base -= size {
		files, err = l.withGuard(files, base)
	}
	return files, err
}

// boundGuard returns the segment that holds the durable bound, or ends there, if it
// has a guard.
func (l *Log) boundGuard(found sidecarFound, size int64) (int64, bool) {
	if found.bound != sideOK || size <= 0 {
		return 0, false
	}
	base := l.side.bound.Durable / size * size
	if !l.guarded(base) {
		base -= size
	}
	return base, l.guarded(base) && base+size >= l.side.bound.Durable
}

// withGuard adds the segment at base under its guard's name, if it is not listed.
func (l *Log) withGuard(files []SegmentFile, base int64) ([]SegmentFile, error) {
	i, listed := slices.BinarySearchFunc(files, base, func(f SegmentFile, base int64) int { return cmp.Compare(int64(f.Base), base) })
	if listed {
		return files, nil
	}
	info, err := l.opt.FS.Stat(l.guardPath(base))
	if err != nil {
		return nil, err
	}
	return slices.Insert(files, i, SegmentFile{Base: contract.Offset(base), Path: l.guardPath(base), Size: info.Size}), nil
}

// nameGuarded gives the segments that only their guards showed their names back,
// durably, and drops all guards.
func (l *Log) nameGuarded() error {
	for _, seg := range l.segs.Load().segs {
		if seg.file.Path() != l.guardPath(seg.base) {
			continue
		}
		to, err := l.opt.Catalog.Place(contract.Offset(seg.base))
		if err != nil {
			return err
		}
		if err := l.opt.FS.Link(l.guardPath(seg.base), to); err != nil {
			return err
		}
		seg.file.Renamed(to)
		l.report.Restored = append(l.report.Restored, to)
	}
	if len(l.report.Restored) > 0 {
		if err := l.syncDirs(); err != nil {
			return err
		}
	}
	return l.dropGuards(math.MaxInt64)
}

// nameGone reports whether err says that a file is no longer under its name.
func nameGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, mmap.ErrReplaced)
}
