package vfs

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

func cleanPath(name string) string { return path.Clean("/" + name) }

// walk finds the node of a clean path.
func (s *Sim) walk(name string) (*node, error) {
	n := s.nodes[rootID]
	rest := name[1:]
	for rest != "" {
		var elem string
		elem, rest, _ = strings.Cut(rest, "/")
		if !n.dir {
			return nil, syscall.ENOTDIR
		}
		id, ok := n.names.m[elem]
		if !ok {
			return nil, syscall.ENOENT
		}
		n = s.nodes[id]
	}
	return n, nil
}

// parent finds the directory of a clean path, and the last element.
func (s *Sim) parent(name string) (*node, string, error) {
	dir, base := path.Split(name)
	d, err := s.walk(path.Clean(dir))
	if err == nil && !d.dir {
		err = syscall.ENOTDIR
	}
	if err == nil && base == "" {
		err = syscall.EBUSY // The root has no name.
	}
	return d, base, err
}

// addOp notes a pending change of d.
func (s *Sim) addOp(d *node, op *nameOp) {
	d.ops = append(d.ops, op)
	s.nodes[op.id].drefs++
	d.mtime = s.now(op.seq)
}

// makeNode makes a file or directory under d.
func (s *Sim) makeNode(d *node, base, full string, dir bool, seq uint64) *node {
	s.lastID++
	n := &node{id: s.lastID, dir: dir, path: full, links: 1, mtime: s.now(seq)}
	s.nodes[n.id] = n
	d.names.set(s.own, base, n.id)
	s.addOp(d, &nameOp{kind: OpCreate, name: base, id: n.id, seq: seq, path: full})
	return n
}

// reap forgets n, and frees its blocks, once nothing can reach it.
func (s *Sim) reap(n *node) {
	if n.links > 0 || n.refs > 0 {
		return
	}
	if !n.freed {
		s.used -= n.blocks.n
		n.freed = true
	}
	if n.drefs > 0 {
		return
	}
	delete(s.nodes, n.id)
	if !n.dir {
		return
	}
	for _, id := range n.durable.m {
		s.unref(id)
	}
	for _, op := range n.ops {
		s.unref(op.id)
	}
}

func (s *Sim) unref(id uint64) {
	if n := s.nodes[id]; n != nil {
		n.drefs--
		s.reap(n)
	}
}

// Open implements FS.
func (s *Sim) Open(name string, flag Flag) (File, error) {
	f, err := s.open(cleanPath(name), name, flag)
	if err != nil {
		return nil, pathErr("open", name, err)
	}
	return f, nil
}

func (s *Sim) open(full, name string, flag Flag) (*simFile, error) {
	s.mu.Lock()
	n, err := s.walk(full)
	if err == syscall.ENOENT && flag&Create != 0 {
		s.mu.Unlock()
		seq := s.begin(Op{Kind: OpCreate, Path: full})
		s.mu.Lock()
		n, err = s.create(full, seq)
	} else if err == nil && flag&Create != 0 && flag&Exclusive != 0 {
		err = syscall.EEXIST
	}
	defer s.mu.Unlock()
	if err == nil && n.dir {
		err = syscall.EISDIR
	}
	if err == nil && flag&ReadWrite != 0 {
		err = s.change()
	}
	if err != nil {
		return nil, err
	}
	n.refs++
	n.path = full
	return &simFile{s: s, n: n, name: name, rw: flag&ReadWrite != 0}, nil
}

// create makes an empty file, unless another call was faster.
func (s *Sim) create(full string, seq uint64) (*node, error) {
	d, base, err := s.parent(full)
	if err == nil {
		err = s.change()
	}
	if err != nil {
		return nil, err
	}
	if id, ok := d.names.m[base]; ok {
		return s.nodes[id], nil
	}
	return s.makeNode(d, base, full, false, seq), nil
}

// Rename implements FS.
func (s *Sim) Rename(oldPath, newPath string) error {
	from, to := cleanPath(oldPath), cleanPath(newPath)
	seq := s.begin(Op{Kind: OpRename, Path: from, Target: to})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.rename(from, to, seq); err != nil {
		return &os.LinkError{Op: "rename", Old: oldPath, New: newPath, Err: err}
	}
	return nil
}

