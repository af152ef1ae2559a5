package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// chromium starts a browser with a profile of its own, and returns the context
// of its first tab. Without a browser the test is skipped, or fails in continuous
// integration.
func chromium(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		const text = "chromium is missing: NO REPORT WAS LOOKED AT; install it with apt-get install -y chromium"
		if os.Getenv("CI") != "" {
			t.Fatal(text)
		}
		t.Skip(text)
	}
	options := append([]chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir())},
		chromedp.Headless, chromedp.NoSandbox, chromedp.NoFirstRun, chromedp.DisableGPU)
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync",
		"disable-default-apps", "disable-extensions", "disable-dev-shm-usage"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // so that it has left its profile before that is removed
		cancel()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("chromium does not start: %v", err)
	}
	return ctx
}

// tab opens one more tab, for at most two minutes.
func tab(t *testing.T, browser context.Context) context.Context {
	t.Helper()
	ctx, leave := chromedp.NewContext(browser)
	t.Cleanup(leave)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	ctx, expire := context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(expire)
	return ctx
}

// variant is one way in which a page is seen.
type variant struct {
	scheme        string
	width, height int64
}

func (v variant) String() string { return fmt.Sprintf("%s-%d", v.scheme, v.width) }

var variants = []variant{{"light", 1440, 900}, {"dark", 1440, 900}, {"light", 390, 844}, {"dark", 390, 844}}

// does runs a command that returns nothing of interest.
func does[P, R any](cmd cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cmd, params)
		return err
	})
}

// as makes the tab look the way of v.
func (v variant) as() chromedp.Action[chromedp.Void] {
	return chromedp.Steps(
		does(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: v.width, Height: v.height, DeviceScaleFactor: 1}),
		does(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: v.scheme}}}))
}

// complaints collects what a page must not do: complain, fail, ask for
// anything.
type complaints struct {
	mu   sync.Mutex
	list []string
}

func (c *complaints) add(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, fmt.Sprintf(format, args...))
}

func (c *complaints) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.list
	c.list = nil
	return list
}

// listen collects complaints of the tab about anything but the page itself.
func listen(t *testing.T, ctx context.Context, url string) *complaints {
	t.Helper()
	c := &complaints{}
	if err := chromedp.Do(ctx, does(network.Enable, network.EnableParams{}), does(log.Enable, cdp.Empty{})); err != nil {
		t.Fatal(err)
	}
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			if e.Type != "log" && e.Type != "info" && e.Type != "debug" {
				c.add("console %s", e.Type)
			}
		case *runtime.EventExceptionThrown:
			c.add("exception: %s", e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if e.Entry.Level == "error" || e.Entry.Level == "warning" {
				c.add("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
			}
		case *network.EventRequestWillBeSent:
			if e.Request.URL != url {
				c.add("request of %.200s", e.Request.URL)
			}
		case *page.EventJavascriptDialogOpening:
			c.add("dialog: %s", e.Message)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// open loads a file in the tab, and waits until its charts are drawn.
func open(ctx context.Context, file string, v variant) error {
	return chromedp.Do(ctx, v.as(), chromedp.Navigate("file://"+file), settle())
}

// settle waits until a few frames were drawn.
func settle() chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))`,
		chromedp.EvalAwaitPromise)
}

// pictures returns where screenshots go.
func pictures(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("STRATALOG_SCREENSHOTS")
	if dir == "" {
		return t.TempDir()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// pieceHeight is how much of a long page one picture shows.
const pieceHeight = 1500

// photograph takes pictures of the whole page, from the top down.
func photograph(t *testing.T, ctx context.Context, dir, name string, v variant) {
	t.Helper()
	height, err := chromedp.Run(ctx, chromedp.Evaluate[float64](`document.documentElement.scrollHeight`))
	if err != nil {
		t.Fatal(err)
	}
	for piece := 0; piece*pieceHeight < int(height); piece++ {
		clip := &page.Viewport{Y: float64(piece * pieceHeight), Width: float64(v.width), Scale: 1}
		clip.Height = min(pieceHeight, height-clip.Y)
		file := filepath.Join(dir, fmt.Sprintf("%s-%s-%02d.png", name, v, piece+1))
		shot, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: new(true), Clip: clip})
		if err == nil {
			err = os.WriteFile(file, shot.Data, 0o644)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
}

// snap takes a picture of what the window shows.
func snap(t *testing.T, ctx context.Context, file string) {
	t.Helper()
	shot, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{})
	if err == nil {
		err = os.WriteFile(file, shot.Data, 0o644)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
