package aws

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// reserved creates a reservation that the class "default" selects and lists.
func (w *world) reserved(t *testing.T, r awssim.CapacityReservation) string {
	t.Helper()
	class := w.class(t, "default")
	r.Type, r.Zone, r.Total = "m5.large", class.Status.Subnets[0].Zone, max(r.Total, 1)
	id := w.sim.AddReservation(r)
	class.Spec.CapacityReservationSelectorTerms = append(class.Spec.CapacityReservationSelectorTerms,
		awsv1.CapacityReservationSelectorTerm{ID: id})
	status := class.Status
	check(t, w.api.Update(t.Context(), class))
	listed := awsv1.CapacityReservation{ID: id, InstanceType: r.Type, AvailabilityZone: r.Zone, OwnerID: "111122223333",
		InstanceMatchCriteria: "targeted", ReservationType: "default", State: "active"}
	if r.Kind != "" {
		listed.ReservationType, listed.EndTime = r.Kind, &metav1.Time{Time: r.End}
	}
	class.Status = status
	class.Status.CapacityReservations = append(class.Status.CapacityReservations, listed)
	check(t, w.api.Status().Update(t.Context(), class))
	return id
}

// TestReservedMachines checks that a provider which has just started launches into a reservation, that the machine drifts
// when the class selects the reservation no more, but not when it has ended: it becomes on-demand, at the second look.
func TestReservedMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newVirtualWorld(t, awssim.Options{Cluster: awssim.Cluster{CA: "PEM"}}, "m5.large")
		id := w.reserved(t, awssim.CapacityReservation{Criteria: "targeted"})
		p := w.provider(t)
		claim := w.launched(t, p, "claim", karpv1.Requirement{Key: karpv1.LabelCapacityType, Operator: "In",
			Values: []string{"reserved", "on-demand"}})
		if claim.Labels[karpv1.LabelCapacityType] != "reserved" || claim.Labels[awsv1.LabelCapacityReservationID] != id {
			t.Fatalf("launched with %v", claim.Labels)
		}
		if reason, err := p.reservationDrift(t.Context(), w.class(t, "default"), claim); reason != "" || err != nil {
			t.Errorf("drift %q, %v of a machine in a reservation of its class", reason, err)
		}
		class := w.class(t, "default")
		class.Spec.CapacityReservationSelectorTerms, class.Status.CapacityReservations = nil, nil
		if reason, err := p.reservationDrift(t.Context(), class, claim); reason != awsv1.ReasonCapacityReservationDrift || err != nil {
			t.Errorf("drift %q, %v of a machine in a reservation of no class", reason, err)
		}
		check(t, w.sim.CancelReservation(id))
		time.Sleep(10 * time.Second) // the results of discovery are used for a few seconds
		if reason, err := p.reservationDrift(t.Context(), class, claim); reason != "" || err != nil {
			t.Errorf("drift %q, %v of a machine whose reservation has ended", reason, err)
		}
		upkeep := &reservedUpkeep{Provider: p}
		for look, want := range []string{"reserved", "on-demand"} {
			time.Sleep(time.Minute)
			check(t, upkeep.examineReserved(t.Context()))
			check(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
			if got := claim.Labels[karpv1.LabelCapacityType]; got != want {
				t.Errorf("at look %d the claim is %s, want %s", look+1, got, want)
			}
		}
		for _, key := range []string{awsv1.LabelCapacityReservationID, awsv1.LabelCapacityReservationType,
			awsv1.LabelCapacityReservationInterruptible} {
			if value, has := claim.Labels[key]; has {
				t.Errorf("the label %s remains: %q", key, value)
			}
		}
	})
}

