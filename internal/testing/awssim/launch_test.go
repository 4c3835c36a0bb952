package awssim

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/google/go-cmp/cmp"
)

// lifeTemplate creates the launch template of TestLife, with its instance profile, and returns its security group.
func (w *world) lifeTemplate(ctx context.Context) (group string) {
	group = w.groups[1].id
	role, profile := "KarpenterNodeRole-sandbox", "profile"
	_, err := w.iam.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: &profile, Path: aws.String("/karpenter/")})
	w.must(err)
	_, err = w.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &profile, RoleName: &role})
	w.must(err)
	w.template(ctx, "nodes", func(d *ec2types.RequestLaunchTemplateData) {
		d.IamInstanceProfile = &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: &profile}
		d.MetadataOptions = &ec2types.LaunchTemplateInstanceMetadataOptionsRequest{HttpTokens: "required", HttpPutResponseHopLimit: aws.Int32(2)}
		d.NetworkInterfaces = []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{DeviceIndex: aws.Int32(0), Groups: []string{group}, Ipv4PrefixCount: aws.Int32(2)}}
		d.BlockDeviceMappings = []ec2types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: aws.String("/dev/xvda"),
			Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(50), VolumeType: "gp3", Encrypted: aws.Bool(true)}}}
		d.TagSpecifications = []ec2types.LaunchTemplateTagSpecificationRequest{{ResourceType: "instance", Tags: []ec2types.Tag{{Key: aws.String("from"), Value: aws.String("template")}, {Key: aws.String("only"), Value: aws.String("template")}}}}
	})
	return group
}

// An instance is launched according to its template, passes through its states, and is forgotten.
func TestLife(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		group := w.lifeTemplate(ctx)
		free := subnetFree(w, w.private(zoneA))
		request := fleetOf(1, spotType, w.way("m5.large", zoneA))
		request.TagSpecifications = []ec2types.TagSpecification{{ResourceType: "instance", Tags: []ec2types.Tag{{Key: aws.String("from"), Value: aws.String("fleet")}}}}
		out, err := w.ec2.CreateFleet(ctx, request)
		w.must(err)
		if len(out.Errors) > 0 || len(launched(out)) != 1 {
			t.Fatalf("launched %v with the errors %+v, want one instance", launched(out), out.Errors)
		}
		if i := out.Instances[0]; i.InstanceType != "m5.large" || i.Lifecycle != "spot" {
			t.Fatalf("the instance is %s, %s, want m5.large, spot", i.InstanceType, i.Lifecycle)
		}
		id := launched(out)[0]
		described, err := w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: []ec2types.Filter{{Name: aws.String("tag:only"), Values: []string{"template"}}, {Name: aws.String("instance-state-name"), Values: []string{"pending"}}}})
		w.must(err)
		i := described.Reservations[0].Instances[0]
		tags := map[string]string{}
		for _, tag := range i.Tags {
			tags[*tag.Key] = *tag.Value
		}
		got := map[string]any{"id": *i.InstanceId, "zone": *i.Placement.AvailabilityZone, "lifecycle": i.InstanceLifecycle, "tokens": i.MetadataOptions.HttpTokens, "hops": *i.MetadataOptions.HttpPutResponseHopLimit,
			"profile": *i.IamInstanceProfile.Arn, "group": *i.SecurityGroups[0].GroupId, "from": tags["from"], "only": tags["only"], "fleet": tags["aws:ec2:fleet-id"], "arch": i.Architecture, "taken": free - subnetFree(w, w.private(zoneA))}
		want := map[string]any{"id": id, "zone": zoneA, "lifecycle": ec2types.InstanceLifecycleTypeSpot, "tokens": ec2types.HttpTokensStateRequired, "hops": int32(2),
			"profile": "arn:aws:iam::111122223333:instance-profile/karpenter/profile", "group": group, "from": "fleet", "only": "template", "fleet": *out.FleetId, "arch": ec2types.ArchitectureValuesX8664, "taken": 33}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("instance -want +got:\n%s", diff)
		}
		w.pass(40 * time.Second)
		if len(w.hook.booted) != 1 {
			t.Fatalf("the hook saw %d boots", len(w.hook.booted))
		}
		b := w.hook.booted[0]
		gotBoot := []any{b.ID, string(b.UserData), b.PrivateDNSName, b.State, b.VCPUs, b.MemoryMiB, b.RootGiB, b.Kubernetes}
		wantBoot := []any{id, userData, *i.PrivateDnsName, "running", 2, 8192, 50, "1.36"}
		if diff := cmp.Diff(wantBoot, gotBoot); diff != "" {
			t.Errorf("booted -want +got:\n%s", diff)
		}
		terminateOut, err := w.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
		w.must(err)
		if c := terminateOut.TerminatingInstances[0]; c.CurrentState.Name != "shutting-down" || c.PreviousState.Name != "running" {
			t.Errorf("terminating: %v from %v", c.CurrentState.Name, c.PreviousState.Name)
		}
		w.pass(15 * time.Second)
		if s := w.state(ctx, id); s != "terminated" {
			t.Errorf("the state is %s, want terminated", s)
		}
		if n := len(w.hook.gone); n != 1 {
			t.Errorf("%d instances are gone, want 1", n)
		}
		if n := subnetFree(w, w.private(zoneA)); n != free {
			t.Errorf("%d addresses are free, want %d", n, free)
		}
		w.pass(time.Hour)
		if s := w.state(ctx, id); s != "InvalidInstanceID.NotFound" {
			t.Errorf("after an hour: %s", s)
		}
	})
}

