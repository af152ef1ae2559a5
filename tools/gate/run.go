package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
)

// job is one run of the gate.
type job struct {
	config
	runner  runner
	rules   rules
	counter *counter // nil if no instructions are asked for
	counted *regexp.Regexp
	dir     string // for copies of the programs
	rep     report
	log     io.Writer
}

// run measures and judges. It returns errRegression if HEAD is worse, and
// another error if not everything could be judged.
func run(ctx context.Context, c config, stdout, stderr io.Writer) error {
	j := job{config: c, runner: c.runner(), log: stderr,
		rules: rules{slower: c.slower / 100, least: c.least.Seconds(), tolerance: c.tolerance / 100, hard: splitList(c.hard), pairs: c.pairs}}
	var err error
	if j.dir, err = os.MkdirTemp("", "gate"); err != nil {
		return err
	}
	defer os.RemoveAll(j.dir)
	if err := j.prepare(ctx); err != nil {
		return err
	}
	raises, wrong := readLimits(c.limits)
	j.rep.wrong, j.rep.missing = wrong, allowMissing(j.rep.plan.missing, raises)
	j.rep.begin(stdout)
	if err := j.judge(ctx, raises); err != nil {
		return err
	}
	if err := j.rep.table(ctx, c.benchstat, stdout); err != nil {
		return err
	}
	if err := j.rep.keep(); err != nil {
		return err
	}
	return j.rep.end(stdout)
}

// prepare reads the builds and makes the plan.
func (j *job) prepare(ctx context.Context) error {
	base, err := readBuild(j.baseDir)
	if err != nil {
		return err
	}
	head, err := readBuild(j.headDir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(j.outDir, 0o755); err != nil {
		return err
	}
	if j.instructions != "" {
		if j.counted, err = regexp.Compile(j.instructions); err != nil {
			return fmt.Errorf("-instructions: %w", err)
		}
		if j.counter, err = newCounter(j.runner, j.dir); err != nil {
			return err
		}
	}
	plan, err := makePlan(ctx, &j.runner, base, head, j.bench, j.once())
	j.rep = report{plan: plan, outDir: j.outDir, reason: j.reason, troubles: plan.troubles, facts: j.facts(ctx, base, head, plan)}
	return err
}

// judge measures everything, and what is worse by chance perhaps once more.
func (j *job) judge(ctx context.Context, raises []*raise) error {
	benchmarks := j.rep.plan.benchmarks
	rows, err := j.measure(ctx, benchmarks, "")
	if err != nil {
		return err
	}
	allow(rows, raises)
	if suspects := doubted(rows, benchmarks); len(suspects) > 0 {
		fmt.Fprintf(j.log, "measuring %d benchmarks once more\n", len(suspects))
		again, err := j.measure(ctx, suspects, "-again")
		if err != nil {
			return err
		}
		for i := range rows {
			if rows[i].doubtful() {
				rows[i].confirm(again)
			}
		}
	}
	j.rep.rows = rows
	j.rep.unused = unused(raises, func(key string) bool {
		return slices.ContainsFunc(benchmarks, func(b benchmark) bool { return b.key == key })
	})
	return nil
}

// measure takes samples of benchmarks and counts their instructions, and judges
// them. Suffix tells the files of one measurement from those of another.
func (j *job) measure(ctx context.Context, benchmarks []benchmark, suffix string) ([]row, error) {
	raw, err := openRaw(j.outDir, suffix, j.rep.facts.config)
	if err != nil {
		return nil, err
	}
	s := sampler{runner: j.runner, dir: j.dir, raw: raw, log: j.log}
	all, troubles := s.measure(ctx, benchmarks, j.pairs)
	rows, more := judge(all, j.rules)
	troubles = append(troubles, more...)
	if j.counter != nil && ctx.Err() == nil {
		counts, more := j.counter.countAll(ctx, benchmarks, j.counted, j.once(), j.rules.tolerance)
		rows, troubles = append(rows, counts...), append(troubles, more...)
	}
	for _, t := range troubles {
		var gone *goneError
		switch {
		case !errors.As(t, &gone):
			j.rep.troubles = append(j.rep.troubles, t)
		case !slices.Contains(j.rep.missing, gone.what):
			j.rep.missing = append(j.rep.missing, gone.what)
		}
	}
	return rows, errors.Join(raw.close(), ctx.Err())
}

// doubtful tells whether r blocks only if a second run agrees.
func (r row) doubtful() bool { return r.verdict == worse && r.chance && r.allowed == nil }

// doubted returns the benchmarks that have to be measured once more.
func doubted(rows []row, benchmarks []benchmark) []benchmark {
	keys := map[string]bool{}
	for _, r := range rows {
		if r.doubtful() {
			keys[r.key] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(benchmarks), func(b benchmark) bool { return !keys[b.key] })
}
