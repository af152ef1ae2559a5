package load

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Sizes is a distribution of body lengths, chosen by the number of a message
// alone.
type Sizes struct {
	text  string
	max   int
	shape func(u float64) int // of a number in [0, 1)
	fixed int                 // if shape is nil
}

// MaxBody is the longest body that a generator makes.
const MaxBody = 1 << 29

// FixedSize returns bodies of n bytes, all of them.
func FixedSize(n int) Sizes { return Sizes{text: strconv.Itoa(n), max: n, fixed: n} }

// ParseSizes reads a distribution:
//
//	1KiB                     every body is that long
//	uniform:100-4KiB         any length of the range, alike often
//	lognormal:1KiB,0.8,64KiB median, sigma of the logarithm, and the longest
//	128*70,1KiB*25,64KiB*5   these lengths, in these proportions
//
// parse reads one length. The error names the part that is wrong.
func ParseSizes(text string, parse func(string) (int64, error)) (Sizes, error) {
	length := func(s string) (int, error) {
		n, err := parse(strings.TrimSpace(s))
		if err != nil {
			return 0, err
		}
		if n < 0 || n > MaxBody {
			return 0, fmt.Errorf("%s is not in 0..%d bytes", s, MaxBody)
		}
		return int(n), nil
	}
	kind, rest, named := strings.Cut(text, ":")
	switch {
	case named && kind == "uniform":
		return parseUniform(text, rest, length)
	case named && kind == "lognormal":
		return parseLognormal(text, rest, length)
	case named:
		return Sizes{}, fmt.Errorf("%q is no distribution: uniform or lognormal", kind)
	case strings.Contains(text, "*"):
		return parseMix(text, length)
	}
	n, err := length(text)
	if err != nil {
		return Sizes{}, err
	}
	return FixedSize(n), nil
}

func parseUniform(text, rest string, length func(string) (int, error)) (Sizes, error) {
	a, b, ok := strings.Cut(rest, "-")
	if !ok {
		return Sizes{}, fmt.Errorf("%q wants uniform:LEAST-MOST", text)
	}
	least, err := length(a)
	if err != nil {
		return Sizes{}, err
	}
	most, err := length(b)
	if err != nil {
		return Sizes{}, err
	}
	if most < least {
		return Sizes{}, fmt.Errorf("%q: %d is below %d", text, most, least)
	}
	return Sizes{text: text, max: most, shape: func(u float64) int { return least + int(u*float64(most-least+1)) }}, nil
}

func parseLognormal(text, rest string, length func(string) (int, error)) (Sizes, error) {
	parts := strings.Split(rest, ",")
	if len(parts) != 3 {
		return Sizes{}, fmt.Errorf("%q wants lognormal:MEDIAN,SIGMA,LONGEST", text)
	}
	median, err := length(parts[0])
	if err != nil {
		return Sizes{}, err
	}
	sigma, err := strconv.ParseFloat(strings.TrimSpace(parts[1]), 64)
	if err != nil || !(sigma > 0 && sigma < 10) {
		return Sizes{}, fmt.Errorf("%q: sigma %s is not in 0..10", text, parts[1])
	}
	most, err := length(parts[2])
	if err != nil {
		return Sizes{}, err
	}
	if median < 1 || median > most {
		return Sizes{}, fmt.Errorf("%q: the median is not in 1..%d", text, most)
	}
	return Sizes{text: text, max: most, shape: func(u float64) int {
		z := math.Sqrt2 * math.Erfinv(2*u-1)
		return int(math.Min(float64(median)*math.Exp(sigma*z), float64(most)))
	}}, nil
}

func parseMix(text string, length func(string) (int, error)) (Sizes, error) {
	s := Sizes{text: text}
	var lengths []int
	var upTo []float64 // of the weights, running
	sum := 0.0
	for part := range strings.SplitSeq(text, ",") {
		l, w, ok := strings.Cut(part, "*")
		if !ok {
			return Sizes{}, fmt.Errorf("%q wants LENGTH*WEIGHT", part)
		}
		n, err := length(l)
		if err != nil {
			return Sizes{}, err
		}
		weight, err := strconv.ParseFloat(strings.TrimSpace(w), 64)
		if err != nil || !(weight > 0 && weight < 1e9) {
			return Sizes{}, fmt.Errorf("%q: the weight is not a positive number", part)
		}
		sum += weight
		lengths, upTo, s.max = append(lengths, n), append(upTo, sum), max(s.max, n)
	}
	s.shape = func(u float64) int {
		for i, edge := range upTo {
			if u*sum < edge {
				return lengths[i]
			}
		}
		return lengths[len(lengths)-1]
	}
	return s, nil
}

// String returns the distribution as it was written.
func (s Sizes) String() string { return s.text }

// Max returns the longest length that Of returns.
func (s Sizes) Max() int { return s.max }

// Of returns the length that a random number stands for.
func (s Sizes) Of(random uint64) int {
	if s.shape == nil {
		return s.fixed
	}
	return s.shape(float64(random>>11) / (1 << 53))
}
