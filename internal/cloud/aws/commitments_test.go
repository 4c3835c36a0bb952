package aws

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// TestReservedInstances covers reserved instances from the purchase to the end, with others that use them first, wrong
// answers, and failed calls.
func TestReservedInstances(t *testing.T) {
	w := newWorld(t, "m5.large", "m5.xlarge", "t3.large")
	said := ""
	p := w.provider(t, func(o *Options) {
		o.Commitments = func(rules []pricerule.Rule) {
			said = ""
			for _, r := range rules {
				said += fmt.Sprintf("%s %v%v%v vCPUs=%v paid=%t;", r.Name, r.InstanceTypes, r.Families, r.Zones, r.UpTo.VCPUs, r.UpTo.Paid)
			}
		}
	})
	refresh := func(what, want string) {
		t.Helper()
		check(t, p.commitments.refresh(t.Context()))
		if said != want {
			t.Errorf("%s: rules %q, want %q", what, said, want)
		}
	}
	refresh("without purchases", "")
	w.sim.AddReservedInstances(awssim.ReservedInstances{Type: "m5.xlarge", Count: 2, OfferingClass: "convertible"})
	w.sim.AddReservedInstances(awssim.ReservedInstances{Type: "m5.large", Zone: "us-east-1a", End: w.clock.Now().Add(30 * time.Minute)})
	for _, other := range []awssim.ReservedInstances{{Product: "Windows"}, {Tenancy: "dedicated"}, {State: "payment-pending"}} {
		other.Type = "m5.large"
		w.sim.AddReservedInstances(other)
	}
	const both = "ri-m5-large-us-east-1a [m5.large][][us-east-1a] vCPUs=2 paid=true;ri-m5 [][m5][] vCPUs=8 paid=true;"
	refresh("with two purchases", both)

	w.launched(t, p, "own")
	refresh("with a machine of the cluster", both)
	runOther(t, w)
	const rest = "ri-m5 [][m5][] vCPUs=6 paid=true;"
	refresh("with another instance", strings.Replace(both, "vCPUs=8", "vCPUs=6", 1))

	fault, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultIgnoreFilters, Service: "ec2", Action: "DescribeReservedInstances"})
	check(t, err)
	refresh("with an answer that ignores the filters", strings.Replace(both, "vCPUs=8", "vCPUs=6", 1))
	w.sim.Clear(fault)
	_, err = w.sim.Inject(awssim.Fault{Kind: awssim.FaultDeny, Service: "ec2", Action: "DescribeReservedInstances"})
	check(t, err)
	w.clock.skip(31 * time.Minute) // the end of the purchase for the zone
	if err := p.commitments.refresh(t.Context()); err == nil {
		t.Error("a denied call is no error")
	}
	if said != rest {
		t.Errorf("after a denied call: rules %q, want those of the last answer that have not ended, %q", said, rest)
	}
}

// runOther runs an instance that no NodePool has, unless its tags say so.
func runOther(t *testing.T, w *world, tags ...ec2types.Tag) {
	t.Helper()
	images, err := w.clients.EC2.DescribeImages(t.Context(), &ec2.DescribeImagesInput{Owners: []string{"amazon"},
		Filters: []ec2types.Filter{{Name: aws.String("architecture"), Values: []string{"x86_64"}},
			{Name: aws.String("name"), Values: []string{"amazon-eks-node-al2023-*"}}}})
	check(t, err)
	subnets := w.sim.Subnets()
	elsewhere := slices.IndexFunc(subnets, func(s awssim.Subnet) bool { return s.Zone != "us-east-1a" })
	_, err = w.clients.EC2.RunInstances(t.Context(), &ec2.RunInstancesInput{ImageId: images.Images[0].ImageId, InstanceType: "m5.large",
		SubnetId: aws.String(subnets[elsewhere].ID), MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeInstance,
			Tags: append(tags, ec2types.Tag{Key: aws.String("team"), Value: aws.String("a")})}}})
	check(t, err)
	deadline, tick := time.NewTimer(time.Minute), time.NewTicker(10*time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for all := w.sim.Instances(); all[len(all)-1].State != "running"; all = w.sim.Instances() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("the other instance does not run")
		}
	}
}
