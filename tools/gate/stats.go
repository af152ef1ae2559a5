package main

import (
	"math"
	"slices"
)

// interval is a confidence interval for a median.
type interval struct{ median, lo, hi float64 }

// medianInterval returns the median of xs and its interval from order
// statistics: whatever the distribution, the true median lies below lo with a
// probability of at most alpha, and as rarely above hi. Too few values give an
// interval without ends.
func medianInterval(xs []float64, alpha float64) interval {
	n := len(xs)
	if n == 0 {
		return interval{math.NaN(), math.Inf(-1), math.Inf(1)}
	}
	sorted := slices.Sorted(slices.Values(xs))
	i := interval{median: (sorted[(n-1)/2] + sorted[n/2]) / 2, lo: math.Inf(-1), hi: math.Inf(1)}
	if skip := outside(n, alpha); skip >= 0 {
		i.lo, i.hi = sorted[skip], sorted[n-1-skip]
	}
	return i
}

// outside returns how many of n values may be left out at each end of the
// interval; -1 if even all of them do not reach as far as alpha asks for.
func outside(n int, alpha float64) int {
	// p is the probability that exactly k of n values lie below the median, sum
	// that k or fewer do.
	p, sum, skip := math.Exp2(-float64(n)), 0.0, -1
	for k := 0; k < (n+1)/2; k++ {
		if sum += p; sum > alpha {
			break
		}
		skip = k
		p *= float64(n-k) / float64(k+1)
	}
	return skip
}

// reach returns how far the interval reaches from zero.
func (i interval) reach() float64 { return max(math.Abs(i.lo), math.Abs(i.hi)) }

// effects compares pairs: by the logarithm of the ratio, or by the difference.
func effects(from, to []float64, ratio bool) []float64 {
	out := make([]float64, len(from))
	for i := range from {
		if out[i] = to[i] - from[i]; ratio {
			out[i] = math.Log(to[i] / from[i])
		}
	}
	return out
}

// median returns the middle value.
func median(xs []float64) float64 { return medianInterval(xs, 0.5).median }

// lowerMedian returns the middle value, the lower of two.
func lowerMedian(xs []float64) float64 { return slices.Sorted(slices.Values(xs))[(len(xs)-1)/2] }

// upperMedian returns the middle value, the upper of two.
func upperMedian(xs []float64) float64 { return slices.Sorted(slices.Values(xs))[len(xs)/2] }

// runAlpha is how rarely one interval may miss on one side, so that of a job
// with many of them at most one in a hundred is stopped by chance: what blocks
// was seen in two independent runs. A single run is never trusted less than
// mostAlpha says.
func runAlpha(intervals int) float64 {
	const job, mostAlpha = 0.01, 0.025
	return min(mostAlpha, math.Sqrt(job/float64(max(intervals, 1))))
}