func subnetFree(w *world, id string) int {
	for _, s := range w.Subnets() {
		if s.ID == id {
			return s.Free
		}
	}
	return -1
}

// templateChange changes the launch template of a test.
type templateChange = func(*ec2types.RequestLaunchTemplateData)

// fleetError is a fleet that cannot be launched, and its error.
type fleetError struct {
	name   string
	opts   Options
	way    func(*world, *ec2types.FleetLaunchTemplateOverridesRequest)
	data   func(*world) templateChange
	before func(*world)
	spot   bool
	code   string
}

func (test fleetError) check(t *testing.T) {
	in(t, test.opts, func(ctx context.Context, w *world) {
		var data templateChange
		if test.data != nil {
			data = test.data(w)
		}
		w.template(ctx, "nodes", data)
		way := w.way("m5.large", zoneA)
		if test.way != nil {
			test.way(w, &way)
		}
		if test.before != nil {
			test.before(w)
		}
		capacity := onDemandType
		if test.spot {
			capacity = spotType
		}
		out, err := w.ec2.CreateFleet(ctx, fleetOf(1, capacity, way))
		w.must(err)
		switch {
		case len(out.Errors) != 1:
			t.Fatalf("%d errors, want 1: %+v", len(out.Errors), out.Errors)
		case *out.Errors[0].ErrorCode != test.code:
			t.Fatalf("the error is %s, want %s", *out.Errors[0].ErrorCode, test.code)
		case len(launched(out)) != 0:
			t.Fatalf("%v were launched, want none", launched(out))
		}
		if got := out.Errors[0].LaunchTemplateAndOverrides.Overrides; got.InstanceType != way.InstanceType || aws.ToString(got.SubnetId) != aws.ToString(way.SubnetId) {
			t.Errorf("the error is about %v in %v", got.InstanceType, aws.ToString(got.SubnetId))
		}
	})
}

