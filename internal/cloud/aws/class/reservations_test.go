package class

import (
	"context"
	"testing"
	"time"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
	"github.com/karpenter-go/karpenter/internal/testing/awstest"
)

// TestReservations checks the status of a class with reservation terms, on which it depends while the gate is on, and
// when it is reconciled again.
func TestReservations(t *testing.T) {
	class := awstest.Class(func(class *awsv1.EC2NodeClass) {
		class.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{Tags: map[string]string{"team": "a"}}}
	})
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		var counted discovery.FoundReservations
		w.Counted = func(found discovery.FoundReservations) { counted = found }
		denied, err := w.AWS.Inject(awssim.Fault{Kind: awssim.FaultDeny, Service: "ec2", Action: "DescribeCapacityReservations"})
		w.Must(err)
		refused, _, err := w.reconcile(ctx)
		if err == nil {
			t.Error("a refused call is no error")
		}
		expect(t, "denied", refused, awsv1.ConditionCapacityReservationsReady, "Unknown CallRefused")
		expect(t, "denied", refused, "Ready", "Unknown ReconcilingDependents")
		w.AWS.Clear(denied)
		w.Pass(time.Minute)
		expect(t, "none", w.reconciled(ctx), awsv1.ConditionCapacityReservationsReady, "True CapacityReservationsReady")
		expect(t, "none", w.reconciled(ctx), "Ready", "True Ready")

		id := w.AWS.AddReservation(awssim.CapacityReservation{Type: "m5.large", Zone: "us-east-1a", Total: 3, Kind: "capacity-block",
			Tags: map[string]string{"team": "a"}, End: time.Now().Add(42 * time.Minute).Add(30 * time.Second)})
		w.Pass(time.Minute)
		found, result, err := w.reconcile(ctx)
		w.Must(err)
		got := found.Status.CapacityReservations
		if len(got) != 1 || got[0].ID != id || got[0].State != "active" || got[0].OwnerID == "" || got[0].EndTime == nil {
			t.Errorf("status %+v", got)
		}
		if len(counted.List) != 1 || counted.List[0].Available != 3 {
			t.Errorf("counted %+v", counted)
		}
		w.Pass(result.RequeueAfter)
		_, result, err = w.reconcile(ctx)
		w.Must(err)
		if result.RequeueAfter >= time.Minute || result.RequeueAfter <= 0 {
			t.Errorf("half a minute before the block expires, reconciled again in %s", result.RequeueAfter)
		}
		w.Pass(result.RequeueAfter) // EC2's answer is not a minute old then
		if got := w.reconciled(ctx).Status.CapacityReservations; len(got) != 1 || got[0].State != "expiring" {
			t.Errorf("40 minutes before its end: %+v", got)
		}

		w.IgnoreReservations = true
		without := w.reconciled(ctx)
		if len(without.Status.CapacityReservations) > 0 || without.Condition(awsv1.ConditionCapacityReservationsReady) != nil {
			t.Errorf("gate off: %+v", without.Status)
		}
		expect(t, "gate off", without, "Ready", "True Ready")
	}, class)
}
