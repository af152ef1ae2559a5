package load

import (
	"sync"
	"sync/atomic"
	"time"
)

// Starts remembers when each message was due, so that a follower can tell how
// long it was under way. It grows by itself: 8 bytes a message.
type Starts struct {
	epoch time.Time

	mu     sync.Mutex // to grow
	chunks atomic.Pointer[[]*chunk]
}

// chunk is a run of numbers.
type chunk [chunkSize]atomic.Int64

const chunkSize = 1 << 16

// NewStarts returns an empty table.
func NewStarts() *Starts {
	s := &Starts{epoch: time.Now()}
	s.chunks.Store(&[]*chunk{})
	return s
}

// note sets when message seq was due. It does nothing on a nil table.
func (s *Starts) note(seq int64, due time.Time) {
	if s != nil {
		s.of(seq).Store(int64(due.Sub(s.epoch)))
	}
}

// Since returns how long before now message seq was due; it must have been
// sent.
func (s *Starts) Since(seq int64, now time.Time) time.Duration {
	return now.Sub(s.epoch) - time.Duration(s.of(seq).Load())
}

// of returns the place of message seq.
func (s *Starts) of(seq int64) *atomic.Int64 {
	i := int(seq / chunkSize)
	chunks := *s.chunks.Load()
	if i >= len(chunks) {
		chunks = s.grow(i)
	}
	return &chunks[i][seq%chunkSize]
}

func (s *Starts) grow(i int) []*chunk {
	s.mu.Lock()
	defer s.mu.Unlock()
	chunks := *s.chunks.Load()
	if i < len(chunks) {
		return chunks
	}
	grown := append(make([]*chunk, 0, i+8), chunks...)
	for len(grown) <= i {
		grown = append(grown, new(chunk))
	}
	s.chunks.Store(&grown)
	return grown
}
