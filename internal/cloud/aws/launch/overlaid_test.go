package launch

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
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

// TestEqualOverlaidPrices checks that of types of one price, such as 0, the smallest has the first priority, and that
// the zones of a type stay equal.
func TestEqualOverlaidPrices(t *testing.T) {
	o := plainOrder()
	sized := func(name string, cpu int64, zones ...string) cloud.InstanceType {
		var sales []cloud.Offering
		for _, zone := range zones {
			sales = append(sales, sale(zone, "on-demand", 0))
		}
		kind := typed(name, sales...)
		kind.Capacity = map[string]int64{"cpu": cpu}
		return kind
	}
	o.Types = []cloud.InstanceType{sized("a", 128000, "a"), sized("b", 4000, "a"), sized("c", 2000, "a", "b")}
	o.Claim.Annotations = map[string]string{karpv1.AnnotationPriceOverlayApplied: "true"}
	var got []string
	for _, override := range planOf(t, o).request(Record{Batch: "b", Attempt: 1, Size: 1}, nil, nil).LaunchTemplateConfigs[0].Overrides {
		got = append(got, fmt.Sprintf("%s %s %.6f", override.InstanceType, *override.AvailabilityZone, *override.Priority))
	}
	if diff := cmp.Diff([]string{"c a 0.000000", "c b 0.000000", "b a 0.000001", "a a 0.000002"}, got); diff != "" {
		t.Errorf("overrides (-want +got):\n%s", diff)
	}
}
