// Package limit is a yardstick, not an engine: what an append log costs on this
// machine if it does nothing but what an append log must do. A table that has it
// as a column shows how far the engines in it are from that.
//
// What it does: a header of length and CRC32C before each body; the records of a
// commit staged in one buffer, written by one pwrite into blocks that were
// written before, made durable by one fdatasync; one commit at a time, which
// waits up to 40 us for as many producers as the last one woke or found waiting,
// and never for a lone one, which commits by itself.
// Reads, and appends that need not be durable, go through a mapping.
//
// What it leaves out: there is one file of a fixed size, its index is in memory,
// nothing bounds readers, there are no queues, no retention and no second
// process, and a failed commit fails the log for good.
package limit

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Errors of a log.
var (
	ErrFull   = errors.New("limit: the file is full, or the record too long")
	ErrClosed = errors.New("limit: the log is closed")
	ErrBad    = errors.New("limit: no such record, or its checksum is wrong")
)

const (
	headerSize = 8 // length and CRC32C, little endian
	gatherWait = 40 * time.Microsecond
	// maxStaged bounds the bytes of a commit, and so what a power cut can leave
	// behind the last whole record.
	maxStaged = 4 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum covers the length too, so that zeros are no record.
func checksum(body []byte) uint32 { return crc32.Update(^uint32(len(body)), castagnoli, body) }

// Options configures a log.
type Options struct {
	// NoGather makes the committer commit what it finds, at once.
	NoGather bool
}

// Log is one file of records. Append, Read and Len may be called concurrently;
// AppendNoSync by one caller, and not beside Append.
type Log struct {
	file   *os.File
	mapped []byte // the whole file
	opt    Options

	mu      sync.Mutex
	work    sync.Cond // for the committer
	room    sync.Cond // for producers
	filling *group
	at      int64   // where the next record goes
	starts  []int64 // of every record
	closed  bool
	failed  error
	// busy tells that a commit is under way; expected is how many producers
	// the next one waits for.
	busy     bool
	expected int64

	staged atomic.Int64 // filling.n, for the committer that gathers
	syncs  atomic.Int64
	done   chan struct{} // closed when the committer has ended
}

// group is the records of one commit, and what its producers wait for.
type group struct {
	buf    []byte
	n      int64
	from   int64         // where buf goes
	done   []func(error) // of the records that nobody waits for
	result sync.WaitGroup
	err    error
	left   atomic.Int64 // producers that have not seen err, and the committer
}

var groups = sync.Pool{New: func() any { return new(group) }}

// newGroup returns an empty group whose result is awaited.
func newGroup(from int64) *group {
	g := groups.Get().(*group)
	g.buf, g.done, g.n, g.from, g.err = g.buf[:0], g.done[:0], 0, from, nil
	g.result.Add(1)
	return g
}

// Append appends body and returns when an fdatasync covers it.
func (l *Log) Append(body []byte) error {
	g, err := l.stage(body, nil)
	if err != nil {
		return err
	}
	g.result.Wait()
	err = g.err
	g.release()
	return err
}

// Submit appends body, which it copies, and calls done, with what went wrong, when
// an fdatasync covers it. Done is called by the committer and must not wait for it;
// nothing is called after an error here.
func (l *Log) Submit(body []byte, done func(error)) error {
	_, err := l.stage(body, done)
	return err
}

// stage puts body into the next commit. With a done the group is not the caller's:
// without one it is until the caller releases it.
func (l *Log) stage(body []byte, done func(error)) (*group, error) {
	sum, size := checksum(body), int64(headerSize+len(body))
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.failed == nil && len(l.filling.buf)+int(size) > maxStaged && l.filling.n > 0 {
		l.room.Wait()
	}
	if err := l.refuse(size); err != nil {
		return nil, err
	}
	g := l.filling
	g.buf = binary.LittleEndian.AppendUint32(g.buf, uint32(len(body)))
	g.buf = append(binary.LittleEndian.AppendUint32(g.buf, sum), body...)
	if done != nil {
		g.done = append(g.done, done)
	}
	g.n++
	l.staged.Store(g.n)
	l.starts = append(l.starts, l.at)
	l.at += size
	switch {
	case l.busy:
	case g.n == 1 && l.expected <= 1 && done == nil:
		l.commit() // a lone producer needs nobody to do it
	default:
		l.work.Signal()
	}
	return g, nil
}

// release gives g back when nobody needs it any more.
func (g *group) release() {
	if g.left.Add(-1) == 0 {
		groups.Put(g)
	}
}

// refuse tells why a record of that size cannot be taken. Under mu.
func (l *Log) refuse(size int64) error {
	switch {
	case l.failed != nil:
		return l.failed
	case l.closed:
		return ErrClosed
	case size > maxStaged || l.at+size > int64(len(l.mapped)):
		return ErrFull
	}
	return nil
}

// AppendNoSync appends body and returns when it is in the page cache: it
// outlives the process, not the machine.
func (l *Log) AppendNoSync(body []byte) error {
	sum, size := checksum(body), int64(headerSize+len(body))
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refuse(size); err != nil {
		return err
	}
	place := l.mapped[l.at : l.at+size]
	copy(place[headerSize:], body)
	binary.LittleEndian.PutUint32(place[4:], sum)
	binary.LittleEndian.PutUint32(place, uint32(len(body)))
	l.starts = append(l.starts, l.at)
	l.at += size
	l.filling.from = l.at
	return nil
}

// run commits whatever no producer commits itself.
func (l *Log) run() {
	defer close(l.done)
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for l.busy || l.filling.n == 0 && !l.closed {
			l.work.Wait()
		}
		if l.expected > 1 && !l.opt.NoGather {
			l.busy = true
			l.mu.Unlock()
			l.gather()
			l.mu.Lock()
		}
		if l.filling.n == 0 {
			return // closed
		}
		l.commit()
	}
}

