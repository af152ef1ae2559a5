package report

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// The library is the one of uPlot's own release 1.6.32. When the module that
// brings it is updated, look at the page (perf/browser), and put the new sums here.
func TestChartLibrary(t *testing.T) {
	lib, err := chartLibrary()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"script": {lib.script, "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"},
		"style":  {lib.style, "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"},
	} {
		sum := sha256.Sum256(c.text)
		if got := hex.EncodeToString(sum[:]); got != c.want {
			t.Errorf("%s of %d bytes has the sum %s", name, len(c.text), got)
		}
	}
}

func TestChartLibraryRefuses(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ script, style string }{
		"another script":   {"var other=1", ".uplot{}"},
		"another style":    {"var uPlot=1", ".other{}"},
		"the script ends":  {"var uPlot=1</SCRIPT>", ".uplot{}"},
		"the style ends":   {"var uPlot=1", ".uplot{}</style >"},
		"nothing is there": {"", ""},
	} {
		put("uPlot.min.js", c.script)
		put("uPlot.min.css", c.style)
		if c.script == "" {
			dir = t.TempDir()
		}
		if _, err := libraryFrom(http.Dir(dir)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
