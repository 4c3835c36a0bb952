package page

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/web"
)

// browser returns the path of the browser, or skips the test.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium on the PATH: the tests of the page are skipped; on Debian: apt-get install -y chromium")
	return ""
}

// read returns a reading of the fleet.
func read(t *testing.T, f Fleet) *offline.Overview {
	t.Helper()
	var text bytes.Buffer
	if err := f.Write(&text); err != nil {
		t.Fatal(err)
	}
	return readText(t, text.Bytes())
}

// readText returns a reading of manifests.
func readText(t *testing.T, text []byte) *offline.Overview {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fleet.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	policy := offline.DefaultPolicy()
	source := offline.Source{Paths: []string{path}, Cluster: &offline.Cluster{}}
	w, err := source.Read(t.Context(), policy)
	if err != nil {
		t.Fatal(err)
	}
	return w.Overview(&policy)
}

// session is a tab of a browser on the page.
type session struct {
	t       *testing.T
	ctx     context.Context
	address string
	mu      sync.Mutex
	// trouble is what the page wrote to the console as errors, and exceptions.
	trouble []string
}

// open starts the server and the browser, and opens the page by its address with the token.
func open(t *testing.T, o *offline.Overview, width, height int64) *session {
	t.Helper()
	browser(t)
	return openOptions(t, web.Options{Source: "example", Command: []string{"-f", "fleet.json"},
		Read: func(context.Context) (*offline.Overview, error) { return o, nil }}, width, height)
}

// openOptions starts a server with options.
func openOptions(t *testing.T, options web.Options, width, height int64) *session {
	t.Helper()
	server := web.New(options)
	listener, address, err := server.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return openAt(t, address, width, height)
}

// openAt starts the browser, and opens the page by the address that was printed.
func openAt(t *testing.T, address string, width, height int64) *session {
	t.Helper()
	printed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser(t)), chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(2*time.Minute))
	allocator, endBrowser := chromedp.NewExecAllocator(context.Background(), options...)
	tab, endTab := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		endTab()
		endBrowser()
	})
	s := &session{t: t, ctx: tab, address: "http://" + printed.Host}
	messages := chromedp.Console(tab)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			s.add(m)
		}
	}()
	s.do(chromedp.EmulateViewport(width, height), chromedp.Navigate(address))
	s.until(`location.pathname === "/fleet"`)
	s.ready()
	return s
}

// add keeps errors of the page.
func (s *session) add(m chromedp.ConsoleMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.IsException() || m.Type == "error" {
		s.trouble = append(s.trouble, m.URL+": "+m.Text)
	}
}

func (s *session) do(steps ...chromedp.Action[chromedp.Void]) {
	s.t.Helper()
	if err := chromedp.Do(s.ctx, steps...); err != nil {
		s.t.Fatal(err)
	}
}

// eval returns the value of an expression in the page.
func eval[T any](s *session, expression string) T {
	s.t.Helper()
	v, err := chromedp.Run(s.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		s.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// goTo opens a view, and waits until it is computed and painted.
func (s *session) goTo(path string) {
	s.t.Helper()
	s.do(chromedp.Navigate(s.address + path))
	s.ready()
}

// ready waits until the page shows its view.
func (s *session) ready() {
	s.t.Helper()
	s.until(`document.readyState === "complete" && document.getElementById("main").dataset.waiting !== "true" &&
		document.getElementById("cost")?.dataset.ready === "true" &&
		(!document.getElementById("canvas") || document.getElementById("canvas").hidden || performance.getEntriesByName("painted").length > 0)`)
}

// patient is how long a condition of a page may take on a busy machine.
const patient = 4 * time.Minute

// until waits for a condition of the page. The page may be left meanwhile, which makes an evaluation fail.
func (s *session) until(condition string) {
	s.t.Helper()
	ticker, late := time.NewTicker(50*time.Millisecond), time.After(patient)
	defer ticker.Stop()
	for {
		holds, err := chromedp.Run(s.ctx, chromedp.Evaluate[bool]("Boolean("+condition+")"))
		if holds && err == nil {
			return
		}
		select {
		case <-late:
			s.t.Fatalf("the page does not become %s: %v", condition, err)
		case <-ticker.C:
		}
	}
}

// quiet fails the test if the page had errors.
func (s *session) quiet() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.trouble) > 0 {
		s.t.Errorf("errors of the page:\n%s", strings.Join(s.trouble, "\n"))
	}
}
