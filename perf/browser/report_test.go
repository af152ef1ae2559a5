package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/stratalog/stratalog/perf/load"
	"github.com/stratalog/stratalog/perf/report"
	"github.com/stratalog/stratalog/perf/report/sample"
)

// sources are runs as if they came from one file.
func sources(runs ...load.Run) []report.Source {
	var list []report.Source
	for _, r := range runs {
		list = append(list, report.Source{File: "runs.json", Run: r})
	}
	return list
}

// reports are the pages that are looked at.
func reports() map[string]report.Input {
	m := sample.New(7)
	peers, one, loads := m.Peers(5), m.Peers(1), m.Loads(14)
	pair := []load.Run{
		m.Run(sample.Shape{Engine: "stratalog", Workload: "append", Producers: 16, Size: 1024, Rate: 50_000, Median: 300, Seconds: 20}),
		m.Run(sample.Shape{Engine: "pebble-record", Workload: "append", Producers: 16, Size: 1024, Rate: 30_000, Median: 500, Seconds: 20})}
	open := m.History(9, 5)
	for i := range open {
		b := &open[i].Benchmarks[i%2]
		b.From, b.To, b.Verdict = new(*b.Ratio*0.9), new(*b.Ratio*1.1), "undecided"
	}
	return map[string]report.Input{
		"peers":      {Title: "Durable append: three engines", Sources: sources(peers...)},
		"loads":      {Sources: sources(loads...)},
		"pair":       {Sources: sources(pair...)},
		"everything": {Sources: sources(append(append(one, loads[:4]...), m.Restart(), m.Extreme(), sample.Fewest())...), History: m.History(14, 20)},
		"history":    {History: open},
		"odd":        {Sources: sources(oddities(m)...)},
	}
}

// oddities are runs that must not look like others: two promises, one without
// its load, one with gaps and a stall at its end, one that is very short.
func oddities(m *sample.Maker) []load.Run {
	shape := sample.Shape{Engine: "stratalog", Workload: "append", Producers: 16, Size: 1024, Rate: 50_000, Median: 300, Seconds: 20}
	sync, memory := m.Run(shape), m.Run(shape)
	memory.Promise, memory.Config[2].Value = "in the page cache", "memory"
	shape.Workload, shape.Offered = "open loop", 90_000
	slow := m.Run(shape)
	slow.Ops[0].Unsent = 1234
	series := slow.Ops[0].Series
	for _, i := range []int{4, 5, 7, 12} {
		series[i] = load.Point{Seconds: series[i].Seconds}
	}
	slow.Ops[0].Series = append(series, load.Point{Seconds: 20.2, RecordsPerSec: 10, P50: 10, P99: 2e6, Max: 3e6})
	shape.Workload, shape.Seconds = "short", 1
	return []load.Run{sync, memory, slow, m.Run(shape)}
}

// written makes the page of in, a file.
func written(t *testing.T, in report.Input) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Write(f, in); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

// Every page is drawn whole, readable and silent, in every variant.
func TestReport(t *testing.T) {
	browser, dir := chromium(t), pictures(t)
	for name, in := range reports() {
		t.Run(name, func(t *testing.T) {
			file, ctx := written(t, in), tab(t, browser)
			wrong := listen(t, ctx, "file://"+file)
			for _, v := range variants {
				if err := open(ctx, file, v); err != nil {
					t.Fatalf("%s: %v", v, err)
				}
				for _, flaw := range flaws(t, ctx, v) {
					t.Errorf("%s: %s", v, flaw)
				}
				photograph(t, ctx, dir, name, v)
				hover(t, ctx, dir, name, v)
				unfold(t, ctx, v)
				for _, c := range wrong.take() {
					t.Errorf("%s: %s", v, c)
				}
			}
		})
	}
}

