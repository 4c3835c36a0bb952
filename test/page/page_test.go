package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/karpenter-go/karpenter/plugin/web/picture"
)

// axe checks the accessibility of a page (https://github.com/dequelabs/axe-core, MPL-2.0, see axe/README.md). It is used
// by these tests only.
//
//go:embed axe/axe.min.js
var axe string

// TestAxeIsWhole checks that the file is the published one.
func TestAxeIsWhole(t *testing.T) {
	sum := sha256.Sum256([]byte(axe))
	note, err := os.ReadFile("axe/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := hex.EncodeToString(sum[:]); !strings.Contains(string(note), want) {
		t.Errorf("axe.min.js has the checksum %s, which axe/README.md does not name", want)
	}
}

// whatIf is the address of a what-if with each kind of change.
const whatIf = "/what-if?run=1&spot=1.5&zone=test-zone-a&pods=30&cpu=1&memory=1Gi"

var views = []string{"/fleet", "/fleet?color=workload", "/fleet?color=why&q=general", "/plan?step=3", "/pools?pool=general",
	"/fleet?q=payments", "/savings", "/pending", "/bill?by=workload", "/map", "/what-if", whatIf}

// accessible fails the test if axe finds a violation.
func (s *session) accessible(where string) {
	s.t.Helper()
	s.do(chromedp.Evaluate[chromedp.Void](axe + ";undefined"))
	found, err := chromedp.Run(s.ctx, chromedp.Evaluate[[]string](`axe.run(document).then((r) =>
		(r.passes.length < 15 ? ["only " + r.passes.length + " rules apply"] : []).concat(
			r.violations.map((v) => v.id + ": " + v.help + ": " +
				v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200)).join(" | "))))`, chromedp.EvalAwaitPromise))
	if err != nil {
		s.t.Fatalf("%s: %v", where, err)
	}
	for _, violation := range found {
		s.t.Errorf("%s: %s", where, violation)
	}
}

// features sets media features, such as prefers-color-scheme: dark.
func (s *session) features(pairs ...string) {
	s.t.Helper()
	var p emulation.SetEmulatedMediaParams
	for i := 0; i < len(pairs); i += 2 {
		p.Features = append(p.Features, &emulation.MediaFeature{Name: pairs[i], Value: pairs[i+1]})
	}
	if _, err := chromedp.Call(s.ctx, emulation.SetEmulatedMedia, p); err != nil {
		s.t.Fatal(err)
	}
}

// colors returns how many colors the canvas has.
const colors = `(() => {
	const c = document.querySelector("#canvas canvas"), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, seen = new Set();
	for (let i = 0; i < d.length; i += 4 * 7) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
	return seen.size;
})()`

// cutTables returns how many tables are wider than their place.
const cutTables = `[...document.querySelectorAll(".sheet")].filter(e => e.scrollWidth > e.clientWidth).length`

// cropped returns how many pictures are wider than their place, or than the screen.
const cropped = `[...document.querySelectorAll("figure svg.picture, figure canvas")]
			.filter(e => e.getClientRects().length &&
	(e.getBoundingClientRect().right > innerWidth || e.parentElement.scrollWidth > e.parentElement.clientWidth + 1)).length`