// Each unusable override is reported with its own error, and the next one is used.
func TestFleetErrors(t *testing.T) {
	for _, test := range []fleetError{
		{name: "sold out", before: func(w *world) { w.must(w.Drain("m5.large", zoneA, "on-demand", 0)) }, code: "InsufficientInstanceCapacity"},
		{name: "sold out spot", spot: true, before: func(w *world) { w.must(w.Drain("m5.large", "", "spot", 0)) }, code: "InsufficientInstanceCapacity"},
		{name: "rejected", spot: true, before: func(w *world) {
			w.must(w.Reject("", "", "spot", Refusal{Code: "AuthFailure.ServiceLinkedRoleCreationNotPermitted", Message: "no role"}))
		}, code: "AuthFailure.ServiceLinkedRoleCreationNotPermitted"},
		{name: "quota", opts: Options{Quota: Quota{OnDemand: 1}}, code: "VcpuLimitExceeded"},
		{name: "spot quota", opts: Options{Quota: Quota{Spot: 1}}, spot: true, code: "MaxSpotInstanceCountExceeded"},
		{name: "no address", before: func(w *world) { w.must(w.TakeAddresses(w.private(zoneA), 8187)) }, code: "InsufficientFreeAddressesInSubnet"},
		{name: "no permission", before: func(w *world) {
			_, err := w.Inject(Fault{Kind: FaultDeny, Service: "ec2", Action: "RunInstances"})
			w.must(err)
		}, code: "UnauthorizedOperation"},
		{name: "no such zone", way: func(w *world, o *ec2types.FleetLaunchTemplateOverridesRequest) { *o = w.way("m5.large", "us-east-1e") }, code: "InvalidFleetConfiguration"},
		{name: "no such subnet", way: func(_ *world, o *ec2types.FleetLaunchTemplateOverridesRequest) { o.SubnetId = aws.String("subnet-1") }, code: "InvalidSubnetID.NotFound"},
		{name: "no subnet", way: func(_ *world, o *ec2types.FleetLaunchTemplateOverridesRequest) { o.SubnetId = nil }, code: "VPCIdNotSpecified"},
		{name: "zone of another subnet", way: func(_ *world, o *ec2types.FleetLaunchTemplateOverridesRequest) {
			o.AvailabilityZone = aws.String(zoneB)
		}, code: "InvalidParameterCombination"},
		{name: "no such type", way: func(_ *world, o *ec2types.FleetLaunchTemplateOverridesRequest) { o.InstanceType = "m5.nonsense" }, code: "InvalidParameterValue"},
		{name: "another architecture", way: func(_ *world, o *ec2types.FleetLaunchTemplateOverridesRequest) { o.InstanceType = "m6g.large" }, code: "InvalidFleetConfiguration"},
		{name: "no such image", way: func(_ *world, o *ec2types.FleetLaunchTemplateOverridesRequest) { o.ImageId = aws.String("ami-0") }, code: "InvalidAMIID.NotFound"},
		{name: "malformed image", way: func(_ *world, o *ec2types.FleetLaunchTemplateOverridesRequest) { o.ImageId = aws.String("image") }, code: "InvalidAMIID.Malformed"},
	} {
		t.Run(test.name, test.check)
	}
}

func TestFleetErrorsOfTemplates(t *testing.T) {
	nics := func(n ...ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest) templateChange {
		return func(d *ec2types.RequestLaunchTemplateData) { d.NetworkInterfaces = n }
	}
	for _, test := range []fleetError{
		{name: "no such profile", data: func(*world) templateChange {
			return func(d *ec2types.RequestLaunchTemplateData) {
				d.IamInstanceProfile = &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("none")}
			}
		}, code: "InvalidParameterValue"},
		{name: "group of another network", data: func(w *world) templateChange {
			return func(d *ec2types.RequestLaunchTemplateData) { d.SecurityGroupIds = []string{w.groups[2].id} }
		}, code: "InvalidParameter"},
		{name: "no such group", data: func(*world) templateChange {
			return func(d *ec2types.RequestLaunchTemplateData) { d.SecurityGroupIds = []string{"sg-0"} }
		}, code: "InvalidGroup.NotFound"},
		{name: "volume smaller than its snapshot", data: func(*world) templateChange {
			return func(d *ec2types.RequestLaunchTemplateData) {
				d.BlockDeviceMappings = []ec2types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: aws.String("/dev/xvda"), Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(8)}}}
			}
		}, code: "InvalidBlockDeviceMapping"},
		{name: "too many EFAs", data: func(*world) templateChange {
			return nics(ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{DeviceIndex: aws.Int32(0), InterfaceType: aws.String("efa")})
		}, code: "AttachmentLimitExceeded"},
		{name: "no such network card", data: func(*world) templateChange {
			return nics(ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{DeviceIndex: aws.Int32(0), NetworkCardIndex: aws.Int32(3)})
		}, code: "InvalidNetworkCardIndex.Invalid"},
		{name: "no such placement group", data: func(*world) templateChange {
			return func(d *ec2types.RequestLaunchTemplateData) {
				d.Placement = &ec2types.LaunchTemplatePlacementRequest{GroupName: aws.String("none")}
			}
		}, code: "InvalidPlacementGroup.Unknown"},
		{name: "no such reservation", data: func(*world) templateChange {
			return func(d *ec2types.RequestLaunchTemplateData) {
				d.CapacityReservationSpecification = &ec2types.LaunchTemplateCapacityReservationSpecificationRequest{CapacityReservationTarget: &ec2types.CapacityReservationTarget{CapacityReservationId: aws.String("cr-0")}}
			}
		}, code: "InvalidCapacityReservationId.NotFound"},
		{name: "full reservation", data: func(w *world) templateChange {
			id := w.AddReservation(CapacityReservation{Type: "m5.large", Zone: zoneA})
			return func(d *ec2types.RequestLaunchTemplateData) {
				d.CapacityReservationSpecification = &ec2types.LaunchTemplateCapacityReservationSpecificationRequest{CapacityReservationTarget: &ec2types.CapacityReservationTarget{CapacityReservationId: &id}}
			}
		}, code: "ReservationCapacityExceeded"},
	} {
		t.Run(test.name, test.check)
	}
}