// A page without any chart is silent too, and its buttons work.
func TestWithoutCharts(t *testing.T) {
	browser := chromium(t)
	runs, err := report.ReadRuns("x", strings.NewReader(`{"schema":1,"engine":"e","workload":"w","ops":[{"name":"append"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	file, ctx := written(t, report.Input{Sources: runs}), tab(t, browser)
	wrong := listen(t, ctx, "file://"+file)
	if err := open(ctx, file, variants[0]); err != nil {
		t.Fatal(err)
	}
	done(t, ctx, chromedp.Evaluate[chromedp.Void](`document.getElementById('copy-runs').click()`), settle())
	if said := asked[string](t, ctx, `document.getElementById('copied').textContent`); said == "" {
		t.Error("a button says nothing when it is clicked")
	}
	for _, c := range wrong.take() {
		t.Error(c)
	}
}

// flaws looks at the page from within.
func flaws(t *testing.T, ctx context.Context, v variant) []string {
	t.Helper()
	list, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](fmt.Sprintf(inspection, map[string]string{"light": "255", "dark": "0"}[v.scheme])))
	if err != nil {
		t.Fatalf("%s: %v", v, err)
	}
	return list
}

// inspection is a script that lists what is wrong with a page. Its argument is
// what the background is near.
const inspection = `(() => {
  const flaws = [], nearly = %s;
  const root = document.documentElement;
  if (root.scrollWidth > innerWidth) {
    flaws.push('the page is ' + root.scrollWidth + ' wide in a window of ' + innerWidth);
  }
  const visible = (e) => e.checkVisibility() && e.getClientRects().length > 0;

  // charts: there, of a size, with something drawn in it
  const copy = document.createElement('canvas');
  const charts = [...document.querySelectorAll('.chart')].filter(visible);
  if (charts.length === 0) flaws.push('no chart is to be seen');
  for (const c of charts) {
    const canvas = c.querySelector('canvas');
    if (!canvas) { flaws.push(c.id + ' has no canvas'); continue; }
    const box = canvas.getBoundingClientRect();
    if (box.width < 200 || box.height < 150) flaws.push(c.id + ' is ' + box.width + ' by ' + box.height);
    if (box.right > innerWidth) flaws.push(c.id + ' reaches beyond the window');
    copy.width = canvas.width;
    copy.height = canvas.height;
    const into = copy.getContext('2d', { willReadFrequently: true });
    into.drawImage(canvas, 0, 0);
    const pixels = into.getImageData(0, 0, canvas.width, canvas.height).data;
    let drawn = 0, coloured = 0;
    for (let i = 0; i < pixels.length; i += 4) {
      if (pixels[i + 3] > 0) drawn++;
      if (pixels[i + 3] > 200 && Math.max(pixels[i], pixels[i + 1], pixels[i + 2]) - Math.min(pixels[i], pixels[i + 1], pixels[i + 2]) > 60) coloured++;
    }
    if (drawn < 500) flaws.push(c.id + ' has ' + drawn + ' pixels');
    if (coloured < 20) flaws.push(c.id + ' has ' + coloured + ' coloured pixels');
    if (!c.getAttribute('aria-label')) flaws.push(c.id + ' has no description');
  }

  // colours: text can be read on what is behind it
  const parse = (s) => s.match(/[\d.]+/g).map(Number);
  const light = (c) => {
    const [r, g, b] = c.slice(0, 3).map((x) => { x /= 255; return x <= 0.04045 ? x / 12.92 : Math.pow((x + 0.055) / 1.055, 2.4); });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  if (Math.abs(parse(getComputedStyle(document.body).backgroundColor)[0] - nearly) > 40) flaws.push('the page does not follow the scheme');
  const seen = new Set();
  let texts = 0;
  for (const e of document.body.querySelectorAll('*')) {
    if (e.closest('svg, .chart, script, style, noscript, [aria-pressed=false]') || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !visible(e)) continue;
    texts++;
    const style = getComputedStyle(e), a = light(parse(style.color)), b = light(behind(e));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const what = e.tagName + '.' + e.className;
    if (contrast < 4.5 && !seen.has(what)) {
      seen.add(what);
      flaws.push(what + ' has a contrast of ' + contrast.toFixed(2));
    }
    if (parseFloat(style.fontSize) < 10.5) flaws.push(what + ' is written at ' + style.fontSize);
  }
  if (texts < 20) flaws.push('there are only ' + texts + ' texts');
  for (const e of document.querySelectorAll('.swatch')) {
    if (!visible(e) || e.closest('[aria-pressed=false]')) continue;
    const a = light(parse(getComputedStyle(e).color)), b = light(behind(e));
    if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 3) flaws.push('a swatch of ' + e.getAttribute('class') + ' can hardly be seen');
  }

  // words: none is cut, no name is there twice
  for (const e of document.querySelectorAll('h1, h2, h3, h4, p, li, dt, dd, figcaption, summary, button, th, td')) {
    if (visible(e) && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflow !== 'visible') flaws.push('cut: ' + e.textContent.slice(0, 60));
  }
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
  if (new Set(ids).size !== ids.length) flaws.push('an id is there twice');
  return flaws;
})()`

// hover moves the mouse over the first charts, and expects to be told values.
func hover(t *testing.T, ctx context.Context, dir, name string, v variant) {
	t.Helper()
	const most = 4
	for i := range most {
		// The place is that of the middle of what the chart plots.
		place, err := chromedp.Run(ctx, chromedp.Evaluate[[]float64](fmt.Sprintf(`(() => {
			const over = [...document.querySelectorAll('.chart .u-over')].filter((e) => e.checkVisibility())[%d];
			if (!over) return [];
			over.scrollIntoView({ block: 'center', behavior: 'instant' });
			const box = over.getBoundingClientRect();
			return [box.x + box.width * 0.6, box.y + box.height * 0.5];
		})()`, i)))
		if err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		if len(place) == 0 {
			return
		}
		err = chromedp.Do(ctx, settle(), chromedp.MouseEvent(chromedp.MouseMoved, place[0]-9, place[1]),
			chromedp.MouseEvent(chromedp.MouseMoved, place[0], place[1]), settle())
		if err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		tip, err := chromedp.Run(ctx, chromedp.Evaluate[string](tips))
		if err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		if !strings.ContainsAny(tip, "0123456789") {
			t.Errorf("%s: chart %d tells nothing when it is hovered: %q", v, i+1, tip)
		}
		if strings.Contains(tip, "outside") {
			t.Errorf("%s: chart %d: %s", v, i+1, tip)
		}
		snap(t, ctx, filepath.Join(dir, fmt.Sprintf("%s-%s-hover-%d.png", name, v, i+1)))
	}
}

// tips is a script that tells what is told, and whether it can be seen.
const tips = `[...document.querySelectorAll('.tip')].filter((e) => e.checkVisibility()).map((e) => {
  const box = e.getBoundingClientRect(), chart = e.closest('.chart').getBoundingClientRect();
  const out = box.left < chart.left - 1 || box.right > chart.right + 1 || box.top < chart.top - 1 || box.bottom > chart.bottom + 1;
  return (out ? 'outside of the chart: ' : '') + e.textContent;
}).join('|')`

// unfold opens what is folded: its charts must then be drawn as well.
func unfold(t *testing.T, ctx context.Context, v variant) {
	t.Helper()
	err := chromedp.Do(ctx, chromedp.MouseEvent(chromedp.MouseMoved, 0, 0),
		chromedp.Evaluate[chromedp.Void](`document.querySelectorAll('details').forEach((d) => { d.open = true; })`), settle(), settle())
	if err != nil {
		t.Fatalf("%s: %v", v, err)
	}
	for _, flaw := range flaws(t, ctx, v) {
		t.Errorf("%s, unfolded: %s", v, flaw)
	}
}
