package disruption_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// TestNoEqualNode checks which of the types of removed nodes a replacement may have: none for a single node, and the
// cheapest for several nodes, whose saving is that of all of them.
func TestNoEqualNode(t *testing.T) {
	snap := worldOf(t, `type one cpu=4 price=0.20
type two cpu=4 price=0.21
type ten cpu=4 price=0.22
type big cpu=16 price=1
pool p policy=WhenEmptyOrUnderutilized move-price=0 budget=100%
node a pool=p type=one
node b pool=p type=two
node c pool=p type=big
pod a1 node=a cpu=1
pod b1 node=b cpu=1
pod c1 node=c cpu=1
`).snapshot(nil)
	for name, c := range map[string]struct {
		nodes   []string
		options []string
		want    []string // nil for a refusal
	}{
		"another type":               {[]string{"c"}, []string{"one", "two", "ten"}, []string{"one", "two", "ten"}},
		"not the type of the node":   {[]string{"b"}, []string{"one", "two"}, []string{"one"}},
		"the cheapest is a node's":   {[]string{"a", "c"}, []string{"one", "two", "ten"}, []string{"one", "two", "ten"}},
		"the second is a node's":     {[]string{"b", "c"}, []string{"one", "two", "ten"}, []string{"one", "ten"}},
		"both are types of nodes":    {[]string{"a", "b", "c"}, []string{"one", "two", "ten"}, []string{"one", "ten"}},
		"several, and no saving":     {[]string{"a", "b"}, []string{"big"}, nil},
		"one node, and itself alone": {[]string{"b"}, []string{"two"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			claim := plan.NewClaim{Name: "p-1", Pool: "p", PoolUID: snap.Pool("p").UID,
				Requirements: []label.Requirement{in(model.LabelPool, "p"), in(model.LabelType, c.options...), in(model.LabelCapacityType, "on-demand")}}
			prices := map[string]float64{"one": 0.20, "two": 0.21, "ten": 0.22, "big": 1}
			for _, o := range c.options {
				claim.Options = append(claim.Options, plan.Option{Type: o, Zone: "z", CapacityType: "on-demand", Price: int64(prices[o] * model.Nano)})
			}
			for _, n := range c.nodes {
				claim.Pods = slices.Concat(claim.Pods, snap.Node(n).Pods)
			}
			v, claims := disruption.Decided(snap, []plan.NewClaim{claim}, c.nodes...)
			var got []string
			if v.OK() {
				got = claims[0].Types()
			} else if v.Code != plan.NoSaving {
				t.Errorf("verdict %+v, want NoSaving", v)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("types (-want +got):\n%s", diff)
			}
		})
	}
}
