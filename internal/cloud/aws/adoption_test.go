package aws

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/class"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/launch"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// theirTemplate is the name of a launch template of upstream Karpenter: its prefix and a decimal hash.
const theirTemplate = "karpenter.k8s.aws/1182371493862931451"

// theirTags returns the tags that upstream Karpenter sets on the resources that it creates
// (https://karpenter.sh/docs/concepts/nodeclasses/#spectags).
func theirTags(kind ec2types.ResourceType, more ...ec2types.Tag) []ec2types.TagSpecification {
	tag := func(key, value string) ec2types.Tag {
		return ec2types.Tag{Key: aws.String(key), Value: aws.String(value)}
	}
	tags := append([]ec2types.Tag{
		tag("karpenter.sh/nodepool", "pool"), tag("karpenter.k8s.aws/ec2nodeclass", "default"), tag("eks:eks-cluster-name", testCluster),
		tag("kubernetes.io/cluster/"+testCluster, "owned"),
	}, more...)
	return []ec2types.TagSpecification{{ResourceType: kind, Tags: tags}}
}

// theirInstance creates an instance as upstream Karpenter does: by a fleet, without a client token. tags are those that
// upstream adds later.
func (w *world) theirInstance(t *testing.T, tags ...ec2types.Tag) (id string, image string) {
	t.Helper()
	return w.theirInstanceIn(t, nil, tags...)
}

// theirInstanceIn is theirInstance with a capacity reservation.
func (w *world) theirInstanceIn(t *testing.T, in *ec2types.LaunchTemplateCapacityReservationSpecificationRequest,
	tags ...ec2types.Tag) (id, image string) {
	t.Helper()
	of := w.class(t, "default").Status
	var amd64 awsv1.AMI
	for _, ami := range of.AMIs {
		if strings.Contains(ami.Name, "x86_64-standard") {
			amd64 = ami
		}
	}
	var groups []string
	for _, g := range of.SecurityGroups {
		groups = append(groups, g.ID)
	}
	_, err := w.clients.EC2.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String(theirTemplate), TagSpecifications: theirTags(ec2types.ResourceTypeLaunchTemplate),
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
			ImageId: aws.String(amd64.ID), CapacityReservationSpecification: in,
			NetworkInterfaces: []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{DeviceIndex: aws.Int32(0), Groups: groups}},
		},
	})
	check(t, err)
	out, err := w.clients.EC2.CreateFleet(t.Context(), &ec2.CreateFleetInput{
		Type: ec2types.FleetTypeInstant,
		TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(1),
			DefaultTargetCapacityType: ec2types.DefaultTargetCapacityTypeOnDemand},
		OnDemandOptions: &ec2types.OnDemandOptionsRequest{AllocationStrategy: ec2types.FleetOnDemandAllocationStrategyLowestPrice},
		LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: aws.String(theirTemplate),
				Version: aws.String("$Latest")},
			Overrides: []ec2types.FleetLaunchTemplateOverridesRequest{{InstanceType: "m5.large",
				SubnetId: aws.String(of.Subnets[0].ID), ImageId: aws.String(amd64.ID)}},
		}},
		TagSpecifications: theirTags(ec2types.ResourceTypeInstance, tags...),
	})
	check(t, err)
	if len(out.Instances) != 1 || len(out.Errors) > 0 {
		t.Fatalf("instances %v, errors %v", out.Instances, out.Errors)
	}
	return "aws:///" + of.Subnets[0].Zone + "/" + out.Instances[0].InstanceIds[0], amd64.ID
}

// theirClaim returns the claim of an instance as upstream Karpenter v1.14 writes it.
func (w *world) theirClaim(t *testing.T, name, id, image string) *karpv1.NodeClaim {
	t.Helper()
	claim := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-" + name), Finalizers: []string{"karpenter.sh/termination"},
			Labels: map[string]string{
				"karpenter.sh/nodepool": "pool", "karpenter.k8s.aws/ec2nodeclass": "default", "karpenter.sh/capacity-type": "on-demand",
				corev1.LabelInstanceTypeStable: "m5.large", corev1.LabelTopologyZone: w.class(t, "default").Status.Subnets[0].Zone,
			},
			Annotations: map[string]string{
				"karpenter.k8s.aws/ec2nodeclass-hash": "4763107571234123412", "karpenter.k8s.aws/ec2nodeclass-hash-version": "v4",
				"karpenter.k8s.aws/tagged": "true", "compatibility.karpenter.k8s.aws/cluster-name-tagged": "true",
				"karpenter.sh/nodepool-hash": "6821555240594823858", "karpenter.sh/nodepool-hash-version": "v3",
			},
		},
		Spec: karpv1.NodeClaimSpec{
			NodeClassRef: karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}, Requirements: []karpv1.Requirement{},
		},
	}
	check(t, w.api.Create(t.Context(), claim))
	claim.Status.ProviderID, claim.Status.ImageID = id, image
	if id != "" {
		claim.StatusConditions().SetTrue(karpv1.ConditionLaunched)
	}
	check(t, w.api.Status().Update(t.Context(), claim))
	return claim
}

