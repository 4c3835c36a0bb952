package offline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/plugin/review"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// DiffAnswer is the output of simulate --diff: the fleet at rest with the old and with the new objects;
// docs/simulate.md describes it for users. Money is USD per hour.
type DiffAnswer struct {
	// Verdict says in a sentence what changed and what it does. Violations are the parts of the policy that the
	// change does not keep.
	Verdict    string             `json:"verdict"`
	Violations []review.Violation `json:"violations"`
	// Changes are the fields that decide and differ, and objects that are there on one side only.
	Changes []review.Change `json:"changes"`
	// Today is the fleet as it was read.
	Today view.Figures `json:"today"`
	Old   AtRest       `json:"old"`
	New   AtRest       `json:"new"`
	// Difference is that of the fleets at rest: what the change costs, whatever else would happen without it.
	Difference Difference `json:"difference"`
	// Warnings are what the figures do not show: a pool can launch nothing, or it is not known whether nodes drift.
	// Useless are the pools that can launch nothing with the new objects only.
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
	// uselessWarnings is the number of warnings about pools that can launch nothing, which come first.
	uselessWarnings int
}

// Difference is what the fleet at rest with the change costs more than the one without it.
type Difference struct {
	PricePerHour  float64 `json:"pricePerHour"`
	PricePerMonth float64 `json:"pricePerMonth"`
}

// AtRest is the fleet after the launches for pending pods and all steps that are worthwhile, and what they take.
type AtRest struct {
	Nodes        int     `json:"nodes"`
	PricePerHour float64 `json:"pricePerHour"`
	// UnknownPrices is the number of nodes whose price is unknown: PricePerHour is that of the others.
	UnknownPrices int `json:"unknownPrices,omitempty"`
	// ByReason divides the way from the price of today to that at rest.
	ByReason []ReasonPrice `json:"byReason"`
	// FreshPerHour is the price of the nodes that would be launched for the same pods if no managed node existed.
	// FreshWithout is the number of pods that would have no place then, so that the price says nothing.
	FreshPerHour      float64 `json:"freshPerHour"`
	FreshWithout      int     `json:"freshUnschedulable,omitempty"`
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

// ReasonPrice is what the steps of a reason add to the price of the fleet, below zero if they save.
type ReasonPrice struct {
	Reason       string  `json:"reason"`
	Steps        int     `json:"steps"`
	PricePerHour float64 `json:"pricePerHour"`
}

// DriftedNode is a node that no longer matches its pool or class.
type DriftedNode struct {
	Node     string `json:"node"`
	NodePool string `json:"nodePool"`
	Reason   string `json:"reason"`
}

// Compare plans with both inputs until no further step is worthwhile, and judges the change by a policy. It ends early
// with the context. Without a fleet there is nothing to compare, and it returns an error.
func Compare(ctx context.Context, before, after *Manifests, p *Policy, allowed *review.Policy) (*DiffAnswer, error) {
	old, now := before.Overview(p), after.Overview(p)
	if len(now.snap.Nodes) == 0 && len(now.snap.Groups) == 0 && len(old.snap.Nodes) == 0 && len(old.snap.Groups) == 0 {
		return nil, inputErrorf("no fleet: add --live to compare on that of a cluster, or -f with its nodes and pods")
	}
	a := &DiffAnswer{Drifted: []DriftedNode{}, Removed: []string{}, PriceSource: now.PriceSource(), Gaps: now.w.gaps(),
		Changes: append([]review.Change{}, after.changes...)}
	a.Warnings, a.Useless = warnings(old, now)
	a.uselessWarnings = len(a.Warnings)
	a.Warnings = append(a.Warnings, after.unknownDrifts()...)
	a.drifts(before, after, old, now)
	a.Warnings = append(a.Warnings, misspelled(old, now)...)
	a.Warnings = append(a.Warnings, a.uncounted(old, now)...)
	moved := 0
	for _, name := range a.Removed {
		moved += now.snap.Node(name).Reschedulable()
	}
	now.lost, now.lostBy = a.Removed, poolDeleted
	if err := a.plan(ctx, old, now); err != nil {
		return nil, err
	}
	a.New.PodsMoved += moved
	a.Steps = a.steps.Objects()
	before.Problems, after.Problems = old.Problems(), now.Problems()
	a.judge(allowed)
	return a, nil
}

// plan plans both sides, at the same time.
func (a *DiffAnswer) plan(ctx context.Context, old, now *Overview) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		plan, err := old.Plan(ctx, nil)
		if err == nil {
			a.Old = old.figuresAtRest(plan)
		}
		return err
	})
	group.Go(func() error {
		plan, err := now.Plan(ctx, nil)
		if err == nil {
			a.New, a.Today, a.steps = now.figuresAtRest(plan), plan.Before, plan.Sheet()
		}
		return err
	})
	return group.Wait()
}