// Requests that EC2 rejects as a whole.
func TestFleetRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*ec2.CreateFleetInput)
		code   string
	}{
		{"no such template", func(r *ec2.CreateFleetInput) {
			r.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = aws.String("none")
		}, "InvalidLaunchTemplateName.NotFoundException"},
		{"no such template id", func(r *ec2.CreateFleetInput) {
			r.LaunchTemplateConfigs[0].LaunchTemplateSpecification = &ec2types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateId: aws.String("lt-0"), Version: aws.String("1")}
		}, "InvalidLaunchTemplateId.NotFound"},
		{"name and id", func(r *ec2.CreateFleetInput) {
			r.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateId = aws.String("lt-0")
		}, "InvalidParameterCombination"},
		{"no version", func(r *ec2.CreateFleetInput) { r.LaunchTemplateConfigs[0].LaunchTemplateSpecification.Version = nil }, "MissingParameter"},
		{"no such version", func(r *ec2.CreateFleetInput) {
			r.LaunchTemplateConfigs[0].LaunchTemplateSpecification.Version = aws.String("7")
		}, "InvalidLaunchTemplateId.VersionNotFound"},
		{"no capacity", func(r *ec2.CreateFleetInput) { r.TargetCapacitySpecification.TotalTargetCapacity = aws.Int32(0) }, "InvalidParameterValue"},
		{"not instant", func(r *ec2.CreateFleetInput) { r.Type = ec2types.FleetTypeMaintain }, "UnsupportedOperation"},
		{"wrong strategy", func(r *ec2.CreateFleetInput) {
			r.OnDemandOptions = &ec2types.OnDemandOptionsRequest{AllocationStrategy: "diversified"}
		}, "InvalidParameterValue"},
		{"an option that is not simulated", func(r *ec2.CreateFleetInput) {
			r.OnDemandOptions = &ec2types.OnDemandOptionsRequest{SingleInstanceType: aws.Bool(true)}
		}, "UnknownParameter"},
		{"duplicate override", func(r *ec2.CreateFleetInput) {
			r.LaunchTemplateConfigs[0].Overrides = append(r.LaunchTemplateConfigs[0].Overrides, r.LaunchTemplateConfigs[0].Overrides[0])
		}, "InvalidParameterValue"},
		{"reserved tag", func(r *ec2.CreateFleetInput) {
			r.TagSpecifications = []ec2types.TagSpecification{{ResourceType: "instance", Tags: []ec2types.Tag{{Key: aws.String("aws:x"), Value: aws.String("y")}}}}
		}, "InvalidParameterValue"},
		{"tag twice", func(r *ec2.CreateFleetInput) {
			tag := ec2types.Tag{Key: aws.String("x"), Value: aws.String("y")}
			r.TagSpecifications = []ec2types.TagSpecification{{ResourceType: "instance", Tags: []ec2types.Tag{tag, tag}}}
		}, "InvalidParameterValue"},
		{"dry run", func(r *ec2.CreateFleetInput) { r.DryRun = aws.Bool(true) }, "DryRunOperation"},
	} {
		t.Run(test.name, func(t *testing.T) {
			in(t, Options{}, func(ctx context.Context, w *world) {
				w.template(ctx, "nodes", nil)
				request := fleetOf(1, onDemandType, w.way("m5.large", zoneA))
				test.change(request)
				_, err := w.ec2.CreateFleet(ctx, request)
				w.refused(err, test.code)
				if n := len(w.Instances()); n != 0 {
					t.Errorf("%d instances were launched", n)
				}
			})
		})
	}
}

