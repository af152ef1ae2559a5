package browser

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// asked evaluates a script.
func asked[T any](t *testing.T, ctx context.Context, script string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return v
}

// done runs actions and waits until what follows is drawn.
func done(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, append(steps, settle())...); err != nil {
		t.Fatal(err)
	}
}

// ink counts the pixels of the first curve that are near the colour of a key.
const ink = `(() => {
  const [r, g, b] = (() => {
    const probe = document.createElement('span');
    probe.className = 'c%d';
    document.body.append(probe);
    const c = getComputedStyle(probe).color.match(/\d+/g).map(Number);
    probe.remove();
    return c;
  })();
  const canvas = [...document.querySelectorAll('.block')].find((b) => b.textContent.includes('Latency by percentile')).querySelector('canvas');
  const copy = document.createElement('canvas');
  copy.width = canvas.width;
  copy.height = canvas.height;
  const ctx = copy.getContext('2d', { willReadFrequently: true });
  ctx.drawImage(canvas, 0, 0);
  const p = ctx.getImageData(0, 0, copy.width, copy.height).data;
  let n = 0;
  for (let i = 0; i < p.length; i += 4) if (p[i + 3] > 200 && Math.abs(p[i] - r) + Math.abs(p[i + 1] - g) + Math.abs(p[i + 2] - b) < 30) n++;
  return n;
})()`

// A reader can hide lines, move by keys, zoom, change the scheme and print.
func TestUse(t *testing.T) {
	browser := chromium(t)
	file, ctx := written(t, reports()["pair"]), tab(t, browser)
	wrong := listen(t, ctx, "file://"+file)
	if err := open(ctx, file, variants[0]); err != nil {
		t.Fatal(err)
	}
	first, second := asked[int](t, ctx, fmt.Sprintf(ink, 0)), asked[int](t, ctx, fmt.Sprintf(ink, 1))
	if first < 1000 || second < 1000 {
		t.Fatalf("the curves have %d and %d pixels of their colours", first, second)
	}

	const button = `[...document.querySelectorAll('.block')].find((b) => b.textContent.includes('Latency by percentile')).querySelector('[data-key="0"]')`
	done(t, ctx, chromedp.Evaluate[chromedp.Void](button+".click()"))
	if n := asked[int](t, ctx, fmt.Sprintf(ink, 0)); n != 0 {
		t.Errorf("a line that was turned off has %d pixels", n)
	}
	if state := asked[string](t, ctx, button+".getAttribute('aria-pressed')"); state != "false" {
		t.Errorf("the button says pressed: %s", state)
	}
	done(t, ctx, chromedp.Evaluate[chromedp.Void](button+".click()"))
	if n := asked[int](t, ctx, fmt.Sprintf(ink, 0)); n < 1000 {
		t.Errorf("a line that was turned on again has %d pixels", n)
	}

	const chart = `[...document.querySelectorAll('.block')].find((b) => b.textContent.includes('Latency by percentile')).querySelector('.chart')`
	done(t, ctx, chromedp.Evaluate[chromedp.Void](chart+".focus()"), chromedp.KeyEvent("\ue014"), settle(), chromedp.KeyEvent("\ue014"))
	for _, key := range []string{"ArrowRight", "ArrowRight", "ArrowRight"} {
		done(t, ctx, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`%s.dispatchEvent(new KeyboardEvent('keydown', { key: %q }))`, chart, key)))
	}
	if tip := asked[string](t, ctx, tips); !strings.Contains(tip, "took at most") {
		t.Errorf("keys bring up %q", tip)
	}

	// A drag over the time zooms in, a double click out again.
	over := asked[[]float64](t, ctx, `(() => {
	  const e = [...document.querySelectorAll('.block')].find((b) => b.textContent.includes('Rate over time')).querySelector('.u-over');
	  e.scrollIntoView({ block: 'center', behavior: 'instant' });
	  const b = e.getBoundingClientRect();
	  return [b.x, b.y + b.height / 2, b.width];
	})()`)
	before := asked[int](t, ctx, fmt.Sprintf(ink, 0))
	picture := func() []byte {
		shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		return shot
	}
	away := chromedp.Steps(chromedp.MouseEvent(chromedp.MouseMoved, 0, 0), chromedp.Evaluate[chromedp.Void]("document.activeElement.blur()"))
	done(t, ctx, away)
	wide := picture()
	done(t, ctx, chromedp.MouseEvent(chromedp.MouseMoved, over[0]+over[2]*0.3, over[1]),
		chromedp.MouseEvent(chromedp.MousePressed, over[0]+over[2]*0.3, over[1], chromedp.ButtonLeft, chromedp.ClickCount(1)),
		chromedp.MouseEvent(chromedp.MouseMoved, over[0]+over[2]*0.6, over[1], chromedp.ButtonLeft),
		chromedp.MouseEvent(chromedp.MouseReleased, over[0]+over[2]*0.6, over[1], chromedp.ButtonLeft, chromedp.ClickCount(1)), settle(), away)
	if zoomed := picture(); bytes.Equal(wide, zoomed) {
		t.Error("a drag does not zoom")
	}
	done(t, ctx, chromedp.MouseClickXY(over[0]+over[2]*0.5, over[1], chromedp.ClickCount(2)), settle(), away)
	if again := picture(); !bytes.Equal(wide, again) {
		t.Error("a double click does not take the zoom back")
	}
	if n := asked[int](t, ctx, fmt.Sprintf(ink, 0)); n != before {
		t.Errorf("another chart changed from %d to %d pixels", before, n)
	}

	done(t, ctx, variants[1].as(), settle())
	if n := asked[int](t, ctx, fmt.Sprintf(ink, 0)); n < 1000 {
		t.Errorf("after the scheme became dark there are %d pixels of its first colour", n)
	}
	for _, width := range []int64{360, 1920} {
		done(t, ctx, variant{"dark", width, 900}.as(), settle())
		for _, flaw := range flaws(t, ctx, variants[1]) {
			t.Errorf("at %d: %s", width, flaw)
		}
	}

	pdf, err := chromedp.Run(ctx, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4), chromedp.PDFPrintBackground()))
	if err != nil || len(pdf) < 20_000 {
		t.Errorf("printed: %d bytes, %v", len(pdf), err)
	}
	if err := os.WriteFile(filepath.Join(pictures(t), "pair.pdf"), pdf, 0o644); err != nil {
		t.Error(err)
	}
	for _, c := range wrong.take() {
		t.Error(c)
	}
}

// Without scripts there are the tables, and a word about it.
func TestWithoutScripts(t *testing.T) {
	browser := chromium(t)
	file, ctx := written(t, reports()["pair"]), tab(t, browser)
	if err := chromedp.Do(ctx, does(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}),
		chromedp.Navigate("file://"+file)); err != nil {
		t.Fatal(err)
	}
	text, err := chromedp.Run(ctx, chromedp.Text(chromedp.CSS("body")))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Charts need scripts", "pebble-record", "records/s"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the text of the page", want)
		}
	}
}
