package launch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// slot returns an available offering of a reservation.
func slot(zone, id string, hold Hold, price float64, left int) cloud.Offering {
	o := sale(zone, karpv1.CapacityTypeReserved, price)
	o.ReservationID, o.ReservationCount = id, left
	o.Requirements = []cloud.Requirement{{Key: awsv1.LabelCapacityReservationType, Operator: "In", Values: []string{hold.Type}},
		{Key: awsv1.LabelCapacityReservationInterruptible, Operator: "In", Values: []string{fmt.Sprint(hold.Interruptible)}}}
	return o
}

// TestSelectReserved checks which reservations one fleet uses.
func TestSelectReserved(t *testing.T) {
	own, block := Hold{Type: "default"}, Hold{Type: "capacity-block"}
	lent := Hold{Type: "default", Interruptible: true}
	two := 2
	sizes := karpv1.Requirement{Key: corev1.LabelInstanceTypeStable, Operator: "Exists", MinValues: &two}
	for name, c := range map[string]struct {
		claim *karpv1.NodeClaim
		types []cloud.InstanceType
		want  string
	}{
		"cheapest group": {claimOf(), []cloud.InstanceType{typed("x", slot("a", "cr-1", lent, 1, 1)), typed("y", slot("a", "cr-2", own, 2, 1))},
			"reserved interruptible-capacity-reservation: x/a/cr-1"},
		"tie: default": {claimOf(), []cloud.InstanceType{typed("x", slot("a", "cr-1", lent, 1, 1), slot("a", "cr-2", block, 1, 1),
			slot("b", "cr-3", own, 1, 1))}, "reserved : x/b/cr-3"},
		"tie: block": {claimOf(), []cloud.InstanceType{typed("x", slot("a", "cr-1", lent, 1, 1), slot("a", "cr-2", block, 1, 1))},
			"reserved capacity-block: x/a/cr-2"},
		"one block": {claimOf(), []cloud.InstanceType{typed("x", slot("a", "cr-1", block, 1, 1), slot("b", "cr-2", block, 1, 3))},
			"reserved capacity-block: x/a/cr-1"},
		"the most room": {claimOf(), []cloud.InstanceType{typed("x", slot("a", "cr-1", own, 1, 1), slot("a", "cr-2", own, 1, 3),
			slot("a", "cr-3", own, 1, 3), slot("b", "cr-4", own, 1, 1))}, "reserved : x/a/cr-2 x/b/cr-4"},
		"before ordinary types": {claimOf(), []cloud.InstanceType{special(typed("g", slot("a", "cr-1", own, 1, 1))),
			typed("x", sale("a", "spot", 0.5))}, "reserved : g/a/cr-1"},
		"minValues that reservations do not meet": {claimOf(sizes), []cloud.InstanceType{typed("x", slot("a", "cr-1", own, 1, 1),
			sale("a", "spot", 1)), typed("y", sale("a", "spot", 1))}, "spot : x/a/ y/a/"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Select(c.claim, c.types)
			if err != nil {
				t.Fatal(err)
			}
			got := s.CapacityType + " " + string(s.market) + ":"
			for _, w := range s.Ways {
				got += " " + placeKey(w.Type.Name, w.Offering.Zone) + "/" + w.Offering.ReservationID
			}
			if got != c.want {
				t.Errorf("selected %s, want %s", got, c.want)
			}
		})
	}
}

// reserve creates a reservation that the class selects, and counts it.
func (w *world) reserve(ctx context.Context, r awssim.CapacityReservation) string {
	w.Helper()
	if r.Type == "" {
		r.Type, r.Zone = "m5.large", zoneA
	}
	id := w.sim.AddReservation(r)
	listed := awsv1.CapacityReservation{ID: id, InstanceType: r.Type, AvailabilityZone: r.Zone, ReservationType: "default",
		Interruptible: r.Interruptible, InstanceMatchCriteria: "targeted"}
	if r.Kind != "" {
		listed.ReservationType = r.Kind
	}
	w.class.Status.CapacityReservations = append(w.class.Status.CapacityReservations, listed)
	w.makeAssortment()
	w.recount(ctx)
	return id
}

// recount reads the counts of the reservations from EC2.
func (w *world) recount(ctx context.Context) {
	w.Helper()
	asked := time.Now()
	out, err := w.ec2.DescribeCapacityReservations(ctx, &ec2.DescribeCapacityReservationsInput{})
	w.must(err)
	var list []instance.CountedReservation
	for _, r := range out.CapacityReservations {
		list = append(list, instance.CountedReservation{ID: *r.CapacityReservationId, Tenancy: string(r.Tenancy),
			Available: int(*r.AvailableInstanceCount), Total: int(*r.TotalInstanceCount)})
	}
	w.reserved.Read(list, asked)
}

// reservedOrder returns an order for m5.large in zone A, reserved or on demand.
func (w *world) reservedOrder(name string) *Order {
	return w.order(name, oneOf(corev1.LabelInstanceTypeStable, "m5.large"), oneOf(karpv1.LabelCapacityType, "reserved", "on-demand"),
		oneOf(corev1.LabelTopologyZone, zoneA))
}

