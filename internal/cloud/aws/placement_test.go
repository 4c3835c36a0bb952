package aws

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/cloud/cloudtest"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// place makes a placement group, and the class select it.
func (w *world) place(t *testing.T, group awssim.PlacementGroup) (id string) {
	t.Helper()
	id = w.sim.AddPlacementGroup(group)
	class := w.class(t, "default")
	class.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: group.Name}
	check(t, w.api.Update(t.Context(), class))
	return id
}

func onDemandIn(zone string) []karpv1.Requirement {
	return []karpv1.Requirement{{Key: karpv1.LabelCapacityType, Operator: "In", Values: []string{karpv1.CapacityTypeOnDemand}},
		{Key: corev1.LabelTopologyZone, Operator: "In", Values: []string{zone}}}
}

func partitionIn(numbers ...string) karpv1.Requirement {
	return karpv1.Requirement{Key: awsv1.LabelPlacementGroupPartition, Operator: "In", Values: numbers}
}

// shown returns group and partition of each live instance, sorted, as EC2 has them.
func (w *world) shown() []string {
	var list []string
	for _, i := range w.sim.Instances() {
		if i.State == "pending" || i.State == "running" {
			list = append(list, fmt.Sprintf("%s %s %d", i.Zone, i.PlacementGroup, i.Partition))
		}
	}
	slices.Sort(list)
	return list
}

// The suite of providers passes for a class with a placement group with partitions.
func TestConformanceInPlacementGroup(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) cloudtest.World {
		w := newWorld(t, suiteTypes...)
		for i := range w.types {
			w.types[i].Usage = []string{catalog.UsageOnDemand}
		}
		w.place(t, awssim.PlacementGroup{Name: "racks", Strategy: "partition", Partitions: 7})
		suite := w.conformance()
		suite.Chooses = cloudtest.AmongEqualPrices
		return suite
	})
}

// A pinned partition is requested and known at once. One that EC2 chooses is known when EC2 shows the machine, of which
// the registration waits. Of several allowed partitions, the one with the fewest claims is requested.
func TestPartitionGroup(t *testing.T) {
	w := newWorld(t, "m5.large")
	id := w.place(t, awssim.PlacementGroup{Name: "racks", Strategy: "partition", Partitions: 7})
	p := w.provider(t)
	pinned := w.launched(t, p, "pinned", append(onDemandIn("us-east-1a"), partitionIn("6"))...)
	if got, want := placementLabels(pinned.Labels), id+" 6"; got != want {
		t.Errorf("the pinned claim has %q, want %q", got, want)
	}
	if labels, err := p.Registering(t.Context(), pinned); err != nil || labels != nil {
		t.Errorf("a known partition is completed by %v, %v", labels, err)
	}
	open := w.launched(t, p, "open", onDemandIn("us-east-1a")...)
	if got, want := placementLabels(open.Labels), id+" "; got != want {
		t.Errorf("before EC2 shows the partition the claim has %q, want %q", got, want)
	}
	if _, has := open.Labels[awsv1.LabelPlacementGroupPartition]; has {
		t.Error("a partition that is not known has a label")
	}
	labels, err := p.Registering(t.Context(), open)
	check(t, err)
	if diff := cmp.Diff(map[string]string{awsv1.LabelPlacementGroupPartition: "1"}, labels); diff != "" {
		t.Errorf("registration adds -want +got:\n%s", diff)
	}
	open.Labels[awsv1.LabelPlacementGroupPartition] = "1"
	check(t, w.api.Update(t.Context(), open))
	for _, name := range []string{"one", "two"} { // partition 1 has a claim already, 10 does not exist
		claim := w.launched(t, p, name, append(onDemandIn("us-east-1a"), partitionIn("1", "2", "10"))...)
		labels, err := p.Registering(t.Context(), claim)
		check(t, err)
		claim.Labels[awsv1.LabelPlacementGroupPartition] = labels[awsv1.LabelPlacementGroupPartition]
		check(t, w.api.Update(t.Context(), claim))
	}
	want := []string{"us-east-1a " + id + " 1", "us-east-1a " + id + " 1", "us-east-1a " + id + " 2", "us-east-1a " + id + " 6"}
	if diff := cmp.Diff(want, w.shown()); diff != "" {
		t.Errorf("EC2 has -want +got:\n%s", diff)
	}
	_, err = p.Launch(t.Context(), w.claim(t, "none", append(onDemandIn("us-east-1a"), partitionIn("8"))...))
	if insufficient := new(cloud.InsufficientCapacityError); !errors.As(err, &insufficient) {
		t.Errorf("a partition that does not exist: %v", err)
	}
	machines, err := p.Machines(t.Context())
	check(t, err)
	for _, m := range machines {
		if m.Claim == "pinned" && placementLabels(m.Labels) != id+" 6" {
			t.Errorf("the pinned machine is read with %q", placementLabels(m.Labels))
		}
	}
}

