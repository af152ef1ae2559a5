package report_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/perf/load"
	"github.com/stratalog/stratalog/perf/report"
	"github.com/stratalog/stratalog/perf/report/sample"
)

func sources(runs ...load.Run) []report.Source {
	var list []report.Source
	for _, r := range runs {
		list = append(list, report.Source{File: "/home/somebody/runs.json", Run: r})
	}
	return list
}

func page(t *testing.T, in report.Input) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.Write(&b, in); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// all is an input with everything in it.
func all() report.Input {
	m := sample.New(5)
	runs := append(m.Peers(2), m.Loads(3)...)
	return report.Input{Title: "A <title>", Sources: sources(append(runs, m.Restart(), m.Extreme(), sample.Fewest())...), History: m.History(5, 4)}
}

// attribute and element find things in a page that this package wrote.
var (
	policy  = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="([^"]*)">`)
	scripts = regexp.MustCompile(`(?s)<script>(.*?)</script>`)
	styles  = regexp.MustCompile(`(?s)<style>(.*?)</style>`)
	data    = regexp.MustCompile(`(?s)<script type="application/json" id="(\w+)">(.*?)</script>`)
)

// The page lets run what is in it, loads nothing, and is the same every time.
func TestPageStandsAlone(t *testing.T) {
	html := page(t, all())
	if again := page(t, all()); html != again {
		t.Error("the same input gave another page")
	}
	rules := policy.FindStringSubmatch(html)
	if rules == nil || !strings.HasPrefix(rules[1], "default-src &#39;none&#39;; ") {
		t.Fatalf("the policy is %q", rules)
	}
	rule := strings.ReplaceAll(strings.ReplaceAll(rules[1], "&#39;", "'"), "&#43;", "+")
	for kind, found := range map[string][][]string{"script": scripts.FindAllStringSubmatch(html, -1), "style": styles.FindAllStringSubmatch(html, -1)} {
		if len(found) != 2 {
			t.Errorf("%d elements are a %s", len(found), kind)
		}
		for _, one := range found {
			sum := sha256.Sum256([]byte(one[1]))
			if !strings.Contains(rule, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
				t.Errorf("the policy does not let a %s of %d bytes be: %s", kind, len(one[1]), rule)
			}
		}
	}
	body := styles.ReplaceAllString(scripts.ReplaceAllString(html, ""), "")
	if found := regexp.MustCompile(`(?i)<[^>]*\s(src|href|action|srcset|style|on\w+)\s*=`).FindAllString(body, -1); found != nil {
		t.Errorf("there are %q", found)
	}
	if strings.Contains(html, "/home/somebody") {
		t.Error("the page tells where files lay")
	}
	if len(html) > 1_500_000 {
		t.Errorf("the page has %d bytes", len(html))
	}
	if !strings.Contains(html, "Copyright (c) 2022 Leon Sorokin") {
		t.Error("the licence of the chart library is missing")
	}
}

