package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// instructionTime is how much of a benchmark, in time without callgrind, is
// counted.
const instructionTime = 2 * time.Millisecond

// counter counts instructions with callgrind.
type counter struct {
	runner
	dir string // for what callgrind writes
}

// newCounter returns a counter, or an error if there is no valgrind.
func newCounter(r runner, dir string) (*counter, error) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		return nil, fmt.Errorf("instructions are to be counted, and there is no valgrind: tools/setup.sh installs it, "+
			"--instructions '' leaves them out (%w)", err)
	}
	c := &counter{runner: r, dir: dir}
	c.procs, c.repeat = 1, 1
	// Without a collector and preemption the same program takes the same way.
	c.env = withEnv(c.env, "GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=off", "GODEBUG=asyncpreemptoff=1")
	return c, nil
}

// count returns the instructions of an operation: those of 2n iterations less
// those of n, so that the start of the process is left out.
func (c *counter) count(ctx context.Context, pkg testPackage, b benchmark, n int, label string) (float64, error) {
	var totals [2]int64
	for i := range totals {
		file := filepath.Join(c.dir, fmt.Sprintf("callgrind.%s.%d", label, i))
		_, err := c.one(ctx, pkg, b.name, n*(i+1), "valgrind", "--quiet", "--tool=callgrind", "--callgrind-out-file="+file)
		if err != nil {
			return 0, fmt.Errorf("under callgrind: %w", err)
		}
		if totals[i], err = readTotal(file); err != nil {
			return 0, err
		}
		if err := os.Remove(file); err != nil {
			return 0, err
		}
	}
	return float64(totals[1]-totals[0]) / float64(n), nil
}

// readTotal returns the number of instructions in a file of callgrind.
func readTotal(name string) (int64, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if total, ok := strings.CutPrefix(lines.Text(), "summary:"); ok {
			return strconv.ParseInt(strings.TrimSpace(total), 10, 64)
		}
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("callgrind wrote no summary into %s", name)
}

// countAll judges the instructions of the benchmarks that re matches.
func (c *counter) countAll(ctx context.Context, benchmarks []benchmark, re *regexp.Regexp, length time.Duration, tolerance float64) ([]row, []error) {
	var rows []row
	var troubles []error
	for _, b := range benchmarks {
		if !re.MatchString(b.key) {
			continue
		}
		n := max(1, int(float64(b.n)*float64(instructionTime)/float64(length)))
		// The counts do not depend on what else the machine does.
		var both sync.WaitGroup
		var base, head float64
		var baseErr, headErr error
		both.Go(func() { base, baseErr = c.count(ctx, b.base, b, n, "base") })
		both.Go(func() { head, headErr = c.count(ctx, b.head, b, n, "head") })
		both.Wait()
		if ctx.Err() != nil {
			return nil, []error{ctx.Err()}
		}
		if baseErr != nil || headErr != nil {
			for side, err := range []error{baseErr, headErr} {
				if err != nil {
					troubles = append(troubles, fmt.Errorf("%s: %w", sideNames[side], err))
				}
			}
			continue
		}
		rows = append(rows, judgeInstructions(b.key, base, head, tolerance))
	}
	return rows, troubles
}

// judgeInstructions judges one count a side. Below one instruction an operation
// is nothing but the loop, or less than the noise.
func judgeInstructions(key string, base, head, tolerance float64) row {
	r := row{key: key, unit: unitInstructions, method: byInstructions, base: base, head: head, ratio: ratioOf(base, head), limit: tolerance, chance: true}
	if r.verdict = compare(head-base, head-base, tolerance*max(base, 1)); r.verdict == undecided {
		r.verdict = same
	}
	return r
}
