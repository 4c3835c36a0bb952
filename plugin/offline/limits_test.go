package offline

import (
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// TestLimits checks that a pool is at its limit when no instance type fits in what is left, not by a resource that some
// type does not have, and that the text has each limit.
func TestLimits(t *testing.T) {
	cpu := func(n int64) []quantity.Amount { return []quantity.Amount{{Name: "cpu", Value: n * 1000}} }
	small := model.InstanceType{Name: "small", Capacity: cpu(4), Allocatable: cpu(4),
		Offerings:    []model.Offering{{Zone: "a", CapacityType: "spot", Price: 1, Available: true}},
		Requirements: []label.Requirement{{Key: model.LabelType, Operator: label.In, Values: []string{"small"}}}}
	for name, test := range map[string]struct {
		limits []quantity.Amount
		want   string
	}{
		"none":  {nil, ""},
		"below": {cpu(8), "  limits: cpu 4 of 8 (50%)\n"},
		"full": {cpu(4), "  is at its limit: its nodes use 4 of the limit of 4 of cpu; no further node is launched\n" +
			"  limits: cpu 4 of 4 (100%)\n"},
		"no type fits": {append(cpu(6), quantity.Amount{Name: "nodes", Value: 2}),
			"  is at its limit: its nodes use 4 of the limit of 6 of cpu, and its smallest instance type has 4; no further node is launched\n" +
				"  limits: cpu 4 of 6 (67%), nodes 1 of 2 (50%)\n"},
		"nodes": {append(cpu(80), quantity.Amount{Name: "nodes", Value: 1}),
			"  is at its limit: its nodes use 1 of the limit of 1 nodes; no further node is launched\n" +
				"  limits: nodes 1 of 1 (100%), cpu 4 of 80 (5%)\n"},
		"of a resource that the types do not have": {append(cpu(8), quantity.Amount{Name: "nvidia.com/gpu"}),
			"  limits: cpu 4 of 8 (50%), nvidia.com/gpu 0 of 0 (0%)\n"},
		"money": {[]quantity.Amount{{Name: model.ResourceUSD}},
			"  is at its limit: its nodes use 0 of the limit of 0 of karpenter-go.github.io/usd-per-hour; no further node is launched\n" +
				"  limits: karpenter-go.github.io/usd-per-hour 0 of 0 (100%)\n"},
		"zero": {append(cpu(0), quantity.Amount{Name: "nodes", Value: 2}),
			"  is at its limit: its nodes use 4 of the limit of 0 of cpu; no further node is launched\n" +
				"  limits: cpu 4 of 0 (100%), nodes 1 of 2 (50%)\n"},
	} {
		b := model.NewBuilder()
		b.UpsertPool(model.PoolSpec{Name: "p", Limits: test.limits,
			Catalog: &model.Catalog{Types: []model.InstanceType{small}, WellKnown: map[string]bool{model.LabelType: true}}})
		b.UpsertNode(model.NodeSpec{Name: "n", Claim: "c", Pool: "p", Stage: model.Initialized, Capacity: cpu(4), Allocatable: cpu(4)})
		snap := b.Snapshot(time.Unix(0, 0))
		var text strings.Builder
		limits := limitsOf(snap, snap.Pool("p"))
		writeLimits(&text, limits)
		if text.String() != test.want {
			t.Errorf("%s: got\n%swant\n%s", name, text.String(), test.want)
		}
		if line := poolLines(snap)[0]; !line.Ready || (line.AtLimit != "") != strings.Contains(test.want, "at its limit") {
			t.Errorf("%s: the line of top is %+v", name, line)
		}
	}
}
