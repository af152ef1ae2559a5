//go:build unix

package perf

import (
	"context"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stratalog/stratalog"
)

// spent is time and processor time of this process.
type spent struct{ wall, cpu time.Duration }

// spend measures f.
func spend(b *testing.B, f func()) spent {
	b.Helper()
	cpu := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	start, before := time.Now(), cpu()
	f()
	return spent{time.Since(start), cpu() - before}
}

// BenchmarkIndexBuild compares, on one core, what it takes to append a record of
// 128 bytes with a key, without a key index, with what the index lane takes for
// one afterwards: it reads and checks the log, puts the entries, and writes and
// syncs the files. A ratio above 1 says that the lane keeps up with a core that
// does nothing but append. Then it appends with the index, and says how long the
// lane took behind the last record.
func BenchmarkIndexBuild(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	dir := b.TempDir()
	opt := stratalog.Options{Dir: filepath.Join(dir, "behind"), Durability: stratalog.Memory, NoIndex: true, AdmissionWait: time.Minute}
	open := func() *stratalog.Store {
		s, err := openStarted(context.Background(), opt, nil)
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	shut := func(s *stratalog.Store) {
		if err := closeStore(s); err != nil {
			b.Fatal(err)
		}
	}
	s := open()
	appending := spend(b, func() { appendKeyed(b, s) })
	shut(s)
	opening := spend(b, func() { shut(open()) })
	opt.NoIndex = false
	indexing := spend(b, func() {
		s = open()
		waitIndexed(b, s)
		shut(s)
	})
	indexing.wall -= opening.wall
	indexing.cpu -= opening.cpu

	opt.Dir = filepath.Join(dir, "beside")
	s = open()
	appendKeyed(b, s)
	lag := spend(b, func() { waitIndexed(b, s) })
	shut(s)

	n := float64(b.N)
	b.ReportMetric(float64(appending.cpu)/n, "append-cpu-ns")
	b.ReportMetric(float64(indexing.cpu)/n, "index-cpu-ns")
	b.ReportMetric(float64(appending.cpu)/float64(indexing.cpu), "append/index-cpu")
	b.ReportMetric(float64(appending.wall)/float64(indexing.wall), "append/index-time")
	b.ReportMetric(lag.wall.Seconds()*1000, "lag-ms")
	b.ReportMetric(0, "ns/op")
}

// appendKeyed appends b.N records of 128 bytes with a key each, and waits until
// they are found through their queues.
func appendKeyed(b *testing.B, s *stratalog.Store) {
	b.Helper()
	ctx := context.Background()
	m := stratalog.Message{Topic: keyTopic, Body: make([]byte, 128)}
	for i := range b.N {
		m.QueueID = int32(i % keyQueues)
		m.Properties = append(appendKey(append(m.Properties[:0], "UNIQ_KEY\x01"...), i), 2)
		if _, err := s.Append(ctx, &m, stratalog.Memory); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.WaitVisible(ctx, s.Health().Watermarks.Appended); err != nil {
		b.Fatal(err)
	}
}
