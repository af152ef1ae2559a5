package vfs

import (
	"io"
	"sync/atomic"
)

// Trace wraps an FS and counts what goes through it.
type Trace struct {
	wrapFS
	seq      atomic.Uint64
	counts   [opKinds]atomic.Int64
	failed   atomic.Int64
	written  atomic.Int64
	read     atomic.Int64
	callback atomic.Pointer[func(Op, int, error)]
}

var _ FS = (*Trace)(nil)

// NewTrace returns inner with all counters at zero.
func NewTrace(inner FS) *Trace {
	t := &Trace{}
	t.wrapFS = wrapFS{inner: inner, ic: traceInterceptor{t}}
	return t
}

// WithHoles lets files tell where their written blocks end, if those below can,
// and returns t. The log zeroes blocks ahead of its tail in the background only
// if it can ask for that: so traced it works as it does untraced, and its writes
// cannot be foretold one by one any more. It must be called before any Open.
func (t *Trace) WithHoles() *Trace {
	t.holes = true
	return t
}

// OnOp has f called after each operation with the bytes that a read or write
// moved and the outcome; nil ends that. Calls may come at the same time.
func (t *Trace) OnOp(f func(op Op, n int, err error)) {
	if f == nil {
		t.callback.Store(nil)
		return
	}
	t.callback.Store(&f)
}

// Count returns how many operations of the given kinds were done, failed ones
// too; of all kinds if none is given.
func (t *Trace) Count(kinds ...OpKind) int64 {
	set := KindsOf(kinds...)
	if len(kinds) == 0 {
		set = AllOps
	}
	sum := int64(0)
	for k := range t.counts {
		if set.Has(OpKind(k)) {
			sum += t.counts[k].Load()
		}
	}
	return sum
}

// Syncs returns how many Sync and Datasync there were.
func (t *Trace) Syncs() int64 { return t.Count(OpSync, OpDatasync) }

// DirSyncs returns how many SyncDir there were.
func (t *Trace) DirSyncs() int64 { return t.Count(OpSyncDir) }

// Writes returns how many WriteAt of files and mappings there were.
func (t *Trace) Writes() int64 { return t.Count(OpWrite, OpMapWrite) }

// BytesWritten returns how many bytes they wrote.
func (t *Trace) BytesWritten() int64 { return t.written.Load() }

// BytesRead returns how many bytes ReadAt brought.
func (t *Trace) BytesRead() int64 { return t.read.Load() }

// Failed returns how many operations failed; reaching the end of a file is not
// counted.
func (t *Trace) Failed() int64 { return t.failed.Load() }

// Reset sets all counters to zero.
func (t *Trace) Reset() {
	for k := range t.counts {
		t.counts[k].Store(0)
	}
	t.failed.Store(0)
	t.written.Store(0)
	t.read.Store(0)
}

// traceInterceptor keeps the interceptor's methods out of Trace's own.
type traceInterceptor struct{ t *Trace }

func (ti traceInterceptor) before(Op) verdict { return verdict{} }

func (ti traceInterceptor) after(op Op, _ verdict, _ []byte, n int, err error) {
	t := ti.t
	op.Seq = t.seq.Add(1)
	t.counts[op.Kind].Add(1)
	if err != nil && err != io.EOF {
		t.failed.Add(1)
	}
	switch op.Kind {
	case OpWrite, OpMapWrite:
		t.written.Add(int64(n))
	case OpRead:
		t.read.Add(int64(n))
	}
	if f := t.callback.Load(); f != nil {
		(*f)(op, n, err)
	}
}