// TestBlockExpires checks that a machine leaves its capacity block 40 minutes before the end, with a drain of ten minutes,
// even if no class selects the block any more.
func TestBlockExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newVirtualWorld(t, awssim.Options{Cluster: awssim.Cluster{CA: "PEM"}}, "m5.large")
		end := time.Now().Add(2 * time.Hour).Truncate(time.Second)
		w.reserved(t, awssim.CapacityReservation{Kind: "capacity-block", End: end})
		var kinds []interruption.Kind
		p := w.provider(t, func(o *Options) {
			o.Observer.Disrupted = func(_ *karpv1.NodeClaim, kind interruption.Kind) { kinds = append(kinds, kind) }
		})
		claim := w.launched(t, p, "claim", karpv1.Requirement{Key: karpv1.LabelCapacityType, Operator: "In", Values: []string{"reserved"}})
		claim.Finalizers = []string{karpv1.FinalizerTermination}
		check(t, w.api.Update(t.Context(), claim))
		class := w.class(t, "default")
		class.Spec.CapacityReservationSelectorTerms = nil
		check(t, w.api.Update(t.Context(), class))
		for _, step := range []struct {
			before  time.Duration
			leaving bool
		}{{41 * time.Minute, false}, {39 * time.Minute, true}} {
			time.Sleep(time.Until(end.Add(-step.before)))
			check(t, (&reservedUpkeep{Provider: p}).examineReserved(t.Context()))
			err := w.api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim)
			if leaving := apierrors.IsNotFound(err) || claim.DeletionTimestamp != nil; leaving != step.leaving {
				t.Errorf("%s before the end the claim is leaving: %v (%v)", step.before, leaving, err)
			}
		}
		if got, want := claim.Annotations[karpv1.AnnotationTerminationTimestamp],
			end.Add(-30*time.Minute).UTC().Format(time.RFC3339); got != want {
			t.Errorf("the drain ends at %q, want %q", got, want)
		}
		if diff := cmp.Diff([]interruption.Kind{interruption.BlockExpiring}, kinds); diff != "" {
			t.Errorf("removals are counted as (-want +got)\n%s", diff)
		}
	})
}

// TestReservationCallsPerLook checks that a look at many machines in reservations is one call, and that none is made
// without such machines.
func TestReservationCallsPerLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newVirtualWorld(t, awssim.Options{Cluster: awssim.Cluster{CA: "PEM"}}, "m5.large")
		w.reserved(t, awssim.CapacityReservation{Criteria: "targeted", Total: 20})
		p := w.provider(t)
		upkeep := &reservedUpkeep{Provider: p}
		look := func(want int) {
			t.Helper()
			w.sim.ResetCalls()
			check(t, upkeep.examineReserved(t.Context()))
			calls := 0
			for call, n := range w.sim.Calls() {
				if call.Action == "DescribeInstances" {
					calls += n
				}
			}
			if calls != want {
				t.Errorf("%d calls, want %d", calls, want)
			}
		}
		look(0)
		for i := range 12 {
			w.launched(t, p, fmt.Sprint("claim-", i),
				karpv1.Requirement{Key: karpv1.LabelCapacityType, Operator: "In", Values: []string{"reserved"}})
		}
		look(1)
	})
}

// TestReservationFailures checks that a failure which lasts is logged once, and so is its end, after which
// the machine becomes on-demand.
func TestReservationFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newVirtualWorld(t, awssim.Options{Cluster: awssim.Cluster{CA: "PEM"}}, "m5.large")
		id := w.reserved(t, awssim.CapacityReservation{Criteria: "targeted"})
		p := w.provider(t)
		claim := w.launched(t, p, "claim", karpv1.Requirement{Key: karpv1.LabelCapacityType, Operator: "In", Values: []string{"reserved"}})
		var lines atomic.Int32
		log := funcr.New(func(string, string) { lines.Add(1) }, funcr.Options{})
		fault, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultDeny, Service: "ec2", Action: "DescribeInstances"})
		check(t, err)
		check(t, w.sim.CancelReservation(id))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- (&reservedUpkeep{Provider: p}).rounds(log).Start(ctx) }()
		time.Sleep(10 * time.Minute)
		if n := lines.Load(); n != 1 {
			t.Errorf("%d lines about one failure that lasts", n)
		}
		w.sim.Clear(fault)
		time.Sleep(5 * time.Minute)
		cancel()
		check(t, <-done)
		check(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
		if n, got := lines.Load(), claim.Labels[karpv1.LabelCapacityType]; n != 2 || got != "on-demand" {
			t.Errorf("%d lines, and the claim is %s", n, got)
		}
	})
}

