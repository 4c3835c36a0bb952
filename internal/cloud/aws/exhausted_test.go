package aws

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
)

// When all subnets of a zone are full, the claim reports it, and plans exclude the zone's offerings until the refusal
// expires.
func TestAllSubnetsExhausted(t *testing.T) {
	w := newWorld(t, "m5.large")
	p := w.provider(t)
	zone := w.class(t, "default").Status.Subnets[0].Zone
	there := karpv1.Requirement{Key: corev1.LabelTopologyZone, Operator: karpv1.OperatorIn, Values: []string{zone}}
	counted := func(free int64) {
		var subnets []discovery.Subnet
		for _, s := range w.class(t, "default").Status.Subnets {
			subnets = append(subnets, discovery.Subnet{ID: s.ID, Zone: s.Zone, Free: free})
		}
		p.sources.Addresses.Seen(subnets, w.clock.Now())
	}
	offered := func() (n int) {
		t.Helper()
		pool := &karpv1.NodePool{}
		pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
		types, err := p.Catalog(t.Context(), pool)
		check(t, err)
		for _, o := range types[0].Offerings {
			if o.Zone == zone && o.Available {
				n++
			}
		}
		return n
	}
	// EC2 has free addresses, but the pending launches are expected to use more than there are: EC2 is called
	// anyway.
	counted(20)
	w.launched(t, p, "first", there)
	w.launched(t, p, "second", there)
	if offered() == 0 {
		t.Error("nothing is offered in a zone with free addresses")
	}
	counted(0)
	_, err := p.Launch(t.Context(), w.claim(t, "third", there))
	var insufficient *cloud.InsufficientCapacityError
	if !errors.As(err, &insufficient) {
		t.Errorf("error %v, want an InsufficientCapacityError for missing addresses", err)
	}
	if n := offered(); n != 0 {
		t.Errorf("%d offerings in a zone without free addresses", n)
	}
	w.clock.skip(instance.UnavailableFor)
	counted(20)
	if offered() == 0 {
		t.Error("nothing is offered although there are free addresses again")
	}
}

// A launch avoids zones in which the pods of the machine would have no addresses, although EC2 would launch it there.
func TestZonesWithoutAddressesForPods(t *testing.T) {
	w := newWorld(t, "m5.large")
	p := w.provider(t)
	types, err := p.Catalog(t.Context(), poolOf("default"))
	check(t, err)
	free, roomy := map[string]int64{}, ""
	for _, o := range types[0].Offerings {
		free[o.Zone], roomy = 20, o.Zone // an m5.large has 29 pods
	}
	var subnets []discovery.Subnet
	free[roomy] = 200
	for _, s := range w.class(t, "default").Status.Subnets {
		subnets = append(subnets, discovery.Subnet{ID: s.ID, Zone: s.Zone, Free: free[s.Zone]})
	}
	p.sources.Addresses.Seen(subnets, w.clock.Now())
	for _, name := range []string{"one", "two", "three"} {
		if zone := w.launched(t, p, name).Labels[corev1.LabelTopologyZone]; zone != roomy {
			t.Errorf("claim %s is launched in %s, which has 20 free addresses; %s has 200", name, zone, roomy)
		}
	}
	// The claims' nodes are expected to take 87 addresses. Where pods are bound to a zone, it is used nevertheless.
	for zone := range free {
		there := karpv1.Requirement{Key: corev1.LabelTopologyZone, Operator: karpv1.OperatorIn, Values: []string{zone}}
		if got := w.launched(t, p, "in-"+zone, there).Labels[corev1.LabelTopologyZone]; got != zone {
			t.Errorf("a claim for %s is launched in %s", zone, got)
		}
	}
}
