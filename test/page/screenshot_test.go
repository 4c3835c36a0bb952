package page

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/karpenter-go/karpenter/plugin/web/picture"
)

// shots are the pictures of docs/page.md by name. A node or a pod is one of the fleet that is shown.
var shots = []struct {
	name, path string
	// screen is desktop, phone, dark or print.
	screen string
}{
	{"why", "/fleet?color=why", "desktop"},
	{"pools", "/pools?pool=spot", "desktop"},
	{"plan", "/plan?step=12", "desktop"},
	{"savings", "/savings", "desktop"},
	{"pending", "/pending", "desktop"},
	{"cost", "/bill?by=workload", "desktop"},
	{"map", "/map", "desktop"},
	{"what-if", whatIf, "desktop"},
	{"node", "/fleet?node=NODE", "desktop"},
	{"dark", "/fleet?color=workload", "dark"},
	{"phone", "/fleet?color=why", "phone"},
	{"phone-pools", "/pools", "phone"},
	{"phone-savings", "/savings", "phone"},
	{"print", "/savings", "print"},
}

// TestScreenshots writes the pictures of docs/page.md if KARPENTER_SCREENSHOTS is the folder to write them to (make
// screenshots). It checks that those in the repository are all there, and small.
func TestScreenshots(t *testing.T) {
	to := os.Getenv("KARPENTER_SCREENSHOTS")
	if to != "" {
		shootAll(t, to)
	}
	for _, shot := range shots {
		path := "../../docs/images/page-" + shot.name + ".png"
		if about, err := os.Stat(path); err != nil || about.Size() > 150_000 {
			t.Errorf("%s: %v, want at most 150,000 bytes: make screenshots", path, err)
		}
	}
}

// shootAll writes all pictures.
func shootAll(t *testing.T, to string) {
	t.Helper()
	o := read(t, Fleet{Nodes: 160, Pods: 20})
	s := open(t, o, 1280, 860)
	node, pods := "", 0
	for _, n := range o.Fleet(true).Nodes {
		if n.Code == "PDBBlocks" && (node == "" || len(n.Pods) < pods) {
			node, pods = n.Name, len(n.Pods)
		}
	}
	for _, shot := range shots {
		s.screen(shot.screen)
		s.goTo(string(bytes.ReplaceAll([]byte(shot.path), []byte("NODE"), []byte(url.QueryEscape(node)))))
		s.shoot(filepath.Join(to, "page-"+shot.name+".png"))
	}
	s.quiet()
}

// screen sets the size and the features of a screen, or those of a page of paper: A4 landscape at 96 pixels an inch.
func (s *session) screen(name string) {
	s.t.Helper()
	size, media := [2]int64{1280, 860}, ""
	s.features()
	switch name {
	case "dark":
		s.features("prefers-color-scheme", "dark")
	case "phone":
		size = [2]int64{390, 844}
	case "print":
		size, media = [2]int64{1032, 703}, "print"
	}
	if media != "" {
		if _, err := chromedp.Call(s.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: media}); err != nil {
			s.t.Fatal(err)
		}
	}
	if name == "phone" {
		s.do(chromedp.EmulateViewport(size[0], size[1], chromedp.EmulateMobile))
	} else {
		s.do(chromedp.EmulateViewport(size[0], size[1]))
	}
}

// shoot writes what is in sight as a PNG with few colors.
func (s *session) shoot(path string) {
	s.t.Helper()
	shot, err := chromedp.Run(s.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		s.t.Fatal(err)
	}
	image, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		s.t.Fatal(err)
	}
	var small bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&small, indexed(image)); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, small.Bytes(), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// indexed returns the image with at most 256 colors, those that occur most: a screenshot has few but for the edges of
// text.
func indexed(from image.Image) image.Image {
	counts := map[color.RGBA]int{}
	b := from.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			counts[color.RGBAModel.Convert(from.At(x, y)).(color.RGBA)]++
		}
	}
	list := make([]color.RGBA, 0, len(counts))
	for c := range counts {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b color.RGBA) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return (int(a.R)<<16 | int(a.G)<<8 | int(a.B)) - (int(b.R)<<16 | int(b.G)<<8 | int(b.B))
	})
	palette := color.Palette{}
	for _, p := range []*picture.Palette{&picture.Light, &picture.Dark} { // a color of few pixels has a meaning too
		for _, c := range p {
			palette = append(palette, color.RGBA{c.R, c.G, c.B, 255})
		}
	}
	for _, c := range list[:min(len(list), 256-len(palette))] {
		palette = append(palette, c)
	}
	to := image.NewPaletted(b, palette)
	draw.Draw(to, b, from, b.Min, draw.Src)
	return to
}
