package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/conformance/javapeer"
)

// TestTools has the cases of the command line on directories that a Java broker
// has open, was killed over, or closed.
func TestTools(t *testing.T) {
	var cases []testCase
	for _, checksum := range []bool{true, false} {
		for _, ours := range []bool{false, true} {
			how := tools{checksum: checksum, ours: ours}
			cases = append(cases,
				testCase{group: "h", name: how.name("verify-and-inspect"), run: func(e *env) error { return toolsBeside(e, how) }},
				testCase{group: "h", name: how.name("flipped-bit"), run: func(e *env) error { return toolsFlipped(e, how) }})
		}
	}
	runCases(t, cases)
}

// tools are the variations.
type tools struct {
	checksum bool // Java's records have a checksum over all of them
	ours     bool // the directory was ours first
}

func (h tools) name(what string) string {
	if !h.checksum {
		what += "-as-it-comes"
	}
	if h.ours {
		what += "-ours-before"
	}
	return what
}

// commandLine is the binary, built once.
var commandLine = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "conformance-cli-")
	if err != nil {
		return "", err
	}
	peers.Lock()
	peers.scratch = append(peers.scratch, dir)
	peers.Unlock()
	name := filepath.Join(dir, "stratalog")
	build := exec.Command("go", "build", "-o", name, "./cmd/stratalog")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w: %s", err, out)
	}
	return name, nil
})

