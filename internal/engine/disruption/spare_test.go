package disruption_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// spotWorld returns a snapshot with three nodes and a pool in which no type may have more than half of the spot
// capacity.
func spotWorld(t *testing.T) *model.Snapshot {
	t.Helper()
	return worldOf(t, `type one cpu=4 price=0.4 spot=0.10
type two cpu=4 price=0.4 spot=0.11
type wide cpu=8 price=0.9 spot=0.50
pool p policy=WhenEmptyOrUnderutilized max-spot-share=50 move-price=0 budget=100% cpu-limit=100
node a pool=p type=wide spot
node b pool=p type=two spot
node c pool=p type=wide spot
pod a1 node=a cpu=4
pod b1 node=b cpu=4
pod c1 node=c cpu=8
`).snapshot(nil)
}

func spotClaim(snap *model.Snapshot, name, kind string, price float64, node string) plan.NewClaim {
	return plan.NewClaim{Name: name, Pool: "p", PoolUID: snap.Pool("p").UID, Pods: snap.Node(node).Pods,
		Requirements: []label.Requirement{in(model.LabelPool, "p"), in(model.LabelType, kind), in(model.LabelCapacityType, "spot")},
		Options:      []plan.Option{{Type: kind, Zone: "z", CapacityType: "spot", Price: int64(price * model.Nano)}}}
}

// TestDecidedAnewInTheSameWorld checks that a replacement of a finding is evaluated in the same state as the finding:
// its nodes exist and its replacements do not.
func TestDecidedAnewInTheSameWorld(t *testing.T) {
	snap := worldOf(t, `type one cpu=4 price=0.9 spot=0.10
type two cpu=4 price=0.9 spot=0.11
pool p policy=WhenEmptyOrUnderutilized max-spot-share=50 move-price=0 budget=100%
node a pool=p type=two
node b pool=p type=two spot
node c pool=p type=one spot
node e pool=p type=two spot
pod a1 node=a cpu=4
pod b1 node=b cpu=1
`).snapshot(nil)
	first, again := disruption.DecidedTwice(snap, []plan.NewClaim{spotClaim(snap, "p-1", "one", 0.10, "a")}, "a", "b")
	if !first.OK() {
		t.Fatalf("the change is refused: %+v", first)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the second verdict differs (-first +again):\n%s", diff)
	}
}

// TestDroppedLeavesNothing checks that the replacements of a dropped finding count against no limit.
func TestDroppedLeavesNothing(t *testing.T) {
	snap := spotWorld(t)
	pools, bought := disruption.Left(snap, []plan.NewClaim{spotClaim(snap, "p-1", "one", 0.10, "a")}, "a")
	if bought != 0 {
		t.Errorf("%d claims still count", bought)
	}
	before := snap.Pool("p")
	if diff := cmp.Diff(before.Used, pools[0].Used); diff != "" || pools[0].Nodes != before.Nodes {
		t.Errorf("%d nodes are charged, want %d; usage (-want +got):\n%s", pools[0].Nodes, before.Nodes, diff)
	}
}

// TestSparesKeepToTheShare checks that additional nodes for pods without room respect the share, given the claims
// decided before.
func TestSparesKeepToTheShare(t *testing.T) {
	snap := spotWorld(t)
	for _, c := range []struct {
		name   string
		bought []plan.NewClaim
		want   string
	}{
		{"nothing else", nil, "one"},
		{"much of the cheapest", []plan.NewClaim{spotClaim(snap, "p-1", "one", 0.10, "b"), spotClaim(snap, "p-2", "one", 0.10, "b"),
			spotClaim(snap, "p-3", "one", 0.10, "b"), spotClaim(snap, "p-4", "one", 0.10, "b")}, "two"},
	} {
		claims := disruption.Spares(snap, c.bought, "a")
		if len(claims) != 1 || claims[0].Options[0].Type != c.want {
			t.Errorf("%s: %+v, want one of type %s", c.name, claims, c.want)
		}
	}
}

// TestRehearsalCountsTheHighestPrice covers a pod that takes the room of another pod, for which a node would have to
// be launched. The command must pay for it whichever of its instance types the replacement becomes, because the judge
// requires that.
func TestRehearsalCountsTheHighestPrice(t *testing.T) {
	for _, c := range []struct {
		name      string
		medium    float64
		minValues int
		types     []string
		want      plan.Code
	}{
		{"it pays with both types", 0.85, 0, []string{"small", "medium"}, plan.OK},
		{"it pays with the cheaper type", 0.95, 0, []string{"small"}, plan.OK},
		{"it needs both types", 0.95, 2, nil, plan.RoomTooTight},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := worldOf(t, fmt.Sprintf(`type small cpu=2.5 price=0.1
type medium cpu=3 price=%g
type large cpu=8 price=1
pool p policy=WhenEmptyOrUnderutilized move-price=0 budget=100%%
node n pool=p type=large
node m pool=p type=large
pod there node=m cpu=5
pod free node=n cpu=2.5
pod fixed node=n cpu=2
`, c.medium))
			f.pods[2].HostPorts = []model.HostPort{{Port: 80, Protocol: "TCP"}}
			snap := f.snapshot(nil)
			claim := plan.NewClaim{Name: "p-1", Pool: "p", PoolUID: snap.Pool("p").UID,
				Requirements: []label.Requirement{in(model.LabelPool, "p"), in(model.LabelType, "small", "medium"), in(model.LabelCapacityType, "on-demand")},
				Options: []plan.Option{{Type: "small", Zone: "z", CapacityType: "on-demand", Price: model.Nano / 10},
					{Type: "medium", Zone: "z", CapacityType: "on-demand", Price: int64(c.medium * model.Nano)}}}
			claim.Requirements[1].MinValues = c.minValues
			commands, kept := disruption.Covered(snap, disruption.Options{}, "n", claim, map[string]string{"fixed": "m"})
			if kept.Code != c.want || len(commands) != min(1, len(c.types)) {
				t.Fatalf("%d commands, and the node is kept by %+v, want code %d", len(commands), kept, c.want)
			}
			for _, cmd := range commands {
				if diff := cmp.Diff(c.types, cmd.Replacements[0].Types()); diff != "" {
					t.Errorf("instance types (-want +got):\n%s", diff)
				}
				if v := disruption.Judge(f.storing(cmd).snapshot(nil), disruption.Options{})(cmd); !v.OK() {
					t.Errorf("Judge refuses the command: %+v", v)
				}
			}
		})
	}
}

// TestJudgeAgreesWhereRoomIsTight checks that a proposed command is not reverted while nothing changes; otherwise it
// would be proposed and reverted in a loop.
func TestJudgeAgreesWhereRoomIsTight(t *testing.T) {
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
