package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	samples "github.com/stratalog/stratalog/perf/report/sample"
)

// put writes a file of JSON values, one a line, and returns its name.
func put[T any](t *testing.T, values ...T) string {
	t.Helper()
	var b bytes.Buffer
	for _, v := range values {
		if err := json.NewEncoder(&b).Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	return putText(t, b.String())
}

func putText(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "in.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func isPage(t *testing.T, html string, parts ...string) {
	t.Helper()
	if !strings.HasPrefix(html, "<!doctype html>") || !strings.HasSuffix(html, "</html>\n") {
		t.Errorf("%d bytes are no page: %.40q", len(html), html)
	}
	for _, part := range parts {
		if !strings.Contains(html, part) {
			t.Errorf("no %s in the page", part)
		}
	}
}

func TestBenchReport(t *testing.T) {
	m := samples.New(2)
	loads, bad, history := put(t, m.Loads(3)...), put(t, m.Peers(1)...), put(t, m.History(4, 3)...)
	out := filepath.Join(t.TempDir(), "r.html")

	if said := fine(t, "", "bench", "report", loads, "-o", out, "--title", "A & B"); !strings.Contains(said, "3 runs, 0 baselines") {
		t.Errorf("said %q", said)
	}
	page, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	isPage(t, string(page), "<h1>A &amp; B</h1>", "open loop")

	if m := object(t, "bench", "report", "--history", history, "-o", out); m["baselines"] != 4.0 || m["runs"] != 0.0 || m["report"] != out {
		t.Errorf("said %v", m)
	}
	a := cli(t, "", "bench", "report", "--history", history, loads, loads, "-o", "-")
	if a.code != exitFine || a.errOut != "stratalog: 3 runs were given more than once and count once\n" {
		t.Errorf("code %d, %q", a.code, a.errOut)
	}
	isPage(t, a.out, "Accepted baselines", "<li>3 runs</li>", "3 runs given more than once, counted once")

	slow := m.Loads(1)[0]
	slow.Ops[0].Unsent = 5
	a = cli(t, "", "bench", "report", put(t, slow), "-o", "-")
	if a.code != exitFine || a.errOut != "stratalog: 1 of 1 runs did not get the load that was asked for\n" {
		t.Errorf("code %d, %q", a.code, a.errOut)
	}

	text, err := os.ReadFile(loads)
	if err != nil {
		t.Fatal(err)
	}
	isPage(t, fine(t, string(text), "bench", "report", "-", "-o", "-"), "3 runs")

	a = cli(t, "", "bench", "report", bad, "-o", "-", "--base", "badger")
	if a.code != exitFine || a.errOut != "stratalog: 2 of 12 runs cannot be relied on; the page says why\n" {
		t.Errorf("code %d, %q", a.code, a.errOut)
	}
	isPage(t, a.out, "NOT VERIFIED")
}

// The default is a file of the working directory.
func TestBenchReportDefault(t *testing.T) {
	in := put(t, samples.Fewest())
	t.Chdir(t.TempDir())
	fine(t, "", "bench", "report", in)
	page, err := os.ReadFile("report.html")
	if err != nil {
		t.Fatal(err)
	}
	isPage(t, string(page))
}

func TestBenchReportRefuses(t *testing.T) {
	run, history := put(t, samples.Fewest()), put(t, samples.New(1).History(1, 1)...)
	out := filepath.Join(t.TempDir(), "r.html")
	for name, c := range map[string]struct {
		args string
		want string
	}{
		"nothing":               {"", "neither a file of runs nor --history is given; see stratalog bench report --help"},
		"no such file":          {"/no/such/file", "/no/such/file: no such file"},
		"a directory":           {t.TempDir(), "is a directory"},
		"not JSON":              {putText(t, "{\"schema\":\nhello"), "in.json: line 2, byte 11: "},
		"truncated":             {putText(t, "{\"schema\":1"), "in.json: line 1, byte 11: the text ends within a JSON value"},
		"no run":                {history, "in.json: line 1, byte 0: not a run: it has no schema"},
		"no history":            {"--history " + run, "in.json: line 1, byte 0: not an accepted baseline: no commit"},
		"no such history":       {"--history /no/such/file", "no such file"},
		"no such base":          {run + " --base other", "--base: no run is of this engine: other"},
		"no such flag":          {run + " --bogus", "see stratalog bench report --help"},
		"empty output":          {run + " --out=", "--out is empty"},
		"no directory":          {run + " --out /no/such/directory/r.html", "write /no/such/directory/r.html: no such file or directory"},
		"a directory as output": {run + " --out .", "write .: is a directory"},
		"impossible":            {putText(t, `{"schema":1,"engine":"e","workload":"w","ops":[{"seconds":-1}]}`), "in.json: line 1, byte 0: impossible number: ops[0].seconds is -1"},
	} {
		a := cli(t, "", append([]string{"bench", "report", "-o", out}, strings.Fields(c.args)...)...)
		if a.code != exitFailed || a.out != "" || !strings.Contains(a.errOut, c.want) || strings.Count(a.errOut, "\n") != 1 {
			t.Errorf("%s: code %d, %q, want %q", name, a.code, a.errOut, c.want)
		}
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("a page was written: %v", err)
	}
}
