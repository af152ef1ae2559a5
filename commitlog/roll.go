package commitlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/mmap"
)

const (
	// The next segment is begun when 1/nextAt of the active one is used, and
	// put under its name when it is ready.
	nextAt = 8
	// firstZeroed is how much of a segment is zeroed when it is needed at
	// once, in bytes.
	firstZeroed = 16 << 20
	// retrySegment is how long to wait before trying again to make one.
	retrySegment = time.Second
)

// roll ends the active segment with its mark and goes on in the next one,
// which is there. Under mu.
func (l *Log) roll() {
	if l.active != nil {
		if rest := l.active.end() - l.tail; rest > 0 {
			b := codec.Blank{Size: int32(rest)}
			if _, err := b.Encode(l.blank[:]); err == nil {
				l.stage(l.active, l.tail, l.blank[:])
			}
		}
		l.active.file.Seal()
	}
	l.active, l.next, l.nextAsked = l.next, nil, false
	l.tail = l.active.base
	l.segs.Store(l.segs.Load().with(l.active))
	l.counts.rolls.Add(1)
	select {
	case l.rolled <- struct{}{}: // the bound is synced at rolls
	default:
	}
	l.activeChanged()
}

// nextGone lets go of the next segment, and tells so, if it does not stand under
// its name any more: a broker that is started by mistake beside us deletes, before
// it finds the lock taken, what it takes for an empty leftover. What is written
// into a file without a name is lost. Under mu, just before a roll.
func (l *Log) nextGone() bool {
	err := l.next.file.CheckName(l.opt.FS)
	if !nameGone(err) {
		return false
	}
	l.next.file.Close(nil)
	l.next = nil
	return true
}

// wantNext asks for the next segment. Under mu.
func (l *Log) wantNext() {
	l.nextAsked = true
	select {
	case l.makeNext <- struct{}{}:
	default:
	}
}

// segmentLoop makes segments ahead of need.
func (l *Log) segmentLoop(ctx context.Context) {
	timer := l.clk.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.makeNext:
		case <-timer.C():
		}
		timer.Reset(time.Hour)
		if err := l.prepareNext(ctx); err != nil && ctx.Err() == nil {
			timer.Reset(retrySegment)
		}
	}
}

// prepareNext makes the segment behind the active one, if it is wanted and not
// there, and puts it under its name. It also reserves the active segment's
// space if that could not be done before.
func (l *Log) prepareNext(ctx context.Context) error {
	if err := l.prepareSpare(ctx); err != nil {
		return err
	}
	defer l.runDone() // with no lock held
	// Held to the end: a cut in between would leave the segment at a wrong place.
	l.shapeMu.Lock()
	defer l.shapeMu.Unlock()
	l.mu.Lock()
	active, unreserved, wanted := l.active, l.unreserved, l.nextAsked && l.next == nil
	base := l.tail
	if active != nil {
		base = active.end()
	}
	l.mu.Unlock()
	if l.fenceErr() != nil {
		return nil
	}
	err := l.keepNamesOrFence(base - 2*l.size)
	if err != nil {
		return err
	}
	if unreserved {
		err = active.file.Handle().Allocate(0, l.size)
	}
	var next *segment
	if err == nil && wanted {
		next, err = l.makeSegment(ctx, base)
	}
	_ = l.dropOldGuards() // or with the next one
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nextErr = err
	if err == nil {
		l.unreserved = false
		if next != nil {
			l.next = next
		}
	}
	l.room.Broadcast()
	return err
}

// keepNamesOrFence is keepNames, and no append is taken if that fails. Under
// shapeMu; runDone must follow.
func (l *Log) keepNamesOrFence(from int64) error {
	err := l.keepNames(from)
	if err != nil {
		err = contract.NewError(contract.KindIO, contract.OpAppend, contract.ComponentSegment, "check name", err)
		l.raiseFence(err, nil)
	}
	return err
}

// enoughZeros tells the maker of a spare to stop zeroing, because the log needs
// it now. Until then it holds the maker back, so that the work is spread over
// the life of the active segment and does not take a core from the producers:
// the spare is ready when three quarters of the segment are used.
func (l *Log) enoughZeros(ctx context.Context, zeroed int64) bool {
	if zeroed < min(l.opt.firstZeroed, l.size) {
		return false
	}
	pause, before := zeroPause, int64(-1)
	timer := l.clk.NewTimer(pause)
	defer timer.Stop()
	for {
		l.mu.Lock()
		used := l.size
		if l.active != nil {
			used = l.tail - l.active.base
		}
		needed := l.waiting > 0 || used >= l.size
		l.mu.Unlock()
		if needed {
			return true
		}
		// From 1/8 to 6/8 used, zeroed goes from 0 to 8/8.
		if zeroed <= (used-l.size/nextAt)/5*8 {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-l.makeNext:
		case <-timer.C():
			// A log that stands still is asked ever more seldom.
			if pause = min(2*pause, zeroPauseMax); used != before {
				pause, before = zeroPause, used
			}
			timer.Reset(pause)
		}
	}
}

