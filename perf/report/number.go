package report

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// none stands where there is no number.
const none = "–"

// finite is f, or 0 for what is no number.
func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// digits writes f with three significant digits, and all digits of what is
// before the point in groups of three.
func digits(f float64) string {
	a := math.Abs(f)
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return none
	case f == 0:
		return "0"
	case a >= 1e15 || a < 1e-3:
		return strconv.FormatFloat(f, 'e', 1, 64)
	case a >= 99.95:
		return grouped(strconv.FormatFloat(f, 'f', 0, 64))
	case a >= 9.995:
		return strconv.FormatFloat(f, 'f', 1, 64)
	case a >= 0.9995:
		return strconv.FormatFloat(f, 'f', 2, 64)
	}
	return strconv.FormatFloat(f, 'f', 3, 64)
}

// grouped puts commas between groups of three digits.
func grouped(s string) string {
	sign, s := "", s
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// count writes what comes in ones.
func count(f float64) string {
	if math.Abs(f) >= 1e15 || math.IsNaN(f) {
		return digits(f)
	}
	return grouped(strconv.FormatFloat(f, 'f', 0, 64))
}

// duration writes microseconds in the unit that suits them.
func duration(us float64) string {
	a := math.Abs(us)
	switch {
	case a > 0 && a < 0.9995:
		return digits(us*1e3) + " ns"
	case a < 999.5:
		return digits(us) + " µs"
	case a < 999.5e3:
		return digits(us/1e3) + " ms"
	}
	return digits(us/1e6) + " s"
}

// bytesOf writes a number of bytes in the unit that suits it.
func bytesOf(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for ; math.Abs(n) >= 1024 && i < len(units)-1; i++ {
		n /= 1024
	}
	return digits(n) + " " + units[i]
}

func ratio(f float64) string {
	if !(f > 0) || math.IsInf(f, 0) {
		return none
	}
	return digits(f) + "×"
}

// stat is one figure of runs that repeat each other.
type stat struct {
	median, min, max float64
	n                int
}

// statOf returns the statistics of xs, which it sorts.
func statOf(xs []float64) stat {
	if len(xs) == 0 {
		return stat{}
	}
	slices.Sort(xs)
	s := stat{min: xs[0], max: xs[len(xs)-1], n: len(xs)}
	s.median = xs[len(xs)/2]
	if len(xs)%2 == 0 {
		s.median = xs[len(xs)/2-1]/2 + xs[len(xs)/2]/2
	}
	return s
}

// naturalLess compares texts with the numbers in them by value.
func naturalLess(a, b string) bool {
	for a != "" && b != "" {
		x, restA := leadingNumber(a)
		y, restB := leadingNumber(b)
		if restA != a && restB != b {
			if x != y {
				return x < y
			}
			a, b = restA, restB
			continue
		}
		if a[0] != b[0] {
			return a[0] < b[0]
		}
		a, b = a[1:], b[1:]
	}
	return a == "" && b != ""
}

// leadingNumber takes the decimal number that s begins with; s itself is the
// rest if there is none.
func leadingNumber(s string) (float64, string) {
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] == '.' && end > 0) {
		end++
	}
	f, err := strconv.ParseFloat(s[:end], 64)
	if err != nil {
		return 0, s
	}
	return f, s[end:]
}
