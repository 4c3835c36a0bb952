package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/web/picture"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// views are the views by the name in their address.
var views = map[string]struct {
	title string
	show  func(*request) (*shown, error)
}{
	"fleet":   {"Fleet", showFleet},
	"pools":   {"Pools", showPools},
	"plan":    {"Plan", showPlan},
	"savings": {"What keeps us from saving", showSavings},
	"pending": {"Why pending", showPending},
	"bill":    {"Cost", showBill},
	"map":     {"Map", showMap},
	"what-if": {"What if", showWhatIf},
}

// order is that of the navigation: what is there, what would be done, why something is not, and what it costs.
var order = []string{"fleet", "pools", "plan", "savings", "pending", "bill", "map", "what-if"}

// command returns the command that says the same as a view.
func (r *request) command(verb string) string {
	text := "kubectl karpenter " + verb
	if r.server.options.Live && strings.HasPrefix(verb, "simulate ") {
		text += " --live"
	}
	for _, word := range r.server.options.Command {
		text += " " + quote(word)
	}
	return text
}

// quote returns a name as a shell takes it.
func quote(name string) string {
	if strings.IndexFunc(name, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-._/:", c))
	}) < 0 {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

func showPlan(r *request) (*shown, error) {
	v := &shown{Canvas: true, Link: "step", Command: r.command("simulate --disrupt --until-stable")}
	plan, err, ready := partly(r, &r.reading.plan)
	if err != nil {
		return nil, err
	}
	if !ready {
		plan, begun := r.reading.plan.soFar()
		if !begun {
			v.Waiting = "planning"
			return v, nil
		}
		v.Waiting = fmt.Sprintf("still computing: %s so far", plural(len(plan.Steps), "step"))
		v.showPlan(r, plan.Normalized())
		return v, nil
	}
	v.showPlan(r, plan)
	if len(plan.Steps) == 0 {
		v.Empty = "No step is worthwhile: the fleet is at rest. What keeps nodes is on the page \"What keeps us from saving\"."
	}
	return v, nil
}

// showPlan sets the picture and table of a plan at the step of the query.
func (v *shown) showPlan(r *request, plan *view.Plan) {
	step := len(plan.Steps)
	if n, err := strconv.Atoi(r.query.Get("step")); err == nil {
		step = min(max(n, 0), len(plan.Steps))
	}
	moved := 0
	for i := range plan.Steps {
		moved += plan.Steps[i].Moved
	}
	g := plan.Gains()
	if r.scriptless {
		v.Narrow = picture.Plan(plan, step, narrowWidth)
	}
	v.Picture, v.Sheet = picture.Plan(plan, step, r.width), plan.Sheet()
	v.Lead = fmt.Sprintf("%s %s %.2f USD an hour, %.0f a month. ", plural(g.Removals, "step"), verb(g.Removals, "save"), g.Saving,
		g.Saving*view.HoursPerMonth)
	if g.Launches > 0 {
		v.Lead += fmt.Sprintf("%s %s pending pods a node, for %.2f USD an hour. ", plural(g.Launches, "step"), verb(g.Launches, "give"), g.Cost)
	}
	v.Lead += fmt.Sprintf("%s %s: from %s for %.2f to %d for %.2f USD an hour.", plural(moved, "pod"), verb(moved, "move"),
		plural(plan.Before.Nodes, "node"), plan.Before.Price, plan.After.Nodes, plan.After.Price)
	if plan.Homeless > 0 {
		v.Lead += " Without a place: " + plural(plan.Homeless, "pod") + "."
	}
	v.Extra = map[string]any{"before": plan.Before, "after": plan.After, "podsMoved": moved,
		"savingPerHour": plan.Before.Price - plan.After.Price}
	if len(plan.Steps) > 0 {
		v.Scrubber = &scrubber{Step: step, Of: len(plan.Steps), Text: stepText(plan, step)}
	}
}

// stepText says what a step does.
func stepText(plan *view.Plan, step int) string {
	if step == 0 {
		return "Today"
	}
	s := &plan.Steps[step-1]
	text := fmt.Sprintf("Step %d, %s:", step, s.Reason)
	if s.WaitSeconds > 0 {
		text = fmt.Sprintf("Step %d, after %s, %s:", step, view.Age(s.Wait()), s.Reason)
	}
	if len(s.Remove) > 0 {
		text += " removes " + view.Few(s.Remove, 2) + ","
	}
	if s.AddText != "" {
		text += " launches " + s.AddText + ","
	}
	return fmt.Sprintf("%s moves %s, saves %.4f USD an hour.", text, plural(s.Moved, "pod"), s.Saving)
}

func showPending(r *request) (*shown, error) {
	v := &shown{Command: r.command("explain pods -A")}
	list, err, ready := r.reading.pending.ask(r.ctx, r.patience)
	if err != nil {
		return nil, err
	}
	if !ready {
		v.Waiting = "deciding where pending pods would run"
		return v, nil
	}
	pods, without := 0, 0
	for i := range list {
		if pods += list[i].Count; list[i].Outcome == "NoPlace" {
			without += list[i].Count
		}
	}
	v.Picture, v.Narrow, v.Sheet = picture.Pending(list, r.width), picture.Pending(list, narrowWidth), view.PendingSheet(list)
	v.Lead = fmt.Sprintf("%s %s for a node, %d without a place. For each pool: "+
		"the rules in their order, and how many instance types remain after each.",
		plural(pods, "pod"), verb(pods, "wait"), without)
	if len(list) == 0 {
		v.Empty = "No pod is pending."
	}
	return v, nil
}

func showSavings(r *request) (*shown, error) {
	v := &shown{Command: r.command("explain node")}
	saved, err, ready := partly(r, &r.reading.savings)
	if err != nil {
		return nil, err
	}
	if !ready {
		begun := false
		if saved, begun = r.reading.savings.soFar(); !begun {
			v.Waiting = "deciding why nodes stay"
			return v, nil
		}
		v.Waiting = fmt.Sprintf("computing the savings: %d of %d", saved.Done, saved.Of)
		if plan, begun := r.reading.plan.soFar(); saved.Done == 0 && begun {
			v.Waiting = fmt.Sprintf("computing the plan that savings are compared with: %s so far", plural(len(plan.Steps), "step"))
		}
	}
	v.showSavings(r, saved)
	return v, nil
}

// showSavings sets what keeps nodes, with the savings that are known.
func (v *shown) showSavings(r *request, s *view.Savings) {
	v.Picture, v.Narrow, v.Sheet = picture.Savings(s.Blockers, r.width), picture.Savings(s.Blockers, narrowWidth),
		view.SavingsSheet(s.Blockers)
	v.Extra = map[string]any{"computed": s.Done, "of": s.Of, "stopped": s.Stopped}
	v.Lead = "What keeps nodes although they could be removed, with the price of these nodes."
	if s.Done > 0 {
		most := slices.MaxFunc(s.Blockers, func(a, b view.Blocker) int { return cmp.Compare(a.Saving, b.Saving) })
		v.Lead += fmt.Sprintf(" The largest single saving is %.0f USD a month. Savings do not add up: several may keep the same node.",
			most.Saving*view.HoursPerMonth)
	}
	switch {
	case s.Stopped:
		v.Stopped = fmt.Sprintf("Stopped after %d s: %d of %d savings are computed.", int(longestSavings.Seconds()), s.Done, s.Of)
	case len(s.Blockers) == 0:
		v.Empty = "Nothing keeps a node but its own pods: every node is needed, or is removed by the plan."
	}
}

func showMap(r *request) (*shown, error) {
	fleet, err, ready := r.reading.fleet.ask(r.ctx, r.patience)
	if err != nil {
		return nil, err
	}
	v := &shown{Command: r.command("top"), Controls: []control{filterControl(r, fleet)}}
	if !ready {
		v.Waiting = "reading the fleet"
		return v, nil
	}
	places := fleet.Filter(r.query.Get("q")).Kept().Places()
	v.Picture, v.Narrow, v.Sheet = picture.Map(places, r.width), picture.Map(places, narrowWidth), view.MapSheet(places)
	v.Lead = "Area is USD an hour: pools, in them zones, in them instance types. A box is filled to what pods request."
	if len(places) == 0 {
		v.Empty = "There is no managed node."
	}
	return v, nil
}

// whatIfFields are the fields of a change, which are its address too.
var whatIfFields = []string{"pool", "yaml", "spot", "prices", "zone", "pods", "like", "cpu", "memory"}

// whatIfForm is the form of a change with its values.
type whatIfForm struct {
	Pools, Zones             []string
	Pool, YAML               string
	Manifests                map[string]string
	Spot, Prices, Zone       string
	Pods, CPU, Memory, Query string
	// Like is the workload of which more pods are added, one of Workloads.
	Like      string
	Workloads []string
	Running   bool
}

// changeKey returns the part of a query that is the change.
func changeKey(q url.Values) string {
	only := url.Values{}
	for _, name := range whatIfFields {
		if v := q.Get(name); v != "" {
			only.Set(name, v)
		}
	}
	return only.Encode()
}

func showWhatIf(r *request) (*shown, error) {
	q := r.query
	manifests := r.reading.Pools()
	f := &whatIfForm{Manifests: manifests, Zones: r.reading.Zones(), Pool: q.Get("pool"), Spot: q.Get("spot"),
		Prices: q.Get("prices"), Zone: q.Get("zone"),
		Pods: q.Get("pods"), CPU: q.Get("cpu"), Memory: q.Get("memory"), Query: q.Encode(),
		Like: q.Get("like"), Workloads: r.reading.Workloads()}
	for name := range manifests {
		f.Pools = append(f.Pools, name)
	}
	slices.Sort(f.Pools)
	if f.Pool == "" && len(f.Pools) > 0 {
		f.Pool = f.Pools[0]
	}
	if f.YAML = q.Get("yaml"); f.YAML == "" {
		f.YAML = manifests[f.Pool]
	}
	v := &shown{Canvas: true, Form: f, Command: r.command("simulate --diff pool.yaml changed-pool.yaml")}
	if q.Get("run") == "" {
		v.Lead = "Change a pool, prices, a zone or the pods, and compare the fleet at rest with and without the change. Nothing is changed in the cluster."
		return v, nil
	}
	change, err := changeOf(q)
	if err == nil && change.Zone != "" && !slices.Contains(f.Zones, change.Zone) {
		err = fmt.Errorf("there is no zone %q, want one of %s", change.Zone, strings.Join(f.Zones, ", "))
	}
	if err != nil {
		v.Problem = err.Error()
		return v, nil
	}
	j, err := r.reading.ifChanged(changeKey(q), change)
	if err != nil {
		return nil, err
	}
	answer, err, ready := j.ask(r.ctx, r.patience)
	switch {
	case err != nil:
		v.Problem = offline.OneLine(err)
		return v, nil
	case !ready:
		steps := 0
		if so, begun := j.soFar(); begun {
			steps = so.Steps()
		}
		f.Running, v.Waiting = true, fmt.Sprintf("planning with and without the change: %s", plural(steps, "step"))
		return v, nil
	}
	v.showPlan(r, answer.With)
	v.Facts = compared(answer)
	v.Problem = strings.Join(answer.Warnings, " ")
	v.Extra["without"] = map[string]any{"after": answer.Without.After, "steps": len(answer.Without.Steps),
		"unschedulable": answer.Without.Homeless}
	v.Extra["atRest"], v.Extra["unschedulable"] = answer.Cost, answer.With.Homeless
	return v, nil
}

// compared returns the fleets at rest with and without the change.
func compared(w *offline.WhatIf) []fact {
	a, b := w.Without, w.With
	moved := func(p *view.Plan) (n int) {
		for i := range p.Steps {
			n += p.Steps[i].Moved
		}
		return n
	}
	return []fact{
		{"At rest as it is", fmt.Sprintf("%.2f", a.After.Price), "USD/h, " + plural(a.After.Nodes, "node")},
		{"At rest with the change", fmt.Sprintf("%.2f", b.After.Price), "USD/h, " + plural(b.After.Nodes, "node")},
		{"Difference", fmt.Sprintf("%+.2f", b.After.Price-a.After.Price), fmt.Sprintf("USD/h, %+.0f a month",
			(b.After.Price-a.After.Price)*view.HoursPerMonth)},
		{"Fresh fleet", fmt.Sprintf("%.2f", w.Cost.Fresh), fmt.Sprintf("USD/h for the same pods, lower bound %.2f", w.Cost.Bound)},
		{"Pods moved", strconv.Itoa(moved(b)), fmt.Sprintf("%d without the change", moved(a))},
		{"Pods without a place", strconv.Itoa(b.Homeless), fmt.Sprintf("%d without the change", a.Homeless)},
	}
}

// changeOf reads a change from a query.
func changeOf(q url.Values) (*offline.Change, error) {
	c := &offline.Change{Pools: q.Get("yaml"), Zone: q.Get("zone"), CPU: q.Get("cpu"), Memory: q.Get("memory"), Like: q.Get("like")}
	for name, to := range map[string]*float64{"spot": &c.Spot, "prices": &c.Prices} {
		if text := q.Get(name); text != "" {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil || !(v > 0 && v <= 1000) {
				return nil, fmt.Errorf("the factor of %s is %q, want a number above 0, such as 1.5", name, text)
			}
			*to = v
		}
	}
	if text := q.Get("pods"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("the number of pods is %q, want a whole number, zero or more", text)
		}
		c.Pods = n
	}
	switch given := c.CPU != "" || c.Memory != "" || c.Like != ""; {
	case c.Pods == 0 && given:
		return nil, errors.New("more pods: the number of pods is missing")
	case c.Pods > 0 && !given:
		return nil, errors.New("more pods: give cpu and memory of each, or like those of")
	}
	return c, nil
}
