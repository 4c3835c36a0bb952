package offline

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/plugin/table"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// DiffAnswer is the output of simulate --diff: the fleet at rest with the old and with the new objects;
// docs/simulate.md describes it for users. Money is USD per hour.
type DiffAnswer struct {
	// Today is the fleet as it was read.
	Today view.Figures `json:"today"`
	Old   AtRest       `json:"old"`
	New   AtRest       `json:"new"`
	// Warnings are what the figures do not show: there is no fleet, or a pool can launch nothing. Useless are the pools
	// that can launch nothing with the new objects only.
	Warnings []string `json:"warnings,omitempty"`
	Useless  []string `json:"uselessNodePools,omitempty"`
	// Drifted are the nodes that drift because of the new objects.
	Drifted []DriftedNode `json:"drifted"`
	// Removed are the nodes whose NodePool the new objects do not have: they are deleted with it.
	Removed []string `json:"removed"`
	// Steps are those with the new objects.
	Steps []json.RawMessage `json:"steps"`
	// PriceSource is the source and the date of prices; omitted for invented prices.
	PriceSource string `json:"priceSource,omitempty"`
	Gaps

	steps *view.Sheet
}

// AtRest is the fleet after the launches for pending pods and all steps that are worthwhile, and what they take.
type AtRest struct {
	Nodes        int     `json:"nodes"`
	PricePerHour float64 `json:"pricePerHour"`
	// FreshPerHour is the price of the nodes that would be launched for the same pods if no managed node existed.
	FreshPerHour      float64 `json:"freshPerHour"`
	LowerBoundPerHour float64 `json:"lowerBoundPerHour"`
	// NodesReplaced is the number of nodes that are removed because they have drifted, and StillDrifted of those that
	// have drifted and are kept.
	NodesReplaced int `json:"nodesReplaced"`
	StillDrifted  int `json:"stillDrifted"`
	// PodsMoved does not count pods that are pending now. A pod that moves twice counts twice.
	PodsMoved     int             `json:"podsMoved"`
	Unschedulable []Unschedulable `json:"unschedulable"`
	// WaitSeconds is how long after now the last step begins.
	WaitSeconds int64 `json:"waitSeconds"`
}

// DriftedNode is a node that no longer matches its pool or class.
type DriftedNode struct {
	Node     string `json:"node"`
	NodePool string `json:"nodePool"`
	Reason   string `json:"reason"`
}

// Compare plans with both inputs until no further step is worthwhile. It ends early with the context.
func Compare(ctx context.Context, before, after *Manifests, p *Policy) (*DiffAnswer, error) {
	old, now := before.Overview(p), after.Overview(p)
	a := &DiffAnswer{Drifted: []DriftedNode{}, Removed: []string{}, PriceSource: now.PriceSource(), Gaps: now.w.gaps()}
	a.Warnings, a.Useless = warnings(old, now)
	moved := 0
	for _, n := range now.snap.Nodes {
		was := old.snap.Node(n.Name)
		if n.Drifted != "" && (was == nil || was.Drifted == "") {
			a.Drifted = append(a.Drifted, DriftedNode{n.Name, n.Pool, n.Drifted})
		}
		had, _ := before.pool(n.Pool)
		has, _ := after.pool(n.Pool)
		refused := slices.ContainsFunc(after.refused, func(r refusedPool) bool { return r.name == n.Pool })
		if had != nil && has == nil && !refused {
			a.Removed, moved = append(a.Removed, n.Name), moved+n.Reschedulable()
		}
	}
	now.lost, now.lostBy = a.Removed, "NodePool deleted"
	for _, side := range []struct {
		of *Overview
		at *AtRest
	}{{old, &a.Old}, {now, &a.New}} {
		plan, err := side.of.Plan(ctx, nil)
		if err != nil {
			return nil, err
		}
		*side.at = side.of.figuresAtRest(plan)
		a.Today, a.steps = plan.Before, plan.Sheet()
	}
	a.New.PodsMoved += moved
	a.Steps = a.steps.Objects()
	before.Problems, after.Problems = old.Problems(), now.Problems()
	return a, nil
}

