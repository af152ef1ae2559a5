package main

import (
	"errors"
	"io"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/tsdb/wlog"
	"github.com/prometheus/prometheus/util/compression"
)

// promWALEngine is the log of Prometheus' time series database.
var promWALEngine = &engine{
	name:     "prom-wlog",
	module:   "github.com/prometheus/prometheus",
	sync:     synced("Log, then Sync: one fsync for each batch; no group commit"),
	memory:   promise{process: true, text: "Log alone: one write for each call, in the page cache"},
	syncs:    1,
	settings: "128 MiB segments, no compression; rolled with a sync before one is full, since Log alone syncs it in the background",
	checks:   "CRC32C of each part of a record; no read by number",
	alone:    waySingle, many: []way{wayBatch}, async: []way{wayBatch},
	open: openPromWAL,
}

const (
	promSegment = 128 << 20
	// promRoll is how full a segment may get.
	promRoll = promSegment - 16<<20
)

type promWALStore struct {
	*wlog.WL
	dir    string
	sync   bool
	filled int64
}

// openPromWAL makes a new segment behind those that exist. These are read first
// and repaired, as Prometheus does: what is behind damage would be dropped
// later.
func openPromWAL(dir string, s settings) (store, error) {
	damage := promScan(dir, func([]byte) error { return nil })
	w, err := wlog.NewSize(slog.New(slog.DiscardHandler), prometheus.NewRegistry(), dir, promSegment, compression.None)
	if err != nil {
		return nil, err
	}
	if damage != nil {
		if err := w.Repair(damage); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return &promWALStore{WL: w, dir: dir, sync: s.mode == modeSync}, nil
}

func (s *promWALStore) AppendBatch(bodies [][]byte) error {
	if s.filled > promRoll {
		if _, err := s.NextSegmentSync(); err != nil {
			return err
		}
		s.filled = 0
	}
	for _, body := range bodies {
		s.filled += int64(len(body)) + 16
	}
	if err := s.Log(bodies...); err != nil || !s.sync {
		return err
	}
	return s.Sync()
}

func (s *promWALStore) Scan(visit func([]byte) error) error { return promScan(s.dir, visit) }

// promScan reads all segments of dir.
func promScan(dir string, visit func([]byte) error) error {
	segments, err := wlog.NewSegmentsReader(dir)
	if err != nil {
		return err
	}
	err = promRead(segments, visit)
	return errors.Join(err, segments.Close())
}

func promRead(segments io.Reader, visit func([]byte) error) error {
	r := wlog.NewReader(segments)
	for r.Next() {
		if err := visit(r.Record()); err != nil {
			return err
		}
	}
	return r.Err()
}
