package main

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// badgerEngine is Dgraph's database.
var badgerEngine = &engine{
	name:     "badger",
	module:   "github.com/dgraph-io/badger/v4",
	sync:     synced("SyncWrites: msync; concurrent updates are written together but synced one by one, a batch is one transaction"),
	memory:   promise{process: true, text: "the default: in a mapping, never synced by itself"},
	syncs:    2,
	settings: "defaults, no compression, metrics off; the key is the number in 8 bytes",
	checks:   "a checksum when the log is replayed, and of blocks",
	alone:    wayNative, many: []way{wayBatch, wayNative}, async: []way{wayBatch},
	open: openBadger,
}

type badgerStore struct {
	*badger.DB
	next atomic.Int64
}

func openBadger(dir string, s settings) (store, error) {
	opt := badger.DefaultOptions(dir).WithSyncWrites(s.mode == modeSync).WithCompression(options.None).
		WithMetricsEnabled(false).WithLogger(nil)
	db, err := badger.Open(opt)
	if err != nil {
		return nil, err
	}
	st := &badgerStore{DB: db}
	return st, db.View(func(txn *badger.Txn) error {
		opt := badger.DefaultIteratorOptions
		opt.PrefetchValues, opt.Reverse = false, true
		it := txn.NewIterator(opt)
		defer it.Close()
		if it.Rewind(); it.Valid() {
			st.next.Store(int64(binary.BigEndian.Uint64(it.Item().Key())) + 1)
		}
		return nil
	})
}

func number(n int64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 0, 8), uint64(n)) }

func (s *badgerStore) Append(_ int, body []byte) error {
	return s.Update(func(txn *badger.Txn) error { return txn.Set(number(s.next.Add(1)-1), body) })
}

func (s *badgerStore) AppendBatch(bodies [][]byte) error {
	return s.Update(func(txn *badger.Txn) error {
		for _, body := range bodies {
			if err := txn.Set(number(s.next.Add(1)-1), body); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *badgerStore) Read(n int64, visit func([]byte)) error {
	return s.View(func(txn *badger.Txn) error {
		item, err := txn.Get(number(n))
		if err != nil {
			return err
		}
		return item.Value(func(body []byte) error {
			visit(body)
			return nil
		})
	})
}

func (s *badgerStore) Scan(visit func([]byte) error) error {
	return s.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			if err := it.Item().Value(visit); err != nil {
				return err
			}
		}
		return nil
	})
}
