package vfs

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Rule says which operations something happens to, and what.
//
// An operation matches if its kind, its path (the old or new one of a rename)
// and Only agree. Matching operations are counted from 0; the rule fires on
// number At, and on all after it if Sticky. When several rules fire on one
// operation, all wait and all hooks run, and the first that fails or lies
// decides.
type Rule struct {
	Kinds  Kinds         // The empty set is all of them.
	Path   string        // A pattern for Match; empty is any path.
	Only   func(Op) bool // Nil is every operation.
	At     int
	Sticky bool

	// Err makes the operation fail without being done; Close, Unmap and the
	// like are done all the same. A write through a mapping cannot fail.
	Err error
	// Short, with Err, is how many bytes of a read or write come first;
	// without Err it means nothing.
	Short int
	// Lie makes the operation report success without being done. What has a
	// result to give, such as Open or ReadAt, is done.
	Lie bool
	// Corrupt changes the bytes that a ReadAt brought, read at off.
	Corrupt func(p []byte, off int64)
	// Hook is called before the operation. It may use the file system, and
	// may take its time.
	Hook func(Op)
	// Block holds the operation up until it is closed or gives a value.
	Block <-chan struct{}
	// After has Hook and Block come between the operation and its return.
	After bool
}

// Injection is a rule in force.
type Injection struct {
	f       *Fault
	rule    Rule
	matched atomic.Int64
	fired   atomic.Int64
}

// Matched returns how many operations matched.
func (i *Injection) Matched() int { return int(i.matched.Load()) }

// Fired returns on how many operations the rule fired.
func (i *Injection) Fired() int { return int(i.fired.Load()) }

// Remove ends the rule. An operation that it blocks stays blocked.
func (i *Injection) Remove() {
	i.f.mu.Lock()
	defer i.f.mu.Unlock()
	i.f.rules = slices.DeleteFunc(slices.Clone(i.f.rules), func(r *Injection) bool { return r == i })
}

// Fault wraps an FS and makes chosen operations fail, come up short, lie or
// take long. To try every failure of an operation:
//
//	for k := 0; ; k++ {
//		fault := vfs.NewFault(vfs.NewSim())
//		rule := fault.Add(vfs.Rule{Kinds: vfs.MutatingOps | vfs.SyncOps, At: k, Err: syscall.EIO})
//		run(fault)
//		if rule.Fired() == 0 {
//			break // A clean run: every operation had its turn.
//		}
//	}
type Fault struct {
	wrapFS
	seq atomic.Uint64

	mu    sync.Mutex
	rules []*Injection // Guarded by mu; replaced, never changed.
}

var _ FS = (*Fault)(nil)

// NewFault returns inner with no rule yet.
func NewFault(inner FS) *Fault {
	f := &Fault{}
	f.wrapFS = wrapFS{inner: inner, ic: faultInterceptor{f}}
	return f
}

// Add puts a rule in force, behind those that are.
func (f *Fault) Add(r Rule) *Injection {
	i := &Injection{f: f, rule: r}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(slices.Clip(f.rules), i)
	return i
}

// Clear removes all rules.
func (f *Fault) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// Ops returns how many operations there were, of whatever kind.
func (f *Fault) Ops() int { return int(f.seq.Load()) }

func (r *Rule) matches(op Op) bool {
	if r.Kinds != 0 && !r.Kinds.Has(op.Kind) {
		return false
	}
	if !Match(r.Path, op.Path) && (op.Target == "" || !Match(r.Path, op.Target)) {
		return false
	}
	return r.Only == nil || r.Only(op)
}

// wait runs the hook and waits at the block.
func (r *Rule) wait(op Op) {
	if r.Hook != nil {
		r.Hook(op)
	}
	if r.Block != nil {
		<-r.Block
	}
}

// faultInterceptor keeps the interceptor's methods out of Fault's own.
type faultInterceptor struct{ f *Fault }

func (fi faultInterceptor) before(op Op) verdict {
	op.Seq = fi.f.seq.Add(1)
	fi.f.mu.Lock()
	rules := fi.f.rules
	fi.f.mu.Unlock()
	var v verdict
	for _, i := range rules {
		r := &i.rule
		if !r.matches(op) {
			continue
		}
		k := int(i.matched.Add(1)) - 1
		if k < r.At || k > r.At && !r.Sticky {
			continue
		}
		i.fired.Add(1)
		v.rules = append(v.rules, i)
		if !v.skip() {
			v.err, v.short, v.lie = r.Err, r.Short, r.Lie && r.Err == nil
		}
	}
	for _, i := range v.rules {
		if !i.rule.After {
			i.rule.wait(op)
		}
	}
	return v
}

func (fi faultInterceptor) after(op Op, v verdict, p []byte, _ int, _ error) {
	for _, i := range v.rules {
		if i.rule.Corrupt != nil && len(p) > 0 {
			i.rule.Corrupt(p, op.Offset)
		}
		if i.rule.After {
			i.rule.wait(op)
		}
	}
}
