// Package picture draws the views of the page: it turns the values of package view into rectangles, roles of color and
// words.
//
//	view.Fleet   --> Fleet, Plan, Map --+
//	view.Pending --> Pending            +--> Picture  --+--> SVG     a document, or part of a page
//	view.Blocker --> Savings            |               +--> Wire    columns of numbers, which the page's script
//	view.Cost    --> Cost             --+                            paints on a canvas
//
// A Picture is plain data with whole coordinates. All layout is done here, so that a page, an exported file and a
// document show the same, and so that tests need no browser. What paints a Picture only fills rectangles and writes
// text.
//
// A box has the ID of the row of the table that it shows. Colors are roles, and palette.go gives each role a color for
// light and for dark surfaces. No meaning is carried by color alone: words in the legend, the title of a box and the
// table say the same.
//
// The package is pure: the same value gives the same picture. Names are text that anybody may have chosen; the writers
// escape them. It must not depend on Kubernetes, the engine or a provider.
package picture

// Picture is a drawing. Coordinates are pixels from the upper left corner, before any magnification.
type Picture struct {
	// Name says what it shows, in a sentence.
	Name          string
	Width, Height int
	Boxes         []Box
	Labels        []Label
	Legend        []Key
	// Groups are what the parts of boxes belong to. ByGroup colors parts by their group; else a part has the color of its
	// box, and a gap to the next.
	Groups  []Group
	ByGroup bool
}

// Box is a rectangle.
type Box struct {
	X, Y, W, H int
	Role       Role
	Pattern    Pattern
	// Level is the part of the box that is filled from below, in 255ths. The rest has the role Empty.
	Level uint8
	// Outline draws the edge in the role of Edge.
	Outline bool
	Edge    Role
	// Row is the ID of the row that it shows, empty for none. Title is what it says when it is pointed at.
	Row, Title string
	// Parts divide the filled part, from below.
	Parts []Part
}

// Part is a part of a box. Share is in 255ths of the height of the box.
type Part struct {
	Group int
	Share uint8
}

// Group is what parts belong to.
type Group struct {
	Name string `json:"name"`
	Role Role   `json:"role"`
}

// Label is a line of text. X and Y are the start of its base line, or its end or middle.
type Label struct {
	X, Y   int
	Text   string
	Size   int
	Bold   bool
	Anchor Anchor
	Role   Role
	// On says that the text is on a box of the role, and has the color that is legible there.
	On bool
}

// Anchor is the part of a text that is at its position.
type Anchor uint8

// The anchors.
const (
	Start Anchor = iota
	Middle
	End
)

// Pattern is what is drawn over a color, for readers who do not tell the colors apart.
type Pattern uint8

// The patterns.
const (
	Solid Pattern = iota
	Hatched
	Dotted
	Crossed
)

// Key is an entry of the legend.
type Key struct {
	Role    Role    `json:"role"`
	Pattern Pattern `json:"pattern"`
	Text    string  `json:"text"`
	// Count is how many boxes it applies to; negative for none.
	Count int `json:"count"`
	// Class is its name in addresses, by which the boxes can be filtered; empty for none. Workload is the workload that it
	// stands for.
	Class    string `json:"-"`
	Workload string `json:"-"`
}

// The measures of text, in pixels.
const (
	textSize  = 12
	smallSize = 11
	titleSize = 13
)

// advance is the mean width of a character of the size, in pixels, rounded up.
func advance(size int) float64 { return float64(size) * 0.6 }

// textWidth returns the approximate width of a text.
func textWidth(text string, size int) int { return int(advance(size)*float64(len([]rune(text)))) + 1 }

// fit shortens a text to a width in pixels; to nothing if not even four characters fit.
func fit(text string, width, size int) string {
	runes := []rune(text)
	most := int(float64(width) / advance(size))
	switch {
	case len(runes) <= most:
		return text
	case most < 4:
		return ""
	}
	return string(runes[:most-1]) + "…"
}