// drifts lists the nodes that drift because of the new objects, and those whose pool these do not have.
func (a *DiffAnswer) drifts(before, after *Manifests, old, now *Overview) {
	for _, n := range now.snap.Nodes {
		was := old.snap.Node(n.Name)
		if n.Drifted != "" && (was == nil || was.Drifted == "") {
			a.Drifted = append(a.Drifted, DriftedNode{n.Name, n.Pool, n.Drifted})
		}
		had, _ := before.pool(n.Pool)
		has, _ := after.pool(n.Pool)
		refused := slices.ContainsFunc(after.refused, func(r refusedPool) bool { return r.name == n.Pool })
		if had != nil && has == nil && !refused {
			a.Removed = append(a.Removed, n.Name)
		}
	}
}

// judge sets the verdict, and what of the policy the change does not keep.
func (a *DiffAnswer) judge(allowed *review.Policy) {
	fleet := func(r *AtRest) review.Fleet {
		return review.Fleet{PricePerHour: r.PricePerHour, Unpriced: r.UnknownPrices, Replaced: r.NodesReplaced, Moved: r.PodsMoved}
	}
	e := &review.Effect{Changes: a.Changes, Old: fleet(&a.Old), New: fleet(&a.New), Removed: len(a.Removed),
		Unschedulable: len(a.NewlyUnschedulable()), Schedulable: len(unschedulableIn(&a.Old, &a.New)), Useless: a.Useless}
	a.Verdict, a.Violations = e.Verdict(), append([]review.Violation{}, allowed.Violations(e)...)
	a.Difference = Difference{a.New.PricePerHour - a.Old.PricePerHour, e.PerMonth()}
}

// poolDeleted is the reason of the step that takes away the nodes of a pool that is gone.
const poolDeleted = "NodePool deleted"

// notRead are kinds of which the objects of a cluster are not read: their pods are.
var notRead = []string{"Deployment", "Job", "CronJob", "PodTemplate", "ResourceQuota"}

// changesBetween returns the fields that differ between the objects of files of either input. Objects of a cluster may
// stand for those of the first.
func changesBetween(before, after *Manifests, cluster bool) []review.Change {
	all := maps.Clone(before.over)
	maps.Copy(all, after.over)
	var list []review.Change
	for identity := range all {
		kind, name, _ := strings.Cut(identity, " ")
		kind = kind[strings.LastIndexByte(kind, '.')+1:]
		o := review.Object{Kind: kind, Name: strings.TrimPrefix(name, "/")}
		old, now := o, o
		old.Content, now.Content = contentOf(before.taken[identity]), contentOf(after.taken[identity])
		old.Unknown = cluster && slices.Contains(notRead, kind)
		list = append(list, review.Compare(old, now)...)
	}
	slices.SortFunc(list, func(a, b review.Change) int {
		whole := func(c review.Change) int { return min(len(c.Field), 1) }
		return cmp.Or(cmp.Compare(whole(a), whole(b)), cmp.Compare(rankOf(a.Kind), rankOf(b.Kind)), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Name, b.Name), strings.Compare(a.Field, b.Field))
	})
	return list
}

// rankOf orders kinds: NodePools first, because the verdict names the first change.
func rankOf(kind string) int {
	if at := slices.Index([]string{"NodePool", "EC2NodeClass", "NodeOverlay", "CapacityQuota", "CapacityBuffer"}, kind); at >= 0 {
		return at
	}
	return 10
}

