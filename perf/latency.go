package perf

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency is a summary of latencies in microseconds.
type Latency struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// newHistogram holds nanoseconds up to a minute with three digits.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(time.Minute), 3) }

// record adds d; what is longer than a minute counts as a minute.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(int64(d), int64(time.Minute))) // in range, so it cannot fail
}

// summary merges histograms.
func summary(all []*hdrhistogram.Histogram) Latency {
	h := newHistogram()
	for _, one := range all {
		h.Merge(one)
	}
	us := func(ns float64) float64 { return math.Round(ns) / 1000 }
	return Latency{Mean: us(h.Mean()), P50: us(float64(h.ValueAtQuantile(50))), P99: us(float64(h.ValueAtQuantile(99))),
		P999: us(float64(h.ValueAtQuantile(99.9))), Max: us(float64(h.Max()))}
}
