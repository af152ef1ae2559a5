package commitlog

import (
	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// Walk calls f with each record of [from, end), in order, whatever the
// watermarks say. from must be where a record starts. The view is valid during
// the call. Damage ends the walk with a *contract.CorruptionError.
func (r *reader) Walk(from, end contract.Offset, f func(*codec.MessageView)) error {
	s := r.scanFrom(from, end)
	for s.Next() {
		f(s.View())
	}
	return s.Err()
}

// LastStoreTime returns the store time of the last record, in milliseconds; 0
// if there never was one.
func (l *Log) LastStoreTime() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastStoreTime
}

// Epoch returns the current epoch.
func (l *Log) Epoch() contract.Epoch { return l.side.epoch() }

// Epoch returns the current epoch, 0 without a sidecar.
func (r *ReadOnly) Epoch() contract.Epoch { return r.side.epoch() }
