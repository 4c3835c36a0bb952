package awssim

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// into returns a change of a template that targets a reservation.
func into(id string, market ec2types.MarketType) func(*ec2types.RequestLaunchTemplateData) {
	return func(d *ec2types.RequestLaunchTemplateData) {
		d.CapacityReservationSpecification = &ec2types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: ec2types.CapacityReservationPreferenceCapacityReservationsOnly,
			CapacityReservationTarget:     &ec2types.CapacityReservationTarget{CapacityReservationId: &id}}
		if market != "" {
			d.InstanceMarketOptions = &ec2types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: market}
		}
	}
}

func (w *world) described(ctx context.Context, id string) ec2types.Instance {
	w.Helper()
	out, err := w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	w.must(err)
	return out.Reservations[0].Instances[0]
}

// A capacity block is launched into with its market type, and its instances end 30 minutes before it.
func TestCapacityBlock(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		id := w.AddReservation(CapacityReservation{Type: "m5.large", Zone: zoneA, Total: 2, Kind: kindBlock, End: time.Now().Add(2 * time.Hour)})
		w.template(ctx, "nodes", into(id, ec2types.MarketTypeCapacityBlock))
		request := fleetOf(1, ec2types.DefaultTargetCapacityTypeCapacityBlock, w.way("m5.large", zoneA))
		request.OnDemandOptions = nil
		out, err := w.ec2.CreateFleet(ctx, request)
		w.must(err)
		got := launched(out)
		if len(got) != 1 || out.Instances[0].Lifecycle != ec2types.InstanceLifecycleCapacityBlock {
			t.Fatalf("launched %v, errors %+v", got, out.Errors)
		}
		if i := w.described(ctx, got[0]); i.InstanceLifecycle != ec2types.InstanceLifecycleTypeCapacityBlock ||
			aws.ToString(i.CapacityReservationId) != id {
			t.Errorf("lifecycle %q in reservation %q", i.InstanceLifecycle, aws.ToString(i.CapacityReservationId))
		}
		w.pass(89 * time.Minute)
		if state := w.state(ctx, got[0]); state != running {
			t.Errorf("31 minutes before the end of the block the instance is %s", state)
		}
		w.pass(2 * time.Minute)
		if state := w.state(ctx, got[0]); state == running {
			t.Error("29 minutes before the end of the block the instance runs")
		}
		request.ClientToken = nil // the SDK has set it
		out, err = w.ec2.CreateFleet(ctx, request)
		w.must(err)
		if len(launched(out)) > 0 || *out.Errors[0].ErrorCode != "ReservationCapacityExceeded" {
			t.Errorf("29 minutes before the end of the block: launched %v, errors %+v", launched(out), out.Errors)
		}
		w.pass(30 * time.Minute)
		if r := w.Reservations()[0]; r.State != "expired" {
			t.Errorf("after its end the block is %s", r.State)
		}
	})
}

// An interruptible reservation is launched into with its options, and its owner can reclaim instances.
func TestInterruptibleReservation(t *testing.T) {
	in(t, Options{Queue: "notices"}, func(ctx context.Context, w *world) {
		id := w.AddReservation(CapacityReservation{Type: "m5.large", Zone: zoneA, Total: 2, Interruptible: true, Owner: "999988887777"})
		w.template(ctx, "nodes", into(id, ec2types.MarketTypeInterruptibleCapacityReservation))
		request := fleetOf(2, ec2types.DefaultTargetCapacityTypeReservedCapacity, w.way("m5.large", zoneA))
		request.OnDemandOptions = nil
		_, err := w.ec2.CreateFleet(ctx, request)
		w.refused(err, "InvalidParameterCombination")
		request.ReservedCapacityOptions = &ec2types.ReservedCapacityOptionsRequest{
			ReservationTypes: []ec2types.FleetReservationType{ec2types.FleetReservationTypeInterruptibleCapacityReservation}}
		out, err := w.ec2.CreateFleet(ctx, request)
		w.must(err)
		if len(launched(out)) != 2 || out.Instances[0].Lifecycle != ec2types.InstanceLifecycleInterruptibleCapacityReservation {
			t.Fatalf("launched %v, errors %+v", launched(out), out.Errors)
		}
		w.pass(5 * time.Minute)
		w.must(w.Reclaim(id, 1))
		w.pass(3 * time.Minute)
		alive := 0
		for _, i := range w.Instances() {
			if i.State == running {
				alive++
			}
		}
		if r := w.Reservations()[0]; alive != 1 || r.Total != 1 || r.Available != 0 {
			t.Errorf("%d instances run, reservation %+v", alive, r)
		}
	})
}

