package e2e

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// placedStage is a case whose class selects the placement group with the name of the case, if there is one.
func (w *awsWorld) placedStage(t *testing.T, name string) *awsStage {
	t.Helper()
	return w.stageOf(t, name, func(spec *awsv1.EC2NodeClassSpec) {
		spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: name}
	})
}

// placementGroup creates a placement group for the time of the test.
func (w *awsWorld) placementGroup(t *testing.T, group awssim.PlacementGroup) (id string) {
	t.Helper()
	id = w.sim.AddPlacementGroup(group)
	t.Cleanup(func() {
		if err := w.sim.DeletePlacementGroup(id); err != nil {
			t.Error(err)
		}
	})
	return id
}

// testAWSPartitions checks that pods spread over the partitions of a placement group that they allow, and that nodes have
// the labels of the partition that EC2 has put them into. EC2 would choose the first partition, which is not allowed.
func testAWSPartitions(t *testing.T, w *awsWorld) {
	const name = "aws-partitions"
	id := w.placementGroup(t, awssim.PlacementGroup{Name: name, Strategy: "partition", Partitions: 3})
	s := w.placedStage(t, name)
	s.template(`{"spec":{"topologySpreadConstraints":[{"topologyKey":"karpenter.k8s.aws/placement-group-partition","maxSkew":1,
		"minDomains":2,"whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"app"}}}],
		"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[
		{"key":"karpenter.k8s.aws/placement-group-partition","operator":"In","values":["2","3"]}]}]}}}}}`)
	s.scale("app", 4)
	await(t, patience, "all pods to run", s.running("app", 4))
	s.boughtOnce()
	pods := map[int]int{}
	for _, pod := range s.pods("app") {
		node := s.node(pod)
		i := s.instanceOf(node)
		if pods[i.Partition]++; i.PlacementGroup != id {
			t.Errorf("instance %s is in placement group %q, want %s", i.ID, i.PlacementGroup, id)
		}
		if group, partition := node.Labels[awsv1.LabelPlacementGroupID], node.Labels[awsv1.LabelPlacementGroupPartition]; group != id ||
			partition != strconv.Itoa(i.Partition) {
			t.Errorf("node %s has the labels of partition %q of %q, and is in %d of %s", node.Name, partition, group, i.Partition, id)
		}
	}
	if want := map[int]int{2: 2, 3: 2}; !maps.Equal(pods, want) {
		t.Errorf("the pods by partition are %v, want %v", pods, want)
	}
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}

// testAWSSpread checks what a user sees when a spread placement group has its seven machines in a zone, and that another
// zone has room.
func testAWSSpread(t *testing.T, w *awsWorld) {
	const name = "aws-spread"
	w.placementGroup(t, awssim.PlacementGroup{Name: name, Strategy: "spread"})
	s := w.placedStage(t, name)
	inZones := func(zones ...string) {
		s.require(among(karpv1.LabelCapacityType, karpv1.CapacityTypeOnDemand), among("karpenter.k8s.aws/instance-cpu", "2"),
			among(corev1.LabelTopologyZone, zones...))
	}
	inZones("us-east-1a")
	s.apart()
	s.scale("app", 7)
	await(t, patience, "seven pods to run", s.running("app", 7))
	s.scale("app", 8)
	await(t, patience, "the full group to be reported", func(ctx context.Context) error {
		err := fmt.Errorf("no claim was refused")
		for _, c := range s.ledger.claimsOf(name) {
			if c.object.Status.ProviderID == "" {
				err = s.says(c.object, "SpreadGroupFull", "limit of instances in this spread placement group")(ctx)
			}
		}
		return err
	})
	await(t, patience, "the pod to say why it waits", func(ctx context.Context) error {
		for _, pod := range s.pods("app") {
			if pod.Spec.NodeName == "" {
				return s.says(pod, "FailedScheduling", "in us-east-1a as on-demand", "is asked again from")(ctx)
			}
		}
		return fmt.Errorf("no pod waits")
	})
	if n := len(s.all()); n != 7 {
		t.Errorf("%d instances were launched, want 7", n)
	}
	inZones("us-east-1a", "us-east-1b")
	await(t, patience, "the eighth pod to run in another zone", s.running("app", 8))
	s.boughtOnce()
	if a, b := len(s.in("us-east-1a")), len(s.in("us-east-1b")); a != 7 || b != 1 {
		t.Errorf("%d and %d instances are in the zones, want 7 and 1", a, b)
	}
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}

// testAWSNoPlacementGroup checks that a class without its placement group says so and launches nothing, and that it is
// ready after the group has been created.
func testAWSNoPlacementGroup(t *testing.T, w *awsWorld) {
	const name = "aws-no-group"
	s := w.placedStage(t, name)
	s.scale("app", 1)
	class := &awsv1.EC2NodeClass{}
	await(t, patience, "the class not to be ready", func(ctx context.Context) error {
		if err := s.Get(ctx, client.ObjectKey{Name: name}, class); err != nil {
			return err
		}
		is := class.StatusConditions().Get(awsv1.ConditionPlacementGroupReady)
		if !is.IsFalse() || is.Reason != awsv1.ReasonPlacementGroupNotFound || !class.StatusConditions().Root().IsFalse() {
			return fmt.Errorf("its conditions are %v", class.Status.Conditions)
		}
		return nil
	})
	await(t, patience, "the pod to say why it waits", func(ctx context.Context) error {
		for _, pod := range s.pods("app") {
			return s.says(pod, "FailedScheduling", name, "PlacementGroupReady=False", "no placement group matches that is available")(ctx)
		}
		return fmt.Errorf("there is no pod")
	})
	if c := s.ledger.count(name); c.claimsEver > 0 || len(s.all()) > 0 {
		t.Errorf("%d claims were made and %d instances launched without the group", c.claimsEver, len(s.all()))
	}
	id := w.placementGroup(t, awssim.PlacementGroup{Name: name, Strategy: "cluster"})
	await(t, 2*patience, "the pod to run", s.running("app", 1))
	for _, i := range s.instances() {
		if i.PlacementGroup != id {
			t.Errorf("instance %s is in placement group %q, want %s", i.ID, i.PlacementGroup, id)
		}
	}
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}
