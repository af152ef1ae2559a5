package vfs

import (
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// SimOptions shape a Sim. The zero value is the harshest model.
type SimOptions struct {
	// JournaledRename makes a rename between two directories one change, and
	// a sync of either directory a sync of both, as journaling file systems
	// do. Without it the old name may stay or go, and the new one come or
	// not, each by itself: the file may end with both names or with none.
	JournaledRename bool
	// NoLinks refuses Link, as some file systems do.
	NoLinks bool
	// Now gives the modification times. By default they count operations.
	Now func() time.Time
}

// Sim is a file system in memory that can lose its power.
//
// It knows what the process sees and what is on disk. Between syncs each
// 512-byte sector of a file may be on disk in any version that it had, the
// length of a file may be old or new whatever its data is, and each change of a
// name that no SyncDir covers may have happened or not. Crash builds one such
// outcome as a Sim of its own; Kill builds what the death of the process alone
// leaves behind.
//
// Where the real file system answers a mistake with a signal, a Sim panics: a
// write through a mapping into a block that was never allocated, or outside the
// mapping. Truncating below a live mapping, which would set a trap for its
// readers, is refused with EBUSY.
//
// All methods are safe for concurrent use, also of several Sims that came from
// one another.
type Sim struct {
	opt SimOptions

	// hookMu makes calls of hook one at a time. It is taken before mu, never
	// while mu is held.
	hookMu sync.Mutex
	hook   atomic.Pointer[func(Op)]
	seq    atomic.Uint64

	// mu guards everything below, and every node.
	mu       sync.Mutex
	own      *token
	nodes    map[uint64]*node
	lastID   uint64
	locks    map[uint64]*simLock
	capacity int64 // In blocks of pageSize; 0 is no limit.
	used     int64 // Blocks.
	readOnly bool
	fails    []*syncFailure
	items    []pendingItem // Scratch of Crash.
}

var _ FS = (*Sim)(nil)

const rootID = 1

// syncFailure is a rule made by FailSync.
type syncFailure struct {
	pattern string
	left    int
	err     error
	drop    bool
}

// NewSim returns an empty file system of the harshest kind.
func NewSim() *Sim { return NewSimOptions(SimOptions{}) }

// NewSimOptions returns an empty file system.
func NewSimOptions(opt SimOptions) *Sim {
	s := &Sim{opt: opt, own: new(token), lastID: rootID, locks: map[uint64]*simLock{}}
	s.nodes = map[uint64]*node{rootID: {id: rootID, dir: true, path: "/", links: 1, drefs: 1}}
	return s
}

// OnOp has f called before each operation that changes something or syncs; nil
// ends that. Calls of f come one at a time and without the lock of the Sim, so
// that f may read from it and call Crash, Kill and PendingCount; it must not
// call what would itself be told. What f sees is the state without the
// operation.
func (s *Sim) OnOp(f func(Op)) {
	s.hookMu.Lock()
	defer s.hookMu.Unlock()
	if f == nil {
		s.hook.Store(nil)
		return
	}
	s.hook.Store(&f)
}

// begin numbers an operation and tells it to the hook.
func (s *Sim) begin(op Op) uint64 {
	if s.hook.Load() == nil {
		return s.seq.Add(1)
	}
	s.hookMu.Lock()
	defer s.hookMu.Unlock()
	op.Seq = s.seq.Add(1)
	if f := s.hook.Load(); f != nil {
		(*f)(op)
	}
	return op.Seq
}

// Seq returns how many operations were told so far.
func (s *Sim) Seq() uint64 { return s.seq.Load() }

// SetCapacity limits the file system to n bytes, counted in blocks of 4 KiB;
// 0 lifts the limit. What is there stays, even if it is more.
func (s *Sim) SetCapacity(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.capacity = 0
	if n > 0 {
		s.capacity = max(1, n/pageSize)
	}
}

// Used returns the bytes in allocated blocks.
func (s *Sim) Used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used * pageSize
}

// SetReadOnly makes every change fail with EROFS, or ends that.
func (s *Sim) SetReadOnly(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readOnly = on
}

// FailSync makes the n-th sync from now (1 is the next) of a path that matches
// pattern return err, once. SyncDir counts too. With dropPages the file's
// pending sectors are taken for clean from then on, as the kernel does it: the
// process goes on to see them, later syncs succeed without writing them, and a
// crash or DropCaches brings the old ones back. A sector that is written again
// is pending again.
func (s *Sim) FailSync(pattern string, n int, err error, dropPages bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = append(s.fails, &syncFailure{pattern, max(1, n), err, dropPages})
}

// failSync returns the rule that a sync of name runs into, or nil.
func (s *Sim) failSync(name string) *syncFailure {
	var hit *syncFailure
	for _, f := range s.fails {
		if Match(f.pattern, name) {
			if f.left--; f.left == 0 && hit == nil {
				hit = f
			}
		}
	}
	s.fails = slices.DeleteFunc(s.fails, func(f *syncFailure) bool { return f.left <= 0 })
	return hit
}

// DropCaches empties the page cache: where a failed sync gave sectors up, the
// process sees the disk's content again.
func (s *Sim) DropCaches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.nodes {
		s.dropCache(n)
	}
}

func (s *Sim) now(seq uint64) time.Time {
	if s.opt.Now != nil {
		return s.opt.Now()
	}
	return time.Unix(1_600_000_000, int64(seq)*int64(time.Microsecond))
}

// change checks, under mu, that changes are allowed.
func (s *Sim) change() error {
	if s.readOnly {
		return syscall.EROFS
	}
	return nil
}
