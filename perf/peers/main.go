package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stratalog/stratalog"
)

// load is one closed-loop run: each producer appends, waits for its ack, and
// appends again.
type load struct {
	producers int
	size      int
	duration  time.Duration
}

// result is what one run of one engine gave.
type result struct {
	Engine    string  `json:"engine"`
	Producers int     `json:"producers"`
	Size      int     `json:"size"`
	PerSecond float64 `json:"records_per_s"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	Syncs     int64   `json:"syncs"`
	Records   int64   `json:"records"`
}

// run drives appendOne from every producer for the load's duration.
func run(engine string, l load, appendOne func(producer int) error, syncs func() int64) (result, error) {
	var stop atomic.Bool
	var failed atomic.Pointer[error]
	latencies := make([][]time.Duration, l.producers)
	before := syncs()
	var wg sync.WaitGroup
	start := time.Now()
	for p := range l.producers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for !stop.Load() {
				t := time.Now()
				if err := appendOne(p); err != nil {
					failed.Store(&err)
					return
				}
				latencies[p] = append(latencies[p], time.Since(t))
			}
		}()
	}
	time.Sleep(l.duration)
	stop.Store(true)
	wg.Wait()
	took := time.Since(start)
	if err := failed.Load(); err != nil {
		return result{}, fmt.Errorf("%s: %w", engine, *err)
	}
	var all []time.Duration
	for _, ls := range latencies {
		all = append(all, ls...)
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	at := func(q float64) float64 { return float64(all[int(q*float64(len(all)-1))]) / 1e3 }
	return result{Engine: engine, Producers: l.producers, Size: l.size, PerSecond: float64(len(all)) / took.Seconds(),
		P50: at(0.5), P99: at(0.99), Syncs: syncs() - before, Records: int64(len(all))}, nil
}

// runStratalog appends through the composed store, queue lane running.
func runStratalog(dir string, l load) (result, error) {
	ctx := context.Background()
	store, err := stratalog.Open(ctx, stratalog.Options{Dir: dir})
	if err != nil {
		return result{}, err
	}
	if err := store.Start(ctx); err != nil {
		return result{}, err
	}
	messages := make([]stratalog.Message, l.producers)
	for p := range messages {
		messages[p] = stratalog.Message{Topic: "bench", QueueID: int32(p % 8), Body: make([]byte, l.size)}
	}
	r, err := run("stratalog", l, func(p int) error {
		_, err := store.Append(ctx, &messages[p], stratalog.Sync)
		return err
	}, func() int64 { return store.Health().Stats.Syncs })
	if err != nil {
		return r, err
	}
	report, err := store.Close(ctx)
	if err == nil && !report.Clean {
		err = fmt.Errorf("stratalog: not closed well: %+v", report)
	}
	return r, err
}

// countedFile counts the syncs of the file below pebble's log writer.
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

// runPebbleRecord appends through pebble's record.LogWriter.
func runPebbleRecord(dir string, l load) (result, error) {
	var syncs atomic.Int64
	file, err := vfs.Default.Create(filepath.Join(dir, "000001.log"), vfs.WriteCategoryUnspecified)
	if err != nil {
		return result{}, err
	}
	syncing := vfs.NewSyncingFile(file, vfs.SyncingFileOptions{PreallocateSize: 64 << 20})
	w := record.NewLogWriter(countedFile{syncing, &syncs}, 1, record.LogWriterConfig{
		WALMinSyncInterval:  nil,
		WriteWALSyncOffsets: func() bool { return false },
	})
	bodies := make([][]byte, l.producers)
	for p := range bodies {
		bodies[p] = make([]byte, l.size)
	}
	// The writer wants one caller at a time, as pebble's commit pipeline gives
	// it; the waits for the sync run side by side.
	var mu sync.Mutex
	r, err := run("pebble-record", l, func(p int) error {
		var wg sync.WaitGroup
		var syncErr error
		wg.Add(1)
		mu.Lock()
		_, err := w.SyncRecord(bodies[p], &wg, &syncErr)
		mu.Unlock()
		if err != nil {
			return err
		}
		wg.Wait()
		return syncErr
	}, syncs.Load)
	if err != nil {
		return r, err
	}
	return r, w.Close()
}

func median(xs []float64) float64 {
	sort.Float64s(xs)
	return xs[len(xs)/2]
}

func main() {
	rounds := flag.Int("rounds", 5, "interleaved rounds of each engine")
	duration := flag.Duration("duration", time.Second, "length of one cell")
	size := flag.Int("size", 1024, "body size in bytes")
	base := flag.String("dir", "", "directory on the disk to measure (default: a temporary one)")
	counts := flag.String("producers", "1,16,64,256", "numbers of closed-loop producers, comma-separated")
	asJSON := flag.Bool("json", false, "print every cell as one JSON object per line")
	flag.Parse()
	producers, err := parseCounts(*counts)
	if err == nil {
		err = compare(*rounds, *duration, *size, *base, producers, *asJSON)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(2)
	}
}

// compare runs every engine in turn, round by round, and prints medians and the
// ratios pair by pair.
func compare(rounds int, duration time.Duration, size int, base string, producerCounts []int, asJSON bool) error {
	engines := []struct {
		name string
		run  func(string, load) (result, error)
	}{{"stratalog", runStratalog}, {"pebble-record", runPebbleRecord}}
	if !asJSON {
		fmt.Printf("durable append, %d B bodies, closed loop, %d rounds of %v, medians (records/s, latency in us)\n", size, rounds, duration)
		fmt.Printf("%10s %-14s %10s %8s %8s %12s %18s\n", "producers", "engine", "rec/s", "p50", "p99", "rec/sync", "ours/theirs")
	}
	for _, producers := range producerCounts {
		cells := map[string][]result{}
		for round := range rounds {
			for i := range engines {
				e := engines[(i+round)%len(engines)]
				dir, err := os.MkdirTemp(base, "peers")
				if err != nil {
					return err
				}
				r, err := e.run(dir, load{producers: producers, size: size, duration: duration})
				os.RemoveAll(dir)
				if err != nil {
					return err
				}
				cells[e.name] = append(cells[e.name], r)
				if asJSON {
					if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
						return err
					}
				}
			}
		}
		if asJSON {
			continue
		}
		for _, e := range engines {
			var rate, p50, p99, perSync, ratio []float64
			for i, r := range cells[e.name] {
				rate, p50, p99 = append(rate, r.PerSecond), append(p50, r.P50), append(p99, r.P99)
				perSync = append(perSync, float64(r.Records)/float64(max(r.Syncs, 1)))
				ratio = append(ratio, cells["stratalog"][i].PerSecond/r.PerSecond)
			}
			fmt.Printf("%10d %-14s %10.0f %8.0f %8.0f %12.1f %18.2f\n", producers, e.name, median(rate), median(p50), median(p99),
				median(perSync), median(ratio))
		}
	}
	return nil
}

// parseCounts reads a list of positive numbers.
func parseCounts(list string) ([]int, error) {
	var counts []int
	for _, word := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-producers: %q is not a positive number", word)
		}
		counts = append(counts, n)
	}
	return counts, nil
}
