package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
)

// raise is a line of perf/LIMITS: it allows HEAD to be worse than BASE, so far
// and no further.
//
//	codec.BenchmarkEncode allocs/op 2 # the buffer is the caller's now
//	codec.BenchmarkEncode sec/op 1.3x # checks the tags
//	codec.BenchmarkEncode removed # there is no such codec any more
//	codec.BenchmarkEncode syncs/op removed # it does no input or output now
//	perf/gate/flags changed # the codec is a package of its own
type raise struct {
	line      int
	key, unit string
	value     float64
	times     bool // value is a multiple of that of BASE
	gone      bool // the unit may be gone
	why       string
	used      bool
}

// removed is what stands in place of a unit in the line that allows a benchmark
// to be missing.
const removed = "removed"

// The line that allows the flags to differ from those of BASE.
const (
	flagsFile = "perf/gate/flags"
	changed   = "changed"
)

// readLimits reads a file of raises. There need not be one. Every line that is
// not right is an error of its own.
func readLimits(name string) ([]*raise, []error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, []error{err}
	}
	var raises []*raise
	var wrong []error
	lines := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		r, err := parseRaise(text)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("perf/LIMITS:%d: %w: %s", n, err, text))
			continue
		}
		r.line = n
		raises = append(raises, r)
	}
	return raises, wrong
}

func parseRaise(text string) (*raise, error) {
	fields, why, _ := strings.Cut(text, " #")
	r := &raise{why: strings.TrimSpace(why)}
	if r.why == "" {
		return nil, errors.New("the line does not say why; write # and a reason behind it")
	}
	parts := strings.Fields(fields)
	if len(parts) == 2 && parts[1] == removed {
		r.key, r.unit = parts[0], removed
		return r, nil
	}
	if len(parts) == 2 && parts[0] == flagsFile && parts[1] == changed {
		r.key, r.unit = parts[0], changed
		return r, nil
	}
	if len(parts) != 3 {
		return nil, errors.New("the line is not of the form: package.Benchmark unit value # why")
	}
	r.key, r.unit = parts[0], parts[1]
	if parts[2] == removed {
		r.gone = true
		return r, nil
	}
	number, times := strings.CutSuffix(parts[2], "x")
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
		return nil, fmt.Errorf("%q is no value", parts[2])
	}
	if r.value, r.times = value, times; r.unit == unitTime && !times {
		return nil, errors.New("a time differs from machine to machine; write a multiple of the base, as 1.3x")
	}
	return r, nil
}

// allow marks the rows that a line allows to be worse, and the lines that were
// needed for it.
func allow(rows []row, raises []*raise) {
	for i := range rows {
		r := &rows[i]
		if r.verdict != worse {
			continue
		}
		for _, raise := range raises {
			if raise.key == r.key && raise.unit == r.unit && !raise.gone && raise.covers(r) {
				raise.used, r.allowed = true, raise
			}
		}
	}
}

func (l *raise) covers(r *row) bool {
	if l.times {
		return r.ratio <= l.value
	}
	return r.head <= l.value
}

// allowMissing returns the benchmarks, and units as "benchmark unit", that are
// missing and that no line allows to be.
func allowMissing(missing []string, raises []*raise) []string {
	var left []string
	for _, key := range missing {
		allowed := false
		for _, raise := range raises {
			if raise.unit == removed && raise.key == key || raise.gone && raise.key+" "+raise.unit == key {
				raise.used, allowed = true, true
			}
		}
		if !allowed {
			left = append(left, key)
		}
	}
	return left
}

// allowChanged returns the line that allows the flags to differ, or nil.
func allowChanged(raises []*raise) *raise {
	for _, raise := range raises {
		if raise.key == flagsFile && raise.unit == changed {
			raise.used = true
			return raise
		}
	}
	return nil
}

// unused returns the lines that nothing needed, of benchmarks that were looked
// at.
func unused(raises []*raise, looked func(key string) bool) []*raise {
	var list []*raise
	for _, r := range raises {
		if !r.used && (r.unit == removed || r.unit == changed || looked(r.key)) {
			list = append(list, r)
		}
	}
	return list
}

// wanted is the line that would allow r.
func wanted(r row) string {
	value := formatValue(r.head)
	if r.unit == unitTime || r.unit == unitInstructions {
		value = strconv.FormatFloat(math.Ceil(r.ratio*100)/100, 'f', -1, 64) + "x"
	}
	return fmt.Sprintf("%s %s %s # why", r.key, r.unit, value)
}

func formatValue(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
