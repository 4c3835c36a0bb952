package launch

import (
	"testing"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
)

// TestOverlaidPrices is OV-13: an overlay makes on-demand capacity cheaper than spot. The request names on-demand
// offerings, prioritized by the prices of the overlay.
func TestOverlaidPrices(t *testing.T) {
	o := plainOrder()
	o.Types = []cloud.InstanceType{
		typed("x", sale("a", "on-demand", 0.32), sale("a", "spot", 0.4)), typed("y", sale("a", "on-demand", 0.30), sale("a", "spot", 0.5)),
	}
	o.Claim.Annotations = map[string]string{karpv1.AnnotationPriceOverlayApplied: "true"}
	request := planOf(t, o).request(Record{Batch: "b", Attempt: 1, Size: 1}, nil, nil)
	if request.SpotOptions != nil || request.OnDemandOptions == nil || request.OnDemandOptions.AllocationStrategy != "prioritized" {
		t.Errorf("options are %+v and %+v, want prioritized on-demand capacity", request.SpotOptions, request.OnDemandOptions)
	}
	overrides := request.LaunchTemplateConfigs[0].Overrides
	if len(overrides) != 2 || overrides[0].InstanceType != "y" || *overrides[0].Priority != 0.30 || *overrides[1].Priority != 0.32 {
		t.Errorf("overrides are %+v, want y at 0.30, then x at 0.32", overrides)
	}
}
