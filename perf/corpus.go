package perf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/perf/load"
)

// CorpusConfig describes a run over the files of a directory.
type CorpusConfig struct {
	// Source is the directory; each regular file below it is a message.
	Source string
	// Dir is the store, made if it is not there.
	Dir         string
	SegmentSize int64
	Durability  stratalog.Durability
	DiskFloor   int64
	// Opened, if not nil, is called with what opening the store found and did.
	Opened func(stratalog.LoadReport)
}

// CorpusResult is what a run over files did and how fast.
type CorpusResult struct {
	Source string `json:"source"`
	// Dir is the store; empty if it is gone by now.
	Dir    string `json:"dir,omitempty"`
	Topics int    `json:"topics"`
	// Files and Bytes are what was appended, Empty of it the empty files;
	// TooLarge and Others what was left out.
	Files    int64 `json:"records"`
	Bytes    int64 `json:"bytes"`
	Empty    int64 `json:"empty"`
	TooLarge int64 `json:"too_large"`
	Others   int64 `json:"not_regular"`

	Durability      string  `json:"durability"`
	Seconds         float64 `json:"seconds"`
	RecordsPerSec   float64 `json:"records_per_s"`
	MBPerSec        float64 `json:"mb_per_s"`
	Syncs           int64   `json:"syncs"`
	Commits         int64   `json:"commits"`
	Writes          int64   `json:"writes"`
	Rolls           int64   `json:"rolls"`
	AllocsPerRecord float64 `json:"allocs_per_record"`

	ReadSeconds         float64 `json:"read_seconds"`
	ReadRecordsPerSec   float64 `json:"read_records_per_s"`
	ReadMBPerSec        float64 `json:"read_mb_per_s"`
	ReadAllocsPerRecord float64 `json:"read_allocs_per_record"`

	// Verified counts the messages that are byte for byte their file.
	Verified   int64  `json:"verified"`
	Missing    int64  `json:"missing"`
	Wrong      int64  `json:"wrong"`
	FirstWrong string `json:"first_wrong,omitempty"`
}

// Err returns a *load.WrongError if any file was missing or differed.
func (r *CorpusResult) Err() error {
	if r.Missing == 0 && r.Wrong == 0 {
		return nil
	}
	return &load.WrongError{Missing: r.Missing, Wrong: r.Wrong, First: r.FirstWrong}
}

// Table writes the result for people.
func (r *CorpusResult) Table(w io.Writer) error {
	mb, dir := float64(r.Bytes)/1e6, r.Dir
	if dir == "" {
		dir = "a temporary directory, removed again"
	}
	return writeTable(w, []row{
		{"source", r.Source}, {"store", dir},
		{"files", fmt.Sprintf("%d in %d topics, %.1f MB (%d empty; left out: %d too large, %d not regular)",
			r.Files, r.Topics, mb, r.Empty, r.TooLarge, r.Others)},
		{"appended", fmt.Sprintf("%d records, %.1f MB in %.3f s, durability %s: %.0f records/s, %.1f MB/s",
			r.Files, mb, r.Seconds, r.Durability, r.RecordsPerSec, r.MBPerSec)},
		{"log", fmt.Sprintf("%d syncs, %d commits, %d writes, %d rolls", r.Syncs, r.Commits, r.Writes, r.Rolls)},
		{"allocations", fmt.Sprintf("%.1f per record, reading its file included", r.AllocsPerRecord)},
		{"read back", fmt.Sprintf("%.3f s, checksums verified: %.0f records/s, %.1f MB/s, %.3f allocations per record",
			r.ReadSeconds, r.ReadRecordsPerSec, r.ReadMBPerSec, r.ReadAllocsPerRecord)},
		{"compared", fmt.Sprintf("%d equal to their file, %d missing, %d wrong", r.Verified, r.Missing, r.Wrong)},
	})
}

// RunCorpus appends every file below cfg.Source as a message, with many on
// their way at a time, reads all back through their queues, and compares each
// with its file.
func RunCorpus(ctx context.Context, cfg CorpusConfig, progress load.Progress) (res *CorpusResult, err error) {
	all, others, err := Files(cfg.Source)
	if err != nil {
		return nil, err
	}
	res = &CorpusResult{Source: cfg.Source, Dir: cfg.Dir, Others: int64(others), Durability: cfg.Durability.String()}
	// A record must fit a segment, with room for its fields.
	limit := int64(256 << 20)
	if cfg.SegmentSize > 0 {
		limit = min(limit, cfg.SegmentSize-(64<<10))
	}
	run := &corpusRun{cfg: cfg, progress: progress, res: res, ends: map[string]int64{}}
	largest := int64(0)
	for _, f := range all {
		if f.Size > limit {
			res.TooLarge++
			continue
		}
		largest = max(largest, f.Size)
		run.files = append(run.files, f)
	}
	run.store, err = openStarted(ctx, stratalog.Options{Dir: cfg.Dir, SegmentSize: cfg.SegmentSize, Durability: cfg.Durability,
		MaxMessageSize: int(max(largest, 4<<20)), AdmissionWait: admissionWait, SyncTimeout: admissionWait,
		DiskFloor: cfg.DiskFloor}, cfg.Opened)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeStore(run.store)) }()
	if err := run.append(ctx); err != nil {
		return nil, err
	}
	if err := run.readAll(ctx); err != nil {
		return nil, err
	}
	return res, run.compareAll(ctx)
}