// Claims whose partition is not known yet count for the one that was requested for them, also if they are launched together.
func TestPartitionsInFlight(t *testing.T) {
	w := newWorld(t, "m5.large")
	w.place(t, awssim.PlacementGroup{Name: "racks", Strategy: "partition", Partitions: 7})
	p := w.provider(t)
	var all sync.WaitGroup
	for n := range 5 {
		claim := w.claim(t, "c"+strconv.Itoa(n), append(onDemandIn("us-east-1a"), partitionIn("1", "2", "3"))...)
		all.Go(func() {
			if _, err := p.Launch(t.Context(), claim); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	in := map[int]int{}
	for _, i := range w.sim.Instances() {
		in[i.Partition]++
	}
	if diff := cmp.Diff([]int{1, 2, 2}, slices.Sorted(maps.Values(in))); diff != "" {
		t.Errorf("the partitions have %v -want +got:\n%s", in, diff)
	}
}

func placementLabels(labels map[string]string) string {
	return labels[awsv1.LabelPlacementGroupID] + " " + labels[awsv1.LabelPlacementGroupPartition]
}

// Registration waits for a partition that EC2 does not show, and not for one that cannot come.
func TestRegisteringWaits(t *testing.T) {
	w := newWorld(t, "m5.large")
	p := w.provider(t)
	outside := w.launched(t, p, "outside", onDemandIn("us-east-1a")...)
	if labels, err := p.Registering(t.Context(), outside); err != nil || labels != nil {
		t.Errorf("outside of any group: %v, %v", labels, err)
	}
	outside.Labels[awsv1.LabelPlacementGroupID] = "pg-0"
	if labels, err := p.Registering(t.Context(), outside); err != nil || labels != nil {
		t.Errorf("of a group that is not the class's: %v, %v", labels, err)
	}
	id := w.place(t, awssim.PlacementGroup{Name: "racks", Strategy: "partition"})
	outside.Labels[awsv1.LabelPlacementGroupID], outside.Labels[awsv1.LabelPlacementGroupPartition] = id, "" // as upstream
	if _, err := p.Registering(t.Context(), outside); err == nil || !strings.Contains(err.Error(), "does not show the partition") {
		t.Errorf("a partition that EC2 does not show: %v", err)
	}
	fault, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultDeny, Service: "ec2", Action: "DescribeInstances"})
	check(t, err)
	defer w.sim.Clear(fault)
	if _, err := p.Registering(t.Context(), outside); err == nil {
		t.Error("registration does not wait while EC2 cannot be read")
	}
	outside.Labels[awsv1.LabelPlacementGroupID] = w.place(t, awssim.PlacementGroup{Name: "apart", Strategy: "spread"})
	if labels, err := p.Registering(t.Context(), outside); err != nil || labels != nil {
		t.Errorf("of a group without partitions, while EC2 cannot be read: %v, %v", labels, err)
	}
	outside.Spec.NodeClassRef.Name = "gone"
	if labels, err := p.Registering(t.Context(), outside); err != nil || labels != nil {
		t.Errorf("of a class that is gone: %v, %v", labels, err)
	}
}

// All machines of a cluster group are launched in the zone of the first, and other classes are not limited to it. When
// the group is empty, all zones are possible again.
func TestClusterGroup(t *testing.T) {
	w := newWorld(t, "m5.large", "t3.large")
	id := w.place(t, awssim.PlacementGroup{Name: "near", Strategy: "cluster"})
	free := testClass("free")
	free.Status = w.class(t, "default").Status
	check(t, w.api.Create(t.Context(), free))
	check(t, w.api.Status().Update(t.Context(), free))
	p := w.provider(t)
	zones := func(p *Provider, class string) string {
		types, err := p.Catalog(t.Context(), poolOf(class))
		check(t, err)
		var list []string
		for i := range types {
			for _, o := range types[i].Offerings {
				list = append(list, strings.TrimPrefix(o.Zone, "us-east-1"))
			}
			if types[i].Name == "t3.large" && class == "default" {
				t.Error("a burstable type is offered, which cluster groups do not support")
			}
		}
		slices.Sort(list)
		return strings.Join(slices.Compact(list), "")
	}
	all := zones(p, "free")
	if got := zones(p, "default"); got != all || len(all) < 2 {
		t.Errorf("an empty group is possible in %s, want %s", got, all)
	}
	first := w.launched(t, p, "first", onDemandIn("us-east-1b")...)
	if got := zones(p, "default"); got != "b" {
		t.Errorf("after a launch in zone b, the group is possible in %s", got)
	}
	if got := zones(p, "free"); got != all {
		t.Errorf("the other class is possible in %s, want %s", got, all)
	}
	w.launched(t, p, "second", karpv1.Requirement{Key: karpv1.LabelCapacityType, Operator: "In",
		Values: []string{karpv1.CapacityTypeOnDemand}})
	if diff := cmp.Diff([]string{"us-east-1b " + id + " 0", "us-east-1b " + id + " 0"}, w.shown()); diff != "" {
		t.Errorf("EC2 has -want +got:\n%s", diff)
	}
	if next := w.provider(t); true { // another process learns it from the first list
		_, err := next.Machines(t.Context())
		check(t, err)
		if got := zones(next, "default"); got != "b" {
			t.Errorf("to a new process, the group is possible in %s, want b", got)
		}
	}
	for _, i := range w.sim.Instances() {
		check(t, w.sim.Terminate(i.ID))
	}
	_, err := p.Machines(t.Context())
	check(t, err)
	if got := zones(p, "default"); got != all {
		t.Errorf("the empty group is possible in %s, want %s", got, all)
	}
	if first.Labels[awsv1.LabelPlacementGroupID] != id {
		t.Errorf("the claim has the group %q, want %q", first.Labels[awsv1.LabelPlacementGroupID], id)
	}
}

// A spread group takes seven machines in a zone. The refusal closes the zone for all types of the group, and for nothing
// outside of it. When every zone is full, an event says so.
func TestSpreadGroup(t *testing.T) {
	w := newWorld(t, "m5.large", "m5.xlarge")
	w.place(t, awssim.PlacementGroup{Name: "apart", Strategy: "spread"})
	free := testClass("free")
	free.Status = w.class(t, "default").Status
	check(t, w.api.Create(t.Context(), free))
	check(t, w.api.Status().Update(t.Context(), free))
	var events []string
	p := w.provider(t, func(o *Options) {
		o.Observer.Event = func(object client.Object, event interruption.Event) {
			events = append(events, object.GetName()+" "+event.Reason)
		}
	})
	for n := range 7 {
		w.launched(t, p, "c"+strconv.Itoa(n), onDemandIn("us-east-1a")...)
	}
	_, err := p.Launch(t.Context(), w.claim(t, "eighth", onDemandIn("us-east-1a")...))
	if insufficient := new(cloud.InsufficientCapacityError); !errors.As(err, &insufficient) {
		t.Fatalf("the eighth in a zone: %v", err)
	}
	if diff := cmp.Diff([]string{"eighth " + awsv1.ReasonSpreadGroupFull}, events); diff != "" {
		t.Errorf("events -want +got:\n%s", diff)
	}
	for class, want := range map[string]int{"default": 0, "free": 4} {
		types, err := p.Catalog(t.Context(), poolOf(class))
		check(t, err)
		open := 0
		for i := range types {
			for _, o := range types[i].Offerings {
				if o.Zone == "us-east-1a" && o.Available {
					open++
				}
			}
		}
		if open != want {
			t.Errorf("class %s has %d offerings in the full zone, want %d", class, open, want)
		}
	}
	w.launched(t, p, "elsewhere", onDemandIn("us-east-1b")...)
}

// A zone of a spread group that is full closes for the capacity reservations of the group as well, which would otherwise be
// chosen again, being cheapest. Their counts stay.
func TestSpreadGroupWithReservation(t *testing.T) {
	w := newWorld(t, "m5.large")
	id := w.reserved(t, awssim.CapacityReservation{Criteria: "targeted", Total: 10})
	w.place(t, awssim.PlacementGroup{Name: "apart", Strategy: "spread"})
	p := w.provider(t)
	either := karpv1.Requirement{Key: karpv1.LabelCapacityType, Operator: "In",
		Values: []string{karpv1.CapacityTypeReserved, karpv1.CapacityTypeOnDemand}}
	zone := ""
	for n := range 7 {
		claim := w.launched(t, p, "c"+strconv.Itoa(n), either)
		if zone = claim.Labels[corev1.LabelTopologyZone]; claim.Labels[awsv1.LabelCapacityReservationID] != id {
			t.Fatalf("claim %d is not in the reservation: %v", n, claim.Labels)
		}
	}
	_, err := p.Launch(t.Context(), w.claim(t, "eighth", either))
	if insufficient := new(cloud.InsufficientCapacityError); !errors.As(err, &insufficient) {
		t.Fatalf("the eighth in a zone: %v", err)
	}
	types, err := p.Catalog(t.Context(), poolOf("default"))
	check(t, err)
	for _, o := range types[0].Offerings {
		if o.Zone == zone && o.Available || o.ReservationID == id && o.ReservationCount != 3 {
			t.Errorf("after the refusal there is the offering %s in %s, available: %v, left: %d", o.CapacityType, o.Zone, o.Available,
				o.ReservationCount)
		}
	}
	if next := w.launched(t, p, "ninth", either); next.Labels[corev1.LabelTopologyZone] == zone {
		t.Errorf("the next claim is launched in the full zone %s", zone)
	}
}

// A refusal of a partition divides the offerings of its type in the zone until it has expired.
func TestRefusedPartition(t *testing.T) {
	w := newWorld(t, "m5.large")
	w.place(t, awssim.PlacementGroup{Name: "racks", Strategy: "partition", Partitions: 3})
	p := w.provider(t)
	offered := func() string {
		types, err := p.Catalog(t.Context(), poolOf("default"))
		check(t, err)
		var list []string
		for _, o := range types[0].Offerings {
			if o.Zone != "us-east-1a" || o.CapacityType != karpv1.CapacityTypeOnDemand {
				continue
			}
			partition := "any"
			for _, r := range o.Requirements {
				if r.Key == awsv1.LabelPlacementGroupPartition {
					partition = r.Values[0]
				}
			}
			list = append(list, fmt.Sprintf("%s:%v", partition, o.Available))
		}
		return strings.Join(list, " ")
	}
	if got := offered(); got != "any:true" {
		t.Errorf("before any refusal: %s", got)
	}
	check(t, w.sim.Drain("m5.large", "us-east-1a", "on-demand", 0))
	if _, err := p.Launch(t.Context(), w.claim(t, "two", append(onDemandIn("us-east-1a"), partitionIn("2"))...)); err == nil {
		t.Fatal("launched in a zone without capacity")
	}
	if got := offered(); got != "1:true 2:false 3:true" {
		t.Errorf("after the refusal of partition 2: %s", got)
	}
	check(t, w.sim.Refill("m5.large", "us-east-1a", "on-demand"))
	if _, err := p.Launch(t.Context(), w.claim(t, "again", append(onDemandIn("us-east-1a"), partitionIn("2"))...)); err == nil {
		t.Error("the refused partition is tried again at once")
	}
	w.launched(t, p, "any", onDemandIn("us-east-1a")...)
	other := w.launched(t, p, "other", append(onDemandIn("us-east-1a"), partitionIn("2", "3"))...)
	labels, err := p.Registering(t.Context(), other)
	check(t, err)
	if got := labels[awsv1.LabelPlacementGroupPartition]; got != "3" {
		t.Errorf("of partition 2, which is refused, and 3, partition %q is requested", got)
	}
	w.clock.skip(10 * time.Minute)
	if got := offered(); got != "any:true" {
		t.Errorf("after the refusal has expired: %s", got)
	}
}

// Machines of another group than the class's have drifted. Those without a group stay: an earlier version launched them
// outside of it. Nothing is known while the group cannot be read for the first time, or is gone.
func TestPlacementDrift(t *testing.T) {
	w := newWorld(t, "m5.large")
	first := w.place(t, awssim.PlacementGroup{Name: "racks", Strategy: "partition"})
	p := w.provider(t)
	claim := w.launched(t, p, "drifter", append(onDemandIn("us-east-1a"), partitionIn("1"))...)
	drift := func(what, want string) {
		t.Helper()
		reason, err := p.Drifted(t.Context(), claim, poolOf("default"))
		if reason != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", what, reason, err, want)
		}
	}
	drift("in the class's group", "")
	delete(claim.Labels, awsv1.LabelPlacementGroupID)
	drift("launched outside of the group by an earlier version", "")
	claim.Labels[awsv1.LabelPlacementGroupID] = "pg-0"
	drift("in another group, perhaps one of the same name", awsv1.ReasonPlacementGroupDrift)
	claim.Labels[awsv1.LabelPlacementGroupID] = first
	w.changed(t, func(c *awsv1.EC2NodeClass) {
		c.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: "other"}
	})
	drift("the selector was changed", awsv1.ReasonNodeClassDrift)
}