// The allocation strategies choose as AWS documents.
func TestStrategies(t *testing.T) {
	const cheap, dear = "t3.large", "m5.4xlarge"
	for _, test := range []struct {
		name, strategy string
		spot           bool
		first, second  float64 // priorities of cheap and dear
		before         func(*world)
		want           []string
	}{
		{name: "lowest price", strategy: "lowest-price", want: []string{cheap, cheap}},
		{name: "lowest price, sold out", strategy: "lowest-price", before: func(w *world) { w.must(w.Drain(cheap, "", "", 1)) }, want: []string{cheap, dear}},
		{name: "prioritized", strategy: "prioritized", first: 2, second: 1, want: []string{dear, dear}},
		{name: "spot price and capacity", spot: true, strategy: "price-capacity-optimized", want: []string{cheap, cheap}},
		{name: "spot price and capacity, cheap pool shallow", spot: true, strategy: "price-capacity-optimized", before: func(w *world) { w.must(w.Drain(cheap, "", "", 3)) }, want: []string{dear, dear}},
		{name: "capacity with priority", spot: true, strategy: "capacity-optimized-prioritized", first: 2, second: 1, want: []string{dear, dear}},
		{name: "capacity over priority", spot: true, strategy: "capacity-optimized-prioritized", first: 2, second: 1, before: func(w *world) { w.must(w.Drain(dear, "", "", 3)) }, want: []string{cheap, cheap}},
		{name: "diversified", spot: true, strategy: "diversified", want: []string{dear, cheap}},
	} {
		t.Run(test.name, func(t *testing.T) {
			in(t, Options{}, func(ctx context.Context, w *world) {
				w.template(ctx, "nodes", nil)
				if test.before != nil {
					test.before(w)
				}
				a, b := w.way(dear, zoneA), w.way(cheap, zoneA)
				if test.first > 0 {
					a.Priority, b.Priority = aws.Float64(test.second), aws.Float64(test.first)
				}
				request := fleetOf(2, onDemandType, a, b)
				request.OnDemandOptions = &ec2types.OnDemandOptionsRequest{AllocationStrategy: ec2types.FleetOnDemandAllocationStrategy(test.strategy)}
				if test.spot {
					request = fleetOf(2, spotType, a, b)
					request.SpotOptions = &ec2types.SpotOptionsRequest{AllocationStrategy: ec2types.SpotAllocationStrategy(test.strategy)}
				}
				_, err := w.ec2.CreateFleet(ctx, request)
				w.must(err)
				var got []string
				for _, i := range w.Instances() {
					got = append(got, i.Type)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("types -want +got:\n%s", diff)
				}
			})
		})
	}
}

// A client token identifies one request. A repeated request gets the same response. One with other parameters is
// rejected.
func TestClientToken(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		w.template(ctx, "nodes", nil)
		request := fleetOf(2, onDemandType, w.way("m5.large", zoneA))
		request.ClientToken = aws.String("token")
		_, err := w.Inject(Fault{Kind: FaultLose, Action: "CreateFleet", Count: 1})
		w.must(err)
		if _, err = w.ec2.CreateFleet(ctx, request); err == nil || len(w.Instances()) != 2 {
			t.Fatalf("lost response: error %v, %d instances", err, len(w.Instances()))
		}
		again, err := w.ec2.CreateFleet(ctx, request)
		w.must(err)
		ids := launched(again)
		for _, i := range w.Instances() {
			if !slices.Contains(ids, i.ID) {
				t.Errorf("the repeated response %v lacks %s", ids, i.ID)
			}
		}
		if n := len(w.Instances()); n != 2 {
			t.Errorf("%d instances after the repetition, want 2", n)
		}
		request.TargetCapacitySpecification.TotalTargetCapacity = aws.Int32(3)
		_, err = w.ec2.CreateFleet(ctx, request)
		w.refused(err, "IdempotentParameterMismatch")
		if lost := w.Calls()[CallCount{"ec2", "CreateFleet", "Lost"}]; lost != 1 {
			t.Errorf("%d lost responses are counted, want 1", lost)
		}
	})
}

