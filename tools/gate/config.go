package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"
)

// hardUnits are the units with a hard limit, if nothing else is asked for.
const hardUnits = "allocs/op,B/op,mallocs/op,malloced-B/op,syncs/op,syscalls/op,written-B/payload-B,requests/op"

// everything is the expression that matches all benchmarks.
const everything = "."

// config is what a run is asked to do.
type config struct {
	baseDir, headDir, outDir string
	bench, instructions      string
	benchstat, limits        string
	history, changed         string
	hardAsked                bool // -hard was said, not only its default
	reason                   string
	hard, gogc               string
	procs, repeat            int
	slower, tolerance        float64 // percent
	length, timeout, least   time.Duration
	pairs                    int
}

func runCommand(ctx context.Context, name string, args []string, stdout, stderr io.Writer) error {
	var c config
	flags := flag.NewFlagSet("gate "+name, flag.ContinueOnError)
	flags.StringVar(&c.baseDir, "base", "", "the build of BASE")
	flags.StringVar(&c.headDir, "head", "", "the build of HEAD")
	flags.StringVar(&c.outDir, "out", "", "where samples and reports are kept")
	flags.StringVar(&c.bench, "bench", everything, "which benchmarks, a regular expression")
	flags.StringVar(&c.instructions, "instructions", "", "the benchmarks, by folder.Name, whose instructions are counted")
	flags.StringVar(&c.benchstat, "benchstat", "", "the benchstat program, for the table")
	flags.StringVar(&c.limits, "limits", "", "the file of allowed regressions")
	flags.StringVar(&c.history, "history", "", "the accepted baselines: what was exact in the last one is named if it is not now")
	flags.StringVar(&c.changed, "changed", "", "how HEAD's flags differ from those that are used, BASE's")
	flags.StringVar(&c.reason, "reason", "", "why HEAD is to be accepted although it is worse")
	flags.StringVar(&c.hard, "hard", hardUnits, "the units with a hard limit, separated by commas")
	flags.StringVar(&c.gogc, "gogc", "off", "GOGC of the benchmarks; off collects at 2 GiB only")
	flags.IntVar(&c.procs, "procs", runtime.NumCPU(), "GOMAXPROCS of the benchmarks")
	flags.IntVar(&c.repeat, "repeat", 4, "in how many runs a process takes a sample; the fastest counts")
	flags.IntVar(&c.pairs, "count", 12, "pairs of samples")
	flags.Float64Var(&c.slower, "slower", 10, "how much slower, in percent, is a regression")
	flags.Float64Var(&c.tolerance, "tolerance", 2, "how many more instructions, in percent, are a regression")
	flags.DurationVar(&c.least, "least", time.Nanosecond, "by how much slower, at least, a regression is")
	flags.DurationVar(&c.length, "sample", 20*time.Millisecond, "how long a sample takes")
	flags.DurationVar(&c.timeout, "timeout", 5*time.Minute, "how long a process may take")
	if err := parseFlags(flags, args, stderr); err != nil {
		return err
	}
	flags.Visit(func(f *flag.Flag) { c.hardAsked = c.hardAsked || f.Name == "hard" })
	check := name == "check"
	if check {
		c.baseDir, c.headDir, c.outDir = "-", "-", "-"
	}
	switch {
	case c.baseDir == "" || c.headDir == "" || c.outDir == "" || flags.NArg() > 0:
		return errors.New("gate run: -base, -head or -out is missing, or an argument too many")
	case c.pairs < 1 || c.procs < 1 || c.repeat < 1 || c.length <= 0 || c.timeout <= 0:
		return errors.New("gate run: -count, -procs, -repeat, -sample and -timeout must be above 0")
	case c.slower < 0 || c.tolerance < 0 || c.least < 0:
		return errors.New("gate run: -slower, -tolerance and -least must not be negative")
	case math.IsNaN(c.slower) || math.IsNaN(c.tolerance):
		return errors.New("gate run: -slower and -tolerance must be numbers")
	case len(splitList(c.hard)) == 0:
		return errors.New("gate run: -hard names no unit")
	}
	for _, re := range []string{c.bench, c.instructions} {
		if _, err := regexp.Compile(re); err != nil {
			return err
		}
	}
	if check {
		return nil
	}
	return run(ctx, c, stdout, stderr)
}

// once is how long a benchmark runs at a time.
func (c config) once() time.Duration { return c.length / time.Duration(c.repeat) }

func (c config) runner() runner {
	limit := "off"
	if c.gogc == "off" {
		limit = "2GiB"
	}
	return runner{procs: c.procs, repeat: c.repeat, timeout: c.timeout,
		env: withEnv(os.Environ(), "GOMAXPROCS="+strconv.Itoa(c.procs), "GOGC="+c.gogc, "GOMEMLIMIT="+limit)}
}

// withEnv returns env with some variables set anew.
func withEnv(env []string, set ...string) []string {
	env = slices.Clone(env)
	for _, s := range set {
		name, _, _ := strings.Cut(s, "=")
		env = slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
	}
	return append(env, set...)
}

func splitList(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// facts says what was measured, and on what.
type facts struct {
	Commit, Base       string
	Date               time.Time
	Go, BaseGo         string
	CPU, Kernel, Files string
	Procs              int
	GOGC               string
	Pairs, Repeat      int
	Length             time.Duration
	// What a change of the flags could hide.
	Bench, Packages, Counted string
	Hard                     []string
	Slower                   float64 // percent
}

func (c config) facts(ctx context.Context, base, head buildInfo, p plan) facts {
	files := ""
	if runtime.GOOS == "linux" {
		// Where b.TempDir makes its folders. The name that stat(1) has is of no
		// use: ext2, ext3 and ext4 have one magic number.
		lines := strings.Fields(output(ctx, "df", "--output=fstype", cmp.Or(os.Getenv("GOTMPDIR"), os.TempDir())))
		if len(lines) > 0 {
			files = lines[len(lines)-1]
		}
	}
	return facts{Commit: head.Commit, Base: base.Commit, Date: time.Now().UTC().Truncate(time.Second), Go: head.Go,
		BaseGo: base.Go, CPU: p.cpu, Kernel: firstLine(ctx, "uname", "-sr"), Files: files,
		Procs: c.procs, GOGC: c.gogc, Pairs: c.pairs, Repeat: c.repeat, Length: c.length,
		Bench: c.bench, Packages: head.Patterns, Counted: c.instructions, Hard: splitList(c.hard), Slower: c.slower}
}

// firstLine returns the first line that a program prints, "" if it is not there.
func firstLine(ctx context.Context, name string, args ...string) string {
	line, _, _ := strings.Cut(output(ctx, name, args...), "\n")
	return strings.TrimSpace(line)
}

func output(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// config returns the lines above the samples of a side.
func (f facts) config(s side) []benchfmt.Config {
	commit, version := f.Base, f.BaseGo
	if s == sideHead {
		commit, version = f.Commit, f.Go
	}
	var list []benchfmt.Config
	for _, kv := range [][2]string{{"side", sideNames[s]}, {"commit", commit}, {"goversion", version}, {"kernel", f.Kernel},
		{"filesystem", f.Files}, {"gomaxprocs", strconv.Itoa(f.Procs)}, {"gogc", f.GOGC}, {"repeat", strconv.Itoa(f.Repeat)}} {
		if kv[1] != "" {
			list = append(list, benchfmt.Config{Key: kv[0], Value: []byte(kv[1]), File: true})
		}
	}
	return list
}
