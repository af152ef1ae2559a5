package load

import (
	"runtime"
	"runtime/debug"
)

// Environment describes the machine and this program, for a log in dir.
func Environment(dir string) Env {
	e := Env{Cores: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0), Go: runtime.Version(), Arch: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		e.Version = info.Main.Version
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				e.Commit = s.Value + e.Commit
			case s.Key == "vcs.modified" && s.Value == "true":
				e.Commit += "+dirty"
			}
		}
	}
	describeSystem(&e, dir)
	return e
}
