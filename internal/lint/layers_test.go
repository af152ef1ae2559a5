package lint

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// layer says what the packages that it names may import, beside the standard
// library. Packages of this module are named by their folder; a trailing /...
// takes in what lies below.
type layer struct {
	packages string
	own      []string
	others   []string
}

const anyInternal = "internal/..."

// layers is the graph of docs/ARCHITECTURE.md. The first row that names a
// package counts, and each package needs one.
var layers = []layer{
	{"contract", nil, nil},
	{"codec", nil, nil},
	{"gen", nil, []string{"golang.org/x/tools/..."}},
	{"gen/cmd/...", []string{"gen"}, nil},

	{"internal/invariant", nil, nil},
	{"internal/clock", nil, nil},
	{"internal/lint", nil, nil},
	{"internal/task", []string{"internal/invariant", "internal/clock"}, nil},
	{"internal/vfs", []string{"internal/invariant", "internal/clock"}, []string{"golang.org/x/sys/..."}},
	{"internal/blockcache", []string{"internal/invariant"}, []string{"github.com/dgraph-io/ristretto/..."}},
	{"internal/dump", []string{"codec", "contract", "internal/vfs"}, nil},
	{"internal/testutil/...", []string{"codec", "contract", anyInternal}, nil},

	{"mmap", []string{anyInternal}, nil},
	{"uring", []string{anyInternal}, []string{"golang.org/x/sys/..."}},

	{"commitlog", []string{"codec", "mmap", "uring", "contract", anyInternal}, []string{"github.com/valyala/bytebufferpool"}},
	{"dispatch", []string{"contract", "codec", anyInternal}, nil},
	{"cq", []string{"mmap", "codec", "contract", anyInternal}, nil},
	{"index", []string{"mmap", "codec", "contract", anyInternal}, nil},
	{"rocksdb", []string{"codec", "contract", anyInternal}, []string{"github.com/linxGnu/grocksdb"}},
	{"timer", []string{"codec", "contract", anyInternal}, nil},
	{"txn", []string{"codec", "contract", anyInternal}, nil},
	{"tiered/...", []string{"tiered/...", "codec", "contract", anyInternal}, nil},

	{".", []string{"contract", "codec", "mmap", "uring", "commitlog", "dispatch", "cq", "index", "timer", "txn",
		"tiered/...", anyInternal}, nil},
	{"perf/...", []string{".", "perf/...", "contract", "codec", "mmap", "uring", "commitlog", "dispatch", "cq", "index",
		"timer", "txn", "tiered/...", anyInternal}, []string{"github.com/HdrHistogram/hdrhistogram-go",
		"github.com/tsenart/vegeta/v12/lib/plot", "go.yaml.in/yaml/v4", "golang.org/x/sys/..."}},
	{"conformance/...", []string{".", "conformance/...", "perf/...", "codec", "contract", anyInternal}, nil},
	{"cmd/...", []string{".", "cmd/...", "perf/...", "contract", "codec", "mmap", "uring", "commitlog", "dispatch", "cq",
		"index", "rocksdb", "timer", "txn", "tiered/...", anyInternal}, []string{"github.com/spf13/cobra",
		"github.com/spf13/pflag", "github.com/vbauerster/mpb/...", "golang.org/x/sys/..."}},
}

// withFlags may take flags of a command line, withTesting import testing, outside
// of tests.
var (
	withFlags   = []string{"cmd/...", "gen/cmd/...", "perf/...", "conformance/..."}
	withTesting = []string{"internal/testutil/...", "perf/..."}
)

// siblings never import each other, nor dispatch, not even in tests: the root
// wires them.
var siblings = []string{"commitlog", "cq", "index", "rocksdb", "tiered/..."}

func layerOf(dir string) (layer, bool) {
	for _, l := range layers {
		if matches(l.packages, dir) {
			return l, true
		}
	}
	return layer{}, false
}

func TestLayers(t *testing.T) {
	m := load(t)
	for _, dir := range m.dirs() {
		l, ok := layerOf(dir)
		if !ok {
			t.Errorf("%s: the package stands in no layer; add a row to layers and to docs/ARCHITECTURE.md", dir)
			continue
		}
		for _, f := range m.packages[dir].files {
			if f.test {
				continue
			}
			for _, path := range f.imports() {
				if why := l.forbids(dir, path); why != "" {
					t.Errorf("%s imports %s: %s", f.path, path, why)
				}
			}
		}
	}
}

// forbids tells why the package in dir, of layer l, may not import path.
func (l layer) forbids(dir, path string) string {
	if own, ok := ownDir(path); ok {
		if !matchesAny(l.own, own) {
			return "not in the list of its layer"
		}
		return ""
	}
	switch {
	case path == "C":
		if dir != "rocksdb" {
			return "only rocksdb may use cgo"
		}
	case path == "flag" && !matchesAny(withFlags, dir), path == "testing" && !matchesAny(withTesting, dir):
		return "not outside of tests"
	case standard(path):
	case !matchesAny(l.others, path):
		return "not in the list of its layer"
	}
	return ""
}

// The strata and the log know nothing of one another.
func TestSiblings(t *testing.T) {
	m := load(t)
	for _, dir := range m.dirs() {
		if !matchesAny(siblings, dir) {
			continue
		}
		for _, f := range m.packages[dir].files {
			for _, path := range f.imports() {
				own, ok := ownDir(path)
				if !ok {
					continue
				}
				other := matchesAny(siblings, own) && strings.Split(own, "/")[0] != strings.Split(dir, "/")[0]
				if other || own == "dispatch" {
					t.Errorf("%s imports %s; the consumer declares an interface and the root wires them", f.path, own)
				}
			}
		}
	}
}

// cgo is brought in by the program that wants RocksDB, never by the store.
func TestRootNeedsNoCgo(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}}{{if .CgoFiles}} cgo{{end}}", modulePath)
	cmd.Dir = load(t).root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	seen := false
	for line := range strings.Lines(string(out)) {
		path, cgo, _ := strings.Cut(strings.TrimSpace(line), " ")
		seen = seen || path == modulePath
		if cgo != "" || path == "runtime/cgo" || path == "C" {
			t.Errorf("the root depends on %s, which needs cgo", path)
		}
	}
	if !seen {
		t.Fatalf("go list did not name the root:\n%s", out)
	}
}
