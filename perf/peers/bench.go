package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stratalog/stratalog/perf/load"
)

// bench runs cells, each in a process of its own, and keeps what they gave.
type bench struct {
	dir   string // for everything that is measured
	probe *probe
	out   *json.Encoder // nil without -json
	talk  io.Writer     // what goes on
	// profiles is the directory for profiles of the CPU; empty for none.
	profiles string
	start    time.Time

	probes []time.Duration
	last   time.Duration // the last probe
	again  int           // cells that ran twice
	runs   []load.Run
	broken []string // promises that were not kept
}

// cellTimeout bounds one process.
const cellTimeout = time.Minute

// command returns the command that runs a cell.
func command(ctx context.Context, c cell, before ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	args := append(before, self, "-cell", string(text))
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	ownGroup(cmd)
	cmd.WaitDelay = time.Second
	return cmd, nil
}

// child runs a cell and returns what it printed.
func child(c cell, before ...string) (load.Run, error) {
	ctx, cancel := context.WithTimeout(context.Background(), cellTimeout)
	defer cancel()
	var r load.Run
	cmd, err := command(ctx, c, before...)
	if err != nil {
		return r, err
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("it did not end within %v", cellTimeout)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w: %s", c.title(), err, lastLines(stderr.String(), 5))
	}
	return r, json.Unmarshal(stdout.Bytes(), &r)
}

// lastLines returns the last n lines of text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// fresh makes an empty directory.
func (b *bench) fresh() (string, error) { return os.MkdirTemp(b.dir, "log") }

// keep notes a run.
func (b *bench) keep(r load.Run) error {
	b.runs = append(b.runs, r)
	if b.out == nil {
		return nil
	}
	return b.out.Encode(r)
}

// measure runs a cell between two probes of the disk. If either of them says
// that the disk was much slower than it mostly is, the cell runs once more, and
// the run with the better probes counts.
func (b *bench) measure(c cell) error {
	first, noise, err := b.once(c)
	if err != nil {
		return err
	}
	if b.noisy(noise) {
		b.again++
		second, less, err := b.once(c)
		if err != nil {
			return err
		}
		if less < noise {
			first = second
		}
	}
	return b.keep(first)
}

// once runs a cell and returns the worse of the probes around it.
func (b *bench) once(c cell) (load.Run, time.Duration, error) {
	if c.Dir == "" {
		dir, err := b.fresh()
		if err != nil {
			return load.Run{}, 0, err
		}
		defer removeAll(dir)
		c.Dir = dir
	}
	c.Profile = b.profileOf(c)
	before := b.last
	if before == 0 {
		before = b.ask()
	}
	r, err := child(c)
	if err != nil {
		return r, 0, err
	}
	if !r.Verified.OK && c.Engine != nothingEngine.name {
		return r, 0, wrong(&c, r.Verified)
	}
	after := b.ask()
	r.Notes = append(r.Notes, fmt.Sprintf("fdatasync of 4 KiB before and after: %d and %d us", before.Microseconds(), after.Microseconds()))
	return r, max(before, after), nil
}

// wrong is the error of a cell whose messages are not what they must be.
func wrong(c *cell, v load.Verify) error {
	return fmt.Errorf("%s: %d missing, %d wrong: %s", c.title(), v.Missing, v.Wrong, v.First)
}

// profileOf names the file for the profile of a cell.
func (b *bench) profileOf(c cell) string {
	if b.profiles == "" {
		return ""
	}
	name := fmt.Sprintf("%s-%s-%s-p%d-a%d-%dB-r%d%s.pprof", strings.ReplaceAll(c.Workload, " ", "-"), c.Engine, c.Way, c.Producers, c.Async,
		c.Size, c.Round, c.State)
	return filepath.Join(b.profiles, name)
}

// ask probes the disk; a probe that fails counts as a slow one, and the next
// cell will tell what is wrong.
func (b *bench) ask() time.Duration {
	took, err := b.probe.measure()
	if err != nil {
		took = time.Second
	}
	b.probes = append(b.probes, took)
	b.last = took
	return took
}

// noisy tells that a probe is far above the usual.
func (b *bench) noisy(p time.Duration) bool {
	if len(b.probes) < 8 {
		return false
	}
	sorted := slices.Sorted(slices.Values(b.probes))
	return p > sorted[len(sorted)/2]*3/2
}

// say tells what goes on.
func (b *bench) say(format string, args ...any) {
	since := time.Since(b.start).Round(time.Second)
	fmt.Fprintf(b.talk, "%4d:%02d  %s\n", since/time.Minute, since%time.Minute/time.Second, fmt.Sprintf(format, args...))
}

// newBench prepares a directory below base, which the function that is returned
// removes.
func newBench(base string, talk io.Writer) (*bench, func(), error) {
	dir, err := os.MkdirTemp(base, "peers")
	if err != nil {
		return nil, nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, nil, err
	}
	p, err := newProbe(dir)
	if err != nil {
		removeAll(dir)
		return nil, nil, err
	}
	end := func() {
		_ = p.file.Close() // nothing in it is wanted
		removeAll(dir)
	}
	return &bench{dir: dir, probe: p, talk: talk, start: time.Now()}, end, nil
}
