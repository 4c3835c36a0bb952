package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// reservedStage is a case with a reservation, which the class of the case selects by its tag. The pods need a node each.
func (w *awsWorld) reservedStage(t *testing.T, name string, r awssim.CapacityReservation) (*awsStage, string) {
	t.Helper()
	r.Type, r.Zone, r.Tags = "m5.large", "us-east-1a", map[string]string{"team": name}
	id := w.sim.AddReservation(r)
	s := w.stageOf(t, name, func(spec *awsv1.EC2NodeClassSpec) {
		spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{Tags: r.Tags}}
	})
	s.require(among(karpv1.LabelCapacityType, karpv1.CapacityTypeReserved, karpv1.CapacityTypeOnDemand),
		among("karpenter.k8s.aws/instance-cpu", "2"))
	s.apart()
	return s, id
}

// inReservation returns the claims of the case, not being deleted, that are labeled as machines in the reservation. It
// fails if other claims, or nodes, have labels that do not agree.
func (s *awsStage) inReservation(id, kind string) (claims []client.Object, err error) {
	check := func(o client.Object) bool {
		labels := o.GetLabels()
		in := labels[karpv1.LabelCapacityType] == karpv1.CapacityTypeReserved
		want := map[string]string{awsv1.LabelCapacityReservationID: "", awsv1.LabelCapacityReservationType: "",
			awsv1.LabelCapacityReservationInterruptible: ""}
		if in {
			want = map[string]string{awsv1.LabelCapacityReservationID: id, awsv1.LabelCapacityReservationType: kind,
				awsv1.LabelCapacityReservationInterruptible: "false"}
		}
		for key, value := range want {
			if got := labels[key]; got != value {
				err = fmt.Errorf("%T %s is %s, with %s=%q, want %q", o, o.GetName(), labels[karpv1.LabelCapacityType], key, got, value)
			}
		}
		return in
	}
	nodes := 0
	for _, node := range s.ledger.nodesOf(s.name) {
		if node.DeletionTimestamp == nil && check(node) {
			nodes++
		}
	}
	for _, c := range s.ledger.claimsOf(s.name) {
		if !c.gone && c.object.DeletionTimestamp == nil && check(c.object) {
			claims = append(claims, c.object)
		}
	}
	if err == nil && nodes != len(claims) {
		err = fmt.Errorf("%d nodes and %d claims are reserved", nodes, len(claims))
	}
	return claims, err
}

// testAWSReserved checks that ten pods use three machines in a reservation and seven on demand, and that these become
// on-demand, with their pods, when the reservation is canceled.
func testAWSReserved(t *testing.T, w *awsWorld) {
	s, id := w.reservedStage(t, "aws-reserved", awssim.CapacityReservation{Criteria: "targeted", Total: 3})
	s.scale("app", 10)
	await(t, patience, "all pods to run", s.running("app", 10))
	s.boughtOnce()
	claims, err := s.inReservation(id, "default")
	if err != nil || len(claims) != 3 || len(s.instances()) != 10 {
		t.Fatalf("%d claims of %d machines are in the reservation of 3: %v", len(claims), len(s.instances()), err)
	}
	inside := 0
	for _, r := range w.sim.Reservations() {
		if r.ID == id {
			inside = r.Total - r.Available
		}
	}
	if inside != 3 {
		t.Errorf("EC2 has %d machines in the reservation, want 3", inside)
	}
	if err := w.sim.CancelReservation(id); err != nil {
		t.Fatal(err)
	}
	await(t, 2*patience, "the machines to be on-demand", func(context.Context) error {
		left, err := s.inReservation(id, "default")
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d claims are in the reservation", len(left))
		}
		return err
	})
	for _, claim := range claims {
		await(t, patience, "the change to be announced", s.says(claim, "ReservationLost", id))
	}
	if err := s.running("app", 10)(t.Context()); err != nil || len(s.all()) != 10 {
		t.Errorf("%d machines were launched, want 10: %v", len(s.all()), err)
	}
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}

// testAWSBlockEnds checks that pods leave a capacity block before EC2 terminates its machines, and run elsewhere.
func testAWSBlockEnds(t *testing.T, w *awsWorld) {
	end := time.Now().Add(42 * time.Minute)
	s, id := w.reservedStage(t, "aws-block", awssim.CapacityReservation{Kind: "capacity-block", Total: 2, End: end})
	s.scale("app", 2)
	await(t, patience, "all pods to run", s.running("app", 2))
	block, err := s.inReservation(id, "capacity-block")
	if err != nil || len(block) != 2 {
		t.Fatalf("%d claims are in the capacity block, want 2: %v", len(block), err)
	}
	await(t, 3*patience, "pods to run elsewhere", func(ctx context.Context) error {
		_, err := s.inReservation(id, "capacity-block")
		for _, c := range s.ledger.claimsOf(s.name) {
			if !c.gone && c.object.Labels[karpv1.LabelCapacityType] == karpv1.CapacityTypeReserved {
				err = fmt.Errorf("claim %s is in the capacity block", c.object.Name)
			}
		}
		if err == nil && len(s.instances()) != 2 {
			err = fmt.Errorf("%d instances run", len(s.instances()))
		}
		if err == nil {
			err = s.running("app", 2)(ctx)
		}
		return err
	})
	if left := time.Until(end.Add(-30 * time.Minute)); left <= 0 {
		t.Errorf("EC2 has begun to terminate the machines, %s ago", -left)
	}
	for _, claim := range block {
		await(t, patience, "the end to be announced", s.says(claim, "CapacityBlockExpiring", id))
	}
	for _, pod := range s.pods("app") {
		if got := s.node(pod).Labels[karpv1.LabelCapacityType]; got != karpv1.CapacityTypeOnDemand {
			t.Errorf("pod %s is on a node that is %s", pod.Name, got)
		}
	}
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}