// corpusRun is one run over an open store.
type corpusRun struct {
	cfg      CorpusConfig
	store    *stratalog.Store
	files    []File
	progress load.Progress
	res      *CorpusResult
	// ends are the ends of the topics' queues before the run.
	ends map[string]int64
}

// append appends the files and waits until all can be read.
func (r *corpusRun) append(ctx context.Context) error {
	for _, f := range r.files {
		if _, ok := r.ends[f.Topic]; !ok {
			_, r.ends[f.Topic] = r.store.QueueRange(f.Topic, 0)
		}
	}
	r.res.Topics = len(r.ends)
	before, objects, start := r.store.Health(), mallocs(), time.Now()
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		bad error
		end stratalog.Offset
	)
	done := func(receipt stratalog.Receipt, err error) {
		defer wg.Done()
		mu.Lock()
		defer mu.Unlock()
		if err != nil && bad == nil {
			bad = err
		}
		place, _ := receipt.Range()
		end = max(end, place.End)
	}
	failed := func() error {
		mu.Lock()
		defer mu.Unlock()
		return bad
	}
	var m stratalog.Message
	var err error
	for i, f := range r.files {
		if err = errors.Join(ctx.Err(), failed()); err != nil {
			break
		}
		if err = f.Message(r.cfg.Source, &m); err != nil {
			break
		}
		wg.Add(1)
		if err = r.store.Submit(ctx, &m, r.cfg.Durability, done); err != nil {
			wg.Done()
			err = fmt.Errorf("%s: %w", f.Path, err)
			break
		}
		r.res.Files++
		r.res.Bytes += int64(len(m.Body))
		if len(m.Body) == 0 {
			r.res.Empty++
		}
		if i%64 == 0 {
			r.progress.Tell("append", int64(i), int64(len(r.files)))
		}
	}
	wg.Wait()
	if err == nil {
		err = failed()
	}
	if err != nil {
		return err
	}
	took := time.Since(start)
	allocated, after, res := mallocs()-objects, r.store.Health(), r.res
	res.Seconds, res.RecordsPerSec, res.MBPerSec = took.Seconds(), load.Rate(float64(res.Files), took), load.Rate(float64(res.Bytes)/1e6, took)
	res.Syncs, res.Commits = after.Stats.Syncs-before.Stats.Syncs, after.Stats.Commits-before.Stats.Commits
	res.Writes, res.Rolls = after.Stats.Writes-before.Stats.Writes, after.Stats.Rolls-before.Stats.Rolls
	res.AllocsPerRecord = load.Per(float64(allocated), res.Files)
	r.progress.Tell("append", int64(len(r.files)), int64(len(r.files)))
	if end == 0 {
		return nil
	}
	return r.store.WaitVisible(ctx, end-1)
}

// each calls f for every record of the run, topic by topic.
func (r *corpusRun) each(ctx context.Context, f func(topic string, rec *stratalog.Record)) error {
	var out stratalog.Records
	for _, topic := range r.store.Topics() {
		from, ok := r.ends[topic]
		if !ok {
			continue
		}
		err := readQueue(ctx, r.store, topic, 0, from, &out, func(rec *stratalog.Record) error {
			f(topic, rec)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readAll reads everything once, for the rate.
func (r *corpusRun) readAll(ctx context.Context) error {
	var records, size int64
	objects, start := mallocs(), time.Now()
	err := r.each(ctx, func(_ string, rec *stratalog.Record) {
		records++
		size += int64(len(rec.Body()))
	})
	took, allocated := time.Since(start), mallocs()-objects
	r.res.ReadSeconds, r.res.ReadRecordsPerSec = took.Seconds(), load.Rate(float64(records), took)
	r.res.ReadMBPerSec, r.res.ReadAllocsPerRecord = load.Rate(float64(size)/1e6, took), load.Per(float64(allocated), records)
	return err
}

// compareAll reads everything again and compares each message with its file.
func (r *corpusRun) compareAll(ctx context.Context) error {
	open := make(map[string]File, len(r.files))
	for _, f := range r.files {
		open[f.Path] = f
	}
	var failed error
	seen := int64(0)
	err := r.each(ctx, func(topic string, rec *stratalog.Record) {
		if seen++; seen%256 == 0 {
			r.progress.Tell("compare", seen, int64(len(r.files)))
		}
		value, _ := codec.FindProperty(rec.Properties(), KeyProperty)
		key := string(value)
		f, ok := open[key]
		if !ok || f.Topic != topic {
			r.wrong("%s at %d: no file %q waits for a message here", topic, rec.QueueOffset(), key)
			return
		}
		delete(open, key)
		want, err := os.ReadFile(filepath.Join(r.cfg.Source, filepath.FromSlash(key)))
		switch {
		case err != nil:
			failed = errors.Join(failed, err)
		case !bytes.Equal(want, rec.Body()):
			r.wrong("%s at %d: the message differs from file %q", topic, rec.QueueOffset(), key)
		default:
			r.res.Verified++
		}
	})
	r.progress.Tell("compare", int64(len(r.files)), int64(len(r.files)))
	if r.res.Missing = int64(len(open)); r.res.Missing > 0 && r.res.FirstWrong == "" {
		r.res.FirstWrong = fmt.Sprintf("file %q is in no queue", slices.Min(slices.Collect(maps.Keys(open))))
	}
	return errors.Join(err, failed)
}

func (r *corpusRun) wrong(format string, args ...any) {
	if r.res.Wrong++; r.res.FirstWrong == "" {
		r.res.FirstWrong = fmt.Sprintf(format, args...)
	}
}
