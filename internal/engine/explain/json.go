package explain

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Answer is a plan as data for other programs. Money is in USD per hour, cpu in millicores, other amounts in bytes or
// units.
type Answer struct {
	Claims  []Claim   `json:"claims,omitempty"`
	Placed  []Placed  `json:"placed,omitempty"`
	Refused []Refused `json:"refused,omitempty"`
	// Room is the answer for virtual pods, nil if there are none.
	Room *Answer `json:"room,omitempty"`
}

// Claim is a node to launch.
type Claim struct {
	Name         string            `json:"name"`
	Pool         string            `json:"pool"`
	PricePerHour float64           `json:"pricePerHour"`
	Requirements []string          `json:"requirements"`
	Labels       map[string]string `json:"labels,omitempty"`
	Requests     map[string]int64  `json:"requests"`
	Options      []Option          `json:"options"`
	Pods         []string          `json:"pods"`
}

// Option is a type that the cloud may launch for a claim, at its cheapest offering.
type Option struct {
	Type         string  `json:"type"`
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	PricePerHour float64 `json:"pricePerHour"`
}

// Placed holds pods that are placed on an existing node or a claim in flight.
type Placed struct {
	Node string   `json:"node"`
	Pods []string `json:"pods"`
}

// Refused holds unschedulable pods and the reason: a problem of the pod itself, or the verdict of each pool.
type Refused struct {
	Pods    []string     `json:"pods,omitempty"`
	Text    string       `json:"text,omitempty"`
	Verdict *Reason      `json:"verdict,omitempty"`
	Pools   []PoolReason `json:"pools,omitempty"`
	// Nodes holds the verdicts of existing nodes, if they were evaluated.
	Nodes []NodeReason `json:"nodes,omitempty"`
	// Dropped is the number of preferences of the pods that were dropped without success.
	Dropped int `json:"dropped,omitempty"`
}

// NodeReason is a reason for which a number of nodes refuse the pods. For a resource, have is the most that is free
// on any of them.
type NodeReason struct {
	Nodes int `json:"nodes"`
	Reason
}

// PoolReason is the verdict of a pool, with the rules that excluded instance types and the single changes after which
// some types would fit.
type PoolReason struct {
	Pool string `json:"pool"`
	Reason
	// Also holds other labels on which the pool does not match the pods.
	Also    []Reason `json:"also,omitempty"`
	Filters []Filter `json:"filters,omitempty"`
	Nearest []Change `json:"nearest,omitempty"`
	// Hint is a suggestion for a probable typing mistake.
	Hint string `json:"hint,omitempty"`
}

// Filter is a rule and the number of instance types before and after it.
type Filter struct {
	Rule   string `json:"rule"`
	Code   string `json:"code"`
	Before int    `json:"before"`
	After  int    `json:"after"`
}

// Change is a change that would help, and the number of instance types that would then fit.
type Change struct {
	Text  string `json:"text"`
	Code  string `json:"code"`
	Types int    `json:"types"`
}

// Reason is a verdict: its code, the operands that the code has, and the text.
type Reason struct {
	Code     string `json:"code"`
	Class    string `json:"class"`
	Text     string `json:"text"`
	Label    string `json:"label,omitempty"`
	Quota    string `json:"quota,omitempty"`
	Resource string `json:"resource,omitempty"`
	// Unit is the unit of need and have of a resource: millicores, bytes or, for counted resources, units.
	Unit  string `json:"unit,omitempty"`
	Need  *int64 `json:"need,omitempty"`
	Have  *int64 `json:"have,omitempty"`
	Types int    `json:"types,omitempty"`
	Taint string `json:"taint,omitempty"`
	Node  string `json:"node,omitempty"`
	Field string `json:"field,omitempty"`
}

// JSON returns a plan as one JSON document.
func JSON(snap *model.Snapshot, p *plan.Provision) ([]byte, error) {
	data, err := json.MarshalIndent(AnswerOf(snap, p), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding a plan: %w", err)
	}
	return append(data, '\n'), nil
}

// AnswerOf returns a plan as data.
func AnswerOf(snap *model.Snapshot, p *plan.Provision) Answer {
	var a Answer
	for i := range p.Claims {
		a.Claims = append(a.Claims, claimOf(&p.Claims[i]))
	}
	for _, n := range p.Placed {
		a.Placed = append(a.Placed, Placed{Node: n.Node, Pods: keys(n.Pods)})
	}
	for _, r := range p.Refused {
		a.Refused = append(a.Refused, RefusedOf(snap, r))
	}
	if p.Virtual != nil {
		room := AnswerOf(snap, p.Virtual)
		a.Room = &room
	}
	return a
}

