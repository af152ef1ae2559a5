package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// repository is a git repository whose tags are variants of the module.
type repository struct{ dir string }

func (r repository) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", r.dir, "-c", "user.name=gate", "-c", "user.email=gate@localhost",
		"-c", "commit.gpgsign=false"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// commit makes the work tree a variant, and tags it.
func (r repository) commit(ctx context.Context, variant string) error {
	err := write(r.dir, variant)
	for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "--allow-empty", "-m", variant}, {"tag", "-f", variant}} {
		if err == nil {
			_, err = r.git(ctx, args...)
		}
	}
	return err
}

// scriptCases tries tools/benchstat.sh on a module that is not ours.
func (t *tester) scriptCases(ctx context.Context) error {
	r := repository{filepath.Join(t.work, "repository")}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return err
	}
	_, err := r.git(ctx, "init", "-q")
	for _, setting := range []string{"user.name", "user.email"} {
		if err == nil {
			_, err = r.git(ctx, "config", setting, "gate@localhost")
		}
	}
	for _, variant := range []string{"broken", "alloc", "same", "base"} {
		if err == nil {
			err = r.commit(ctx, variant)
		}
	}
	if err != nil {
		return err
	}
	run := func(what string, code int, says []string, args ...string) error {
		args = append([]string{"--repo", r.dir, "--keep", filepath.Join(t.work, "kept"), "--count", "1", "--sample", "2ms"}, args...)
		o, err := command(exec.CommandContext(ctx, t.script, args...))
		if err == nil {
			t.report("benchstat.sh: "+what, o.differs(code, says...), o)
		}
		return errors.Join(err, ctx.Err())
	}
	steps := []func() error{
		func() error {
			return run("HEAD does not build", 2, []string{"undefined: nothing", "does not build"}, "--base", "same", "--head", "broken")
		},
		func() error { return t.acceptance(ctx, r, run) },
	}
	if !t.short {
		steps = append(steps,
			func() error {
				return run("a regression, found", 1, []string{"selftest.BenchmarkCopy allocs/op: 1 -> 2"}, "--base", "same", "--head", "alloc")
			},
			func() error { return run("nothing changed", 0, []string{"PASS"}, "--base", "same") },
			func() error {
				return run("BASE does not build", 2, []string{"does not build"}, "--base", "broken", "--head", "same")
			},
			func() error {
				return run("no such revision", 2, []string{"there is no revision nowhere"}, "--base", "nowhere")
			},
			func() error { return run("an unknown flag", 2, []string{"unknown argument --foo"}, "--foo", "1") },
			func() error {
				return run("no such package", 2, []string{"no benchmark matches"}, "--base", "same", "--pkg", "./nothing")
			})
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return t.leftovers(ctx, r)
}

// acceptance tries the baseline: it is moved by --accept, in a commit of its own,
// and by nothing else.
func (t *tester) acceptance(ctx context.Context, r repository, run func(string, int, []string, ...string) error) error {
	if err := run("no baseline", 2, []string{"there is no perf/BASELINE"}); err != nil {
		return err
	}
	if err := run("the first baseline", 0, []string{"perf/BASELINE is"}, "--accept"); err != nil {
		return err
	}
	if err := r.commit(ctx, "alloc"); err != nil {
		return err
	}
	if !t.short {
		if err := run("a regression against the baseline", 1, []string{"1 -> 2 allocs/op"}); err != nil {
			return err
		}
		if err := run("a regression is not accepted", 2, []string{"say why with --reason"}, "--accept"); err != nil {
			return err
		}
	}
	if err := run("a regression, accepted for a reason", 0, []string{"perf/BASELINE is"}, "--accept", "--reason", "a copy for the reader"); err != nil {
		return err
	}
	why, err := r.accepted(ctx)
	if err != nil {
		return err
	}
	t.report("benchstat.sh: what an acceptance leaves", why, outcome{})
	if err := os.WriteFile(filepath.Join(r.dir, "perf", "BASELINE"), []byte(strings.Repeat("0", 40)+"\n"), 0o644); err != nil {
		return err
	}
	if t.short {
		_, err := r.git(ctx, "checkout", "-q", "--", ".")
		return err
	}
	if err := run("the baseline names no commit", 2, []string{"is not in this clone"}); err != nil {
		return err
	}
	same, err := r.git(ctx, "rev-parse", "same")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.dir, "perf", "BASELINE"), []byte(same+"\n"), 0o644); err != nil {
		return err
	}
	if err := run("the baseline was changed by hand", 2, []string{"changed by hand"}); err != nil {
		return err
	}
	if err := r.commit(ctx, "base"); err != nil {
		return err
	}
	return run("the baseline was moved along with code", 2, []string{"in a commit of its own"})
}

// accepted looks at the last commit and at the history that an acceptance left.
func (r repository) accepted(ctx context.Context) (string, error) {
	files, err := r.git(ctx, "show", "--format=", "--name-only", "HEAD")
	if err != nil {
		return "", err
	}
	if files != "perf/BASELINE\nperf/history.jsonl" {
		return "the commit changes " + files, nil
	}
	message, err := r.git(ctx, "log", "-1", "--format=%B")
	if err != nil {
		return "", err
	}
	for _, text := range []string{"as the baseline", "Reason: a copy for the reader", "selftest.BenchmarkEncode", "selftest.BenchmarkCopy allocs/op: 1 -> 2"} {
		if !strings.Contains(message, text) {
			return fmt.Sprintf("the message does not say %q:\n%s", text, message), nil
		}
	}
	b, err := os.ReadFile(filepath.Join(r.dir, "perf", "history.jsonl"))
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	parent, err := r.git(ctx, "rev-parse", "HEAD^")
	if err != nil {
		return "", err
	}
	var line struct {
		Commit, Base, Date, Go, Kernel, Reason string
		Benchmarks                             []struct {
			Benchmark, Unit   string
			Base, Head, Ratio float64
		}
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &line); err != nil {
		return err.Error(), nil
	}
	if len(lines) != 2 || line.Commit != parent || line.Base == parent || line.Date == "" || line.Go == "" || line.Reason == "" {
		return fmt.Sprintf("the history holds %d lines, the last one is %s", len(lines), lines[len(lines)-1]), nil
	}
	for _, e := range line.Benchmarks {
		if e.Benchmark == "selftest.BenchmarkCopy" && e.Unit == "allocs/op" && e.Base == 1 && e.Head == 2 && e.Ratio == 2 {
			return "", nil
		}
	}
	return "the history does not hold the allocations: " + lines[len(lines)-1], nil
}

// leftovers fails if a work tree was not removed.
func (t *tester) leftovers(ctx context.Context, r repository) error {
	trees, err := r.git(ctx, "worktree", "list")
	if err != nil {
		return err
	}
	why := ""
	if strings.Contains(trees, "\n") {
		why = trees
	}
	t.report("benchstat.sh: no work tree is left", why, outcome{})
	return nil
}
