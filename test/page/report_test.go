package page

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extended "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"golang.org/x/net/html"

	"github.com/karpenter-go/karpenter/plugin/doctor"
	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/review"
	"github.com/karpenter-go/karpenter/plugin/web"
)

// written returns a report of the fleet in a format. The doctor of it has one finding, whose object has the name.
func written(t *testing.T, f Fleet, object string, write func(*web.Report, io.Writer) error) []byte {
	t.Helper()
	findings := &doctor.Report{Findings: []doctor.Finding{{}}, Notes: []string{object}}
	findings.Findings[0].Code, findings.Findings[0].Object, findings.Findings[0].Problem = "PoolNotReady", object, "is not ready: "+object
	report, err := web.NewReport(t.Context(), read(t, f), object, findings)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := write(report, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// elements returns all elements of a document with the name.
func elements(n *html.Node, name string) []*html.Node {
	var list []*html.Node
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == name {
			list = append(list, d)
		}
	}
	return list
}

// inner returns the text of an element.
func inner(n *html.Node) string {
	text := ""
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			text += d.Data
		}
	}
	return text
}

// grid is a table as texts: its head first.
type grid [][]string

// htmlGrids returns the tables of an HTML document by the ID of their section.
func htmlGrids(t *testing.T, document []byte) map[string]grid {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	grids := map[string]grid{}
	for _, section := range elements(root, "section") {
		id := section.Attr[slices.IndexFunc(section.Attr, func(a html.Attribute) bool { return a.Key == "id" })].Val
		grids[id] = nil
		for _, tr := range elements(section, "tr") {
			var line []string
			for _, c := range append(elements(tr, "th"), elements(tr, "td")...) {
				line = append(line, inner(c))
			}
			grids[id] = append(grids[id], line)
		}
	}
	return grids
}

// markdownGrids returns the tables of a Markdown document by the heading before them.
func markdownGrids(t *testing.T, document []byte) map[string]grid {
	t.Helper()
	root := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(document))
	grids, heading := map[string]grid{}, ""
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Heading:
			heading = plain(n, document)
		case *extended.Table:
			for tr := n.FirstChild(); tr != nil; tr = tr.NextSibling() {
				var line []string
				for c := tr.FirstChild(); c != nil; c = c.NextSibling() {
					line = append(line, plain(c, document))
				}
				grids[heading] = append(grids[heading], line)
			}
		}
	}
	return grids
}

// plain returns the text of a Markdown node as a browser shows it.
func plain(n ast.Node, source []byte) string {
	var out bytes.Buffer
	if err := goldmark.New(goldmark.WithExtensions(extension.GFM)).Renderer().Render(&out, source, n); err != nil {
		return err.Error()
	}
	root, err := html.Parse(bytes.NewReader(append([]byte("<table><tr>"), out.Bytes()...)))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(strings.ReplaceAll(inner(root), "\u2060", ""))
}

// TestReport reads the three formats with parsers of others, and compares each cell and figure, those of the page's JSON
// included.
func TestReport(t *testing.T) {
	f := Fleet{Nodes: 12, Pods: 4}
	asHTML := htmlGrids(t, written(t, f, "here", (*web.Report).WriteHTML))
	asMarkdown := markdownGrids(t, written(t, f, "here", (*web.Report).WriteMarkdown))
	var document map[string]json.RawMessage
	if err := json.Unmarshal(written(t, f, "here", (*web.Report).WriteJSON), &document); err != nil {
		t.Fatal(err)
	}
	for id, title := range map[string]string{"fleet": "Fleet", "plan": "Plan", "savings": "What keeps us from saving",
		"pending": "Why pending", "bill": "Cost", "workloads": "Cost by workload", "doctor": "Findings of the doctor"} {
		var part struct{ Rows []map[string]any }
		if err := json.Unmarshal(document[id], &part); err != nil {
			t.Fatal(err)
		}
		rows := asHTML[id]
		if len(rows) < 2 || len(rows) != len(part.Rows)+1 {
			t.Errorf("%s: %d rows with the head in HTML, %d without it in JSON", id, len(rows), len(part.Rows))
			continue
		}
		if !slices.EqualFunc(rows, asMarkdown[title], slices.Equal) {
			t.Errorf("%s: HTML has %q, Markdown %q", id, rows, asMarkdown[title])
		}
		for i, row := range part.Rows {
			for key, value := range row {
				if number, is := value.(float64); is && !slices.ContainsFunc(rows[i+1], func(c string) bool { return means(c, number) }) {
					t.Errorf("%s, row %d: %s is %v in JSON, and HTML has %q", id, i, key, number, rows[i+1])
				}
				if word, is := value.(string); is && !slices.Contains(rows[i+1], word) {
					t.Errorf("%s, row %d: %s is %q in JSON, and HTML has %q", id, i, key, word, rows[i+1])
				}
			}
		}
	}
	price := 0.0
	for _, row := range asHTML["fleet"][1:] {
		v, err := strconv.ParseFloat(row[slices.Index(asHTML["fleet"][0], "USD/h")], 64)
		if err != nil {
			t.Fatal(err)
		}
		price += v
	}
	var cost struct {
		Price float64 `json:"pricePerHour"`
	}
	if err := json.Unmarshal(document["cost"], &cost); err != nil || math.Abs(cost.Price-price) > 0.01 || price == 0 {
		t.Errorf("the nodes cost %.4f USD an hour, and the fleet %.4f; %v", price, cost.Price, err)
	}
}

