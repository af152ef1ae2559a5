package dispatch

import (
	"context"
	"errors"

	"github.com/stratalog/stratalog/contract"
)

// LaneClose says how a lane ended.
type LaneClose struct {
	Lane     contract.Lane
	Required bool
	// Cursor is where the lane's effects end; Saved tells whether that very
	// cursor was saved. If not, the next open repeats what lies between.
	Cursor contract.Cursor
	Saved  bool
	// BehindBytes is how much of what the log confirmed is not applied.
	BehindBytes int64
	Err         error
}

// CloseReport says how the lanes ended, in the order of Add.
type CloseReport struct {
	Lanes []LaneClose
}

// Behind returns the lanes that are not where they should be: not all applied,
// or not saved.
func (r CloseReport) Behind() []LaneClose {
	var out []LaneClose
	for _, l := range r.Lanes {
		if l.BehindBytes > 0 || !l.Saved || l.Err != nil {
			out = append(out, l)
		}
	}
	return out
}

// Close stops the lanes, applies what the log had confirmed when it was called,
// flushes, and saves the cursors, within ctx. It runs every step of every lane
// even if one fails. The error joins those of the required lanes. A second
// Close returns an empty report.
func (d *Dispatcher) Close(ctx context.Context) (CloseReport, error) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return CloseReport{}, nil
	}
	d.closed = true
	close(d.stop)
	if d.kick != nil {
		d.kick()
	}
	lanes, watchEnd := d.lanes, d.watchEnd
	d.mu.Unlock()

	target := d.log.Confirmed()
	var report CloseReport
	var errs []error
	for _, l := range lanes {
		end := l.close(ctx, target)
		report.Lanes = append(report.Lanes, end)
		if l.opts.Required && end.Err != nil {
			errs = append(errs, end.Err)
		}
	}
	if watchEnd != nil {
		select {
		case <-watchEnd:
		case <-ctx.Done():
			errs = append(errs, context.Cause(ctx))
		}
	}
	d.mu.Lock()
	close(d.changed)
	d.changed = make(chan struct{})
	d.mu.Unlock()
	return report, errors.Join(errs...)
}

// close ends one lane. If its goroutine does not end by the deadline, its sink
// is left alone.
func (l *lane) close(ctx context.Context, target contract.Offset) LaneClose {
	end := LaneClose{Lane: l.id, Required: l.opts.Required}
	if l.ended != nil {
		select {
		case <-l.ended:
		case <-ctx.Done():
			s := l.report()
			end.Cursor = s.Applied
			end.BehindBytes = max(int64(target-s.Applied.Next), 0)
			end.Err = l.fail(s.Applied.Next, errors.Join(ErrStuck, context.Cause(ctx)))
			return end
		}
	}
	l.turn.Lock()
	defer l.turn.Unlock()
	paused := l.paused.Load()
	if !paused {
		end.Err = l.drain(ctx, target, false, nil)
	}
	if err := l.persist(); err != nil {
		end.Err = errors.Join(end.Err, err)
	}
	l.setState(LaneClosed)
	end.Cursor = l.work
	end.Saved = !l.unsaved()
	end.BehindBytes = max(int64(min(target, l.d.log.Confirmed())-l.work.Next), 0)
	if end.BehindBytes > 0 && end.Err == nil {
		cause := ErrBehind
		if paused {
			cause = errors.Join(ErrBehind, ErrPaused)
		}
		end.Err = l.fail(l.work.Next, cause)
	}
	return end
}
