package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"
)

// benchmark is one that both sides have.
type benchmark struct {
	key        string // in reports: folder.Name
	name       string
	base, head testPackage
	n          int // iterations of a sample, the same on both sides
}

// plan is what there is to measure.
type plan struct {
	benchmarks []benchmark
	missing    []string        // in BASE, and not in HEAD
	added      []string        // in HEAD, and not in BASE
	troubles   []error         // what could not be looked at
	cpu        string          // as the benchmarks print it
	units      map[string]bool // what any benchmark of either side reports
}

// makePlan looks for the benchmarks of both sides that expr matches, and finds
// out on BASE how many iterations take as long as a sample should. Every
// benchmark of HEAD runs at least once.
func makePlan(ctx context.Context, r *runner, base, head buildInfo, expr string, length time.Duration) (plan, error) {
	p := plan{units: map[string]bool{}}
	re, err := regexp.Compile(expr)
	if err != nil {
		return p, fmt.Errorf("-bench: %w", err)
	}
	old, broken := map[string]benchmark{}, map[string]bool{}
	look := func(side string, pkg testPackage, benchtime string, found func(string, sample)) {
		samples, err := r.list(ctx, pkg, re, benchtime)
		if err != nil {
			p.troubles = append(p.troubles, fmt.Errorf("%s: %w", side, err))
			broken[pkg.Path] = true
			return
		}
		for _, s := range samples {
			for unit := range s.values {
				p.units[unit] = true
			}
			found(pkg.Key+"."+s.name, s)
		}
	}
	for _, pkg := range base.Packages {
		look("BASE", pkg, length.String(), func(key string, s sample) {
			old[key] = benchmark{key: key, name: s.name, base: pkg, n: s.iterations}
			p.cpu = s.result.GetConfig("cpu")
		})
	}
	both := map[string]bool{}
	for _, pkg := range head.Packages {
		look("HEAD", pkg, "1x", func(key string, s sample) {
			b, ok := old[key]
			if !ok {
				if !broken[pkg.Path] {
					p.added = append(p.added, key)
				}
				return
			}
			b.head = pkg
			both[key] = true
			p.benchmarks = append(p.benchmarks, b)
		})
	}
	for key, b := range old {
		if !both[key] && !broken[b.base.Path] {
			p.missing = append(p.missing, key)
		}
	}
	sort.Strings(p.missing)
	if len(old)+len(p.added)+len(p.troubles) == 0 {
		return p, fmt.Errorf("no benchmark matches %s", expr)
	}
	return p, ctx.Err()
}

// matches tells whether re matches a benchmark of either side.
func (p plan) matches(re *regexp.Regexp) bool {
	return slices.ContainsFunc(p.benchmarks, func(b benchmark) bool { return re.MatchString(b.key) }) ||
		slices.ContainsFunc(slices.Concat(p.missing, p.added), re.MatchString)
}

// list runs the benchmarks of a package that re matches, and returns a sample of
// each. A benchmark without a sample is an error.
func (r *runner) list(ctx context.Context, pkg testPackage, re *regexp.Regexp, benchtime string) ([]sample, error) {
	samples, err := r.run(ctx, pkg, re.String(), benchtime, 1)
	if err != nil {
		return nil, err
	}
	seen, top := map[string]bool{}, map[string]bool{}
	for _, s := range samples {
		if seen[s.name] {
			return nil, fmt.Errorf("%s.%s gives more than one sample", pkg.Key, s.name)
		}
		seen[s.name] = true
		first, _, _ := strings.Cut(s.name, "/")
		top[first] = true
	}
	if strings.Contains(re.String(), "/") {
		return samples, nil // it may well match no part of a benchmark
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, pkg.Binary, "-test.list=^Benchmark")
	cmd.Dir, cmd.Env, cmd.Stdout = pkg.Dir, r.env, &out
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: listing the benchmarks: %w", pkg.Key, err)
	}
	for _, name := range strings.Fields(out.String()) {
		if strings.HasPrefix(name, "Benchmark") && re.MatchString(name) && !top[name] {
			return nil, fmt.Errorf("%s.%s gives no sample", pkg.Key, name)
		}
	}
	return samples, nil
}