// The provider adopts what upstream Karpenter v1.x has launched. Its instances are machines of their claims. They have
// not drifted, although upstream computes hashes differently. Its launch templates are deleted when they are unused.
// Its machines can be terminated.
func TestKarpentersInstances(t *testing.T) {
	w := newWorld(t, "m5.large")
	p := w.provider(t)
	id, image := w.theirInstance(t, ec2types.Tag{Key: aws.String("karpenter.sh/nodeclaim"), Value: aws.String("pool-x7k2p")},
		ec2types.Tag{Key: aws.String("Name"), Value: aws.String("ip-10-0-0-7.ec2.internal")})
	claim := w.theirClaim(t, "pool-x7k2p", id, image)
	w.hashedByKarpenter(t, p)

	check(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
	if version := claim.Annotations["karpenter.k8s.aws/ec2nodeclass-hash-version"]; version != awsv1.HashVersion {
		t.Errorf("the claim has the hash version %q, want %q", version, awsv1.HashVersion)
	}
	if reason, err := p.Drifted(t.Context(), claim, poolOf("default")); reason != "" || err != nil {
		t.Errorf("drifted: %q, %v", reason, err)
	}
	machines, err := p.Machines(t.Context())
	check(t, err)
	switch {
	case len(machines) != 1:
		t.Errorf("machines: len(machines) is %v, want 1, %+v", len(machines), machines)
	case machines[0].ProviderID != id:
		t.Errorf("machines: machines[0].ProviderID is %v, want %v", machines[0].ProviderID, id)
	case machines[0].Claim != claim.Name:
		t.Errorf("machines: machines[0].Claim is %v, want %v", machines[0].Claim, claim.Name)
	case machines[0].Labels[karpv1.LabelNodePool] != "pool":
		t.Errorf(`machines: machines[0].Labels[karpv1.LabelNodePool] is %v, want "pool"`, machines[0].Labels[karpv1.LabelNodePool])
	case machines[0].Labels[karpv1.LabelCapacityType] != "on-demand":
		t.Errorf(`machines: machines[0].Labels[karpv1.LabelCapacityType] is %v, want "on-demand"`, machines[0].Labels[karpv1.LabelCapacityType])
	case machines[0].Allocatable["cpu"] == 0:
		t.Errorf(`machines: machines[0].Allocatable["cpu"] is 0, %+v`, machines)
	}
	w.sweeps(t, p)
	check(t, p.Terminate(t.Context(), id))
	awaitGone(t, w.sim)
	if err := p.Terminate(t.Context(), id); !errors.Is(err, cloud.ErrNotFound) {
		t.Errorf("terminating a terminated machine: %v", err)
	}
}

// Claims in capacity reservations survive the change: a machine that upstream launched into one, with or without the
// preference for it, is reserved when it is read, does not drift and is not made on-demand, and counts.
func TestKarpentersReservedInstance(t *testing.T) {
	for _, preference := range []ec2types.CapacityReservationPreference{"capacity-reservations-only", ""} {
		t.Run(string(preference), func(t *testing.T) {
			w := newWorld(t, "m5.large")
			reservation := w.reserved(t, awssim.CapacityReservation{Criteria: "targeted"})
			id, image := w.theirInstanceIn(t,
				&ec2types.LaunchTemplateCapacityReservationSpecificationRequest{CapacityReservationPreference: preference,
					CapacityReservationTarget: &ec2types.CapacityReservationTarget{CapacityReservationId: aws.String(reservation)}},
				ec2types.Tag{Key: aws.String("karpenter.sh/nodeclaim"), Value: aws.String("pool-r5v2d")})
			claim := w.theirClaim(t, "pool-r5v2d", id, image)
			labels := map[string]string{"karpenter.sh/capacity-type": "reserved", "karpenter.k8s.aws/capacity-reservation-id": reservation,
				"karpenter.k8s.aws/capacity-reservation-type": "default", "karpenter.k8s.aws/capacity-reservation-interruptible": "false"}
			maps.Copy(claim.Labels, labels)
			check(t, w.api.Update(t.Context(), claim))
			p := w.provider(t)
			w.hashedByKarpenter(t, p)
			upkeep := &reservedUpkeep{Provider: p}
			for range 3 {
				check(t, upkeep.examineReserved(t.Context()))
			}
			machine, err := p.Machine(t.Context(), id)
			check(t, err)
			check(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
			for key, want := range labels {
				if claim.Labels[key] != want || machine.Labels[key] != want {
					t.Errorf("%s is %q on the claim and %q on the machine, want %q", key, claim.Labels[key], machine.Labels[key], want)
				}
			}
			if reason, err := p.Drifted(t.Context(), claim, poolOf("default")); reason != "" || err != nil {
				t.Errorf("drifted: %q, %v", reason, err)
			}
			types, err := p.Catalog(t.Context(), poolOf("default"))
			check(t, err)
			if o := types[0].Offerings; !slices.ContainsFunc(o, func(o cloud.Offering) bool {
				return o.ReservationID == reservation && o.ReservationCount == 0 && !o.Available
			}) {
				t.Errorf("the reservation of one machine is offered as %+v", o)
			}
		})
	}
}

// hashedByKarpenter sets upstream's hash on the class and lets this module's class controller reconcile it.
func (w *world) hashedByKarpenter(t *testing.T, p *Provider) {
	t.Helper()
	c := w.class(t, "default")
	c.Annotations["karpenter.k8s.aws/ec2nodeclass-hash"],
		c.Annotations["karpenter.k8s.aws/ec2nodeclass-hash-version"] = "4763107571234123412", "v4"
	check(t, w.api.Update(t.Context(), c))
	r := &class.Reconciler{Client: w.api, Sources: p.sources, DeleteTemplates: p.launcher.DeleteTemplates, Now: time.Now}
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "default"}})
	check(t, err)
	if version := w.class(t, "default").Annotations["karpenter.k8s.aws/ec2nodeclass-hash-version"]; version != awsv1.HashVersion {
		t.Errorf("the class has the hash version %q, want %q", version, awsv1.HashVersion)
	}
}

