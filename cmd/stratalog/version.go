package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stratalog/stratalog/contract"
)

// version is set by the linker for a release.
var version = ""

// versionInfo is what version prints.
type versionInfo struct {
	Version string   `json:"version"`
	Commit  string   `json:"commit,omitempty"`
	Go      string   `json:"go"`
	System  string   `json:"system"`
	Strata  []string `json:"strata"`
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version and what is linked in",
		Args:  atMost(0),
		RunE: func(*cobra.Command, []string) error {
			v := currentVersion()
			if a.json {
				return a.writeJSON(v)
			}
			_, err := fmt.Fprintf(a.out, "stratalog %s %s %s, strata: %s\n", v.Version, v.Go, v.System, strings.Join(v.Strata, ", "))
			return err
		},
	}
}

func currentVersion() versionInfo {
	v := versionInfo{Version: version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Strata: []string{contract.LaneQueue.String(), contract.LaneIndex.String()}}
	info, ok := debug.ReadBuildInfo()
	if v.Version == "" && ok {
		v.Version = info.Main.Version
	}
	if v.Version == "" || v.Version == "(devel)" {
		v.Version = "devel"
	}
	if ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	return v
}