// A launch template is validated to the same extent as in EC2.
func TestLaunchTemplateRefused(t *testing.T) {
	volume := func(v ec2types.LaunchTemplateEbsBlockDeviceRequest) func(*ec2.CreateLaunchTemplateInput) {
		return func(r *ec2.CreateLaunchTemplateInput) {
			r.LaunchTemplateData.BlockDeviceMappings = []ec2types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: aws.String("/dev/xvda"), Ebs: &v}}
		}
	}
	for _, test := range []struct {
		name   string
		change func(*ec2.CreateLaunchTemplateInput)
		code   string
	}{
		{"short name", func(r *ec2.CreateLaunchTemplateInput) { r.LaunchTemplateName = aws.String("x") }, "InvalidLaunchTemplateName.MalformedException"},
		{"taken name", func(r *ec2.CreateLaunchTemplateInput) { r.LaunchTemplateName = aws.String("taken") }, "InvalidLaunchTemplateName.AlreadyExistsException"},
		{"long user data", func(r *ec2.CreateLaunchTemplateInput) {
			r.LaunchTemplateData.UserData = aws.String(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 16385))))
		}, "InvalidParameterValue"},
		{"user data that is no base64", func(r *ec2.CreateLaunchTemplateInput) { r.LaunchTemplateData.UserData = aws.String("#!/bin/bash") }, "InvalidUserData.Malformed"},
		{"throughput of gp2", volume(ec2types.LaunchTemplateEbsBlockDeviceRequest{VolumeType: "gp2", Throughput: aws.Int32(125)}), "InvalidParameterCombination"},
		{"too little throughput", volume(ec2types.LaunchTemplateEbsBlockDeviceRequest{VolumeType: "gp3", Throughput: aws.Int32(1)}), "InvalidParameterValue"},
		{"io2 without iops", volume(ec2types.LaunchTemplateEbsBlockDeviceRequest{VolumeType: "io2"}), "MissingParameter"},
		{"key without encryption", volume(ec2types.LaunchTemplateEbsBlockDeviceRequest{KmsKeyId: aws.String("key")}), "InvalidParameterDependency"},
		{"hop limit", func(r *ec2.CreateLaunchTemplateInput) {
			r.LaunchTemplateData.MetadataOptions = &ec2types.LaunchTemplateInstanceMetadataOptionsRequest{HttpPutResponseHopLimit: aws.Int32(65)}
		}, "InvalidParameterValue"},
		{"groups beside interfaces", func(r *ec2.CreateLaunchTemplateInput) {
			r.LaunchTemplateData.SecurityGroupIds = []string{"sg-1"}
			r.LaunchTemplateData.NetworkInterfaces = []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{DeviceIndex: aws.Int32(0)}}
		}, "InvalidParameterCombination"},
		{"something that is not simulated", func(r *ec2.CreateLaunchTemplateInput) { r.LaunchTemplateData.KeyName = aws.String("key") }, "UnknownParameter"},
		{"a part that is not simulated", func(r *ec2.CreateLaunchTemplateInput) {
			r.LaunchTemplateData.CpuOptions = &ec2types.LaunchTemplateCpuOptionsRequest{CoreCount: aws.Int32(1)}
		}, "UnknownParameter"},
		{"too many tags", func(r *ec2.CreateLaunchTemplateInput) {
			var tags []ec2types.Tag
			for k := range 51 {
				tags = append(tags, ec2types.Tag{Key: aws.String(fmt.Sprint(k)), Value: aws.String("")})
			}
			r.TagSpecifications = []ec2types.TagSpecification{{ResourceType: "launch-template", Tags: tags}}
		}, "TagLimitExceeded"},
		{"dry run", func(r *ec2.CreateLaunchTemplateInput) { r.DryRun = aws.Bool(true) }, "DryRunOperation"},
	} {
		t.Run(test.name, func(t *testing.T) {
			in(t, Options{}, func(ctx context.Context, w *world) {
				w.template(ctx, "taken", nil)
				request := &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("name"), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{InstanceType: "m5.large"}}
				test.change(request)
				_, err := w.ec2.CreateLaunchTemplate(ctx, request)
				w.refused(err, test.code)
			})
		})
	}
}