// TestLostForAWhile checks that two looks shortly after each other do not make a machine on-demand.
func TestLostForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newVirtualWorld(t, awssim.Options{Cluster: awssim.Cluster{CA: "PEM"}}, "m5.large")
		id := w.reserved(t, awssim.CapacityReservation{Criteria: "targeted"})
		p := w.provider(t)
		claim := w.launched(t, p, "claim", karpv1.Requirement{Key: karpv1.LabelCapacityType, Operator: "In", Values: []string{"reserved"}})
		check(t, w.sim.CancelReservation(id))
		upkeep := &reservedUpkeep{Provider: p}
		for range 2 {
			check(t, upkeep.examineReserved(t.Context()))
			time.Sleep(10 * time.Second)
		}
		check(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
		if got := claim.Labels[karpv1.LabelCapacityType]; got != "reserved" {
			t.Errorf("ten seconds after it was seen first, the claim is %s", got)
		}
	})
}

// TestBlockExpiresWithGrace checks that the end of a capacity block does not extend a drain beyond the termination grace
// period of the claim, or beyond the end that the claim has already.
func TestBlockExpiresWithGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newVirtualWorld(t, awssim.Options{Cluster: awssim.Cluster{CA: "PEM"}}, "m5.large")
		end := time.Now().Add(2 * time.Hour).Truncate(time.Second)
		w.reserved(t, awssim.CapacityReservation{Kind: "capacity-block", End: end, Total: 2})
		p := w.provider(t)
		leaving := end.Add(-39 * time.Minute)
		ends := leaving.Add(2 * time.Minute).UTC().Format(time.RFC3339)
		graced := w.launched(t, p, "graced", karpv1.Requirement{Key: karpv1.LabelCapacityType, Operator: "In", Values: []string{"reserved"}})
		graced.Spec.TerminationGracePeriod = &metav1.Duration{Duration: 5 * time.Minute}
		ending := w.launched(t, p, "ending", karpv1.Requirement{Key: karpv1.LabelCapacityType, Operator: "In", Values: []string{"reserved"}})
		metav1.SetMetaDataAnnotation(&ending.ObjectMeta, karpv1.AnnotationTerminationTimestamp, ends)
		for _, claim := range []*karpv1.NodeClaim{graced, ending} {
			claim.Finalizers = []string{karpv1.FinalizerTermination}
			check(t, w.api.Update(t.Context(), claim))
		}
		time.Sleep(time.Until(leaving))
		check(t, (&reservedUpkeep{Provider: p}).examineReserved(t.Context()))
		for claim, want := range map[*karpv1.NodeClaim]string{graced: "", ending: ends} {
			check(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
			if got := claim.Annotations[karpv1.AnnotationTerminationTimestamp]; got != want || claim.DeletionTimestamp == nil {
				t.Errorf("%s: the drain ends at %q, want %q; deleted at %v", claim.Name, got, want, claim.DeletionTimestamp)
			}
		}
	})
}

// TestCountsFailAlone checks that a class whose reservations cannot be read does not hold back the counts of another.
func TestCountsFailAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newVirtualWorld(t, awssim.Options{Cluster: awssim.Cluster{CA: "PEM"}}, "m5.large")
		id := w.reserved(t, awssim.CapacityReservation{Criteria: "targeted"})
		other := testClass("other")
		other.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{Tags: map[string]string{"team": "a"}}}
		other.Status.CapacityReservations = []awsv1.CapacityReservation{{ID: "cr-0123456789abcdef0"}}
		p := w.provider(t)
		fault, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultDeny, Service: "ec2", Action: "DescribeCapacityReservations"})
		check(t, err)
		p.recount(t.Context(), other)
		w.sim.Clear(fault)
		p.recount(t.Context(), w.class(t, "default"))
		if counts := p.reserved.Counts(); len(counts) != 1 || counts[0].ID != id || counts[0].Available != 1 {
			t.Errorf("after a failure for another class: %+v", counts)
		}
		w.sim.ResetCalls()
		p.recount(t.Context(), other)
		if calls := w.sim.Calls(); len(calls) != 0 {
			t.Errorf("a read that has just failed is repeated: %v", calls)
		}
	})
}
