package awssim

import (
	"context"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/go-cmp/cmp"
)

// A subnet of 11 addresses assigns each once, rejects the twelfth instance, and reuses released addresses.
func TestAddresses(t *testing.T) {
	in(t, Options{SubnetBits: 28}, func(ctx context.Context, w *world) {
		w.template(ctx, "nodes", nil)
		request := fleetOf(12, onDemandType, w.way("m5.large", zoneA))
		out, err := w.ec2.CreateFleet(ctx, request)
		w.must(err)
		switch {
		case len(launched(out)) != 11:
			t.Fatalf("len(launched(out)) is %v, want 11", len(launched(out)))
		case len(out.Errors) != 1:
			t.Fatalf("len(out.Errors) is %v, want 1, errors %+v", len(out.Errors), out.Errors)
		case *out.Errors[0].ErrorCode != "InsufficientFreeAddressesInSubnet":
			t.Fatalf(`*out.Errors[0].ErrorCode is %v, want "InsufficientFreeAddressesInSubnet", errors %+v`, *out.Errors[0].ErrorCode, out.Errors)
		}
		seen := map[string]bool{}
		for _, i := range w.Instances() {
			seen[i.PrivateIP] = true
		}
		switch {
		case len(seen) != 11:
			t.Errorf("len(seen) is %v, want 11, addresses %v", len(seen), seen)
		case !seen["10.0.0.4"]:
			t.Errorf(`seen["10.0.0.4"] is false, addresses %v`, seen)
		case !seen["10.0.0.14"]:
			t.Errorf(`seen["10.0.0.14"] is false, addresses %v`, seen)
		}
		ip := w.Instances()[3].PrivateIP
		w.must(w.Terminate(w.Instances()[3].ID))
		w.pass(time.Minute)
		again, err := w.ec2.CreateFleet(ctx, fleetOf(1, onDemandType, w.way("m5.large", zoneA)))
		w.must(err)
		if all := w.Instances(); len(launched(again)) != 1 || all[len(all)-1].PrivateIP != ip {
			t.Errorf("launched %v, errors %+v, want the address %s again", launched(again), again.Errors, ip)
		}
	})
}

// Quotas count running instances: those within the quota are launched, the others are rejected.
func TestQuota(t *testing.T) {
	in(t, Options{Quota: Quota{OnDemand: 5, Spot: 100}}, func(ctx context.Context, w *world) {
		w.template(ctx, "nodes", nil)
		out, err := w.ec2.CreateFleet(ctx, fleetOf(3, onDemandType, w.way("m5.large", zoneA)))
		w.must(err)
		if len(launched(out)) != 2 || *out.Errors[0].ErrorCode != "VcpuLimitExceeded" {
			t.Fatalf("launched %v, errors %+v", launched(out), out.Errors)
		}
		spots, err := w.ec2.CreateFleet(ctx, fleetOf(3, spotType, w.way("m5.large", zoneA)))
		w.must(err)
		w.must(w.Terminate(launched(out)[0]))
		again, err := w.ec2.CreateFleet(ctx, fleetOf(1, onDemandType, w.way("m5.large", zoneA)))
		w.must(err)
		if len(launched(spots)) != 3 || len(launched(again)) != 1 {
			t.Errorf("launched %v on spot, %v after a termination", launched(spots), launched(again))
		}
	})
}