// run runs a command with --json over dir, decodes what it prints, and returns its
// exit code.
func (e *env) run(dir string, into any, args ...string) (int, error) {
	name, err := commandLine()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(e.ctx, name, append(args, "--json", "--dir", dir)...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	if err := json.Unmarshal(out, into); err != nil {
		return 0, fmt.Errorf("%v: %w: %s %v", args, err, out, exit)
	}
	return cmd.ProcessState.ExitCode(), nil
}

// checked is what verify prints.
type checked struct {
	stratalog.VerifyReport
	OK       bool                `json:"ok"`
	Findings []stratalog.Finding `json:"findings"`
}

// clean runs verify, which must find nothing wrong, and so many records and
// entries; -1 is any number.
func (e *env) clean(dir string, records, unverified int64) error {
	var v checked
	code, err := e.run(dir, &v, "verify")
	if err != nil {
		return err
	}
	if code != 0 || !v.OK || records >= 0 && (v.Records != records || v.Unverified != unverified || v.Units != records) {
		return fmt.Errorf("verify: exit %d, %+v; want %d records, %d unverified", code, v, records, unverified)
	}
	return nil
}

// described runs inspect and compares what it says of the state, and of each queue.
func (e *env) described(dir string, unclean, broker bool, want snapshot) error {
	var in stratalog.Inspection
	code, err := e.run(dir, &in, "inspect")
	if err != nil {
		return err
	}
	if code != 0 || in.Unclean != unclean || in.Stranger != broker || in.SegmentSize != segmentSize {
		return fmt.Errorf("inspect: exit %d, %+v; want abort %v, broker %v", code, in, unclean, broker)
	}
	found := 0
	for _, q := range in.Queues {
		seen, ok := want[queueKey{q.Topic, q.Queue}]
		if ok && (q.Min != seen.min || q.Max != seen.max) {
			return fmt.Errorf("inspect: %+v, java [%d,%d)", q, seen.min, seen.max)
		}
		if ok {
			found++
		}
	}
	if found != len(want) {
		return fmt.Errorf("inspect: %d queues, java has %d: %+v", found, len(want), in.Queues)
	}
	return nil
}

// begin writes what stands in the directory before Java comes, and returns how
// Java is set up.
func (h tools) begin(e *env, dir string) (setup, int64, error) {
	s := usual()
	s.checksum = h.checksum
	if !h.ours {
		return s, 0, nil
	}
	all, _, err := e.weWrite(usual().options(dir), some(0, 100), nil, nil)
	return s, int64(len(all)), err
}

// unverified is of how many of so many records of Java's only the body is covered.
func (h tools) unverified(records int64) int64 {
	if h.checksum {
		return 0
	}
	return records
}

// toolsBeside: verify and inspect while Java has the directory open and is still or
// appends, after it was killed, and after an exit in order.
func toolsBeside(e *env, h tools) error {
	dir := e.dir()
	s, before, err := h.begin(e, dir)
	if err != nil {
		return err
	}
	var java snapshot
	total := before
	err = e.crashed(dir, s, func(store *javapeer.Store) error {
		put := func(from, n int) error {
			all, err := e.javaPuts(store, some(from, n))
			total += int64(len(all))
			return err
		}
		if err := errors.Join(put(1000, 150), store.Wait(e.ctx)); err != nil {
			return err
		}
		if java, err = javaSees(e.ctx, store); err != nil {
			return err
		}
		err := errors.Join(e.clean(dir, total, h.unverified(total-before)), e.described(dir, true, true, java))
		if err != nil {
			return fmt.Errorf("java is still: %w", err)
		}
		done := make(chan error, 1)
		go func() { done <- put(2000, 400) }()
		for appending := true; appending; {
			select {
			case err := <-done:
				if err != nil {
					return err
				}
				appending = false
			default:
			}
			if err := e.clean(dir, -1, 0); err != nil {
				return fmt.Errorf("java appends: %w", err)
			}
		}
		err = store.Wait(e.ctx)
		if err == nil {
			java, err = javaSees(e.ctx, store)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := errors.Join(e.clean(dir, total, h.unverified(total-before)), e.described(dir, true, true, java)); err != nil {
		return fmt.Errorf("java was killed: %w", err)
	}
	if _, err := e.javaReads(dir, s); err != nil {
		return err
	}
	if err := errors.Join(e.clean(dir, total, h.unverified(total-before)), e.described(dir, false, true, java)); err != nil {
		return fmt.Errorf("java closed: %w", err)
	}
	_, ours, err := e.opened(s.options(dir))
	if err = errors.Join(err, differs("ours", ours, java)); err != nil {
		return err
	}
	if err := errors.Join(e.clean(dir, total, h.unverified(total-before)), e.described(dir, false, false, java)); err != nil {
		return fmt.Errorf("we closed: %w", err)
	}
	return nil
}

// toolsFlipped: a bit is flipped in each field of records that Java wrote into a
// directory that it closed. Verify must end with exit code 1 and name the place.
func toolsFlipped(e *env, h tools) error {
	dir := e.dir()
	s, before, err := h.begin(e, dir)
	if err != nil {
		return err
	}
	all, _, err := e.javaWrites(dir, s, some(1000, 150))
	if err != nil {
		return err
	}
	total := before + int64(len(all))
	if err := e.clean(dir, total, h.unverified(int64(len(all)))); err != nil {
		return err
	}
	rng := e.random()
	tried := 0
	for _, m := range []sent{all[0], all[len(all)/2], all[len(all)-1]} {
		name := filepath.Join(dir, "commitlog", fmt.Sprintf("%020d", m.phy/segmentSize*segmentSize))
		whole, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		at := m.phy % segmentSize
		for _, field := range fieldsOf(whole[at:]) {
			bit := rng.IntN(8 * field.len)
			flipped := slices.Clone(whole)
			flipped[at+int64(field.at+bit/8)] ^= 0x80 >> (bit % 8)
			if err := os.WriteFile(name, flipped, 0o600); err != nil {
				return err
			}
			var v checked
			code, err := e.run(dir, &v, "verify")
			if err == nil && code != 1 {
				err = fmt.Errorf("exit %d", code)
			}
			if err = namesPlace(v.Findings, false, err, name, at, whole[at:]); err != nil {
				return fmt.Errorf("bit %d of the %s of the record at %d: %w", bit, field.name, m.phy, err)
			}
			tried++
		}
		if err := os.WriteFile(name, whole, 0o600); err != nil {
			return err
		}
	}
	e.note = fmt.Sprintf("%d bits", tried)
	return e.clean(dir, total, h.unverified(int64(len(all))))
}
