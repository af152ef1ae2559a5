package perf

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/contract"
)

var benchKeys = flag.Int("keys", 500_000, "how many records with a key BenchmarkQueryKey asks among")

const keyTopic, keyQueues = "keys", 8

// appendKey appends the unique key of record i: 24 characters, spread over all
// hashes.
func appendKey(dst []byte, i int) []byte {
	spread := uint64(i) * 0x9E3779B97F4A7C15
	for at := 60; at >= 0; at -= 4 {
		dst = append(dst, "0123456789ABCDEF"[spread>>at&15])
	}
	for at := 28; at >= 0; at -= 4 {
		dst = append(dst, "0123456789ABCDEF"[i>>at&15])
	}
	return dst
}

func keyOf(i int) string { return string(appendKey(nil, i)) }

// keyedStore is a store of n records of 64 bytes with a key each, all of them in
// the index, and where each of them lies.
func keyedStore(b *testing.B, opt stratalog.Options, n int) (*stratalog.Store, []stratalog.Offset) {
	b.Helper()
	ctx := context.Background()
	opt.AdmissionWait = time.Minute
	s, err := openStarted(ctx, opt, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := closeStore(s); err != nil {
			b.Error(err)
		}
	})
	at := make([]stratalog.Offset, n)
	m := stratalog.Message{Topic: keyTopic, Body: make([]byte, 64)}
	for i := range at {
		m.QueueID = int32(i % keyQueues)
		m.Properties = append(appendKey(append(m.Properties[:0], "UNIQ_KEY\x01"...), i), 2)
		r, err := s.Append(ctx, &m, stratalog.Memory)
		if err != nil {
			b.Fatal(err)
		}
		rng, _ := r.Range()
		at[i] = rng.Start
	}
	waitIndexed(b, s)
	return s, at
}

// waitIndexed waits until all that was appended is in the key index.
func waitIndexed(b *testing.B, s *stratalog.Store) {
	b.Helper()
	var out stratalog.Matches
	for end := s.Health().Watermarks.Appended; ; time.Sleep(time.Millisecond) {
		if err := s.QueryKey(context.Background(), stratalog.Query{Topic: keyTopic, Key: "none"}, &out); err != nil {
			b.Fatal(err)
		}
		if out.Boundary >= end {
			return
		}
	}
}

// queryBench asks one store in three ways, in turn.
type queryBench struct {
	s       *stratalog.Store
	at      []stratalog.Offset
	rng     *rand.Rand
	keys    []string
	rec     stratalog.Record
	records stratalog.Records
	out     stratalog.Matches
	// took are the times of nothing at all, of a record by its place, of one by
	// its key, and of one by its queue offset.
	took [4][]time.Duration
}

func (q *queryBench) get(b *testing.B, i int) {
	found, err := q.s.GetAt(context.Background(), q.at[i], &q.rec)
	if err != nil || !found {
		b.Fatal(found, err)
	}
}

func (q *queryBench) query(b *testing.B, key string) {
	err := q.s.QueryKey(context.Background(), stratalog.Query{Topic: keyTopic, Key: key}, &q.out)
	if err != nil || q.out.Len() != 1 || q.out.More {
		b.Fatal(q.out.Len(), q.out.More, err)
	}
}

func (q *queryBench) getQueue(b *testing.B, i int) {
	err := q.s.Get(context.Background(), stratalog.Request{Topic: keyTopic, QueueID: int32(i % keyQueues),
		Offset: int64(i / keyQueues), MaxCount: 1}, &q.records)
	if err != nil || q.records.Status != contract.GetFound {
		b.Fatal(q.records.Status, err)
	}
}

// round asks once in each way, each time for another record.
func (q *queryBench) round(b *testing.B, i int) {
	if i %= len(q.keys); i == 0 {
		for j := range q.keys {
			q.keys[j] = keyOf(q.rng.IntN(len(q.at)))
		}
	}
	one, other := q.rng.IntN(len(q.at)), q.rng.IntN(len(q.at))
	t0 := time.Now()
	t1 := time.Now()
	q.get(b, one)
	t2 := time.Now()
	q.query(b, q.keys[i])
	t3 := time.Now()
	q.getQueue(b, other)
	t4 := time.Now()
	q.rec.Release()
	q.out.Release()
	q.records.Release()
	for k, d := range []time.Duration{t1.Sub(t0), t2.Sub(t1), t3.Sub(t2), t4.Sub(t3)} {
		q.took[k] = append(q.took[k], d)
	}
}

func (q *queryBench) clear(room int) {
	for k := range q.took {
		q.took[k] = append(make([]time.Duration, 0, room), q.took[k][:0]...)
	}
}

// BenchmarkQueryKey asks, of a store whose files are in memory, for a random one
// of -keys keys, for a random record by its place in the log, and for one by its
// queue offset, in turn, and compares the 99th percentiles. What the clock itself
// takes is measured between them, and its median taken off. Each record was
// touched before.
func BenchmarkQueryKey(b *testing.B) {
	n := *benchKeys
	s, at := keyedStore(b, stratalog.Options{Dir: b.TempDir(), Durability: stratalog.Memory}, n)
	q := &queryBench{s: s, at: at, rng: rand.New(rand.NewPCG(1, 2)), keys: make([]string, 4096)}
	for i := 0; i < n; i += 4 {
		q.get(b, i)
		q.getQueue(b, i)
	}
	for i := range min(n, 1_000_000) {
		q.query(b, keyOf(q.rng.IntN(n)))
		if i%1000 == 0 {
			q.round(b, 0)
		}
	}
	b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
		q.clear(b.N)
		for i := range b.N {
			q.round(b, i)
		}
		b.StopTimer()
		q.report(b)
	})
}

func (q *queryBench) report(b *testing.B) {
	for k := range q.took {
		slices.Sort(q.took[k])
	}
	clock := q.took[0][len(q.took[0])/2]
	at := func(k int, part float64) float64 {
		all := q.took[k]
		return float64(all[min(int(part*float64(len(all))), len(all)-1)]-clock) / 1000
	}
	for k, name := range []string{"", "place", "key", "queue"} {
		if k > 0 {
			b.ReportMetric(at(k, 0.5), name+"-p50-us")
			b.ReportMetric(at(k, 0.99), name+"-p99-us")
		}
	}
	b.ReportMetric(at(2, 0.99)/at(1, 0.99), "key/place-p99")
	b.ReportMetric(at(2, 0.99)/at(3, 0.99), "key/queue-p99")
	b.ReportMetric(float64(clock), "clock-ns")
	b.ReportMetric(0, "ns/op")
}