// warnings returns what the figures of a comparison do not show, and the pools that can launch nothing now, and could
// before.
func warnings(old, now *Overview) (list, useless []string) {
	if len(now.snap.Nodes) == 0 && len(now.snap.Groups) == 0 {
		list = append(list, "There is no fleet: add --live to compare with that of a cluster, or -f with its nodes and pods.")
	}
	for _, pool := range now.snap.Pools {
		why := blockedBy(now.snap, pool)
		if why == "" {
			continue
		}
		when := ", as before"
		if before := old.snap.Pool(pool.Name); before == nil || blockedBy(old.snap, before) == "" {
			when, useless = "", append(useless, pool.Name)
		}
		list = append(list, fmt.Sprintf("NodePool %s can launch nothing%s: %s", pool.Name, when, why))
	}
	return list, useless
}

// figuresAtRest sums up the way to the fleet at rest.
func (o *Overview) figuresAtRest(p *view.Plan) AtRest {
	cost := o.costOf(o.rest)
	r := AtRest{Nodes: p.After.Nodes, PricePerHour: p.After.Price, FreshPerHour: cost.Fresh, LowerBoundPerHour: cost.Bound}
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Reason != provisioning {
			r.PodsMoved += s.Moved
		}
		if s.Reason == string(plan.Drifted) {
			r.NodesReplaced += len(s.Remove)
		}
		r.WaitSeconds = s.WaitSeconds
	}
	for _, n := range o.rest.Nodes {
		if n.Drifted != "" {
			r.StillDrifted++
		}
	}
	d := &Decision{from: &mirror{}, snap: o.rest, plan: placement.Schedule(o.rest, o.policy.options())}
	r.Unschedulable = d.refusals()
	return r
}

// diffRow is a figure on both sides.
type diffRow struct{ name, old, now, change string }

// rows returns the figures as text.
func (a *DiffAnswer) rows() []diffRow {
	count := func(name string, old, now int) diffRow {
		return diffRow{name, fmt.Sprint(old), fmt.Sprint(now), fmt.Sprintf("%+d", now-old)}
	}
	money := func(name string, factor float64, decimals int, of func(*AtRest) float64) diffRow {
		old, now := of(&a.Old)*factor, of(&a.New)*factor
		return diffRow{name, fmt.Sprintf("%.*f", decimals, old), fmt.Sprintf("%.*f", decimals, now),
			fmt.Sprintf("%+.*f", decimals, now-old)}
	}
	price := func(r *AtRest) float64 { return r.PricePerHour }
	wait := func(r *AtRest) string { return duration.HumanDuration(time.Duration(r.WaitSeconds) * time.Second) }
	return []diffRow{
		count("nodes at rest", a.Old.Nodes, a.New.Nodes),
		money("USD per hour", 1, 4, price),
		money("USD per month", view.HoursPerMonth, 2, price),
		money("fresh fleet, USD per hour", 1, 4, func(r *AtRest) float64 { return r.FreshPerHour }),
		count("nodes replaced (drift)", a.Old.NodesReplaced, a.New.NodesReplaced),
		count("drifted nodes that are kept", a.Old.StillDrifted, a.New.StillDrifted),
		count("pods moved", a.Old.PodsMoved, a.New.PodsMoved),
		count("unschedulable pods", len(a.Old.Unschedulable), len(a.New.Unschedulable)),
		{"time until the last step", wait(&a.Old), wait(&a.New), ""},
	}
}

// today says what was read.
func (a *DiffAnswer) today() string {
	return fmt.Sprintf("today: %s for %.4f USD per hour", plural(a.Today.Nodes, "node"), a.Today.Price)
}

// effects are sentences about single nodes.
func (a *DiffAnswer) effects() []string {
	var list []string
	nodes, order := map[string][]string{}, []string{}
	for _, n := range a.Drifted {
		key := fmt.Sprintf("of pool %s drift, %s", n.NodePool, n.Reason)
		if len(nodes[key]) == 0 {
			order = append(order, key)
		}
		nodes[key] = append(nodes[key], n.Node)
	}
	for _, key := range order {
		list = append(list, fmt.Sprintf("%s %s: %s", plural(len(nodes[key]), "node"), key, names(nodes[key], ", ")))
	}
	if n := len(a.Removed); n > 0 {
		list = append(list, fmt.Sprintf("%s deleted with a NodePool: %s", plural(n, "node"), names(a.Removed, ", ")))
	}
	return list
}

