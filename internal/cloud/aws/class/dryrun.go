package class

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/launch"
)

// EC2API has the methods of *ec2.Client that a dry run calls.
type EC2API interface {
	CreateLaunchTemplate(context.Context, *ec2.CreateLaunchTemplateInput, ...func(*ec2.Options)) (*ec2.CreateLaunchTemplateOutput, error)
	CreateFleet(context.Context, *ec2.CreateFleetInput, ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error)
	RunInstances(context.Context, *ec2.RunInstancesInput, ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error)
}

// DryRun checks with EC2 whether the resources that a class describes could be created. It creates nothing.
type DryRun struct {
	EC2     EC2API
	Calls   *discovery.Caller
	Cluster string // name of the cluster
	// Orders returns the launches that the pools of a class would make. Without it, and without pools, a type that
	// every region has is tried.
	Orders func(ctx context.Context, class *awsv1.EC2NodeClass) ([]*launch.Order, error)
}

// errNoProfile means that EC2 does not know a new instance profile yet.
var errNoProfile = errors.New("EC2 does not know the instance profile yet")

// check makes the dry runs. A finding is a problem that the user has to resolve, in the class or in the permissions of
// the controller. An error is temporary.
func (d *DryRun) check(ctx context.Context, class *awsv1.EC2NodeClass, cluster discovery.Facts) (*finding, error) {
	trials, err := d.trials(ctx, class, cluster)
	if err != nil {
		return nil, err
	}
	t := trial{Trial: trials[0], class: class, tags: d.tags(class)}
	for _, step := range []func(context.Context, *trial) (*finding, error){d.template, d.fleet} {
		if found, err := step(ctx, &t); found != nil || err != nil {
			return found, err
		}
	}
	// A policy may deny one type. A finding is reported only if another type is denied as well.
	var found *finding
	for _, t.Trial = range trials {
		if found, err = d.instance(ctx, &t); err != nil || found == nil || !found.forbidden {
			return found, err
		}
	}
	return found, nil
}

// trials returns the dry runs to make, at least one.
func (d *DryRun) trials(ctx context.Context, class *awsv1.EC2NodeClass, cluster discovery.Facts) ([]launch.Trial, error) {
	if d.Orders != nil {
		orders, err := d.Orders(ctx, class)
		if err != nil {
			return nil, err
		}
		if trials := launch.Trials(orders); len(trials) > 0 {
			return trials, nil
		}
	}
	order := &launch.Order{Claim: &karpv1.NodeClaim{}, Class: class, Cluster: clusterData(cluster)}
	trial, err := order.DefaultTrial()
	return []launch.Trial{trial}, err
}

// trial is one dry run.
type trial struct {
	launch.Trial
	class *awsv1.EC2NodeClass
	tags  []ec2types.Tag
}

// tags returns the tags of a launch. The pool's name is a placeholder: policies require that there is one.
func (d *DryRun) tags(class *awsv1.EC2NodeClass) []ec2types.Tag {
	all := launch.TagsOf(class, "validation", d.Cluster)
	var list []ec2types.Tag
	for _, key := range slices.Sorted(maps.Keys(all)) {
		list = append(list, ec2types.Tag{Key: aws.String(key), Value: aws.String(all[key])})
	}
	return list
}

const trialTemplate = awsv1.Group + "/validation"

func (d *DryRun) template(ctx context.Context, t *trial) (*finding, error) {
	err := d.try(ctx, "CreateLaunchTemplate", func(ctx context.Context, once func(*ec2.Options)) error {
		_, err := d.EC2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
			DryRun: aws.Bool(true), LaunchTemplateName: aws.String(trialTemplate),
			LaunchTemplateData: t.Data,
			TagSpecifications:  t.tagged(ec2types.ResourceTypeLaunchTemplate),
		}, once)
		return err
	})
	return verdict(err, awsv1.ReasonCreateLaunchTemplateAuthCheckFailed)
}

func (t *trial) tagged(kinds ...ec2types.ResourceType) []ec2types.TagSpecification {
	var specifications []ec2types.TagSpecification
	for _, kind := range kinds {
		specifications = append(specifications, ec2types.TagSpecification{ResourceType: kind, Tags: t.tags})
	}
	return specifications
}

// fleet tries a fleet with a launch template that does not exist. EC2 may report that, after it has checked the
// permission.
func (d *DryRun) fleet(ctx context.Context, t *trial) (*finding, error) {
	err := d.try(ctx, "CreateFleet", func(ctx context.Context, once func(*ec2.Options)) error {
		_, err := d.EC2.CreateFleet(ctx, &ec2.CreateFleetInput{
			DryRun: aws.Bool(true), Type: ec2types.FleetTypeInstant,
			TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{
				TotalTargetCapacity: aws.Int32(1), DefaultTargetCapacityType: ec2types.DefaultTargetCapacityTypeOnDemand},
			LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{
				LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: aws.String(trialTemplate),
					Version: aws.String("$Latest")},
				Overrides: []ec2types.FleetLaunchTemplateOverridesRequest{{InstanceType: ec2types.InstanceType(t.Type),
					SubnetId: &t.class.Status.Subnets[0].ID, ImageId: &t.Image}},
			}},
			TagSpecifications: t.tagged(ec2types.ResourceTypeFleet, ec2types.ResourceTypeInstance, ec2types.ResourceTypeVolume),
		}, once)
		return err
	})
	var call *discovery.CallError
	if errors.As(err, &call) && strings.HasPrefix(call.Code, "InvalidLaunchTemplate") {
		return nil, nil
	}
	return verdict(err, awsv1.ReasonCreateFleetAuthCheckFailed)
}

