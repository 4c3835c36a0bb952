package aws

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/savingsplans"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
)

// right is a permission that the controller needs, and a way to test it without a change.
type right struct {
	permission string
	try        func(context.Context) error
}

// permissions tests the permissions that the controller needs besides launches, for features that are on. Reading is
// tested by dry runs where EC2 supports them, otherwise by small reads. Terminating and tagging are tested by dry runs on
// an instance of the cluster, if there is one. Creating and deleting instance profiles cannot be tested.
func (e *examination) permissions(ctx context.Context) {
	for _, r := range slices.Concat(e.rightsOfEC2(), e.otherRights(), e.rightsOverInstances()) {
		if !featureOf(r.permission).on(e) {
			continue
		}
		if err := do(ctx, e, r.permission, r.try); call.KindOf(err) != call.NotFound {
			e.asked(err, r.permission)
		}
	}
}

// rightsOfEC2 returns the permissions for reading in EC2.
func (e *examination) rightsOfEC2() []right {
	c, dry := e.opts.Clients.EC2, aws.Bool(true)
	return []right{
		{"ec2:DescribeCapacityReservations", func(ctx context.Context) error {
			_, err := c.DescribeCapacityReservations(ctx, &ec2.DescribeCapacityReservationsInput{DryRun: dry})
			return err
		}},
		{"ec2:DescribePlacementGroups", func(ctx context.Context) error {
			_, err := c.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{DryRun: dry})
			return err
		}},
		{"ec2:DescribeImages", func(ctx context.Context) error {
			_, err := c.DescribeImages(ctx, &ec2.DescribeImagesInput{DryRun: dry})
			return err
		}},
		{"ec2:DescribeInstances", func(ctx context.Context) error {
			_, err := c.DescribeInstances(ctx, &ec2.DescribeInstancesInput{DryRun: dry})
			return err
		}},
		{"ec2:DescribeInstanceStatus", func(ctx context.Context) error {
			_, err := c.DescribeInstanceStatus(ctx, &ec2.DescribeInstanceStatusInput{DryRun: dry})
			return err
		}},
		{"ec2:DescribeInstanceTypes", func(ctx context.Context) error {
			_, err := c.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{DryRun: dry})
			return err
		}},
		{"ec2:DescribeInstanceTypeOfferings", func(ctx context.Context) error {
			_, err := c.DescribeInstanceTypeOfferings(ctx, &ec2.DescribeInstanceTypeOfferingsInput{DryRun: dry})
			return err
		}},
		{"ec2:DescribeLaunchTemplates", func(ctx context.Context) error {
			_, err := c.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{DryRun: dry})
			return err
		}},
		{"ec2:DescribeReservedInstances", func(ctx context.Context) error {
			_, err := c.DescribeReservedInstances(ctx, &ec2.DescribeReservedInstancesInput{DryRun: dry})
			return err
		}},
		{"ec2:DescribeSecurityGroups", func(ctx context.Context) error {
			_, err := c.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{DryRun: dry})
			return err
		}},
		{"ec2:DescribeSpotPriceHistory", func(ctx context.Context) error {
			_, err := c.DescribeSpotPriceHistory(ctx, &ec2.DescribeSpotPriceHistoryInput{DryRun: dry})
			return err
		}},
		{"ec2:DescribeSubnets", func(ctx context.Context) error {
			_, err := c.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{DryRun: dry})
			return err
		}},
		{"ec2:DescribeVolumeStatus", func(ctx context.Context) error {
			_, err := c.DescribeVolumeStatus(ctx, &ec2.DescribeVolumeStatusInput{DryRun: dry})
			return err
		}},
	}
}

// otherRights returns the permissions for reading in other services. The names in the requests need not exist.
func (e *examination) otherRights() []right {
	return []right{
		{"ssm:GetParameter", func(ctx context.Context) error {
			name := "/aws/service/eks/optimized-ami/" + e.facts.Version + "/amazon-linux-2023/x86_64/standard/recommended/image_id"
			_, err := e.opts.Clients.SSM.GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
			return err
		}},
		{"iam:GetInstanceProfile", func(ctx context.Context) error {
			_, err := e.opts.Clients.IAM.GetInstanceProfile(ctx,
				&iam.GetInstanceProfileInput{InstanceProfileName: aws.String(e.opts.Cluster + "_doctor")})
			return err
		}},
		{"iam:ListInstanceProfiles", func(ctx context.Context) error {
			_, err := e.opts.Clients.IAM.ListInstanceProfiles(ctx,
				&iam.ListInstanceProfilesInput{PathPrefix: aws.String("/karpenter/"), MaxItems: aws.Int32(1)})
			return err
		}},
		{"pricing:GetProducts", func(ctx context.Context) error {
			_, err := e.opts.Clients.Pricing.GetProducts(ctx,
				&pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), MaxResults: aws.Int32(1)})
			return err
		}},
		{"arc-zonal-shift:GetManagedResource", func(ctx context.Context) error {
			_, err := e.opts.Clients.ZonalShift.GetManagedResource(ctx,
				&arczonalshift.GetManagedResourceInput{ResourceIdentifier: aws.String(e.facts.ARN)})
			return err
		}},
		{"savingsplans:DescribeSavingsPlans", func(ctx context.Context) error {
			_, err := e.opts.Clients.Plans.DescribeSavingsPlans(ctx, &savingsplans.DescribeSavingsPlansInput{MaxResults: aws.Int32(1)})
			return err
		}},
		{"savingsplans:DescribeSavingsPlanRates", func(ctx context.Context) error {
			_, err := e.opts.Clients.Plans.DescribeSavingsPlanRates(ctx, &savingsplans.DescribeSavingsPlanRatesInput{
				MaxResults: aws.Int32(1), SavingsPlanId: aws.String("00000000-0000-4000-8000-000000000000")})
			return err
		}},
	}
}

// rightsOverInstances returns the permissions for terminating and tagging.
func (e *examination) rightsOverInstances() []right {
	for i := range e.claims {
		id, ours := instanceOf(e.claims[i].Status.ProviderID)
		if !ours || e.claims[i].DeletionTimestamp != nil {
			continue
		}
		c, dry := e.opts.Clients.EC2, aws.Bool(true)
		return []right{
			{"ec2:TerminateInstances", func(ctx context.Context) error {
				_, err := c.TerminateInstances(ctx, &ec2.TerminateInstancesInput{DryRun: dry, InstanceIds: []string{id}})
				return err
			}},
			{"ec2:CreateTags", func(ctx context.Context) error {
				tag := ec2types.Tag{Key: aws.String(awsv1.TagNodeClaim), Value: aws.String(e.claims[i].Name)}
				_, err := c.CreateTags(ctx, &ec2.CreateTagsInput{DryRun: dry, Resources: []string{id}, Tags: []ec2types.Tag{tag}})
				return err
			}},
		}
	}
	return nil
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
