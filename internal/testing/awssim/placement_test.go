package awssim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
)

// placing returns a template's change that launches into a placement group.
func placing(p ec2types.LaunchTemplatePlacementRequest) templateChange {
	return func(d *ec2types.RequestLaunchTemplateData) { d.Placement = &p }
}

// placed returns zone, group name and partition of the live instances of a placement group as EC2 shows them, sorted.
func (w *world) placed(ctx context.Context, name string) []string {
	out, err := w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{
		Filters: filters("placement-group-name", name, "instance-state-name", "pending")})
	w.must(err)
	var list []string
	for _, r := range out.Reservations {
		for _, i := range r.Instances {
			list = append(list, fmt.Sprintf("%s %s/%d", *i.Placement.AvailabilityZone, *i.Placement.GroupName,
				aws.ToInt32(i.Placement.PartitionNumber)))
		}
	}
	slices.Sort(list)
	return list
}

// All instances of a cluster placement group are in the zone of the first one.
func TestClusterPlacement(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		id := w.AddPlacementGroup(PlacementGroup{Name: "near", Strategy: "cluster"})
		w.template(ctx, "nodes", placing(ec2types.LaunchTemplatePlacementRequest{GroupId: &id}))
		_, err := w.ec2.CreateFleet(ctx, fleetOf(2, onDemandType, w.way("m5.large", zoneB)))
		w.must(err)
		out, err := w.ec2.CreateFleet(ctx, fleetOf(1, onDemandType, w.way("m5.large", zoneA)))
		w.must(err)
		if len(launched(out)) != 0 || *out.Errors[0].ErrorCode != "InsufficientInstanceCapacity" {
			t.Errorf("launched %v in another zone, errors %+v", launched(out), out.Errors)
		}
		out, err = w.ec2.CreateFleet(ctx, fleetOf(1, onDemandType, w.way("m5.large", zoneA), w.way("m5.xlarge", zoneB)))
		w.must(err)
		if diff := cmp.Diff([]string{zoneB + " near/0", zoneB + " near/0", zoneB + " near/0"}, w.placed(ctx, "near")); diff != "" ||
			len(launched(out)) != 1 {
			t.Errorf("the group has -want +got:\n%s", diff)
		}
	})
}

// A spread placement group has at most seven instances per zone. A terminated one makes room.
func TestSpreadPlacement(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		id := w.AddPlacementGroup(PlacementGroup{Name: "apart", Strategy: "spread"})
		w.template(ctx, "nodes", placing(ec2types.LaunchTemplatePlacementRequest{GroupId: &id}))
		first, err := w.ec2.CreateFleet(ctx, fleetOf(9, onDemandType, w.way("m5.large", zoneA)))
		w.must(err)
		if len(launched(first)) != 7 || !strings.Contains(*first.Errors[0].ErrorMessage, "limit of instances in this spread placement group") {
			t.Fatalf("launched %v, errors %+v, want 7 instances and the limit", launched(first), first.Errors)
		}
		other, err := w.ec2.CreateFleet(ctx, fleetOf(1, onDemandType, w.way("m5.large", zoneA), w.way("m5.large", zoneB)))
		w.must(err)
		if len(launched(other)) != 1 {
			t.Errorf("another zone has no room: %+v", other.Errors)
		}
		w.must(w.Terminate(launched(first)[0]))
		next, err := w.ec2.CreateFleet(ctx, fleetOf(2, onDemandType, w.way("m5.large", zoneA)))
		w.must(err)
		if len(launched(next)) != 1 {
			t.Errorf("launched %v after a termination, want one", launched(next))
		}
		if err := w.DeletePlacementGroup(id); err == nil || !strings.Contains(err.Error(), "InUse") {
			t.Errorf("deleting a group with instances: %v", err)
		}
	})
}

// A partition is the requested one, or the one with the fewest instances of the zone.
func TestPartitionPlacement(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		w.AddPlacementGroup(PlacementGroup{Name: "racks", Strategy: "partition", Partitions: 3})
		w.template(ctx, "nodes", placing(ec2types.LaunchTemplatePlacementRequest{GroupName: aws.String("racks"), PartitionNumber: aws.Int32(2)}))
		_, err := w.ec2.CreateFleet(ctx, fleetOf(2, onDemandType, w.way("m5.large", zoneA)))
		w.must(err)
		w.template(ctx, "any", placing(ec2types.LaunchTemplatePlacementRequest{GroupName: aws.String("racks")}))
		request := fleetOf(5, onDemandType, w.way("m5.large", zoneA))
		request.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = aws.String("any")
		_, err = w.ec2.CreateFleet(ctx, request)
		w.must(err)
		want := []string{}
		for _, partition := range []int{1, 1, 1, 2, 2, 3, 3} {
			want = append(want, fmt.Sprintf("%s racks/%d", zoneA, partition))
		}
		if diff := cmp.Diff(want, w.placed(ctx, "racks")); diff != "" {
			t.Errorf("the group has -want +got:\n%s", diff)
		}
		out, err := w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: filters("placement-partition-number", "3")})
		w.must(err)
		if len(out.Reservations) != 2 {
			t.Errorf("partition 3 has %d instances, want 2", len(out.Reservations))
		}
	})
}

