package disruption_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// committedFleet is a fleet of machines of types a and b, with 2 and 4 vCPUs; a commitment halves the price of b.
type committedFleet struct {
	now   time.Time
	limit int64 // millicores
	nodes []model.NodeSpec
	pods  []model.PodSpec
	made  int
}

func only(key, value string) label.Requirement {
	return label.Requirement{Key: key, Operator: label.In, Values: []string{value}}
}

func committedCatalog(limit int64) *model.Catalog {
	c := &model.Catalog{WellKnown: map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true,
		model.FieldCommitment: true}}
	for name, price := range map[string]int64{"a2": 16, "a4": 32, "b2": 20, "b4": 40} { // US cents per hour
		size := []quantity.Amount{{Name: "cpu", Value: int64(name[1]-'0') * 1000}, {Name: "pods", Value: 100}}
		o := model.Offering{Zone: "x", CapacityType: "on-demand", Price: price * model.Nano / 100, Available: true,
			Requirements: []label.Requirement{{Key: model.FieldCommitment, Operator: label.DoesNotExist}}}
		t := model.InstanceType{Name: name, Capacity: size, Allocatable: size, Requirements: []label.Requirement{only(model.LabelType, name)},
			Offerings: []model.Offering{o}}
		if name[0] == 'b' && limit > 0 {
			o.Requirements = []label.Requirement{only(model.FieldCommitment, "plan")}
			o.ReservationID, o.Price, o.Limit, o.Units = model.CommitmentID(0, "plan"), o.Price/2, limit, size[0].Value
			t.Offerings = append(t.Offerings, o)
		}
		c.Types = append(c.Types, t)
	}
	slices.SortFunc(c.Types, func(x, y model.InstanceType) int {
		return int(x.Name[0]-y.Name[0])*10 + int(x.Name[1]) - int(y.Name[1])
	})
	return c
}

func (f *committedFleet) snapshot() *model.Snapshot {
	b := model.NewBuilder()
	b.UpsertPool(model.PoolSpec{Name: "p", UID: "p", Catalog: committedCatalog(f.limit), Policy: "WhenEmptyOrUnderutilized"})
	for _, n := range f.nodes {
		b.UpsertNode(n)
	}
	for _, p := range f.pods {
		b.UpsertPod(p)
	}
	return b.Snapshot(f.now)
}

// launch adds a machine of the claim's cheapest type, with its pods.
func (f *committedFleet) launch(c *plan.NewClaim) {
	f.made++
	typeName, name := c.Options[0].Type, cmp.Or(c.Name, "n"+strconv.Itoa(f.made))
	size := []quantity.Amount{{Name: "cpu", Value: int64(typeName[1]-'0') * 1000}, {Name: "pods", Value: 100}}
	f.nodes = append(f.nodes, model.NodeSpec{Name: name, UID: name, Claim: name, ClaimUID: name, Pool: "p", Stage: model.Initialized,
		Ready: true, Created: f.now, InitializedAt: f.now, Capacity: size, Allocatable: size, Labels: map[string]string{
			model.LabelPool: "p", model.LabelType: typeName, model.LabelZone: "x", model.LabelCapacityType: "on-demand"}})
	f.bind(name, c.PodRefs())
}

func (f *committedFleet) bind(node string, refs []model.PodRef) {
	for _, ref := range refs {
		for i := range f.pods {
			if f.pods[i].UID == ref.UID {
				f.pods[i].Node, f.pods[i].State, f.pods[i].Ready = node, model.Bound, true
			}
		}
	}
}

// settle provisions and consolidates until nothing changes, and returns the number of commands.
func (f *committedFleet) settle(t *testing.T) (commands int) {
	t.Helper()
	for round := range 60 {
		p := placement.Schedule(f.snapshot(), placement.Options{})
		for _, at := range p.Placed {
			f.bind(at.Node, (&plan.NewClaim{Pods: at.Pods}).PodRefs())
		}
		for i := range p.Claims {
			f.launch(&p.Claims[i])
		}
		f.now = f.now.Add(2 * time.Hour)
		snap := f.snapshot()
		proposal := disruption.Propose(snap, disruption.Options{})
		if len(proposal.Commands) == 0 && len(p.Claims) == 0 {
			return commands
		}
		f.carryOut(t, proposal.Commands)
		commands += len(proposal.Commands)
		if round == 59 {
			t.Fatalf("limit %d: the fleet does not come to rest: %+v", f.limit, proposal.Commands)
		}
	}
	return commands
}

// carryOut stores the commands, launches their replacements and removes their nodes, whose pods are pending: the next plan
// launches for them. Each command stays correct before and after its launches.
func (f *committedFleet) carryOut(t *testing.T, commands []plan.Command) {
	t.Helper()
	for i := range commands {
		for _, c := range commands[i].Candidates {
			f.node(c.Node).Command = commands[i].Encode()
		}
	}
	f.judge(t, "planned", commands)
	existed := len(f.nodes)
	for i := range commands {
		for k := range commands[i].Replacements {
			r := &commands[i].Replacements[k]
			f.launch(r)
			n := f.node(r.Name)
			n.Stage, n.Requirements = model.Launching, r.Requirements
		}
	}
	f.judge(t, "in flight", commands)
	for i := range f.nodes[existed:] {
		n := &f.nodes[existed+i]
		n.Stage, n.Requirements = model.Initialized, nil
	}
	f.judge(t, "launched", commands)
	for i := range commands {
		for _, gone := range commands[i].Candidates {
			f.nodes = slices.DeleteFunc(f.nodes, func(n model.NodeSpec) bool { return n.Name == gone.Node })
			for k := range f.pods {
				if f.pods[k].Node == gone.Node {
					f.pods[k].Node, f.pods[k].State = "", model.Pending
				}
			}
		}
	}
}