// sweeps checks that upstream's launch templates are deleted once they are idle, and not before.
func (w *world) sweeps(t *testing.T, p *Provider) {
	t.Helper()
	names := func() int {
		out, err := w.clients.EC2.DescribeLaunchTemplates(t.Context(), &ec2.DescribeLaunchTemplatesInput{
			Filters: []ec2types.Filter{{Name: aws.String("tag:eks:eks-cluster-name"), Values: []string{testCluster}}}})
		check(t, err)
		n := 0
		for _, template := range out.LaunchTemplates {
			if aws.ToString(template.LaunchTemplateName) == theirTemplate {
				n++
			}
		}
		return n
	}
	check(t, p.launcher.AdoptTemplates(t.Context()))
	check(t, p.launcher.SweepTemplates(t.Context()))
	if names() != 1 {
		t.Error("a launch template of upstream is deleted immediately")
	}
	w.clock.skip(launch.TemplateIdle + time.Minute)
	check(t, p.launcher.SweepTemplates(t.Context()))
	if names() != 0 {
		t.Error("a launch template of upstream is never deleted")
	}
}

// An instance that upstream Karpenter launched without recording it on its claim before it was removed belongs to no
// claim. It is listed without a claim, so that the garbage collector terminates it, and the claim gets its own machine.
func TestKarpentersInstanceInFlight(t *testing.T) {
	w := newWorld(t, "m5.large")
	p := w.provider(t)
	stray, _ := w.theirInstance(t)
	claim := w.theirClaim(t, "pool-zz5rd", "", "")
	claim.Annotations = map[string]string{"karpenter.sh/nodepool-hash": "6821555240594823858", "karpenter.sh/nodepool-hash-version": "v3"}
	check(t, w.api.Update(t.Context(), claim))
	machine, err := p.Launch(t.Context(), claim)
	check(t, err)
	machines, err := p.Machines(t.Context())
	check(t, err)
	owners := map[string]string{}
	for _, m := range machines {
		owners[m.ProviderID] = m.Claim
	}
	switch owner, listed := owners[stray]; {
	case len(machines) != 2:
		t.Errorf("machines and their claims: len(machines) is %v, want 2", len(machines))
	case !listed:
		t.Errorf("machines and their claims: listed is false")
	case owner != "":
		t.Errorf(`machines and their claims: owner is %v, want ""`, owner)
	case owners[machine.ProviderID] != claim.Name:
		t.Errorf("machines and their claims: owners[machine.ProviderID] is %v, want %v, the claim has %s",
			owners[machine.ProviderID], claim.Name, machine.ProviderID)
	case machine.ProviderID == stray:
		t.Errorf("machines and their claims: machine.ProviderID is %v, want another value than %v", machine.ProviderID, stray)
	}
}

// awaitGone waits until the cloud has no running instance.
func awaitGone(t *testing.T, sim *awssim.Cloud) {
	t.Helper()
	deadline, tick := time.NewTimer(time.Minute), time.NewTicker(10*time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for {
		running := 0
		for _, i := range sim.Instances() {
			if i.State != "terminated" {
				running++
			}
		}
		if running == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%d instances still exist", running)
		}
	}
}
