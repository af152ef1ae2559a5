package main

import "github.com/tidwall/wal"

// tidwallEngine is tidwall/wal.
var tidwallEngine = &engine{
	name:     "tidwall",
	module:   "github.com/tidwall/wal",
	sync:     synced("one fsync for each Write and WriteBatch; no group commit"),
	memory:   promise{process: true, text: "NoSync: one write for each call, in the page cache"},
	syncs:    1,
	settings: "defaults (20 MB segments, 2 of them cached), NoCopy",
	checks:   "nothing: the format has no checksum",
	alone:    waySingle, many: []way{wayBatch}, async: []way{wayBatch},
	open: openTidwall,
}

type tidwallStore struct {
	*wal.Log
	next  uint64
	batch wal.Batch
}

func openTidwall(dir string, s settings) (store, error) {
	opt := *wal.DefaultOptions
	opt.NoSync, opt.NoCopy = s.mode == modeMemory, true
	l, err := wal.Open(dir, &opt)
	if err != nil {
		return nil, err
	}
	last, err := l.LastIndex()
	return &tidwallStore{Log: l, next: last + 1}, err
}

func (s *tidwallStore) AppendBatch(bodies [][]byte) error {
	s.batch.Clear()
	for _, body := range bodies {
		s.batch.Write(s.next, body)
		s.next++
	}
	return s.WriteBatch(&s.batch)
}

func (s *tidwallStore) Read(n int64, visit func([]byte)) error {
	body, err := s.Log.Read(uint64(n) + 1)
	if err == nil {
		visit(body)
	}
	return err
}

func (s *tidwallStore) Scan(visit func([]byte) error) error {
	for i := uint64(1); i < s.next; i++ {
		body, err := s.Log.Read(i)
		if err != nil {
			return err
		}
		if err := visit(body); err != nil {
			return err
		}
	}
	return nil
}
