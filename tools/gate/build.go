package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// testPackage is a package with benchmarks, compiled.
type testPackage struct {
	// Path is the import path, Key its short form in reports and in
	// perf/LIMITS: the folder below the module, and for the module's own
	// folder the last element of its path.
	Path string `json:"path"`
	Key  string `json:"key"`
	// Dir is the source folder, where the benchmarks run; Binary the program.
	Dir    string `json:"dir"`
	Binary string `json:"binary"`
	// Tests holds a digest of each of its test files, by name.
	Tests map[string]string `json:"tests"`
}

// buildInfo is what a build leaves in its folder.
type buildInfo struct {
	Commit   string        `json:"commit"`
	Go       string        `json:"go"`
	Patterns string        `json:"patterns"`
	Packages []testPackage `json:"packages"`
}

const buildFile = "packages.json"

// readBuild reads what buildCommand left in dir.
func readBuild(dir string) (buildInfo, error) {
	var info buildInfo
	b, err := os.ReadFile(filepath.Join(dir, buildFile))
	if err == nil {
		err = json.Unmarshal(b, &info)
	}
	return info, err
}

func buildCommand(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("gate build", flag.ContinueOnError)
	dir := flags.String("dir", ".", "the module, or a folder in it")
	out := flags.String("out", "", "where the programs go")
	pkgs := flags.String("pkg", "./...", "package patterns, separated by spaces")
	commit := flags.String("commit", "", "what is built, for the reports")
	if err := parseFlags(flags, args, stderr); err != nil {
		return err
	}
	if *out == "" || flags.NArg() > 0 {
		return errors.New("gate build: -out is missing, or an argument too many")
	}
	info, err := build(ctx, *dir, *out, strings.Fields(*pkgs))
	if err != nil {
		return err
	}
	info.Commit, info.Patterns = *commit, *pkgs
	b, err := json.MarshalIndent(info, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(*out, buildFile), b, 0o644)
}

// build compiles the test program of every package that has benchmarks. A
// pattern that matches nothing is no error: the other side may have it.
func build(ctx context.Context, dir, out string, patterns []string) (buildInfo, error) {
	var info buildInfo
	out, err := filepath.Abs(out)
	if err == nil {
		err = os.MkdirAll(out, 0o755)
	}
	if err != nil {
		return info, err
	}
	version, err := goCommand(ctx, dir, "env", "GOVERSION")
	if err != nil {
		return info, err
	}
	info.Go = strings.TrimSpace(string(version))
	listed, err := listPackages(ctx, dir, patterns)
	if err != nil {
		return info, err
	}
	for i, p := range listed {
		digests, found, err := p.tests()
		if err != nil {
			return info, err
		}
		if !found {
			continue
		}
		// The path of a program is part of what a process begins with, so it
		// has the same length whatever is measured.
		binary := filepath.Join(out, fmt.Sprintf("%04d.test", i))
		if _, err := goCommand(ctx, dir, "test", "-c", "-trimpath", "-o", binary, p.ImportPath); err != nil {
			return info, err
		}
		info.Packages = append(info.Packages, testPackage{Path: p.ImportPath, Key: p.key(), Dir: p.Dir, Binary: binary,
			Tests: digests})
	}
	return info, nil
}

// listedPackage is what go list tells of a package.
type listedPackage struct {
	Dir          string
	ImportPath   string
	Module       *struct{ Path string }
	TestGoFiles  []string
	XTestGoFiles []string
	Error        *struct{ Err string }
}

func listPackages(ctx context.Context, dir string, patterns []string) ([]listedPackage, error) {
	args := append([]string{"list", "-e", "-json=Dir,ImportPath,Module,TestGoFiles,XTestGoFiles,Error", "--"}, patterns...)
	b, err := goCommand(ctx, dir, args...)
	if err != nil {
		return nil, err
	}
	var list []listedPackage
	decoder := json.NewDecoder(bytes.NewReader(b))
	for {
		var p listedPackage
		if err := decoder.Decode(&p); err == io.EOF {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if p.Error != nil {
			// A folder that is not there has no tests. Any other error is one.
			if tests, _ := filepath.Glob(filepath.Join(p.Dir, "*_test.go")); p.Dir != "" && len(tests) > 0 {
				return nil, fmt.Errorf("go list %s: %s", p.ImportPath, p.Error.Err)
			}
			continue
		}
		list = append(list, p)
	}
}

var benchmarkFunc = regexp.MustCompile(`(?m)^func Benchmark`)

// tests returns the digests of the test files, and whether they hold benchmarks.
func (p listedPackage) tests() (map[string]string, bool, error) {
	digests, found := map[string]string{}, false
	for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		b, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return nil, false, err
		}
		digests[name] = fmt.Sprintf("%x", sha256.Sum256(b))
		found = found || benchmarkFunc.Match(b)
	}
	return digests, found, nil
}

// editedTests names the packages of both sides whose test files differ, and the
// files: a benchmark that measures less is no faster code.
func editedTests(base, head buildInfo) []string {
	var list []string
	for _, b := range base.Packages {
		for _, h := range head.Packages {
			if b.Path != h.Path {
				continue
			}
			names := map[string]bool{}
			for _, files := range []map[string]string{b.Tests, h.Tests} {
				for name := range files {
					if b.Tests[name] != h.Tests[name] {
						names[name] = true
					}
				}
			}
			if len(names) > 0 {
				list = append(list, b.Key+": "+strings.Join(slices.Sorted(maps.Keys(names)), ", "))
			}
		}
	}
	return list
}

func (p listedPackage) key() string {
	if p.Module == nil {
		return p.ImportPath
	}
	if key, ok := strings.CutPrefix(p.ImportPath, p.Module.Path+"/"); ok {
		return key
	}
	return path.Base(p.Module.Path)
}

// goCommand runs the go command in dir and returns what it prints.
func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, tail(stderr.String()+stdout.String()))
	}
	return stdout.Bytes(), nil
}

// tail returns the last lines of a log.
func tail(log string) string {
	const most = 30
	lines := strings.Split(strings.TrimRight(log, "\n"), "\n")
	if len(lines) > most {
		lines = append([]string{"..."}, lines[len(lines)-most:]...)
	}
	return strings.Join(lines, "\n")
}
