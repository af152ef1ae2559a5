package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
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
	j.rep.changed = c.changed
	if c.changed != "" {
		j.rep.changedAllowed = allowChanged(raises)
	}
	if j.rep.exact, err = exactOnce(c.history, j.rep.facts.Base); err != nil {
		return err
	}
	j.rep.begin(stdout)
	if err := j.idle(stdout); err != nil {
		return err
	}
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

// idle refuses a check that was asked for and matches nothing: it would pass
// whatever happens. Where -bench looks at some benchmarks only, it is told of.
func (j *job) idle(w io.Writer) error {
	p := j.rep.plan
	var nothing []string
	if j.hardAsked {
		for _, unit := range j.rules.hard {
			if !p.units[unit] {
				nothing = append(nothing, fmt.Sprintf("-hard %s: no benchmark of either side reports it", unit))
			}
		}
	}
	if j.counted != nil && !p.matches(j.counted) {
		nothing = append(nothing, fmt.Sprintf("-instructions %s: it matches no benchmark of either side", j.counted))
	}
	if len(nothing) == 0 || len(p.troubles) > 0 {
		return nil // what could not be looked at may have it
	}
	if j.bench != everything {
		list(w, fmt.Sprintf("NOT CHECKED, among the benchmarks that %s matches:", j.bench), nothing)
		return nil
	}
	return errors.New(strings.Join(nothing, "; "))
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
	j.rep = report{plan: plan, outDir: j.outDir, reason: j.reason, troubles: plan.troubles, edited: editedTests(base, head),
		facts: j.facts(ctx, base, head, plan)}
	return err
}

// judge measures everything, and what is worse by chance perhaps once more.
func (j *job) judge(ctx context.Context, raises []*raise) error {
	benchmarks := j.rep.plan.benchmarks
	rows, alpha, err := j.measure(ctx, benchmarks, "", 0)
	if err != nil {
		return err
	}
	allow(rows, raises)
	if suspects := doubted(rows, benchmarks); len(suspects) > 0 {
		fmt.Fprintf(j.log, "measuring %d benchmarks once more\n", len(suspects))
		again, _, err := j.measure(ctx, suspects, "-again", alpha)
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
	j.rep.missing = allowMissing(j.rep.missing, raises) // units, too
	j.rep.unused = unused(raises, func(key string) bool {
		return slices.ContainsFunc(benchmarks, func(b benchmark) bool { return b.key == key })
	})
	return nil
}

// measure takes samples of benchmarks and counts their instructions, and judges
// them. Suffix tells the files of one measurement from those of another; a second
// one is as strict as alpha, that of the first, for all that it has fewer
// benchmarks.
func (j *job) measure(ctx context.Context, benchmarks []benchmark, suffix string, alpha float64) ([]row, float64, error) {
	raw, err := openRaw(j.outDir, suffix, j.rep.facts.config)
	if err != nil {
		return nil, 0, err
	}
	s := sampler{runner: j.runner, dir: j.dir, raw: raw, log: j.log}
	all, troubles := s.measure(ctx, benchmarks, j.pairs)
	rows, alpha, more := judge(all, j.rules, alpha)
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
	return rows, alpha, errors.Join(raw.close(), ctx.Err())
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
