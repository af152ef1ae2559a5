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

// all runs commands of git, words that are separated by spaces, until one fails.
func (r repository) all(ctx context.Context, commands ...string) error {
	for _, c := range commands {
		if _, err := r.git(ctx, strings.Fields(c)...); err != nil {
			return err
		}
	}
	return nil
}

// put writes a file into the work tree.
func (r repository) put(name, text string) error {
	name = filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
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

// scriptFlags are those of the repository: an acceptance takes none of them from
// its caller. Time is not judged.
const scriptFlags = "--count 1\n--sample 2ms\n"

// scriptRun is one call of the script, with the repository's folder, and what it
// has to end with and say.
type scriptRun func(what string, code int, says []string, args ...string) error

// scriptCases tries tools/benchstat.sh on a module that is not ours.
func (t *tester) scriptCases(ctx context.Context) error {
	r := repository{filepath.Join(t.work, "repository")}
	err := r.put("perf/gate/flags", scriptFlags)
	if err == nil {
		err = r.all(ctx, "init -q", "config user.name gate", "config user.email gate@localhost", "config commit.gpgsign false")
	}
	for _, variant := range []string{"broken", "alloc", "same", "base"} {
		if err == nil {
			err = r.commit(ctx, variant)
		}
	}
	if err != nil {
		return err
	}
	// It is called by a link, as somebody may have it in a folder of programs.
	link := filepath.Join(t.work, "benchstat")
	if err := os.Symlink(t.script, link); err != nil {
		return err
	}
	in := func(dir string) scriptRun {
		return func(what string, code int, says []string, args ...string) error {
			args = append([]string{"--repo", dir, "--keep", filepath.Join(t.work, "kept")}, args...)
			o, err := command(exec.CommandContext(ctx, link, args...))
			if err == nil {
				t.report("benchstat.sh: "+what, o.differs(code, says...), o)
			}
			return errors.Join(err, ctx.Err())
		}
	}
	run := in(r.dir)
	steps := []func() error{
		func() error {
			return run("HEAD does not build", 2, []string{"undefined: nothing", "does not build"}, "--base", "same", "--head", "broken")
		},
		func() error { return run("an empty base", 2, []string{"--base is empty"}, "--base", "") },
		func() error {
			return run("a flag without sense", 2, []string{"invalid value"}, "--base", "same", "--count", "x")
		},
		func() error { return t.flags(ctx, r, run) },
		func() error { return t.acceptance(ctx, r, run) },
		func() error { return t.tampering(ctx, r, in) },
	}
	if !t.short {
		steps = append(steps,
			func() error {
				return run("a regression, found", 1, []string{"selftest.BenchmarkCopy allocs/op: 1 -> 2"}, "--base", "same", "--head", "alloc")
			},
			func() error { return run("nothing changed", 0, []string{"PASS"}, "--base", "same", "--head", "base") },
			func() error {
				return run("BASE does not build", 2, []string{"does not build"}, "--base", "broken", "--head", "same")
			},
			func() error {
				return run("no such revision", 2, []string{"there is no revision nowhere"}, "--base", "nowhere")
			},
			func() error { return run("an unknown flag", 2, []string{"unknown argument --foo"}, "--foo", "1") },
			func() error {
				return run("no such package", 2, []string{"no benchmark matches"}, "--base", "same", "--pkg", "./nothing")
			},
			func() error {
				return run("no such unit", 2, []string{"-hard allocs/opp: no benchmark"}, "--base", "same", "--hard", "allocs/opp")
			})
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return t.leftovers(ctx, r)
}

// flags tries a change that also changes how it is judged.
func (t *tester) flags(ctx context.Context, r repository, run scriptRun) error {
	err := r.put("perf/gate/flags", scriptFlags+"--hard written-B/payload-B\n--bench Encode\n")
	if err == nil {
		err = write(r.dir, "alloc")
	}
	if err == nil {
		err = run("HEAD's flags are not used", 1, []string{"selftest.BenchmarkCopy allocs/op: 1 -> 2", "HEAD: --bench Encode",
			"perf/gate/flags changed # why", "benchmark code changed in:\n  selftest: bench_test.go"}, "--base", "base")
	}
	if err == nil {
		err = write(r.dir, "base")
	}
	if err == nil {
		err = r.put("perf/LIMITS", "perf/gate/flags changed # only the encoder counts\n")
	}
	if err == nil && !t.short {
		err = run("HEAD's flags may differ", 0, []string{"ARE NOT THOSE OF BASE", "PASS", "not of HEAD"}, "--base", "base")
	}
	return errors.Join(err, os.Remove(filepath.Join(r.dir, "perf/LIMITS")), r.all(ctx, "checkout -q -- ."))
}

// acceptance tries the baseline: it is moved by --accept, in a commit of its own.
func (t *tester) acceptance(ctx context.Context, r repository, run scriptRun) error {
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
	for _, flag := range []string{"--hard allocs/opp", "--bench Encode", "--quick", "-- -limits x"} {
		args := append([]string{"--accept"}, strings.Fields(flag)...)
		if err := run("an acceptance that looks away: "+flag, 2, []string{"--accept does not take --"}, args...); err != nil {
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
	return nil
}

// tampering moves the baseline by all means but --accept, and tries clones.
func (t *tester) tampering(ctx context.Context, r repository, in func(dir string) scriptRun) error {
	run := in(r.dir)
	good, err := r.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	same, err := r.git(ctx, "rev-parse", "same")
	if err != nil {
		return err
	}
	current, err := r.git(ctx, "rev-parse", "HEAD^")
	if err != nil {
		return err
	}
	// line is one of the history that nobody measured.
	line := func(commit string) string {
		return `{"commit":"` + commit + `","base":"` + current + `","benchmarks":[]}` + "\n"
	}
	history, err := os.ReadFile(filepath.Join(r.dir, "perf", "history.jsonl"))
	if err != nil {
		return err
	}
	bogus := strings.Repeat("0", 40)
	for _, c := range []struct {
		what              string
		baseline, history string // "" leaves them
		code              bool   // there is code in the same commit
		commit, long      bool
		says              string
		flags             []string
	}{
		{"no hash", "main\n", "", false, true, false, "does not hold the hash", nil},
		{"no hash, where a clone may lack the history", "main\n", "", false, true, false, "does not hold the hash", []string{"--or-itself"}},
		{"changed by hand", same + "\n", string(history) + line(same), false, false, true, "was changed by hand", nil},
		{"moved in a commit of its own, by hand", same + "\n", "", false, true, false, "not what the last line", nil},
		{"with its line, and code", current + "\n#\n", string(history) + line(current), true, true, false, "along with other files", nil},
		{"with a history made anew", same + "\n", line(same), false, true, true, "does not add one line", nil},
		{"a history that was changed alone", "", string(history) + line(current), false, true, true, "a commit that did not move", nil},
		{"a commit that is not there", bogus + "\n", string(history) + line(bogus), false, true, false, "is not in this clone, although", []string{"--or-itself"}},
	} {
		if c.long && t.short {
			continue
		}
		for file, text := range map[string]string{"perf/BASELINE": c.baseline, "perf/history.jsonl": c.history} {
			if text != "" && err == nil {
				err = r.put(file, text)
			}
		}
		if c.code && err == nil {
			err = r.put("code.go", "package selftest\n")
		}
		if c.commit && err == nil {
			err = r.all(ctx, "add -A", "commit -q -m tampered")
		}
		if err == nil {
			err = run("the baseline: "+c.what, 2, []string{c.says}, c.flags...)
		}
		if err == nil {
			err = r.all(ctx, "reset -q --hard "+good)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(t.removed(ctx, r, run, good), t.clones(ctx, r, in))
}

// removed takes the baseline away, and squashes an acceptance with code.
func (t *tester) removed(ctx context.Context, r repository, run scriptRun, good string) error {
	err := r.all(ctx, "rm -q perf/BASELINE", "commit -q -m removed")
	if err == nil {
		err = run("the baseline is removed, and a new one has no reason", 2, []string{"there is no perf/BASELINE", "say with --reason"}, "--accept")
	}
	if err == nil {
		// As a squash of a branch with an acceptance leaves it.
		err = r.all(ctx, "reset -q --hard "+good, "reset -q --soft HEAD~2", "commit -q -m squashed")
	}
	if err == nil {
		err = run("an acceptance was squashed", 2, []string{"along with other files"})
	}
	if err == nil {
		err = run("anew, for no reason", 2, []string{"--anew goes with --accept"}, "--accept", "--anew")
	}
	if err == nil && !t.short {
		err = run("a squash is put right", 0, []string{"judged against the last good baseline", "perf/BASELINE is"}, "--accept", "--reason", "it was squashed")
		if err == nil {
			err = run("after that", 0, []string{"PASS"})
		}
		if err == nil {
			err = run("a baseline anew", 0, []string{"HEAD IS JUDGED AGAINST ITSELF", "perf/BASELINE is"}, "--accept", "--anew", "--reason", "a new Go")
		}
	}
	return errors.Join(err, r.all(ctx, "reset -q --hard "+good))
}

// clones tries those that lack the history: a shallow one, and one whose history
// was made anew.
func (t *tester) clones(ctx context.Context, r repository, in func(dir string) scriptRun) error {
	shallow, squashed := filepath.Join(t.work, "shallow"), filepath.Join(t.work, "squashed")
	err := r.all(ctx, "clone -q --depth 1 file://"+r.dir+" "+shallow)
	if err == nil {
		err = in(shallow)("a shallow clone", 2, []string{"has to fetch the history"})
	}
	if err == nil {
		err = in(shallow)("a shallow clone, judged against itself", 0, []string{"THIS CLONE LACKS THE HISTORY", "PASS"}, "--or-itself")
	}
	if err == nil && !t.short {
		err = r.all(ctx, "clone -q file://"+shallow+" "+squashed)
		s := repository{squashed}
		if err == nil {
			err = errors.Join(os.RemoveAll(filepath.Join(squashed, ".git")), s.all(ctx, "init -q", "add -A", "commit -q -m all"))
		}
		if err == nil {
			err = in(squashed)("a history made anew, judged against itself", 0, []string{"THIS CLONE LACKS THE HISTORY", "PASS"}, "--or-itself")
		}
	}
	return err
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
