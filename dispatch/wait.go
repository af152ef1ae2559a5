package dispatch

import (
	"context"

	"github.com/stratalog/stratalog/contract"
)

// Applied returns the end of what readers of a lane may see, 0 if there is no
// such lane.
func (d *Dispatcher) Applied(id contract.Lane) contract.Offset {
	l, err := d.find(id)
	if err != nil {
		return 0
	}
	return l.appliedNext()
}

// WaitMoved waits until Applied of a lane is another one than was: higher because
// there is more, or lower because the log was cut. An error says that it will
// not be: ctx ended, or the dispatcher is closed.
func (d *Dispatcher) WaitMoved(ctx context.Context, id contract.Lane, was contract.Offset) error {
	l, err := d.find(id)
	if err != nil {
		return err
	}
	for {
		d.mu.Lock()
		changed, closed := d.changed, d.closed
		d.waiters++
		d.mu.Unlock()
		done := l.appliedNext() != was
		switch {
		case done:
		case closed:
			err = contract.ErrClosed
		default:
			select {
			case <-changed:
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		d.mu.Lock()
		d.waiters--
		d.mu.Unlock()
		if done || err != nil {
			return err
		}
	}
}

// Waiting returns how many calls wait for a lane or the frontier.
func (d *Dispatcher) Waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waiters
}
