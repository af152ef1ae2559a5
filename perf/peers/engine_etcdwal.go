package main

import (
	"errors"
	"io"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// etcdWALEngine is the log of etcd's server.
var etcdWALEngine = &engine{
	name:     "etcd-wal",
	module:   "go.etcd.io/etcd/server/v3",
	sync:     synced("one fdatasync for each Save that has entries; no group commit"),
	memory:   promise{process: true, text: "SetUnsafeNoFsync: one write for each Save, in the page cache"},
	syncs:    1,
	settings: "defaults (64 MB segments, preallocated)",
	checks:   "a rolling CRC32C over all of it; no read by number",
	alone:    waySingle, many: []way{wayBatch}, async: []way{wayBatch},
	open: openEtcdWAL,
}

type etcdWALStore struct {
	*wal.WAL
	dir     string
	state   raftpb.HardState
	next    uint64
	entries []*raftpb.Entry
}

func openEtcdWAL(dir string, s settings) (store, error) {
	st := &etcdWALStore{dir: dir, next: 1}
	var err error
	if wal.Exist(dir) {
		err = st.reopen()
	} else {
		st.WAL, err = wal.Create(zap.NewNop(), dir, nil)
	}
	if err != nil {
		return nil, err
	}
	if s.mode == modeMemory {
		st.SetUnsafeNoFsync()
	}
	return st, nil
}

// reopen reads everything, which the package demands before an append, and
// repairs a torn end as etcd does.
func (s *etcdWALStore) reopen() error {
	for repaired := false; ; repaired = true {
		w, err := wal.Open(zap.NewNop(), s.dir, &walpb.Snapshot{})
		if err != nil {
			return err
		}
		_, _, entries, err := w.ReadAll()
		if err == nil {
			s.WAL, s.next = w, uint64(len(entries))+1
			return nil
		}
		_ = w.Close() // of a log that could not be read
		if !errors.Is(err, io.ErrUnexpectedEOF) || repaired || !wal.Repair(zap.NewNop(), s.dir) {
			return err
		}
	}
}

func (s *etcdWALStore) AppendBatch(bodies [][]byte) error {
	for len(s.entries) < len(bodies) {
		s.entries = append(s.entries, &raftpb.Entry{Index: new(uint64), Term: new(uint64)})
	}
	for i, body := range bodies {
		*s.entries[i].Index = s.next
		s.entries[i].Data = body
		s.next++
	}
	return s.Save(&s.state, s.entries[:len(bodies)])
}

// Scan opens the log once more: an open one can be read only once.
func (s *etcdWALStore) Scan(visit func([]byte) error) error {
	w, err := wal.OpenForRead(zap.NewNop(), s.dir, &walpb.Snapshot{})
	if err != nil {
		return err
	}
	_, _, entries, err := w.ReadAll() // closes it
	for _, e := range entries {
		if err == nil {
			err = visit(e.Data)
		}
	}
	return err
}