// commit makes what is staged durable and wakes its producers. Under mu, which
// it gives up meanwhile; one call at a time, as busy says.
func (l *Log) commit() {
	l.busy = true
	g, err := l.filling, l.failed
	l.filling = newGroup(l.at)
	l.staged.Store(0)
	l.room.Broadcast()
	l.mu.Unlock()
	if err == nil {
		err = l.write(g)
	}
	l.mu.Lock()
	if err != nil {
		l.failed = err
		l.room.Broadcast()
	}
	// Who is woken comes back, and who came meanwhile is there.
	l.expected = g.n + l.filling.n
	l.busy = false
	if l.filling.n > 0 || l.closed {
		l.work.Signal()
	}
	g.err = err
	g.left.Store(g.n - int64(len(g.done)) + 1)
	g.result.Done()
	if len(g.done) > 0 {
		l.mu.Unlock()
		for _, done := range g.done {
			done(err)
		}
		l.mu.Lock()
	}
	g.release()
}

// gather waits until as many producers have come as are expected. It yields to
// them all the while.
func (l *Log) gather() {
	for start := time.Now(); l.staged.Load() < l.expected && time.Since(start) < gatherWait; {
		runtime.Gosched()
	}
}

// write writes and syncs a group.
func (l *Log) write(g *group) error {
	if _, err := l.file.WriteAt(g.buf, g.from); err != nil {
		return err
	}
	l.syncs.Add(1)
	return dataSync(l.file)
}

// Len returns how many records were appended, some of them perhaps not durable
// yet.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.starts)
}

// Syncs returns how often the log was made durable since it was opened.
func (l *Log) Syncs() int64 { return l.syncs.Load() }

// Close ends the committer, which commits what it has, and closes the file.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	l.closed = true
	l.work.Signal()
	l.mu.Unlock()
	<-l.done
	return errors.Join(unmap(l.mapped), l.file.Close())
}
