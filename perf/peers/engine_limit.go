package main

import (
	"path/filepath"

	"github.com/stratalog/stratalog/perf/limit"
)

// limitEngine is the yardstick of package limit.
var limitEngine = &engine{
	name:     yardstick,
	sync:     synced("own group commit; one pwrite and one fdatasync into blocks that were written before"),
	memory:   promise{process: true, text: "in the page cache, through a mapping"},
	syncs:    1,
	settings: "one file, zero-filled at open; no engine: see package limit",
	checks:   "CRC32C of each record, on each read",
	alone:    wayNative, many: []way{wayNative}, async: []way{wayNative},
	open: func(dir string, s settings) (store, error) {
		size := s.bytes + 16<<20
		if s.size > 0 {
			size += 8 * (s.bytes / int64(s.size)) // headers
		}
		l, err := limit.Open(filepath.Join(dir, "log"), size, limit.Options{})
		return &limitStore{l, s.mode}, err
	},
}

type limitStore struct {
	*limit.Log
	mode mode
}

func (s *limitStore) Append(_ int, body []byte) error {
	if s.mode == modeMemory {
		return s.AppendNoSync(body)
	}
	return s.Log.Append(body)
}

// Slot returns an Append that does not wait.
func (s *limitStore) Slot(_ int, done func(error)) func(body []byte) error {
	return func(body []byte) error { return s.Submit(body, done) }
}

func (s *limitStore) Read(n int64, visit func([]byte)) error {
	body, err := s.Log.Read(int(n))
	if err == nil {
		visit(body)
	}
	return err
}
