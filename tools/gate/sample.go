package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchunit"
)

// Units that the testing package reports, as benchunit tidies them.
const (
	unitTime         = "sec/op"
	unitInstructions = "instructions/op"
)

// sample is what one process printed of one benchmark.
type sample struct {
	name       string // without the GOMAXPROCS at its end
	iterations int
	values     map[string]float64 // by tidied unit
	result     *benchfmt.Result
}

// runner starts test programs.
type runner struct {
	env     []string
	procs   int
	timeout time.Duration
	repeat  int // runs of a benchmark in one process
}

// run starts the program of p once and returns what it printed. It is an error
// if the program fails or takes too long.
func (r *runner) run(ctx context.Context, p testPackage, pattern, benchtime string, count int, prefix ...string) ([]sample, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	args := append(prefix[:len(prefix):len(prefix)], p.Binary, "-test.run=^$", "-test.bench="+pattern,
		"-test.benchtime="+benchtime, "-test.benchmem", "-test.count="+strconv.Itoa(count), "-test.timeout=0")
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = p.Dir, r.env, time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() == context.DeadlineExceeded {
			err = fmt.Errorf("no end after %v", r.timeout)
		}
		return nil, &benchmarkError{pkg: p.Key, pattern: pattern, cause: err, log: stdout.String() + stderr.String()}
	}
	samples, err := r.parse(stdout.Bytes())
	if err != nil {
		return nil, fmt.Errorf("%s.%w", p.Key, err)
	}
	return samples, nil
}

// parse reads the results in what a test program printed. A line that only
// looks like one is left out; its benchmark is then missed. A result that says
// nothing, of no iteration or with a value that is no number, is an error that
// begins with the benchmark's name: a benchmark that skips itself after its
// first iteration prints one, and nothing compares with it.
func (r *runner) parse(out []byte) ([]sample, error) {
	var samples []sample
	reader := benchfmt.NewReader(bytes.NewReader(out), "")
	for reader.Scan() {
		res, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		s := sample{iterations: res.Iters, values: map[string]float64{}, result: res.Clone()}
		s.name = "Benchmark" + string(res.Name)
		if r.procs > 1 {
			s.name = strings.TrimSuffix(s.name, "-"+strconv.Itoa(r.procs))
		}
		if s.iterations <= 0 {
			return nil, fmt.Errorf("%s reports %d iterations: it skipped itself on the way", s.name, s.iterations)
		}
		for _, v := range res.Values {
			value, unit := benchunit.Tidy(v.Value, v.Unit) // the reader leaves the unit of a zero as it is
			if math.IsNaN(value) || math.IsInf(value, 0) {
				return nil, fmt.Errorf("%s reports %v %s", s.name, value, unit)
			}
			s.values[unit] = value
		}
		samples = append(samples, s)
	}
	return samples, reader.Err()
}

// one runs a single benchmark in a process, n iterations a time, and returns
// what each time gave.
func (r *runner) one(ctx context.Context, p testPackage, name string, n int, prefix ...string) ([]sample, error) {
	samples, err := r.run(ctx, p, anchored(name), strconv.Itoa(n)+"x", r.repeat, prefix...)
	if err != nil {
		return nil, err
	}
	if len(samples) != r.repeat {
		return nil, fmt.Errorf("%s.%s gave %d samples instead of %d", p.Key, name, len(samples), r.repeat)
	}
	for _, s := range samples {
		if s.name != name {
			return nil, fmt.Errorf("%s.%s gave a sample of %s", p.Key, name, s.name)
		}
	}
	return samples, nil
}

// anchored returns the expression that matches the benchmark name alone.
func anchored(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// benchmarkError says that a test program failed.
type benchmarkError struct {
	pkg     string
	pattern string
	cause   error
	log     string
}

// failedName finds the benchmark that failed in a log: by the line of a
// failure, or by the function in the trace of a panic.
var failedName = regexp.MustCompile(`(?m)^\s*--- FAIL: (Benchmark\S+)|\.(Benchmark\w+)[.(]`)

// Error names the benchmark, if the log tells, and shows the log's end.
func (e *benchmarkError) Error() string {
	what := fmt.Sprintf("the benchmarks %s of %s fail", e.pattern, e.pkg)
	if m := failedName.FindStringSubmatch(e.log); m != nil {
		what = fmt.Sprintf("%s.%s fails", e.pkg, m[1]+m[2])
	}
	return fmt.Sprintf("%s: %v\n%s", what, e.cause, tail(e.log))
}
