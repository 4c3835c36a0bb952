package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// in returns the running instances of the case in a zone.
func (s *awsStage) in(zone string) []awssim.Instance {
	return slices.DeleteFunc(s.instances(), func(i awssim.Instance) bool { return i.Zone != zone })
}

// testAWSShifted checks a zonal shift that begins while a fleet runs: pods get nodes in other zones, an empty node in the
// zone stays, and a claim that is deleted meanwhile ends after the shift.
func testAWSShifted(t *testing.T, w *awsWorld) {
	s := w.stage(t, "aws-shift")
	s.require(among(karpv1.LabelCapacityType, karpv1.CapacityTypeOnDemand), among("karpenter.k8s.aws/instance-cpu", "2"),
		among(corev1.LabelTopologyZone, "us-east-1a"))
	s.scale("app", 1)
	await(t, patience, "a pod to run in the zone", s.running("app", 1))
	s.require(among(karpv1.LabelCapacityType, karpv1.CapacityTypeOnDemand), among("karpenter.k8s.aws/instance-cpu", "2"),
		among(corev1.LabelTopologyZone, "us-east-1a", "us-east-1b"))
	pool := &karpv1.NodePool{}
	if err := s.Get(t.Context(), types.NamespacedName{Name: s.name}, pool); err != nil {
		t.Fatal(err)
	}
	shift, err := w.sim.StartShift("us-east-1a", awssim.ShiftByUser, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.sim.EndShift("") })
	await(t, patience, "the shift to be announced", s.says(pool, "ZonalShiftActive", "offerings in zone us-east-1a", "are unavailable"))

	s.scale("app", 4)
	await(t, patience, "pods to run elsewhere", s.running("app", 4))
	kept := s.in("us-east-1a")
	if len(kept) != 1 {
		t.Fatalf("%d instances are in the zone, want the one from before the shift", len(kept))
	}
	s.scale("app", 0)
	await(t, patience, "empty nodes to go elsewhere, and to stay in the zone", func(context.Context) error {
		if there, left := s.in("us-east-1a"), s.ledger.count(s.name).claims; len(there) != 1 || left != 1 {
			return fmt.Errorf("%d instances are in the zone, and %d claims are left", len(there), left)
		}
		return nil
	})

	w.sim.ResetCalls()
	for _, c := range s.ledger.claimsOf(s.name) {
		if c.object.Labels[corev1.LabelTopologyZone] == "us-east-1a" {
			s.remove(c.object)
		}
	}
	await(t, patience, "the claim to wait for the end of the shift", func(context.Context) error {
		for _, c := range s.ledger.claimsOf(s.name) {
			if is := c.object.Condition("InstanceTerminating"); is != nil && is.Reason == "ZoneShifted" {
				return nil
			}
		}
		return fmt.Errorf("no claim says so; the calls are %v", w.sim.Calls())
	})
	if n := len(s.in("us-east-1a")); n != 1 || s.answered("TerminateInstances", "OK") > 0 {
		t.Errorf("%d instances are in the zone, and TerminateInstances was called %d times", n, s.answered("TerminateInstances", "OK"))
	}
	w.sim.EndShift(shift)
	await(t, patience, "the end to be announced", s.says(pool, "ZonalShiftCleared", "offerings in zone us-east-1a"))
	await(t, 2*patience, "everything to go", s.empty)
}
