package disruption_test

import (
	"slices"
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// judged checks that Judge accepts the commands in the same cluster, and refuses them if the room is taken or the
// replacements have become expensive.
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
		if v := guard.Check(snap, c); c.Reason == plan.Underutilized && v.OK() {
			t.Errorf("evictions are blocked, but the check passes for %s", c.Encode())
		}
	}
}

// storing returns the fleet with the commands stored on their nodes.
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

// agrees checks that each command alone is correct. All commands together are placed once more, possibly less well.
// Then pods may have no room, but not those of every command, and there must be no other problem.
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
			t.Errorf("with all commands stored: verdict %+v for %s", v, c.Encode())
		}
		if v := disruption.Judge(f.storing(c).snapshot(nil), usual)(c); !v.OK() {
			t.Errorf("verdict %+v %+v for %s", v, v.Holder, c.Encode())
		}
	}
	if asked > 0 && passed == 0 {
		t.Errorf("with all commands stored, none of %d commands passes", asked)
	}
}

// fullRefused checks that commands are refused if no node has room and no offering is available. Each command is
// stored alone, because replacements of other commands have room.
func fullRefused(t *testing.T, f *fleet, p disruption.Proposal) {
	t.Helper()
	for _, c := range p.Commands {
		if c.Reason != plan.Underutilized || len(c.Assignments) == 0 || len(c.Replacements) > 0 {
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
			t.Errorf("no node has room, but the verdict is OK for %s", c.Encode())
		}
	}
}

// dearRefused checks that commands are refused if every type except those of the removed nodes costs a hundred times
// as much.
func dearRefused(t *testing.T, f *fleet, p disruption.Proposal) {
	t.Helper()
	dear := *f
	dear.pools, dear.nodes = slices.Clone(f.pools), f.nodes
	catalog := *f.pools[0].Catalog
	catalog.Types = slices.Clone(catalog.Types)
	leaves := map[string]bool{}
	for _, n := range f.nodes {
		if n.Command != "" {
			leaves[n.Labels[model.LabelType]+n.Labels[model.LabelZone]+n.Labels[model.LabelCapacityType]] = true
		}
	}
	for i := range catalog.Types {
		offerings := slices.Clone(catalog.Types[i].Offerings)
		for k, o := range offerings {
			if !leaves[catalog.Types[i].Name+o.Zone+o.CapacityType] {
				offerings[k].Price *= 100
			}
		}
		catalog.Types[i].Offerings = offerings
	}
	for i := range dear.pools {
		dear.pools[i].Catalog = &catalog
	}
	judge := disruption.Judge(dear.snapshot(nil), usual)
	for _, c := range p.Commands {
		if c.Reason != plan.Underutilized || len(c.Replacements) == 0 {
			continue
		}
		listed := func(o plan.Option) bool { return leaves[o.Type+o.Zone+o.CapacityType] }
		if !slices.ContainsFunc(c.Replacements[0].Options, listed) && judge(c).OK() {
			t.Errorf("all other types cost a hundred times as much, but the verdict is OK for %s", c.Encode())
		}
	}
}

// TestJudgeAgreesWithTheSearch checks that a proposed command is not reverted while nothing changes; otherwise it
// would be proposed and reverted in a loop.
func TestJudgeAgreesWithTheSearch(t *testing.T) {
	replacing := 0
	free := disruption.Options{Economics: disruption.Economics{Payback: -1, MinStay: -1, MovePrice: -1}}
	for seed := range uint64(120) {
		for _, opts := range []disruption.Options{{}, free} {
			f := halfUsed(seed, 8+int(seed%17))
			p := disruption.Propose(f.snapshot(nil), opts)
			judge := disruption.Judge(f.storing(p.Commands...).snapshot(nil), opts)
			for _, c := range p.Commands {
				replacing += min(1, len(c.Replacements))
				if v := judge(c); !v.OK() {
					t.Errorf("seed %d: Judge refuses the command: %+v %s", seed, v, c.Encode())
				}
			}
		}
	}
	if replacing == 0 {
		t.Error("no command has a replacement: this test is void")
	}
}
