package web

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// TestOneMeaning checks that the head of a report and the view of the plan count the same steps and the same saving,
// that each step saves what the total falls by, and that one of a thing is not called several. Each picture has a layout
// for narrow screens.
func TestOneMeaning(t *testing.T) {
	o := overview(t, cluster())
	report, err := NewReport(t.Context(), o, "here", nil)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := o.Plan(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	before := plan.Before.Price
	for i, s := range plan.Steps {
		if diff := before - s.Price - s.Saving; math.Abs(diff) > 1e-9 {
			t.Errorf("step %d saves %v, and the total falls from %v to %v", i+1, s.Saving, before, s.Price)
		}
		before = s.Price
	}
	g := plan.Gains()
	if g.Removals == 0 || g.Launches == 0 || g.Removals+g.Launches != len(plan.Steps) {
		t.Fatalf("the plan has %+v of %d steps", g, len(plan.Steps))
	}
	month := fmt.Sprintf("%.0f", g.Saving*view.HoursPerMonth)
	lead := report.Sections[0].Lead
	for text, want := range map[string]string{report.Summary: month + " USD a month can be saved in " + plural(g.Removals, "step") + ".",
		lead: fmt.Sprintf("%s %s %.2f USD an hour, %s a month. %s %s pending pods a node, for %.2f USD an hour. ", plural(g.Removals, "step"),
			verb(g.Removals, "save"), g.Saving, month, plural(g.Launches, "step"), verb(g.Launches, "give"), g.Cost)} {
		if !strings.HasPrefix(text, want) {
			t.Errorf("got %q, want %q", text, want)
		}
	}
	for _, s := range report.Sections {
		if s.Picture != nil && (s.Narrow == nil || s.Narrow.Width != narrowWidth) {
			t.Errorf("the picture of %s has no layout for narrow screens", s.Name)
		}
	}
	var out bytes.Buffer
	if err := report.WriteMarkdown(&out); err != nil {
		t.Fatal(err)
	}
	facts := costFacts(&view.Cost{Unpriced: 1, FreshNodes: 1, Pods: 1})
	fmt.Fprintln(&out, facts)
	if found := regexp.MustCompile(`\b1 (nodes|pods|steps|sets)\b.*`).FindString(out.String()); found != "" {
		t.Errorf("found %q", found)
	}
}

// TestEmptyFiles checks that files without nodes are not said to be a cluster.
func TestEmptyFiles(t *testing.T) {
	o := overview(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
	report, err := NewReport(t.Context(), o, "here", nil)
	if err != nil {
		t.Fatal(err)
	}
	live := Options{Live: true, Source: "test", Read: func(context.Context) (*offline.Overview, error) { return o, nil }}
	_, cluster := serve(t, live)
	live.Live = false
	_, files := serve(t, live)
	page, _ := cluster.get("/fleet")
	if want := "see whether the kubeconfig names the right one"; !strings.Contains(page, want) {
		t.Errorf("the page of a cluster lacks %q", want)
	}
	page, _ = files.get("/fleet")
	for name, text := range map[string]string{"page": page, "report": report.Sections[5].Empty} {
		if !strings.Contains(text, "The files have no nodes, pods or pools.") || strings.Contains(text, "kubeconfig") {
			t.Errorf("the %s of files says %s", name, text)
		}
	}
}
