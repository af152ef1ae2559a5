package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/perf/benchfmt"
)

// side is where a sample comes from.
type side int

const (
	sideBase side = iota
	sideHead
	sideSame // a second copy of BASE: what it shows against BASE is noise
	sides
)

var sideNames = [sides]string{"base", "head", "same"}

// orders is in which order the sides of successive pairs run. HEAD and the copy
// of BASE both stand to BASE in the order ABBA, and as far from it as one
// another in the long run.
var orders = [...][sides]side{
	{sideBase, sideHead, sideSame},
	{sideSame, sideHead, sideBase},
	{sideBase, sideSame, sideHead},
	{sideHead, sideSame, sideBase},
}

// measured holds the samples of a benchmark: by side and unit, in the order of
// the pairs.
type measured struct {
	benchmark
	values [sides]map[string][]float64
}

// sampler takes samples and keeps them.
type sampler struct {
	runner
	dir string // for copies of the programs
	raw rawFiles
	log io.Writer
}

// measure takes pairs of samples of each benchmark. The benchmarks take turns,
// so that a burst of other work on the machine hits a few pairs of each and not
// all of one. A benchmark that fails is left out and told of.
func (s *sampler) measure(ctx context.Context, benchmarks []benchmark, pairs int) ([]*measured, []error) {
	all := make([]*measured, len(benchmarks))
	for i, b := range benchmarks {
		all[i] = &measured{benchmark: b}
		for side := range all[i].values {
			all[i].values[side] = map[string][]float64{}
		}
	}
	var troubles []error
	for pair := range pairs {
		fmt.Fprintf(s.log, "pair %d of %d\n", pair+1, pairs)
		if err := s.copyPrograms(all); err != nil {
			return nil, append(troubles, err)
		}
		for i, m := range all {
			if m == nil {
				continue
			}
			for _, side := range orders[pair%len(orders)] {
				if err := s.take(ctx, m, side); err != nil {
					troubles = append(troubles, err)
					all[i] = nil
					break
				}
			}
			if ctx.Err() != nil {
				return nil, []error{ctx.Err()}
			}
		}
	}
	whole := all[:0]
	for _, m := range all {
		if m != nil {
			whole = append(whole, m)
		}
	}
	return whole, troubles
}

// program returns the source package of a side, and where its copy is.
func (s *sampler) program(m *measured, side side) (pkg testPackage, name string) {
	pkg = m.base
	if side == sideHead {
		pkg = m.head
	}
	// The path of a program is part of what its process begins with, so it is of
	// the same length for all sides.
	return pkg, filepath.Join(s.dir, sideNames[side], filepath.Base(m.base.Binary))
}

// copyPrograms makes fresh copies of all programs. Where the pages of a program
// lie in memory alone can make a short loop slower by nearly half, for as long as
// they stay there: so each pair has pages of its own.
func (s *sampler) copyPrograms(all []*measured) error {
	done := map[string]bool{}
	for _, m := range all {
		for side := range sides {
			if m == nil {
				continue
			}
			pkg, name := s.program(m, side)
			if done[name] {
				continue
			}
			done[name] = true
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return err
			}
			b, err := os.ReadFile(pkg.Binary)
			if err != nil {
				return err
			}
			if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err := os.WriteFile(name, b, 0o755); err != nil {
				return err
			}
		}
	}
	return nil
}

// take adds one sample.
func (s *sampler) take(ctx context.Context, m *measured, side side) error {
	pkg, name := s.program(m, side)
	pkg.Binary = name
	samples, err := s.one(ctx, pkg, m.name, m.n)
	if err != nil {
		return fmt.Errorf("%s: %w", sideNames[side], err)
	}
	for unit, v := range reduce(samples) {
		m.values[side][unit] = append(m.values[side][unit], v)
	}
	for _, sample := range samples {
		if err := s.raw.write(side, sample.result); err != nil {
			return err
		}
	}
	return nil
}

// reduce makes one sample of those of a process: the fastest time, since what
// else the machine does only ever adds to it, and the median of everything else.
func reduce(samples []sample) map[string]float64 {
	all := map[string][]float64{}
	for _, s := range samples {
		for unit, v := range s.values {
			all[unit] = append(all[unit], v)
		}
	}
	one := map[string]float64{}
	for unit, values := range all {
		if one[unit] = lowerMedian(values); unit == unitTime {
			one[unit] = slices.Min(values)
		}
	}
	return one
}

// rawFiles keeps every sample, in Go's benchmark format, a file a side.
type rawFiles struct {
	config  [sides][]benchfmt.Config
	files   [sides]*os.File
	writers [sides]*benchfmt.Writer
}

// openRaw makes the files base.txt, head.txt and same.txt in dir, with suffix in
// front of the dot. config is written above the samples of a side.
func openRaw(dir, suffix string, config func(side) []benchfmt.Config) (rawFiles, error) {
	var raw rawFiles
	for side := range sides {
		f, err := os.Create(rawName(dir, suffix, side))
		if err != nil {
			return raw, errors.Join(err, raw.close())
		}
		raw.files[side], raw.writers[side], raw.config[side] = f, benchfmt.NewWriter(f), config(side)
	}
	return raw, nil
}

func rawName(dir, suffix string, side side) string {
	return filepath.Join(dir, sideNames[side]+suffix+".txt")
}

func (r *rawFiles) write(side side, res *benchfmt.Result) error {
	// A fresh value, since the order of the keys decides what is written anew.
	return r.writers[side].Write(&benchfmt.Result{Config: append(r.config[side][:len(r.config[side]):len(r.config[side])],
		res.Config...), Name: res.Name, Iters: res.Iters, Values: res.Values})
}

func (r *rawFiles) close() error {
	var err error
	for _, f := range r.files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}
