package refusal

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Where many labels or resources are named that no node has, they share a number. The verdicts about that number are
// completed with the first name that the group itself asks for.

// unknowns are the numbers that labels and resources share, -1 where there is none, and what a group asks for of them.
type unknowns struct {
	key       label.Key
	resource  quantity.Resource
	label     string
	amount    quantity.Amount
	labels    int
	resources int
}

// Name sets the names of labels and resources that share a number, in the refusal of pods of the group.
func Name(snap *model.Snapshot, g *model.Group, refusal *plan.Refusal) {
	u := unknowns{key: -1, resource: quantity.Resource(slices.Index(snap.Resources, model.Unknown))}
	if key, shared := snap.Space.Shared(); shared {
		u.key = key
	}
	if u.key < 0 && u.resource < 0 {
		return
	}
	u.ask(snap.Space, g)
	u.name(&refusal.Verdict)
	for i := range refusal.Pools {
		p := &refusal.Pools[i]
		u.name(&p.Verdict)
		for j := range p.Filters {
			u.name(&p.Filters[j].Rule)
		}
		for j := range p.Also {
			u.name(&p.Also[j])
		}
		for j := range p.Nearest {
			u.name(&p.Nearest[j].Rule)
		}
		p.Nearest = slices.DeleteFunc(p.Nearest, u.severalOf)
	}
	for i := range refusal.Nodes {
		u.name(&refusal.Nodes[i].Rule)
	}
}

// ask determines what the group asks for: the first resource by name, and the first label of the first alternative that
// requires one.
func (u *unknowns) ask(space *label.Space, g *model.Group) {
	for _, a := range g.Unknown {
		if !model.IsVolumeResource(a.Name) {
			if u.resources++; u.resources == 1 {
				u.amount = a
			}
		}
	}
	for _, reqs := range slices.Concat(g.Alternatives, g.VolumeAlternatives) {
		names := map[string]bool{}
		for _, q := range reqs {
			if _, known := space.Lookup(q.Key); known || q.Operator == label.NotIn || q.Operator == label.DoesNotExist {
				continue
			}
			key := label.Canonical(q.Key)
			names[key] = true
			if u.label == "" || key < u.label {
				u.label = key
			}
		}
		if len(names) > 0 {
			u.labels = len(names)
			return
		}
	}
}

// name sets the name in a verdict about a shared number.
func (u *unknowns) name(v *plan.Verdict) {
	switch v.Code {
	case plan.PodContradiction, plan.LabelUndefined, plan.LabelExcluded, plan.TypesExcluded:
		if v.Key == u.key {
			v.Name = u.label
		}
	case plan.ResourceTooLarge, plan.CombinationTooLarge, plan.NodeFull:
		if v.Resource == u.resource && u.resources > 0 {
			v.Name, v.Need = u.amount.Name, u.amount.Value
		}
	}
}

// severalOf reports whether the change is not the only one that is needed: the group asks for several labels or
// resources that share the number.
func (u *unknowns) severalOf(c plan.Change) bool {
	return c.Rule.Name != "" && (c.Rule.Name == u.label && u.labels > 1 || c.Rule.Name == u.amount.Name && u.resources > 1)
}