func (s *Sim) rename(from, to string, seq uint64) error {
	if err := s.change(); err != nil {
		return err
	}
	d1, old, err := s.parent(from)
	if err != nil {
		return err
	}
	d2, base, err := s.parent(to)
	if err != nil {
		return err
	}
	n, err := s.walk(from)
	if err != nil {
		return err
	}
	if n.dir && strings.HasPrefix(to+"/", from+"/") && to != from {
		return syscall.EINVAL
	}
	if strings.HasPrefix(from, strings.TrimSuffix(to, "/")+"/") {
		return syscall.ENOTEMPTY
	}
	var gone *node
	if id, ok := d2.names.m[base]; ok {
		if gone = s.nodes[id]; gone == n {
			return nil
		}
		switch {
		case n.dir && !gone.dir:
			return syscall.ENOTDIR
		case !n.dir && gone.dir:
			return syscall.EISDIR
		case gone.dir && len(gone.names.m) > 0:
			return syscall.ENOTEMPTY
		}
	}
	d1.names.remove(s.own, old)
	d2.names.set(s.own, base, n.id)
	n.path = to
	if d1 == d2 {
		s.addOp(d1, &nameOp{kind: OpRename, name: base, old: old, id: n.id, seq: seq, path: to})
	} else {
		out := &nameOp{kind: OpRemove, name: old, id: n.id, seq: seq, path: from}
		in := &nameOp{kind: OpCreate, name: base, id: n.id, seq: seq, path: to}
		if s.opt.JournaledRename {
			out.partner, in.partner = d2.id, d1.id
			in.follows = true
		}
		s.addOp(d1, out)
		s.addOp(d2, in)
	}
	if gone != nil {
		gone.links--
		s.reap(gone)
	}
	return nil
}

// Link implements FS.
func (s *Sim) Link(oldPath, newPath string) error {
	from, to := cleanPath(oldPath), cleanPath(newPath)
	seq := s.begin(Op{Kind: OpLink, Path: from, Target: to})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.link(from, to, seq); err != nil {
		return &os.LinkError{Op: "link", Old: oldPath, New: newPath, Err: err}
	}
	return nil
}

func (s *Sim) link(from, to string, seq uint64) error {
	n, err := s.walk(from)
	if err != nil {
		return err
	}
	d, base, err := s.parent(to)
	if err != nil {
		return err
	}
	if _, ok := d.names.m[base]; ok {
		return syscall.EEXIST
	}
	if err := s.change(); err != nil {
		return err
	}
	if s.opt.NoLinks || n.dir {
		return syscall.EPERM
	}
	d.names.set(s.own, base, n.id)
	n.links++
	s.addOp(d, &nameOp{kind: OpCreate, name: base, id: n.id, seq: seq, path: to})
	return nil
}

// Remove implements FS.
func (s *Sim) Remove(name string) error {
	full := cleanPath(name)
	seq := s.begin(Op{Kind: OpRemove, Path: full})
	s.mu.Lock()
	defer s.mu.Unlock()
	return pathErr("remove", name, s.remove(full, seq))
}

func (s *Sim) remove(full string, seq uint64) error {
	n, err := s.walk(full)
	if err == nil {
		err = s.change()
	}
	if err != nil {
		return err
	}
	d, base, err := s.parent(full)
	if err != nil {
		return err
	}
	if n.dir && len(n.names.m) > 0 {
		return syscall.ENOTEMPTY
	}
	d.names.remove(s.own, base)
	s.addOp(d, &nameOp{kind: OpRemove, name: base, id: n.id, seq: seq, path: full})
	n.links--
	s.reap(n)
	return nil
}

// MkdirAll implements FS.
func (s *Sim) MkdirAll(name string) error {
	full := cleanPath(name)
	s.mu.Lock()
	n, err := s.walk(full)
	s.mu.Unlock()
	if err == nil && n.dir {
		return nil
	}
	seq := s.begin(Op{Kind: OpMkdir, Path: full})
	s.mu.Lock()
	defer s.mu.Unlock()
	return pathErr("mkdir", name, s.mkdirAll(full, seq))
}

