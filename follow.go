package stratalog

import (
	"context"
	"errors"

	"github.com/stratalog/stratalog/contract"
)

// Follow is Get that waits: it returns when there are records, or anything to
// tell other than that the queue ends here. It passes over what req.Tag leaves
// out. What retention, a cut of the log, or a jump to an offset beyond the end
// answer to Get they answer here. A queue that does not exist is waited for. When
// ctx ends so does the wait, with an error that matches ctx's; when the store is
// closed, with contract.ErrClosed. Next is then the offset to go on from.
func (s *Store) Follow(ctx context.Context, req Request, out *Records) error {
	for {
		seen := contract.Offset(0)
		if s.reading.Load() != nil {
			seen = s.dispatcher.Applied(contract.LaneQueue)
		}
		if err := s.Get(ctx, req, out); err != nil {
			return err
		}
		switch out.pursue(&req) {
		case pursueDone:
			return nil
		case pursueOn:
			continue
		}
		if err := s.dispatcher.WaitMoved(ctx, contract.LaneQueue, seen); err != nil {
			if errors.Is(err, contract.ErrClosed) {
				out.gaveUp()
				return contract.NewError(contract.KindClosed, contract.OpRead, contract.ComponentStore, "the store was closed while the call waited for records", nil)
			}
			return out.waited(err)
		}
	}
}

// Follow is Store.Follow: it looks every ReaderOptions.FollowEvery for what the
// owner published, as Refresh does, and for whatever reads. Damage is an error only
// if it stays when the log is looked at again: what an owner cuts or retires is, for
// a moment, no more than half gone.
func (r *Reader) Follow(ctx context.Context, req Request, out *Records) error {
	for checked := false; ; {
		was := r.seen()
		damage := r.Get(ctx, req, out)
		if damage != nil && !errors.Is(damage, contract.ErrCorrupt) && !errors.Is(damage, contract.ErrStale) {
			return damage
		}
		urgent := damage != nil
		if damage == nil {
			switch step := out.pursue(&req); {
			case step == pursueOn:
				continue
			case step == pursueDone && (checked || out.Status != contract.GetOffsetOverflowBadly):
				return nil
			case step == pursueDone:
				// Beyond the end that was seen, which need not be the end.
				checked, urgent = true, true
			}
		}
		looked, err := r.look(ctx, urgent)
		now := r.seen()
		switch {
		case ctx.Err() != nil:
			return out.waited(context.Cause(ctx))
		case damage != nil && looked && (err != nil || now.first == was.first && now.epoch == was.epoch):
			return damage
		case err != nil:
			out.gaveUp()
			return err
		case looked:
			continue
		}
		if err := r.opt.Clock.Sleep(ctx, r.ro.FollowEvery); err != nil {
			return out.waited(err)
		}
	}
}

// seen is what r sees of the log; nothing when it is closed.
func (r *Reader) seen() sight {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed.Load() {
		return sight{}
	}
	return r.sight()
}

// look is Refresh for those who follow, and tells whether it was done: not while a
// Verify runs, and not again, unless it is urgent, when somebody did it lately.
func (r *Reader) look(ctx context.Context, urgent bool) (bool, error) {
	if !r.checking.TryLock() {
		return false, nil
	}
	defer r.checking.Unlock()
	r.mu.RLock()
	lately := r.opt.Clock.Mono()-r.looked < r.ro.FollowEvery
	r.mu.RUnlock()
	if lately && !urgent {
		return false, nil
	}
	return true, r.refresh(ctx, !urgent)
}

// pursuit is what becomes of a Follow after an answer.
type pursuit uint8

const (
	pursueDone pursuit = iota // The answer is one.
	pursueOn                  // There is more to look at.
	pursueWait                // There is nothing more yet.
)

// pursue judges an answer to req, and moves req on.
func (r *Records) pursue(req *Request) pursuit {
	if req.Epoch == 0 {
		req.Epoch = r.Epoch // a cut under the wait must not go unseen
	}
	switch r.Status {
	case contract.GetNoMatchedMessage:
		if r.Next <= req.Offset {
			return pursueDone
		}
		req.Offset = r.Next
		return pursueOn
	case contract.GetNoMatchedLogicQueue:
		return pursueWait
	case contract.GetNoMessageInQueue, contract.GetOffsetOverflowOne:
		if r.Next == req.Offset {
			return pursueWait
		}
	}
	return pursueDone // with records, or the offset lies outside of the queue
}

// gaveUp makes r the answer of a Follow that ended with an error.
func (r *Records) gaveUp() {
	next := r.Next
	r.clear()
	r.Next = next
}

// waited is the end of a wait by its context.
func (r *Records) waited(err error) error {
	r.gaveUp()
	return contract.NewError(contract.KindTimeout, contract.OpRead, contract.ComponentStore, "the wait for records ended", err)
}