// RefusedOf returns a refusal as data.
func RefusedOf(snap *model.Snapshot, r plan.Refusal) Refused {
	refused := ReasonsOf(snap, r)
	refused.Pods, refused.Text = keys(r.Pods), Refusal(snap, r)
	return refused
}

// ReasonsOf returns a refusal as data, without the pods and the text of the event.
func ReasonsOf(snap *model.Snapshot, r plan.Refusal) Refused {
	refused := Refused{Dropped: r.Dropped}
	if !r.Verdict.OK() {
		reason := ReasonOf(snap, r.Verdict)
		reason.Text = own(snap, r)
		refused.Verdict = &reason
	}
	for _, p := range closest(snap, r.Pools) {
		reason := PoolReason{Pool: p.Pool, Reason: ReasonOf(snap, p.Verdict), Hint: strings.Join(hints(snap, r, p), "; ")}
		if p.Verdict.Code == plan.NoCompatibleInstanceTypes {
			reason.Text = noTypes(snap, p.Pool, p.Verdict)
		}
		for _, v := range p.Also {
			reason.Also = append(reason.Also, ReasonOf(snap, v))
		}
		for _, f := range p.Filters {
			reason.Filters = append(reason.Filters, Filter{Rule: rule(snap, f.Rule), Code: Code(f.Rule.Code), Before: f.Before, After: f.After})
		}
		for _, c := range p.Nearest {
			reason.Nearest = append(reason.Nearest, Change{Text: change(snap, c), Code: Code(c.Rule.Code), Types: c.Types})
		}
		refused.Pools = append(refused.Pools, reason)
	}
	for _, n := range r.Nodes {
		reason := ReasonOf(snap, n.Rule)
		reason.Text = ofNode(snap, n.Rule)
		refused.Nodes = append(refused.Nodes, NodeReason{n.Nodes, reason})
	}
	return refused
}

func claimOf(c *plan.NewClaim) Claim {
	claim := Claim{Name: c.Name, Pool: c.Pool, PricePerHour: USD(c.Price()), Labels: c.Labels, Pods: keys(c.Pods), Requests: map[string]int64{}}
	for _, r := range c.Requirements {
		claim.Requirements = append(claim.Requirements, r.String())
	}
	for _, a := range c.Requests {
		claim.Requests[a.Name] += a.Value
	}
	for _, o := range c.Options {
		claim.Options = append(claim.Options, Option{Type: o.Type, Zone: o.Zone, CapacityType: o.CapacityType, PricePerHour: USD(o.Price)})
	}
	return claim
}

// USD converts the engine's unit of money to USD.
func USD(nano int64) float64 { return float64(nano) / model.Nano }

func keys(pods []*model.Pod) []string {
	names := make([]string, len(pods))
	for i, p := range pods {
		names[i] = p.Key()
	}
	return names
}

// ReasonOf returns a verdict as data.
func ReasonOf(snap *model.Snapshot, v plan.Verdict) Reason {
	o := operands{snap, v}
	r := Reason{Code: Code(v.Code), Class: class(v.Code.Class()), Text: Verdict(snap, v), Types: v.Types, Node: v.Node}
	switch v.Code {
	case plan.PodContradiction, plan.PoolContradiction, plan.NoCompatibleInstanceTypes, plan.LabelUndefined, plan.LabelExcluded, plan.TypesExcluded,
		plan.SpreadExceeded, plan.AffinityUnmet, plan.AntiAffinityBlocked:
		r.Label = o.label()
	case plan.MinValuesUnmet:
		r.Label, r.Need, r.Have = o.label(), &v.Need, &v.Have
	case plan.TaintNotTolerated:
		r.Taint = Taint(v.Taint)
	case plan.ResourceTooLarge, plan.CombinationTooLarge, plan.LimitReached, plan.QuotaReached, plan.NodeFull:
		r.Resource, r.Need, r.Have = o.resource(), &v.Need, &v.Have
		r.Unit, r.Quota = unitOf(r.Resource), v.Quota
	case plan.NodeLimitReached, plan.NodeBusy, plan.BudgetExhausted, plan.HostPortTaken:
		r.Have = &v.Have
	}
	if v.Rejection != nil {
		r.Field = v.Rejection.Field
	}
	return r
}

func class(c plan.Class) string {
	switch c {
	case plan.Allowed:
		return "Allowed"
	case plan.NotNow:
		return "NotNow"
	case plan.NotSupported:
		return "NotSupported"
	}
	return "NeverHere"
}