// A list of machines asks once for a placement group that cannot be read, and not for each machine.
func TestPlacementGroupIsDenied(t *testing.T) {
	w := newWorld(t, "m5.large")
	w.place(t, awssim.PlacementGroup{Name: "racks", Strategy: "partition"})
	p := w.provider(t)
	for n := range 3 {
		w.launched(t, p, "c"+strconv.Itoa(n), onDemandIn("us-east-1a")...)
	}
	fault, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultDeny, Service: "ec2", Action: "DescribePlacementGroups"})
	check(t, err)
	w.sim.ResetCalls()
	p = w.provider(t) // a new process, which has no last known group
	machines, err := p.Machines(t.Context())
	check(t, err)
	calls := 0
	for call, n := range w.sim.Calls() {
		if call.Action == "DescribePlacementGroups" {
			calls += n
		}
	}
	if len(machines) != 3 || calls != 1 {
		t.Errorf("%d calls for %d machines, want 1 for 3", calls, len(machines))
	}
	w.sim.Clear(fault)
	w.clock.skip(31 * time.Second)
	if _, err := p.Catalog(t.Context(), poolOf("default")); err != nil {
		t.Errorf("half a minute later: %v", err)
	}
}

// While EC2 cannot be read, the last known group is used for a day. A group that is deleted stops launches.
func TestPlacementGroupIsGone(t *testing.T) {
	w := newWorld(t, "m5.large")
	id := w.place(t, awssim.PlacementGroup{Name: "racks", Strategy: "partition"})
	p := w.provider(t)
	if _, err := p.Catalog(t.Context(), poolOf("default")); err != nil {
		t.Fatal(err)
	}
	fault, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultDeny, Service: "ec2", Action: "DescribePlacementGroups"})
	check(t, err)
	w.clock.skip(23 * time.Hour)
	if _, err := p.Catalog(t.Context(), poolOf("default")); err != nil {
		t.Errorf("the last known group is not used: %v", err)
	}
	w.clock.skip(2 * time.Hour)
	unready := new(cloud.NodeClassNotReadyError)
	if _, err := p.Catalog(t.Context(), poolOf("default")); !errors.As(err, &unready) ||
		unready.Reason != awsv1.ReasonPlacementGroupResolutionFailed {
		t.Errorf("after a day: %v", err)
	}
	w.sim.Clear(fault)
	check(t, w.sim.DeletePlacementGroup(id))
	w.clock.skip(31 * time.Second)
	if _, err := p.Catalog(t.Context(), poolOf("default")); !errors.As(err, &unready) || unready.Reason != awsv1.ReasonPlacementGroupNotFound {
		t.Errorf("a group that is gone: %v", err)
	}
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "left", Labels: map[string]string{awsv1.LabelPlacementGroupID: id}}}
	if reason, err := placementDrift(t.Context(), p.sources.Placements, w.class(t, "default"), claim); reason != "" || err != nil {
		t.Errorf("a machine of a group that is gone: %q, %v", reason, err)
	}
}