// TestViews opens each view in light and dark, on a wide and a narrow screen. Each has a picture and a table, no errors,
// and no violation of accessibility.
func TestViews(t *testing.T) {
	s := open(t, read(t, Fleet{Nodes: 40, Pods: 20}), 1280, 900)
	if at := eval[string](s, "location.href"); strings.Contains(at, "#") {
		t.Errorf("the token stays in the address %s", at)
	}
	for _, dark := range []bool{false, true} {
		if dark {
			s.features("prefers-color-scheme", "dark")
		}
		for i, path := range views {
			if dark && i%3 != 0 {
				continue // the colors of all views are the same
			}
			s.goTo(path)
			where := fmt.Sprintf("%s, dark %v", path, dark)
			s.accessible(where)
			if cut := eval[int](s, cutTables); cut > 0 {
				t.Errorf("%s: %d tables do not fit a screen of 1280", where, cut)
			}
			if strings.HasPrefix(path, "/what-if") && path != whatIf {
				continue
			}
			if rows := eval[int](s, `document.querySelectorAll("#grid tbody tr").length`); rows < 3 {
				t.Errorf("%s: %d rows", where, rows)
			}
			if eval[bool](s, `Boolean(document.getElementById("canvas"))`) {
				if n := eval[int](s, colors); n < 3 {
					t.Errorf("%s: the canvas has %d colors", where, n)
				}
			} else if n := eval[int](s, `document.querySelectorAll("figure svg.picture rect").length`); n < 5 {
				t.Errorf("%s: the picture has %d rectangles", where, n)
			}
		}
	}
	s.features("forced-colors", "active")
	for _, path := range []string{"/fleet?color=why", "/pools", "/plan?step=3", "/savings"} {
		s.goTo(path)
		s.accessible(path + " with forced colors")
	}
	s.features()
	s.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	for _, path := range views {
		s.goTo(path)
		if cut := eval[int](s, cutTables); cut > 0 {
			t.Errorf("%s: %d tables do not fit a screen of 390", path, cut)
		}
		if cut := eval[int](s, cropped); cut > 0 {
			t.Errorf("%s: %d pictures are cropped on a screen of 390", path, cut)
		}
		if shown := eval[int](s, `[...document.querySelectorAll("figure svg.picture, figure canvas")]
			.filter(e => e.getClientRects().length).length`); shown > 1 {
			t.Errorf("%s shows %d pictures of the same on a screen of 390", path, shown)
		}
		if wide := eval[int](s, "document.documentElement.scrollWidth"); wide > 390 {
			t.Errorf("%s is %d pixels wide on a screen of 390", path, wide)
		}
	}
	s.quiet()
}

// TestKeyboard walks through the fleet and a plan by keys alone.
func TestKeyboard(t *testing.T) {
	s := open(t, read(t, Fleet{Nodes: 150, Pods: 4}), 1280, 900)
	press := func(keys string) { s.do(chromedp.KeyEvent(keys)) }
	focused := func() string {
		return eval[string](s, `document.activeElement.dataset.row ?? document.activeElement.className`)
	}
	press(kb.Tab)
	if at := focused(); at != "skip" {
		t.Errorf("the first stop is %q, want the link to the content", at)
	}
	for range 40 {
		if press(kb.Tab); eval[bool](s, `Boolean(document.activeElement.closest("#grid tbody tr"))`) {
			break
		}
	}
	first := focused()
	press(kb.ArrowDown)
	second := focused()
	if first == "" || second == first || second == "" {
		t.Fatalf("the rows are %q and %q", first, second)
	}
	if said := eval[string](s, `document.getElementById("live").textContent`); !strings.HasPrefix(said, second) {
		t.Errorf("the live region says %q of row %q", said, second)
	}
	if chosen := eval[string](s, `karpenterPainter.chosen`); chosen != second {
		t.Errorf("the picture marks %q, want %q", chosen, second)
	}
	press(kb.End)
	press(kb.ArrowDown)
	s.until(`new URL(location.href).searchParams.get("page") === "2"`)
	s.goTo("/fleet")
	s.do(chromedp.Focus("#grid tbody tr"))
	press(kb.Enter)
	s.until(`document.querySelector(".detail pre")?.textContent.startsWith("node ")`)
	s.goTo("/plan")
	s.do(chromedp.Focus(`#scrubber input[type=range]`))
	press(kb.Home)
	s.until(`new URL(location.href).searchParams.get("step") === "0" && document.getElementById("said").textContent === "Today"`)
	s.quiet()
}

// TestReducedMotion checks that a plan does not play by itself for readers who asked for less motion.
func TestReducedMotion(t *testing.T) {
	s := open(t, read(t, Fleet{Nodes: 20, Pods: 5}), 1000, 700)
	s.goTo("/plan?step=0")
	if eval[bool](s, `document.getElementById("play").hidden`) {
		t.Error("there is no button to play the plan")
	}
	s.do(chromedp.Click("#play"))
	s.until(`new URL(location.href).searchParams.get("step") === "1"`)
	s.features("prefers-reduced-motion", "reduce")
	s.goTo("/plan?step=0")
	if !eval[bool](s, `document.getElementById("play").hidden`) {
		t.Error("the plan can be played although less motion is asked for")
	}
	s.quiet()
}

