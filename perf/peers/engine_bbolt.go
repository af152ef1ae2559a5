package main

import (
	"path/filepath"

	"go.etcd.io/bbolt"
)

// bboltEngine is the database of etcd.
var bboltEngine = &engine{
	name:     "bbolt",
	module:   "go.etcd.io/bbolt",
	sync:     synced("two fdatasyncs for each transaction; Batch puts what many producers want into one, and waits up to 10 ms for them"),
	memory:   promise{process: true, text: "NoSync: pages written at each transaction, in the page cache; a power cut can ruin the whole file"},
	syncs:    2,
	settings: "fill 100 %, freelist as a map and not synced, as etcd has it; the key is the number in 8 bytes",
	checks:   "nothing on pages of data",
	alone:    waySingle, many: []way{wayBatch, wayNative}, async: []way{wayBatch},
	open: openBbolt,
}

type bboltStore struct{ *bbolt.DB }

var bucketName = []byte("log")

func openBbolt(dir string, s settings) (store, error) {
	db, err := bbolt.Open(filepath.Join(dir, "db"), 0o600, &bbolt.Options{
		NoSync: s.mode == modeMemory, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return nil, err
	}
	return bboltStore{db}, db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucketName)
		return err
	})
}

// put appends body in a transaction.
func put(b *bbolt.Bucket, body []byte) error {
	n, err := b.NextSequence()
	if err != nil {
		return err
	}
	return b.Put(number(int64(n)-1), body)
}

func bucket(tx *bbolt.Tx) *bbolt.Bucket {
	b := tx.Bucket(bucketName)
	b.FillPercent = 1
	return b
}

func (s bboltStore) Append(_ int, body []byte) error {
	return s.Batch(func(tx *bbolt.Tx) error { return put(bucket(tx), body) })
}

func (s bboltStore) AppendBatch(bodies [][]byte) error {
	return s.Update(func(tx *bbolt.Tx) error {
		b := bucket(tx)
		for _, body := range bodies {
			if err := put(b, body); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s bboltStore) Read(n int64, visit func([]byte)) error {
	return s.View(func(tx *bbolt.Tx) error {
		visit(tx.Bucket(bucketName).Get(number(n)))
		return nil
	})
}

func (s bboltStore) Scan(visit func([]byte) error) error {
	return s.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketName).Cursor()
		for k, body := c.First(); k != nil; k, body = c.Next() {
			if err := visit(body); err != nil {
				return err
			}
		}
		return nil
	})
}