func (s *Sim) mkdirAll(full string, seq uint64) error {
	if full == "/" {
		return nil
	}
	n, err := s.walk(full)
	if err == nil {
		if !n.dir {
			return syscall.ENOTDIR
		}
		return nil
	}
	if err == syscall.ENOENT {
		err = s.change()
	}
	if err == nil {
		err = s.mkdirAll(path.Dir(full), seq)
	}
	if err != nil {
		return err
	}
	d, base, err := s.parent(full)
	if err == nil {
		s.makeNode(d, base, full, true, seq)
	}
	return err
}

// ReadDir implements FS.
func (s *Sim) ReadDir(name string) ([]DirEntry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.walk(cleanPath(name))
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, pathErr("readdir", name, err)
	}
	list := make([]DirEntry, 0, len(n.names.m))
	for k, id := range n.names.m {
		list = append(list, DirEntry{Name: k, IsDir: s.nodes[id].dir})
	}
	slices.SortFunc(list, func(a, b DirEntry) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Stat implements FS.
func (s *Sim) Stat(name string) (Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.walk(cleanPath(name))
	if err != nil {
		return Info{}, pathErr("stat", name, err)
	}
	return n.info(), nil
}

func (n *node) info() Info {
	return Info{Size: n.size, IsDir: n.dir, ModTime: n.mtime, ID: FileID{Device: 1, Inode: n.id}, Links: uint64(n.links)}
}

// SyncDir implements FS.
func (s *Sim) SyncDir(name string) error {
	full := cleanPath(name)
	s.begin(Op{Kind: OpSyncDir, Path: full})
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.walk(full)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err == nil {
		if f := s.failSync(full); f != nil {
			err = f.err
		}
	}
	if err != nil {
		return pathErr("syncdir", name, err)
	}
	s.persistNames(n)
	return nil
}

// persistNames applies the pending operations of d, and of the directories
// that a journaled rename ties to it.
func (s *Sim) persistNames(d *node) {
	ops := d.ops
	d.ops = nil
	ref := func(id uint64, by int) {
		if n := s.nodes[id]; n != nil {
			n.drefs += by
			s.reap(n)
		}
	}
	for _, op := range ops {
		op.apply(s.own, &d.durable, ref)
		s.unref(op.id)
	}
	for _, op := range ops {
		if p := s.nodes[op.partner]; p != nil && len(p.ops) > 0 {
			s.persistNames(p)
		}
	}
}

// Free implements FS.
func (s *Sim) Free(name string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.walk(cleanPath(name)); err != nil {
		return 0, pathErr("free", name, err)
	}
	if s.capacity == 0 {
		return 1 << 50, nil
	}
	return max(0, s.capacity-s.used) * pageSize, nil
}

// simLock is a held lock.
type simLock struct {
	s    *Sim
	f    *simFile
	name string
	done bool // Guarded by s.mu.
}

// Lock implements FS.
func (s *Sim) Lock(name string) (Lock, error) {
	f, err := s.open(cleanPath(name), name, ReadWrite|Create)
	if err != nil {
		return nil, pathErr("lock", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks[f.n.id] != nil {
		f.n.refs--
		return nil, pathErr("lock", name, ErrLocked)
	}
	l := &simLock{s: s, f: f, name: name}
	s.locks[f.n.id] = l
	return l, nil
}

func (l *simLock) Size() (int64, error) {
	info, err := l.f.Stat()
	return info.Size, err
}

func (l *simLock) Clear() error {
	if err := l.f.Truncate(0); err != nil {
		return err
	}
	return l.f.Sync()
}

func (l *simLock) Close() error {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if l.done {
		return pathErr("unlock", l.name, fs.ErrClosed)
	}
	l.done, l.f.closed = true, true
	delete(l.s.locks, l.f.n.id)
	l.f.n.refs--
	l.s.reap(l.f.n)
	return nil
}
