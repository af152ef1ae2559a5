package main

import (
	"errors"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/metadb"
)

// raftWALEngine is the log of hashicorp/raft.
var raftWALEngine = &engine{
	name:     "raft-wal",
	module:   "github.com/hashicorp/raft-wal",
	sync:     synced("one fsync for each StoreLogs; no group commit"),
	syncs:    1,
	settings: "defaults (64 MiB segments); it always syncs",
	checks:   "CRC32C of each commit, at recovery only",
	alone:    waySingle, many: []way{wayBatch}, async: []way{wayBatch},
	open: openRaftWAL,
}

type raftWALStore struct {
	*raftwal.WAL
	meta *metadb.BoltMetaDB
	next uint64
	logs []raft.Log
	refs []*raft.Log
}

func openRaftWAL(dir string, _ settings) (store, error) {
	meta := new(metadb.BoltMetaDB) // what is the default, too
	w, err := raftwal.Open(dir, raftwal.WithLogger(hclog.NewNullLogger()), raftwal.WithMetaStore(meta))
	if err != nil {
		return nil, errors.Join(err, meta.Close())
	}
	last, err := w.LastIndex()
	return &raftWALStore{WAL: w, meta: meta, next: last + 1}, err
}

// Close closes the database of metadata too: the log leaves it open, and locked.
func (s *raftWALStore) Close() error { return errors.Join(s.WAL.Close(), s.meta.Close()) }

func (s *raftWALStore) AppendBatch(bodies [][]byte) error {
	if len(s.logs) < len(bodies) {
		s.logs = make([]raft.Log, 2*len(bodies))
	}
	s.refs = s.refs[:0]
	for i, body := range bodies {
		s.logs[i].Index, s.logs[i].Data = s.next+uint64(i), body
		s.refs = append(s.refs, &s.logs[i])
	}
	s.next += uint64(len(bodies))
	return s.StoreLogs(s.refs)
}

func (s *raftWALStore) Read(n int64, visit func([]byte)) error {
	var l raft.Log
	err := s.GetLog(uint64(n)+1, &l)
	if err == nil {
		visit(l.Data)
	}
	return err
}

func (s *raftWALStore) Scan(visit func([]byte) error) error {
	var l raft.Log
	for i := uint64(1); i < s.next; i++ {
		if err := s.GetLog(i, &l); err != nil {
			return err
		}
		if err := visit(l.Data); err != nil {
			return err
		}
	}
	return nil
}