// A drained pool does not regain the capacity of terminated instances. A refilled one does.
func TestDrainRefill(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		w.template(ctx, "nodes", nil)
		free := func() int {
			for _, p := range w.Pools("m5.large") {
				if p.Zone == zoneA && p.CapacityType == onDemand {
					return p.Free
				}
			}
			return -1
		}
		full := free()
		w.must(w.Drain("m5.large", zoneA, onDemand, 2))
		out, err := w.ec2.CreateFleet(ctx, fleetOf(3, onDemandType, w.way("m5.large", zoneA), w.way("m5.large", zoneB)))
		w.must(err)
		switch {
		case len(out.Errors) != 1:
			t.Fatalf("len(out.Errors) is %v, want 1, errors %+v", len(out.Errors), out.Errors)
		case len(out.Instances) != 2:
			t.Fatalf("len(out.Instances) is %v, want 2, instances %+v", len(out.Instances), out.Instances)
		case len(launched(out)) != 3:
			t.Fatalf("len(launched(out)) is %v, want 3", len(launched(out)))
		}
		w.must(w.Terminate(w.Instances()[0].ID))
		w.pass(time.Minute)
		if n := free(); n != 0 {
			t.Errorf("a drained pool has %d", n)
		}
		w.must(w.Refill("", "", ""))
		w.pass(2 * time.Hour)
		used := 0
		for _, i := range w.Instances() {
			if i.Zone == zoneA {
				used++
			}
		}
		if n := free(); n != full-used {
			t.Errorf("a refilled pool has %d, want %d minus %d", n, full, used)
		}
		if w.Drain("m5.nonsense", "", "", 0) == nil {
			t.Error("draining a pool that does not exist succeeds")
		}
	})
}

// Other services have their own errors for throttling and denials.
func TestRefusalsOfServices(t *testing.T) {
	calls := map[string]func(context.Context, *world) error{
		"ssm": func(ctx context.Context, w *world) error {
			_, err := w.ssm.GetParameters(ctx, &ssm.GetParametersInput{Names: []string{"a"}})
			return err
		},
		"eks": func(ctx context.Context, w *world) error {
			_, err := w.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("sandbox")})
			return err
		},
		"sqs": func(ctx context.Context, w *world) error {
			_, err := w.sqs.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("queue")})
			return err
		},
		"iam": func(ctx context.Context, w *world) error {
			_, err := w.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String("KarpenterNodeRole-sandbox")})
			return err
		},
		"sts": func(ctx context.Context, w *world) error {
			_, err := w.sts.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
			return err
		},
	}
	codes := map[string][2]string{"iam": {"Throttling", "AccessDenied"}, "sts": {"Throttling", "AccessDenied"},
		"sqs": {"RequestThrottled", "AccessDeniedException"}}
	for service, call := range calls {
		t.Run(service, func(t *testing.T) {
			in(t, Options{Queue: "queue"}, func(ctx context.Context, w *world) {
				want, ok := codes[service]
				if !ok {
					want = [2]string{"ThrottlingException", "AccessDeniedException"}
				}
				w.must(call(ctx, w))
				_, err := w.Inject(Fault{Kind: FaultThrottle, Service: service})
				w.must(err)
				w.must(call(ctx, w))
				w.refused(call(ctx, w), want[0])
				w.Clear(0)
				_, err = w.Inject(Fault{Kind: FaultDeny, Service: service})
				w.must(err)
				w.refused(call(ctx, w), want[1])
				w.ResetCalls()
				if n := len(w.Calls()); n != 0 {
					t.Errorf("%d kinds of calls after the reset", n)
				}
			})
		})
	}
}

// A service is available in its region only. The price list is in other regions.
func TestRegions(t *testing.T) {
	in(t, Options{Region: "eu-west-1"}, func(ctx context.Context, w *world) {
		_, err := w.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
		w.refused(err, "AuthFailure")
		_, err = w.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("sandbox")})
		w.refused(err, "InvalidSignatureException")
		w.cfg.Region = "eu-west-1"
		out, err := ec2.NewFromConfig(w.cfg).DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
		w.must(err)
		if len(out.Subnets) == 0 || (*out.Subnets[0].AvailabilityZone)[:9] != "eu-west-1" {
			t.Errorf("subnets %+v", out.Subnets)
		}
		products := &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2")}
		_, err = pricing.NewFromConfig(w.cfg).GetProducts(ctx, products)
		w.refused(err, "InvalidSignatureException")
		w.cfg.Region = "eu-central-1"
		_, err = pricing.NewFromConfig(w.cfg).GetProducts(ctx, products)
		w.must(err)
	})
}

