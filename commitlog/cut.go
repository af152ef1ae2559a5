package commitlog

import (
	"context"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/mmap"
)

// noteWritten makes durable, before anything is cut at end, up to where bytes may
// stand on the disk, and returns it. If the cut's own sync fails, the page cache
// shows zeros where the disk does not: the next recovery then zeroes as far
// again.
func (l *Log) noteWritten(end, window int64, rest remains) (int64, error) {
	written := max(l.side.bound.Appended, end)
	for base, r := range rest {
		written = max(written, base+r.end)
	}
	if written == l.side.bound.Appended {
		return written, nil
	}
	if err := l.side.putBound(l.side.bound.Durable, written, window); err != nil {
		return written, err
	}
	return written, l.side.syncBound()
}

// cutTail makes everything from end on zero and durable: first the segments
// behind the one that holds end, from the back, so that a crash on the way
// leaves no gap, then the rest of that one. A segment of zeros becomes a spare;
// one with bytes is set aside. written is how far bytes may have been written:
// up to there zeros are written even over zeros, as those may be in memory only.
// rest is what is not zero there now.
func (l *Log) cutTail(ctx context.Context, end, written int64, rest remains) error {
	list := l.segs.Load()
	n := len(list.segs)
	for ; n > 0 && list.segs[n-1].base > end; n-- {
		seg := list.segs[n-1]
		if r := rest.of(seg); r.end > 0 {
			l.noteCut(end, seg.base+r.end)
			to, err := l.setAside(seg)
			if err != nil {
				return err
			}
			l.report.SetAside = append([]string{to}, l.report.SetAside...)
			l.dropLast()
		} else {
			if seg.base < written {
				// Zero in memory; what the disk holds is not known.
				if err := mmap.Zero(ctx, seg.file.Handle(), 0, l.size); err != nil {
					return err
				}
			}
			if err := l.spares.Return(seg.file.Path()); err != nil {
				return err
			}
			l.dropLast()
		}
		if err := l.syncNames(); err != nil {
			return err
		}
	}
	if n == 0 || list.segs[n-1].end() <= end {
		return nil
	}
	seg := list.segs[n-1]
	from, to := end-seg.base, min(written, seg.end())-seg.base
	if r := rest.of(seg); r.end > 0 {
		l.noteCut(end, seg.base+r.end)
		to = max(to, r.end)
	}
	return mmap.Zero(ctx, seg.file.Handle(), from, to-from)
}

// noteCut puts [from, to) into the report, joined to what is there.
func (l *Log) noteCut(from, to int64) {
	l.report.Cut = contract.Range{Start: contract.Offset(from), End: max(l.report.Cut.End, contract.Offset(to))}
}

// rewriteTail writes the bytes of [from, end) once more, from memory, and
// syncs them. Without it a tail that a failed sync left in the page cache only
// would look durable: the kernel marks such pages clean. Where the bound was
// not known, what lies further back than the window was synced long ago by
// whoever wrote it, or is as durable as we can make it by a plain sync.
func (l *Log) rewriteTail(from, rewrite, end int64) error {
	list := l.segs.Load()
	for _, seg := range list.overlapping(from, end+1) {
		handle := seg.file.Handle()
		for off := max(rewrite, seg.base); off < min(end, seg.end()); {
			n := min(rewritePiece, min(end, seg.end())-off)
			b := append([]byte(nil), seg.file.Bytes()[off-seg.base:off-seg.base+n]...)
			if _, err := handle.WriteAt(b, off-seg.base); err != nil {
				return err
			}
			off += n
		}
		if err := handle.Datasync(); err != nil {
			return err
		}
	}
	return nil
}

const rewritePiece = 1 << 20