// contentOf returns an object as its JSON, nil for none.
func contentOf(object metav1.Object) map[string]any {
	if object == nil {
		return nil
	}
	text, err := json.Marshal(object)
	if err != nil {
		return map[string]any{}
	}
	content := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&content); err != nil {
		return map[string]any{}
	}
	return content
}

// unknownDrifts returns a sentence for the nodes of each pool of which it is not known whether they drift.
func (o *Manifests) unknownDrifts() []string {
	var list, order []string
	nodes := map[string][]string{}
	for _, u := range o.undrifted {
		key := fmt.Sprintf("NodePool %s: whether %%s drift is not known, because they match neither the old nor the new requirement "+
			"on label %s, and have no NodeClaim; they count as not drifted: ", u.pool, u.label)
		if nodes[key] == nil {
			order = append(order, key)
		}
		nodes[key] = append(nodes[key], u.node)
	}
	for _, key := range order {
		list = append(list, strings.Replace(key, "%s", plural(len(nodes[key]), "node"), 1)+names(nodes[key], ", "))
	}
	return list
}

// warnings returns the pools that can launch nothing, in words, and the names of those that could before.
func warnings(old, now *Overview) (list, useless []string) {
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

// misspelled returns what looks misspelled in requirements of pools that can launch something all the same, with the new
// objects only.
func misspelled(old, now *Overview) []string {
	var list []string
	for _, pool := range now.snap.Pools {
		if blockedBy(now.snap, pool) != "" {
			continue
		}
		var known []string
		if before := old.snap.Pool(pool.Name); before != nil {
			known = explain.Misspelled(before)
		}
		for _, text := range explain.Misspelled(pool) {
			if !slices.Contains(known, text) {
				list = append(list, "NodePool "+pool.Name+": "+text)
			}
		}
	}
	return list
}

// uncounted returns a sentence about the static pools that the change concerns, if the figures lack their replicas.
func (a *DiffAnswer) uncounted(old, now *Overview) []string {
	if now.policy.disruptOptions().Static {
		return nil
	}
	static := func(o *Overview, name string) bool {
		pool := o.snap.Pool(name)
		return pool != nil && pool.Static
	}
	var list []string
	for i := range a.Changes {
		c := &a.Changes[i]
		if c.Kind == "NodePool" && !slices.Contains(list, c.Name) && (static(old, c.Name) || static(now, c.Name)) {
			list = append(list, c.Name)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("static NodePools (%s) are not counted, because the feature gate StaticCapacity is off: "+
		"--feature-gates StaticCapacity=true counts them, as a controller does that has it on", names(list, ", "))}
}

// figuresAtRest sums up the way to the fleet at rest.
func (o *Overview) figuresAtRest(p *view.Plan) AtRest {
	cost := o.costOf(o.rest)
	r := AtRest{Nodes: p.After.Nodes, PricePerHour: p.After.Price, UnknownPrices: cost.Unpriced, ByReason: pricesByReason(p),
		FreshPerHour: cost.Fresh, FreshWithout: cost.FreshWithout, LowerBoundPerHour: cost.Bound}
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

// pricesByReason divides the difference of the prices before and after a plan by the reasons of its steps, which
// follow in the order of their first steps.
func pricesByReason(p *view.Plan) []ReasonPrice {
	list := []ReasonPrice{}
	last := p.Before.Price
	for i := range p.Steps {
		s := &p.Steps[i]
		at := slices.IndexFunc(list, func(r ReasonPrice) bool { return r.Reason == s.Reason })
		if at < 0 {
			at, list = len(list), append(list, ReasonPrice{Reason: s.Reason})
		}
		list[at].Steps++
		list[at].PricePerHour += s.Price - last
		last = s.Price
	}
	return list
}

// NewlyUnschedulable are the pods that are unschedulable with the new objects only.
func (a *DiffAnswer) NewlyUnschedulable() []Unschedulable { return unschedulableIn(&a.New, &a.Old) }

// unschedulableIn returns the pods that are unschedulable in the first fleet and not in the second.
func unschedulableIn(first, second *AtRest) []Unschedulable {
	known := map[string]bool{}
	for i := range second.Unschedulable {
		known[second.Unschedulable[i].Pod] = true
	}
	return slices.DeleteFunc(slices.Clone(first.Unschedulable), func(u Unschedulable) bool { return known[u.Pod] })
}

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