// TerminateInstances takes a token for the call and one for each instance.
func TestResourceTokens(t *testing.T) {
	limits := map[string]Limit{"ec2:TerminateInstances/resources": {Burst: 3, Rate: 1}}
	in(t, Options{Limits: limits}, func(ctx context.Context, w *world) {
		w.template(ctx, "nodes", nil)
		out, err := w.ec2.CreateFleet(ctx, fleetOf(4, onDemandType, w.way("m5.large", zoneA)))
		w.must(err)
		ids := launched(out)
		terminate := func(ids ...string) error {
			_, err := w.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids})
			return err
		}
		w.refused(terminate(ids...), "RequestLimitExceeded")
		w.must(terminate(ids[:3]...))
		w.refused(terminate(ids[3]), "RequestLimitExceeded")
		w.pass(time.Second)
		w.must(terminate(ids[3]))
	})
}

// A profile's tags are merged, and invalid ones are rejected.
func TestProfileTags(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		name := aws.String("profile")
		tag := func(key, value string) []iamtypes.Tag { return []iamtypes.Tag{{Key: &key, Value: &value}} }
		_, err := w.iam.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: name, Tags: tag("a", "1")})
		w.must(err)
		_, err = w.iam.TagInstanceProfile(ctx, &iam.TagInstanceProfileInput{InstanceProfileName: name, Tags: tag("b", "2")})
		w.must(err)
		_, err = w.iam.TagInstanceProfile(ctx, &iam.TagInstanceProfileInput{InstanceProfileName: name, Tags: tag("aws:b", "2")})
		w.refused(err, "InvalidInput")
		out, err := w.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: name})
		w.must(err)
		got := map[string]string{}
		for _, tag := range out.InstanceProfile.Tags {
			got[*tag.Key] = *tag.Value
		}
		if diff := cmp.Diff(map[string]string{"a": "1", "b": "2"}, got); diff != "" {
			t.Errorf("tags -want +got:\n%s", diff)
		}
		_, err = w.iam.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("no spaces")})
		w.refused(err, "ValidationError")
		_, err = w.iam.RemoveRoleFromInstanceProfile(ctx,
			&iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: name, RoleName: aws.String("none")})
		w.refused(err, "NoSuchEntity")
	})
}

// EC2 does not know a profile immediately after its creation.
func TestProfileLag(t *testing.T) {
	in(t, Options{Lag: time.Minute}, func(ctx context.Context, w *world) {
		name, role := aws.String("profile"), aws.String("KarpenterNodeRole-sandbox")
		w.template(ctx, "nodes", func(d *ec2types.RequestLaunchTemplateData) {
			d.IamInstanceProfile = &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: name}
		})
		w.pass(time.Minute)
		_, err := w.iam.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: name})
		w.must(err)
		_, err = w.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: role})
		w.must(err)
		early, err := w.ec2.CreateFleet(ctx, fleetOf(1, onDemandType, w.way("m5.large", zoneA)))
		w.must(err)
		w.pass(time.Minute)
		late, err := w.ec2.CreateFleet(ctx, fleetOf(1, onDemandType, w.way("m5.large", zoneA)))
		w.must(err)
		switch {
		case len(launched(early)) != 0:
			t.Errorf("len(launched(early)) is %v, want 0, a minute later %+v", len(launched(early)), late.Errors)
		case *early.Errors[0].ErrorCode != "InvalidParameterValue":
			t.Errorf(`*early.Errors[0].ErrorCode is %v, want "InvalidParameterValue", immediately %+v, a minute later %+v`,
				*early.Errors[0].ErrorCode, early.Errors, late.Errors)
		case len(launched(late)) != 1:
			t.Errorf("len(launched(late)) is %v, want 1, a minute later %+v", len(launched(late)), late.Errors)
		}
	})
}

