package load

import (
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longest is the longest latency a histogram holds; more counts as that.
const longest = 5 * time.Minute

// newHistogram holds nanoseconds up to longest with three digits.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(longest), 3) }

// Histogram is a distribution of durations of one worker. It is not safe for
// concurrent use.
type Histogram struct{ h *hdrhistogram.Histogram }

// NewHistogram returns an empty histogram.
func NewHistogram() Histogram { return Histogram{newHistogram()} }

// Record adds d; what is below 0 counts as 0, what is above five minutes as
// five minutes.
func (h Histogram) Record(d time.Duration) {
	_ = h.h.RecordValue(int64(min(max(d, 0), longest))) // in range, so it cannot fail
}

// Count returns how many were recorded.
func (h Histogram) Count() int64 { return h.h.TotalCount() }

// Summary merges histograms; Curve is filled in.
func Summary(all ...Histogram) Latency {
	sum := newHistogram()
	for _, one := range all {
		if one.h != nil {
			sum.Merge(one.h)
		}
	}
	return latency(sum)
}

// micros turns nanoseconds into microseconds, to the nanosecond.
func micros(ns float64) float64 { return math.Round(ns) / 1000 }

func latency(h *hdrhistogram.Histogram) Latency {
	at := func(q float64) float64 { return micros(float64(h.ValueAtQuantile(q))) }
	l := Latency{Count: h.TotalCount()}
	if l.Count == 0 {
		return l
	}
	l.Mean, l.Min, l.Max = micros(h.Mean()), micros(float64(h.Min())), micros(float64(h.Max()))
	l.P50, l.P90, l.P99, l.P999, l.P9999 = at(50), at(90), at(99), at(99.9), at(99.99)
	l.Curve = curve(h)
	return l
}

// curve takes the distribution at quantiles that lie evenly on the scale on
// which tails are drawn: ten a decade of 1/(1-q), as far as there are samples.
func curve(h *hdrhistogram.Histogram) []Quantile {
	points := []Quantile{{0, micros(float64(h.Min()))}}
	last := math.Log10(float64(h.TotalCount()))
	for step := 1; ; step++ {
		x := float64(step) / 10
		if x >= last || x > 7 {
			break
		}
		q := 100 * (1 - math.Pow(10, -x))
		points = append(points, Quantile{math.Round(q*1e6) / 1e6, micros(float64(h.ValueAtQuantile(q)))})
	}
	return append(points, Quantile{100, micros(float64(h.Max()))})
}

// Timeline collects what many workers do, interval by interval.
type Timeline struct {
	start time.Time
	width time.Duration

	mu     sync.Mutex
	points []*interval
}

// interval is one of the intervals: what happened in it.
type interval struct {
	records int64
	h       *hdrhistogram.Histogram
}

// Interval is the width of the intervals of a run's series.
const Interval = time.Second

// maxIntervals bounds a timeline; what comes later goes into the last one.
const maxIntervals = 3600

// NewTimeline returns an empty timeline that began at start.
func NewTimeline(start time.Time, width time.Duration) *Timeline {
	return &Timeline{start: start, width: width}
}

// coarse is a small histogram, two digits, for one interval.
func coarse() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(longest), 2) }

// add merges what a worker saw in interval i.
func (t *Timeline) add(i int, records int64, h *hdrhistogram.Histogram) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.points) <= i {
		t.points = append(t.points, &interval{h: coarse()})
	}
	t.points[i].records += records
	t.points[i].h.Merge(h)
}

// Points returns the intervals up to end. The last one is as wide as it is.
func (t *Timeline) Points(end time.Time) []Point {
	t.mu.Lock()
	defer t.mu.Unlock()
	var points []Point
	for i, one := range t.points {
		from := time.Duration(i) * t.width
		to := min(from+t.width, end.Sub(t.start))
		if i == len(t.points)-1 && i == maxIntervals-1 {
			to = end.Sub(t.start)
		}
		if to <= from {
			if one.records == 0 {
				break
			}
			to = from + t.width // answers that came when the run was over
		}
		points = append(points, Point{Seconds: round(to.Seconds(), 3), RecordsPerSec: Rate(float64(one.records), to-from),
			P50: micros(float64(one.h.ValueAtQuantile(50))), P99: micros(float64(one.h.ValueAtQuantile(99))),
			Max: micros(float64(one.h.Max()))})
	}
	return points
}

// Recorder is the latencies of one worker: in all, and over time. It is not safe
// for concurrent use; workers that share a Timeline are.
type Recorder struct {
	Histogram
	line    *Timeline
	at      int
	records int64
	now     *hdrhistogram.Histogram
}

// NewRecorder returns a recorder that adds to line, if that is not nil.
func NewRecorder(line *Timeline) *Recorder {
	r := &Recorder{Histogram: NewHistogram(), line: line}
	if line != nil {
		r.now = coarse()
	}
	return r
}

// Add records an operation that moved so many records, took d, and ended at end.
func (r *Recorder) Add(d time.Duration, records int64, end time.Time) {
	r.Record(d)
	if r.line == nil {
		return
	}
	if i := min(int(end.Sub(r.line.start)/r.line.width), maxIntervals-1); i != r.at {
		r.Flush()
		r.at = max(i, 0)
	}
	r.records += records
	_ = r.now.RecordValue(int64(min(max(d, 0), longest)))
}

// Late records only the latency of an operation: a lower bound for one that was
// due and never begun.
func (r *Recorder) Late(d time.Duration) {
	r.Record(d)
	if r.line != nil {
		_ = r.now.RecordValue(int64(min(max(d, 0), longest)))
	}
}

// Flush hands what is pending to the timeline.
func (r *Recorder) Flush() {
	if r.line == nil || r.records == 0 && r.now.TotalCount() == 0 {
		return
	}
	r.line.add(r.at, r.records, r.now)
	r.records = 0
	r.now.Reset()
}

// Rate returns n per second, rounded to one digit behind the point.
func Rate(n float64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return round(n/d.Seconds(), 1)
}

// Per returns n per record, rounded to three digits behind the point.
func Per(n float64, records int64) float64 {
	if records <= 0 {
		return 0
	}
	return round(n/float64(records), 3)
}

func round(x float64, digits int) float64 {
	f := math.Pow10(digits)
	return math.Round(x*f) / f
}