// zeroPause is how long the maker of a spare waits for the log to come on, at
// first and at most.
const (
	zeroPause    = 2 * time.Millisecond
	zeroPauseMax = time.Second
)

// prepareSpare makes a spare, if the next segment is wanted and none is ready.
// It may take as long as the log takes to come on, so it holds no lock.
func (l *Log) prepareSpare(ctx context.Context) error {
	l.mu.Lock()
	wanted := l.nextAsked && l.next == nil && !l.unreserved // what is there comes first
	l.mu.Unlock()
	if !wanted || l.fenceErr() != nil {
		return nil
	}
	spare, err := l.spares.Ready()
	if err == nil && spare == "" {
		if err = l.checkFloor(); err == nil {
			_, err = l.spares.Build(ctx, func(zeroed int64) bool { return l.enoughZeros(ctx, zeroed) })
		}
	}
	if err != nil {
		l.mu.Lock()
		l.nextErr = err
		l.room.Broadcast()
		l.mu.Unlock()
	}
	return err
}

// makeSegment makes the segment that starts at base, complete and under its
// name, both durable.
func (l *Log) makeSegment(ctx context.Context, base int64) (*segment, error) {
	var spare string
	var err error
	if !l.guarded(base) {
		spare, err = l.spares.Ready()
	}
	if err == nil && spare == "" && !l.guarded(base) {
		if err = l.checkFloor(); err == nil {
			spare, err = l.spares.Build(ctx, func(zeroed int64) bool { return zeroed >= l.opt.firstZeroed })
		}
	}
	if err != nil {
		return nil, err
	}
	to, err := l.opt.Catalog.Place(contract.Offset(base))
	if err != nil {
		return nil, err
	}
	if _, err := l.opt.FS.Stat(to); err == nil {
		return nil, contract.NewError(contract.KindIO, contract.OpAppend, contract.ComponentSegment,
			to+" exists already; another program wrote here", nil)
	}
	if err := l.giveName(spare, to, base); err != nil {
		return nil, err
	}
	err = l.syncDirs(l.spares.Dir())
	var file *mmap.File
	if err == nil {
		file, err = l.mode().open(l.opt.FS, to, l.size)
		if errors.Is(err, fs.ErrNotExist) && l.guarded(base) { // it is gone already
			if file, err = l.mode().open(l.opt.FS, l.guardPath(base), l.size); err == nil {
				file.Renamed(to)
			}
		}
	}
	if err != nil {
		// The next attempt begins anew, with names of its own to sync.
		return nil, errors.Join(err, l.takeBack(to, base))
	}
	return &segment{base: base, file: file}, nil
}

func (l *Log) mode() segmentMode {
	if l.mapped {
		return segmentsMapped
	}
	return segmentsPwrite
}

// checkFloor refuses to take the last of the disk.
func (l *Log) checkFloor() error {
	if l.opt.DiskFloor < 0 {
		return nil
	}
	free, err := l.opt.FS.Free(l.opt.Dir)
	if err != nil {
		return err
	}
	if free < l.size+l.opt.DiskFloor {
		return fmt.Errorf("%w: %d bytes free, a segment of %d above the floor of %d does not fit",
			contract.ErrDiskFull, free, l.size, l.opt.DiskFloor)
	}
	return nil
}

// returnNext takes an unused next segment out of the log's directory again: it
// was never written, so it is a ready spare. Under shapeMu, or alone.
func (l *Log) returnNext() error {
	l.mu.Lock()
	next := l.next
	l.next, l.nextAsked = nil, false
	l.mu.Unlock()
	if next == nil {
		return nil
	}
	if err := l.takeBack(next.file.Path(), next.base); errors.Is(err, fs.ErrNotExist) {
		next.file.Close(nil) // see nextGone
		return nil
	} else if err != nil {
		l.mu.Lock()
		l.next = next // it stands where it stood
		l.mu.Unlock()
		return err
	}
	next.file.Close(nil)
	return l.syncDirs(l.spares.Dir())
}

// cutDir is where recovery puts segments that it sets aside.
func (l *Log) cutDir() string { return path.Join(l.opt.Dir, SidecarDir, "cut") }

// setAside moves a segment's file out of the log, without deleting it. The
// caller syncs the names.
func (l *Log) setAside(s *segment) (string, error) {
	if err := l.opt.FS.MkdirAll(l.cutDir()); err != nil {
		return "", err
	}
	name := path.Base(s.file.Path())
	to := path.Join(l.cutDir(), name)
	for i := 1; ; i++ {
		if _, err := l.opt.FS.Stat(to); err != nil {
			break
		}
		to = path.Join(l.cutDir(), fmt.Sprintf("%s.%d", name, i))
	}
	if err := s.file.Rename(l.opt.FS, to); err != nil {
		return "", err
	}
	return to, nil
}
