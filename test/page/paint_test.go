package page

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// compared returns, for points of each rectangle of the SVG of the view, whether the canvas has the color that the SVG has
// there: the number of points, and the first that differ. Points in patterns, below text and beside edges, which may be
// smooth, are left out. The SVG is the document, in which the picture is moved by a margin.
const compared = `(async () => {
	const p = karpenterPainter, k = p.base * p.scale * p.ratio;
	const number = (e, name) => Number(e.getAttribute(name));
	const address = new URL(document.getElementById("canvas").dataset.src, location);
	address.searchParams.set("w", p.picture.head.width);
	address.searchParams.set("format", "svg");
	const svg = await new Promise((done) => {
		const request = new XMLHttpRequest();
		request.open("GET", address);
		request.responseType = "document";
		request.onload = () => done(request.responseXML);
		request.send();
	});
	const all = [...svg.querySelectorAll("rect")].filter(e => !e.closest("pattern")).map(e => ({
		x: number(e, "x"), y: number(e, "y"), w: number(e, "width"), h: number(e, "height"), fill: e.getAttribute("fill")}));
	const dx = all[1].x - p.picture.x[0], dy = all.find(r => r.w === p.picture.w[0] && r.h === p.picture.h[0]).y - p.picture.y[0];
	const rects = all.map(r => ({...r, x: r.x - dx, y: r.y - dy})).filter(r => r.y < p.picture.head.height);
	const texts = [...svg.querySelectorAll("text")].map(e => {
		const size = number(e, "font-size"), long = e.textContent.length * size, x = number(e, "x") - dx, y = number(e, "y") - dy;
		const left = {middle: long / 2, end: long}[e.getAttribute("text-anchor")] ?? 0;
		return {x: x - left, y: y - size, w: long, h: 1.4 * size};
	});
	const holds = (r, x, y) => x >= r.x && x < r.x + r.w && y >= r.y && y < r.y + r.h;
	const painted = p.canvas.getContext("2d", {willReadFrequently: true});
	const differ = [];
	let points = 0;
	const near = (a, b) => Math.abs(a - b) < 2;
	const beside = (r, x, y) => x > r.x - 2 && x < r.x + r.w + 2 && y > r.y - 2 && y < r.y + r.h + 2 &&
		(near(x, r.x) || near(x, r.x + r.w) || near(y, r.y) || near(y, r.y + r.h));
	for (const r of rects.slice(1)) for (const share of [0.3, 0.5, 0.7]) {
		const x = Math.round(r.x + r.w / 2), y = Math.round(r.y + r.h * share);
		if (y >= p.picture.head.height || texts.some(t => holds(t, x, y)) || rects.some(o => beside(o, x, y))) continue;
		const over = rects.filter(o => o.fill !== "none" && holds(o, x, y));
		if (over.some(o => o.fill.startsWith("url"))) continue;
		const want = over.at(-1).fill.toLowerCase();
		const got = [...painted.getImageData(Math.round(x * k), Math.round(y * k), 1, 1).data];
		points++;
		if ([1, 3, 5].some((at, i) => Math.abs(parseInt(want.slice(at, at + 2), 16) - got[i]) > 3))
			differ.push("at " + x + "," + y + " of " + r.w + "x" + r.h + ": canvas " + got + ", SVG " + want);
	}
	return {points, differ: differ.slice(0, 5), count: differ.length};
})()`

// TestPaintersAgree checks that the script and the SVG, which paint the same picture by their own rules, give the boxes
// of a fleet and the pods in them the same colors.
func TestPaintersAgree(t *testing.T) {
	s := open(t, read(t, Fleet{Nodes: 60, Pods: 12}), 1280, 900)
	for _, path := range []string{"/fleet", "/fleet?color=workload", "/fleet?color=pool", "/fleet?color=why", "/plan?step=3"} {
		s.goTo(path)
		if !eval[bool](s, `Boolean(document.getElementById("canvas"))`) {
			t.Errorf("%s has no canvas", path)
			continue
		}
		got, err := chromedp.Run(s.ctx, chromedp.Evaluate[struct {
			Points, Count int
			Differ        []string
		}](compared, chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if got.Points < 10 || got.Count > 0 {
			t.Errorf("%s: %d of %d points differ: %q", path, got.Count, got.Points, got.Differ)
		}
	}
	s.quiet()
}