func reservationLabels(m *cloud.Machine) map[string]string {
	return map[string]string{"capacity": m.Labels[karpv1.LabelCapacityType], "id": m.Labels[awsv1.LabelCapacityReservationID],
		"type": m.Labels[awsv1.LabelCapacityReservationType], "interruptible": m.Labels[awsv1.LabelCapacityReservationInterruptible]}
}

// TestLaunchReserved checks the labels of machines of each kind of reservation, of the launch and of reads, and what
// follows when it is full.
func TestLaunchReserved(t *testing.T) {
	for name, c := range map[string]struct {
		of   awssim.CapacityReservation
		want Hold
	}{
		"on demand":     {awssim.CapacityReservation{Criteria: "targeted"}, Hold{Type: "default"}},
		"block":         {awssim.CapacityReservation{Kind: "capacity-block"}, Hold{Type: "capacity-block"}},
		"interruptible": {awssim.CapacityReservation{Interruptible: true, Owner: "999988887777"}, Hold{Type: "default", Interruptible: true}},
		"dedicated":     {awssim.CapacityReservation{Criteria: "targeted", Tenancy: "dedicated"}, Hold{Type: "default"}},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, awssim.Options{}, func(ctx context.Context, w *world) {
				c.of.Total = 2
				id := w.reserve(ctx, c.of)
				l := w.launcher()
				want := map[string]string{"capacity": "reserved", "id": id, "type": c.want.Type, "interruptible": fmt.Sprint(c.want.Interruptible)}
				order := func(name string) *Order {
					o := w.reservedOrder(name)
					if c.of.Tenancy != "" {
						o.Claim.Spec.Requirements = append(o.Claim.Spec.Requirements, oneOf(awsv1.LabelInstanceTenancy, c.of.Tenancy))
					}
					return o
				}
				if c.of.Tenancy != "" {
					m, err := l.Launch(ctx, w.reservedOrder("any"))
					w.must(err)
					if capacity, tenancy := m.Labels[karpv1.LabelCapacityType],
						m.Labels[awsv1.LabelInstanceTenancy]; capacity != "on-demand" || tenancy != "default" {
						t.Errorf("a claim that does not ask for its tenancy is %s, %s", capacity, tenancy)
					}
				}
				for _, claim := range []string{"one", "two"} {
					m, err := l.Launch(ctx, order(claim))
					w.must(err)
					if diff := cmp.Diff(want, reservationLabels(m)); diff != "" {
						t.Errorf("launched: (-want +got)\n%s", diff)
					}
					if tenancy := m.Labels[awsv1.LabelInstanceTenancy]; (tenancy == "dedicated") != (c.of.Tenancy == "dedicated") {
						t.Errorf("tenancy is %q", tenancy)
					}
					read, err := l.Machine(ctx, m.ProviderID)
					w.must(err)
					if diff := cmp.Diff(want, reservationLabels(read)); diff != "" {
						t.Errorf("read: (-want +got)\n%s", diff)
					}
				}
				m, err := l.Launch(ctx, order("three"))
				w.must(err)
				if diff := cmp.Diff(map[string]string{"capacity": "on-demand", "id": "", "type": "", "interruptible": ""},
					reservationLabels(m)); diff != "" {
					t.Errorf("the third: (-want +got)\n%s", diff)
				}
				off := w.launcher(func(o *Options) { o.IgnoreReservations = true })
				machines, err := off.Machines(ctx)
				w.must(err)
				for i := range machines {
					if got := reservationLabels(&machines[i])["capacity"]; got != "on-demand" {
						t.Errorf("gate off: %s", got)
					}
				}
			})
		})
	}
}

// TestReservationExceeded checks that a reservation which others have used up is not tried again until it is counted.
func TestReservationExceeded(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		id := w.reserve(ctx, awssim.CapacityReservation{Criteria: "targeted", Total: 1})
		l, stranger := w.launcher(), w.launcher(func(o *Options) { o.Reserved = nil })
		taken, err := stranger.Launch(ctx, w.reservedOrder("stranger"))
		w.must(err)
		var insufficient *cloud.InsufficientCapacityError
		if _, err := l.Launch(ctx, w.reservedOrder("late")); !errors.As(err, &insufficient) ||
			!strings.Contains(err.Error(), "ReservationCapacityExceeded") {
			t.Fatalf("error is %v, want insufficient capacity", err)
		}
		if left, _ := w.reserved.Left(id); left != 0 {
			t.Errorf("%d left after a refusal, want 0", left)
		}
		if at, any := w.unavailable.NextExpiry(); any {
			t.Errorf("an offering is marked until %s", at)
		}
		m, err := l.Launch(ctx, w.reservedOrder("next"))
		w.must(err)
		if got := reservationLabels(m)["capacity"]; got != "on-demand" {
			t.Errorf("the next machine is %s", got)
		}
		w.must(l.Terminate(ctx, taken.ProviderID))
		w.pass(5 * time.Minute)
		w.recount(ctx)
		if left, _ := w.reserved.Left(id); left != 1 {
			t.Errorf("%d left after the termination, want 1", left)
		}
	})
}

