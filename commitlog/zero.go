package commitlog

import (
	"context"

	"github.com/stratalog/stratalog/internal/vfs"
)

// A sync of blocks that were written before costs about 0.6 of one that has to
// convert fresh extents. A spare is zeroed as a whole; but the first segment of
// a new log, or one that was needed early, is not. zeroLoop writes zeros ahead
// of the tail of such a segment, past the page cache.
//
// (Z1) Zeros are written only into a claimed range that begins at or behind
// the tail, and while the claim stands nothing is placed behind its start: the
// claim is made, and looked at, under mu. The writer's padding ends at the next
// block edge, and a claim begins at one.
type zeroing struct {
	// claim is the start of the range that zeros are being written to, -1 for
	// none. Under mu.
	claim int64
	// done is up to where the active segment was written; wake is the tail at
	// which the loop wants to go on. Under mu.
	done int64
	wake int64
	kick chan struct{}

	// ahead is how far in front of the tail the zeros stay, margin how near to
	// the tail a claim may begin, piece how much one claim covers; all in
	// bytes and multiples of vfs.DirectAlign.
	ahead, margin, piece int64
	// pieces counts what was written. Under mu.
	pieces int64
}

func newZeroing(test zeroing) zeroing {
	if test.piece != 0 {
		test.claim, test.kick = -1, make(chan struct{}, 1)
		return test
	}
	return zeroing{claim: -1, kick: make(chan struct{}, 1), ahead: 64 << 20, margin: 4 << 20, piece: 512 << 10}
}

// holeFinder is a file that knows where its written blocks end.
type holeFinder interface {
	// NextHole returns the first position at or behind off that was never
	// written, the file's length if there is none.
	NextHole(off int64) (int64, error)
}

// activeChanged notes that another segment is active, or the tail moved back.
// Under mu.
func (l *Log) activeChanged() {
	if l.active == nil {
		return
	}
	l.zero.done = l.active.end()
	if f, ok := l.active.file.Handle().(holeFinder); ok {
		if hole, err := f.NextHole(l.tail - l.active.base); err == nil {
			l.zero.done = l.active.base + hole/vfs.DirectAlign*vfs.DirectAlign
		}
	}
	l.zero.wake = l.tail
	l.wakeZero()
}

// wakeZero lets the loop look again. Under mu.
func (l *Log) wakeZero() {
	select {
	case l.zero.kick <- struct{}{}:
	default:
	}
}

// zeroLoop keeps the active segment zeroed ahead of the tail.
func (l *Log) zeroLoop(ctx context.Context) {
	z := zeroWriter{log: l, zeros: vfs.AlignedBuffer(int(l.zero.piece))}
	defer z.close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.zero.kick:
		}
		for ctx.Err() == nil && z.piece() {
		}
	}
}

// zeroWriter holds the descriptor that zeros are written through.
type zeroWriter struct {
	log   *Log
	seg   *segment
	file  vfs.File
	zeros []byte
}

// piece writes one piece, if one is wanted.
func (z *zeroWriter) piece() bool {
	l := z.log
	l.mu.Lock()
	seg, from, to := l.claimZeros()
	l.mu.Unlock()
	if seg == nil {
		return false
	}
	err := z.write(seg, from-seg.base, to-from)
	l.mu.Lock()
	l.zero.claim = -1
	l.zero.pieces++
	if l.active == seg {
		if l.zero.done = max(l.zero.done, to); err != nil {
			// It only ever made things faster.
			l.zero.done = seg.end()
		}
	}
	if l.waiting > 0 {
		l.room.Broadcast()
	}
	l.mu.Unlock()
	return err == nil
}

// claimZeros claims the next piece; nil if none is wanted now. Under mu.
func (l *Log) claimZeros() (seg *segment, from, to int64) {
	if l.active == nil || l.fence.Load() != nil || l.frozen || l.closed {
		return nil, 0, 0
	}
	from = max(l.zero.done, (l.tail+l.zero.margin+vfs.DirectAlign-1)/vfs.DirectAlign*vfs.DirectAlign)
	to = min(from+l.zero.piece, l.active.end())
	if from >= to {
		l.zero.wake = l.active.end()
		return nil, 0, 0
	}
	if from-l.tail > l.zero.ahead {
		l.zero.wake = from - l.zero.ahead + l.zero.piece
		return nil, 0, 0
	}
	l.zero.claim = from
	return l.active, from, to
}

func (z *zeroWriter) write(seg *segment, off, n int64) error {
	if z.seg != seg {
		z.close()
		flag := vfs.ReadWrite
		if !z.log.mapped {
			flag |= vfs.Direct
		}
		file, err := z.log.opt.FS.Open(seg.file.Path(), flag)
		if err != nil {
			return err
		}
		z.seg, z.file = seg, file
	}
	_, err := z.file.WriteAt(z.zeros[:n], off)
	return err
}

func (z *zeroWriter) close() {
	if z.file != nil {
		// Nothing of what was written through it is relied on.
		_ = z.file.Close()
		z.seg, z.file = nil, nil
	}
}
