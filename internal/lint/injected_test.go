package lint

import (
	"go/ast"
	"strings"
	"testing"
)

// core are the packages that take time, randomness, files and goroutines from
// their owner, so that tests can replay every run and cut the power anywhere.
var core = []string{".", "contract", "codec", "mmap", "uring", "commitlog", "dispatch", "cq", "index", "timer", "txn"}

// exception allows one use in one file.
type exception struct{ file, use, reason string }

var exceptions = []exception{
	{"lifecycle.go", "os.Getpid", "the abort file carries the process id, as other brokers write it"},
	{"commitlog/sidecar.go", "crypto/rand", "a new log draws its identity once"},
	{"commitlog/fence.go", "syscall.ENOSPC", "an error number, to tell a full disk from a broken one"},
	{"commitlog/fence.go", "syscall.EDQUOT", "an error number, as before"},
	{"errno.go", "syscall.ENOSPC", "an error number, as before"},
	{"close.go", "go", "a step of Close that hangs is left behind at the deadline, and the report names it"},
	{"close.go", "context.WithTimeout", "the deadline of Close is one of real time, and so is the grace behind it"},
	{"commitlog/log.go", "go", "lockWithin: a mutex cannot be waited for with a deadline; the goroutine ends with its holder"},
}

var used = map[exception]bool{}

func allowed(file, use string) bool {
	for _, e := range exceptions {
		if e.file == file && e.use == use {
			used[e] = true
			return true
		}
	}
	return false
}

// bannedImports have no place in the core at all.
var bannedImports = map[string]string{
	"math/rand":    "randomness comes from the owner",
	"math/rand/v2": "randomness comes from the owner",
	"crypto/rand":  "randomness comes from the owner",
	"io/ioutil":    "files come from internal/vfs",
	"os/exec":      "the store starts no process",
	"os/signal":    "signals belong to the program",
	"log":          "the store reports, it does not log",
	"log/slog":     "the store reports, it does not log",
	"net":          "the store opens no connection",
	"net/http":     "the store opens no connection",
}

// bannedUses are the selectors that go around the owner. "*" stands for all of
// a package.
var bannedUses = map[string]map[string]string{
	"os":      {"*": "files come from internal/vfs"},
	"syscall": {"*": "system calls belong to internal/vfs"},
	"context": {
		"WithTimeout": "time comes from internal/clock", "WithDeadline": "time comes from internal/clock",
		"WithTimeoutCause": "time comes from internal/clock", "WithDeadlineCause": "time comes from internal/clock",
	},
	"time": {
		"Now": "time comes from internal/clock", "Since": "time comes from internal/clock", "Until": "time comes from internal/clock",
		"Sleep": "time comes from internal/clock", "After": "time comes from internal/clock", "AfterFunc": "time comes from internal/clock",
		"NewTimer": "time comes from internal/clock", "NewTicker": "time comes from internal/clock", "Tick": "time comes from internal/clock",
	},
}

func TestCoreIsInjected(t *testing.T) {
	m := load(t)
	for _, dir := range core {
		pkg := m.packages[dir]
		if pkg == nil {
			continue // not built yet
		}
		for _, f := range pkg.files {
			if !f.test {
				checkInjected(t, m, f)
			}
		}
	}
	for _, e := range exceptions {
		if !used[e] {
			t.Errorf("the exception of %s for %s is not needed any more", e.file, e.use)
		}
	}
}

func checkInjected(t *testing.T, m *module, f *sourceFile) {
	names := map[string]string{} // local name to import path
	for _, path := range f.imports() {
		if why, banned := bannedImports[path]; banned && !allowed(f.path, path) {
			t.Errorf("%s imports %s: %s", f.path, path, why)
		}
		names[path[strings.LastIndex(path, "/")+1:]] = path
	}
	for _, spec := range f.ast.Imports {
		if spec.Name != nil {
			names[spec.Name.Name] = strings.Trim(spec.Path.Value, `"`)
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if !allowed(f.path, "go") {
				t.Errorf("%s: go statement; what runs belongs to the task group of the owner", m.at(n))
			}
		case *ast.SelectorExpr:
			id, ok := n.X.(*ast.Ident)
			if !ok {
				return true
			}
			path := names[id.Name]
			why, banned := bannedUses[path][n.Sel.Name]
			if all, ok := bannedUses[path]["*"]; ok {
				why, banned = all, true
			}
			if banned && !allowed(f.path, path+"."+n.Sel.Name) {
				t.Errorf("%s: %s.%s: %s", m.at(n), path, n.Sel.Name, why)
			}
		}
		return true
	})
}
