package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// pebbleRecordEngine is the writer of write-ahead logs below pebble.
var pebbleRecordEngine = &engine{
	name:     "pebble-record",
	module:   "github.com/cockroachdb/pebble/v2",
	sync:     synced("SyncRecord: own group commit; fdatasync"),
	memory:   promise{text: "WriteRecord: in a buffer of the process, a goroutine writes full blocks"},
	syncs:    1,
	settings: "64 MiB steps of preallocation, as CockroachDB has it; a new file at each open, those before are read to their ends",
	checks:   "CRC32C of each part of a record; no read by number",
	alone:    wayNative, many: []way{wayNative}, async: []way{wayNative},
	open: openPebbleRecord,
}

type pebbleRecordStore struct {
	w    *record.LogWriter
	dir  string
	sync bool
	file int // number of the file that is written
	n    atomic.Int64

	mu    sync.Mutex // the writer takes one caller at a time; the waits for a sync run beside
	waits []pebbleWait
}

// pebbleWait is what one producer waits with.
type pebbleWait struct {
	group sync.WaitGroup
	err   error
}

func openPebbleRecord(dir string, s settings) (store, error) {
	st := &pebbleRecordStore{dir: dir, sync: s.mode == modeSync, file: 1, waits: make([]pebbleWait, s.producers)}
	for ; ; st.file++ {
		if _, err := os.Stat(st.name(st.file)); err != nil {
			break
		}
	}
	if err := st.Scan(func([]byte) error { return nil }); err != nil {
		return nil, err
	}
	file, err := vfs.Default.Create(st.name(st.file), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	if err := syncDir(dir); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	syncing := vfs.NewSyncingFile(file, vfs.SyncingFileOptions{PreallocateSize: 64 << 20})
	st.w = record.NewLogWriter(countedFile{syncing, &st.n}, 0, record.LogWriterConfig{
		WriteWALSyncOffsets: func() bool { return false },
	})
	return st, nil
}

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (s *pebbleRecordStore) name(file int) string {
	return filepath.Join(s.dir, fmt.Sprintf("%06d.log", file))
}

func (s *pebbleRecordStore) Append(producer int, body []byte) error {
	if !s.sync {
		s.mu.Lock()
		_, err := s.w.WriteRecord(body)
		s.mu.Unlock()
		return err
	}
	wait := &s.waits[producer]
	if err := s.submit(body, wait); err != nil {
		return err
	}
	return wait.wait()
}

// submit writes body, whose sync is to be waited for.
func (s *pebbleRecordStore) submit(body []byte, w *pebbleWait) error {
	w.err = nil
	w.group.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.w.SyncRecord(body, &w.group, &w.err)
	return err
}

func (w *pebbleWait) wait() error {
	w.group.Wait()
	return w.err
}

// Slot returns an Append that does not wait.
func (s *pebbleRecordStore) Slot(_ int, done func(error)) func(body []byte) error {
	w := new(pebbleWait)
	return slot(func(body []byte) error { return s.submit(body, w) }, w.wait, done)
}

func (s *pebbleRecordStore) Scan(visit func([]byte) error) error {
	for file := 1; file <= s.file; file++ {
		if err := scanRecords(s.name(file), visit); err != nil {
			return err
		}
	}
	return nil
}

// scanRecords reads one file. What follows the last record is preallocated
// space, or the torn end of a writer that was killed.
func scanRecords(name string, visit func([]byte) error) error {
	file, err := os.Open(name)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	defer file.Close()
	records := record.NewReader(file, 0)
	var body []byte
	for {
		r, err := records.Next()
		if err == nil {
			body, err = readInto(body[:0], r)
		}
		if errors.Is(err, io.EOF) || record.IsInvalidRecord(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(body); err != nil {
			return err
		}
	}
}

// readInto appends what r has left.
func readInto(buf []byte, r io.Reader) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}

func (s *pebbleRecordStore) Syncs() int64 { return s.n.Load() }

func (s *pebbleRecordStore) Close() error { return s.w.Close() }