// Launches that a placement group never allows.
func TestPlacementRefusals(t *testing.T) {
	for _, test := range []struct {
		name, typeName, code string
		group                PlacementGroup
		placement            ec2types.LaunchTemplatePlacementRequest
	}{
		{"burstable in a cluster", "t3.large", "InvalidParameterCombination", PlacementGroup{Strategy: "cluster"},
			ec2types.LaunchTemplatePlacementRequest{}},
		{"dedicated in a spread group", "m5.large", "InvalidParameterCombination", PlacementGroup{Strategy: "spread"},
			ec2types.LaunchTemplatePlacementRequest{Tenancy: "dedicated"}},
		{"hosts outside of Outposts", "m5.large", "UnsupportedOperation", PlacementGroup{Strategy: "spread", SpreadLevel: "host"},
			ec2types.LaunchTemplatePlacementRequest{}},
		{"partition of a spread group", "m5.large", "InvalidParameterCombination", PlacementGroup{Strategy: "spread"},
			ec2types.LaunchTemplatePlacementRequest{PartitionNumber: aws.Int32(1)}},
		{"partition beyond the last", "m5.large", "InvalidParameterValue", PlacementGroup{Strategy: "partition", Partitions: 3},
			ec2types.LaunchTemplatePlacementRequest{PartitionNumber: aws.Int32(4)}},
		{"third partition for dedicated instances", "m5.large", "InvalidParameterValue", PlacementGroup{Strategy: "partition", Partitions: 3},
			ec2types.LaunchTemplatePlacementRequest{Tenancy: "dedicated", PartitionNumber: aws.Int32(3)}},
		{"name and id", "m5.large", "InvalidParameterCombination", PlacementGroup{Strategy: "cluster"},
			ec2types.LaunchTemplatePlacementRequest{GroupName: aws.String("group")}},
		{"group that is being deleted", "m5.large", "InvalidPlacementGroup.Unknown", PlacementGroup{Strategy: "cluster", State: "deleting"},
			ec2types.LaunchTemplatePlacementRequest{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			in(t, Options{}, func(ctx context.Context, w *world) {
				test.group.Name = "group"
				test.placement.GroupId = aws.String(w.AddPlacementGroup(test.group))
				w.template(ctx, "nodes", placing(test.placement))
				out, err := w.ec2.CreateFleet(ctx, fleetOf(1, onDemandType, w.way(test.typeName, zoneA)))
				w.must(err)
				if len(launched(out)) != 0 || *out.Errors[0].ErrorCode != test.code {
					t.Errorf("launched %v, errors %+v, want %s", launched(out), out.Errors, test.code)
				}
			})
		})
	}
}

// Each filter that AWS documents selects, and the answer has what AWS documents.
func TestPlacementGroups(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		racks := w.AddPlacementGroup(PlacementGroup{Name: "racks", Strategy: "partition", Tags: map[string]string{"team": "a"}})
		w.AddPlacementGroup(PlacementGroup{Name: "apart", Strategy: "spread"})
		w.AddPlacementGroup(PlacementGroup{Name: "near", Strategy: "cluster", State: "deleting"})
		for _, test := range []struct{ name, value, want string }{
			{"group-name", "racks", "racks"}, {"group-arn", "*/apart", "apart"}, {"spread-level", "rack", "apart"},
			{"spread-level", "host", ""}, {"state", "available", "apart racks"}, {"strategy", "cluster", "near"},
			{"tag:team", "a", "racks"}, {"tag-key", "team", "racks"},
		} {
			out, err := w.ec2.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{Filters: filters(test.name, test.value)})
			w.must(err)
			var names []string
			for _, g := range out.PlacementGroups {
				names = append(names, *g.GroupName)
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("filter %s=%s returns %q, want %q", test.name, test.value, got, test.want)
			}
		}
		_, err := w.ec2.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{Filters: filters("color", "red")})
		w.refused(err, "InvalidParameterValue")
		_, err = w.ec2.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{GroupIds: []string{"pg-0"}})
		w.refused(err, "InvalidPlacementGroup.Unknown")
		out, err := w.ec2.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{GroupIds: []string{racks}})
		w.must(err)
		g := out.PlacementGroups[0]
		got := []any{*g.GroupName, g.State, g.Strategy, *g.PartitionCount, *g.GroupArn, *g.Tags[0].Value}
		want := []any{"racks", ec2types.PlacementGroupStateAvailable, ec2types.PlacementStrategyPartition, int32(2),
			"arn:aws:ec2:us-east-1:111122223333:placement-group/racks", "a"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the group -want +got:\n%s", diff)
		}
		w.must(w.DeletePlacementGroup(racks))
		_, err = w.ec2.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{GroupIds: []string{racks}})
		w.refused(err, "InvalidPlacementGroup.Unknown")
	})
}
