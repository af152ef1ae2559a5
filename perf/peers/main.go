package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stratalog/stratalog/perf/load"
)

// flags is the command line.
type flags struct {
	cell, engines, workloads, producers, sizes, memory, dir string
	jsonTo, markdownTo, from, profiles                      string
	plan                                                    plan
	logMiB                                                  int64
}

func main() {
	var f flags
	flag.StringVar(&f.engines, "engines", "", "engines, comma-separated (default all); ours and the yardstick are always there")
	flag.StringVar(&f.workloads, "workloads", "check,durable,memory,read,reopen", "what to measure, in this order")
	flag.StringVar(&f.producers, "producers", "1,16,64,256", "numbers of producers of durable appends")
	flag.StringVar(&f.sizes, "sizes", "1024", "body sizes of durable appends in bytes, such as 128,1024,4096")
	flag.StringVar(&f.memory, "memory-sizes", "128,1024", "body sizes of appends without sync")
	flag.IntVar(&f.plan.rounds, "rounds", 5, "rounds; every engine has its cell in each, in another order")
	flag.DurationVar(&f.plan.duration, "duration", 400*time.Millisecond, "length of one cell")
	flag.Int64Var(&f.logMiB, "log-size", 128, "MiB of bodies in the logs that are read and opened again")
	flag.IntVar(&f.plan.logBody, "log-body", 1024, "body size in those logs")
	flag.Uint64Var(&f.plan.seed, "seed", 1, "seed of the bodies")
	flag.BoolVar(&f.plan.noGather, "no-gather", false, "let the coalescer take what is there at once, without waiting for more")
	flag.BoolVar(&f.plan.all, "all", false, "the native way of every engine with every number of producers")
	flag.StringVar(&f.dir, "dir", "", "directory on the disk to measure (default: that of temporary files)")
	flag.StringVar(&f.jsonTo, "json", "", "write every run to this file, a JSON object a line")
	flag.StringVar(&f.markdownTo, "markdown", "", "write the tables to this file, as Markdown")
	flag.StringVar(&f.profiles, "profiles", "", "write a profile of the CPU of every cell into this directory, which exists")
	flag.StringVar(&f.from, "from", "", "measure nothing: print the tables of the runs in this file, which -json wrote")
	flag.StringVar(&f.cell, "cell", "", "one cell in JSON: used by this program itself")
	flag.Parse()
	err := f.run()
	if flag.NArg() > 0 {
		err = fmt.Errorf("%q: there are no arguments but flags", flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// run does what the flags say.
func (f *flags) run() error {
	if f.cell != "" {
		return runCell(f.cell)
	}
	if f.from != "" {
		runs, err := readRuns(f.from)
		if err != nil {
			return err
		}
		return f.print(runs, os.Stdout)
	}
	err := errors.Join(numbers("producers", f.producers, &f.plan.producers), numbers("sizes", f.sizes, &f.plan.sizes),
		numbers("memory-sizes", f.memory, &f.plan.memory))
	if err != nil {
		return err
	}
	if f.plan.rounds < 1 || f.plan.logBody < headSize || f.logMiB < 1 || f.plan.duration <= 0 {
		return fmt.Errorf("rounds, log-size, log-body (at least %d) and duration must be positive", headSize)
	}
	for _, size := range append(f.plan.sizes, f.plan.memory...) {
		if size < headSize {
			return fmt.Errorf("sizes: %d is too short for a body that is told from others: at least %d", size, headSize)
		}
	}
	f.plan.logSize = f.logMiB << 20
	if f.plan.engines, err = enginesNamed(f.engines); err != nil {
		return err
	}
	return f.measure()
}

// measure runs the plan and prints what came of it.
func (f *flags) measure() error {
	b, end, err := newBench(f.dir, os.Stderr)
	if err != nil {
		return err
	}
	defer end()
	if kind := load.Environment(b.dir).FileSystem; strings.HasPrefix(kind, "tmpfs") {
		return fmt.Errorf("%s is in memory, where a sync costs nothing: give a directory on a disk with -dir", b.dir)
	}
	b.profiles = f.profiles
	if f.jsonTo != "" {
		file, err := os.Create(f.jsonTo)
		if err != nil {
			return err
		}
		defer file.Close()
		b.out = json.NewEncoder(file)
	}
	err = b.run(&f.plan, strings.Split(f.workloads, ","))
	b.say("done; %d cells ran twice, since the disk was slow beside them", b.again)
	err = errors.Join(err, f.print(b.runs, os.Stdout))
	for _, what := range b.broken {
		err = errors.Join(err, errors.New("promise not kept: "+what))
	}
	return err
}

// print writes the tables.
func (f *flags) print(runs []load.Run, w io.Writer) error {
	all := tables(runs)
	for _, t := range all {
		if err := t.writeText(w); err != nil {
			return err
		}
	}
	if f.markdownTo == "" {
		return nil
	}
	var text strings.Builder
	for _, t := range all {
		if err := t.writeMarkdown(&text); err != nil {
			return err
		}
	}
	return os.WriteFile(f.markdownTo, []byte(text.String()), 0o644)
}

// runCell runs one cell in this process and prints the run.
func runCell(text string) error {
	var c cell
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	r, err := c.run()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// readRuns reads what -json wrote.
func readRuns(name string) ([]load.Run, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var runs []load.Run
	for d := json.NewDecoder(file); ; {
		var r load.Run
		if err := d.Decode(&r); err == io.EOF {
			return runs, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s, run %d: %w", name, len(runs)+1, err)
		}
		runs = append(runs, r)
	}
}

// numbers reads a list of positive numbers.
func numbers(flag, list string, to *[]int) error {
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 {
			return fmt.Errorf("-%s: %q is not a positive number", flag, word)
		}
		*to = append(*to, n)
	}
	slices.Sort(*to)
	return nil
}