// NewlyUnschedulable are the pods that are unschedulable with the new objects only.
func (a *DiffAnswer) NewlyUnschedulable() []Unschedulable {
	return slices.DeleteFunc(slices.Clone(a.New.Unschedulable), func(u Unschedulable) bool {
		return slices.ContainsFunc(a.Old.Unschedulable, func(old Unschedulable) bool { return old.Pod == u.Pod })
	})
}

// Text returns the figures as a table, and what happens to single nodes and pods.
func (a *DiffAnswer) Text(width int) string {
	var b strings.Builder
	for _, text := range a.Warnings {
		b.WriteString(text + "\n")
	}
	b.WriteString(table.Text([]table.Column[diffRow]{
		{Title: "AT REST", Cell: func(r *diffRow) string { return r.name }},
		{Title: "OLD", Right: true, Cell: func(r *diffRow) string { return r.old }},
		{Title: "NEW", Right: true, Cell: func(r *diffRow) string { return r.now }},
		{Title: "CHANGE", Right: true, Cell: func(r *diffRow) string { return r.change }},
	}, a.rows(), width) + "\n")
	for _, text := range a.effects() {
		b.WriteString(text + "\n")
	}
	fresh := LaunchAnswer{Unschedulable: a.NewlyUnschedulable()}
	if len(fresh.Unschedulable) > 0 {
		b.WriteString("\nwith the new objects only:\n")
		fresh.writeUnschedulable(&b)
	}
	b.WriteString(a.today() + "\n" + pricesAre(a.PriceSource) + incomplete(a.Incomplete))
	return b.String()
}

// WriteMarkdown writes the answer as a comment for a change under review.
func (a *DiffAnswer) WriteMarkdown(out io.Writer) error {
	var b strings.Builder
	b.WriteString("### Effect on the nodes\n\n")
	for _, text := range a.Warnings {
		b.WriteString("**" + table.Escape(text) + "**\n\n")
	}
	rows := [][]string{}
	for _, r := range a.rows() {
		rows = append(rows, []string{r.name, r.old, r.now, r.change})
	}
	b.WriteString(table.Markdown([]string{"At rest", "Old", "New", "Change"}, func(column int) bool { return column > 0 }, rows))
	b.WriteByte('\n')
	lines := a.effects()
	for _, u := range a.NewlyUnschedulable() {
		text := "unschedulable: " + u.Pod
		for _, reason := range u.Reasons {
			text += "; " + strings.TrimPrefix(reason.NodePool+": ", ": ") + reason.Message
		}
		lines = append(lines, text)
	}
	for i, text := range lines {
		if i == mostLines {
			text = fmt.Sprintf("and %d more, see -o json", len(lines)-mostLines)
		}
		if i <= mostLines {
			b.WriteString("* " + table.Escape(text) + "\n")
		}
	}
	b.WriteString("\n" + table.Escape(a.today()+". "+pricesAre(a.PriceSource)+incomplete(a.Incomplete)) + "\n")
	if rows := a.steps.Rows; len(rows) > 0 {
		shown := view.Sheet{Columns: a.steps.Columns, Rows: rows[:min(len(rows), mostLines)]}
		fmt.Fprintf(&b, "\n<details><summary>%s with the new objects</summary>\n\n%s\n</details>\n",
			plural(len(rows), "step"), shown.Markdown())
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// mostLines is the maximum number of pods and of steps in Markdown: a comment on GitHub has at most 65,536 characters.
const mostLines = 50

// WriteJSON writes the answer as one JSON object, whose fields simulate documents.
func (a *DiffAnswer) WriteJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(a)
}

// Brief returns the answer in one clause.
func (a *DiffAnswer) Brief() string {
	return fmt.Sprintf("%.4f USD per hour becomes %.4f", a.Old.PricePerHour, a.New.PricePerHour)
}