// Instances of a default reservation continue to run on demand at its end.
func TestReservationExpires(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		id := w.AddReservation(CapacityReservation{Type: "m5.large", Zone: zoneA, Total: 1, Criteria: "targeted", End: time.Now().Add(time.Hour)})
		w.template(ctx, "nodes", into(id, ""))
		out, err := w.ec2.CreateFleet(ctx, fleetOf(1, onDemandType, w.way("m5.large", zoneA)))
		w.must(err)
		got := launched(out)
		w.pass(61 * time.Minute)
		if i := w.described(ctx, got[0]); i.State.Name != ec2types.InstanceStateNameRunning || i.CapacityReservationId != nil {
			t.Errorf("%s in reservation %v", i.State.Name, i.CapacityReservationId)
		}
		out, err = w.ec2.CreateFleet(ctx, fleetOf(1, onDemandType, w.way("m5.large", zoneA)))
		w.must(err)
		if *out.Errors[0].ErrorCode != "InvalidCapacityReservationState" {
			t.Errorf("errors %+v", out.Errors)
		}
	})
}

// A reservation with open criteria is used by matching launches that do not opt out, and by matching instances that run.
func TestOpenReservation(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		w.template(ctx, "nodes", nil)
		out, err := w.ec2.CreateFleet(ctx, fleetOf(1, onDemandType, w.way("m5.large", zoneA)))
		w.must(err)
		id := w.AddReservation(CapacityReservation{Type: "m5.large", Zone: zoneA, Total: 2})
		w.AddReservation(CapacityReservation{Type: "m5.large", Zone: zoneA, Total: 2, Platform: "Windows"})
		w.AddReservation(CapacityReservation{Type: "m5.large", Zone: zoneA, Total: 2, Tenancy: "dedicated"})
		if i := w.described(ctx, launched(out)[0]); aws.ToString(i.CapacityReservationId) != id {
			t.Errorf("the instance that runs is in reservation %q, want %q", aws.ToString(i.CapacityReservationId), id)
		}
		_, err = w.ec2.CreateFleet(ctx, fleetOf(3, onDemandType, w.way("m5.large", zoneA)))
		w.must(err)
		for k, r := range w.Reservations() {
			if want := []int{0, 2, 2}[k]; r.Available != want {
				t.Errorf("reservation %d has %d left, want %d", k, r.Available, want)
			}
		}
		found, err := w.ec2.DescribeCapacityReservations(ctx,
			&ec2.DescribeCapacityReservationsInput{Filters: filters("instance-platform", "Windows", "tenancy", "default")})
		w.must(err)
		if len(found.CapacityReservations) != 1 {
			t.Errorf("by platform and tenancy: %+v", found.CapacityReservations)
		}
		_, err = w.ec2.DescribeCapacityReservations(ctx,
			&ec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{id}, MaxResults: aws.Int32(5)})
		w.refused(err, "InvalidParameterCombination")
		w.must(w.CancelReservation(id))
		if i := w.described(ctx, launched(out)[0]); i.CapacityReservationId != nil {
			t.Errorf("after its cancellation the instance is in reservation %q", *i.CapacityReservationId)
		}
	})
}

// Launches that do not match their reservation are refused.
func TestReservationMismatch(t *testing.T) {
	for name, c := range map[string]struct {
		of     CapacityReservation
		market ec2types.MarketType
	}{
		"block without market type":   {CapacityReservation{Kind: kindBlock}, ""},
		"market type without block":   {CapacityReservation{}, ec2types.MarketTypeInterruptibleCapacityReservation},
		"platform":                    {CapacityReservation{Platform: "Windows"}, ""},
		"tenancy":                     {CapacityReservation{Tenancy: "dedicated"}, ""},
		"another type":                {CapacityReservation{Type: "m5.xlarge"}, ""},
		"interruptible as an own one": {CapacityReservation{Interruptible: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, Options{}, func(ctx context.Context, w *world) {
				defaultTo(&c.of.Type, "m5.large")
				c.of.Zone, c.of.Total = zoneA, 1
				w.template(ctx, "nodes", into(w.AddReservation(c.of), c.market))
				out, err := w.ec2.CreateFleet(ctx, fleetOf(1, onDemandType, w.way("m5.large", zoneA)))
				w.must(err)
				if len(out.Errors) != 1 || *out.Errors[0].ErrorCode != "InvalidParameterValue" {
					t.Errorf("errors %+v", out.Errors)
				}
			})
		})
	}
}

// A fleet with a type twice in a zone is refused, even in two launch templates.
func TestFleetDuplicates(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		w.template(ctx, "nodes", nil)
		w.template(ctx, "others", nil)
		request := fleetOf(1, onDemandType, w.way("m5.large", zoneA))
		other := request.LaunchTemplateConfigs[0]
		other.LaunchTemplateSpecification = &ec2types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: aws.String("others"),
			Version: aws.String("$Latest")}
		request.LaunchTemplateConfigs = append(request.LaunchTemplateConfigs, other)
		_, err := w.ec2.CreateFleet(ctx, request)
		w.refused(err, "InvalidFleetConfiguration")
	})
}
