package disruption_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// roomCatalog has types of 1 and 4 CPUs, for 1 and 4 USD per hour.
var roomCatalog = &model.Catalog{Types: []model.InstanceType{onDemand("small", 1), onDemand("large", 4)},
	WellKnown: map[string]bool{model.LabelZone: true, model.LabelCapacityType: true, model.LabelType: true}}

func onDemand(name string, price int64) model.InstanceType {
	t := kind(name, price)
	t.Offerings[0].CapacityType = "on-demand"
	return t
}

// roomCase is a fleet with virtual pods.
type roomCase struct {
	name, policy string
	// nodes are names and types; drifted are those that have drifted. pods are nodes of pods of 500 millicores.
	nodes   [][2]string
	drifted string
	pods    []string
	// virtual holds the millicores of virtual pods, and the node that the last plan has each on.
	virtual           map[int64]string
	removed, launched []string
}

// snapshot returns the fleet with commands in progress.
func (c roomCase) snapshot(commands ...plan.Command) *model.Snapshot {
	b := model.NewBuilder()
	b.UpsertPool(model.PoolSpec{Name: "p", UID: "uid-p", ConsolidateAfter: 30 * time.Second, Policy: c.policy, Catalog: roomCatalog})
	sizes := map[string]int64{"small": 1000, "large": 4000}
	for _, n := range c.nodes {
		amounts := []quantity.Amount{{Name: "cpu", Value: sizes[n[1]]}}
		spec := model.NodeSpec{Name: n[0], UID: "uid-" + n[0], Claim: "claim-" + n[0], ClaimUID: "uid-claim-" + n[0], Pool: "p",
			Stage: model.Initialized, Ready: true, InitializedAt: noon.Add(-3 * time.Hour), Capacity: amounts, Allocatable: amounts,
			Labels: map[string]string{model.LabelPool: "p", model.LabelType: n[1], model.LabelZone: "z", model.LabelCapacityType: "on-demand"}}
		if n[0] == c.drifted {
			spec.Drifted = "NodePoolDrifted"
		}
		for i := range commands {
			if slices.Contains(commands[i].Candidates, plan.Candidate{Claim: spec.Claim, ClaimUID: spec.ClaimUID, Node: spec.Name, NodeUID: spec.UID, Pool: "p"}) {
				spec.Command = commands[i].Encode()
			}
		}
		b.UpsertNode(spec)
	}
	for _, node := range c.pods {
		b.UpsertPod(model.PodSpec{UID: "uid-on-" + node, Namespace: "default", Name: "on-" + node, Node: node, State: model.Bound, Reschedulable: true,
			Requests: []quantity.Amount{{Name: "cpu", Value: 500}}})
	}
	for cpu := range c.virtual {
		name := spareName(cpu)
		b.UpsertPod(model.PodSpec{UID: "uid-" + name, Namespace: "default", Name: name, Virtual: model.VirtualBuffer, Priority: -1 << 31,
			Controller: model.Owner{Kind: "CapacityBuffer", Name: "spare", UID: "spare"},
			Requests:   []quantity.Amount{{Name: "cpu", Value: cpu}}})
	}
	return b.Snapshot(noon)
}

// spareName names the virtual pod of that size.
func spareName(cpu int64) string { return "spare-" + string(rune('a'+cpu/100)) }

// last returns the last plan of provisioning.
func (c roomCase) last() *plan.Provision {
	virtual := &plan.Provision{}
	for cpu, node := range c.virtual {
		virtual.Placed = append(virtual.Placed, plan.Placement{Node: node, Pods: []*model.Pod{{UID: "uid-" + spareName(cpu)}}})
	}
	return &plan.Provision{Virtual: virtual}
}

// removed returns the names of the nodes that the commands remove, and the types of the nodes that they launch.
func removed(commands []plan.Command) (nodes, launched []string) {
	for _, c := range commands {
		for _, candidate := range c.Candidates {
			nodes = append(nodes, candidate.Node)
		}
		for _, r := range c.Replacements {
			launched = append(launched, r.Options[0].Type)
		}
	}
	slices.Sort(nodes)
	return nodes, launched
}

func TestVirtualPods(t *testing.T) {
	three := [][2]string{{"a", "small"}, {"b", "small"}, {"c", "small"}}
	const empty, both = "WhenEmpty", "WhenEmptyOrUnderutilized"
	for _, c := range []roomCase{
		{name: "CB-7: of three empty nodes, one has the room", policy: empty, nodes: three, virtual: map[int64]string{500: ""},
			removed: []string{"a", "b"}},
		{name: "CB-7: the room is where the last plan has it", policy: empty, nodes: three, virtual: map[int64]string{500: "c"},
			removed: []string{"a", "b"}},
		{name: "without virtual pods all are removed", policy: empty, nodes: three, removed: []string{"a", "b", "c"}},
		{name: "a virtual pod that fits nowhere keeps no node", policy: empty, nodes: three, virtual: map[int64]string{1500: ""},
			removed: []string{"a", "b", "c"}},
		{name: "a node in use has room as well", policy: empty, nodes: [][2]string{{"a", "large"}, {"b", "small"}}, pods: []string{"a"},
			virtual: map[int64]string{600: "b"}, removed: []string{"b"}},
		{name: "a cheaper node replaces one that is kept for its room", policy: both, nodes: [][2]string{{"a", "large"}},
			virtual: map[int64]string{600: ""}, removed: []string{"a"}, launched: []string{"small"}},
		{name: "no cheaper node has the room", policy: both, nodes: [][2]string{{"a", "large"}}, virtual: map[int64]string{1500: ""}},
		{name: "pods do not move onto room that is then missing", policy: both, nodes: [][2]string{{"a", "small"}, {"b", "small"}},
			pods: []string{"a"}, virtual: map[int64]string{600: "b"}},
		{name: "pods move where room remains", policy: both, nodes: [][2]string{{"a", "small"}, {"b", "large"}},
			pods: []string{"a", "b"}, virtual: map[int64]string{2000: "b"}, removed: []string{"a"}},
		{name: "a drifted node is replaced together with its room", policy: empty, nodes: [][2]string{{"a", "large"}}, drifted: "a",
			pods: []string{"a"}, virtual: map[int64]string{3000: "a"}, removed: []string{"a"}, launched: []string{"small", "large"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := disruption.Propose(c.snapshot(), disruption.Options{Last: c.last(),
				Economics: disruption.Economics{MovePrice: -1, Payback: -1, MinStay: -1}})
			nodes, launched := removed(p.Commands)
			if diff := cmp.Diff(c.removed, nodes); diff != "" {
				t.Errorf("removed nodes (-want +got):\n%s\nkept: %+v", diff, p.Kept)
			}
			if diff := cmp.Diff(c.launched, launched); diff != "" {
				t.Errorf("launched types (-want +got):\n%s", diff)
			}
			judge := disruption.Judge(c.snapshot(p.Commands...), disruption.Options{Last: c.last()})
			for _, cmd := range p.Commands { // a stored command is right as long as nothing changes
				if v := judge(cmd); !v.OK() {
					t.Errorf("the command is judged %+v", v)
				}
			}
		})
	}
}
