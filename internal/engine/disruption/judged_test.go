package disruption_test

import (
	"slices"
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// judged: the judge of stored commands agrees with them on the same world, and not where the room is taken or where what is
// bought has become dear.
func judged(t *testing.T, f *fleet, p disruption.Proposal) {
	t.Helper()
	agrees(t, f, p)
	stored := f.storing(p.Commands...)
	fullRefused(t, f, p)
	dearRefused(t, stored, p)
	closed := *stored
	closed.pdbs = append(slices.Clone(f.pdbs), model.PDBSpec{UID: "all", Namespace: "default", Name: "all", Selector: model.Selector{Namespaces: []string{"default"}}})
	snap := closed.snapshot(nil)
	for _, c := range p.Commands {
		if v := plan.Check(snap, c); c.Reason == plan.Underutilized && v.OK() {
			t.Errorf("no pod may be evicted any more, and %s passes", c.Encode())
		}
	}
}

// storing is the fleet with the commands written on their nodes.
func (f *fleet) storing(commands ...plan.Command) *fleet {
	stored := *f
	stored.nodes = slices.Clone(f.nodes)
	for _, c := range commands {
		for _, candidate := range c.Candidates {
			at := slices.IndexFunc(f.nodes, func(n model.NodeSpec) bool { return n.Name == candidate.Node })
			stored.nodes[at].Command = c.Encode()
		}
	}
	return &stored
}

// agrees: alone each command is right. All together are packed once more, and may be packed worse: then pods may be without
// a place, but not those of every command, and nothing else may be wrong.
func agrees(t *testing.T, f *fleet, p disruption.Proposal) {
	t.Helper()
	together := disruption.Judge(f.storing(p.Commands...).snapshot(nil), usual)
	asked, passed := 0, 0
	for _, c := range p.Commands {
		if c.Reason != plan.Underutilized {
			continue
		}
		asked++
		v := together(c)
		if v.OK() {
			passed++
		}
		if !v.OK() && v.Code != plan.PodsHomeless {
			t.Errorf("together with the others the judge does not agree: %+v %s", v, c.Encode())
		}
		if v := disruption.Judge(f.storing(c).snapshot(nil), usual)(c); !v.OK() {
			t.Errorf("the judge does not agree: %+v %+v %s", v, v.Holder, c.Encode())
		}
	}
	if asked > 0 && passed == 0 {
		t.Errorf("together the judge agrees with none of %d commands", asked)
	}
}

// fullRefused: nobody has room and nothing is for sale. Each command is stored alone, because what others buy has room.
func fullRefused(t *testing.T, f *fleet, p disruption.Proposal) {
	t.Helper()
	for _, c := range p.Commands {
		if c.Reason != plan.Underutilized || len(c.Seats) == 0 || len(c.Replacements) > 0 {
			continue
		}
		full := f.storing(c)
		full.pools = slices.Clone(f.pools)
		for i := range full.pools {
			full.pools[i].Blocked = &model.Rejection{Field: "status", Reason: "not ready"}
		}
		for i := range full.nodes {
			full.nodes[i].Taints = append(slices.Clone(full.nodes[i].Taints), model.Taint{Key: "closed", Effect: model.NoExecute})
		}
		if disruption.Judge(full.snapshot(nil), usual)(c).OK() {
			t.Errorf("nobody has room, and the judge agrees with %s", c.Encode())
		}
	}
}

// dearRefused: everything but what leaves costs a hundred times as much.
func dearRefused(t *testing.T, f *fleet, p disruption.Proposal) {
	t.Helper()
	dear := *f
	dear.pools, dear.nodes = slices.Clone(f.pools), f.nodes
	catalogue := *f.pools[0].Catalogue
	catalogue.Types = slices.Clone(catalogue.Types)
	leaves := map[string]bool{}
	for _, n := range f.nodes {
		if n.Command != "" {
			leaves[n.Labels[model.LabelType]+n.Labels[model.LabelZone]+n.Labels[model.LabelCapacityType]] = true
		}
	}
	for i := range catalogue.Types {
		offerings := slices.Clone(catalogue.Types[i].Offerings)
		for k, o := range offerings {
			if !leaves[catalogue.Types[i].Name+o.Zone+o.CapacityType] {
				offerings[k].Price *= 100
			}
		}
		catalogue.Types[i].Offerings = offerings
	}
	for i := range dear.pools {
		dear.pools[i].Catalogue = &catalogue
	}
	judge := disruption.Judge(dear.snapshot(nil), usual)
	for _, c := range p.Commands {
		listed := func(o plan.Option) bool { return leaves[o.Type+o.Zone+o.CapacityType] }
		if c.Reason == plan.Underutilized && len(c.Replacements) > 0 && !slices.ContainsFunc(c.Replacements[0].Options, listed) && judge(c).OK() {
			t.Errorf("everything else costs a hundred times as much, and the judge agrees with %s", c.Encode())
		}
	}
}
