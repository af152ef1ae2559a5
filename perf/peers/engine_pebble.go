package main

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// pebbleEngine is the database under CockroachDB.
var pebbleEngine = &engine{
	name:     "pebble",
	module:   "github.com/cockroachdb/pebble/v2",
	sync:     synced("Sync: group commit of the write-ahead log; fdatasync"),
	memory:   promise{text: "NoSync: in a buffer of the process"},
	syncs:    1,
	settings: "64 MiB memtable, no compression; the key is the number in 8 bytes",
	checks:   "a checksum of each block, when it is read from the disk",
	alone:    wayNative, many: []way{wayNative}, async: []way{wayNative},
	open: openPebble,
}

type pebbleStore struct {
	*pebble.DB
	opt   *pebble.WriteOptions
	next  atomic.Int64
	syncs atomic.Int64
	keys  [][8]byte // one for each producer
}

func openPebble(dir string, s settings) (store, error) {
	st := &pebbleStore{opt: pebble.NoSync, keys: make([][8]byte, s.producers)}
	if s.mode == modeSync {
		st.opt = pebble.Sync
	}
	opt := &pebble.Options{FS: countedFS{vfs.Default, &st.syncs}, Logger: quiet{}, MemTableSize: 64 << 20}
	opt.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	db, err := pebble.Open(dir, opt)
	if err != nil {
		return nil, err
	}
	st.DB = db
	it, err := db.NewIter(nil)
	if err != nil {
		return nil, err
	}
	if it.Last() {
		st.next.Store(int64(binary.BigEndian.Uint64(it.Key())) + 1)
	}
	return st, it.Close()
}

func (s *pebbleStore) Append(producer int, body []byte) error {
	key := s.keys[producer][:]
	binary.BigEndian.PutUint64(key, uint64(s.next.Add(1)-1))
	return s.Set(key, body, s.opt)
}

// Slot returns an Append that does not wait: ApplyNoSyncWait.
func (s *pebbleStore) Slot(_ int, done func(error)) func(body []byte) error {
	var key [8]byte
	var batch *pebble.Batch
	submit := func(body []byte) error {
		binary.BigEndian.PutUint64(key[:], uint64(s.next.Add(1)-1))
		batch = s.NewBatch()
		if err := batch.Set(key[:], body, nil); err != nil {
			return err
		}
		return s.ApplyNoSyncWait(batch, pebble.Sync)
	}
	wait := func() error {
		err := batch.SyncWait()
		return errors.Join(err, batch.Close())
	}
	return slot(submit, wait, done)
}

func (s *pebbleStore) Read(n int64, visit func([]byte)) error {
	key := binary.BigEndian.AppendUint64(s.keys[0][:0], uint64(n))
	body, closer, err := s.Get(key)
	if err != nil {
		return err
	}
	visit(body)
	return closer.Close()
}

func (s *pebbleStore) Scan(visit func([]byte) error) error {
	it, err := s.NewIter(nil)
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		if err := visit(it.Value()); err != nil {
			_ = it.Close() // after an error
			return err
		}
	}
	return it.Close()
}

func (s *pebbleStore) Syncs() int64 { return s.syncs.Load() }

// quiet is a logger that says nothing.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(string, ...any) {}

// countedFS counts the syncs of log files.
type countedFS struct {
	vfs.FS
	syncs *atomic.Int64
}

func (f countedFS) counted(name string, file vfs.File, err error) (vfs.File, error) {
	if err == nil && filepath.Ext(name) == ".log" {
		file = countedFile{file, f.syncs}
	}
	return file, err
}

func (f countedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	return f.counted(name, file, err)
}

func (f countedFS) ReuseForWrite(from, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(from, name, c)
	return f.counted(name, file, err)
}

// countedFile counts the syncs of a file.
type countedFile struct {
	vfs.File
	syncs *atomic.Int64
}

func (f countedFile) Sync() error {
	f.syncs.Add(1)
	return f.File.Sync()
}

func (f countedFile) SyncData() error {
	f.syncs.Add(1)
	return f.File.SyncData()
}