// The data in the page is JSON that can be read, and every chart has its place.
func TestPageData(t *testing.T) {
	in := all()
	html := page(t, in)
	found := data.FindAllStringSubmatch(html, -1)
	if len(found) != 2 {
		t.Fatalf("%d data elements", len(found))
	}
	var charts []struct {
		ID     string
		X      []float64
		Series []struct{ Y, Lo, Hi []*float64 }
	}
	if err := json.Unmarshal([]byte(found[0][2]), &charts); err != nil {
		t.Fatal(err)
	}
	for _, c := range charts {
		if strings.Count(html, fmt.Sprintf(`class="chart" id="%s"`, c.ID)) != 1 {
			t.Errorf("%s has no place", c.ID)
		}
		for i, x := range c.X {
			if i > 0 && x <= c.X[i-1] {
				t.Errorf("%s: %v is not behind %v", c.ID, x, c.X[i-1])
			}
		}
		for _, s := range c.Series {
			if len(s.Y) != len(c.X) || s.Lo != nil && len(s.Lo) != len(c.X) || len(s.Hi) != len(s.Lo) {
				t.Errorf("%s: %d values at %d places", c.ID, len(s.Y), len(c.X))
			}
		}
	}
	if n := strings.Count(html, `class="chart" id=`); n != len(charts) || n < 30 {
		t.Errorf("%d charts, %d places", len(charts), n)
	}
	var runs []load.Run
	if err := json.Unmarshal([]byte(found[1][2]), &runs); err != nil || len(runs) != len(in.Sources) {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	// What is in the page can be reported on again.
	if _, err := report.ReadRuns("page", strings.NewReader(found[1][2])); !errors.Is(err, report.ErrImpossible) {
		t.Errorf("what is beyond all measure is read again: %v", err)
	}
	possible := data.FindAllStringSubmatch(page(t, report.Input{Sources: sources(sample.New(5).Peers(2)...)}), -1)[1][2]
	if again, err := report.ReadRuns("page", strings.NewReader(possible)); err != nil || len(again) != 24 {
		t.Errorf("read again: %d runs, %v", len(again), err)
	}
}

func TestPageSays(t *testing.T) {
	in := all()
	html := page(t, in)
	for _, want := range []string{
		"<title>A &lt;title&gt;</title>", "<h1>A &lt;title&gt;</h1>",
		"2 of 30 runs cannot be relied on", `role="alert"`, "INTERRUPTED", "NOT VERIFIED (2 missing, 1 wrong); first: message 81123",
		"What an acknowledgement means", "an answer means that a successful sync covers the bytes",
		"<h2>durable append</h2>", "<h2>open loop</h2>", "<h2>restart</h2>", "<h2>Accepted baselines</h2>", "<h2>Environment</h2>", "<h2>Raw numbers</h2>",
		"Latency by percentile", "Rate over time", "p99 over time", "Longest over time", "Compared", "Dashed: from when",
		"Ratio to the base, sec/op", "Since the first baseline", "usage.user_cpu_s", "ops.append.latency_us.curve", "AMD EPYC 7B13",
		"&lt;script&gt;alert(1)&lt;/script&gt;",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, never := range []string{"<script>alert", "<img", "<b>note", "NaN", "Inf", "%!"} {
		if strings.Contains(scripts.ReplaceAllString(html, ""), never) {
			t.Errorf("there is %s", never)
		}
	}
	m := sample.New(1)
	good := page(t, report.Input{Sources: sources(m.Loads(2)...)})
	if !strings.Contains(good, "All 2 runs are verified") || strings.Contains(good, `role="alert"`) || strings.Contains(good, "Accepted baselines") {
		t.Error("two good runs do not look like that")
	}
	if got := in.Unsound(); got != 2 {
		t.Errorf("%d runs are not sound", got)
	}
}

// A run without latencies has no charts: the list of them is empty, not null.
func TestPageWithoutCharts(t *testing.T) {
	runs, err := report.ReadRuns("x", strings.NewReader(`{"schema":1,"engine":"e","workload":"w","ops":[{"name":"append"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	html := page(t, report.Input{Sources: runs, Again: 1})
	if found := data.FindAllStringSubmatch(html, -1); found[0][2] != "[]" {
		t.Errorf("the charts are %s", found[0][2])
	}
	for _, want := range []string{"1 run given more than once, counted once", "Nothing was read back"} {
		if !strings.Contains(html, want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestPageBehind(t *testing.T) {
	slow := sample.New(1).Loads(1)[0]
	slow.Ops[0].Unsent = 12
	in := report.Input{Sources: sources(slow)}
	html := page(t, in)
	for _, want := range []string{`class="verdict behind"`, "▼ 1 of 1 run did not get the load", "12 messages were due and never sent", `<tr class="behind">`} {
		if !strings.Contains(html, want) {
			t.Errorf("no %s", want)
		}
	}
	if in.Behind() != 1 || in.Unsound() != 0 || strings.Contains(html, "✓") {
		t.Errorf("%d behind, %d unsound", in.Behind(), in.Unsound())
	}
}

func TestWriteRefuses(t *testing.T) {
	if err := report.Write(&bytes.Buffer{}, report.Input{}); !errors.Is(err, report.ErrNothing) {
		t.Errorf("nothing: %v", err)
	}
	in := report.Input{Sources: sources(sample.Fewest()), Base: "another"}
	if err := report.Write(&bytes.Buffer{}, in); !errors.Is(err, report.ErrNoBase) || !strings.Contains(err.Error(), "another") {
		t.Errorf("a base that is not there: %v", err)
	}
}

// A file is replaced whole, and left alone if there is nothing to put there.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "r.html")
	if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteFile(name, report.Input{}); !errors.Is(err, report.ErrNothing) {
		t.Errorf("nothing: %v", err)
	}
	if b, err := os.ReadFile(name); err != nil || string(b) != "old" {
		t.Errorf("after a failure there is %q, %v", b, err)
	}
	if err := report.WriteFile(name, report.Input{Sources: sources(sample.Fewest())}); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(name); err != nil || !bytes.HasPrefix(b, []byte("<!doctype html>")) {
		t.Errorf("there is %.20q, %v", b, err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
	// Errors name what was asked for.
	in := report.Input{Sources: sources(sample.Fewest())}
	missing := filepath.Join(dir, "no", "r.html")
	if err := report.WriteFile(missing, in); !errors.Is(err, os.ErrNotExist) || err.Error() != "write "+missing+": no such file or directory" {
		t.Errorf("no such directory: %v", err)
	}
	if err := report.WriteFile(dir, in); err == nil || err.Error() != "write "+dir+": is a directory" {
		t.Errorf("a directory: %v", err)
	}
	link := filepath.Join(dir, "null")
	if err := os.Symlink(os.DevNull, link); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteFile(link, in); err != nil {
		t.Errorf("a device: %v", err)
	}
	if info, err := os.Stat(link); err != nil || info.Mode().IsRegular() {
		t.Errorf("the device is %v now, %v", info.Mode(), err)
	}
}