// instance tries an instance in each subnet until one is accepted.
func (d *DryRun) instance(ctx context.Context, t *trial) (found *finding, err error) {
	for _, subnet := range t.class.Status.Subnets {
		in, err := t.Instance(subnet.ID, t.tagged(ec2types.ResourceTypeInstance, ec2types.ResourceTypeVolume,
			ec2types.ResourceTypeNetworkInterface))
		if err != nil {
			return nil, err
		}
		err = d.try(ctx, "RunInstances", func(ctx context.Context, once func(*ec2.Options)) error {
			_, err := d.EC2.RunInstances(ctx, in, once)
			return err
		})
		var call *discovery.CallError
		if errors.As(err, &call) && call.Kind == discovery.Rejected && strings.Contains(strings.ToLower(call.Error()), "iaminstanceprofile") {
			if t.class.Spec.InstanceProfile == nil {
				return nil, fmt.Errorf("%w: %w", errNoProfile, err)
			}
			return wrong(awsv1.ReasonInstanceProfileNotFound, "spec.instanceProfile: EC2 does not find the instance profile %q; %s",
				t.class.Status.InstanceProfile, call), nil
		}
		if found, err = verdict(err, awsv1.ReasonRunInstancesAuthCheckFailed); found == nil {
			return nil, err
		}
	}
	return found, nil
}

// try makes a call once. It succeeds if EC2 responds that the request would have succeeded.
func (d *DryRun) try(ctx context.Context, operation string, call func(context.Context, func(*ec2.Options)) error) error {
	once := func(o *ec2.Options) { o.Retryer = aws.NopRetryer{} }
	_, err := discovery.Do(ctx, d.Calls, "EC2", operation, func(ctx context.Context) (struct{}, error) { return struct{}{}, call(ctx, once) })
	var answer *discovery.CallError
	if errors.As(err, &answer) && answer.Code == "DryRunOperation" {
		return nil
	}
	return err
}

// soldOut are the codes for a lack of capacity of the type or subnet in the dry run, or for a type that is not offered
// there. They say nothing about a class, which may run other types elsewhere. EC2 has checked the permission before.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
var soldOut = []string{"Unsupported", "InsufficientFreeAddressesInSubnet", "InsufficientInstanceCapacity", "InsufficientCapacity",
	"InstanceLimitExceeded", "VcpuLimitExceeded", "UnfulfillableCapacity", "MaxFleetCountExceeded"}

// verdict distinguishes problems that the user has to resolve from temporary errors.
func verdict(err error, reason string) (*finding, error) {
	var call *discovery.CallError
	switch {
	case !errors.As(err, &call):
		return nil, err
	case slices.Contains(soldOut, call.Code):
		return nil, nil
	case call.Code == "AuthFailure" && strings.Contains(call.Error(), "Not authorized for images"):
		return wrong(reason, "spec.amiSelectorTerms: the image is not shared with this account: %s", call), nil
	case call.Code == "OptInRequired":
		return wrong(reason, "spec.amiSelectorTerms: the image's terms must be accepted in the AWS Marketplace first: %s", call), nil
	case call.Forbidden(): // an expired token concerns the controller, not the class
		found := wrong(reason, "the controller lacks a permission that launches need; see the documented permissions: %s", call)
		found.forbidden = true
		return found, nil
	case call.Kind == discovery.Rejected || call.Kind == discovery.NotFound:
		return wrong(reason, "EC2 would refuse this launch: %s", call), nil
	}
	return nil, fmt.Errorf("trying a launch: %w", err)
}

// RefusedError is the reason why EC2 would not launch what a class describes.
type RefusedError struct {
	// Reason is the same as in the condition ValidationSucceeded.
	Reason, Message string
	// Denied means that the controller lacks a permission. Otherwise the class is wrong.
	Denied bool
}

func (e *RefusedError) Error() string { return e.Message }

// Try checks once whether machines could be launched for a class that the controller has resolved, in a cluster with
// these facts. Errors: *RefusedError; others are temporary.
func (d *DryRun) Try(ctx context.Context, class *awsv1.EC2NodeClass, cluster discovery.Facts) error {
	if _, err := sample(class, cluster); err != nil {
		return &RefusedError{Reason: awsv1.ReasonInvalidUserData, Message: err.Error()}
	}
	found, err := d.check(ctx, class, cluster)
	if found != nil {
		return &RefusedError{Reason: found.reason, Message: found.message, Denied: found.forbidden}
	}
	return err
}