// TestReservationEnded checks that a claim on a reservation that has just ended is given up at once, so that it is planned
// without it.
func TestReservationEnded(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		id := w.reserve(ctx, awssim.CapacityReservation{Criteria: "targeted", Total: 1})
		w.must(w.sim.CancelReservation(id))
		l := w.launcher()
		var insufficient *cloud.InsufficientCapacityError
		if _, err := l.Launch(ctx, w.reservedOrder("late")); !errors.As(err, &insufficient) ||
			!strings.Contains(err.Error(), "InvalidCapacityReservationState") {
			t.Fatalf("error is %v, want insufficient capacity", err)
		}
		if left, _ := w.reserved.Left(id); left != 0 {
			t.Errorf("%d left in a reservation that has ended", left)
		}
		m, err := l.Launch(ctx, w.reservedOrder("next"))
		w.must(err)
		if got := reservationLabels(m)["capacity"]; got != "on-demand" {
			t.Errorf("the next machine is %s", got)
		}
	})
}

// TestReservationCounted checks that terminations and launches change the count before EC2 is asked again.
func TestReservationCounted(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		id := w.reserve(ctx, awssim.CapacityReservation{Criteria: "targeted", Total: 2})
		l := w.launcher()
		w.pass(time.Second)
		m, err := l.Launch(ctx, w.reservedOrder("one"))
		w.must(err)
		check := func(when string, want int) {
			t.Helper()
			if left, _ := w.reserved.Left(id); left != want {
				t.Errorf("%s: %d left, want %d", when, left, want)
			}
		}
		check("launched", 1)
		w.pass(time.Second)
		w.recount(ctx)
		check("counted", 1)
		w.must(l.Terminate(ctx, m.ProviderID))
		check("terminating", 1)
		for err = l.Terminate(ctx, m.ProviderID); err == nil; err = l.Terminate(ctx, m.ProviderID) {
			w.pass(10 * time.Second)
		}
		if !errors.Is(err, cloud.ErrNotFound) {
			t.Fatal(err)
		}
		check("gone", 2)
		w.pass(time.Second)
		w.recount(ctx)
		check("counted again", 2)
	})
}

// TestReservedRestart checks that a process which is killed at any step of a launch into a reservation is continued, with
// the same labels, by the next.
func TestReservedRestart(t *testing.T) {
	for _, after := range []bool{false, true} {
		for dies := 1; dies < 6; dies++ {
			t.Run(fmt.Sprintf("step %d, with effect %v", dies, after), func(t *testing.T) {
				in(t, awssim.Options{}, func(ctx context.Context, w *world) {
					id := w.reserve(ctx, awssim.CapacityReservation{Criteria: "targeted", Total: 1})
					dying := &process{EC2API: w.ec2, RecordStore: w.records, dies: dies, after: after}
					first := w.launcher(func(o *Options) { o.EC2, o.RecordStore = dying, dying })
					until, cancel := context.WithTimeout(ctx, time.Minute)
					_, _ = first.Launch(until, w.reservedOrder("one"))
					cancel()
					w.pass(launchTimeout)
					w.reserved = instance.NewReserved(time.Now)
					w.recount(ctx)
					m, err := w.launcher().Launch(ctx, w.reservedOrder("one"))
					for try := 0; err != nil && try < 20; try++ {
						w.pass(10 * time.Second)
						m, err = w.launcher().Launch(ctx, w.reservedOrder("one"))
					}
					w.must(err)
					if got := reservationLabels(m); got["capacity"] != "reserved" || got["id"] != id || got["interruptible"] != "false" {
						t.Errorf("labels %v", got)
					}
					if alive := w.alive(); len(alive) != 1 {
						t.Errorf("%d instances run", len(alive))
					}
				})
			})
		}
	}
}

// TestRequestOfEarlierVersion checks that stored requests without reservations mean what they meant before.
func TestRequestOfEarlierVersion(t *testing.T) {
	for _, target := range []string{"spot", "on-demand"} {
		sent := &ec2.CreateFleetInput{TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity: aws.Int32(1), DefaultTargetCapacityType: ec2types.DefaultTargetCapacityType(target)}}
		text := requests{{Sent: sent}}.text()
		read, err := requestsOf(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := read[0].capacityType(); got != target || read[0].Holds != nil {
			t.Errorf("capacity type %q, want %q", got, target)
		}
	}
	r := requests{{Sent: &ec2.CreateFleetInput{TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{
		DefaultTargetCapacityType: "on-demand"}}, Holds: map[string]Hold{"m5.large/a": {ID: "cr-1", Type: "default"}}}}
	read, err := requestsOf(r.text())
	if err != nil || read[0].capacityType() != karpv1.CapacityTypeReserved {
		t.Errorf("a reserved request reads as %+v, %v", read, err)
	}
}