// TestWithoutScript checks that tables can be read and sorted without a script.
func TestWithoutScript(t *testing.T) {
	s := open(t, read(t, Fleet{Nodes: 20, Pods: 5}), 1000, 700)
	if _, err := chromedp.Call(s.ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	s.do(chromedp.Navigate(s.address+"/fleet"), chromedp.WaitVisible("#grid"), chromedp.WaitVisible("figure svg.picture"))
	s.do(chromedp.Click(`#grid th a[href*="sort=price"]`), chromedp.WaitVisible(`#grid th[aria-sort]`))
	text, err := chromedp.Run(s.ctx, chromedp.Text("#grid tbody"))
	if err != nil {
		t.Fatal(err)
	}
	if rows := strings.Count(text, "ready"); rows != 20 {
		t.Errorf("%d rows without a script, want 20", rows)
	}
}

// TestHostileNames checks that names of objects do not run as scripts, in the page and as a file.
func TestHostileNames(t *testing.T) {
	s := open(t, read(t, Fleet{Nodes: 6, Pods: 3, Hostile: true}), 1000, 700)
	for _, path := range []string{"/fleet?color=pool", "/fleet?node=" + url.QueryEscape(hostile), "/fleet?q=" +
		url.QueryEscape(hostile), "/pending", "/map", "/savings",
		"/what-if?run=1&zone=" + url.QueryEscape(hostile)} {
		s.goTo(path)
		if eval[bool](s, `"hostile" in window || Boolean(document.querySelector("main img"))`) {
			t.Errorf("%s: a name became markup", path)
		}
	}
	s.goTo("/pending")
	if !eval[bool](s, `document.getElementById("grid").textContent.includes("<img src=x")`) {
		t.Error("the name is not in the table")
	}
	s.do(chromedp.Navigate(s.address + "/pending?format=svg"))
	if eval[bool](s, `"hostile" in window`) {
		t.Error("a name ran as a script in the exported picture")
	}
	s.quiet()
}

// frames pans and zooms, and returns how long each frame took to paint, in milliseconds.
const frames = `new Promise((done) => {
	const p = karpenterPainter;
	p.frames.length = 0;
	p.magnify(2);
	let n = 0;
	const step = () => {
		p.move(n % 40 < 20 ? -9 : 9, n % 20 < 10 ? -4 : 4);
		if (n === 60) p.magnify(3);
		if (++n < 120) requestAnimationFrame(step);
		else requestAnimationFrame(() => done(p.frames.slice()));
	};
	requestAnimationFrame(step);
})`

// TestLarge opens a fleet of 5,000 nodes and 100,000 pods. It checks counts and sizes, and prints times.
func TestLarge(t *testing.T) {
	browser(t)
	began := time.Now()
	o := read(t, Fleet{Nodes: 5000, Pods: 20})
	t.Logf("read in %v", time.Since(began).Round(time.Millisecond))
	began = time.Now()
	fleet := o.Fleet(false)
	pods := 0
	for i := range fleet.Nodes {
		pods += len(fleet.Nodes[i].Pods)
	}
	p := picture.Fleet(fleet, picture.Fill, 1160)
	t.Logf("fleet and layout in %v", time.Since(began).Round(time.Millisecond))
	if len(p.Boxes) != 5000 || pods < 90_000 {
		t.Fatalf("%d boxes, %d pods", len(p.Boxes), pods)
	}
	var wire, zipped bytes.Buffer
	if err := p.WriteWire(&wire); err != nil {
		t.Fatal(err)
	}
	zip := gzip.NewWriter(&zipped)
	if _, err := zip.Write(wire.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d KB, %d KB compressed", wire.Len()/1000, zipped.Len()/1000)
	if zipped.Len() > 300_000 {
		t.Errorf("the fleet is %d bytes compressed, want at most 300,000", zipped.Len())
	}
	s := open(t, o, 1280, 900)
	s.goTo("/fleet")
	painted := eval[float64](s, `performance.getEntriesByName("painted")[0].startTime`)
	times := []float64{}
	v, err := chromedp.Run(s.ctx, chromedp.Evaluate[[]float64](frames, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	times = append(times, v...)
	slices.Sort(times)
	if len(times) < 50 {
		t.Fatalf("%d frames", len(times))
	}
	t.Logf("first paint after %.0f ms; painting a frame: median %.1f ms, 95th percentile %.1f ms of %d frames", painted,
		times[len(times)/2], times[len(times)*95/100], len(times))
	heap := eval[float64](s, `performance.memory.usedJSHeapSize`)
	t.Logf("heap of the page: %.0f MB", heap/1e6)
	if heap > 100e6 {
		t.Errorf("the page has a heap of %.0f MB, want at most 100", heap/1e6)
	}
	if dom := eval[int](s, `document.querySelectorAll("*").length`); dom > 4000 {
		t.Errorf("the page has %d elements, want a number that does not grow with the fleet", dom)
	}
	s.quiet()
}
