package awssim

import (
	"context"
	"encoding/base64"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
)

// world is a cloud and the unmodified SDK, connected in memory on a virtual clock.
type world struct {
	*testing.T
	*Cloud
	hook *recorder
	cfg  aws.Config
	ec2  *ec2.Client
	ssm  *ssm.Client
	eks  *eks.Client
	sqs  *sqs.Client
	iam  *iam.Client
	sts  *sts.Client
	// prices is a client for the service's own region, as the SDK is used in production.
	prices *pricing.Client
}

// recorder is a Hook that records its calls.
type recorder struct {
	mu     sync.Mutex
	booted []Instance
	gone   []Instance
}

func (r *recorder) Booted(i Instance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.booted = append(r.booted, i)
}

func (r *recorder) Gone(i Instance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = append(r.gone, i)
}

const testKey = "AKIDTEST"

// in runs a test in a world. The SDK does not retry, so that each error is visible.
func in(t *testing.T, opts Options, test func(ctx context.Context, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, hook: &recorder{}}
		opts.Hook = w.hook
		cloud, err := New(opts)
		if err != nil {
			t.Fatal(err)
		}
		w.Cloud = cloud
		ctx, cancel := context.WithCancel(t.Context())
		pipe, done := NewPipe(), make(chan error)
		go func() { done <- cloud.Serve(ctx, pipe) }()
		client := pipe.HTTPClient()
		w.cfg = aws.Config{Region: "us-east-1", HTTPClient: client, BaseEndpoint: aws.String(Endpoint),
			Credentials: credentials.NewStaticCredentialsProvider(testKey, "secret", "token"),
			Retryer:     func() aws.Retryer { return aws.NopRetryer{} }}
		w.ec2, w.ssm, w.eks, w.sqs = ec2.NewFromConfig(w.cfg), ssm.NewFromConfig(w.cfg), eks.NewFromConfig(w.cfg), sqs.NewFromConfig(w.cfg)
		w.iam, w.sts, w.prices = iam.NewFromConfig(w.cfg), sts.NewFromConfig(w.cfg), pricing.NewFromConfig(w.cfg)
		defer func() {
			client.CloseIdleConnections()
			cancel()
			if err := <-done; err != nil {
				t.Errorf("serving: %v", err)
			}
		}()
		test(ctx, w)
	})
}

// pass advances the clock. All events that are due have run when it returns.
func (w *world) pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// refused checks the code of an error.
func (w *world) refused(err error, code string) {
	w.Helper()
	if got := codeOf(err); got != code {
		w.Errorf("refused with %q (%v), want %q", got, err, code)
	}
}

func codeOf(err error) string {
	var refusal smithy.APIError
	if errors.As(err, &refusal) {
		return refusal.ErrorCode()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

const (
	userData = "#!/bin/bash\necho hello"
	zoneA    = "us-east-1a"
	zoneB    = "us-east-1b"
)

// private returns the cluster's private subnet in a zone.
func (w *world) private(zone string) string {
	for _, s := range w.Subnets() {
		if s.Zone == zone && s.Tags["karpenter.sh/discovery"] != "" {
			return s.ID
		}
	}
	w.Fatalf("no private subnet in %s", zone)
	return ""
}

// al2023 returns the newest image for an architecture.
func (w *world) al2023(ctx context.Context, arch string) string {
	out, err := w.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/" + arch + "/standard/recommended/image_id")})
	w.must(err)
	return *out.Parameter.Value
}

// template creates a launch template. change may modify its data.
func (w *world) template(ctx context.Context, name string, change func(*ec2types.RequestLaunchTemplateData)) {
	w.Helper()
	data := &ec2types.RequestLaunchTemplateData{ImageId: aws.String(w.al2023(ctx, "x86_64")),
		UserData: aws.String(base64.StdEncoding.EncodeToString([]byte(userData)))}
	if change != nil {
		change(data)
	}
	_, err := w.ec2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: &name, LaunchTemplateData: data})
	w.must(err)
}

// way returns an override: a type in a zone's private subnet.
func (w *world) way(instanceType, zone string) ec2types.FleetLaunchTemplateOverridesRequest {
	return ec2types.FleetLaunchTemplateOverridesRequest{InstanceType: ec2types.InstanceType(instanceType),
		SubnetId: aws.String(w.private(zone)), AvailabilityZone: &zone}
}

// fleetOf returns a request for n instances from template "nodes".
func fleetOf(n int32, capacity ec2types.DefaultTargetCapacityType,
	ways ...ec2types.FleetLaunchTemplateOverridesRequest) *ec2.CreateFleetInput {
	return &ec2.CreateFleetInput{
		Type:                        ec2types.FleetTypeInstant,
		TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{TotalTargetCapacity: &n, DefaultTargetCapacityType: capacity},
		LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: aws.String("nodes"),
				Version: aws.String("$Latest")}, Overrides: ways}},
	}
}

const (
	onDemandType = ec2types.DefaultTargetCapacityTypeOnDemand
	spotType     = ec2types.DefaultTargetCapacityTypeSpot
)

// launched returns the IDs of a fleet's instances.
func launched(out *ec2.CreateFleetOutput) []string {
	var ids []string
	for _, i := range out.Instances {
		ids = append(ids, i.InstanceIds...)
	}
	return ids
}

// state returns the state of an instance in DescribeInstances, or the error code.
func (w *world) state(ctx context.Context, id string) string {
	w.Helper()
	out, err := w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		return codeOf(err)
	}
	return string(out.Reservations[0].Instances[0].State.Name)
}