func (f *committedFleet) node(name string) *model.NodeSpec {
	return &f.nodes[slices.IndexFunc(f.nodes, func(n model.NodeSpec) bool { return n.Name == name })]
}

// judge checks that the commands stand, as stored.
func (f *committedFleet) judge(t *testing.T, when string, commands []plan.Command) {
	t.Helper()
	judge := disruption.Judge(f.snapshot(), disruption.Options{})
	for i := range commands {
		stored, err := plan.DecodeCommand(commands[i].Encode())
		if err != nil {
			t.Fatal(err)
		}
		if v := judge(stored); !v.OK() {
			t.Errorf("limit %d, %s: a command of %d is refused: %+v", f.limit, when, len(commands), v)
		}
	}
}

// paid is what the machines cost together, nano-USD per hour.
func (f *committedFleet) paid() (sum int64) {
	for _, n := range f.snapshot().Nodes {
		sum += n.Price
	}
	return sum
}

// TestCommitmentsThatComeAndGo: with each limit the fleet comes to rest, and stays there; it uses the commitment up to its
// limit, and not more of the type than that, which is dearer beyond; and the same limit later costs no more.
func TestCommitmentsThatComeAndGo(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 1))
		f := &committedFleet{now: noon}
		for i := range 4 + r.IntN(8) {
			name := fmt.Sprintf("pod-%02d", i)
			f.pods = append(f.pods, model.PodSpec{UID: name, Namespace: "default", Name: name, State: model.Pending, Reschedulable: true,
				Requests: []quantity.Amount{{Name: "cpu", Value: 1900}}})
		}
		for range 6 {
			f.limit = int64(r.IntN(5)) * 4000
			f.settle(t)
			if again := f.settle(t); again > 0 {
				t.Errorf("seed %d, limit %d: %d commands in a fleet at rest", seed, f.limit, again)
			}
			least := int64(0) // each pod needs 2 vCPUs: those within the limit at 0.05 USD per vCPU, the others at 0.08
			for i := range f.pods {
				if int64(i+1)*2000 <= f.limit {
					least += model.Nano / 10
				} else {
					least += model.Nano * 16 / 100
				}
			}
			if paid := f.paid(); paid > least {
				t.Errorf("seed %d, limit %d, %d pods: the fleet costs %d nano-USD per hour at rest, want %d", seed, f.limit, len(f.pods), paid, least)
			}
		}
	}
}

// TestCommitmentAfterSteps: the machine that a step launches in the model pays the price of the commitment, as in the
// cluster. At the list price it would be replaced by one of its own type in each step.
func TestCommitmentAfterSteps(t *testing.T) {
	f := &committedFleet{now: noon, limit: 4000, made: 1}
	f.pods = []model.PodSpec{{UID: "pod", Namespace: "default", Name: "pod", State: model.Bound, Ready: true, Node: "n2", Reschedulable: true,
		Requests: []quantity.Amount{{Name: "cpu", Value: 1000}}}}
	f.launch(&plan.NewClaim{Options: []plan.Option{{Type: "b4"}}})
	f.now = f.now.Add(2 * time.Hour)
	snap, steps := f.snapshot(), 0
	for ; steps < 4; steps++ {
		proposal := disruption.Propose(snap, disruption.Options{})
		if len(proposal.Commands) == 0 {
			break
		}
		snap = disruption.After(snap, proposal.Commands[0])
	}
	n := snap.Nodes[0]
	got := []int64{int64(steps), n.Price, n.LeastPrice()}
	if want := []int64{1, model.Nano / 10, model.Nano / 10}; !slices.Equal(got, want) || n.Labels[model.LabelType] != "b2" {
		t.Errorf("steps, price and least price %v of %s, want %v of b2", got, n.Labels[model.LabelType], want)
	}
}

// TestCommitmentInStaticPool: claims of a static pool list no types, and the provider chooses one by list price.
func TestCommitmentInStaticPool(t *testing.T) {
	b := model.NewBuilder()
	b.UpsertPool(model.PoolSpec{Name: "p", UID: "p", Catalog: committedCatalog(4000), Static: true, Replicas: 1, Blocked: model.StaticBlock()})
	snap := b.Snapshot(noon)
	claim := plan.StaticClaim(snap, snap.Pool("p"), "", func(string) bool { return false })
	got, found := claim.Cheapest(snap)
	want := plan.Option{Type: "a2", Zone: "x", CapacityType: "on-demand", Price: model.Nano * 16 / 100} // b2: 0.20, 0.10 committed
	if !found || got != want {
		t.Errorf("the cheapest offering is %+v (found %t), want %+v", got, found, want)
	}
}
