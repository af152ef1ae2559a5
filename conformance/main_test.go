package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stratalog/stratalog/conformance/javapeer"
)

// The environment says how much is run, and in which role this process is.
const (
	modeVar = "STRATALOG_CONFORMANCE" // short or full; empty skips what needs Java
	seedVar = "STRATALOG_CONFORMANCE_SEED"
)

// mode is how much is run.
func mode() string { return os.Getenv(modeVar) }

// counts are the numbers of rounds of a mode.
type counts struct{ alternations, kills, beside int }

func modeCounts() counts {
	if mode() == "full" {
		return counts{alternations: 50, kills: 100, beside: 40}
	}
	return counts{alternations: 5, kills: 5, beside: 5}
}

// root is the module's directory.
const root = ".."

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		if err := runRole(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if err := closePeers(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	results.print()
	if err := results.enough(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// needsJava skips the test unless this is a conformance run.
func needsJava(t *testing.T) {
	t.Helper()
	switch mode() {
	case "short", "full":
	case "":
		t.Skipf("needs Java and takes minutes: make conformance, or set %s to short or full", modeVar)
	default:
		t.Fatalf("%s is %q, it must be short or full", modeVar, mode())
	}
}

// The shared process of each version, started when it is first needed.
var peers struct {
	sync.Mutex
	running map[string]*javapeer.Process
	scratch []string
}

// peer returns the shared process of version. It outlives the test.
func peer(ctx context.Context, version string) (*javapeer.Process, error) {
	peers.Lock()
	defer peers.Unlock()
	if p := peers.running[version]; p != nil {
		return p, nil
	}
	scratch, err := os.MkdirTemp("", "conformance-peer-")
	if err != nil {
		return nil, err
	}
	peers.scratch = append(peers.scratch, scratch)
	p, err := javapeer.Start(ctx, root, version, scratch)
	if err != nil {
		return nil, err
	}
	if peers.running == nil {
		peers.running = map[string]*javapeer.Process{}
	}
	peers.running[version] = p
	return p, nil
}

func closePeers() error {
	peers.Lock()
	defer peers.Unlock()
	var failed error
	for _, p := range peers.running {
		if err := p.Close(); err != nil {
			failed = fmt.Errorf("%s: %w\n%s", p.Version, err, p.Log())
		}
	}
	for _, dir := range peers.scratch {
		_ = os.RemoveAll(dir)
	}
	return failed
}

// env is what a case runs in.
type env struct {
	t       *testing.T
	ctx     context.Context
	version string
	java    *javapeer.Process
	// logged are lines for the table's last column.
	note string
}

// dir returns a new empty directory.
func (e *env) dir() string {
	e.t.Helper()
	return filepath.Join(e.t.TempDir(), "store")
}

// A testCase is run once for each version.
type testCase struct {
	group string // a to h, as in the list of what is shown
	name  string
	run   func(e *env) error
	// only runs the case for one version.
	only string
}

// patience bounds one case.
const patience = 4 * time.Minute

// fullPatience bounds one case of a full run.
const fullPatience = 40 * time.Minute

// runCases runs all cases for all versions, side by side: most of their time they
// wait for a Java store to shut down.
func runCases(t *testing.T, cases []testCase) {
	t.Helper()
	needsJava(t)
	names := map[string]bool{}
	for _, c := range cases {
		if names[c.group+c.name] {
			t.Fatalf("two cases are named %s/%s", c.group, c.name)
		}
		names[c.group+c.name] = true
	}
	for _, version := range javapeer.Versions {
		for _, c := range cases {
			if c.only != "" && c.only != version {
				continue
			}
			t.Run(version+"/"+c.group+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				runCase(t, version, c)
			})
		}
	}
}

func runCase(t *testing.T, version string, c testCase) {
	limit := patience
	if mode() == "full" {
		limit = fullPatience
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	java, err := peer(ctx, version)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	e := &env{t: t, ctx: ctx, version: version, java: java}
	err = c.run(e)
	r := result{group: c.group, name: c.name, version: version, took: time.Since(began), note: e.note}
	if r.state = "pass"; err != nil {
		r.state = "FAIL"
		t.Error(err)
	}
	results.add(r)
}

// result is a row of the table.
type result struct {
	group, name, version, state, note string
	took                              time.Duration
}

type table struct {
	sync.Mutex
	rows []result
}

var results table

func (t *table) add(r result) {
	t.Lock()
	defer t.Unlock()
	t.rows = append(t.rows, r)
}

// print writes the table: a line a case, a column a version.
func (t *table) print() {
	t.Lock()
	defer t.Unlock()
	if len(t.rows) == 0 {
		return
	}
	byCase := map[string]map[string]result{}
	counted := map[string]int{}
	var names []string
	for _, r := range t.rows {
		name := r.group + "/" + r.name
		if byCase[name] == nil {
			byCase[name] = map[string]result{}
			names = append(names, name)
		}
		byCase[name][r.version] = r
		counted[r.state]++
	}
	sort.Strings(names)
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-40s", "case")
	for _, v := range javapeer.Versions {
		fmt.Fprintf(&b, " %-16s", v)
	}
	b.WriteString("\n")
	for _, name := range names {
		fmt.Fprintf(&b, "%-40s", name)
		var notes []string
		for _, v := range javapeer.Versions {
			r, ok := byCase[name][v]
			if !ok {
				fmt.Fprintf(&b, " %-16s", "-")
				continue
			}
			fmt.Fprintf(&b, " %-7s %7.1fs", r.state, r.took.Seconds())
			if r.note != "" && !slices.Contains(notes, r.note) {
				notes = append(notes, r.note)
			}
		}
		if len(notes) > 0 {
			b.WriteString("  " + strings.Join(notes, "; "))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%d cases, %d runs:", len(names), len(t.rows))
	for _, state := range []string{"pass", "FAIL"} {
		if n := counted[state]; n > 0 {
			fmt.Fprintf(&b, " %d %s", n, state)
		}
	}
	b.WriteString("\n")
	fmt.Print(b.String())
}

// leastVar is how many cases must pass for each version. It is set for a run of
// all of them.
const leastVar = "STRATALOG_CONFORMANCE_LEAST"

// enough prints how many cases passed for each version, and tells whether these
// are as many as must.
func (t *table) enough() error {
	t.Lock()
	defer t.Unlock()
	least, _ := strconv.Atoi(os.Getenv(leastVar))
	if len(t.rows) == 0 && least == 0 {
		return nil
	}
	passed := map[string]int{}
	for _, r := range t.rows {
		if r.state == "pass" {
			passed[r.version]++
		}
	}
	var few error
	for _, v := range javapeer.Versions {
		fmt.Printf("%s: %d cases pass, at least %d must\n", v, passed[v], least)
		if passed[v] < least {
			few = fmt.Errorf("too few cases pass for %s: %d of %d", v, passed[v], least)
		}
	}
	return few
}
