package upkeep

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// TestTypes checks that EC2's description of every type in the region equals the embedded catalog, because the two are
// interchangeable. What only EC2 knows is compared separately.
func TestTypes(t *testing.T) {
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		if diff := cmp.Diff(catalog.Load().Types, w.types.Current()); diff != "" {
			t.Errorf("before the first refresh, -embedded +got:\n%s", diff)
		}
		w.Must(w.types.Refresh(ctx))
		live := map[string]catalog.Type{}
		for _, got := range w.types.Current() {
			live[got.Name] = got
		}
		sold := 0
		for _, want := range catalog.Load().Types {
			if len(want.ZonesIn("us-east-1")) == 0 || !usableArchitecture(&want) {
				continue
			}
			sold++
			got, found := live[want.Name]
			if !found {
				t.Errorf("%s: EC2 has described it, but it is missing", want.Name)
				continue
			}
			if diff := cmp.Diff(want.ZonesIn("us-east-1"), got.ZonesIn("us-east-1")); diff != "" {
				t.Errorf("%s: zones -want +got:\n%s", want.Name, diff)
			}
			got.Zones, got.ZoneLetters = nil, want.ZoneLetters
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s -embedded +live:\n%s", want.Name, diff)
			}
		}
		if len(live) != sold || sold < 700 {
			t.Errorf("%d types, want the %d that the region offers", len(live), sold)
		}
		if m8i := live["m8i.xlarge"]; !m8i.ENA || !m8i.NitroEnclaves || !m8i.NestedVirtualization {
			t.Errorf("m8i.xlarge: ENA %t, enclaves %t, nested virtualization %t; EC2 reports all", m8i.ENA, m8i.NitroEnclaves,
				m8i.NestedVirtualization)
		}
	})
}

func usableArchitecture(t *catalog.Type) bool {
	for _, architecture := range t.Architectures {
		if architecture == "x86_64" || architecture == "arm64" {
			return true
		}
	}
	return false
}

// TestTypesKept checks that an error, or an empty response, leaves the types as they are.
func TestTypesKept(t *testing.T) {
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		for _, action := range []string{"DescribeInstanceTypes", "DescribeInstanceTypeOfferings"} {
			restore := w.fail(action)
			if err := w.types.Refresh(ctx); discovery.KindOf(err) != discovery.Throttled {
				t.Errorf("%s is throttled: error %v", action, err)
			}
			restore()
		}
		nothing := NewTypes(soldOut{w.EC2}, w.sources.Calls, catalog.Load())
		if err := nothing.Refresh(ctx); err == nil || !strings.Contains(err.Error(), "it returned none") {
			t.Errorf("nothing is offered: error %v", err)
		}
		for name, types := range map[string]*Types{"throttled": w.types, "nothing sold": nothing} {
			if diff := cmp.Diff(catalog.Load().Types, types.Current()); diff != "" {
				t.Errorf("%s: -embedded +got:\n%s", name, diff)
			}
		}
	})
}

// soldOut is an EC2 that offers nothing in any zone.
type soldOut struct{ *ec2.Client }

func (soldOut) DescribeInstanceTypeOfferings(context.Context, *ec2.DescribeInstanceTypeOfferingsInput,
	...func(*ec2.Options)) (*ec2.DescribeInstanceTypeOfferingsOutput, error) {
	return &ec2.DescribeInstanceTypeOfferingsOutput{}, nil
}