// With a clock that is stepped manually, Settle runs the events that are due, in order, and calls the hook.
func TestSettle(t *testing.T) {
	clock, hook := clocktesting.NewFakeClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)), &recorder{}
	cloud, err := New(Options{Clock: clock, Hook: hook, Queue: "queue"})
	if err != nil {
		t.Fatal(err)
	}
	cloud.locked(func(now time.Time) {
		lt := &launchTemplate{id: "lt-1", name: "nodes", spec: &launchSpec{image: cloud.images[0].id}}
		s := cloud.subnets[0]
		o := &override{template: lt, spec: lt.spec, name: "m5.large", subnet: s.id, pool: pool{"m5.large", s.zone.name, spot}}
		cloud.launch(o, &fleetRequest{id: "fleet-1", capacity: spot}, s, now)
	})
	clock.Step(time.Minute)
	cloud.Settle()
	if len(hook.booted) != 1 || cloud.Queued() != 2 {
		t.Fatalf("%d boots, %d messages", len(hook.booted), cloud.Queued())
	}
	if err := cloud.Interrupt(hook.booted[0].ID); err != nil {
		t.Fatal(err)
	}
	clock.Step(5 * time.Minute)
	cloud.Settle()
	switch {
	case len(hook.gone) != 1:
		t.Errorf("len(hook.gone) is %v, want 1", len(hook.gone))
	case cloud.Queued() != 5:
		t.Errorf("cloud.Queued() is %v, want 5", cloud.Queued())
	case cloud.Instances()[0].State != terminated:
		t.Errorf("cloud.Instances()[0].State is %v, want %v", cloud.Instances()[0].State, terminated)
	}
	if err := cloud.Interrupt(hook.booted[0].ID); err == nil {
		t.Error("interrupting a terminated instance succeeds")
	}
}

// Rules for interfaces that the parser of launch templates checks.
func TestInterfaceRules(t *testing.T) {
	type nic = ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest
	tracking := func(tcp int32) nic {
		return nic{DeviceIndex: aws.Int32(0), ConnectionTrackingSpecification: &ec2types.ConnectionTrackingSpecificationRequest{TcpEstablishedTimeout: &tcp}}
	}
	for _, test := range []struct {
		name string
		nics []nic
		code string
	}{
		{"the same place twice", []nic{{DeviceIndex: aws.Int32(0)}, {DeviceIndex: aws.Int32(0)}}, "InvalidParameterValue"},
		{"a public address and two interfaces", []nic{{DeviceIndex: aws.Int32(0), AssociatePublicIpAddress: aws.Bool(true)},
			{DeviceIndex: aws.Int32(1)}}, "InvalidParameterCombination"},
		{"an unknown type", []nic{{DeviceIndex: aws.Int32(0), InterfaceType: aws.String("carrier")}}, "InvalidParameterValue"},
		{"a short timeout", []nic{tracking(59)}, "InvalidParameterValue"},
		{"a good timeout", []nic{tracking(60)}, ""},
		{"two interfaces", []nic{{DeviceIndex: aws.Int32(0)}, {DeviceIndex: aws.Int32(1)}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			in(t, Options{}, func(ctx context.Context, w *world) {
				_, err := w.ec2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("nodes"),
					LaunchTemplateData: &ec2types.RequestLaunchTemplateData{NetworkInterfaces: test.nics}})
				w.refused(err, test.code)
			})
		})
	}
}

func TestWildcard(t *testing.T) {
	for _, test := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "a", true}, {"a", "A", false}, {"*", "", true}, {"*", "abc", true},
		{"a*c", "abbc", true}, {"a*c", "abcd", false},
		{"a?c", "abc", true}, {"a?c", "ac", false}, {"*b*", "abc", true}, {"*a*b", "aab", true}, {"ab**", "ab", true}, {"?", "", false},
	} {
		if got := wildcard(test.pattern, test.s); got != test.want {
			t.Errorf("%q matches %q: %t, want %t", test.pattern, test.s, got, test.want)
		}
	}
}

// Invalid options are rejected.
func TestOptions(t *testing.T) {
	for _, opts := range []Options{{Region: "eu-north-1"}, {SubnetBits: 8}, {SubnetBits: 29}} {
		if _, err := New(opts); err == nil {
			t.Errorf("%+v is accepted", opts)
		}
	}
}