// means reports whether a cell has the number: rounded, as percent or as an age.
func means(cell string, number float64) bool {
	if strings.HasSuffix(cell, "m") || strings.HasSuffix(cell, "h") || cell == "–" {
		return true
	}
	scale := 1.0
	if strings.HasSuffix(cell, "%") {
		scale = 0.01
	}
	v, err := strconv.ParseFloat(strings.TrimSuffix(cell, "%"), 64)
	_, decimals, _ := strings.Cut(strings.TrimSuffix(cell, "%"), ".")
	return err == nil && math.Abs(v*scale-number) <= scale*math.Pow10(-len(decimals))
}

// TestReportAlone checks that the HTML loads nothing, has no script, and says so to the browser.
func TestReportAlone(t *testing.T) {
	root, err := html.Parse(bytes.NewReader(written(t, Fleet{Nodes: 9, Pods: 4}, "here", (*web.Report).WriteHTML)))
	if err != nil {
		t.Fatal(err)
	}
	pictures := 0
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if slices.Contains([]string{"script", "link", "img", "iframe", "object", "embed", "base", "form"}, n.Data) {
			t.Errorf("there is an element %s", n.Data)
		}
		if n.Data == "svg" && slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Val == "picture" }) {
			pictures++
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "src" || a.Key == "href" && !strings.HasPrefix(a.Val, "#") {
				t.Errorf("%s has %s=%q", n.Data, a.Key, a.Val)
			}
		}
		if n.Data == "style" && (strings.Contains(inner(n), "@import") || strings.Contains(inner(n), "url(")) {
			t.Error("the style loads something")
		}
	}
	if pictures < 4 {
		t.Errorf("there are %d pictures, want those of fleet, plan, savings and pending pods", pictures)
	}
}

