package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestOutside(t *testing.T) {
	for _, c := range []struct {
		n     int
		alpha float64
		want  int
	}{
		{1, 0.025, -1}, {5, 0.025, -1}, {6, 0.025, 0}, {9, 0.0011, -1}, {10, 0.001, 0}, {10, 0.0107, 0}, {10, 0.0108, 1},
		{12, 0.0031, 0}, {12, 0.0032, 1}, {12, 0.0158, 1}, {12, 0.025, 2}, {20, 0.001, 2}, {20, 0.025, 5},
		{3, 0.6, 1}, {0, 0.5, -1},
	} {
		if got := outside(c.n, c.alpha); got != c.want {
			t.Errorf("outside(%d, %v) = %d, want %d", c.n, c.alpha, got, c.want)
		}
	}
}

func TestMedianInterval(t *testing.T) {
	got := medianInterval([]float64{7, 1, 6, 2, 5, 3, 4, 8, 10, 9}, 0.0108)
	if want := (interval{5.5, 2, 9}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, xs := range [][]float64{nil, {1}, {1, 2, 3}} {
		if got := medianInterval(xs, 0.01); !math.IsInf(got.lo, -1) || !math.IsInf(got.hi, 1) {
			t.Errorf("%v: the interval %v has an end", xs, got)
		}
	}
	if lower, upper := lowerMedian([]float64{4, 1, 3, 2}), upperMedian([]float64{4, 1, 3, 2}); lower != 2 || upper != 3 {
		t.Errorf("the medians are %v and %v, want 2 and 3", lower, upper)
	}
}

// The true median lies outside of the interval as rarely as alpha says.
func TestIntervalCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const runs, alpha = 20_000, 0.025
	for _, n := range []int{10, 12, 20} {
		below := 0
		for range runs {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = rng.ExpFloat64() - math.Ln2 // of median 0, and lopsided
			}
			if medianInterval(xs, alpha).lo > 0 {
				below++
			}
		}
		if share := float64(below) / runs; share > alpha*1.1 {
			t.Errorf("%d values: the median lies below the interval in %.4f of all runs, want %v", n, share, alpha)
		}
	}
}

func TestRunAlpha(t *testing.T) {
	if got := runAlpha(1); got != 0.025 {
		t.Errorf("one interval: %v", got)
	}
	if got := runAlpha(100); math.Abs(got-0.01) > 1e-9 {
		t.Errorf("a hundred intervals: %v, want 0.01", got)
	}
	if got := runAlpha(0); got != 0.025 {
		t.Errorf("none: %v", got)
	}
}
