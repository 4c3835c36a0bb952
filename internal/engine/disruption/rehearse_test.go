package disruption_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// TestRehearsalOrdersAsDrainsDo checks that a drain first evicts the pods with the largest share of their own node,
// whatever pods of other nodes request.
func TestRehearsalOrdersAsDrainsDo(t *testing.T) {
	f := worldOf(t, `type t cpu=4 price=1
pool p policy=WhenEmptyOrUnderutilized
node n pool=p type=t
node large pool=p type=t
pod cpu node=n cpu=2
pod memory node=n cpu=0.1
pod much node=large cpu=0.1
`)
	memory := func(amount int64) []quantity.Amount {
		return []quantity.Amount{{Name: "cpu", Value: 4000}, {Name: "memory", Value: amount}, {Name: "pods", Value: 110}}
	}
	f.nodes[0].Allocatable, f.nodes[0].Capacity = memory(1000), memory(1000)
	f.nodes[1].Allocatable, f.nodes[1].Capacity = memory(1000000), memory(1000000)
	f.pods[1].Requests = append(f.pods[1].Requests, quantity.Amount{Name: "memory", Value: 800})
	f.pods[2].Requests = append(f.pods[2].Requests, quantity.Amount{Name: "memory", Value: 900000})
	snap := f.snapshot(nil)
	want := []string{"default/memory", "default/cpu"}
	if diff := cmp.Diff(want, disruption.DrainOrder(snap, "n", "large")); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