// TestReportHostile checks that names become no markup, in HTML and in Markdown.
func TestReportHostile(t *testing.T) {
	name := hostile + "\n# x\n|a|b|\n* [l](https://evil.example) ![i](//evil.example/i) `c` **b** www.evil.example a@evil.example @team #1 $x$"
	f := Fleet{Nodes: 5, Pods: 3, Hostile: true}
	page := written(t, f, name, (*web.Report).WriteHTML)
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	if len(elements(root, "script"))+len(elements(root, "img")) > 0 || !strings.Contains(inner(root), hostile) {
		t.Error("the name is markup in HTML, or is missing")
	}
	if cells := htmlGrids(t, page)["fleet"]; !slices.ContainsFunc(cells, func(row []string) bool { return row[0] == hostile }) {
		t.Errorf("the fleet does not have the node: %q", cells)
	}
	document := written(t, f, name, (*web.Report).WriteMarkdown)
	parsed := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(document))
	headings := 0
	err = ast.Walk(parsed, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n.Kind() {
		case ast.KindRawHTML, ast.KindHTMLBlock, ast.KindLink, ast.KindImage, ast.KindAutoLink, ast.KindCodeSpan, ast.KindEmphasis,
			ast.KindCodeBlock, ast.KindFencedCodeBlock, ast.KindBlockquote, extended.KindStrikethrough:
			t.Errorf("there is a %s: %s", n.Kind(), plain(n, document))
		case ast.KindHeading:
			if entering {
				headings++
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil || headings != 8 {
		t.Errorf("there are %d headings, want the title and seven sections; %v", headings, err)
	}
	for title, rows := range markdownGrids(t, document) {
		for _, row := range rows {
			if len(row) != len(rows[0]) {
				t.Errorf("%s: a row has %d cells, its head %d: %q", title, len(row), len(rows[0]), row)
			}
		}
	}
	if rows := markdownGrids(t, document)["Fleet"]; !slices.ContainsFunc(rows, func(row []string) bool { return row[0] == hostile }) {
		t.Errorf("the fleet does not have the node: %q", rows)
	}
	for _, ping := range []string{"@team", "@evil", "#1"} {
		if bytes.Contains(document, []byte(ping)) {
			t.Errorf("%s is a reference", ping)
		}
	}
}

// TestDiff reads the Markdown of a comparison with a parser of others, and compares it with the JSON, with the what-if of the page
// that has the same change, and with the plan of the page.
func TestDiff(t *testing.T) {
	var list bytes.Buffer
	if err := (Fleet{Nodes: 12, Pods: 4}).Write(&list); err != nil {
		t.Fatal(err)
	}
	var fleet struct{ Items []map[string]any }
	if err := json.Unmarshal(list.Bytes(), &fleet); err != nil {
		t.Fatal(err)
	}
	pool := fleet.Items[slices.IndexFunc(fleet.Items, func(o map[string]any) bool { return o["kind"] == "NodePool" })]
	folder := t.TempDir()
	put := func(name string, value any) string {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(folder, name)
	}
	all, old := put("fleet.json", object{"apiVersion": "v1", "kind": "List", "items": fleet.Items}), put("old.json", pool)
	pool["spec"].(map[string]any)["template"].(map[string]any)["metadata"] = object{"labels": object{"team": "b"}}
	now := put("new.json", pool)
	policy := offline.DefaultPolicy()
	source := offline.Source{Paths: []string{all}, Cluster: &offline.Cluster{}}
	before, after, err := source.ReadBoth(t.Context(), policy, []string{old}, []string{now})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := offline.Compare(t.Context(), before, after, &policy, &review.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := answer.WriteMarkdown(&text, ""); err != nil {
		t.Fatal(err)
	}
	cells := map[string][]string{}
	for _, rows := range markdownGrids(t, text.Bytes()) {
		for _, row := range rows {
			cells[row[0]] = row[1:]
		}
	}
	for name, want := range map[string][2]float64{"nodes at rest": {float64(answer.Old.Nodes), float64(answer.New.Nodes)},
		"USD a month at rest":    {answer.Old.PricePerHour * 730, answer.New.PricePerHour * 730},
		"nodes replaced (drift)": {float64(answer.Old.NodesReplaced), float64(answer.New.NodesReplaced)},
		"pods moved":             {float64(answer.Old.PodsMoved), float64(answer.New.PodsMoved)},
		"unschedulable pods":     {float64(len(answer.Old.Unschedulable)), float64(len(answer.New.Unschedulable))}} {
		row := cells[name]
		if len(row) != 3 || !means(row[0], want[0]) || !means(row[1], want[1]) || !means(strings.TrimPrefix(row[2], "+"), want[1]-want[0]) {
			t.Errorf("%s: Markdown has %q, JSON %v", name, row, want)
		}
	}
	if answer.New.NodesReplaced == 0 || len(answer.Drifted) == 0 || answer.Old.NodesReplaced != 0 {
		t.Errorf("no node is replaced: %+v", answer)
	}
	manifest, err := os.ReadFile(now)
	if err != nil {
		t.Fatal(err)
	}
	same, err := read(t, Fleet{Nodes: 12, Pods: 4}).WhatIf(t.Context(), &offline.Change{Pools: string(manifest)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at       offline.AtRest
		nodes    int
		price    float64
		homeless int
	}{{answer.Old, same.Without.After.Nodes, same.Without.After.Price, same.Without.Homeless},
		{answer.New, same.With.After.Nodes, same.With.After.Price, same.With.Homeless}} {
		if c.at.Nodes != c.nodes || math.Abs(c.at.PricePerHour-c.price) > 1e-9 || len(c.at.Unschedulable) != c.homeless {
			t.Errorf("the comparison has %+v, the page %d nodes for %v USD an hour, %d pods without a place", c.at, c.nodes, c.price, c.homeless)
		}
	}
}
