package commitlog

import "sync"

// checkedRange is the stretch of the log that lanes found whole lately. Several
// lanes read the same records, each for itself, one soon after the other; a
// checksum over every byte is dear and need not be computed for each of them.
//
// It ends where the lane that is ahead has come to, and is at most hotBytes
// long: what lies further back may have left the memory since, and is checked as
// it comes from the disk. A cut of the log ends it.
type checkedRange struct {
	// front is held while somebody checks what lies behind the range: who comes
	// for the same bytes meanwhile waits, which takes no longer than to check
	// them.
	front sync.Mutex

	mu       sync.Mutex
	from, to int64
	cuts     int64 // of the log, when the range was begun
}

// begin returns the place up to which the bytes from at on are known to be whole
// records: at if nothing is known. With front, finish must be told so.
func (c *checkedRange) begin(at, cuts int64) (known int64, front bool) {
	known, inside := c.upTo(at, cuts)
	if !inside || known > at {
		return known, false
	}
	c.front.Lock()
	known, _ = c.upTo(at, cuts)
	return known, true
}

func (c *checkedRange) finish(front bool) {
	if front {
		c.front.Unlock()
	}
}

// upTo tells whether at lies in the range or at its end, and where that is.
func (c *checkedRange) upTo(at, cuts int64) (int64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cuts != cuts || at < c.from || at > c.to {
		return at, false
	}
	return c.to, true
}

// add notes that [from, to), read since the log had been cut so often, are whole
// records.
func (c *checkedRange) add(from, to, cuts int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case cuts < c.cuts || cuts == c.cuts && to <= c.to:
		return // A reader that is behind.
	case cuts > c.cuts || from > c.to || from < c.from:
		c.from = from
	}
	c.to, c.cuts = to, cuts
	c.from = max(c.from, to-hotBytes)
}

// reach returns the confirmed watermark, and how often the log had been cut when
// that was true.
func (r *reader) reach() (confirmed, cuts int64) {
	r.publishMu.Lock()
	defer r.publishMu.Unlock()
	return r.confirmed.Load(), r.cuts.Load()
}
